//! The operations on slices: `raw.rs` with the lengths checked.

use crate::raw;
use crate::reuse::Reuse;
use core::cmp::Ordering;
use core::ops::{Bound, RangeBounds};

/// Copies `src` to `dst`.
///
/// # Panics
/// If the lengths differ, as [`slice::copy_from_slice`] does.
///
/// ```
/// let source = vec![7u8; 100_000];
/// let mut destination = vec![0u8; 100_000];
/// cachewise::copy(&mut destination, &source);
/// assert_eq!(destination, source);
/// ```
#[inline]
#[track_caller]
pub fn copy(dst: &mut [u8], src: &[u8]) {
    assert_same_length(dst.len(), src.len());
    // SAFETY: both slices have that many bytes, and a mutable one overlaps no other.
    unsafe { raw::copy_nonoverlapping(dst.as_mut_ptr(), src.as_ptr(), src.len()) };
}

/// [`copy`] with a hint about what happens to `dst` next.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// use cachewise::Reuse;
///
/// let page = vec![7u8; 1 << 20];
/// let mut written_to_disk = vec![0u8; 1 << 20];
/// cachewise::copy_with(Reuse::Never, &mut written_to_disk, &page);
/// assert_eq!(written_to_disk, page);
/// ```
#[inline]
#[track_caller]
pub fn copy_with(reuse: Reuse, dst: &mut [u8], src: &[u8]) {
    assert_same_length(dst.len(), src.len());
    // SAFETY: both slices have that many bytes, and a mutable one overlaps no other.
    unsafe { raw::copy_nonoverlapping_with(reuse, dst.as_mut_ptr(), src.as_ptr(), src.len()) };
}

/// Copies a part of a buffer to another place in it, which may overlap.
///
/// # Panics
/// If the range or the place for it is not inside the buffer, as [`slice::copy_within`] does.
///
/// ```
/// let mut buffer = *b"Hello, World!";
/// cachewise::copy_within(&mut buffer, 1..5, 8);
/// assert_eq!(&buffer, b"Hello, Wello!");
/// ```
#[inline]
#[track_caller]
pub fn copy_within(buffer: &mut [u8], range: impl RangeBounds<usize>, dest: usize) {
    copy_within_with(Reuse::Unknown, buffer, range, dest);
}

/// [`copy_within`] with a hint.
///
/// # Panics
/// As [`copy_within`].
#[inline]
#[track_caller]
pub fn copy_within_with(
    reuse: Reuse,
    buffer: &mut [u8],
    range: impl RangeBounds<usize>,
    dest: usize,
) {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(buffer.len()),
    };
    move_within(reuse, buffer, start, end, dest);
}

#[inline]
#[track_caller]
fn move_within(
    reuse: Reuse,
    buffer: &mut [u8],
    start: Option<usize>,
    end: Option<usize>,
    dest: usize,
) {
    let (Some(start), Some(end)) = (start, end) else { panic!("range bound overflows usize") };
    assert!(start <= end && end <= buffer.len(), "range {start}..{end} not inside the buffer");
    let n = end - start;
    assert!(dest <= buffer.len() - n, "{n} bytes do not fit from place {dest} on");
    let base = buffer.as_mut_ptr();
    // SAFETY: start <= len.
    let src = unsafe { base.add(start) };
    // SAFETY: dest <= len.
    let dst = unsafe { base.add(dest) };
    // SAFETY: start + n and dest + n are at most len, and the borrow is exclusive.
    unsafe { raw::copy_with(reuse, dst, src, n) };
}

/// Stores `byte` everywhere.
///
/// ```
/// let mut buffer = vec![0u8; 5000];
/// cachewise::fill(&mut buffer, 0xA5);
/// assert!(buffer.iter().all(|byte| *byte == 0xA5));
/// ```
#[inline]
pub fn fill(buffer: &mut [u8], byte: u8) {
    // SAFETY: the slice has that many bytes.
    unsafe { raw::fill(buffer.as_mut_ptr(), i32::from(byte), buffer.len()) };
}

/// [`fill`] with a hint.
#[inline]
pub fn fill_with(reuse: Reuse, buffer: &mut [u8], byte: u8) {
    // SAFETY: the slice has that many bytes.
    unsafe { raw::fill_with(reuse, buffer.as_mut_ptr(), i32::from(byte), buffer.len()) };
}

/// Stores zero everywhere.
///
/// ```
/// let mut buffer = vec![1u8; 5000];
/// cachewise::zero(&mut buffer);
/// assert!(buffer.iter().all(|byte| *byte == 0));
/// ```
#[inline]
pub fn zero(buffer: &mut [u8]) {
    // SAFETY: the slice has that many bytes.
    unsafe { raw::zero(buffer.as_mut_ptr(), buffer.len()) };
}

/// [`zero`] with a hint.
#[inline]
pub fn zero_with(reuse: Reuse, buffer: &mut [u8]) {
    // SAFETY: the slice has that many bytes.
    unsafe { raw::zero_with(reuse, buffer.as_mut_ptr(), buffer.len()) };
}

/// Lexicographic order of unsigned bytes, as `a.cmp(b)`: a prefix is less.
///
/// ```
/// use std::cmp::Ordering;
/// assert_eq!(cachewise::compare(b"abc", b"abd"), Ordering::Less);
/// assert_eq!(cachewise::compare(b"abc", b"ab"), Ordering::Greater);
/// ```
#[inline]
#[must_use]
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let shared = a.len().min(b.len());
    // SAFETY: both slices have at least that many bytes.
    let order = unsafe { raw::compare(a.as_ptr(), b.as_ptr(), shared) };
    order.cmp(&0).then(a.len().cmp(&b.len()))
}

/// Returns whether both have the same length and the same bytes.
///
/// ```
/// assert!(cachewise::equal(b"abc", b"abc"));
/// assert!(!cachewise::equal(b"abc", b"ab"));
/// ```
#[inline]
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    // SAFETY: both slices have that many bytes, since the lengths are found equal first.
    a.len() == b.len() && unsafe { raw::equal(a.as_ptr(), b.as_ptr(), a.len()) }
}

#[inline]
#[track_caller]
fn assert_same_length(dst: usize, src: usize) {
    if dst != src {
        lengths_differ(dst, src);
    }
}

#[cold]
#[track_caller]
fn lengths_differ(dst: usize, src: usize) -> ! {
    panic!("source has {src} bytes, destination {dst}");
}
