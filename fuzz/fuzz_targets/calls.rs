//! Fuzzes `calls`: what is checked is in `memory/pages/tests/corpus/replay.rs`, where `cargo test` replays the
//! corpus through it.
#![no_main]

#[path = "../../memory/pages/tests/corpus/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replay::replay(bytes));
