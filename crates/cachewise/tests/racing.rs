//! Comparisons while another thread changes a buffer: what they return may be of before or after,
//! but they read nothing outside and are led by nothing outside. The kernels have the same test.
//!
//! What stands behind the buffers is an inaccessible page, or bytes that differ with the other
//! sign.
#![cfg(target_os = "linux")]

use cachewise::raw;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;

const PAGE: usize = 4096;

/// Both sides of every class, and one loop.
const LENGTHS: [usize; 20] =
    [1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 64, 65, 128, 129, 256, 257, 384, 512, 1100];

/// Bytes behind the buffers where they are not at the end of their page: more than the widest mask.
const BEHIND: usize = 128;

/// Changes of the result from call to call: more than in the kernels' test, since a block of four
/// bytes is looked at again sooner.
const CHANGES: usize = 20_000;
/// Calls at most, where the writer hardly runs.
const CALLS: usize = 400_000;

/// A page that is followed by one that must not be read.
fn fenced() -> *mut u8 {
    // SAFETY: a new mapping.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            2 * PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(start, libc::MAP_FAILED);
    let start = start.cast::<u8>();
    let behind = start.wrapping_add(PAGE).cast();
    // SAFETY: the second page of the mapping just made.
    assert_eq!(unsafe { libc::mprotect(behind, PAGE, libc::PROT_NONE) }, 0);
    start
}

/// What one comparison returned that no state of the buffers allows.
fn wrong(ordered: bool, a: *mut u8, b: *mut u8, start: usize, n: usize) -> Option<i32> {
    // SAFETY: the last byte of the buffer, in memory that is never unmapped.
    let last = unsafe { AtomicU8::from_ptr(a.wrapping_add(start + n - 1)) };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                last.fetch_xor(0x80, Ordering::Relaxed);
            }
        });
        let (left, right) = (a.wrapping_add(start), b.wrapping_add(start));
        let (mut wrong, mut before, mut changes) = (None, 0, 0);
        for _ in 0..CALLS {
            let returned = if ordered {
                // SAFETY: n bytes are readable at both places.
                unsafe { raw::compare(left, right, n) }
            } else {
                // SAFETY: as above.
                unsafe { raw::equal_int(left, right, n) }
            };
            changes += usize::from(returned != before);
            before = returned;
            if returned < 0 || !ordered && returned > 1 {
                wrong = Some(returned);
            }
            if wrong.is_some() || changes == CHANGES {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        wrong
    })
}

#[test]
fn a_writer_beside_them_leads_no_comparison_outside() {
    let (a, b) = (fenced(), fenced());
    for ordered in [true, false] {
        for n in LENGTHS {
            for behind in [0, BEHIND] {
                let start = PAGE - behind - n;
                for at in 0..PAGE {
                    // SAFETY: inside the page; no other thread runs here.
                    unsafe { a.wrapping_add(at).write(if at < start + n { 0x40 } else { 0x01 }) };
                    // SAFETY: as above.
                    unsafe { b.wrapping_add(at).write(0x40) };
                }
                let wrong = wrong(ordered, a, b, start, n);
                assert_eq!(wrong, None, "ordered {ordered}: {n} bytes, {behind} behind");
            }
        }
    }
}
