//! Several threads for one call: from what size on they pay. Visited over the whole race like every other
//! cell, and decided by the same bounds: a second CPU that somebody else had for some seconds is one
//! round among many.

use super::estimate::{Estimate, GUARD};
use super::rounds::{Evidence, Purpose};
use super::seam::{Arm, Cell, Destination, Threads};
use super::visits::Candidate;
use cachewise::profile::{PARALLEL, Parallel, Supply};
use cachewise_kernels::Operation;
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// Below this a thread costs more than the call.
const FROM: usize = 256 << 10;

/// One cell: an operation, a size, and where threads come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crew {
    pub operation: Operation,
    pub size: usize,
    pub supply: Supply,
}

impl Crew {
    /// Who takes part, by name: one thread as the reference, then more.
    pub(super) fn candidates(&self, cpus: usize) -> (Candidate, Vec<(String, Candidate)>) {
        let by = |count: usize| {
            let threads = Threads { count, supply: self.supply };
            let cell = Cell::new(self.operation, self.size, Destination::Cached);
            (Cell { threads, ..cell }, Arm::Library)
        };
        (by(1), counts(cpus).into_iter().map(|count| (count.to_string(), by(count))).collect())
    }
}

/// Every second octave, both supplies.
pub(super) fn crews(cpus: usize, top: usize) -> Vec<Crew> {
    let sizes = std::iter::successors(Some(FROM), |size| Some(4 * size));
    let sizes: Vec<usize> = sizes.take_while(|size| *size <= top && cpus > 1).collect();
    let of = |(operation, supply)| sizes.iter().map(move |&size| Crew { operation, size, supply });
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
    const LEAST: usize = 4;
    let mut lines = Vec::new();
    for (operation, supply) in supplied() {
        let of_it = |cell: &Cell| cell.operation == operation && cell.threads.supply == supply;
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
                if ratios.len() < LEAST {
                    break;
                }
                let Estimate { mean, error, .. } = Estimate::of(&ratios, 0.0);
                if mean > GUARD {
                    break;
                }
                if mean + 2.0 * error < -GUARD {
                    from = Some(cell.size as u64);
                }
            }
            lines.push(Parallel { operation, supply, threads, from });
            fewer = Some(name);
        }
    }
    lines
}
