//! Agreement of two tunings of one machine: log-spaced sizes with the same kernel, or with kernels whose
//! times differ by at most 3 % in either of the two records.

use anyhow::{Context, Result};
use cachewise::profile::{FIRST_SIZE, LIBC, OPERATIONS, Profile, hints};
use cachewise_measure::stats::geometric_mean;
use cachewise_measure::{Row, record};
use std::fmt::Write as _;
use std::path::Path;

/// The largest size that is looked at, as a power of two.
const LARGEST: u32 = 26;

/// Times that differ by no more than this count as the same choice.
const TOLERANCE: f64 = 0.03;

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
    let (mut text, mut same, mut near, mut cells) = (String::new(), 0, 0, 0);
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
                near += usize::from(is_near);
                if !is_near {
                    let reuse = reuse.name();
                    let line = format!("{operation} {reuse} {size}: {ours} against {theirs}");
                    let _ = writeln!(text, "{line} {costs:.3?}");
                }
            }
        }
    }
    let share = (same + near) as f64 / cells.max(1) as f64 * 100.0;
    let (percent, apart) = (TOLERANCE * 100.0, cells - same - near);
    let _ = writeln!(
        text,
        "{cells} cells: {same} the same kernel, {near} within {percent:.0} %, {apart} apart: {share:.1} % agree"
    );
    text
}

/// A kernel's time over libc's at the measured size nearest to one, in the mean over its states.
fn cost(rows: &[Row], operation: &str, size: u64, kernel: &str) -> Option<f64> {
    if kernel == LIBC {
        return Some(1.0);
    }
    let of_it = |row: &&Row| row.cell.operation == operation && row.candidate == kernel;
    let off = |row: &Row| (row.cell.size as f64 / size as f64).ln().abs();
    let nearest = rows.iter().filter(of_it).min_by(|a, b| off(a).total_cmp(&off(b)))?.cell.size;
    let here = rows.iter().filter(of_it).filter(|row| row.cell.size == nearest);
    let ratios = here.filter_map(|row| row.total_ratio.or(row.ratio));
    Some(geometric_mean(&ratios.map(|ratio| ratio.median).collect::<Vec<_>>()))
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

    /// A tuning that chose a kernel for copies of all sizes, and saw kernels take these parts of libc's time.
    fn tuning(chosen: &str, seen: &[(&str, f64)]) -> Tuning {
        let copy = OPERATIONS.into_iter().find(|one| one.name() == "copy").expect("copies");
        let all = Decision::new(copy, Reuse::Unknown, (FIRST_SIZE, u64::MAX), chosen);
        let profile = Profile { decisions: vec![all], ..Profile::here() };
        let row = |(candidate, ratio): &(&str, f64)| {
            let cell = CellKey::new("copy", 4096, "aligned");
            let ratio = PairedRatio::paired(&[100.0 * ratio; 8], &[100.0; 8]);
            Row::new("tune", cell, candidate, "libc", vec![100.0; 8]).with_ratio(ratio)
        };
        Tuning { profile, rows: seen.iter().map(row).collect() }
    }

    #[test]
    fn choices_agree_where_either_record_has_near_times() {
        let [far, near] = [0.90, 0.99].map(|other| [("copy.avx", 1.0), ("copy.avx512", other)]);
        for (one, other, records, expected) in [
            ("copy.avx", "copy.avx", [far, far], "100.0 % agree"),
            ("copy.avx", "copy.avx512", [far, far], "19 apart: 0.0 % agree"),
            ("copy.avx", "copy.avx512", [far, near], "19 within 3 %, 0 apart: 100.0 % agree"),
            // What was not measured is not near; libc is its own reference.
            ("copy.sse2", "copy.avx", [near, near], "19 apart: 0.0 % agree"),
            ("libc", "copy.avx512", [near, near], "19 within 3 %, 0 apart: 100.0 % agree"),
        ] {
            let told = compared(&[tuning(one, &records[0]), tuning(other, &records[1])]);
            assert!(told.trim_end().ends_with(expected), "{one} {other}: {told}");
        }
    }
}
