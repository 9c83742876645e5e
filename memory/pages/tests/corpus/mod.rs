//! Replays `fuzz/corpus/calls/*` through the function that the fuzzer runs.

mod replay;
#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

#[test]
fn what_fuzzers_found_is_handled() {
    replaying::replay_corpus("calls", replay::replay);
}
