//! What several experiments share: options that mean nothing to them are refused, cells that do
//! not fit are noted, and candidates of one cell are compared with each other. The comparisons
//! are pure.

use super::Setting;
use crate::LabError;
use crate::bench::{MARGIN, Question};
use crate::evidence::whole;
use crate::select;
use cachewise_kernels::{Features, Kernel, Operation, TABLE, find};
use cachewise_measure::{Candidate, CellKey, MeasureError, PairedRatio, Row, Verdict};

/// Refuses `--residency` where the experiment's own loop decides where lines are.
pub(super) fn refuse_placements(setting: &Setting<'_>, why: &str) -> Result<(), LabError> {
    let Some((source, destination)) = setting.options.placements.first() else { return Ok(()) };
    Err(LabError::Unsuited {
        option: "--residency",
        found: format!("{source}:{destination}"),
        accepted: format!("no residency here ({why})"),
    })
}

/// Refuses sizes that are not whole pages.
pub(super) fn whole_pages(sizes: &[usize]) -> Result<(), LabError> {
    match sizes.iter().find(|size| !size.is_multiple_of(cachewise_kernels::PAGE_SIZE)) {
        None => Ok(()),
        Some(found) => Err(LabError::Unsuited {
            option: "--size",
            found: found.to_string(),
            accepted: "whole pages of 4096 bytes".to_owned(),
        }),
    }
}

/// The kernels of these names; where this architecture has none of them, the deployable ones of
/// the operation.
pub(super) fn listed(names: &[&str], operation: Operation) -> Vec<&'static Kernel> {
    let listed: Vec<_> = names.iter().filter_map(|name| find(name)).collect();
    if !listed.is_empty() {
        return listed;
    }
    let deployable = |kernel: &&Kernel| {
        kernel.operation() == operation && kernel.deploy && kernel.technique() != "bytes"
    };
    TABLE.iter().filter(deployable).collect()
}

/// Those that this CPU runs; a note for each other, and none at all is an error.
pub(super) fn present(
    setting: &mut Setting<'_>,
    kernels: Vec<&'static Kernel>,
) -> Result<Vec<&'static Kernel>, LabError> {
    let (here, absent) = select::runnable(kernels, setting.bench.features);
    for (kernel, reason) in &absent {
        (setting.notes)(format!("skipped {}: {reason}", kernel.name))?;
    }
    if here.is_empty() {
        return Err(LabError::Nothing {
            why: "this CPU can run none of the kernels chosen".to_owned(),
        });
    }
    Ok(here)
}

/// The widest straight kernels here, through and around the cache.
pub(super) fn widest(
    operation: Operation,
    features: Features,
) -> Option<(&'static Kernel, &'static Kernel)> {
    ["avx512", "avx", "sse2", "neon"].into_iter().find_map(|technique| {
        let kernel = |suffix: &str| {
            find(&format!("{operation}.{technique}{suffix}"))
                .filter(|kernel| kernel.runs_on(features))
        };
        Some((kernel("")?, kernel(".nt")?))
    })
}

/// How a cell ended.
pub(super) enum Measured {
    /// Its rows, one per candidate.
    Rows(Vec<Row>),
    /// It does not fit this machine; a note says so.
    Skipped,
    /// The user stopped it.
    Interrupted,
}

/// Asks one question of an experiment's own candidates.
pub(super) fn measure(
    setting: &mut Setting<'_>,
    question: &Question<'_>,
    candidates: &mut [&mut dyn Candidate],
) -> Result<Measured, LabError> {
    let answered = setting.bench.ask_with(question, candidates, setting.observer);
    sorted_out(setting, question, answered)
}

/// Asks one question of plain routines.
pub(super) fn measure_routines(
    setting: &mut Setting<'_>,
    question: &Question<'_>,
) -> Result<Measured, LabError> {
    let answered = setting.bench.ask(question, setting.observer);
    sorted_out(setting, question, answered)
}

fn sorted_out(
    setting: &mut Setting<'_>,
    question: &Question<'_>,
    answered: Result<crate::bench::Answer, LabError>,
) -> Result<Measured, LabError> {
    match answered {
        Err(LabError::Measure(
            error @ (MeasureError::DoesNotFit { .. } | MeasureError::OverBudget { .. }),
        )) => {
            let state = question.state.label();
            (setting.notes)(format!("skipped {} {state}: {error}", question.operation))?;
            Ok(Measured::Skipped)
        }
        Ok(answer) if answer.interrupted => Ok(Measured::Interrupted),
        Ok(answer) => Ok(Measured::Rows(answer.rows)),
        Err(error) => Err(error),
    }
}

/// Rows by cell, in the order the cells appear.
pub(super) fn cells(rows: &[Row]) -> Vec<(&CellKey, Vec<&Row>)> {
    let mut cells: Vec<(&CellKey, Vec<&Row>)> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|(key, _)| **key == row.cell) {
            Some((_, of_cell)) => of_cell.push(row),
            None => cells.push((&row.cell, vec![row])),
        }
    }
    cells
}

/// A candidate of one cell by name.
pub(super) fn named<'r>(of_cell: &[&'r Row], name: &str) -> Option<&'r Row> {
    of_cell.iter().copied().find(|row| row.candidate == name)
}

/// Whole cost of one candidate over another's of the same rounds of one cell.
pub(super) fn versus(of_cell: &[&Row], ours: &str, theirs: &str) -> Option<PairedRatio> {
    let (ours, theirs) = (whole(named(of_cell, ours)?), whole(named(of_cell, theirs)?));
    Some(PairedRatio::new(&ours, &theirs, 0))
}

/// What a paired ratio says by the margin of all verdicts.
pub(super) fn says(pair: PairedRatio) -> Verdict {
    pair.verdict(MARGIN)
}

/// A claim of a source document against what was found.
pub(super) fn claim(claimed: Verdict, found: PairedRatio) -> &'static str {
    match says(found) {
        Verdict::CannotTell => "cannot tell here",
        found if found == claimed => "still true",
        _ => "no longer true here",
    }
}

/// `1.32 (1.28 .. 1.36) times as long`.
pub(super) fn times(pair: PairedRatio) -> String {
    format!("{:.2} ({:.2} .. {:.2}) times as long", pair.median, pair.low, pair.high)
}

/// The kernel of that name with ordinary stores, for a kernel around the cache: `copy.avx` for
/// `copy.avx.nt`.
pub(super) fn temporal_twin(kernel: &Kernel) -> Option<&'static Kernel> {
    match kernel.name {
        // movntps and movnti have no copy in their own technique that is not prefetched.
        "copy.sse.nt" => find("copy.sse2.movdqa"),
        name => find(&name.replacen(".nt", "", 1)).filter(|twin| !twin.is_non_temporal()),
    }
}

/// Rows as verdicts are tested on: made up, steady but for a little noise.
#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use std::collections::BTreeMap;

    /// A cell.
    pub(crate) fn cell(operation: &str, size: u64, state: &str) -> CellKey {
        CellKey {
            operation: operation.to_owned(),
            size,
            source: None,
            destination: None,
            state: state.into(),
            reader: None,
            bystander: None,
            axes: BTreeMap::new(),
        }
    }

    /// A candidate that takes that long in every round, up to one per mille.
    pub(crate) fn row(cell: &CellKey, candidate: &str, nanoseconds: f64) -> Row {
        noisy(cell, candidate, nanoseconds, 0.001)
    }

    /// One whose rounds differ by that much to either side.
    pub(crate) fn noisy(cell: &CellKey, candidate: &str, nanoseconds: f64, noise: f64) -> Row {
        let skew = candidate.len() as u64;
        let mut random = fastrand::Rng::with_seed(skew);
        let mut round = || nanoseconds * (1.0 + noise * (2.0 * random.f64() - 1.0));
        Row {
            experiment: "made-up".to_owned(),
            cell: cell.clone(),
            candidate: candidate.to_owned(),
            reference: "libc".to_owned(),
            calls: 1,
            operation_ns: (0..15).map(|_| round()).collect(),
            reader_ns: Vec::new(),
            bystander_ns: Vec::new(),
            ratio: None,
            verdict: None,
            total_ratio: None,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: BTreeMap::new(),
            histogram: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::{cell, noisy, row};
    use super::*;

    #[test]
    fn claims_are_true_false_or_open() {
        let cell = cell("zero", 4096, "warm");
        let rows = [row(&cell, "a", 100.0), row(&cell, "bb", 150.0), noisy(&cell, "c", 100.0, 0.3)];
        let of_cell: Vec<&Row> = rows.iter().collect();
        let slower = versus(&of_cell, "bb", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, slower), "still true");
        assert_eq!(claim(Verdict::Faster, slower), "no longer true here");
        let open = versus(&of_cell, "c", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, open), "cannot tell here");
        assert!(versus(&of_cell, "a", "absent").is_none());
        assert!(times(slower).starts_with("1.50 (1."), "{}", times(slower));
        assert!(times(slower).ends_with(") times as long"), "{}", times(slower));
    }

    #[test]
    fn twins_differ_in_their_stores_alone() {
        let twin = |name: &str| find(name).and_then(temporal_twin).map(|kernel| kernel.name);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(twin("copy.avx.nt"), Some("copy.avx"));
            assert_eq!(twin("copy.mmx.nt.pf320.vlasenko"), Some("copy.mmx.pf320.vlasenko"));
            assert_eq!(twin("zero.mmx.nt"), Some("zero.mmx"));
            assert_eq!(twin("copy.sse.nt"), Some("copy.sse2.movdqa"));
            assert_eq!(twin("copy.avx.nt.pages4"), None);
        }
    }
}
