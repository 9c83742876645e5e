//! Fuzzes `compare`: every kernel of the operation against the scalar oracle. What the bytes mean, and
//! the check, are in the kernels' test support, where `cargo test` replays the corpus through them.
#![no_main]

#[allow(dead_code, reason = "shared with the tests; each target uses its own part")]
#[path = "../../crates/kernels/tests/kernels/support/mod.rs"]
mod support;

use cachewise_kernels::Operation;
use support::cases::{CompareCase, replay};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    replay::<CompareCase>(Operation::Compare, bytes);
});
