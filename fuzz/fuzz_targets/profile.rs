//! Fuzzes `profile`: what is checked is in `lib/cachewise/tests/corpus/replay.rs`, where `cargo test` replays the
//! corpus through it.
#![no_main]

#[path = "../../lib/cachewise/tests/corpus/replay.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replay::replay(bytes));
