//! Several threads for one call: from what size on they pay. Visited over the whole race like every other
//! cell, and decided by the same bounds: a second CPU that somebody else had for some seconds is one
//! round among many.

use super::field::{GUARD, robust_mean, scatter};
use super::rounds::{Evidence, Purpose};
use super::seam::{Arm, Cell, Destination, Threads};
use super::visits::Candidate;
use cachewise::profile::{PARALLEL, Parallel, Supply};
use cachewise_kernels::Operation;

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
    /// Who takes part: one thread as the reference, then more.
    pub(super) fn candidates(&self, cpus: usize) -> (Candidate, Vec<Candidate>) {
        let by = |count: usize| Candidate {
            cell: Cell {
                threads: Threads { count, supply: self.supply },
                ..Cell::new(self.operation, self.size, Destination::Cached)
            },
            arm: Arm::Library,
            name: count.to_string(),
        };
        (by(1), counts(cpus).into_iter().map(by).collect())
    }
}

/// Every second octave, both supplies.
pub(super) fn crews(cpus: usize, top: usize) -> Vec<Crew> {
    let mut crews = Vec::new();
    if cpus < 2 {
        return crews;
    }
    for operation in PARALLEL {
        for supply in Supply::ALL {
            let sizes = std::iter::successors(Some(FROM), |size| Some(4 * size));
            let sizes = sizes.take_while(|size| *size <= top);
            crews.extend(sizes.map(|size| Crew { operation, size, supply }));
        }
    }
    crews
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
    for operation in PARALLEL {
        for supply in Supply::ALL {
            let of_it = |cell: &Cell| cell.operation == operation && cell.threads.supply == supply;
            let logs: Vec<_> =
                evidence.of(Purpose::Threads).filter(|(cell, _)| of_it(cell)).collect();
            let mut counts: Vec<usize> = logs
                .iter()
                .flat_map(|(_, log)| log.others.keys())
                .filter_map(|name| name.parse().ok())
                .collect();
            counts.sort_unstable();
            counts.dedup();
            let mut fewer = 1;
            for threads in counts {
                let mut from = None;
                // Cells are in the order of sizes.
                for (cell, log) in logs.iter().rev() {
                    let smaller = (fewer > 1).then(|| log.others.get(&fewer.to_string()));
                    let ratios = log.reference.iter().enumerate().filter_map(|(round, one)| {
                        let at = |name: usize| {
                            log.others.get(&name.to_string())?.get(round).copied().flatten()
                        };
                        let base = if smaller.is_some() { at(fewer)? } else { *one };
                        Some((at(threads)?.operation / base.operation).ln())
                    });
                    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
                    const LEAST: usize = 4;
                    if ratios.len() < LEAST {
                        break;
                    }
                    let mean = robust_mean(&ratios);
                    let off: Vec<f64> = ratios.iter().map(|ratio| ratio - mean).collect();
                    let error = scatter(&off) / (ratios.len() as f64).sqrt();
                    if mean > GUARD {
                        break;
                    }
                    if mean + 2.0 * error < -GUARD {
                        from = Some(cell.size as u64);
                    }
                }
                lines.push(Parallel { operation, supply, threads: threads as u32, from });
                fewer = threads;
            }
        }
    }
    lines
}
