//! Replays `fuzz/corpus/record/*` through the function that the fuzzer runs.

mod record;
#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

#[test]
fn records_that_fuzzers_found_are_handled() {
    replaying::replay_corpus("record", 3, record::replay);
}
