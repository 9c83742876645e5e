//! How far two tunings of one machine agree: cells of the grid with the same kernel, or with kernels
//! whose costs differ by at most 5 % in either of the two records: the lenient reading, since a kernel
//! that one of them did not measure there has no cost in it.

use anyhow::{Context, Result};
use cachewise::profile::{OPERATIONS, Profile, hints};
use cachewise_lab::tune::{EXPERIMENT, Evidence};
use cachewise_measure::{Row, record};
use std::path::Path;

/// Costs that differ by no more than this count as the same choice.
const TOLERANCE: f64 = 0.05;

/// Prints the share of cells in which both make the same choice, and every cell in which they do not.
pub fn run(first: &Path, second: &Path) -> Result<()> {
    let (a, b) = (Profile::read(first)?, Profile::read(second)?);
    let (of_a, of_b) = (evidence(first, &a)?, evidence(second, &b)?);
    let (mut same, mut near, mut cells) = (0, 0, 0);
    for operation in OPERATIONS {
        for &reuse in hints(operation) {
            // The octaves of the grid; sizes between them are measured where a crossover was found.
            let sizes = of_a.sizes(operation);
            let both = |size: &usize| size.is_power_of_two() && sizes.contains(size);
            for size in of_b.sizes(operation).into_iter().filter(both) {
                let chosen = |profile: &Profile| {
                    profile
                        .decisions
                        .iter()
                        .find(|d| {
                            d.operation == operation
                                && d.reuse == reuse
                                && (d.from..=d.to).contains(&(size as u64))
                        })
                        .map(|d| d.kernel.clone())
                };
                let (Some(ours), Some(theirs)) = (chosen(&a), chosen(&b)) else { continue };
                cells += 1;
                if ours == theirs {
                    same += 1;
                    continue;
                }
                let costs = |evidence: &Evidence| {
                    let at = evidence.at(operation, reuse, size);
                    let cost = |name: &str| {
                        at.costs.iter().find(|cost| cost.kernel == name).map(|cost| cost.ratio)
                    };
                    Some((cost(&ours)?, cost(&theirs)?))
                };
                let known = [costs(&of_a), costs(&of_b)];
                let is_near = |(x, y): (f64, f64)| (x / y - 1.0).abs() <= TOLERANCE;
                if known.into_iter().flatten().any(is_near) {
                    near += 1;
                } else {
                    println!(
                        "{operation} {} {size}: {ours} against {theirs} {known:.3?}",
                        reuse.name()
                    );
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

/// The rows a profile was decided from, beside it.
fn evidence(path: &Path, profile: &Profile) -> Result<Evidence> {
    let named = profile.record.as_ref().context("the profile names no record")?;
    let record = record::read(&path.with_file_name(&named.name))?;
    let rows: Vec<Row> =
        record.rows.into_iter().filter(|row| row.experiment == EXPERIMENT).collect();
    Ok(Evidence::new(&rows))
}
