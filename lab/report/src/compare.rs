//! Two records of the same measurement: what became faster, what slower, where no difference is shown.
//!
//! Ratios travel, seconds do not: what is compared is each candidate's time over its reference's in
//! the same rounds. Two runs of the same program differ by what each launch draws anew: pages, stack, link
//! order. Rounds of one launch do not show that, so a verdict takes several launches a side, each of
//! them one value. Among many rows some differ by chance; a row is faster or slower only where it differs
//! after Holm's correction (1979) for how many there are. A candidate in all its cells is a row as well, and
//! these few rows are corrected for among themselves.

use crate::Table;
use crate::plot::cell_caption;
use cachewise_judge::{family, interval};
use cachewise_measure::stats::{LEAST_ROUNDS, median};
use cachewise_measure::{CellKey, Header, Machine, PairedRatio, Record, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// Outcome of a row, and of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompareOutcome {
    /// Takes less time, relative to the reference, by more than the margin.
    Faster,
    Slower,
    NoDifference,
    /// There are too few launches to show anything.
    CannotTell,
}

impl CompareOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            CompareOutcome::Faster => "faster",
            CompareOutcome::Slower => "slower",
            CompareOutcome::NoDifference => "no difference shown",
            CompareOutcome::CannotTell => "cannot tell",
        }
    }
}

/// One row in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub experiment: String,
    pub what: String,
    pub cell: CellKey,
    pub candidate: String,
    pub reference: String,
    /// Its time over the reference's, then.
    pub old: f64,
    pub new: f64,
    /// New over old, with the interval of one row; `rounds` are the launches of the side with fewer.
    pub change: PairedRatio,
    /// Outcome, corrected for the number of rows.
    pub outcome: CompareOutcome,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub outcome: CompareOutcome,
    /// The verdict in a sentence.
    pub sentence: String,
    pub old_launches: u64,
    pub new_launches: u64,
    /// Differences within this are of no interest.
    pub margin: f64,
    /// Every row that both have.
    pub rows: Vec<Change>,
    /// Rows that only the old record has.
    pub only_old: usize,
    /// Rows that only the new record has.
    pub only_new: usize,
    /// Rows that one of them dropped early for their slowness or could not measure, or that have no
    /// reference.
    pub left_out: usize,
    /// Other differences between the runs: C library, kernel, compiler.
    pub differences: Vec<String>,
}

/// Differences between two machines, each as `what: one / other`; empty for the same kind.
pub fn machine_differences(a: &Machine, b: &Machine) -> Vec<String> {
    let signature = |machine: &Machine| {
        let cpu = &machine.cpu;
        format!("{} {}/{}/{}", cpu.vendor, cpu.family, cpu.model, cpu.stepping)
    };
    let caches = |machine: &Machine| {
        let caches = &machine.caches;
        let sizes = [caches.l1d.bytes, caches.l2.bytes, caches.llc.bytes];
        sizes.map(|size| crate::units::bytes(size as u64)).join(", ")
    };
    let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
    differing([
        ("CPU", a.cpu.model_name.clone(), b.cpu.model_name.clone()),
        ("signature", signature(a), signature(b)),
        ("caches", caches(a), caches(b)),
        ("CPUs", a.logical_cpus.to_string(), b.logical_cpus.to_string()),
        ("hypervisor", or_none(&a.hypervisor), or_none(&b.hypervisor)),
        ("emulator", or_none(&a.emulated), or_none(&b.emulated)),
    ])
}

/// Other differences between two runs.
pub fn circumstances(a: &Header, b: &Header) -> Vec<String> {
    let (m, n) = (&a.machine, &b.machine);
    let libc = |machine: &Machine| format!("{} {}", machine.libc.name, machine.libc.version);
    let none = || "unknown".to_owned();
    let mut found = differing([
        ("C library, the usual reference", libc(m), libc(n)),
        ("kernel", m.kernel.clone(), n.kernel.clone()),
        ("compiler", m.compiler.clone(), n.compiler.clone()),
        ("program", a.tool.clone(), b.tool.clone()),
        ("huge pages", m.thp.clone().unwrap_or_else(none), n.thp.clone().unwrap_or_else(none)),
    ]);
    if m.libc.tunables != n.libc.tunables && m.libc.version == n.libc.version {
        found.push("tunables of the C library in force".to_owned());
    }
    found
}

fn differing<const N: usize>(pairs: [(&str, String, String); N]) -> Vec<String> {
    let differing = pairs.into_iter().filter(|(_, a, b)| a != b);
    differing.map(|(what, a, b)| format!("{what}: {a} / {b}")).collect()
}

/// A row's identity in text; launches of one record share it.
fn identity(row: &Row) -> String {
    identity_of(row, &row.candidate)
}

/// The identity that another candidate's row has in the same cell.
fn identity_of(row: &Row, candidate: &str) -> String {
    // A cell from a record can always be written as JSON.
    let cell = serde_json::to_string(&row.cell).unwrap_or_default();
    format!("{} {candidate} {} {cell}", row.experiment, row.reference)
}

/// Ratios to the reference, launch by launch or round by round, and a row to name them by.
struct Sample<'r> {
    row: &'r Row,
    ratios: Vec<f64>,
    dropped: bool,
}

fn samples(record: &Record) -> BTreeMap<String, Sample<'_>> {
    // The n-th launch of a candidate belongs to the n-th launch of its reference.
    let mut references: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in record.rows.iter().filter(|row| row.candidate == row.reference) {
        references.entry(identity(row)).or_default().push(row);
    }
    let mut launches: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<String, Sample<'_>> = BTreeMap::new();
    for row in record.rows.iter().filter(|row| row.candidate != row.reference) {
        let key = identity(row);
        let launch = launches.entry(key.clone()).or_default();
        let of_reference = identity_of(row, &row.reference);
        let reference = references.get(&of_reference).and_then(|all| all.get(*launch));
        *launch += 1;
        let sample = found.entry(key).or_insert(Sample { row, ratios: Vec::new(), dropped: false });
        sample.dropped |= row.dropped || !row.is_measurable();
        if let Some(reference) = reference {
            let pairs = row.total_ns().into_iter().zip(reference.total_ns());
            let ratios = pairs.map(|(ours, theirs)| ours / theirs);
            sample.ratios.extend(ratios.filter(|ratio| ratio.is_finite()));
        }
    }
    found
}

/// The number of launches in a record.
fn launches(record: &Record) -> u64 {
    record.header.settings.get("launches").and_then(serde_json::Value::as_u64).unwrap_or(1)
}

/// Compares `new` with `old`; differences within `margin` (0.02 is 2 %) are of no interest.
pub fn compare(old: &Record, new: &Record, margin: f64) -> Comparison {
    let many = [launches(old), launches(new)];
    let is_one = many.iter().any(|launches| *launches < LEAST_ROUNDS as u64);
    let (before, mut after) = (samples(old), samples(new));
    let (mut only_old, mut left_out) = (0, 0);
    let mut rows: Vec<(usize, Change, f64)> = Vec::new();
    let mut together: BTreeMap<[&String; 3], Vec<[Vec<f64>; 2]>> = BTreeMap::new();
    let order: BTreeMap<String, usize> =
        old.rows.iter().enumerate().rev().map(|(index, row)| (identity(row), index)).collect();
    for (key, then) in before {
        let Some(now) = after.remove(&key) else {
            only_old += 1;
            continue;
        };
        if then.dropped || now.dropped || then.ratios.is_empty() || now.ratios.is_empty() {
            left_out += 1;
            continue;
        }
        let (was, is) = (median(&then.ratios), median(&now.ratios));
        let (change, p) = if is_one {
            let rounds = many[0].min(many[1]) as usize;
            (PairedRatio { median: is / was, low: f64::NAN, high: f64::NAN, rounds }, 1.0)
        } else {
            (
                interval::unpaired(&now.ratios, &then.ratios),
                interval::mann_whitney(&now.ratios, &then.ratios),
            )
        };
        if !is_one && then.ratios.len() == many[0] as usize && now.ratios.len() == many[1] as usize
        {
            let Row { experiment, candidate, reference, .. } = then.row;
            let of = together.entry([experiment, candidate, reference]).or_default();
            of.push([then.ratios.clone(), now.ratios.clone()]);
        }
        let Row { experiment, candidate, reference, cell, .. } = then.row;
        let of = [experiment, candidate, reference];
        let change =
            Change { cell: cell.clone(), ..changed(of, cell_caption(cell), [was, is], change) };
        rows.push((order.get(&key).copied().unwrap_or(usize::MAX), change, p));
    }
    let together = together.into_iter().filter(|(_, cells)| cells.len() > 1);
    let mut together: Vec<_> = together.map(|(who, cells)| all_cells(who, &cells)).collect();
    if !is_one {
        judge(&mut rows, margin);
        judge(&mut together, margin);
    }
    rows.extend(together);
    rows.sort_by_key(|(index, ..)| *index);
    let rows: Vec<Change> = rows.into_iter().map(|(_, change, _)| change).collect();
    let (outcome, sentence) = over_all(&rows, left_out, many);
    Comparison {
        outcome,
        sentence,
        old_launches: many[0],
        new_launches: many[1],
        margin,
        rows,
        only_old,
        only_new: after.len(),
        left_out,
        differences: circumstances(&old.header, &new.header),
    }
}

/// A candidate's change before anything is said of it.
fn changed(of: [&String; 3], what: String, [old, new]: [f64; 2], change: PairedRatio) -> Change {
    let [experiment, candidate, reference] = of.map(String::clone);
    let (cell, outcome) = (CellKey::default(), CompareOutcome::CannotTell);
    Change { experiment, what, cell, candidate, reference, old, new, change, outcome }
}

/// The variance of logarithms of ratios.
fn variance(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() as f64 - 1.0)
}

/// A candidate in all its cells: of each launch the geometric mean, in which a cell counts for more the less
/// its launches differ. What is a little slower everywhere shows here with fewer launches than in any cell.
fn all_cells(of: [&String; 3], cells: &[[Vec<f64>; 2]]) -> (usize, Change, f64) {
    let logs: Vec<[Vec<f64>; 2]> = cells
        .iter()
        .map(|sides| sides.each_ref().map(|side| side.iter().map(|r| r.ln()).collect()))
        .collect();
    let spreads: Vec<f64> =
        logs.iter().map(|[was, is]| (variance(was) + variance(is)) / 2.0).collect();
    // A cell whose launches happen to agree is not all there is. Single launches, or such as agree exactly, say
    // nothing of a spread: all cells count alike.
    let least = median(&spreads) / 4.0;
    let weigh = |spread: &f64| if least > 0.0 { least / spread.max(least) } else { 1.0 };
    let weights: Vec<f64> = spreads.iter().map(weigh).collect();
    let sum: f64 = weights.iter().sum();
    let [was, is] = [0, 1].map(|side| -> Vec<f64> {
        let at = |launch: usize| -> f64 {
            let parts = logs.iter().zip(&weights).map(|(both, weight)| both[side][launch] * weight);
            (parts.sum::<f64>() / sum).exp()
        };
        (0..cells[0][side].len()).map(at).collect()
    });
    let (change, p) = (interval::unpaired(&is, &was), interval::mann_whitney(&is, &was));
    let medians = [median(&was), median(&is)];
    (usize::MAX, changed(of, format!("all {} cells", cells.len()), medians, change), p)
}

/// Wrong among the cells of two records without a difference in 2.5 pairs of a hundred at most, and in as many
/// among the candidates in all their cells.
const LEVEL: f64 = 0.025;

/// Holm's step-down procedure over all rows of a kind. A row that not even launches without any overlap
/// could show stays [`CompareOutcome::CannotTell`].
fn judge(rows: &mut [(usize, Change, f64)], margin: f64) {
    rows.sort_by(|a, b| a.2.total_cmp(&b.2));
    let count = rows.len();
    let stand = family::holm(&rows.iter().map(|row| row.2).collect::<Vec<_>>(), LEVEL);
    for ((_, Change { change, outcome, .. }, _), is_different) in rows.iter_mut().zip(stand) {
        *outcome = match change.median {
            // A bystander that gained more than the operation took leaves sums that have no ratio.
            _ if !change.is_sound() || interval::least_p(change.rounds) * count as f64 >= LEVEL => {
                CompareOutcome::CannotTell
            }
            median if is_different && median > 1.0 + margin => CompareOutcome::Slower,
            median if is_different && median < 1.0 - margin => CompareOutcome::Faster,
            _ => CompareOutcome::NoDifference,
        };
    }
}

/// The verdict over all, and that in a sentence.
fn over_all(rows: &[Change], left_out: usize, [old, new]: [u64; 2]) -> (CompareOutcome, String) {
    let of = |wanted: CompareOutcome| rows.iter().filter(move |row| row.outcome == wanted);
    let [slower, faster, same] =
        [CompareOutcome::Slower, CompareOutcome::Faster, CompareOutcome::NoDifference]
            .map(|wanted| of(wanted).count());
    let most = |wanted: CompareOutcome| {
        let size = |row: &&Change| row.change.median.ln().abs();
        let most = of(wanted).max_by(|a, b| size(a).total_cmp(&size(b)));
        most.map_or(String::new(), |row| {
            let Change { what, candidate, .. } = row;
            format!("most {} ({what}, {candidate})", percent(row.change.median))
        })
    };
    let count = rows.len();
    if slower > 0 {
        let faster = if faster > 0 { format!("; faster: {faster}") } else { String::new() };
        let most = most(CompareOutcome::Slower);
        return (
            CompareOutcome::Slower,
            format!("Slower: {slower} of {count} rows, {most}{faster}."),
        );
    }
    if faster > 0 {
        let most = most(CompareOutcome::Faster);
        return (
            CompareOutcome::Faster,
            format!("Faster: {faster} of {count} rows, {most}; none slower."),
        );
    }
    if same > 0 {
        let half = |row: &Change| (row.change.high / row.change.low).sqrt();
        let width = median(&of(CompareOutcome::NoDifference).map(half).collect::<Vec<_>>());
        let width = (width - 1.0) * 100.0;
        let rows = if same < count { format!("{same} of {count}") } else { count.to_string() };
        let said =
            format!("No difference shown in {rows} rows, to within {width:.1} % in half of them.");
        return (CompareOutcome::NoDifference, said);
    }
    let why = match count {
        0 if left_out > 0 => "no row of both can be compared".to_owned(),
        0 => "no row was measured in both".to_owned(),
        _ if old.min(new) < LEAST_ROUNDS as u64 => format!(
            "launches of one program differ, and these records are of {old} and {new}; at least \
             {LEAST_ROUNDS} are needed a side"
        ),
        _ => format!("among {count} rows {old} and {new} launches are too few to show anything"),
    };
    (CompareOutcome::CannotTell, format!("Cannot tell: {why}."))
}

/// A ratio as a change.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

impl Comparison {
    /// The number of rows with that outcome.
    pub fn count(&self, outcome: CompareOutcome) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }

    /// Rows as a table: every one, or only those that changed, the largest change first.
    pub fn table(&self, all: bool) -> Table {
        let several = self.rows.windows(2).any(|pair| pair[0].experiment != pair[1].experiment);
        let has_changed =
            |row: &Change| matches!(row.outcome, CompareOutcome::Faster | CompareOutcome::Slower);
        let mut rows: Vec<&Change> =
            self.rows.iter().filter(|row| all || has_changed(row)).collect();
        if !all {
            let size = |row: &Change| row.change.median.ln().abs();
            let is_faster = |row: &Change| row.outcome == CompareOutcome::Faster;
            rows.sort_by(|a, b| is_faster(a).cmp(&is_faster(b)).then(size(b).total_cmp(&size(a))));
        }
        let caption = if all { "Every row" } else { "Rows that changed" };
        let mut table = Table::of(
            caption,
            "what | candidate | >old ratio | >new ratio | >change | >95 % interval | verdict",
        );
        for row in rows {
            let experiment = if several { format!("{}: ", row.experiment) } else { String::new() };
            let PairedRatio { median, low, high, .. } = row.change;
            let interval = match row.change.is_sound() {
                true => format!("{} .. {}", percent(low).replace(" %", ""), percent(high)),
                false => "-".to_owned(),
            };
            table.push(vec![
                experiment + &row.what,
                row.candidate.clone(),
                format!("{:.3}", row.old),
                format!("{:.3}", row.new),
                percent(median),
                interval,
                row.outcome.name().to_owned(),
            ]);
        }
        let reference = self.rows.first().map_or("the reference", |row| row.reference.as_str());
        table.remark(format!(
            "ratio: whole time over {reference}'s in the same rounds; change: new ratio over old, \
             + is slower; interval: of a row by itself, verdict: of a row among {}",
            self.rows.len()
        ));
        table
    }

    /// The number of rows for each outcome, and other differences, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let outcomes = [
            CompareOutcome::Slower,
            CompareOutcome::Faster,
            CompareOutcome::NoDifference,
            CompareOutcome::CannotTell,
        ];
        let counts = outcomes.map(|outcome| (self.count(outcome), outcome.name()));
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, name)| format!("{name}: {count}")).collect();
        let left = [
            (self.only_old, "only in the old record"),
            (self.only_new, "only in the new record"),
            (
                self.left_out,
                "dropped early for slowness, without a reference, or not measurable: not compared",
            ),
        ];
        let left = left.into_iter().filter(|(count, _)| *count > 0);
        let left = left.map(|(count, what)| format!("{count} rows {what}"));
        let differences = self.differences.iter().map(|text| format!("the runs differ in {text}"));
        let counts = (!counts.is_empty()).then(|| counts.join(", "));
        counts.into_iter().chain(left).chain(differences).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{machine, record, row};

    /// A record of 15 launches of the same rows, their times multiplied, with a draw of its own for each
    /// launch: by up to this much to either side.
    fn scaled(seed: u64, spread: f64, factor: impl Fn(usize, &Row) -> f64) -> Record {
        let mut random = fastrand::Rng::with_seed(seed);
        let candidates = ["libc", "copy.a", "copy.b"];
        let at = |size| candidates.map(|candidate| row("copy", size, "warm", candidate));
        let mut rows = [256, 1024, 4096, 16384, 65536, 1 << 20].map(at).concat();
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = factor(index, row);
            for time in &mut row.operation_ns {
                *time *= factor * (1.0 + spread * (2.0 * random.f64() - 1.0));
            }
        }
        let mut record = record(rows);
        record.header.settings.insert("launches".to_owned(), 15.into());
        record
    }

    use CompareOutcome::{CannotTell, Faster, NoDifference, Slower};

    /// Factors of rows, and what is found: the outcome, rows slower, rows faster. A row that changed is one more with
    /// its kernel in all its cells.
    #[test]
    fn a_slower_machine_is_no_regression_and_a_slower_row_is() {
        let factor = |changed: &'static [f64]| {
            move |index: usize, _: &Row| *changed.get(index.wrapping_sub(4)).unwrap_or(&1.0)
        };
        let old = scaled(1, 0.01, |_, _| 1.0);
        for (new, outcome, slower, faster) in [
            (scaled(2, 0.01, |_, _| 3.0), NoDifference, 0, 0),
            (scaled(2, 0.01, factor(&[1.3])), Slower, 2, 0),
            (scaled(2, 0.01, factor(&[0.7])), Faster, 0, 2),
            (scaled(3, 0.01, factor(&[1.3, 0.7])), Slower, 2, 2),
            (old.clone(), NoDifference, 0, 0),
        ] {
            let found = compare(&old, &new, 0.02);
            let counts = [Slower, Faster].map(|wanted| found.count(wanted));
            assert_eq!((found.outcome, counts), (outcome, [slower, faster]), "{}", found.sentence);
            assert_eq!(found.table(false).rows.len(), slower + faster);
        }
        // Launches that agree exactly have no spread to weigh cells by.
        let half = |_: usize, row: &Row| if row.candidate == "libc" { 1.0 } else { 0.5 };
        let found = compare(&scaled(1, 0.0, |_, _| 1.0), &scaled(1, 0.0, half), 0.02);
        let whole: Vec<_> = found.rows.iter().filter(|row| row.what.starts_with("all ")).collect();
        assert_eq!(whole.len(), 2, "{}", found.sentence);
        assert!(whole.iter().all(|row| (row.new / row.old - 0.5).abs() < 1e-9), "{whole:?}");
    }

    #[test]
    fn a_program_does_not_differ_from_itself_and_five_per_cent_do() {
        let (mut alarms, mut found) = (0, 0);
        for pair in 0..100 {
            let spread = [0.002, 0.01, 0.03, 0.1][pair as usize % 4];
            let old = scaled(2 * pair, spread, |_, _| 1.0);
            let same = compare(&old, &scaled(2 * pair + 1, spread, |_, _| 1.0), 0.02);
            alarms += usize::from(same.outcome != NoDifference);
            let slow = |index: usize| if index == 4 { 1.05 } else { 1.0 };
            let slow = compare(&old, &scaled(2 * pair + 1, spread, |index, _| slow(index)), 0.02);
            found += usize::from(slow.outcome == Slower && spread < 0.1);
        }
        assert!(alarms <= 5, "{alarms} of 100");
        assert!(found >= 70, "{found} of 75");
    }

    #[test]
    fn one_launch_shows_nothing_and_few_show_nothing_among_many_rows() {
        let twice = scaled(2, 0.01, |_, row| if row.candidate == "libc" { 1.0 } else { 2.0 });
        let old = scaled(1, 0.01, |_, _| 1.0);
        let of = |record: &Record, launches: usize| {
            let mut record = record.clone();
            record.header.settings.insert("launches".to_owned(), launches.into());
            record.rows.iter_mut().for_each(|row| row.operation_ns.truncate(launches));
            record
        };
        let mut single = old.clone();
        single.header.settings.clear();
        for (a, b) in [(&single, &twice), (&of(&old, 5), &of(&twice, 5))] {
            let found = compare(a, b, 0.02);
            assert_eq!((found.outcome, found.count(CannotTell)), (CannotTell, 12));
        }
        let found = compare(&of(&old, 8), &of(&twice, 8), 0.02);
        assert_eq!(found.count(Slower), 14, "{}", found.sentence);
        let many = |record: &Record, alone: bool| {
            let mut record = of(record, 6);
            let sizes = (0..10u64).flat_map(|more| {
                let mut rows = record.rows.clone();
                rows.iter_mut().for_each(|row| {
                    row.cell.size += more;
                    if alone && row.candidate != row.reference {
                        row.candidate += &row.cell.size.to_string();
                    }
                });
                rows
            });
            record.rows = sizes.collect();
            record
        };
        let found = compare(&many(&old, true), &many(&twice, true), 0.02);
        assert_eq!((found.outcome, found.count(CannotTell)), (CannotTell, 120));
        // Two candidates in all their cells are not many.
        let found = compare(&many(&old, false), &many(&twice, false), 0.02);
        assert_eq!([Slower, CannotTell].map(|wanted| found.count(wanted)), [2, 120]);
    }

    #[test]
    fn sums_below_zero_have_no_ratio() {
        let old = scaled(1, 0.01, |_, _| 1.0);
        let mut new = old.clone();
        for row in new.rows.iter_mut().filter(|row| row.candidate == "copy.a") {
            row.bystander_ns = row.operation_ns.iter().map(|time| -1.5 * time).collect();
        }
        let found = compare(&old, &new, 0.02);
        assert!(!found.rows.iter().any(|row| row.candidate == "copy.a"));
        assert_eq!(found.left_out, 6);
    }

    #[test]
    fn rows_without_partners_are_counted() {
        let old = scaled(1, 0.01, |_, _| 1.0);
        let mut new = old.clone();
        new.rows.retain(|row| row.cell.size != 256);
        new.rows.push(row("zero", 256, "warm", "zero.a"));
        let found = compare(&old, &new, 0.02);
        assert_eq!((found.only_old, found.only_new), (2, 1));
        let nothing = compare(&old, &record(vec![]), 0.02);
        assert_eq!((nothing.rows.len(), nothing.outcome), (0, CannotTell));
        // Rows whose reference is in another cell, and rows that were dropped.
        let (mut elsewhere, mut dropped) = (old.clone(), old);
        elsewhere.rows.iter_mut().for_each(|row| row.reference = "copy.a, one call".to_owned());
        dropped.rows.iter_mut().for_each(|row| row.dropped = true);
        for record in [elsewhere, dropped] {
            let found = compare(&record, &record, 0.02);
            assert!(found.outcome == CannotTell && found.left_out >= 12, "{found:?}");
        }
    }

    #[test]
    fn machines_differ_by_cpu_and_caches() {
        let mut other = machine();
        assert!(machine_differences(&machine(), &other).is_empty());
        other.cpu.stepping = 2;
        other.caches.l2.bytes *= 2;
        let found = machine_differences(&machine(), &other);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("25/1/1 / AuthenticAMD 25/1/2"), "{found:?}");
    }
}
