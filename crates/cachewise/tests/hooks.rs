//! Hooks of large calls: all of them are hooked, none of the others, and each kind of kernel does
//! the work. A process of its own, because what is hooked stays so.
#![cfg(target_arch = "x86_64")]

use cachewise::hooks::{self, Hooks};
use cachewise::raw;
use std::sync::atomic::{AtomicUsize, Ordering};

static TAKEN: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// Which kernel the hooks take: 0 the profile's, 1 a temporal, 2 a non-temporal one.
static WAY: AtomicUsize = AtomicUsize::new(0);

fn way(operation: usize) -> Option<bool> {
    TAKEN[operation].fetch_add(1, Ordering::Relaxed);
    [None, Some(false), Some(true)][WAY.load(Ordering::Relaxed)]
}

unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { hooks::copy(way(0), n)(dst, src, n) }
}

unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { hooks::r#move(way(1), n)(dst, src, n) }
}

unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { hooks::fill(way(2), n)(dst, byte, n) }
}

unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { hooks::zero(way(3), n)(dst, n) }
}

#[test]
fn large_calls_are_hooked_and_others_are_not() {
    const LEAST: u64 = 64 << 10;
    let from = hooks::install(&Hooks { copy, r#move, fill, zero }, LEAST);
    let sizes = [129, 4096, 65535, 65536, 1 << 20, (3 << 20) + 5, 40 << 20, 200 << 20];
    let most = *sizes.last().expect("sizes");
    let source: Vec<u8> = (0..most).map(|i| (i * 7 + (i >> 12)) as u8).collect();
    let mut target = vec![0xEE; most + 1];
    for which in 0..3 {
        WAY.store(which, Ordering::Relaxed);
        for n in sizes {
            let hooked = from.map(|from| from.is_some_and(|from| n as u64 >= from));
            assert!(from.iter().flatten().all(|from| *from >= LEAST));
            let before = [0, 1, 2, 3].map(|at: usize| TAKEN[at].load(Ordering::Relaxed));
            let dst = target.as_mut_ptr();
            // SAFETY: both buffers have n bytes and are distinct.
            let result = unsafe { raw::copy_nonoverlapping(dst, source.as_ptr(), n) };
            assert_eq!(result, dst);
            assert!(target[..n] == source[..n] && target[n] == 0xEE, "copy of {n}");
            // SAFETY: the first n - 1 bytes of n, moved by one.
            unsafe { raw::copy(dst.wrapping_add(1), dst, n - 1) };
            assert!(target[1..n] == source[..n - 1] && target[n] == 0xEE, "move of {n}");
            // SAFETY: n bytes are ours.
            unsafe { raw::fill(dst, 0x5A, n) };
            assert!(target[..n].iter().all(|byte| *byte == 0x5A) && target[n] == 0xEE);
            // SAFETY: as above.
            unsafe { raw::zero(dst, n) };
            assert!(target[..n].iter().all(|byte| *byte == 0) && target[n] == 0xEE);
            target[..n].fill(0xEE);
            for at in 0..4 {
                // The move is a byte shorter, and Rust's own `fill` above is no call of ours.
                let mine =
                    if at == 1 { from[1].is_some_and(|from| n as u64 > from) } else { hooked[at] };
                let taken = TAKEN[at].load(Ordering::Relaxed) - before[at];
                assert_eq!(taken, usize::from(mine), "{n} bytes, operation {at}, from {from:?}");
            }
        }
    }
}
