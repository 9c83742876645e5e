//! The hints: whether the library's reuse hints keep their promise: `Soon` leaves the destination
//! cached, so that its reader is fast; `Never` leaves the bystander cached, so that it loses little.
//!
//! The candidates are the library's own functions under each hint, decisions included, beside libc.
//! If two hints lead to the same kernel there is nothing to tell apart; which they lead to stands in
//! the record.

use crate::prelude::*;
use cachewise::profile::MAX_SIZE;
use cachewise::raw;
use cachewise_measure::Decision;

/// Operations with a hint of which the destination is all that counts.
pub(super) const OPERATIONS: &[Operation] = &[Operation::Copy, Operation::Zero];

macro_rules! hinted {
    ($($copy:ident, $zero:ident: $reuse:ident;)*) => {
        $(unsafe extern "C" fn $copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise (`CopyFn`).
            unsafe { raw::copy_nonoverlapping_with(Reuse::$reuse, dst, src, n) }
        }

        unsafe extern "C" fn $zero(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise (`ZeroFn`).
            unsafe { raw::zero_with(Reuse::$reuse, dst, n) }
        })*

        const HINTS: [Reuse; 3] = [$(Reuse::$reuse),*];

        fn candidates(operation: Operation) -> Vec<Routine> {
            let mut routines = vec![libc_reference(operation)];
            $(routines.push(Routine {
                name: format!("cachewise {}", Reuse::$reuse.name()),
                function: match operation {
                    Operation::Zero => Function::Zero($zero),
                    _ => Function::Copy($copy),
                },
            });)*
            routines
        }
    };
}

hinted! {
    copy_soon, zero_soon: Soon;
    copy_unknown, zero_unknown: Unknown;
    copy_never, zero_never: Never;
}

pub(super) fn figures() -> Vec<Figure> {
    let hinted = HINTS.map(|reuse| format!("cachewise {}", reuse.name()));
    let curve = |title| {
        Figure::curve(title, "size", "total_ratio").among(hinted.iter().map(String::as_str))
    };
    vec![
        curve("Operation and the reader after it, over libc's").of("read"),
        curve("Operation and what the bystander lost, over libc's").of("beside"),
    ]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let caches = &setting.bench.machine.caches;
    let (l1, l2, llc) = (caches.l1d.bytes / 2, caches.l2.bytes / 2, caches.llc.bytes / 8);
    let sizes = setting.sizes_or(if setting.options.quick { vec![l2] } else { vec![l1, l2, llc] });
    let cells = OPERATIONS.iter().flat_map(|one| sizes.iter().map(move |size| (*one, *size)));
    setting.through(cells.collect(), alike, |setting, (operation, size)| {
        for reuse in HINTS {
            let found = cachewise::decision(operation, reuse, size as u64);
            // Once for all sizes that it holds for.
            if sizes.iter().any(|&other| other < size && found.from <= other as u64) {
                continue;
            }
            setting.out.decision(Decision {
                operation: operation.name().to_owned(),
                reuse: reuse.name().to_owned(),
                from: found.from,
                to: (found.to != MAX_SIZE).then_some(found.to),
                kernel: found.name().to_owned(),
                ratio: None,
                why: None,
            })?;
        }
        for cell in [Cell::read(), Cell::beside(setting.bench.bystander_bytes(size))] {
            setting.record(&setting.task(operation, size, cell), &candidates(operation), &[])?;
        }
        Ok(format!("{operation} {}", bytes(size)))
    })
}
