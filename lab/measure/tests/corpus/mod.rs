//! Replays `fuzz/corpus/record/*` and `fuzz/corpus/distribution/*` through the functions that the fuzzer runs.

mod distribution;
mod record;
#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

#[test]
fn records_that_fuzzers_found_are_handled() {
    replaying::replay_corpus("record", record::replay);
}

#[test]
fn distributions_that_fuzzers_found_are_handled() {
    replaying::replay_corpus("distribution", distribution::replay);
}
