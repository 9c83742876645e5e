//! Comparisons while another thread changes a byte: what they return may be of before or after, but they read nothing outside
//! and are led by nothing outside. The library's tests include this for their entries.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;

/// A comparison's result that no state of the buffers allows, if any: another thread changes the byte at `last`, by which the
/// operands differ or do not. Ends after so many changes of the result, or so many calls where the writer hardly runs.
pub fn wrong(
    last: *mut u8,
    ordered: bool,
    (changes, calls): (usize, usize),
    compare: impl Fn() -> i32,
) -> Option<i32> {
    // SAFETY: the callers' memory, which outlives this; it is compared through addresses alone.
    let last = unsafe { AtomicU8::from_ptr(last) };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                last.fetch_xor(0x80, Ordering::Relaxed);
            }
        });
        let (mut before, mut changed, mut wrong) = (0, 0, None);
        for _ in 0..calls {
            let returned = compare();
            changed += usize::from(returned != before);
            before = returned;
            if returned < 0 || !ordered && returned > 1 {
                wrong = Some(returned);
            }
            if wrong.is_some() || changed == changes {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        wrong
    })
}
