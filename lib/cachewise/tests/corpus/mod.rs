//! Replays `fuzz/corpus/profile/*` through the function that the fuzzer runs.
#![cfg(feature = "std")]

mod replay;
#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

#[test]
fn what_fuzzers_found_is_handled() {
    replaying::replay_corpus("profile", 3, replay::replay);
}
