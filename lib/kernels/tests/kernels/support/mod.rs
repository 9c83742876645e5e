//! Code that the tests and the fuzz targets share: guarded memory, one checked call, and the case that
//! proptest draws and the fuzzer's bytes spell.
//!
//! `fuzz/fuzz_targets/*.rs` include this folder by path, so that `cargo test` replays a corpus
//! file through the very function the fuzzer ran. Nothing here knows about libtest.

pub mod arena;
pub mod cases;
pub mod guarded;
pub mod machine_state;
pub mod raced;
pub mod watch;

/// Passed, or what was wrong, in one line that names the kernel and the parameters.
pub type Checked = Result<(), Box<str>>;
