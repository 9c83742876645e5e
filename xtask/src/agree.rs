//! How far two tunings of one machine agree: log-spaced sizes with the same kernel, or with kernels whose
//! times differ by at most 3 % in either of the two records; and how far by the records' intervals, as hosts of a
//! fleet are asked.

use anyhow::{Context, Result};
use cachewise::profile::{FIRST_SIZE, LIBC, OPERATIONS, Profile, hints};
use cachewise_measure::agreement::{LogRatio, TOLERANCE};
use cachewise_measure::stats::geometric_mean;
use cachewise_measure::{Row, record};
use std::fmt::Write as _;
use std::path::Path;

/// The largest size that is looked at, as a power of two.
const LARGEST: u32 = 26;

/// Prints the share of cells in which both make the same choice, and every cell in which they do not.
pub fn run(first: &Path, second: &Path) -> Result<()> {
    print!("{}", compared(&[tuning(first)?, tuning(second)?]));
    Ok(())
}

/// A profile, and the rows it was decided from.
struct Tuning {
    profile: Profile,
    rows: Vec<Row>,
}

/// A line for every cell in which the choices differ, and the shares.
fn compared(tunings: &[Tuning; 2]) -> String {
    let (mut text, mut same, mut near, mut allowed, mut cells) = (String::new(), 0, 0, 0, 0);
    for operation in OPERATIONS {
        for &reuse in hints(operation) {
            for size in (FIRST_SIZE.ilog2()..=LARGEST).map(|octave| 1 << octave) {
                let [ours, theirs] = tunings.each_ref().map(|Tuning { profile, .. }| {
                    let chosen = profile.decisions.iter().find(|d| {
                        let same = d.operation == operation && d.reuse == reuse;
                        same && (d.from..=d.to).contains(&size)
                    });
                    chosen.map(|decision| &decision.kernel)
                });
                let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
                cells += 1;
                if ours == theirs {
                    same += 1;
                    continue;
                }
                let costs = tunings.each_ref().map(|Tuning { rows, .. }| {
                    let of = |kernel| cost(rows, operation.name(), size, kernel);
                    Some((of(ours)?, of(theirs)?))
                });
                let is_near = costs.iter().flatten().any(|(x, y)| (x / y - 1.0).abs() <= TOLERANCE);
                let may_be_near = tunings.iter().any(|Tuning { rows, .. }| {
                    let of = |kernel| shown(rows, operation.name(), size, kernel);
                    matches!((of(ours), of(theirs)), (Some(x), Some(y)) if x.over(y).may_be_level())
                });
                near += usize::from(is_near);
                allowed += usize::from(may_be_near);
                if !is_near {
                    let reuse = reuse.name();
                    let why = if may_be_near { " (within the intervals)" } else { "" };
                    let line = format!("{operation} {reuse} {size}: {ours} against {theirs}");
                    let _ = writeln!(text, "{line} {costs:.3?}{why}");
                }
            }
        }
    }
    let share = |alike: usize| (same + alike) as f64 / cells.max(1) as f64 * 100.0;
    let (percent, apart) = (TOLERANCE * 100.0, cells - same - near);
    let _ = writeln!(
        text,
        "{cells} cells: {same} the same kernel, {near} within {percent:.0} %, {apart} apart: {:.1} % agree",
        share(near)
    );
    if allowed != near {
        let apart = cells - same - allowed;
        let _ = writeln!(
            text,
            "by the records' 95 % intervals: {same} the same kernel, {allowed} within {percent:.0} %, {apart} apart: \
             {:.1} % agree",
            share(allowed)
        );
    }
    text
}

/// The rows of a kernel at the measured size nearest to one.
fn nearest<'r>(
    rows: &'r [Row],
    operation: &str,
    size: u64,
    kernel: &str,
    counts: fn(u64) -> bool,
) -> Vec<&'r Row> {
    let of_it = |row: &&Row| {
        row.cell.operation == operation && row.candidate == kernel && counts(row.cell.size)
    };
    let off = |row: &Row| (row.cell.size as f64 / size as f64).ln().abs();
    let nearest = rows.iter().filter(of_it).min_by(|a, b| off(a).total_cmp(&off(b)));
    let here = |row: &&Row| nearest.is_some_and(|nearest| nearest.cell.size == row.cell.size);
    rows.iter().filter(of_it).filter(here).collect()
}

/// A kernel's time over libc's at the measured size nearest to one, in the mean over its states.
fn cost(rows: &[Row], operation: &str, size: u64, kernel: &str) -> Option<f64> {
    if kernel == LIBC {
        return Some(1.0);
    }
    let here = nearest(rows, operation, size, kernel, |_| true);
    let ratios = here.iter().filter_map(|row| row.total_ratio.or(row.ratio));
    let ratios: Vec<f64> = ratios.map(|ratio| ratio.median).collect();
    (!here.is_empty()).then(|| geometric_mean(&ratios))
}

/// The same with its error, as a fleet knows it of a host.
fn shown(rows: &[Row], operation: &str, size: u64, kernel: &str) -> Option<LogRatio> {
    if kernel == LIBC {
        return Some(LogRatio::REFERENCE);
    }
    let here = nearest(rows, operation, size, kernel, u64::is_power_of_two);
    let states = here.into_iter().filter_map(|row| {
        let mut of_cell = rows.iter().filter(|other| other.cell == row.cell);
        let reference = of_cell.find(|other| other.candidate == row.reference)?;
        LogRatio::of_rounds(&row.total_ns(), &reference.total_ns())
    });
    LogRatio::mean(&states.collect::<Vec<_>>())
}

/// A profile, and the rows of the race beside it.
fn tuning(path: &Path) -> Result<Tuning> {
    let profile = Profile::read(path)?;
    let named = profile.record.as_ref().context("the profile names no record")?;
    let record = record::read(&path.with_file_name(&named.name))?;
    let rows = record.rows.into_iter().filter(|row| row.experiment == "tune" && !row.dropped);
    Ok(Tuning { profile, rows: rows.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise::Reuse;
    use cachewise::profile::Decision;
    use cachewise_measure::{CellKey, PairedRatio};

    /// A tuning that chose a kernel for copies of all sizes, and saw kernels take so much of libc's time, in rounds
    /// that lie so far apart.
    fn tuning(chosen: &str, seen: [(&str, f64); 2], apart: f64) -> Tuning {
        let copy = OPERATIONS.into_iter().find(|operation| operation.name() == "copy");
        let sizes = (FIRST_SIZE, u64::MAX);
        let all = Decision::new(copy.expect("copies"), Reuse::Unknown, sizes, chosen);
        let profile = Profile { decisions: vec![all], ..Profile::here() };
        let libc = vec![100.0; 8];
        let row = |candidate: &str, times: Vec<f64>| {
            let cell = CellKey::new("copy", 4096, "aligned");
            let ratio = PairedRatio::paired(&times, &libc);
            Row::new("tune", cell, candidate, "libc", times).with_ratio(ratio)
        };
        let times = |ratio: f64| {
            (0..8).map(move |round| 100.0 * ratio * f64::powi(1.0 + apart, round % 2 * 2 - 1))
        };
        let others = seen.into_iter().map(|(name, ratio)| row(name, times(ratio).collect()));
        let rows = std::iter::once(row("libc", libc.clone())).chain(others).collect();
        Tuning { profile, rows }
    }

    #[test]
    fn both_figures_are_told_where_they_differ() {
        let seen = [("copy.avx", 0.90), ("copy.avx512", 0.95)];
        let told = |one: &str, other: &str, apart: f64| {
            compared(&[tuning(one, seen, apart), tuning(other, seen, apart)])
        };
        let same = told("copy.avx", "copy.avx", 0.1);
        assert_eq!(same, "19 cells: 19 the same kernel, 0 within 3 %, 0 apart: 100.0 % agree\n");
        let far = told("copy.avx", "copy.avx512", 0.0);
        assert!(
            far.ends_with("19 cells: 0 the same kernel, 0 within 3 %, 19 apart: 0.0 % agree\n"),
            "{far}"
        );
        assert!(
            far.contains("copy unknown 4096: copy.avx against copy.avx512 ")
                && !far.contains("intervals")
        );
        let noisy = told("copy.avx", "copy.avx512", 0.1);
        let both = "0 within 3 %, 19 apart: 0.0 % agree\nby the records' 95 % intervals: 0 the same kernel, 19 within 3 %, 0 apart: 100.0 % agree\n";
        assert!(noisy.ends_with(both) && noisy.contains(" (within the intervals)\n"), "{noisy}");
        // libc is its own reference, and what was not measured is not near.
        assert!(told("libc", "copy.avx", 0.0).contains("0 within 3 %, 19 apart"));
        assert!(!told("copy.sse2", "copy.avx", 0.1).contains("intervals"));
    }

    /// One record's figures are enough, as one host's are.
    #[test]
    fn either_record_may_allow_it() {
        let clear = tuning("copy.avx", [("copy.avx", 0.8), ("copy.avx512", 0.9)], 0.0);
        let near = tuning("copy.avx512", [("copy.avx", 0.9), ("copy.avx512", 0.91)], 0.0);
        assert!(compared(&[clear, near]).ends_with("19 within 3 %, 0 apart: 100.0 % agree\n"));
    }
}
