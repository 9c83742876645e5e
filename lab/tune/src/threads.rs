//! Several threads for one call: from what size on they pay. Visited over the whole race like every other
//! cell, and decided by the same bounds: a second CPU that somebody else had for some seconds is one
//! round among many.

use super::rounds::{Evidence, Purpose};
use super::seam::{Arm, Destination, Threads, TuningCell};
use super::visits::Candidate;
use cachewise::profile::{PARALLEL, Parallel, Supply};
use cachewise_judge::estimate::{Estimate, Sure};
use cachewise_judge::margin::{GUARD, LEAST_BESIDE};
use cachewise_kernels::Operation;
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// Below this a thread costs more than the call.
const FROM: usize = 256 << 10;

/// Candidates of a cell, by name: more threads than its one.
pub(super) fn candidates(cell: TuningCell, cpus: usize) -> Vec<(String, Candidate)> {
    let by = |count: usize| {
        let threads = Threads { count, ..cell.threads };
        (count.to_string(), (TuningCell { threads, ..cell }, Arm::Library))
    };
    counts(cpus).into_iter().map(by).collect()
}

/// The cells of one thread: every second octave, both supplies.
pub(super) fn cells(cpus: usize, top: usize) -> Vec<TuningCell> {
    let sizes = std::iter::successors(Some(FROM), |size| Some(4 * size));
    let sizes: Vec<usize> = sizes.take_while(|size| *size <= top && cpus > 1).collect();
    let of = |(operation, supply)| {
        let threads = Threads { count: 1, supply };
        let cell = move |size: &usize| TuningCell::new(operation, *size, Destination::Cached);
        sizes.iter().map(cell).map(move |cell| TuningCell { threads, ..cell })
    };
    supplied().flat_map(of).collect()
}

fn supplied() -> impl Iterator<Item = (Operation, Supply)> {
    PARALLEL.into_iter().flat_map(|operation| Supply::ALL.map(|supply| (operation, supply)))
}

/// Numbers of threads that are tried: powers of two, and all.
fn counts(cpus: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2), |count| Some(2 * count));
    let mut counts: Vec<usize> = powers.take_while(|count| *count < cpus).collect();
    counts.push(cpus);
    counts
}

/// From what size on each number of threads is shown to be faster than the next smaller one: there,
/// and at no larger size is it shown to be slower.
pub(super) fn paying(evidence: &Evidence) -> Vec<Parallel> {
    let mut lines = Vec::new();
    for (operation, supply) in supplied() {
        let of_it =
            |cell: &TuningCell| cell.operation == operation && cell.threads.supply == supply;
        let logs: Vec<_> = evidence.of(Purpose::Threads).filter(|(cell, _)| of_it(cell)).collect();
        let names = logs.iter().flat_map(|(_, log)| log.others.keys());
        let counts: BTreeSet<u32> = names.filter_map(|name| name.parse().ok()).collect();
        let mut fewer: Option<String> = None;
        for threads in counts {
            let name = threads.to_string();
            let mut from = None;
            // Cells are in the order of sizes.
            for (cell, log) in logs.iter().rev() {
                let ratios = match &fewer {
                    None => log.log_ratios(&name),
                    Some(fewer) => log.log_ratios_over(&name, fewer),
                };
                if ratios.len() < LEAST_BESIDE {
                    break;
                }
                let seen = Estimate::of(&ratios, 0.0);
                if seen.mean > GUARD {
                    break;
                }
                if seen.high(Sure::Shown) < -GUARD {
                    from = Some(cell.size as u64);
                }
            }
            lines.push(Parallel { operation, supply, threads, from });
            fewer = Some(name);
        }
    }
    lines
}
