//! Operands of a visit: their place, their contents, and their state, restored before every sample. Calls on them, as
//! they are timed and as their bytes are checked.

use super::super::seam::{Contents, Destination, Layout, TuningCell};
use cachewise_kernels::{Function, Operation};
use cachewise_measure::LabError;
use cachewise_measure::callee::Callee;
use cachewise_measure::routines::FILL_BYTE;
use cachewise_measure::{Arena, LINE, Place, Reader, lines};
use fastrand::Rng;
use std::iter::repeat_n;

/// Bytes of a page, in which low address bits alias.
const PAGE: usize = 4096;

/// Calls of one sample at most, on operands of their own.
const MOST_CALLS: usize = 32;

/// Places in a list that is gone through again, at most: 1.5 KiB, little of any L1.
const MOST_PLACES: usize = 64;

/// Times that the calls of one sample on the same operands could fill L1: 8,000 stores of 32 bytes and
/// more, of which a store buffer holds some 100 back when the clock is read, 1 %.
const TIMES_L1: usize = 8;

/// Equal operands side by side, one pair for each call of a sample; or one pair for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    pub operation: Operation,
    /// Bytes of an operand.
    pub n: usize,
    /// Calls of a sample, each on operands of its own.
    pub calls: usize,
    dst: *mut u8,
    src: *const u8,
    /// From one call's operands to the next one's; 0 where all calls have the same.
    stride: usize,
    /// True if both lie in one buffer.
    overlap: bool,
}

/// Bytes on either side of operands that offsets may take.
pub(super) const MARGIN: usize = 4 * PAGE;

/// Bytes that both operands of one call of `n` bytes need of an arena.
pub(super) fn room(n: usize) -> usize {
    2 * (n + MARGIN)
}

impl Operands {
    /// Places for a cell, drawn: the same for whoever draws from the same state. `l1` is what the
    /// operands of all calls of a sample share.
    pub(super) fn place(arena: &Arena, cell: &TuningCell, l1: usize, random: &mut Rng) -> Operands {
        let n = cell.size;
        let two = !matches!(cell.operation, Operation::Fill | Operation::Zero);
        let overlap = matches!(cell.layout, Layout::OverlapUp | Layout::OverlapDown);
        // Half of the way between a line and half of the operand, by octaves.
        let distance = if overlap { log_uniform(16, (n / 2).max(17), random) } else { 0 };
        let stride = (n + distance + 2 * LINE).next_multiple_of(LINE);
        let each = stride * if two && !overlap { 2 } else { 1 };
        let repeated = cell.destination == Destination::Repeated;
        let calls = match repeated {
            true => (TIMES_L1 * l1 / n.max(1)).max(1),
            false => (l1 / 4 * 3 / each).clamp(1, MOST_CALLS),
        };
        let places = if repeated { 1 } else { calls };
        // Somewhere in its half of the arena, on a line.
        let half = arena.len() / 2;
        let part = if overlap { arena.len() } else { half };
        let free = part.saturating_sub(places * stride + MARGIN) / PAGE;
        let mut somewhere = || random.usize(0..=free) * PAGE;
        let (to, from) = (somewhere(), half + somewhere());
        let line = |random: &mut Rng| random.usize(8..56) * LINE;
        let low = random.usize(0..64) * LINE;
        // Apart in the low twelve bits by 8 to 55 lines of 64.
        let apart = line(random);
        let odd = |random: &mut Rng| 2 * random.usize(0..LINE / 2) + 1;
        let (dst_low, src_low) = match cell.layout {
            Layout::Aligned => (low, (low + apart) % PAGE),
            Layout::Misaligned => (low + odd(random), (low + apart) % PAGE + odd(random)),
            Layout::Aliased => (low + random.usize(1..LINE), low),
            Layout::OverlapUp => (low + distance, low),
            Layout::OverlapDown => (low, low + distance),
        };
        let base = arena.as_mut_ptr();
        let from = if overlap { to } else { from };
        Operands {
            operation: cell.operation,
            n,
            calls,
            dst: base.wrapping_add(to + dst_low),
            src: base.wrapping_add(from + src_low),
            stride: if repeated { 0 } else { stride },
            overlap,
        }
    }

    /// Number of pairs.
    fn places(&self) -> usize {
        if self.stride == 0 { 1 } else { self.calls }
    }

    /// The places of a sample's calls; where all have the same, a list that is gone through again.
    pub(super) fn list(&self) -> Vec<Place> {
        let calls = if self.stride == 0 { self.calls.min(MOST_PLACES) } else { self.calls };
        let place = |call| {
            let (dst, src) = self.at(call);
            Place { dst, src, n: self.n }
        };
        (0..calls).map(place).collect()
    }

    /// The operands of one call.
    pub(super) fn at(&self, call: usize) -> (*mut u8, *const u8) {
        let offset = call * self.stride;
        (self.dst.wrapping_add(offset), self.src.wrapping_add(offset))
    }

    pub(super) fn reads_only(&self) -> bool {
        matches!(self.operation, Operation::Compare | Operation::Equal)
    }

    pub(super) fn overlaps(&self) -> bool {
        self.overlap
    }

    /// Makes compared operands equal; once for a visit, since comparisons write nothing.
    pub(super) fn equalise(&self) {
        for call in 0..self.places() {
            let (dst, src) = self.at(call);
            copy_words(dst, src, self.n);
        }
    }

    /// Lets each pair of compared operands differ in one byte, at the place that `place` has for a
    /// call; doing it again makes them equal again.
    pub(super) fn flip(&self, places: &[usize]) {
        for (call, place) in places.iter().enumerate() {
            let byte = self.at(call).0.wrapping_add(*place);
            // SAFETY: the place is below n, so the byte is in the arena, which nobody else uses.
            let old = unsafe { byte.read() };
            // SAFETY: as above.
            unsafe { byte.write(old ^ 0x10) };
        }
    }

    /// Restores the state in which a sample begins: other bytes in the destination, which is then in
    /// the caches, the source after it; or in no cache.
    pub(super) fn restore(&self, destination: Destination, seed: u64) {
        for call in 0..self.places() {
            let (dst, _) = self.at(call);
            match (self.reads_only(), destination) {
                (true, Destination::Evicted) => flush(dst, self.n),
                (true, _) => read(dst, self.n),
                (false, Destination::Cached | Destination::Repeated) => {
                    overwrite(dst, self.n, seed.wrapping_add(call as u64));
                    read(dst, self.n);
                }
                (false, Destination::Evicted) => {
                    // SAFETY: n bytes of the arena, which nobody else uses.
                    unsafe {
                        lines::overwrite_in_memory(dst, self.n, seed.wrapping_add(call as u64))
                    };
                    flush(dst, self.n);
                }
            }
        }
        if matches!(self.operation, Operation::Fill | Operation::Zero) {
            return;
        }
        for call in 0..self.places() {
            let (_, src) = self.at(call);
            match (self.reads_only(), destination) {
                (true, Destination::Evicted) => flush(src, self.n),
                _ => read(src, self.n),
            }
        }
    }
}

impl Operands {
    /// Takes source and destination out of every cache.
    pub(super) fn evict(&self) {
        let has_source = !matches!(self.operation, Operation::Fill | Operation::Zero);
        for call in 0..self.places() {
            let (dst, src) = self.at(call);
            flush(dst, self.n);
            if has_source {
                flush(src, self.n);
            }
        }
    }
}

/// For every call of a sample the place of the first difference, where there is one.
pub(super) fn differences(cell: &TuningCell, calls: usize, random: &mut Rng) -> Vec<usize> {
    match cell.contents {
        Contents::Equal => Vec::new(),
        Contents::Unequal => {
            (0..calls).map(|_| log_uniform(1, cell.size.max(1) + 1, random) - 1).collect()
        }
    }
}

/// A whole number from `low` to below `high` whose logarithm is uniform.
fn log_uniform(low: usize, high: usize, random: &mut Rng) -> usize {
    let ratio = high as f64 / low as f64;
    ((low as f64 * ratio.powf(random.f64())) as usize).clamp(low, high - 1)
}

/// Other bytes than any before, none of them zero, by temporal stores.
pub(super) fn overwrite(dst: *mut u8, n: usize, seed: u64) {
    // SAFETY: callers pass n bytes of the arena, which nobody else uses.
    unsafe { lines::overwrite(dst, n, seed) };
}

/// Makes `n` bytes the same, by no function that is being measured.
fn copy_words(dst: *mut u8, src: *const u8, n: usize) {
    for word in 0..n / 8 {
        // SAFETY: within n bytes of the arena; no alignment is assumed.
        let value = unsafe { src.wrapping_add(8 * word).cast::<u64>().read_unaligned() };
        // SAFETY: as above.
        unsafe { dst.wrapping_add(8 * word).cast::<u64>().write_unaligned(value) };
    }
    for byte in n / 8 * 8..n {
        // SAFETY: as above.
        let value = unsafe { src.wrapping_add(byte).read_volatile() };
        // SAFETY: as above.
        unsafe { dst.wrapping_add(byte).write_volatile(value) };
    }
}

/// Reads every line.
pub(super) fn read(start: *const u8, n: usize) {
    // SAFETY: callers pass n bytes of an arena, mapped and written.
    unsafe { Reader::touch(start, n, 1.0) };
}

/// Drives every line out of every cache.
pub(super) fn flush(start: *const u8, n: usize) {
    // SAFETY: callers pass n bytes of an arena.
    unsafe { lines::evict(start, n) };
}

/// The calls of a sample, back to back; `places` are the operands' own ([`Operands::list`]).
pub(super) fn call_all(callee: Callee, operands: &Operands, places: &[Place]) {
    let (times, rest) = (operands.calls / places.len(), operands.calls % places.len());
    for part in repeat_n(places, times).chain([&places[..rest]]) {
        callee.run(part);
    }
}

/// Makes the calls of a sample once, untimed, and looks at every byte. `differences` has the places
/// where compared operands differ, one for each call, or nothing.
///
/// # Errors
/// [`LabError::WrongBytes`], with `who` in it.
pub(super) fn check(
    function: Function,
    operands: &Operands,
    differences: &[usize],
    who: &str,
) -> Result<(), LabError> {
    let wrong = |call: usize, what: String| {
        LabError::WrongBytes(format!(
            "{who}, {} of {} bytes, call {call}: {what}",
            operands.operation, operands.n
        ))
    };
    let bytes = |start: *const u8| {
        // SAFETY: n bytes of the arena; nobody writes them while the slice is there.
        unsafe { std::slice::from_raw_parts(start, operands.n) }
    };
    if let Function::Compare(f) | Function::Equal(f) = function {
        for call in 0..operands.calls {
            let (a, b) = operands.at(call);
            // SAFETY: as in `call_all`.
            let found = unsafe { f(a, b, operands.n) };
            let expected = match differences.get(call) {
                None => 0,
                Some(place) => bytes(a)[*place].cmp(&bytes(b)[*place]) as i32,
            };
            let right = match operands.operation {
                Operation::Equal => found == i32::from(expected == 0),
                _ => found.signum() == expected,
            };
            if !right {
                return Err(wrong(call, format!("returned {found}")));
            }
        }
        return Ok(());
    }
    // The contents of an overlapping source are gone afterwards.
    let kept: Vec<Vec<u8>> = if operands.overlaps() {
        (0..operands.calls).map(|call| bytes(operands.at(call).1).to_vec()).collect()
    } else {
        Vec::new()
    };
    call_all(Callee::new(function), operands, &operands.list());
    for call in 0..operands.calls {
        let (dst, src) = operands.at(call);
        let found = bytes(dst);
        let at = match (operands.operation, kept.get(call)) {
            (Operation::Fill, _) => found.iter().position(|byte| *byte != FILL_BYTE),
            (Operation::Zero, _) => found.iter().position(|byte| *byte != 0),
            (_, Some(kept)) => unlike(found, kept),
            (_, None) => unlike(found, bytes(src)),
        };
        if let Some(at) = at {
            return Err(wrong(call, format!("byte {at} is {:#04x}", found[at])));
        }
    }
    Ok(())
}

/// The first place where they differ.
fn unlike(found: &[u8], expected: &[u8]) -> Option<usize> {
    found.iter().zip(expected).position(|(found, expected)| found != expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::{MemoryBudget, PagePolicy};

    fn cells() -> impl Iterator<Item = TuningCell> {
        let states =
            Layout::ALL.into_iter().flat_map(|layout| Destination::ALL.map(|at| (layout, at)));
        states.flat_map(|(layout, destination)| {
            [300, 512, 5000, 100_000, 1 << 20].map(|size| {
                let of = TuningCell::new(Operation::Move, size, destination);
                TuningCell { layout, ..of }
            })
        })
    }

    #[test]
    fn operands_lie_inside_the_arena_apart_as_their_layout_says() {
        let budget = MemoryBudget::new(16 << 20);
        let arena = Arena::within(&budget, room(1 << 20), PagePolicy::Default, 1).expect("room");
        let (low, high) = (arena.as_mut_ptr() as usize, arena.as_mut_ptr() as usize + arena.len());
        for cell in cells() {
            for draw in 0..200 {
                let drawn = || Operands::place(&arena, &cell, 32 << 10, &mut Rng::with_seed(draw));
                let operands = drawn();
                assert!(operands.calls >= 1 && operands.at(0) == drawn().at(0), "paired draws");
                let same = cell.destination == Destination::Repeated;
                assert_eq!(operands.at(operands.calls) == operands.at(0), same);
                for call in 0..operands.calls {
                    let (dst, src) = operands.at(call);
                    let (dst, src) = (dst as usize, src as usize);
                    let end = dst.max(src) + cell.size;
                    assert!(low <= dst.min(src) && end <= high, "{cell:?}");
                    let apart = dst.wrapping_sub(src) % PAGE;
                    match cell.layout {
                        Layout::Aligned => {
                            assert_eq!((dst % LINE, src % LINE), (0, 0));
                            assert!((8 * LINE..=56 * LINE).contains(&apart), "{apart}");
                        }
                        Layout::Misaligned => assert_eq!((dst % 2, src % 2), (1, 1)),
                        Layout::Aliased => assert!((1..LINE).contains(&apart), "{apart}"),
                        Layout::OverlapUp => assert!(src < dst && dst < src + cell.size),
                        Layout::OverlapDown => assert!(dst < src && src < dst + cell.size),
                    }
                    assert_eq!(operands.overlaps(), dst.abs_diff(src) < cell.size);
                }
            }
        }
    }

    #[test]
    fn other_bytes_every_time_and_differences_that_come_and_go() {
        let budget = MemoryBudget::new(16 << 20);
        let arena = Arena::within(&budget, room(4096), PagePolicy::Default, 1).expect("room");
        let bytes = |at: *const u8, n: usize| {
            // SAFETY: callers pass operands in the arena, and nobody writes meanwhile.
            unsafe { std::slice::from_raw_parts(at, n) }.to_vec()
        };
        for destination in Destination::ALL {
            let cell = TuningCell {
                layout: Layout::Misaligned,
                ..TuningCell::new(Operation::Copy, 1001, destination)
            };
            let operands = Operands::place(&arena, &cell, 0, &mut Rng::with_seed(3));
            let (dst, src) = operands.at(0);
            let source = bytes(src, cell.size);
            operands.restore(destination, 1);
            let first = bytes(dst, cell.size);
            operands.restore(destination, 2);
            let second = bytes(dst, cell.size);
            assert!(first.iter().chain(&second).all(|byte| *byte != 0));
            assert!(first.chunks(64).zip(second.chunks(64)).all(|(a, b)| a != b));
            assert_eq!(bytes(src, cell.size), source, "the source stays");

            let cell =
                TuningCell { contents: Contents::Unequal, operation: Operation::Compare, ..cell };
            let operands = Operands::place(&arena, &cell, 0, &mut Rng::with_seed(3));
            let (a, b) = operands.at(0);
            operands.equalise();
            assert_eq!(bytes(a, cell.size), bytes(b, cell.size));
            let places = differences(&cell, 1, &mut Rng::with_seed(4));
            operands.flip(&places);
            operands.restore(destination, 1);
            let differs = |(a, b): (&u8, &u8)| a != b;
            let found = bytes(a, cell.size).iter().zip(&bytes(b, cell.size)).position(differs);
            assert_eq!(found, Some(places[0]));
            operands.flip(&places);
            assert_eq!(bytes(a, cell.size), bytes(b, cell.size));
        }
    }

    /// Half of the differences in the first square root of the size, as the seam has it.
    #[test]
    fn differences_are_where_their_distribution_says() {
        let of = TuningCell::new(Operation::Compare, 1 << 20, Destination::Cached);
        let cell = TuningCell { contents: Contents::Unequal, ..of };
        let places = differences(&cell, 4000, &mut Rng::with_seed(5));
        let early = places.iter().filter(|place| **place < 1 << 10).count();
        assert!((1800..2200).contains(&early), "{early}");
        assert!(places.iter().all(|place| *place < cell.size));
        assert!(differences(&of, 10, &mut Rng::with_seed(5)).is_empty());
    }
}
