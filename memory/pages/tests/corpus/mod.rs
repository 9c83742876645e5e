//! The model of a pool over its calls: random ones, and those in `fuzz/corpus/calls`.

mod replay;
#[path = "../../../../fuzz/replaying.rs"]
mod replaying;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn model_of_all_calls(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        replay::replay(&bytes);
    }
}

#[test]
fn model_replays_the_fuzzers_corpus() {
    replaying::replay_corpus("calls", 3, replay::replay);
}
