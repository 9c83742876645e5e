//! The shared libraries as bytes. `cargo install` installs programs only: so the command carries
//! the preload libraries, and puts one where the dynamic linker can read it when a program is to run on it
//! (`docs/decisions/installation.md`), and the C library, which `run peers` measures.
#![warn(missing_docs)]

const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A library by its file name, such as `libcachewise_preload.so`; none in a debug build, nor where
/// there is no `LD_PRELOAD`.
#[must_use]
pub fn embedded(file: &str) -> Option<&'static [u8]> {
    EMBEDDED.iter().find(|(name, _)| *name == file).map(|(_, bytes)| *bytes)
}

/// A name for these bytes that other builds' do not have (FNV-1a in 64 bits).
#[must_use]
pub fn build_name(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
