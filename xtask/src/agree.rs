//! How far two tunings of one machine agree: log-spaced sizes with the same kernel, or with kernels whose
//! times differ by at most 3 % in either of the two records.

use anyhow::{Context, Result};
use cachewise::profile::{FIRST_SIZE, LIBC, OPERATIONS, Profile, hints};
use cachewise_measure::stats::geometric_mean;
use cachewise_measure::{Row, record};
use std::path::Path;

/// Times that differ by no more than this count as the same choice.
const TOLERANCE: f64 = 0.03;
/// The largest size that is looked at, as a power of two.
const LARGEST: u32 = 26;

/// Prints the share of cells in which both make the same choice, and every cell in which they do not.
pub fn run(first: &Path, second: &Path) -> Result<()> {
    let tunings = [tuning(first)?, tuning(second)?];
    let (mut same, mut near, mut cells) = (0, 0, 0);
    for operation in OPERATIONS {
        for &reuse in hints(operation) {
            for size in (FIRST_SIZE.ilog2()..=LARGEST).map(|octave| 1 << octave) {
                let [ours, theirs] = tunings.each_ref().map(|(profile, _)| {
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
                let costs = tunings.each_ref().map(|(_, rows)| {
                    let of = |kernel| cost(rows, operation.name(), size, kernel);
                    Some((of(ours)?, of(theirs)?))
                });
                if costs.iter().flatten().any(|(x, y)| (x / y - 1.0).abs() <= TOLERANCE) {
                    near += 1;
                } else {
                    let reuse = reuse.name();
                    println!("{operation} {reuse} {size}: {ours} against {theirs} {costs:.3?}");
                }
            }
        }
    }
    println!(
        "{cells} cells: {same} the same kernel, {near} within {:.0} %, {} apart: {:.1} % agree",
        TOLERANCE * 100.0,
        cells - same - near,
        f64::from(same + near) / f64::from(cells.max(1)) * 100.0
    );
    Ok(())
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
    let ratios = here.filter_map(|row| row.total_ratio.or(row.ratio)).map(|ratio| ratio.median);
    Some(geometric_mean(&ratios.collect::<Vec<_>>()))
}

/// A profile, and the rows it was decided from, beside it.
fn tuning(path: &Path) -> Result<(Profile, Vec<Row>)> {
    let profile = Profile::read(path)?;
    let named = profile.record.as_ref().context("the profile names no record")?;
    let record = record::read(&path.with_file_name(&named.name))?;
    let rows = record.rows.into_iter().filter(|row| row.experiment == "tune" && !row.dropped);
    Ok((profile, rows.collect()))
}
