//! Guarded buffers with known contents, and one checked call per operation upon them.
//!
//! The contents are pseudo-random and do not repeat, so that a copy from or to a wrong place
//! cannot pass. What a kernel has to leave behind follows from the contents before the call; after
//! a check the arena is put back, so that a million cases cost no more than the bytes they touch.

use super::guarded::Guarded;
use super::watch::{self, Call};
use super::{Checked, machine_state};
use cachewise_kernels::kernel::{CompareFn, CopyFn, CopyPagesFn, FillFn, ZeroFn, ZeroPagesFn};
use cachewise_kernels::{Kernel, PAGE_SIZE};
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
    /// Calls checked so far.
    pub calls: u64,
}

/// The place where the two sides of a comparison differ, and the bytes there.
#[derive(Clone, Copy)]
pub struct Difference {
    pub at: usize,
    /// The left and the right byte.
    pub bytes: (u8, u8),
    /// Places after `at` that differ the other way round; those outside the buffer do not count.
    pub later: [usize; 2],
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
        Arena { dst, src, dst_before, src_before, calls: 0 }
    }

    /// Bytes in each buffer.
    pub fn room(&self) -> usize {
        self.dst.len()
    }

    /// Copies n bytes at offset `s` of the source to offset `d` of the destination.
    #[inline]
    pub fn copy(
        &mut self,
        kernel: &'static Kernel,
        f: CopyFn,
        d: usize,
        s: usize,
        n: usize,
    ) -> Checked {
        let (dst, src) = (self.dst.start().wrapping_add(d), self.src.start().wrapping_add(s));
        self.note(kernel, dst, src, n, -1);
        // SAFETY: both ranges were chosen inside their own buffers, and the caller runs no kernel
        // that this CPU lacks features for.
        let returned = unsafe { f(dst, src, n) };
        self.returned(returned, dst)?;
        self.wrote(d, &self.src_before[s..s + n])?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Moves n bytes within the destination buffer.
    #[inline]
    pub fn r#move(
        &mut self,
        kernel: &'static Kernel,
        f: CopyFn,
        to: usize,
        from: usize,
        n: usize,
    ) -> Checked {
        let (dst, src) = (self.dst.start().wrapping_add(to), self.dst.start().wrapping_add(from));
        self.note(kernel, dst, src, n, -1);
        // SAFETY: both ranges were chosen inside the buffer, and the caller runs no kernel that
        // this CPU lacks features for.
        let returned = unsafe { f(dst, src, n) };
        self.returned(returned, dst)?;
        self.wrote(to, &self.dst_before[from..from + n])?;
        if from < to {
            self.untouched(from..to)?;
        } else {
            self.untouched((to + n).max(from)..from + n)?;
        }
        self.restore(to..to + n);
        Ok(())
    }

    /// Fills n bytes at offset `d` of the destination. `expected` is n times the byte.
    #[inline]
    pub fn fill(
        &mut self,
        kernel: &'static Kernel,
        f: FillFn,
        d: usize,
        byte: i32,
        expected: &[u8],
    ) -> Checked {
        let (dst, n) = (self.dst.start().wrapping_add(d), expected.len());
        self.note(kernel, dst, std::ptr::null(), n, i64::from(byte));
        // SAFETY: the range was chosen inside the buffer, and the caller runs no kernel that this
        // CPU lacks features for.
        let returned = unsafe { f(dst, byte, n) };
        self.returned(returned, dst)?;
        self.wrote(d, expected)?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Zeroes n bytes at offset `d` of the destination. `expected` is n zeroes.
    #[inline]
    pub fn zero(
        &mut self,
        kernel: &'static Kernel,
        f: ZeroFn,
        d: usize,
        expected: &[u8],
    ) -> Checked {
        let (dst, n) = (self.dst.start().wrapping_add(d), expected.len());
        self.note(kernel, dst, std::ptr::null(), n, -1);
        // SAFETY: the range was chosen inside the buffer, and the caller runs no kernel that this
        // CPU lacks features for.
        let returned = unsafe { f(dst, n) };
        self.returned(returned, dst)?;
        self.wrote(d, expected)?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Copies a block of pages; both offsets are multiples of the page size.
    pub fn copy_pages(
        &mut self,
        kernel: &'static Kernel,
        f: CopyPagesFn,
        d: usize,
        s: usize,
        order: u32,
    ) -> Checked {
        let (dst, src) = (self.dst.start().wrapping_add(d), self.src.start().wrapping_add(s));
        let n = PAGE_SIZE << order;
        self.note(kernel, dst, src, n, i64::from(order));
        // SAFETY: both blocks were chosen inside their own buffers at multiples of the page size,
        // and the caller runs no kernel that this CPU lacks features for.
        unsafe { f(dst, src, order) };
        self.returned(dst, dst)?;
        self.wrote(d, &self.src_before[s..s + n])?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Zeroes a block of pages; the offset is a multiple of the page size.
    pub fn zero_pages(
        &mut self,
        kernel: &'static Kernel,
        f: ZeroPagesFn,
        d: usize,
        order: u32,
    ) -> Checked {
        let dst = self.dst.start().wrapping_add(d);
        let n = PAGE_SIZE << order;
        self.note(kernel, dst, std::ptr::null(), n, i64::from(order));
        // SAFETY: the block was chosen inside the buffer at a multiple of the page size, and the
        // caller runs no kernel that this CPU lacks features for.
        unsafe { f(dst, order) };
        self.returned(dst, dst)?;
        self.wrote(d, &vec![0; n])?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Makes the n bytes at `d` of the destination those at `s` of the source, for comparisons;
    /// what surrounds them keeps differing. [`Arena::compared`] ends this.
    pub fn make_equal(&mut self, d: usize, s: usize, n: usize) {
        self.dst.bytes_mut()[d..d + n].copy_from_slice(&self.src_before[s..s + n]);
    }

    /// Compares the n bytes at `s` of the source, the left side, to those at `d` of the
    /// destination, which [`Arena::make_equal`] has made equal, with this difference in them.
    /// Returns what the kernel returned.
    #[inline]
    pub fn compare(
        &mut self,
        kernel: &'static Kernel,
        f: CompareFn,
        (d, s, n): (usize, usize, usize),
        difference: Option<Difference>,
    ) -> Result<i32, Box<str>> {
        let (left, right) = (self.src.start().wrapping_add(s), self.dst.start().wrapping_add(d));
        let edits = difference.map_or([(n, (0, 0)); 3], |difference| {
            let (a, b) = difference.bytes;
            let [second, third] = difference.later;
            [(difference.at, (a, b)), (second, (b, a)), (third, (b, a))]
        });
        for (at, (a, b)) in edits {
            if at < n {
                self.src.bytes_mut()[s + at] = a;
                self.dst.bytes_mut()[d + at] = b;
            }
        }
        self.note(kernel, right, left, n, difference.map_or(-1, |difference| difference.at as i64));
        // SAFETY: both ranges were chosen inside their buffers, and the caller runs no kernel that
        // this CPU lacks features for.
        let returned = unsafe { f(left, right, n) };
        for (at, _) in edits {
            if at < n {
                self.src.bytes_mut()[s + at] = self.src_before[s + at];
                self.dst.bytes_mut()[d + at] = self.src_before[s + at];
            }
        }
        self.machine_state()?;
        Ok(returned)
    }

    /// Checks that the comparisons since [`Arena::make_equal`] wrote nothing, and puts the arena
    /// back.
    pub fn compared(&mut self, d: usize, s: usize, n: usize) -> Checked {
        self.wrote(d, &self.src_before[s..s + n])?;
        self.source_intact(s..s + n)?;
        self.restore(d..d + n);
        Ok(())
    }

    /// Checks that the source still holds what it did, here and [`MARGIN`] around.
    pub fn source_intact(&self, touched: Range<usize>) -> Checked {
        let range = touched.start.saturating_sub(MARGIN)..(touched.end + MARGIN).min(self.room());
        match first_difference(&self.src.bytes()[range.clone()], &self.src_before[range.clone()]) {
            None => Ok(()),
            Some(at) => fail(&format!("it changed its source at offset {}", range.start + at)),
        }
    }

    #[inline]
    fn note(
        &mut self,
        kernel: &'static Kernel,
        dst: *const u8,
        src: *const u8,
        n: usize,
        detail: i64,
    ) {
        self.calls += 1;
        watch::calling(Call { kernel: kernel.name, dst: dst.addr(), src: src.addr(), n, detail });
    }

    #[inline]
    fn returned(&self, returned: *mut u8, expected: *mut u8) -> Checked {
        self.machine_state()?;
        if returned == expected { Ok(()) } else { fail("it did not return its destination") }
    }

    #[inline]
    fn machine_state(&self) -> Checked {
        machine_state::disturbed().map_or(Ok(()), fail)
    }

    /// Checks that the destination at `d` is `expected` and its surroundings are as before.
    #[inline]
    fn wrote(&self, d: usize, expected: &[u8]) -> Checked {
        let end = d + expected.len();
        let written = &self.dst.bytes()[d..end];
        if written != expected {
            return wrong_bytes(written, expected);
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

    #[inline]
    fn restore(&mut self, range: Range<usize>) {
        self.dst.bytes_mut()[range.clone()].copy_from_slice(&self.dst_before[range]);
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
pub fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// A failure of the last call noted.
#[cold]
pub fn fail(what: &str) -> Checked {
    Err(format!("{}: {what}", watch::last_call()).into())
}
