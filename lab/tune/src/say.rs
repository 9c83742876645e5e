//! Text of `tune` and `explain`: the decisions with their evidence, the last three lines, and the
//! figures behind one decision. Everything comes from a record's rows and its decisions.

use super::field::HANDED_OVER;
use super::recording::UNEQUAL;
use super::rounds::Purpose;
use super::scripts::LIBRARY;
use super::seam::{Layout, Script};
use cachewise::profile::OR_LIBC;
use cachewise_judge::margin::{HEADLINE, LEAST_POOLED};
use cachewise_measure::record::{Decision, Decisions, distinct, groups};
use cachewise_measure::stats::{LEAST_ROUNDS as INTERVAL_ROUNDS, geometric_mean, median};
use cachewise_measure::units::{bytes, counted, gain, time};
use cachewise_measure::{PairedRatio, Record, Residency, Row, Warning};
use cachewise_report::closing::{Closing, ClosingAnswer, Trust};
use cachewise_report::cost::WORTHWHILE;
use cachewise_report::rows::{experiment_of, or_dash, sorted};
use cachewise_report::{Said, Table};

/// A cell in which the library takes more than this of libc's time is a loss.
const LOSS: f64 = 1.0 / (1.0 - HEADLINE);

/// A tuning's outcome.
#[derive(Clone, Copy, Debug)]
pub struct Tuned<'t> {
    /// Decisions.
    pub decisions: &'t Decisions,
    /// Everything seen.
    pub rows: &'t [Row],
    /// libc's name and version.
    pub libc: &'t str,
    /// Disturbances of the run.
    pub warnings: &'t [Warning],
    /// Finding about the LLC, if it differs from the CPU's own value.
    pub llc: Option<&'t str>,
}

/// One cell of the referee: the rounds with operands on lines and anywhere together.
#[derive(Clone, Debug)]
struct RefereeCell<'t> {
    row: &'t Row,
    /// Time over libc's.
    ratio: PairedRatio,
}

/// The time over libc's in the middle of some cells: one cell alone makes no gain of a range.
fn middle(cells: &[RefereeCell<'_>]) -> f64 {
    median(&cells.iter().map(|cell| cell.ratio.median).collect::<Vec<_>>())
}

fn worst<'c, 't>(cells: &'c [RefereeCell<'t>]) -> Option<&'c RefereeCell<'t>> {
    cells.iter().max_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
}

/// Returns whether a decision is about calls of that size.
fn covers(decision: &Decision, operation: &str, size: u64) -> bool {
    decision.operation == operation
        && decision.from <= size
        && decision.to.is_none_or(|to| size <= to)
}

impl<'t> Tuned<'t> {
    /// Reads a tuning from a record.
    pub fn of(record: &'t Record, libc: &'t str) -> Tuned<'t> {
        let (decisions, rows) = (&record.decisions, &record.rows);
        Tuned { decisions, rows, libc, warnings: &record.header.warnings, llc: None }
    }

    /// Returns whether anything was decided.
    pub fn is_decided(&self) -> bool {
        !self.decisions.kernels.is_empty()
    }

    /// Verdict and decisions for a report; none where nothing was tuned.
    pub fn said(&self, record: &Record) -> Option<Said> {
        let decided = experiment_of(record) == Purpose::Race.name() && self.is_decided();
        decided.then(|| Said {
            verdicts: vec![self.closing().because],
            decisions: Some(self.table()),
            ..Said::default()
        })
    }

    /// The referee's cells of the decisions that satisfy `of`: the rounds with operands on lines and
    /// anywhere together.
    fn seen(&self, of: impl Fn(&Decision) -> bool) -> Vec<RefereeCell<'t>> {
        let decided = |row: &Row| {
            self.decisions.kernels.iter().any(|decision| {
                of(decision)
                    && decision.reuse == "unknown"
                    && decision.kernel == row.candidate
                    && covers(decision, &row.cell.operation, row.cell.size)
            })
        };
        let referee: Vec<&Row> =
            self.rows.iter().filter(|row| row.experiment == Purpose::Referee.name()).collect();
        let libc = |row: &Row| {
            referee.iter().find(|other| other.candidate == row.reference && other.cell == row.cell)
        };
        let mut cells: Vec<(&'t Row, Vec<f64>)> = Vec::new();
        for row in referee.iter().filter(|row| row.candidate != row.reference && decided(row)) {
            let Some(libc) = libc(row) else { continue };
            let ratios = row.total_ns().into_iter().zip(libc.total_ns()).map(|(a, b)| a / b);
            let ratios = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
            let same = |other: &Row| {
                other.cell.size == row.cell.size
                    && other.cell.operation == row.cell.operation
                    && other.candidate == row.candidate
                    && state_anywhere(other) == state_anywhere(row)
            };
            match cells.iter_mut().find(|(other, _)| same(other)) {
                Some((_, known)) => known.extend(ratios),
                None => cells.push((*row, ratios.collect())),
            }
        }
        let cells = cells.into_iter().filter(|(_, ratios)| ratios.len() >= LEAST_POOLED);
        let cell = |(row, ratios): (&'t Row, Vec<f64>)| {
            let ones = vec![1.0; ratios.len()];
            RefereeCell { row, ratio: PairedRatio::paired(&ratios, &ones) }
        };
        cells.map(cell).collect()
    }

    /// The referee's evidence for the decisions that stand, as rows of the library.
    pub fn library(&self) -> Vec<Row> {
        let cells = self.seen(|_| true).into_iter();
        let row = |RefereeCell { row, ratio }: RefereeCell<'_>| Row {
            candidate: "cachewise".to_owned(),
            ratio: Some(ratio),
            total_ratio: None,
            ..row.clone()
        };
        cells.map(row).collect()
    }

    /// Returns whether a decision tells more than the operation's others: with a hint it differs from the one without; libc is
    /// told of an operation that has nothing else.
    fn is_news(&self, decision: &Decision) -> bool {
        let of_it =
            |other: &&Decision| other.operation == decision.operation && other.reuse == "unknown";
        let mut plain = self.decisions.kernels.iter().filter(of_it);
        if decision.reuse == "unknown" {
            return decision.kernel != "libc" || plain.all(|other| other.kernel == "libc");
        }
        !plain.any(|other| {
            let ends = |to| decision.to.is_some_and(|end| end <= to);
            other.kernel == decision.kernel
                && other.from <= decision.from
                && other.to.is_none_or(ends)
        })
    }

    /// The decisions, and how the library fared against libc where it followed them.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            format!("Decisions, and the library's speed with them against {}", self.libc),
            &["operation", "reuse", ">from", ">to", "kernel", ">cells", ">speed", ">at worst"],
        );
        let news = self.decisions.kernels.iter().filter(|one| self.is_news(one));
        // A hint's ranges are one line: none was checked on its own, and `explain` has each.
        let lines = groups(news, |one| {
            (&one.operation, &one.reuse, (one.reuse == "unknown").then_some(one.from))
        });
        let mut before = ("", "");
        for (_, ranges) in lines {
            let (first, last) = (ranges[0], ranges[ranges.len() - 1]);
            let here = (first.operation.as_str(), first.reuse.as_str());
            let operation = if here.0 == before.0 { "" } else { here.0 };
            let reuse = if here == before { "" } else { here.1 };
            before = here;
            let seen = self.seen(|other| other == first);
            let figure = |ratio: Option<f64>| or_dash(ratio, gain);
            let kernels = distinct(ranges.iter().map(|one| one.kernel.as_str()));
            table.push(vec![
                operation.to_owned(),
                reuse.to_owned(),
                bytes(first.from),
                last.to.map_or("and up".to_owned(), |to| bytes(to + 1)),
                kernels.join(", "),
                or_dash(Some(seen.len()).filter(|count| *count > 0), |count| count.to_string()),
                figure(worst(&seen).map(|_| middle(&seen))),
                figure(worst(&seen).map(|cell| cell.ratio.median)),
            ]);
        }
        let to = "each range ends below `to`";
        if table.rows.iter().all(|row| row[5] == "-") {
            table = table.only(&["operation", "reuse", "from", "to", "kernel"]);
            table.remark(to);
        } else {
            table.remark(format!(
                "speed: of the operation and a reader after it, the median of the cells; +100 % is twice as fast as \
                 libc; {to}"
            ));
            table.remark("cells: sizes and states that were checked with the library following these decisions");
        }
        if self.decisions.kernels.iter().any(|one| one.kernel.ends_with(OR_LIBC)) {
            table.remark(format!("KERNEL{OR_LIBC}: libc but for operands that are not aligned to each other, or aliased"));
        }
        table.remark(
            "sizes that are not listed use libc; a hint that is not listed changes nothing; several kernels: by size; \
             `cachewise explain` says which and why",
        );
        table
    }

    /// Number of libc's rounds in most cells of the race, in words, where that shows nothing.
    fn too_few_rounds(&self) -> Option<String> {
        let libc = self.rows.iter().filter(|row| row.experiment == Purpose::Race.name());
        let libc = libc.filter(|row| row.candidate == row.reference);
        let rounds: Vec<f64> = libc.map(|row| row.operation_ns.len() as f64).collect();
        let most = if rounds.is_empty() { 0 } else { median(&rounds) as usize };
        (most < INTERVAL_ROUNDS).then(|| counted(most, "round"))
    }

    /// Returns whether a kernel is to be called anywhere.
    pub fn has_kernels(&self) -> bool {
        self.decisions.kernels.iter().any(|decision| decision.kernel != "libc")
    }

    /// The last three lines.
    pub fn closing(&self) -> Closing {
        let (mut gains, mut left) = (Vec::new(), Vec::new());
        for operation in ["copy", "move", "fill", "zero", "compare", "equal"] {
            let seen = self.seen(|decision| decision.operation == operation);
            if seen.is_empty() {
                left.push(operation);
            } else {
                gains.push((operation, middle(&seen)));
            }
        }
        gains.sort_by(|a, b| a.1.total_cmp(&b.1));
        // A gain that no table names is none here.
        let level = |ratio: f64| ratio > 1.0 - WORTHWHILE && ratio < LOSS;
        let told = gains.iter().filter(|(_, ratio)| !level(*ratio));
        let told = told.map(|(operation, ratio)| format!("{operation} {}", gain(*ratio)));
        let mut told: Vec<String> = told.collect();
        let levels = gains.iter().filter(|(_, ratio)| level(*ratio));
        let levels: Vec<&str> = levels.map(|(operation, _)| *operation).collect();
        if !levels.is_empty() {
            told.push(format!("less than 3 % for {}", levels.join(", ")));
        }
        let left = match left.len() {
            0 => String::new(),
            1 => format!("; {} is left to libc at every size", left[0]),
            _ => format!("; {} are left to libc at every size", left.join(", ")),
        };
        let (answer, because) = if gains.is_empty() && self.has_kernels() {
            let why = "kernels were decided for, and none was checked against libc afterwards";
            (ClosingAnswer::CannotTell, why.to_owned())
        } else if let (true, Some(rounds)) = (gains.is_empty(), self.too_few_rounds()) {
            let why = format!(
                "there was time for {rounds} of most comparisons, and an interval takes {INTERVAL_ROUNDS}"
            );
            (ClosingAnswer::CannotTell, why)
        } else if gains.is_empty() {
            let why = format!("no kernel was shown to be faster than {} at any size", self.libc);
            (ClosingAnswer::No, why)
        } else {
            // A range may gain where the operation's other cells do not.
            let pays = |decision: &Decision| {
                let seen = self.seen(|other| other == decision);
                !seen.is_empty() && middle(&seen) <= 1.0 - WORTHWHILE
            };
            let (answer, verb) = match self.decisions.kernels.iter().any(pays) {
                true => (ClosingAnswer::Yes, "gain"),
                false => (ClosingAnswer::No, "gain too little"),
            };
            let told = told.join(", ");
            let libc = self.libc;
            let why = format!(
                "the profile's kernels {verb} over {libc}, in the median cell: {told}{left}"
            );
            (answer, why)
        };
        Closing { answer, because, trust: self.trust(), next: self.next(answer) }
    }

    fn trust(&self) -> Trust {
        let mut trust = Trust::of(&[], self.warnings, false);
        let seen = self.seen(|_| true);
        let lost = seen.iter().filter(|cell| cell.ratio.median > LOSS).count();
        if let (1.., Some(RefereeCell { ratio, row })) = (lost, worst(&seen)) {
            let (all, worst) = (seen.len(), gain(ratio.median));
            let (operation, size, state) = (&row.cell.operation, bytes(row.cell.size), state(row));
            trust.doubt(format!(
                "{lost} of {all} checked cells lose more than 3 %, at worst {worst} ({operation} of \
                 {size}, {state})"
            ));
        }
        if seen.is_empty() && self.has_kernels() {
            trust.doubt("there was no time to check the decisions");
        }
        if let Some(llc) = self.llc {
            trust.doubt(llc);
        }
        trust
    }

    fn next(&self, answer: ClosingAnswer) -> String {
        match answer {
            ClosingAnswer::Yes => {
                "programs follow it from now on: `cachewise exec -- PROGRAM`; why: `cachewise explain \
                 --op memcpy --size 1M`"
            }
            ClosingAnswer::CannotTell => {
                "`cachewise tune --budget 10min` takes longer"
            }
            ClosingAnswer::No => "nothing: libc is fine here for the calls that were tried; `cachewise tune --budget 10min` \
                  looks longer",
        }
        .to_owned()
    }

    /// An experiment's rows of one operation that are compared with another.
    fn race(&self, purpose: Purpose, operation: &str) -> Vec<&'t Row> {
        let of_it =
            |row: &&Row| row.experiment == purpose.name() && row.cell.operation == operation;
        self.rows.iter().filter(of_it).filter(|row| row.candidate != row.reference).collect()
    }

    /// Results for one operation at the measured sizes around one, and the referee's evidence there.
    pub fn evidence(&self, operation: &str, size: u64, chosen: &str) -> Vec<Table> {
        let race = self.race(Purpose::Race, operation);
        let sizes = sorted(race.iter().map(|row| row.cell.size));
        let below = sizes.iter().copied().rfind(|at| *at <= size);
        let above = sizes.iter().copied().find(|at| *at > size);
        let around = [below, above].into_iter().flatten();
        let mut tables: Vec<Table> = around.map(|at| shown(&race, at, chosen, self.libc)).collect();
        // The legend once, below the last of them.
        let last = tables.len().saturating_sub(1);
        tables.iter_mut().take(last).for_each(|table| table.remarks.clear());
        tables.extend(self.refereed(operation, size, chosen));
        tables
    }

    /// Evidence for the hint `never`: kernels beside a bystander, at the measured size nearest below.
    pub fn beside(&self, operation: &str, size: u64) -> Option<Table> {
        let race = self.race(Purpose::Hints, operation);
        let sizes = sorted(race.iter().map(|row| row.cell.size));
        let at = sizes.iter().copied().rfind(|at| *at <= size).or(sizes.first().copied())?;
        let title = format!("Operation and bystander at {}, time over {}'s", bytes(at), self.libc);
        let mut table = Table::new(title, &["kernel", ">operation", ">bystander", ">sum"]);
        let here: Vec<&Row> = race.into_iter().filter(|row| row.cell.size == at).collect();
        for name in sorted(here.iter().map(|row| row.candidate.as_str())) {
            let (mut operation, mut bystander, mut sums) = (Vec::new(), Vec::new(), Vec::new());
            for row in here.iter().filter(|row| row.candidate == name) {
                let is_libc = |other: &&Row| {
                    (&other.experiment, &other.cell) == (&row.experiment, &row.cell)
                        && other.candidate == row.reference
                };
                let Some(libc) = self.rows.iter().find(is_libc) else { continue };
                let totals = row.total_ns().into_iter().zip(libc.total_ns());
                let over =
                    totals.zip(&libc.operation_ns).map(|((a, b), base)| 1.0 + (a - b) / base);
                sums.extend(over.filter(|over| over.is_finite()));
                operation.extend(row.operation_ns.iter().copied().filter(|time| time.is_finite()));
                bystander.extend(row.bystander_ns.iter().copied().filter(|time| time.is_finite()));
            }
            if !sums.is_empty() {
                let [operation, bystander] = [operation, bystander].map(|of| time(median(&of)));
                let sum = PairedRatio::paired(&sums, &vec![1.0; sums.len()]).to_string();
                table.push(vec![name.to_owned(), operation, bystander, sum]);
            }
        }
        table.remark("bystander: what another working set of half the cache loses; below nothing it is noise");
        table.remark(
            "sum: 1 and what operation and bystander take more than libc's, over libc's operation",
        );
        (!table.rows.is_empty()).then_some(table)
    }

    /// Small calls as programs make them, in a hot and in a cold span: the library over libc. `None` where the record
    /// has none.
    pub fn small(&self, operation: &str) -> Option<Table> {
        let rows = self.race(Purpose::Referee, operation);
        let title = format!("Calls as programs make them, time over {}'s", self.libc);
        let mut table = Table::new(title, &["operands", ">hot", ">cold"]);
        for unequal in [false, true] {
            let ratio = |script: Script| {
                let here = |row: &&&Row| {
                    row.candidate == LIBRARY
                        && row.cell.state.as_str() == script.name()
                        && row.cell.axis(UNEQUAL).is_some() == unequal
                };
                rows.iter().find(here).and_then(|row| row.ratio)
            };
            let ratios = Script::ALL.map(ratio);
            if ratios.iter().any(Option::is_some) {
                let name = if unequal { "unequal" } else { "" };
                let ratios = ratios.map(|of| or_dash(of, |of| of.to_string()));
                table.push([vec![name.to_owned()], ratios.to_vec()].concat());
            }
        }
        (!table.rows.is_empty()).then_some(table)
    }

    /// The referee's evidence for the range that a size is in.
    fn refereed(&self, operation: &str, size: u64, chosen: &str) -> Option<Table> {
        let seen =
            self.seen(|decision| decision.kernel == chosen && covers(decision, operation, size));
        if seen.is_empty() {
            return None;
        }
        let title = format!("The library with {chosen}, time over {}'s", self.libc);
        let mut table = Table::new(title, &[">size", "state", ">time"]);
        for RefereeCell { row, ratio } in seen {
            table.push(vec![bytes(row.cell.size), state_anywhere(row), ratio.to_string()]);
        }
        Some(table)
    }
}

/// State of the destination and layout of the operands, in the words of the legend.
fn state(row: &Row) -> String {
    described(row, &[Layout::Aligned])
}

/// State where operands on lines and anywhere are one.
fn state_anywhere(row: &Row) -> String {
    described(row, &[Layout::Aligned, Layout::Misaligned])
}

/// A state in words, without those of the layouts that are not named.
fn described(row: &Row, unnamed: &[Layout]) -> String {
    let destination = row.cell.destination.map_or("", Residency::name);
    let unequal = if row.cell.axis(UNEQUAL).is_some() { " unequal" } else { "" };
    let layout = row.cell.state.as_str();
    if unnamed.iter().any(|unnamed| unnamed.name() == layout) {
        return format!("{destination}{unequal}");
    }
    format!("{destination} {layout}{unequal}")
}

/// The candidates of some rows by their mean over the states, the fastest first, with their ratios.
fn by_mean<'r>(
    rows: impl Iterator<Item = &'r &'r Row>,
    states: &[impl AsRef<str>],
    ratio: impl Fn(&str, &str) -> Option<PairedRatio>,
) -> Vec<(&'r str, Vec<String>)> {
    let names = sorted(rows.map(|row| row.candidate.as_str())).into_iter();
    let mut found: Vec<(f64, &str, Vec<String>)> = names
        .map(|name| {
            let ratios: Vec<_> = states.iter().map(|state| ratio(name, state.as_ref())).collect();
            let medians: Vec<f64> = ratios.iter().flatten().map(|ratio| ratio.median).collect();
            let texts = ratios.into_iter().map(|ratio| or_dash(ratio, |ratio| ratio.to_string()));
            (geometric_mean(&medians), name, texts.collect())
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().map(|(_, name, texts)| (name, texts)).collect()
}

/// The kernels at one size, the chosen one first, then the fastest.
fn shown(race: &[&Row], size: u64, chosen: &str, libc: &str) -> Table {
    let here: Vec<&&Row> = race.iter().filter(|row| row.cell.size == size).collect();
    let states = sorted(here.iter().map(|row| state(row)));
    let ratio = |name: &str, state: &str| {
        let of_it = |row: &&&&Row| row.candidate == name && self::state(row) == state;
        here.iter().find(of_it).and_then(|row| row.total_ratio.or(row.ratio))
    };
    let mut columns = vec!["".to_owned(), "kernel".to_owned()];
    columns.extend(states.iter().map(|state| format!(">{state}")));
    let mut table =
        Table::new(format!("Time over {libc}'s at {}, by state", bytes(size)), &columns);
    let mut kernels = by_mean(here.iter().copied(), &states, ratio);
    kernels.sort_by_key(|(name, _)| *name != chosen);
    for (name, ratios) in kernels {
        let mark = if name == chosen { "->" } else { "" };
        table.push([vec![mark.to_owned(), name.to_owned()], ratios].concat());
    }
    for remark in [
        "lower is faster, 1 is libc's time; in brackets the 95 % interval, or the number of rounds where \
         there were too few for one; -> is what is decided for",
        "cached: the destination was written and read just before; evicted: it is in no cache; each with \
         a reader after it; repeated: one call after the other on the same operands, without one",
        "misaligned: operands at odd places; 4K-aliased: 4 KiB apart but for some bytes; overlap-up, -down: \
         in one buffer; unequal: operands differ somewhere",
    ] {
        table.remark(remark);
    }
    if here.iter().any(|row| row.candidate == HANDED_OVER) {
        table.remark(format!("{HANDED_OVER}: {libc} as the library calls it"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::CellKey;

    fn row(experiment: &str, size: usize, state: &str, kernel: &str, median: f64) -> Row {
        let mut key = CellKey::new("copy", size, "aligned");
        key.destination = Some(state.parse().expect(state));
        let ratio = PairedRatio { median, low: median * 0.98, high: median * 1.02, rounds: 9 };
        Row::new(experiment, key, kernel, "libc", vec![median; 9]).with_ratio(ratio)
    }

    /// A row of the referee and libc's beside it.
    fn refereed(size: usize, state: &str, kernel: &str, median: f64) -> [Row; 2] {
        [("libc", 1.0), (kernel, median)]
            .map(|(who, median)| row("tune-referee", size, state, who, median))
    }

    fn decision(from: u64, to: Option<u64>, kernel: &str) -> Decision {
        let (operation, reuse) = ("copy".to_owned(), "unknown".to_owned());
        Decision { operation, reuse, from, to, kernel: kernel.to_owned(), ratio: None, why: None }
    }

    fn decisions() -> Decisions {
        let kernels = vec![decision(256, Some(4095), "libc"), decision(4096, None, "copy.avx")];
        Decisions { kernels }
    }

    fn tuned<'t>(decisions: &'t Decisions, rows: &'t [Row], libc: &'t str) -> Tuned<'t> {
        Tuned { decisions, rows, libc, warnings: &[], llc: None }
    }

    #[test]
    fn a_hint_is_listed_where_it_changes_something() {
        let hinted = |reuse: &str, from, to, kernel| Decision {
            reuse: reuse.to_owned(),
            ..decision(from, to, kernel)
        };
        let kernels = vec![
            decision(256, Some(4095), "libc"),
            decision(4096, None, "copy.avx"),
            hinted("soon", 256, Some(4095), "libc"),
            hinted("soon", 4096, None, "copy.avx"),
            hinted("never", 256, Some(4095), "libc"),
            hinted("never", 4096, Some(65535), "copy.avx"),
            hinted("never", 65536, Some(131071), "copy.avx.nt"),
            hinted("never", 131072, None, "copy.sse2.nt"),
        ];
        let decisions = Decisions { kernels };
        let table = tuned(&decisions, &[], "libc").table();
        let listed: Vec<_> = table.rows.iter().map(|row| row[1..5].join(" ")).collect();
        let expected =
            ["unknown 4 KiB and up copy.avx", "never 64 KiB and up copy.avx.nt, copy.sse2.nt"];
        assert_eq!(listed, expected);
    }

    /// The answer, and the cells behind it.
    #[test]
    fn the_answer_follows_the_checked_cells() {
        let decided = decisions();
        let none = Decisions { kernels: vec![decision(256, None, "libc")] };
        let race = |rounds: usize| {
            let key = CellKey::new("copy", 4096, "aligned");
            vec![Row::new("tune", key, "libc", "libc", vec![1.0; rounds])]
        };
        let checked = |time: f64| refereed(4096, "cached", "copy.avx", time).to_vec();
        for (decisions, rows, answer, cells) in [
            (&decided, checked(0.5), ClosingAnswer::Yes, 1),
            (&decided, checked(0.98), ClosingAnswer::No, 1),
            (&decided, checked(1.08), ClosingAnswer::No, 1),
            (
                &decided,
                refereed(1024, "cached", "copy.avx", 0.5).to_vec(),
                ClosingAnswer::CannotTell,
                0,
            ),
            (&none, race(1), ClosingAnswer::CannotTell, 0),
            (&none, race(6), ClosingAnswer::No, 0),
        ] {
            let tuned = tuned(decisions, &rows, "libc");
            assert_eq!((tuned.closing().answer, tuned.library().len()), (answer, cells));
        }
    }

    #[test]
    fn the_figures_behind_a_decision_are_those_of_its_sizes() {
        let decisions = decisions();
        let beside =
            [("libc", 100.0, 60.0), ("copy.avx.nt", 110.0, 10.0)].map(|(who, own, lost)| Row {
                operation_ns: vec![own; 9],
                bystander_ns: vec![lost; 9],
                ..row("tune-hints", 1 << 20, "cached", who, own / 100.0)
            });
        let mut rows = beside.to_vec();
        for (size, kernel, time) in
            [(4096, "copy.avx", 0.7), (4096, "copy.sse2", 0.6), (8192, "copy.avx", 0.8)]
        {
            rows.push(row("tune", size, "cached", kernel, time));
        }
        rows.extend(refereed(6000, "cached", "copy.avx", 0.81));
        let tuned = tuned(&decisions, &rows, "libc");
        let tables = tuned.evidence("copy", 5000, "copy.avx");
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(tables[0].rows[0][..2], ["->", "copy.avx"], "what is decided for comes first");
        assert_eq!(tuned.beside("copy", 2 << 20).expect("a table").rows.len(), 1);
        assert!(tuned.beside("zero", 2 << 20).is_none());
    }
}
