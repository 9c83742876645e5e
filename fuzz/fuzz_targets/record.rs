//! Fuzzes `record`: what is checked is in `lab/measure/tests/corpus/record.rs`, where `cargo test` replays the
//! corpus through it.
#![no_main]

#[path = "../../lab/measure/tests/corpus/record.rs"]
mod replay;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| replay::replay(bytes));
