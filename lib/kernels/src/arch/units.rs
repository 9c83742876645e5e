//! Parts that the aarch64 and powerpc64 kernels share: heads, tails, the choice of direction,
//! and the order of the first bytes that differ.
//!
//! A technique is a [`Body`] or a [`Comparer`]: loops over whole units, in assembly, so that they
//! stay what their rows say. Everything around them is here, in single words that are assembly too:
//! vector registers are part of both targets' baseline, and the compiler would otherwise join two
//! words to a vector in a kernel that promises integer registers. The macros at the end make a
//! body's functions and rows.

use super::words;
use crate::PAGE_SIZE;

/// Loops of one technique over whole units of [`UNIT`](Body::UNIT) bytes.
pub(super) trait Body {
    /// Bytes of one round; all of a round's loads come before its stores.
    const UNIT: usize;
    /// The destination's alignment in the loops.
    const ALIGN: usize;
    /// Bytes at either end of the buffers that the loops are kept away from, because they load
    /// whole aligned blocks around the bytes they need.
    const MARGIN: usize = 0;

    /// Copies `units` >= 1 units, ascending.
    ///
    /// # Safety
    /// `dst` is aligned and writable, `src` readable for the units, and for
    /// [`MARGIN`](Body::MARGIN) bytes on both sides of them; if they overlap, the destination
    /// starts below the source.
    unsafe fn up(dst: *mut u8, src: *const u8, units: usize);

    /// Copies `units` >= 1 units that end at these places, descending.
    ///
    /// # Safety
    /// As [`up`](Body::up), but the destination starts above an overlapping source.
    unsafe fn down(dst_end: *mut u8, src_end: *const u8, units: usize);

    /// Stores the eight equal bytes of `pattern` over `units` >= 1 units.
    ///
    /// # Safety
    /// `dst` is aligned and writable for the units.
    unsafe fn store(dst: *mut u8, pattern: u64, units: usize);
}

/// A loop that looks for the first unit with a difference.
pub(super) trait Comparer {
    /// Bytes of one round.
    const UNIT: usize;
    /// The left operand's alignment in the loop.
    const ALIGN: usize;
    /// As [`Body::MARGIN`].
    const MARGIN: usize = 0;

    /// The number of equal bytes in front, in whole units.
    ///
    /// # Safety
    /// `a`, aligned, and `b` are readable for `units` units and the margin on both sides.
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize;
}

/// Eight copies of the low byte of `byte`.
#[inline(always)]
pub(super) const fn pattern(byte: i32) -> u64 {
    byte as u8 as u64 * 0x0101_0101_0101_0101
}

/// Bytes from `address` to the next multiple of `align`.
#[inline(always)]
pub(super) const fn to_alignment(address: usize, align: usize) -> usize {
    address.wrapping_neg() & (align - 1)
}

/// One move of a word at the same offset of both buffers.
macro_rules! move_word {
    ($load:ident, $store:ident, $dst:expr, $src:expr, $at:expr) => {{
        // SAFETY: the word lies inside the caller's source by the bound tested before.
        let word = unsafe { words::$load($src.wrapping_add($at)) };
        // SAFETY: and inside the destination.
        unsafe { words::$store($dst.wrapping_add($at), word) };
    }};
}

/// Copies `n` bytes in words, ascending.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes; if they overlap, the destination starts
/// below the source.
#[inline(always)]
unsafe fn edge_up(dst: *mut u8, src: *const u8, n: usize) {
    let mut at = 0;
    while n - at >= 8 {
        move_word!(load8, store8, dst, src, at);
        at += 8;
    }
    if (n - at) & 4 != 0 {
        move_word!(load4, store4, dst, src, at);
        at += 4;
    }
    if (n - at) & 2 != 0 {
        move_word!(load2, store2, dst, src, at);
        at += 2;
    }
    if (n - at) & 1 != 0 {
        move_word!(load1, store1, dst, src, at);
    }
}

/// Copies `n` bytes in words, descending.
///
/// # Safety
/// As [`edge_up`], but the destination starts above an overlapping source.
#[inline(always)]
unsafe fn edge_down(dst: *mut u8, src: *const u8, n: usize) {
    let mut left = n;
    while left >= 8 {
        left -= 8;
        move_word!(load8, store8, dst, src, left);
    }
    if left & 4 != 0 {
        left -= 4;
        move_word!(load4, store4, dst, src, left);
    }
    if left & 2 != 0 {
        left -= 2;
        move_word!(load2, store2, dst, src, left);
    }
    if left & 1 != 0 {
        move_word!(load1, store1, dst, src, 0);
    }
}

/// Stores `n` bytes of `pattern`, whose eight bytes are equal.
///
/// # Safety
/// `dst` is writable for `n` bytes.
#[inline(always)]
unsafe fn edge_fill(dst: *mut u8, pattern: u64, n: usize) {
    let mut at = 0;
    while n - at >= 8 {
        // SAFETY: eight bytes are left.
        unsafe { words::store8(dst.wrapping_add(at), pattern) };
        at += 8;
    }
    if (n - at) & 4 != 0 {
        // SAFETY: four bytes are left.
        unsafe { words::store4(dst.wrapping_add(at), pattern) };
        at += 4;
    }
    if (n - at) & 2 != 0 {
        // SAFETY: two bytes are left.
        unsafe { words::store2(dst.wrapping_add(at), pattern) };
        at += 2;
    }
    if (n - at) & 1 != 0 {
        // SAFETY: a byte is left.
        unsafe { words::store1(dst.wrapping_add(at), pattern) };
    }
}

/// # Safety
/// As [`CopyFn`](crate::kernel::CopyFn), or overlapping with the destination below the source.
#[inline(always)]
pub(super) unsafe fn copy<B: Body>(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let head = B::MARGIN + to_alignment(dst.addr().wrapping_add(B::MARGIN), B::ALIGN);
    if n < head + B::UNIT + B::MARGIN {
        // SAFETY: the caller's promise is the callee's.
        unsafe { edge_up(dst, src, n) };
        return dst;
    }
    // SAFETY: head <= n.
    unsafe { edge_up(dst, src, head) };
    let units = (n - head - B::MARGIN) / B::UNIT;
    // SAFETY: the units and a margin lie inside; the head has aligned the destination.
    unsafe { B::up(dst.wrapping_add(head), src.wrapping_add(head), units) };
    let done = head + units * B::UNIT;
    // SAFETY: n - done bytes are left after it.
    unsafe { edge_up(dst.wrapping_add(done), src.wrapping_add(done), n - done) };
    dst
}

/// # Safety
/// As [`MoveFn`](crate::kernel::MoveFn).
#[inline(always)]
pub(super) unsafe fn r#move<B: Body>(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if dst.addr().wrapping_sub(src.addr()) >= n {
        // SAFETY: the destination does not start inside the source, so ascending is right.
        return unsafe { copy::<B>(dst, src, n) };
    }
    let end = dst.addr().wrapping_add(n).wrapping_sub(B::MARGIN);
    let tail = B::MARGIN + (end & (B::ALIGN - 1));
    if n < tail + B::UNIT + B::MARGIN {
        // SAFETY: the destination starts inside the source, so descending is right.
        unsafe { edge_down(dst, src, n) };
        return dst;
    }
    let above = n - tail;
    // SAFETY: the last `tail` of the n bytes, descending.
    unsafe { edge_down(dst.wrapping_add(above), src.wrapping_add(above), tail) };
    let units = (above - B::MARGIN) / B::UNIT;
    // SAFETY: the units and a margin lie inside; the tail has aligned the destination's end, and a
    // unit is a multiple of the alignment.
    unsafe { B::down(dst.wrapping_add(above), src.wrapping_add(above), units) };
    // SAFETY: what is left in front, descending.
    unsafe { edge_down(dst, src, above - units * B::UNIT) };
    dst
}

/// # Safety
/// `dst` is writable for `n` bytes; the eight bytes of `pattern` are equal.
#[inline(always)]
pub(super) unsafe fn fill<B: Body>(dst: *mut u8, pattern: u64, n: usize) -> *mut u8 {
    let body = |dst: *mut u8, units: usize| {
        // SAFETY: `fill_around` passes whole aligned units of the buffer.
        unsafe { B::store(dst, pattern, units) }
    };
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_around(B::ALIGN, B::UNIT, dst, pattern, n, body) }
}

/// Fills `n` bytes: words up to a multiple of `align`, whole units by `body(dst, units)`, called
/// once or not at all, and words for the rest.
///
/// # Safety
/// `dst` is writable for `n` bytes; `align` is a power of two.
#[inline(always)]
pub(super) unsafe fn fill_around(
    align: usize,
    unit: usize,
    dst: *mut u8,
    pattern: u64,
    n: usize,
    body: impl FnOnce(*mut u8, usize),
) -> *mut u8 {
    let head = to_alignment(dst.addr(), align);
    if n < head + unit {
        // SAFETY: the caller's promise is the callee's.
        unsafe { edge_fill(dst, pattern, n) };
        return dst;
    }
    // SAFETY: head <= n.
    unsafe { edge_fill(dst, pattern, head) };
    let units = (n - head) / unit;
    body(dst.wrapping_add(head), units);
    let done = head + units * unit;
    // SAFETY: n - done bytes are left after it.
    unsafe { edge_fill(dst.wrapping_add(done), pattern, n - done) };
    dst
}

/// -1, 0 or 1 by the order of two words whose first byte is the most significant.
#[inline(always)]
fn order((a, b): (u64, u64)) -> i32 {
    i32::from(a > b) - i32::from(a < b)
}

/// Up to seven bytes as a number; for two buffers of the same `n`, order is theirs.
///
/// # Safety
/// `p` is readable for `n` < 8 bytes.
#[inline(always)]
unsafe fn short_window(p: *const u8, n: usize) -> u64 {
    if n >= 4 {
        // SAFETY: n >= 4.
        let first = unsafe { words::load4(p) } as u32;
        // SAFETY: the last four of n >= 4 bytes.
        let last = unsafe { words::load4(p.wrapping_add(n - 4)) } as u32;
        u64::from(u32::from_be(first)) << 32 | u64::from(u32::from_be(last))
    } else if n >= 2 {
        // SAFETY: n >= 2.
        let first = unsafe { words::load2(p) } as u16;
        // SAFETY: the last two of n >= 2 bytes.
        let last = unsafe { words::load2(p.wrapping_add(n - 2)) } as u16;
        u64::from(u16::from_be(first)) << 16 | u64::from(u16::from_be(last))
    } else if n == 1 {
        // SAFETY: n == 1.
        unsafe { words::load1(p) }
    } else {
        0
    }
}

/// The order of the first bytes that differ among `n`, in integer registers.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes.
#[inline(always)]
pub(super) unsafe fn difference(a: *const u8, b: *const u8, n: usize) -> i32 {
    if n < 8 {
        // SAFETY: the caller vouches for n bytes at a.
        let left = unsafe { short_window(a, n) };
        // SAFETY: the caller vouches for n bytes at b.
        let right = unsafe { short_window(b, n) };
        return order((left, right));
    }
    // SAFETY: n / 8 >= 1 whole words.
    let found = order(unsafe { words::first_pair(a, b, n / 8) });
    if found != 0 || n.is_multiple_of(8) {
        return found;
    }
    let last = n - 8;
    // SAFETY: the last eight bytes; those that were compared before are equal.
    order(unsafe { words::first_pair(a.wrapping_add(last), b.wrapping_add(last), 1) })
}

/// Compares `n` bytes: up to `PRE` of them in integer registers first (seed 004.5), and the rest
/// by the comparer's loop if `n` is `FROM` or more.
///
/// # Safety
/// As [`CompareFn`](crate::kernel::CompareFn).
#[inline(always)]
pub(super) unsafe fn compare<C: Comparer, const PRE: usize, const FROM: usize>(
    a: *const u8,
    b: *const u8,
    n: usize,
) -> i32 {
    let mut at = 0;
    if PRE > 0 && n >= 8 {
        let checked = if n < PRE { n / 8 } else { PRE / 8 };
        // SAFETY: at least one whole word, and no more than n bytes.
        let found = order(unsafe { words::first_pair(a, b, checked) });
        if found != 0 {
            return found;
        }
        at = checked * 8;
    }
    let near = at + C::MARGIN;
    let head = C::MARGIN + to_alignment(a.addr().wrapping_add(near), C::ALIGN);
    if n >= FROM && n - at >= head + C::UNIT + C::MARGIN {
        if head > 0 {
            // SAFETY: head bytes are left at `at`.
            let found = unsafe { difference(a.wrapping_add(at), b.wrapping_add(at), head) };
            if found != 0 {
                return found;
            }
            at += head;
        }
        let units = (n - at - C::MARGIN) / C::UNIT;
        // SAFETY: the units and a margin lie inside; the head has aligned the left operand.
        at += unsafe { C::equal_bytes(a.wrapping_add(at), b.wrapping_add(at), units) };
    }
    // SAFETY: n - at bytes are left; a unit that differs somewhere starts at `at`.
    unsafe { difference(a.wrapping_add(at), b.wrapping_add(at), n - at) }
}

/// Units of a block of pages.
pub(super) const fn page_units(unit: usize, order: u32) -> usize {
    (PAGE_SIZE << order) / unit
}

/// `copy`, `move` and `copy-pages` of a body.
macro_rules! movers {
    ($($(#[$attribute:meta])* $id:ident $suffix:literal $body:ty, $row:expr, $about:literal;)*) => {$(
        $(#[$attribute])*
        mod $id {
            use super::*;
            use crate::arch::units::{self, Body};
            use crate::kernel::{Function, Kernel};

            unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`CopyFn`).
                unsafe { units::copy::<$body>(dst, src, n) }
            }

            unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`MoveFn`).
                unsafe { units::r#move::<$body>(dst, src, n) }
            }

            unsafe extern "C" fn copy_pages(dst: *mut u8, src: *const u8, order: u32) {
                let units = units::page_units(<$body>::UNIT, order);
                // SAFETY: the caller's promise (`CopyPagesFn`): page-aligned, whole units.
                unsafe { units::copy_whole::<$body>(dst, src, units) };
            }

            pub(super) const ROWS: [Kernel; 3] = [
                Kernel {
                    name: concat!("copy.", $suffix),
                    about: $about,
                    function: Function::Copy(copy),
                    ..$row
                },
                Kernel {
                    name: concat!("move.", $suffix),
                    about: concat!("overlap-safe: ", $about),
                    function: Function::Move(r#move),
                    ..$row
                },
                Kernel {
                    name: concat!("copy-pages.", $suffix),
                    about: $about,
                    function: Function::CopyPages(copy_pages),
                    ..$row
                },
            ];
        }
    )*};
}
pub(super) use movers;

/// A block of pages: aligned for every body, but without bytes around it for a margin, so that a
/// body that wants one copies its first and last unit in words.
///
/// # Safety
/// As [`CopyPagesFn`](crate::kernel::CopyPagesFn), for `units` units.
#[inline(always)]
pub(super) unsafe fn copy_whole<B: Body>(dst: *mut u8, src: *const u8, units: usize) {
    if B::MARGIN == 0 {
        // SAFETY: the caller's promise; pages are aligned.
        unsafe { B::up(dst, src, units) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy::<B>(dst, src, units * B::UNIT) };
    }
}

/// `fill`, `zero` and `zero-pages` of a body.
macro_rules! setters {
    ($($(#[$attribute:meta])* $id:ident $suffix:literal $body:ty, $row:expr, $about:literal;)*) => {$(
        $(#[$attribute])*
        mod $id {
            use super::*;
            use crate::arch::units::{self, Body};
            use crate::kernel::{Function, Kernel};

            unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`FillFn`).
                unsafe { units::fill::<$body>(dst, units::pattern(byte), n) }
            }

            unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`ZeroFn`).
                unsafe { units::fill::<$body>(dst, 0, n) }
            }

            unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
                // SAFETY: the caller's promise (`ZeroPagesFn`): page-aligned, whole units.
                unsafe { <$body>::store(dst, 0, units::page_units(<$body>::UNIT, order)) };
            }

            const SHARED: Kernel = Kernel { grouping: 0, about: $about, ..$row };
            pub(super) const ROWS: [Kernel; 3] = [
                Kernel { name: concat!("fill.", $suffix), function: Function::Fill(fill), ..SHARED },
                Kernel { name: concat!("zero.", $suffix), function: Function::Zero(zero), ..SHARED },
                Kernel {
                    name: concat!("zero-pages.", $suffix),
                    function: Function::ZeroPages(zero_pages),
                    ..SHARED
                },
            ];
        }
    )*};
}
pub(super) use setters;

/// `compare` and `equal` of a comparer, with so many bytes pre-checked and from so many bytes on.
macro_rules! comparers {
    ($($(#[$attribute:meta])* $id:ident $suffix:literal $comparer:ty, $pre:literal, $from:literal,
       $row:expr, $about:literal;)*) => {$(
        $(#[$attribute])*
        mod $id {
            use super::*;
            use crate::arch::units;
            use crate::kernel::{Function, Kernel, StoreKind};

            unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
                // SAFETY: the caller's promise (`CompareFn`).
                unsafe { units::compare::<$comparer, $pre, $from>(a, b, n) }
            }

            unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
                // SAFETY: the caller's promise (`EqualFn`).
                let order = unsafe { units::compare::<$comparer, $pre, $from>(a, b, n) };
                i32::from(order == 0)
            }

            const SHARED: Kernel =
                Kernel { store: StoreKind::None, grouping: 0, about: $about, ..$row };
            pub(super) const ROWS: [Kernel; 2] = [
                Kernel {
                    name: concat!("compare.", $suffix),
                    function: Function::Compare(compare),
                    ..SHARED
                },
                Kernel { name: concat!("equal.", $suffix), function: Function::Equal(equal), ..SHARED },
            ];
        }
    )*};
}
pub(super) use comparers;

/// The rows of several arrays as one slice.
macro_rules! rows {
    ($($part:expr),* $(,)?) => {{
        const PARTS: &[&[crate::kernel::Kernel]] = &[$(&$part),*];
        const JOINED: [crate::kernel::Kernel; crate::arch::rows::count(PARTS)] =
            crate::arch::rows::join(PARTS);
        &JOINED
    }};
}
pub(super) use rows;

/// `zero` and `zero_pages` by the file's `clear`, where there are blocks of a size for it, else by a body.
macro_rules! zero_by_blocks {
    ($block:expr, $body:ty) => {
        unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
            let Some(block) = $block else {
                // SAFETY: the caller's promise is the callee's.
                return unsafe { fill::<$body>(dst, 0, n) };
            };
            let body = |dst: *mut u8, blocks: usize| {
                // SAFETY: `fill_around` passes whole aligned blocks of the buffer.
                unsafe { clear(dst, block, blocks) }
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { fill_around(block, block, dst, 0, n, body) }
        }

        unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
            let n = PAGE_SIZE << order;
            match $block {
                // SAFETY: pages are aligned to every block (2048 bytes at most), and whole blocks.
                Some(block) => unsafe { clear(dst, block, n / block) },
                // SAFETY: the caller's promise: page-aligned, whole units.
                None => unsafe { <$body>::store(dst, 0, n / <$body>::UNIT) },
            }
        }
    };
}
pub(super) use zero_by_blocks;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::cell::Cell;

    std::thread_local! {
        /// Units that the comparer was asked for, and where.
        static ASKED: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }

    /// Finds every unit equal, and remembers.
    struct Asked;

    impl Comparer for Asked {
        const UNIT: usize = 64;
        const ALIGN: usize = 16;
        const MARGIN: usize = 16;

        unsafe fn equal_bytes(a: *const u8, _: *const u8, units: usize) -> usize {
            ASKED.set(Some((a.addr(), units)));
            units * Self::UNIT
        }
    }

    #[repr(align(64))]
    struct Buffer([u8; 8192]);

    fn asked<const PRE: usize, const FROM: usize>(at: usize, n: usize) -> Option<(usize, usize)> {
        let buffer = Buffer([7; 8192]);
        let start = buffer.0.as_ptr().wrapping_add(at);
        ASKED.set(None);
        // SAFETY: the buffer holds at + n bytes.
        let order = unsafe { compare::<Asked, PRE, FROM>(start, start, n) };
        assert_eq!(order, 0);
        ASKED.get().map(|(address, units)| (address - start.addr(), units))
    }

    #[test]
    fn vectors_begin_at_the_threshold_and_behind_the_precheck() {
        // Seed 004.5: the length that the caller gave decides, not what the pre-check leaves of it.
        assert_eq!(asked::<32, 4096>(0, 4095), None);
        assert_eq!(asked::<32, 4096>(0, 4096), Some((48, 63)));
        assert_eq!(asked::<64, 0>(0, 159), None);
        assert_eq!(asked::<64, 0>(0, 160), Some((80, 1)));
        // A margin in front, then up to the alignment: the loop never loads a block from outside.
        assert_eq!(asked::<0, 0>(1, 200), Some((31, 2)));
        assert_eq!(asked::<64, 0>(15, 8000), Some((81, 123)));
    }
}
