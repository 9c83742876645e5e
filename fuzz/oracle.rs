//! Every kernel of some operations against one oracle. What the bytes mean, and the check, are in the
//! kernels' test support, where `cargo test` replays the corpus through them.

#[allow(dead_code, reason = "shared with the tests; each target uses its own part")]
#[path = "../lib/kernels/tests/kernels/support/mod.rs"]
pub mod support;

/// A target: bytes as a case, through the kernels of these operations.
macro_rules! fuzz_kernels {
    ($($operation:ident),+) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            oracle::support::cases::replay(&[$(cachewise_kernels::Operation::$operation),+], bytes);
        });
    };
}
