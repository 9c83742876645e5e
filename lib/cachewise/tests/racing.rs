//! Comparisons while another thread changes a buffer, by each entry: what they return may be of before or
//! after, but they read nothing outside and are led by nothing outside. The kernels have the same test. And calls
//! while another thread changes which entry is in use, and which kernel.
//!
//! What stands behind the buffers is an inaccessible page, or bytes that differ with the other
//! sign.
#![cfg(target_os = "linux")]

#[path = "../../kernels/tests/kernels/support/raced.rs"]
mod raced;

use cachewise::profile::OPERATIONS;
use cachewise::{entry, raw};
use cachewise_kernels::{Features, Kernel, Operation, TABLE};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The entries that this CPU can run.
fn entries() -> Vec<u8> {
    let all = (0..).zip(entry::variants(Operation::Compare));
    let here = Features::detect();
    all.filter(|(_, entry)| entry.runs_on(here)).map(|(number, _)| number).collect()
}

/// Does this with the entry that the CPU has by the rule, then with each one that it can run.
fn with_each_entry(mut done: impl FnMut()) {
    cachewise::init();
    done();
    for number in entries() {
        OPERATIONS.into_iter().for_each(|operation| entry::choose(operation, number));
        done();
    }
}

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

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_writer_beside_them_leads_no_comparison_outside() {
    if !crate::alone("racing::a_writer_beside_them_leads_no_comparison_outside") {
        return;
    }
    let (a, b) = (fenced(), fenced());
    with_each_entry(|| {
        for (ordered, n) in LENGTHS.into_iter().flat_map(|n| [(true, n), (false, n)]) {
            for behind in [0, BEHIND] {
                let start = PAGE - behind - n;
                for at in 0..PAGE {
                    // SAFETY: inside the page; no other thread runs here.
                    unsafe { a.wrapping_add(at).write(if at < start + n { 0x40 } else { 0x01 }) };
                    // SAFETY: as above.
                    unsafe { b.wrapping_add(at).write(0x40) };
                }
                let (left, right) = (a.wrapping_add(start), b.wrapping_add(start));
                let compare = || match ordered {
                    // SAFETY: n bytes are readable at both places.
                    true => unsafe { raw::compare(left, right, n) },
                    // SAFETY: as above.
                    false => unsafe { raw::equal_int(left, right, n) },
                };
                let last = left.wrapping_add(n - 1);
                let wrong = raced::wrong(last, ordered, (CHANGES, CALLS), compare);
                assert_eq!(wrong, None, "ordered {ordered}: {n} bytes, {behind} behind");
            }
        }
    });
}

/// More than 128 bytes that are copied to their own place are not written: another thread may write them, or none may.
#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_copied_to_its_own_place_is_left_alone() {
    if !crate::alone("racing::what_is_copied_to_its_own_place_is_left_alone") {
        return;
    }
    let page = fenced();
    // SAFETY: the page just made.
    assert_eq!(unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_READ) }, 0);
    with_each_entry(|| {
        for n in [129, 256, 257, 513, 1100, PAGE] {
            // SAFETY: readable bytes, of which none is written: that is what is tested.
            assert_eq!(unsafe { raw::copy(page, page, n) }, page);
        }
    });
}

/// The exported functions read which entry is in use, how far its loop goes, and the end of a range and then its function:
/// each may have changed since the one before.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_are_right_while_the_entry_and_the_kernels_change() {
    if !crate::alone("racing::calls_are_right_while_the_entry_and_the_kernels_change") {
        return;
    }
    cachewise::init();
    let (entries, done, here) = (entries(), AtomicBool::new(false), Features::detect());
    let usable = |kernel: &&Kernel| {
        kernel.deploy && kernel.runs_on(here) && OPERATIONS.contains(&kernel.operation())
    };
    let kernels: Vec<&Kernel> = TABLE.iter().filter(usable).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(5);
            while !done.load(Ordering::Relaxed) {
                for operation in OPERATIONS {
                    entry::choose(operation, entries[random.usize(..entries.len())]);
                }
                match random.choice(&kernels) {
                    Some(kernel) => assert!(cachewise::use_only(kernel), "{}", kernel.name),
                    None => unreachable!("there are kernels"),
                }
                cachewise::use_libc(OPERATIONS[random.usize(..OPERATIONS.len())]);
            }
        });
        let mut random = fastrand::Rng::with_seed(6);
        let from: Vec<u8> = (0..4096).map(|at| at as u8 | 1).collect();
        let mut to = vec![0u8; 4096];
        for call in 0..CALLS / 4 {
            let most = if call % 16 == 0 { 3500 } else { 300 };
            let (n, at) = (random.usize(0..most), random.usize(1..300));
            let (first, behind) = (to.as_mut_ptr().wrapping_add(at), at + n);
            to[at - 1] = 0xEE;
            to[behind] = 0xEE;
            let wanted = match call % 3 {
                0 => &from[..n],
                1 => &[1; 3500][..n],
                _ => &[0; 3500][..n],
            };
            match call % 3 {
                // SAFETY: n bytes from `at` on are inside both buffers.
                0 => unsafe { raw::copy(first, from.as_ptr(), n) },
                // SAFETY: as above.
                1 => unsafe { raw::fill(first, 1, n) },
                // SAFETY: as above.
                _ => unsafe { raw::zero(first, n) },
            };
            assert!(to[at..behind] == *wanted, "call {call}: {n} bytes at {at}");
            assert!(to[at - 1] == 0xEE && to[behind] == 0xEE, "call {call}: {n} bytes at {at}");
            // SAFETY: as above.
            let order = unsafe { raw::compare(first, from.as_ptr(), n) };
            // SAFETY: as above.
            let same = unsafe { raw::equal_int(first, from.as_ptr(), n) };
            let expected = wanted.cmp(&from[..n]);
            assert_eq!((order.cmp(&0), same == 1), (expected, expected.is_eq()), "{n} bytes");
        }
        done.store(true, Ordering::Relaxed);
    });
}
