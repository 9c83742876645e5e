//! Compare and equal while another thread changes a buffer: what they return may be of before or
//! after, but they read nothing outside and are led by nothing outside.
//!
//! What stands behind the buffers is an inaccessible page, or bytes that differ with the other
//! sign.

use crate::runner;
use crate::support::guarded::Guarded;
use crate::support::raced;
use cachewise_kernels::kernel::CompareFn;
use cachewise_kernels::{Function, Operation};
use std::thread;

/// The end of each branch of the vector kernels: alone, two overlapping, one to eight vectors.
const LENGTHS: [usize; 12] = [3, 7, 15, 31, 33, 63, 65, 127, 129, 256, 512, 1100];

/// Bytes behind the buffers where they are not at the end of their memory: more than the widest
/// mask.
const BEHIND: usize = 128;

/// Changes of the result from call to call: enough that a kernel that looks twice meets the writer
/// between its looks.
const CHANGES: usize = 2000;
/// Calls at most, where the writer hardly runs.
const CALLS: usize = 200_000;
/// The same on one CPU, where the writer only runs while the comparison does not: the two never
/// meet, and only what a comparison returns is looked at.
const CALLS_ALONE: usize = 100;

#[test]
fn a_writer_beside_them_leads_no_comparison_outside() {
    let alone = thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let calls = if alone { CALLS_ALONE } else { CALLS };
    let (left, mut right) = (Guarded::new(4096), Guarded::new(4096));
    right.bytes_mut().fill(0x40);
    // Written by one thread and compared by the other, so through its address alone from here on.
    let changing = left.start();
    let room = left.len();
    let operations = [Operation::Compare, Operation::Equal];
    for kernel in operations.into_iter().flat_map(runner::runnable) {
        let (f, ordered): (CompareFn, bool) = match kernel.function {
            Function::Compare(f) => (f, true),
            Function::Equal(f) => (f, false),
            _ => unreachable!("the other operations were not asked for"),
        };
        for n in LENGTHS {
            for behind in [0, BEHIND] {
                let start = room - behind - n;
                for at in 0..room {
                    // SAFETY: inside the guarded memory.
                    unsafe {
                        changing.wrapping_add(at).write(if at < start + n { 0x40 } else { 0x01 })
                    };
                }
                let (a, b) = (changing.wrapping_add(start), right.start().wrapping_add(start));
                // SAFETY: n bytes are readable at both places.
                let compare = || unsafe { f(a, b, n) };
                let last = a.wrapping_add(n - 1);
                let wrong = raced::wrong(last, ordered, (CHANGES, calls), compare);
                assert_eq!(wrong, None, "{}: {n} bytes, {behind} behind", kernel.name);
            }
        }
    }
}
