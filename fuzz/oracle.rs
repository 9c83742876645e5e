//! Every kernel of an operation against the scalar oracle. What the bytes mean, and the check, are in the
//! kernels' test support, where `cargo test` replays the corpus through them.

#[allow(dead_code, reason = "shared with the tests; each target uses its own part")]
#[path = "../lib/kernels/tests/kernels/support/mod.rs"]
pub mod support;

/// A target: bytes as a case of that kind, through the kernels of each operation.
macro_rules! fuzz_kernels {
    ($case:ident: $($operation:ident),+) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            use oracle::support::cases::{$case, replay};
            $(replay::<$case>(cachewise_kernels::Operation::$operation, bytes);)+
        });
    };
}
