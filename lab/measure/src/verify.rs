//! Did it move the right bytes? Checked on the very buffers that are timed.
//!
//! The right bytes are stated here by the operation's meaning and compared with slices, not by
//! running a second routine: the scalar reference takes a nanosecond per byte, and would make the
//! check of a 256 MiB buffer longer than its measurement. That both agree is tested below.

use cachewise_kernels::{Function, Operation, PAGE_SIZE};
use std::ops::Range;

/// The first wrong byte, or the wrong answer, of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "wrong bytes from {operation} of {n} bytes, {case}: {what} is {found}, expected {expected}"
)]
pub struct WrongBytes {
    pub operation: Operation,
    /// Bytes it was asked to process.
    pub n: usize,
    pub case: &'static str,
    /// Name of the wrong thing: `byte 17`, `source byte 3`, `the answer`, `the returned pointer`.
    pub what: String,
    pub found: i64,
    pub expected: i64,
}

/// Runs `function` on `n` bytes at `dst` (and `src`, where it has a source) and checks every byte
/// of the destination, that the source is unchanged, and what it returns. Moves are also run with
/// overlap inside `dst`; comparisons on equal buffers and on ones that differ at the first, middle
/// and last byte. Page operations run on the largest block of whole pages that fits, or not at all
/// below one page.
///
/// Afterwards the destination holds the operation's result; after a comparison both buffers are
/// equal to the source.
///
/// # Errors
/// The first deviation found.
///
/// # Safety
/// `dst` is writable and `src` readable for `n` bytes, both are initialised and do not overlap;
/// page operations need both aligned to [`PAGE_SIZE`]. The function obeys its contract as far as
/// staying inside its buffers, and this CPU can run it. `src` is not looked at for fill and zero.
pub unsafe fn verify(
    function: &Function,
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> Result<(), WrongBytes> {
    let mut check = Check { operation: function.operation(), dst, src, n };
    match *function {
        Function::Copy(copy) => check.copies(|| {
            // SAFETY: the caller's promise: n bytes each, disjoint.
            unsafe { copy(dst, src, n) }
        }),
        Function::Move(r#move) => {
            check.copies(|| {
                // SAFETY: the caller's promise: n bytes each.
                unsafe { r#move(dst, src, n) }
            })?;
            [1, 64, n / 2].into_iter().try_for_each(|distance| {
                check.moves_within(distance, |to, from, length| {
                    // SAFETY: both ranges lie in the n bytes at dst.
                    unsafe { r#move(to, from, length) }
                })
            })
        }
        Function::Fill(fill) => [0xA5_u8, 0x00, 0xFF].into_iter().try_for_each(|byte| {
            // The upper bits of the argument must not matter, as with memset.
            let argument = i32::from(byte) | 0x1_5A00;
            check.fills(byte, || {
                // SAFETY: the caller's promise: n writable bytes.
                unsafe { fill(dst, argument, n) }
            })
        }),
        Function::Zero(zero) => check.fills(0, || {
            // SAFETY: the caller's promise: n writable bytes.
            unsafe { zero(dst, n) }
        }),
        Function::Compare(compare) => check.compares(false, |a, b| {
            // SAFETY: the caller's promise: n readable bytes each.
            unsafe { compare(a, b, n) }
        }),
        Function::Equal(equal) => check.compares(true, |a, b| {
            // SAFETY: the caller's promise: n readable bytes each.
            unsafe { equal(a, b, n) }
        }),
        Function::CopyPages(copy_pages) => {
            let Some(order) = largest_block(n) else { return Ok(()) };
            check.n = PAGE_SIZE << order;
            check.copies(|| {
                // SAFETY: the block fits n bytes, and the caller vouches for alignment.
                unsafe { copy_pages(dst, src, order) };
                dst
            })
        }
        Function::ZeroPages(zero_pages) => {
            let Some(order) = largest_block(n) else { return Ok(()) };
            check.n = PAGE_SIZE << order;
            check.fills(0, || {
                // SAFETY: the block fits n bytes, and the caller vouches for alignment.
                unsafe { zero_pages(dst, order) };
                dst
            })
        }
    }
}

/// The order of the largest block of `PAGE_SIZE << order` bytes within `n` bytes.
fn largest_block(n: usize) -> Option<u32> {
    (n / PAGE_SIZE).checked_ilog2()
}

struct Check {
    operation: Operation,
    dst: *mut u8,
    src: *const u8,
    n: usize,
}

impl Check {
    fn wrong(&self, case: &'static str, what: String, found: i64, expected: i64) -> WrongBytes {
        WrongBytes { operation: self.operation, n: self.n, case, what, found, expected }
    }

    fn destination(&self) -> &[u8] {
        // SAFETY: the caller of verify vouches for n initialised bytes; the slice is dropped
        // before the function under test runs again.
        unsafe { std::slice::from_raw_parts(self.dst, self.n) }
    }

    fn source(&self) -> &[u8] {
        // SAFETY: as for the destination, and nobody writes the source.
        unsafe { std::slice::from_raw_parts(self.src, self.n) }
    }

    /// Puts in every byte of the destination the value of its place.
    fn put(&self, value: impl Fn(usize) -> u8) {
        // SAFETY: the caller of verify vouches for n writable bytes, disjoint from the source; the
        // slice is dropped before the function under test runs.
        let destination = unsafe { std::slice::from_raw_parts_mut(self.dst, self.n) };
        for (index, byte) in destination.iter_mut().enumerate() {
            *byte = value(index);
        }
    }

    /// The first of these bytes of the destination that is not the value of its place.
    fn first_unlike(&self, places: Range<usize>, value: impl Fn(usize) -> u8) -> Option<usize> {
        const BLOCK: usize = 4096;
        let unlike = |places: Range<usize>| {
            let found = self.destination()[places.clone()].iter().zip(places);
            found.map(|(found, index)| found ^ value(index))
        };
        places.clone().step_by(BLOCK).find_map(|start| {
            let block = start..places.end.min(start + BLOCK);
            // The whole block at a time, which takes the compiler vectors, and only then one by one.
            match unlike(block.clone()).fold(0, |all, bits| all | bits) {
                0 => None,
                _ => unlike(block).position(|bits| bits != 0).map(|at| start + at),
            }
        })
    }

    /// Runs on a destination of the values of `before`: whether it returns `start`.
    fn returns(
        &self,
        case: &'static str,
        before: impl Fn(usize) -> u8,
        start: *mut u8,
        run: impl FnOnce() -> *mut u8,
    ) -> Result<(), WrongBytes> {
        self.put(before);
        let from_start = (run() as i64).wrapping_sub(start as i64);
        if from_start == 0 {
            return Ok(());
        }
        let what = "the returned pointer, from the destination,".to_owned();
        Err(self.wrong(case, what, from_start, 0))
    }

    /// Returns whether these bytes of the destination are the values of their places; `told` goes behind the
    /// number of one that is not.
    fn holds(
        &self,
        case: &'static str,
        told: &str,
        places: Range<usize>,
        value: impl Fn(usize) -> u8,
    ) -> Result<(), WrongBytes> {
        let Some(at) = self.first_unlike(places, &value) else { return Ok(()) };
        let (found, expected) = (self.destination()[at].into(), value(at).into());
        Err(self.wrong(case, format!("byte {at}{told}"), found, expected))
    }

    fn copies(&self, run: impl FnOnce() -> *mut u8) -> Result<(), WrongBytes> {
        let (case, source) = ("disjoint", self.source());
        let before = checksum(source);
        self.returns(case, |index| !source[index], self.dst, run)?;
        self.holds(case, "", 0..self.n, |index| source[index])?;
        match checksum(self.source()) {
            after if after == before => Ok(()),
            after => {
                let what = "a checksum of the source".to_owned();
                Err(self.wrong(case, what, after as i64, before as i64))
            }
        }
    }

    fn moves_within(
        &self,
        distance: usize,
        run: impl Fn(*mut u8, *const u8, usize) -> *mut u8,
    ) -> Result<(), WrongBytes> {
        if distance == 0 || distance >= self.n {
            return Ok(());
        }
        let (length, told) = (self.n - distance, format!(" at distance {distance}"));
        for (case, to, from) in [("overlap upward", distance, 0), ("overlap downward", 0, distance)]
        {
            let target = self.dst.wrapping_add(to);
            let moved = || run(target, self.dst.wrapping_add(from), length);
            self.returns(case, pattern, target, moved)?;
            self.holds(case, &told, 0..to, pattern)?;
            self.holds(case, &told, to..to + length, |index| pattern(index - to + from))?;
            self.holds(case, &told, to + length..self.n, pattern)?;
        }
        Ok(())
    }

    fn fills(&self, byte: u8, run: impl FnOnce() -> *mut u8) -> Result<(), WrongBytes> {
        self.returns("fill", |_| !byte, self.dst, run)?;
        self.holds("fill", "", 0..self.n, |_| byte)
    }

    fn compares(
        &self,
        equality: bool,
        run: impl Fn(*const u8, *const u8) -> i32,
    ) -> Result<(), WrongBytes> {
        let source = self.source();
        self.put(|index| source[index]);
        let expect = |case, a, b, sign: i32| {
            let found = run(a, b);
            let (found, expected) =
                if equality { (found, i32::from(sign == 0)) } else { (found.signum(), sign) };
            if found == expected {
                return Ok(());
            }
            Err(self.wrong(case, "the answer".to_owned(), found.into(), expected.into()))
        };
        expect("equal buffers", self.dst, self.src, 0)?;
        for index in [0, self.n / 2, self.n.saturating_sub(1)] {
            let Some(byte) = self.source().get(index).copied() else { continue };
            // Differ in the highest bit: bytes are compared unsigned.
            let other = byte ^ 0x80;
            let sign = i32::from(other > byte) - i32::from(other < byte);
            // SAFETY: the index is below n.
            let set = |byte| unsafe { self.dst.wrapping_add(index).write(byte) };
            set(other);
            let outcome = expect("one byte differs", self.dst, self.src, sign)
                .and_then(|()| expect("one byte differs", self.src, self.dst, -sign));
            set(byte);
            outcome?;
        }
        Ok(())
    }
}

/// A byte that differs from those at distances 1 to 250 and at powers of two, by one multiplication:
/// buffers of megabytes are filled with it.
fn pattern(index: usize) -> u8 {
    ((index as u32).wrapping_mul(0xECB2_C5F7) >> 24) as u8
}

fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut lanes = [0_u64; 4];
    for (index, word) in words.iter().enumerate() {
        let lane = &mut lanes[index % 4];
        *lane = lane.wrapping_mul(0x100_0000_01B3).wrapping_add(u64::from_le_bytes(*word));
    }
    let whole = lanes.iter().fold(7_u64, |sum, lane| sum.wrapping_mul(31).wrapping_add(*lane));
    rest.iter().fold(whole, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cachewise_kernels::{Features, TABLE, scalar};

    #[repr(align(4096))]
    struct Pages([u8; 3 * 4096]);

    fn run(function: &Function, n: usize) -> Result<(), WrongBytes> {
        let mut dst = Box::new(Pages([0; 3 * 4096]));
        let mut src = Box::new(Pages([0; 3 * 4096]));
        for (index, byte) in src.0.iter_mut().enumerate() {
            *byte = (index * 7 + index / 256) as u8;
        }
        // SAFETY: both blocks hold three pages, n is at most that, and they are distinct.
        unsafe { verify(function, dst.0.as_mut_ptr(), src.0.as_ptr(), n) }
    }

    /// The oracle at more lengths.
    #[test]
    fn every_kernel_that_this_cpu_runs_passes() {
        let available = Features::detect();
        for kernel in TABLE.iter().filter(|kernel| kernel.runs_on(available)) {
            let lengths: &[usize] = match kernel.name.ends_with(".bytes") {
                true => &[0, 1, 2, 3, 63, 64, 65, 100, 255, 4096, 8191, 8192, 9000, 12_288],
                false => &[1, 100, 4096, 9000],
            };
            for n in lengths {
                run(&kernel.function, *n)
                    .unwrap_or_else(|wrong| panic!("{}: {wrong}", kernel.name));
            }
        }
    }

    unsafe extern "C" fn lazy_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise for fewer bytes.
        unsafe { scalar::copy(dst, src, n.saturating_sub(1)) }
    }

    pub(crate) unsafe extern "C" fn lost_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { scalar::copy(dst, src, n) };
        std::ptr::null_mut()
    }

    unsafe extern "C" fn swap(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        for at in 0..n {
            // SAFETY: the caller's promise.
            let byte = unsafe { src.wrapping_add(at).read() };
            // SAFETY: the test's buffers are writable.
            unsafe { dst.wrapping_add(at).write(byte) };
            // SAFETY: the test's source is writable too.
            unsafe { src.cast_mut().wrapping_add(at).write(0) };
        }
        dst
    }

    unsafe extern "C" fn constant(_: *const u8, _: *const u8, _: usize) -> i32 {
        0
    }

    unsafe extern "C" fn signed(a: *const u8, b: *const u8, n: usize) -> i32 {
        // SAFETY: the caller's promise.
        -unsafe { scalar::compare(a, b, n) }
    }

    unsafe extern "C" fn sevens(dst: *mut u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { scalar::fill(dst, 7, n) }
    }

    unsafe extern "C" fn wide_fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { scalar::fill(dst, byte >> 8, n) }
    }

    unsafe extern "C" fn too_few_pages(dst: *mut u8, order: u32) {
        // SAFETY: the caller's promise for fewer bytes.
        unsafe { scalar::fill(dst, 0, (PAGE_SIZE << order) - 1) };
    }

    #[test]
    fn wrong_functions_are_caught_and_described() {
        let wrong = run(&Function::Copy(lazy_copy), 100).expect_err("the last byte is missing");
        let told = "wrong bytes from copy of 100 bytes, disjoint: byte 99 is ";
        assert!(wrong.to_string().starts_with(told), "{wrong}");
        for function in [
            Function::Copy(lost_copy),
            Function::Copy(swap),
            Function::Move(scalar::copy), // ascending only
            Function::Compare(constant),
            Function::Compare(signed),
            Function::Equal(constant),
            Function::Equal(scalar::compare),
            Function::Zero(sevens),
            Function::Fill(wide_fill),
            Function::ZeroPages(too_few_pages),
        ] {
            assert!(run(&function, 8192).is_err(), "{:?} passed", function.operation());
        }
    }

    #[test]
    fn a_pattern_differs_from_itself_moved() {
        // The difference of two places' products is the product of their distance, give or take a
        // carry into the last bit.
        let mut distances = (1..=250).chain((0..32).map(|bit| 1 << bit));
        let alike = distances.find(|distance| matches!(pattern(*distance), 0 | 0xFF));
        assert_eq!(alike, None, "a distance at which bytes may agree");
    }

    #[test]
    fn page_operations_take_the_largest_block() {
        let orders = [4095, 4096, 3 * 4096, 1 << 20].map(largest_block);
        assert_eq!(orders, [None, Some(0), Some(1), Some(8)]);
    }
}
