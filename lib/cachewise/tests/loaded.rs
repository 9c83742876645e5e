//! State before any call, in a process of its own.

#![cfg(all(feature = "os", target_arch = "x86_64", target_os = "linux", not(miri)))]

use cachewise::entry::{SSE2, variant};
use cachewise::raw;
use cachewise_kernels::{Features, Operation};

/// A copy of `n` bytes.
fn copied(n: usize) {
    let (from, mut to) = ([7u8; 65], [0u8; 65]);
    // SAFETY: n is 65 at most.
    unsafe { raw::copy_nonoverlapping(to.as_mut_ptr(), from.as_ptr(), n) };
    assert!(to[..n].iter().all(|byte| *byte == 7) && to[n..].iter().all(|byte| *byte == 0));
}

/// Up to 64 bytes nothing is chosen; the first call of more makes the choice.
#[test]
#[cfg_attr(target_feature = "avx2", ignore = "nothing is chosen in this build")]
fn the_first_call_that_has_a_choice_makes_it() {
    if !Features::detect().contains(Features::AVX2)
        || !crate::alone("loaded::the_first_call_that_has_a_choice_makes_it")
    {
        return;
    }
    copied(64);
    assert_eq!([Operation::Copy, Operation::Move].map(variant), [SSE2; 2]);
    copied(65);
    assert!([Operation::Copy, Operation::Move].map(variant).iter().all(|of| *of != SSE2));
}
