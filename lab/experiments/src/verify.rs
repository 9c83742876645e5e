//! Correctness without timing: every candidate of an experiment, or every kernel that a tuning may
//! choose, on buffers of many sizes, aligned as those that are timed are. For machines whose timings
//! mean nothing, emulated ones, and for whoever wants the bytes proved before an hour of measuring.

use crate::error::LabError;
use crate::recorder::Progress;
use crate::routines::{Routine, libc_reference, library};
use crate::select;
use cachewise::profile::OPERATIONS;
use cachewise_kernels::{Features, Kernel, Operation, PAGE_SIZE, TABLE};
use cachewise_measure::verify::verify;
use cachewise_measure::{Arena, Machine, MemoryBudget, PagePolicy};
use std::cell::Cell;

/// Bytes per operation where none are given: the small ones that edges are made of, whole pages and
/// a size beyond most second-level caches.
const SIZES: &[usize] =
    &[1, 7, 64, 129, 256, 1000, 4 << 10, 9001, 64 << 10, (64 << 10) + 37, 1 << 20];

/// The sizes to check where none are given. An emulated CPU has no caches that a size could be beyond,
/// and takes minutes for what others do in a second.
fn sizes_for(machine: &Machine) -> &'static [usize] {
    match machine.emulated {
        Some(_) => &SIZES[..SIZES.len() - 1],
        None => SIZES,
    }
}

/// Offsets of destination and source in a page, as the bench has them aligned and misaligned.
const OFFSETS: &[(usize, usize)] = &[(0, 512), (24, 512 + 9), (1, 2)];

/// The checks that were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Kernels of the table.
    pub kernels: usize,
    /// Others: the C library's and this library's own entry points.
    pub others: usize,
    /// Calls whose every byte or answer was checked.
    pub calls: u64,
    /// Kernels that this CPU cannot run, with the reason.
    pub skipped: Vec<String>,
}

/// Checks the kernels of `operations` that `pattern` asks for, and the C library beside them, at
/// `sizes` (empty: a choice of its own).
///
/// # Errors
/// A pattern that nothing answers to, wrong bytes, refused memory.
pub fn kernels(
    operations: &[Operation],
    pattern: Option<&str>,
    sizes: &[usize],
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Verified, LabError> {
    let others = operations.iter().map(|operation| libc_reference(*operation)).collect();
    check(select::kernels(operations, pattern)?, others, sizes, seed, progress)
}

/// Checks every kernel that a tuning may choose, the C library, and this library as it decides now.
///
/// # Errors
/// Wrong bytes, refused memory.
pub fn tuning(seed: u64, progress: &mut dyn Progress) -> Result<Verified, LabError> {
    let deployable = TABLE
        .iter()
        .filter(|kernel| kernel.deploy && OPERATIONS.contains(&kernel.operation()))
        .collect();
    let others = OPERATIONS
        .into_iter()
        .flat_map(|operation| [libc_reference(operation), library(operation)]);
    check(deployable, others.collect(), &[], seed, progress)
}

fn check(
    kernels: Vec<&'static Kernel>,
    others: Vec<Routine>,
    sizes: &[usize],
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Verified, LabError> {
    let (here, skipped) = select::runnable(kernels, Features::detect());
    if here.is_empty() {
        return Err(LabError::Nothing("this CPU can run none of the kernels chosen".to_owned()));
    }
    let routines: Vec<Routine> = here.iter().copied().map(Routine::from).chain(others).collect();
    let sizes = if sizes.is_empty() { sizes_for(&Machine::describe()) } else { sizes };
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let most = (MemoryBudget::process().left() / 2).saturating_sub(PAGE_SIZE) & !(PAGE_SIZE - 1);
    if let Some(&found) = sizes.iter().find(|size| **size == 0 || **size > most) {
        return Err(LabError::TooLarge { found, most, budget: MemoryBudget::process().limit() });
    }
    let room = (largest + PAGE_SIZE).next_multiple_of(PAGE_SIZE);
    let arena = Arena::new(2 * room, PagePolicy::Default, seed)?;
    let (dst, src) = (arena.as_mut_ptr(), arena.as_mut_ptr().wrapping_add(room));
    let calls = Cell::new(0);
    let (kernels, others) = (here.len(), routines.len() - here.len());
    progress.begin("verify", routines.len() as f64);
    for routine in &routines {
        let operation = routine.function.operation();
        let is_pages = matches!(operation, Operation::CopyPages | Operation::ZeroPages);
        let offsets = if is_pages { &[(0, 0)] } else { OFFSETS };
        for &size in sizes {
            for &(to, from) in offsets {
                let (dst, src) = (dst.wrapping_add(to), src.wrapping_add(from));
                // SAFETY: the arena is written when it is made and borrowed by nobody else; both
                // buffers lie in their halves of it, page-aligned for page operations; the routine
                // is the C library's, this library's or a kernel that this CPU can run.
                let verified = unsafe { verify(&routine.function, dst, src, size, &calls) };
                verified.map_err(|wrong| {
                    LabError::WrongBytes(format!(
                        "{}, {operation} of {size} bytes, {}: {} is {}, expected {}",
                        routine.name, wrong.case, wrong.what, wrong.found, wrong.expected
                    ))
                })?;
            }
        }
        if progress.cancelled() {
            return Err(LabError::Interrupted);
        }
        progress.advance(&routine.name, 1.0);
    }
    Ok(Verified { kernels, others, calls: calls.get(), skipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_chosen_is_called() {
        let both = [Operation::Copy, Operation::Zero];
        let done = kernels(&both, Some(r".*\.bytes"), &[100], 1, &mut ());
        let done = done.expect("the references are right");
        // Each at three pairs of offsets, one call each.
        assert_eq!((done.kernels, done.others, done.calls), (2, 2, 12));
    }

    #[test]
    fn an_emulated_cpu_is_spared_the_largest_size() {
        let mut machine = Machine::describe();
        machine.emulated = None;
        assert_eq!(sizes_for(&machine).last(), Some(&(1 << 20)));
        machine.emulated = Some("an emulator".to_owned());
        assert_eq!(sizes_for(&machine).last(), Some(&((64 << 10) + 37)));
    }

    #[test]
    fn nothing_chosen_is_refused() {
        assert!(kernels(&[Operation::Copy], Some("no.such"), &[], 1, &mut ()).is_err());
    }
}
