//! What a tuning adds to its record besides rows: the decisions with their reasons, and how it is drawn.

use super::seam::After;
use super::tuning::{Ruling, Tuning};
use cachewise::Reuse;
use cachewise::profile::{LIBC, MAX_SIZE};
use cachewise_measure::record::{Decision, Decisions, ThreadDecision};
use cachewise_measure::{Figure, FigureKind, PairedRatio};

/// What was decided, for the record's line of decisions.
#[must_use]
pub fn decisions(tuning: &Tuning) -> Decisions {
    let kernels = tuning.decisions.iter().map(|decision| {
        let seen = tuning.refereed.iter().filter(|seen| {
            let size = seen.cell.size as u64;
            let beside = matches!(seen.cell.after, After::Bystander(_));
            seen.in_use
                && (!beside || decision.reuse == Reuse::Never)
                && seen.cell.operation == decision.operation
                && (decision.from..=decision.to).contains(&size)
                && seen.name == decision.kernel
        });
        let seen: Vec<f64> =
            seen.filter(|seen| seen.verdict == Ruling::Kept).map(|seen| seen.ratio).collect();
        let (cells, worst) = (seen.len(), seen.iter().copied().fold(0.0, f64::max));
        let best = seen.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = cachewise_measure::stats::geometric_mean(&seen);
        let why = if decision.kernel == LIBC {
            let nearest = decision.nearest.as_ref();
            let nearest = nearest.map(|name| format!("; the nearest is {name}"));
            let nearest = nearest.unwrap_or_default();
            let mut taken: Vec<&str> = Vec::new();
            for repair in &tuning.repairs {
                let inside = (decision.from..=decision.to).contains(&(repair.size as u64));
                let hint = [Reuse::Unknown, decision.reuse].contains(&repair.reuse);
                if repair.operation == decision.operation && hint && inside {
                    taken.push(&repair.kernel);
                }
            }
            taken.sort_unstable();
            taken.dedup();
            let failed = match &taken[..] {
                [] => String::new(),
                some => format!("; not confirmed beside libc: {}", some.join(", ")),
            };
            Some(format!("no kernel was shown to be faster and to lose nowhere{failed}{nearest}"))
        } else if cells > 0 {
            Some(format!("checked in {cells} cells"))
        } else {
            None
        };
        Decision {
            operation: decision.operation.name().to_owned(),
            reuse: decision.reuse.name().to_owned(),
            from: decision.from,
            to: (decision.to != MAX_SIZE).then_some(decision.to),
            kernel: decision.kernel.clone(),
            ratio: (cells > 0).then_some(PairedRatio {
                median: mean,
                low: best,
                high: worst,
                rounds: cells,
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

/// How a tuning's rows are drawn.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let figure = |title: &str, value: &str, state: &str| Figure {
        title: title.to_owned(),
        kind: FigureKind::Curve,
        x: "size".to_owned(),
        y: None,
        value: value.to_owned(),
        panels: Vec::new(),
        candidates: Vec::new(),
        states: state.to_owned(),
    };
    vec![figure("Operation and reader over libc's, operands on lines", "total_ratio", "aligned")]
}
