//! Ranges beyond the sizes that an entry does by itself: the next two ranges of each row, to which a call
//! jumps without the table.
//!
//! An entry compares the size with the end of each range and jumps to its function, which has the contract
//! of the C library's routine. So a decision for libc costs one comparison and one jump, and so does one
//! for a kernel (`docs/decisions/entry-stubs.md`).

use crate::class::{CLASSES, class, class_sizes};
use crate::names;
use crate::operands;
use crate::rows::OWN;
use crate::slots::{self, Slot, count, libc_slot};
use crate::system;
use crate::table::{DIRECT, NEXT, ROWS, Range, Row};
use cachewise_kernels::{Operation, TABLE};
use core::sync::atomic::Ordering;

/// Notes the ranges of a row as its table has them.
pub(crate) fn note(operation: Operation, row: usize) {
    if let (Some(ranges), Some(entries), Some(direct)) =
        (NEXT.get(row), ROWS.get(row), DIRECT.get(row))
    {
        note_ranges(ranges, operation, entries, direct.load(Ordering::Relaxed));
    }
}

/// Ranges of any row: `direct` is what its entry does by itself, if more than every entry does.
fn note_ranges(ranges: &[Range; 2], operation: Operation, entries: &Row, direct: usize) {
    for range in ranges {
        range.last.store(0, Ordering::Relaxed);
    }
    let mut from = class((direct as u64).saturating_add(1).max(OWN as u64 + 1));
    for range in ranges {
        let Some(function) = function(operation, entries.at(from)) else { return };
        let last = last_of_range(entries, from);
        range.function.store(function, Ordering::Relaxed);
        let end = usize::try_from(*class_sizes(last).end()).unwrap_or(usize::MAX);
        // Behind its function: whoever sees the one sees the other.
        range.last.store(end, Ordering::Release);
        from = last + 1;
    }
}

/// The last class that has the slot of `from`, without a gap.
fn last_of_range(row: &Row, from: usize) -> usize {
    let slot = row.at(from);
    (from..CLASSES).take_while(|class| row.at(*class) == slot).last().unwrap_or(from)
}

/// Function with the contract of the C library's routine of that operation (of a zero, `memset` with a byte of
/// zero; of a copy, overlap as well) and does the work of a slot; `None` where nothing does.
fn function(operation: Operation, slot: usize) -> Option<*mut ()> {
    let [memcpy, memmove, memset, memcmp] = &system::ROUTINES;
    let theirs = usize::from(libc_slot(operation).0);
    let is_libc = slot == theirs;
    let routine = match operation {
        Operation::Copy | Operation::CopyPages => memcpy,
        Operation::Move => memmove,
        Operation::Fill | Operation::Zero | Operation::ZeroPages => memset,
        Operation::Compare | Operation::Equal => memcmp,
    };
    match operation {
        // `memcmp` does not return 1 or 0: a function makes it so.
        _ if is_libc && operation != Operation::Equal => {
            let moves = operation != Operation::Copy || system::copy_is_move();
            moves.then(|| routine.load(Ordering::Acquire))
        }
        #[cfg(all(feature = "os", target_os = "linux"))]
        _ if is_libc => Some(system::equal as *mut ()),
        // A move does what a copy does.
        Operation::Copy | Operation::Move if slot > theirs => {
            operands::MOVES.get(slot - theirs - 1).map(|function| *function as *mut ())
        }
        Operation::Copy | Operation::CopyPages => kernel_at(Operation::Move, twin(&MOVES, slot)),
        Operation::Zero | Operation::ZeroPages => kernel_at(Operation::Fill, twin(&FILLS, slot)),
        _ => kernel_at(operation, slot),
    }
}

/// The kernel of a slot; the first fills the table and is none.
fn kernel_at(operation: Operation, slot: usize) -> Option<*mut ()> {
    let kernel = slots::kernel(operation, Slot(u8::try_from(slot).ok()?))?;
    Some(kernel.function.address().cast_mut().cast())
}

fn twin(twins: &[Slot], slot: usize) -> usize {
    twins.get(slot).map_or(0, |slot| usize::from(slot.0))
}

/// The moves of the techniques of the copies, by slot.
static MOVES: [Slot; count(Operation::Copy) + 1] = twins(Operation::Copy, Operation::Move);
/// The fills of the techniques of the zeros.
static FILLS: [Slot; count(Operation::Zero) + 1] = twins(Operation::Zero, Operation::Fill);

/// For each slot of an operation the slot of another's kernel of the same technique, or the first.
const fn twins<const SLOTS: usize>(of: Operation, to: Operation) -> [Slot; SLOTS] {
    let mut slots = [Slot::BOOT; SLOTS];
    let (mut at, mut slot) = (0, 1);
    while at < TABLE.len() {
        if TABLE[at].deploy && TABLE[at].operation() as u8 == of as u8 {
            if let Some((_, technique)) = names::split(TABLE[at].name.as_bytes(), b'.') {
                slots[slot] = slots::named(to, technique);
            }
            slot += 1;
        }
        at += 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_kernels::Features;

    /// The ranges of a row of moves, with slots put from each of these sizes on: end and slot.
    fn noted(direct: usize, put: &[(u64, usize)]) -> [(usize, usize); 2] {
        let (row, ranges) = (Row::new(), [const { Range::none() }; 2]);
        for (from, slot) in put {
            (class(*from)..CLASSES).for_each(|class| row.put(class, *slot));
        }
        note_ranges(&ranges, Operation::Move, &row, direct);
        ranges.each_ref().map(|range| {
            let function = range.function.load(Ordering::Relaxed);
            let mut moves = slots::kernels(Operation::Move);
            let slot = moves.find(|(_, kernel)| kernel.function.address() == function.cast());
            (range.last.load(Ordering::Relaxed), slot.map_or(0, |(Slot(slot), _)| slot.into()))
        })
    }

    #[test]
    fn the_two_ranges_behind_what_an_entry_does_are_noted() {
        let all = usize::MAX;
        assert_eq!(noted(256, &[(0, 1)])[0], (all, 1));
        assert_eq!(noted(0, &[(0, 3), (129, 1), (4096, 2)]), [(4095, 1), (all, 2)]);
        assert_eq!(noted(256, &[(0, 1), (4096, 2)]), [(4095, 1), (all, 2)]);
        let four = [(0, 1), (4096, 2), (8192, 3), (65_536, 1)];
        assert_eq!(noted(4095, &four), [(8191, 2), (65_535, 3)]);
        // The first slot fills the table.
        assert_eq!(noted(256, &[(0, 1), (4096, 0)]), [(4095, 1), (0, 0)]);
        assert_eq!(noted(8191, &[(0, 1), (4096, 0)]), [(0, 0), (0, 0)]);
    }

    #[test]
    fn twins_need_nothing_that_the_kernels_do_not() {
        for (of, to, twins) in [
            (Operation::Copy, Operation::Move, &MOVES[..]),
            (Operation::Zero, Operation::Fill, &FILLS[..]),
        ] {
            let mut some = 0;
            for (slot, kernel) in slots::kernels(of) {
                let Some(twin) = slots::kernel(to, twins[usize::from(slot.0)]) else {
                    continue;
                };
                assert_eq!(twin.technique(), kernel.technique());
                // SSE2 is there wherever this is compiled.
                let has = kernel.requires.and(Features::SSE2);
                assert!(has.contains(twin.requires), "{}", twin.name);
                some += usize::from(twin.runs_on(Features::detect()));
            }
            assert!(some > 1, "{of}");
        }
    }
}
