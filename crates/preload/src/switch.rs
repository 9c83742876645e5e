//! Changes the exported functions for those that count, once, before `main`.
//!
//! The first instruction of each entry is overwritten by a jump. So a program that is not watched
//! executes nothing for the possibility: no flag is tested, in no call. Each entry's first eight
//! bytes are one aligned word and are stored at once, and no instruction begins inside those that
//! change: a thread that is there already sees the old code or the new. A test reads the library
//! for that.
//!
//! A system that forbids a program to change its own code (SELinux's `execmod`) answers with an
//! error, and there are no statistics.

use crate::observed::replacements;
use crate::os;
use core::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// Lets the exported functions be what they are where somebody watches.
pub(crate) fn to_observed() -> Result<(), os::Failed> {
    let entries = replacements();
    let first = entries.iter().map(|(entry, _)| *entry).min().unwrap_or(0) & !(PAGE - 1);
    let last = entries.iter().map(|(entry, _)| *entry).max().unwrap_or(0) + size_of::<u64>();
    let length = last.next_multiple_of(PAGE) - first;
    let words = entries.map(|(entry, target)| (entry, jump(entry, target)));
    if words.iter().any(|(_, word)| word.is_none()) {
        return Err(os::Failed::UNSUITABLE);
    }
    // Executable all the while: other threads may have been started by another constructor.
    os::protect(first, length, os::Protection::Everything)?;
    for (entry, word) in words {
        let Some(word) = word else { continue };
        // SAFETY: an aligned word (`jump` saw to that) in pages just made writable, which all
        // other threads only execute.
        let place = unsafe { AtomicU64::from_ptr(entry as *mut u64) };
        place.store(word, Ordering::Release);
    }
    os::protect(first, length, os::Protection::Code)
}

/// The entry's first word with `jmp target` (E9 and the distance) in front; `None` where the entry
/// is not aligned or the target too far.
fn jump(entry: usize, target: usize) -> Option<u64> {
    const LENGTH: usize = 5;
    if !entry.is_multiple_of(size_of::<u64>()) {
        return None;
    }
    let distance = i32::try_from(target.wrapping_sub(entry + LENGTH) as isize).ok()?;
    // SAFETY: an entry is readable, as all code of this library is, and longer than eight bytes
    // or followed by another.
    let mut bytes = unsafe { (entry as *const [u8; 8]).read() };
    bytes[0] = 0xE9;
    bytes[1..LENGTH].copy_from_slice(&distance.to_le_bytes());
    Some(u64::from_le_bytes(bytes))
}
