//! Calls, as they are timed and as their bytes are checked.

use super::operands::Operands;
use cachewise::Reuse;
use cachewise::parallel::{Threads, Workers, copy_by, zero_by};
use cachewise::profile::Supply;
use cachewise_experiments::LabError;
use cachewise_experiments::callee::Callee;
use cachewise_experiments::prefault::parallel::Pool;
use cachewise_experiments::routines::FILL_BYTE;
use cachewise_kernels::{Function, Operation};
use cachewise_measure::Place;
use std::iter::repeat_n;

/// Routine that does a call.
#[derive(Clone, Copy)]
pub(super) enum Caller<'p> {
    /// A function, on this thread.
    One(Function, Callee),
    /// The library, by several threads.
    Several { count: usize, supply: Supply, pool: &'p Pool },
}

/// The calls of a sample, back to back; `places` are the operands' own ([`Operands::list`]).
pub(super) fn call_all(caller: Caller<'_>, operands: &Operands, places: &[Place]) {
    match caller {
        Caller::One(_, callee) => {
            let (times, rest) = (operands.calls / places.len(), operands.calls % places.len());
            for part in repeat_n(places, times).chain([&places[..rest]]) {
                callee.run(part);
            }
        }
        Caller::Several { count, supply: Supply::Pooled, pool } => {
            by_threads(operands, count, pool);
        }
        Caller::Several { count, supply: Supply::Spawned, .. } => {
            by_threads(operands, count, &Threads::new(count));
        }
    }
}

fn by_threads(operands: &Operands, count: usize, workers: &impl Workers) {
    let n = operands.n;
    for call in 0..operands.calls {
        let (dst, src) = operands.at(call);
        if operands.operation == Operation::Copy {
            // SAFETY: both are in the arena for n bytes, apart, and nobody else uses them.
            unsafe { copy_by(count, Reuse::Unknown, workers, dst, src, n) };
        } else {
            // SAFETY: as above.
            unsafe { zero_by(count, Reuse::Unknown, workers, dst, n) };
        }
    }
}

/// Makes the calls of a sample once, untimed, and looks at every byte. `differences` has the places
/// where compared operands differ, one for each call, or nothing.
///
/// # Errors
/// [`LabError::WrongBytes`], with `who` in it.
pub(super) fn check(
    caller: Caller<'_>,
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
    if let Caller::One(Function::Compare(f) | Function::Equal(f), _) = caller {
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
    call_all(caller, operands, &operands.list());
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
