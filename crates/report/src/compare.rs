//! Two records of the same measurement: what became faster, what slower, what cannot be told.
//!
//! Ratios travel, seconds do not: what is compared is each candidate's time over its reference's in
//! the same rounds. Rounds of different runs have nothing in common, so the interval of the change
//! is that of two independent samples. Thousands of rows differ somewhere by chance; the verdict
//! over all counts only rows that differ after Holm's correction (1979) for how many there are.

use crate::Table;
use crate::plot::cell_caption;
use cachewise_measure::stats::{GeometricMean, LEAST_ROUNDS};
use cachewise_measure::{CellKey, Header, Machine, PairedRatio, Record, Row, unpaired};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is said of a row, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Takes less time, relative to the reference, by more than the margin.
    Faster,
    /// Takes more.
    Slower,
    /// The whole interval lies within the margin.
    Unchanged,
    /// None of these.
    CannotTell,
}

impl Outcome {
    /// As people say it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Faster => "faster",
            Outcome::Slower => "slower",
            Outcome::Unchanged => "unchanged",
            Outcome::CannotTell => "cannot tell",
        }
    }
}

/// One row in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The experiment's name.
    pub experiment: String,
    /// The cell, for people.
    pub what: String,
    /// Its coordinates.
    pub cell: CellKey,
    /// Who.
    pub candidate: String,
    /// Whom it is compared with.
    pub reference: String,
    /// Its time over the reference's, then.
    pub old: f64,
    /// And now.
    pub new: f64,
    /// New over old, with its interval.
    pub change: PairedRatio,
    /// What that says.
    pub outcome: Outcome,
    /// Whether it still differs after the correction for the number of rows.
    pub confirmed: bool,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The verdict over all.
    pub outcome: Outcome,
    /// The verdict in a sentence.
    pub sentence: String,
    /// The geometric mean of the changes over the rows.
    pub mean: GeometricMean,
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
    /// What else differs between the runs: C library, kernel, compiler.
    pub differences: Vec<String>,
}

/// What sets two machines apart, each as `what: one / other`; empty for the same kind.
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

/// What else sets two runs apart.
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
    // What cannot be written as JSON does not come out of a record.
    let cell = serde_json::to_string(&row.cell).unwrap_or_default();
    format!("{} {candidate} {} {cell}", row.experiment, row.reference)
}

/// Ratios to the reference, round by round, of all launches; and a row to name them by.
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

/// Compares `new` with `old`; differences within `margin` (0.05 is 5 %) are of no interest.
pub fn compare(old: &Record, new: &Record, margin: f64) -> Comparison {
    let (before, mut after) = (samples(old), samples(new));
    let (mut only_old, mut left_out) = (0, 0);
    let mut rows: Vec<(usize, Change, f64)> = Vec::new();
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
        let (change, p) = if then.ratios == now.ratios {
            let rounds = now.ratios.len();
            (PairedRatio { median: 1.0, low: 1.0, high: 1.0, rounds }, 1.0)
        } else {
            (
                unpaired::ratio_of_medians(&now.ratios, &then.ratios, 0),
                unpaired::mann_whitney(&now.ratios, &then.ratios),
            )
        };
        let row = then.row;
        let change = Change {
            experiment: row.experiment.clone(),
            what: cell_caption(&row.cell),
            cell: row.cell.clone(),
            candidate: row.candidate.clone(),
            reference: row.reference.clone(),
            old: cachewise_measure::stats::median(&then.ratios),
            new: cachewise_measure::stats::median(&now.ratios),
            outcome: outcome(&change, margin),
            change,
            confirmed: false,
        };
        rows.push((order.get(&key).copied().unwrap_or(usize::MAX), change, p));
    }
    confirm(&mut rows);
    rows.sort_by_key(|(index, ..)| *index);
    let rows: Vec<Change> = rows.into_iter().map(|(_, change, _)| change).collect();
    let changes = rows.iter().map(|row| row.change).filter(|ratio| ratio.rounds >= LEAST_ROUNDS);
    let mean = GeometricMean::new(&changes.map(|ratio| ratio.median).collect::<Vec<_>>(), 0);
    let (outcome, sentence) = over_all(&rows, &mean, margin);
    Comparison {
        outcome,
        sentence,
        mean,
        margin,
        rows,
        only_old,
        only_new: after.len(),
        left_out,
        differences: circumstances(&old.header, &new.header),
    }
}

fn outcome(change: &PairedRatio, margin: f64) -> Outcome {
    // A bystander that gained more than the operation took leaves sums that have no ratio.
    if change.rounds < LEAST_ROUNDS || !(change.low > 0.0 && change.high.is_finite()) {
        Outcome::CannotTell
    } else if change.high < 1.0 && change.median < 1.0 - margin {
        Outcome::Faster
    } else if change.low > 1.0 && change.median > 1.0 + margin {
        Outcome::Slower
    } else if change.low >= 1.0 - margin && change.high <= 1.0 + margin {
        Outcome::Unchanged
    } else {
        Outcome::CannotTell
    }
}

/// Holm's step-down procedure at 5 % over all rows.
fn confirm(rows: &mut [(usize, Change, f64)]) {
    rows.sort_by(|a, b| a.2.total_cmp(&b.2));
    let count = rows.len();
    for (rank, (_, change, p)) in rows.iter_mut().enumerate() {
        if *p * (count - rank) as f64 >= 0.05 {
            break;
        }
        change.confirmed = matches!(change.outcome, Outcome::Faster | Outcome::Slower);
    }
}

/// The verdict over all, and that in a sentence.
fn over_all(rows: &[Change], mean: &GeometricMean, margin: f64) -> (Outcome, String) {
    let confirmed =
        |wanted: Outcome| rows.iter().filter(|row| row.confirmed && row.outcome == wanted).count();
    let (slower, faster) = (confirmed(Outcome::Slower), confirmed(Outcome::Faster));
    // A mean over few rows has no interval worth the name.
    let many = mean.count >= LEAST_ROUNDS;
    let settled = rows.iter().filter(|row| row.outcome == Outcome::Unchanged).count();
    let outcome = if slower > 0 || (many && mean.low > 1.0 && mean.mean > 1.0 + margin) {
        Outcome::Slower
    } else if faster > 0 || (many && mean.high < 1.0 && mean.mean < 1.0 - margin) {
        Outcome::Faster
    } else if 2 * settled >= rows.len()
        && !rows.is_empty()
        && mean.low >= 1.0 - margin
        && mean.high <= 1.0 + margin
    {
        Outcome::Unchanged
    } else {
        Outcome::CannotTell
    };
    let [mid, low, high] = [mean.mean, mean.low, mean.high].map(|ratio| (ratio - 1.0) * 100.0);
    let average = if mid.is_finite() {
        format!("{mid:+.1} % time in the geometric mean ({low:+.1} .. {high:+.1})")
    } else {
        "nothing could be compared".to_owned()
    };
    let (percent, of) = (format!("{:.0} %", margin * 100.0), format!("of {} rows", rows.len()));
    let verdict = match outcome {
        Outcome::Slower => {
            let though = match faster {
                0 => String::new(),
                faster => format!(", though {faster} are faster"),
            };
            format!("Slower: {slower} {of} by more than {percent}{though}")
        }
        Outcome::Faster => format!("Faster: {faster} {of} by more than {percent}, none slower"),
        Outcome::Unchanged => format!("No change beyond {percent} {of}"),
        Outcome::CannotTell => format!("Cannot tell: the intervals {of} are wider than {percent}"),
    };
    (outcome, format!("{verdict}; {average}."))
}

impl Comparison {
    /// How many rows have that outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }

    /// Rows as a table: every one, or only those that changed, the largest change first.
    pub fn table(&self, all: bool) -> Table {
        let several = self.rows.windows(2).any(|pair| pair[0].experiment != pair[1].experiment);
        let has_changed = |row: &Change| matches!(row.outcome, Outcome::Faster | Outcome::Slower);
        let mut rows: Vec<&Change> =
            self.rows.iter().filter(|row| all || has_changed(row)).collect();
        if !all {
            let worse = |row: &Change| (row.outcome == Outcome::Slower, row.confirmed);
            let size = |row: &Change| row.change.median.ln().abs();
            rows.sort_by(|a, b| worse(b).cmp(&worse(a)).then(size(b).total_cmp(&size(a))));
        }
        let caption = if all { "Every row" } else { "Rows that changed" };
        let mut table = Table::of(
            caption,
            "what | candidate | >old ratio | >new ratio | >change | >95 % interval | verdict",
        );
        for row in rows {
            let experiment = if several { format!("{}: ", row.experiment) } else { String::new() };
            let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
            let chance = if has_changed(row) && !row.confirmed { ", or chance" } else { "" };
            table.push(vec![
                experiment + &row.what,
                row.candidate.clone(),
                format!("{:.3}", row.old),
                format!("{:.3}", row.new),
                format!("{} %", percent(row.change.median)),
                format!("{} .. {}", percent(row.change.low), percent(row.change.high)),
                format!("{}{chance}", row.outcome.name()),
            ]);
        }
        let reference = self.rows.first().map_or("the reference", |row| row.reference.as_str());
        table.remark(format!(
            "ratio: whole time over {reference}'s in the same rounds; change: new ratio over old, \
             + is slower; `or chance`: one such row among {} may be luck",
            self.rows.len()
        ));
        table
    }

    /// How many of which, and what else differs, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let outcomes = [Outcome::Slower, Outcome::Faster, Outcome::Unchanged, Outcome::CannotTell];
        let counts = outcomes.map(|outcome| format!("{} {}", self.count(outcome), outcome.name()));
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
        std::iter::once(counts.join(", ")).chain(left).chain(differences).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{machine, record, row};

    /// The same rows in every record, their times multiplied, with other jitter in other rounds.
    fn scaled(factor: impl Fn(usize, &Row) -> f64) -> Record {
        let candidates = ["libc", "copy.a", "copy.b"];
        let at = |size| candidates.map(|candidate| row("copy", size, "warm", candidate));
        let mut rows = [256, 1024, 4096, 16384, 65536, 1 << 20].map(at).concat();
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = factor(index, row);
            for (round, time) in row.operation_ns.iter_mut().enumerate() {
                *time *= factor * (1.0 + 0.002 * ((round * 5 + index) % 11) as f64);
            }
        }
        record(rows)
    }

    #[test]
    fn a_slower_machine_is_no_regression_and_a_slower_row_is() {
        let old = scaled(|_, _| 1.0);
        for factor in [1.0, 3.0] {
            let same = compare(&old, &scaled(|_, _| factor), 0.05);
            assert_eq!(same.outcome, Outcome::Unchanged, "{factor}");
            assert_eq!((same.rows.len(), same.count(Outcome::Unchanged)), (12, 12), "{factor}");
        }
        let one_row = scaled(|index, _| if index == 4 { 1.3 } else { 1.0 });
        let found = compare(&old, &one_row, 0.05);
        assert_eq!(found.outcome, Outcome::Slower, "{}", found.sentence);
        assert_eq!(found.count(Outcome::Slower), 1);
        insta::assert_snapshot!(format!("{}\n{}", found.sentence, found.table(false).terminal(None)), @r"
        Slower: 1 of 12 rows by more than 5 %; +2.2 % time in the geometric mean (+0.0 .. +6.8).
        Rows that changed
        what               candidate  old ratio  new ratio   change   95 % interval  verdict
        copy, 1 KiB, warm  copy.a         0.501      0.651  +30.0 %  +30.0 .. +30.0  slower
          ratio: whole time over libc's in the same rounds; change: new ratio over old, + is slower; `or chance`: one such row among 12 may be luck
        ");
        let back = compare(&one_row, &old, 0.05);
        assert_eq!(back.outcome, Outcome::Faster, "{}", back.sentence);
        let mixed =
            scaled(|index, _| [1.3, 0.7].get(index.wrapping_sub(4)).copied().unwrap_or(1.0));
        let found = compare(&old, &mixed, 0.05);
        assert_eq!(found.outcome, Outcome::Slower);
        assert!(found.sentence.contains("though 1 are faster"), "{}", found.sentence);
    }

    #[test]
    fn noise_cannot_be_told_from_anything() {
        let noisy = |seed: u64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut record = scaled(|_, _| 1.0);
            for row in record.rows.iter_mut().filter(|row| row.candidate != "libc") {
                row.operation_ns.iter_mut().for_each(|time| *time *= 0.4 + 1.2 * random.f64());
            }
            record
        };
        let found = compare(&noisy(1), &noisy(2), 0.05);
        assert_eq!(found.outcome, Outcome::CannotTell, "{}", found.sentence);
        let few = |record: &mut Record| {
            record.rows.iter_mut().for_each(|row| row.operation_ns.truncate(3));
        };
        let mut a = scaled(|_, _| 1.0);
        let mut b = scaled(|_, row| if row.candidate == "libc" { 1.0 } else { 2.0 });
        [&mut a, &mut b].into_iter().for_each(few);
        let found = compare(&a, &b, 0.05);
        assert!(found.rows.iter().all(|row| row.outcome == Outcome::CannotTell));
        assert_eq!(found.outcome, Outcome::CannotTell, "{}", found.sentence);
        assert!(found.sentence.contains("nothing could be compared"), "{}", found.sentence);
    }

    #[test]
    fn sums_below_zero_have_no_ratio() {
        let old = scaled(|_, _| 1.0);
        let mut new = old.clone();
        for row in new.rows.iter_mut().filter(|row| row.candidate == "copy.a") {
            row.bystander_ns = row.operation_ns.iter().map(|time| -1.5 * time).collect();
        }
        let found = compare(&old, &new, 0.05);
        assert!(!found.rows.iter().any(|row| row.candidate == "copy.a"));
        assert_eq!(found.left_out, 6);
    }

    #[test]
    fn rows_without_partners_are_counted() {
        let old = scaled(|_, _| 1.0);
        let mut new = old.clone();
        new.rows.retain(|row| row.cell.size != 256);
        new.rows.push(row("zero", 256, "warm", "zero.a"));
        let found = compare(&old, &new, 0.05);
        assert_eq!((found.only_old, found.only_new), (2, 1));
        assert!(found.remarks().iter().any(|line| line == "2 rows only in the old record"));
        let nothing = compare(&old, &record(vec![]), 0.05);
        assert_eq!((nothing.rows.len(), nothing.outcome), (0, Outcome::CannotTell));
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
