//! State before any call, in a process of its own.

#![cfg(all(feature = "os", target_arch = "x86_64", target_os = "linux", not(miri)))]

use cachewise::entry::{SSE2, variant};
use cachewise::{profile, raw};
use cachewise_kernels::{Features, Operation};

/// A copy of `n` bytes.
fn copied(n: usize) {
    let (from, mut to) = ([7u8; 65], [0u8; 65]);
    // SAFETY: n is 65 at most.
    unsafe { raw::copy_nonoverlapping(to.as_mut_ptr(), from.as_ptr(), n) };
    assert!(to[..n].iter().all(|byte| *byte == 7) && to[n..].iter().all(|byte| *byte == 0));
}

/// Up to 64 bytes nothing is chosen and nothing read; the first call of more follows the profile, so that a program that makes
/// only such calls has its entries.
#[test]
fn the_first_call_that_has_a_choice_follows_the_profile() {
    if !Features::detect().contains(Features::AVX2) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("profile");
    if !crate::is_child() {
        let entries = vec![(Operation::Copy, "sse2".to_owned())];
        let profile = profile::Profile { entries, ..profile::Profile::here() };
        std::fs::write(&file, profile.to_text()).expect("written");
        let mut child =
            crate::child("loaded::the_first_call_that_has_a_choice_follows_the_profile");
        let output = child.env("CACHEWISE_PROFILE", &file).output().expect("the child runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
        return;
    }
    copied(64);
    assert_eq!([Operation::Copy, Operation::Move].map(variant), [SSE2; 2], "nothing is read");
    copied(65);
    assert_eq!(variant(Operation::Copy), SSE2, "as the profile says");
    assert_ne!(variant(Operation::Move), SSE2, "as the CPU can");
}
