//! Fuzzes `section`: what is checked is in `crates/learn/tests/corpus/replay.rs`, where `cargo test` replays the
//! corpus through it.
#![no_main]

#[path = "../../crates/learn/tests/corpus/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replay::replay(bytes));
