//! Profiles as these tests and those of the C interface write them.

use cachewise::cpu::Signature;
use cachewise::profile::fnv1a64;
use std::path::{Path, PathBuf};

/// A profile for this CPU with these lines.
pub fn decided(directory: &Path, name: &str, lines: &str) -> PathBuf {
    let cpu = Signature::detect();
    let body = format!("cachewise-profile 2\ncpu {cpu}\ncaches 1 2 3\n{lines}");
    let end = format!("end {} fnv1a64:{:016x}\n", body.lines().count(), fnv1a64(body.as_bytes()));
    let path = directory.join(name);
    std::fs::write(&path, body + &end).expect("written");
    path
}
