//! Parts of a tuning's record besides rows: the decisions with their reasons, and how it is drawn.

use super::ranges::MOST_RANGES;
use super::seam::{After, Layout};
use super::tuning::{Ruling, Tuning};
use cachewise::Reuse;
use cachewise::profile::{LIBC, MAX_SIZE};
use cachewise_kernels::Operation;
use cachewise_measure::record::{Decision, Decisions, ThreadDecision};
use cachewise_measure::stats::median;
use cachewise_measure::{Figure, PairedRatio};
use std::collections::BTreeSet;

/// Decisions for the record's line of decisions.
#[must_use]
pub fn decisions(tuning: &Tuning) -> Decisions {
    let kernels = tuning.decisions.iter().map(|decision| {
        let inside = |size: usize| (decision.from..=decision.to).contains(&(size as u64));
        let seen = tuning.refereed.iter().filter(|seen| {
            let beside = matches!(seen.cell.after, After::Bystander(_));
            seen.in_use
                && (!beside || decision.reuse == Reuse::Never)
                && seen.cell.operation == decision.operation
                && inside(seen.cell.size)
                && seen.name == decision.kernel
                && seen.verdict == Ruling::Kept
        });
        let seen: Vec<f64> = seen.map(|seen| seen.ratio).collect();
        let why = if decision.kernel == LIBC {
            let taken = tuning.repairs.iter().filter(|repair| {
                repair.operation == decision.operation
                    && [Reuse::Unknown, decision.reuse].contains(&repair.reuse)
                    && inside(repair.size)
            });
            let taken: BTreeSet<&str> = taken.map(|repair| &*repair.kernel).collect();
            let over = tuning
                .passed_over
                .iter()
                .filter(|(operation, size, _)| *operation == decision.operation && inside(*size));
            let over: Vec<_> = over.collect();
            let mut why = match over[..] {
                [] => "no kernel was shown to be faster and to lose nowhere".to_owned(),
                [(_, first, _), .., (_, last, _)] => {
                    left_out(&format!("some sizes from {first} to {last}"), &over)
                }
                [(_, only, _)] => left_out(&only.to_string(), &over),
            };
            if !taken.is_empty() {
                let taken: Vec<&str> = taken.into_iter().collect();
                why += &format!("; not confirmed beside libc: {}", taken.join(", "));
            }
            if let Some(nearest) = &decision.nearest {
                why += &format!("; the nearest is {nearest}");
            }
            Some(why)
        } else {
            (!seen.is_empty()).then(|| format!("checked in {} cells", seen.len()))
        };
        Decision {
            operation: decision.operation.name().to_owned(),
            reuse: decision.reuse.name().to_owned(),
            from: decision.from,
            to: (decision.to != MAX_SIZE).then_some(decision.to),
            kernel: decision.kernel.clone(),
            ratio: (!seen.is_empty()).then(|| PairedRatio {
                median: median(&seen),
                low: seen.iter().copied().fold(f64::INFINITY, f64::min),
                high: seen.iter().copied().fold(0.0, f64::max),
                rounds: seen.len(),
            }),
            why,
        }
    });
    let threads = tuning.parallel.iter().map(|line| ThreadDecision {
        operation: line.operation.name().to_owned(),
        supply: line.supply.name().to_owned(),
        threads: line.threads,
        from: line.from,
    });
    Decisions { kernels: kernels.collect(), threads: threads.collect() }
}

/// Why libc was decided for where kernels were shown to be faster.
fn left_out(sizes: &str, over: &[&(Operation, usize, String)]) -> String {
    let kernels: BTreeSet<&str> = over.iter().map(|(.., name)| &**name).collect();
    let kernels: Vec<&str> = kernels.into_iter().collect();
    format!(
        "{} gained something at {sizes} bytes, too little for one more range ({MOST_RANGES} at most)",
        kernels.join(" or ")
    )
}

/// How a tuning's rows are drawn.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let title = "Operation and reader over libc's, operands on lines";
    vec![Figure::curve(title, "size", "total_ratio").of(Layout::Aligned.name())]
}
