//! Fuzzes the page allocator against its model. What the bytes mean, and the checks, are in the
//! crate's test support, where `cargo test` replays the corpus through them.
#![no_main]

#[path = "../../memory/pages/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    support::replay(bytes);
});
