//! Guarded buffers with known contents, and one checked call upon them: the oracle of sweeps, random cases and fuzzers.
//!
//! The contents are pseudo-random and do not repeat, so that a copy from or to a wrong place
//! cannot pass. What a kernel has to leave behind follows from the contents before the call; after
//! a check the arena is put back, so that a million cases cost no more than the bytes they touch.

use super::guarded::Guarded;
use super::watch;
use super::{Checked, machine_state};
use cachewise_kernels::{Function, Kernel, PAGE_SIZE};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes on either side of the destination that are checked for stray writes where no guard page
/// is nearer. Two cache lines: what one unrolled step too many would reach.
pub const MARGIN: usize = 128;

/// Two buffers, each between guard pages, and what they held before.
pub struct Arena {
    dst: Guarded,
    src: Guarded,
    dst_before: Vec<u8>,
    src_before: Vec<u8>,
    expected: Vec<u8>,
    /// Calls checked so far.
    pub calls: u64,
}

/// What a kernel is called with. Offsets are those of the two rooms; a comparison's left side is the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    pub n: usize,
    pub dst: usize,
    pub src: usize,
    /// True if the source is in the destination's room, at `src` there.
    pub within: bool,
    pub byte: i32,
    /// Bytes of the left and the right side of a comparison that differ: place, left, right.
    pub edits: &'a [(usize, u8, u8)],
}

impl Arena {
    /// Two buffers of at least `room` bytes with contents drawn from `seed`.
    pub fn new(room: usize, seed: u64) -> Arena {
        let (mut dst, mut src) = (Guarded::new(room), Guarded::new(room));
        let mut random = fastrand::Rng::with_seed(seed);
        random.fill(dst.bytes_mut());
        random.fill(src.bytes_mut());
        watch::buffers(&dst, &src);
        let (dst_before, src_before) = (dst.bytes().to_vec(), src.bytes().to_vec());
        Arena { dst, src, dst_before, src_before, expected: Vec::new(), calls: 0 }
    }

    /// Bytes in each buffer.
    pub fn room(&self) -> usize {
        self.dst.len()
    }

    /// A byte of the source's room.
    pub fn source(&self, at: usize) -> u8 {
        self.src_before[at]
    }

    /// Calls a kernel, checks every byte that it may have written and what it returned, and puts the arena back.
    pub fn check(&mut self, kernel: &'static Kernel, call: &Call<'_>) -> Checked {
        let Call { n, dst: d, src: s, within, byte, edits } = *call;
        let compares = matches!(kernel.function, Function::Compare(_) | Function::Equal(_));
        let from = if within { &self.dst_before } else { &self.src_before };
        self.expected.clear();
        match kernel.function {
            Function::Fill(_) => self.expected.resize(n, byte as u8),
            Function::Zero(_) | Function::ZeroPages(_) => self.expected.resize(n, 0),
            _ => self.expected.extend_from_slice(&from[s..s + n]),
        }
        if compares {
            for &(at, left, right) in edits {
                self.src.bytes_mut()[s + at] = left;
                self.expected[at] = right;
            }
            self.dst.bytes_mut()[d..d + n].copy_from_slice(&self.expected);
        }
        let order = match compares {
            true => self.src.bytes()[s..s + n].cmp(&self.expected),
            false => Ordering::Equal,
        };
        let room = if within { self.dst.start() } else { self.src.start() };
        let (dst, src) = (self.dst.start().wrapping_add(d), room.wrapping_add(s));
        self.calls += 1;
        let detail = edits.first().map_or(i64::from(byte), |edit| edit.0 as i64);
        let noted =
            watch::Call { kernel: kernel.name, dst: dst.addr(), src: src.addr(), n, detail };
        watch::calling(noted);
        let order_of_pages = (n / PAGE_SIZE).checked_ilog2().unwrap_or(0);
        // Both ranges were chosen inside their rooms, blocks of pages at multiples of the page size, and the caller runs no
        // kernel that this CPU lacks features for: what every call below asks.
        let (returned, result) = match kernel.function {
            // SAFETY: as above.
            Function::Copy(f) | Function::Move(f) => (unsafe { f(dst, src, n) }, 0),
            // SAFETY: as above.
            Function::Fill(f) => (unsafe { f(dst, byte, n) }, 0),
            // SAFETY: as above.
            Function::Zero(f) => (unsafe { f(dst, n) }, 0),
            // SAFETY: as above.
            Function::Compare(f) | Function::Equal(f) => (dst, unsafe { f(src, dst, n) }),
            Function::CopyPages(f) => {
                // SAFETY: as above.
                unsafe { f(dst, src, order_of_pages) };
                (dst, 0)
            }
            Function::ZeroPages(f) => {
                // SAFETY: as above.
                unsafe { f(dst, order_of_pages) };
                (dst, 0)
            }
        };
        if let Some(complaint) = machine_state::disturbed() {
            return fail(complaint);
        }
        let is_right = match kernel.function {
            Function::Compare(_) => result.cmp(&0) == order,
            Function::Equal(_) => result == i32::from(order == Ordering::Equal),
            _ => true,
        };
        if !is_right {
            return fail(&format!("it returned {result} where left is {order:?} to right"));
        }
        if returned != dst {
            return fail("it did not return its destination");
        }
        self.wrote(d)?;
        if within && s < d {
            self.untouched(s..d.min(s + n))?;
        } else if within {
            self.untouched((d + n).max(s)..(s + n).max(d + n))?;
        }
        self.dst.bytes_mut()[d..d + n].copy_from_slice(&self.dst_before[d..d + n]);
        if compares {
            for &(at, ..) in edits {
                self.src.bytes_mut()[s + at] = self.src_before[s + at];
            }
        }
        if within { Ok(()) } else { self.source_intact(s..s + n) }
    }

    /// Checks that the source still holds what it did, here and [`MARGIN`] around.
    fn source_intact(&self, touched: Range<usize>) -> Checked {
        let range = touched.start.saturating_sub(MARGIN)..(touched.end + MARGIN).min(self.room());
        match first_difference(&self.src.bytes()[range.clone()], &self.src_before[range.clone()]) {
            None => Ok(()),
            Some(at) => fail(&format!("it changed its source at offset {}", range.start + at)),
        }
    }

    /// Checks that the destination at `d` is as expected and its surroundings are as before.
    fn wrote(&self, d: usize) -> Checked {
        let end = d + self.expected.len();
        let written = &self.dst.bytes()[d..end];
        if written != self.expected {
            return wrong_bytes(written, &self.expected);
        }
        self.untouched(d.saturating_sub(MARGIN)..d)?;
        self.untouched(end..(end + MARGIN).min(self.room()))
    }

    #[inline]
    fn untouched(&self, range: Range<usize>) -> Checked {
        if self.dst.bytes()[range.clone()] == self.dst_before[range.clone()] {
            Ok(())
        } else {
            self.stray_write(range)
        }
    }

    #[cold]
    fn stray_write(&self, range: Range<usize>) -> Checked {
        let (now, before) = (&self.dst.bytes()[range.clone()], &self.dst_before[range.clone()]);
        let at = range.start + first_difference(now, before).unwrap_or(0);
        let address = self.dst.addresses().start + at;
        fail(&format!("it wrote outside its buffer, at {address:#x} (offset {at} of the room)"))
    }
}

#[cold]
fn wrong_bytes(found: &[u8], expected: &[u8]) -> Checked {
    let at = first_difference(found, expected).unwrap_or(0);
    let wrong = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    let (found, expected) = (found[at], expected[at]);
    fail(&format!("byte {at} is {found:#04x} instead of {expected:#04x} ({wrong} bytes are wrong)"))
}

/// The first place where two runs of bytes differ.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// A failure of the last call noted.
#[cold]
fn fail(what: &str) -> Checked {
    Err(format!("{}: {what}", watch::last_call()).into())
}
