//! The decision table: the bytes, and the numbers made from them, that every call reads. They are all
//! that ever changes; who writes them is above (`follow.rs`, `defaults.rs` and `ranges.rs`).
//!
//! ```text
//! size -> class -> ROWS[operation and hint][class] -> slot
//!                  one byte, 0 at first
//! ```
//!
//! Zero, their first value, stands for a function that fills the table and then does the call's work.
//! Every other value is the [slot](Slot) of what this CPU can run, and is stored in one piece: whoever
//! reads the table while another writes it gets the old slot or the new one, both right.

use crate::class::{CLASSES, class, class_sizes};
use crate::operands;
use crate::reuse::Reuse;
use crate::rows::{FIRST_SIZE, OWN, ROWS as ROW_COUNT, row};
use crate::slots::{self, Slot, libc_slot};
use cachewise_kernels::{Kernel, Operation};
use core::ffi::CStr;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use core::ptr::null_mut;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use core::sync::atomic::{AtomicI32, AtomicPtr};
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// One operation's decisions with one hint: a slot for each class of sizes.
pub struct Row([AtomicU8; CLASSES]);

/// Bytes of a row.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub const ROW_BYTES: usize = size_of::<Row>();

impl Row {
    /// All classes initialise.
    pub(crate) const fn new() -> Row {
        Row([const { AtomicU8::new(0) }; CLASSES])
    }

    /// The slot of a class.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    pub(crate) fn at(&self, class: usize) -> usize {
        self.0.get(class).map_or(0, |entry| usize::from(entry.load(Ordering::Relaxed)))
    }

    /// Sets the slot of a class.
    #[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
    pub(crate) fn put(&self, class: usize, slot: usize) {
        if let (Some(entry), Ok(slot)) = (self.0.get(class), u8::try_from(slot)) {
            entry.store(slot, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, n: usize) -> usize {
        // SAFETY: `class` is below CLASSES, by its last octave (63) and eighth (15); tested.
        let entry = unsafe { self.0.get_unchecked(class(n as u64)) };
        // A slot is complete in itself, so nothing has to be ordered before it.
        usize::from(entry.load(Ordering::Relaxed))
    }
}

/// The decisions: a row for each operation and hint.
pub static ROWS: [Row; ROW_COUNT] = [const { Row::new() }; ROW_COUNT];

/// [`ROWS`] by their distance from here. On Arm a compiler takes their address from memory, which is not relocated yet where a
/// resolver of another library calls.
#[inline(always)]
pub(crate) fn rows() -> &'static [Row; ROW_COUNT] {
    #[cfg(target_arch = "aarch64")]
    {
        let rows: *const [Row; ROW_COUNT];
        // SAFETY: an address.
        unsafe {
            core::arch::asm!(
                ".hidden {table}",
                "adrp {rows}, {table}",
                "add {rows}, {rows}, :lo12:{table}",
                table = sym ROWS,
                rows = out(reg) rows,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        // SAFETY: the address of a static.
        unsafe { &*rows }
    }
    #[cfg(not(target_arch = "aarch64"))]
    &ROWS
}

/// Returns whether somebody has filled the table.
#[cfg(all(feature = "os", target_os = "linux"))]
pub(crate) fn is_filled() -> bool {
    ROWS[0].slot(0) != 0
}

/// Largest size of each row that is done without the table; 0 until the table is filled.
pub static DIRECT: [AtomicUsize; ROW_COUNT] = [const { AtomicUsize::new(0) }; ROW_COUNT];

/// Up to which place in its page a comparison may read 16 bytes, of whose place in a page nothing smaller than a page is
/// known: no page is smaller than 4096. -1 where none may read beyond its buffers: until the table is filled, and -2
/// under a checker of memory.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub static PAGE: AtomicI32 = AtomicI32::new(-1);

/// Width of comparisons above 256 bytes: 1 where the CPU
/// halves those.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub static NARROW: AtomicU8 = AtomicU8::new(0);

/// Returns whether `n` bytes, more than [`OWN`], are done without the table.
#[inline(always)]
pub(crate) fn is_direct(operation: Operation, reuse: Reuse, n: usize) -> bool {
    // SAFETY: `rows::row` is below ROW_COUNT.
    let limit = unsafe { DIRECT.get_unchecked(row(operation, reuse)) };
    // A limit is complete in itself, so nothing has to be ordered before it.
    n <= limit.load(Ordering::Relaxed)
}

/// By row, the classes below [`libc_from`](crate::profile::libc_from) that a profile leaves to the C library:
/// a bit for each, from that of [`FIRST_SIZE`] on. There the table has the library's own loop.
static LEFT: [AtomicU64; ROW_COUNT] = [const { AtomicU64::new(0) }; ROW_COUNT];

/// The bit of a class in [`LEFT`]; none beyond.
const fn left_bit(of: usize) -> u64 {
    match of.checked_sub(class(FIRST_SIZE)) {
        Some(at @ 0..64) => 1 << at,
        _ => 0,
    }
}

/// Notes whether a profile leaves these sizes of a row to the C library.
pub(crate) fn leave(row: usize, from: u64, to: u64, is_left: bool) {
    let Some(left) = LEFT.get(row) else { return };
    let bits = (class(from)..=class(to)).fold(0, |bits, class| bits | left_bit(class));
    if is_left {
        left.fetch_or(bits, Ordering::Relaxed);
    } else {
        left.fetch_and(!bits, Ordering::Relaxed);
    }
}

/// Returns whether a profile leaves that size of a row to the C library though the table has the library's own loop.
fn is_left(row: usize, class: usize) -> bool {
    LEFT.get(row).is_some_and(|left| left.load(Ordering::Relaxed) & left_bit(class) != 0)
}

/// By row, the two ranges behind its limit in [`DIRECT`].
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub static NEXT: [[Range; 2]; ROW_COUNT] = [const { [const { Range::none() }; 2] }; ROW_COUNT];

/// Bytes of a row's ranges.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub const NEXT_BYTES: usize = size_of::<[Range; 2]>();

/// Sizes up to `last`, from the end of what is before on; 0 for none. The two are read one after the other: a
/// call that comes while they change may take the function of another range, which is as right.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[repr(C, align(16))]
pub struct Range {
    pub(crate) last: AtomicUsize,
    pub(crate) function: AtomicPtr<()>,
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl Range {
    pub(crate) const fn none() -> Range {
        Range { last: AtomicUsize::new(0), function: AtomicPtr::new(null_mut()) }
    }
}

/// Lets a row use a kernel of its operation for the classes whose middle is in `from..=to`.
pub(crate) fn set(row: usize, from: u64, to: u64, slot: Slot) {
    let Some(Row(entries)) = ROWS.get(row) else { return };
    for entry in entries.get(classes(from, to)).unwrap_or(&[]) {
        entry.store(slot.0, Ordering::Relaxed);
    }
}

/// The classes whose middle is in `from..=to`.
fn classes(from: u64, to: u64) -> core::ops::Range<usize> {
    let middle = |class: usize| {
        let (start, end) = class_sizes(class).into_inner();
        start + (end - start) / 2
    };
    let (first, last) = (class(from), class(to));
    let first = if middle(first) < from { first + 1 } else { first };
    let end = if middle(last) > to { last } else { last + 1 };
    first..end
}

/// The kernel that is decided for a size, and the sizes around it for which it is the same.
pub(crate) fn look_up(operation: Operation, reuse: Reuse, n: u64) -> Option<DecidedRange> {
    let Row(entries) = ROWS.get(row(operation, reuse))?;
    // Below the first size that a profile decides, somebody else decides.
    let (least, most) =
        if n < FIRST_SIZE { (OWN as u64 + 1, FIRST_SIZE - 1) } else { (FIRST_SIZE, u64::MAX) };
    let at = |class: usize| entries.get(class).map(|entry| entry.load(Ordering::Relaxed));
    let row = row(operation, reuse);
    let theirs = libc_slot(operation).0;
    // Sizes that a profile leaves to the C library are one range with those that the C library does.
    let at = |class: usize| if is_left(row, class) { Some(theirs) } else { at(class) };
    let here = class(n);
    let slot = at(here)?;
    let low = (class(least)..here).rev().take_while(|class| at(*class) == Some(slot)).last();
    let high = (here..=class(most)).take_while(|class| at(*class) == Some(slot)).last();
    let (kernel, or_libc) = match slot {
        _ if slot == theirs => (None, None),
        _ if slot > theirs => {
            let (kernel, name) = operands::of_slot(operation, Slot(slot))?;
            (Some(kernel), Some(name))
        }
        _ => (Some(slots::kernel(operation, Slot(slot))?), None),
    };
    Some(DecidedRange {
        kernel,
        or_libc,
        from: least.max(*class_sizes(low.unwrap_or(here)).start()),
        to: *class_sizes(high.unwrap_or(here)).end(),
    })
}

/// Result of [`look_up`].
pub(crate) struct DecidedRange {
    /// `None`: left to the C library.
    pub(crate) kernel: Option<&'static Kernel>,
    /// Name of the decision where the operands decide between the kernel and the C library.
    pub(crate) or_libc: Option<&'static CStr>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}
