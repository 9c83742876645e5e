//! `cachewise compare OLD NEW`: two records, or two programs whose launches take turns.

use crate::args::Compare;
use crate::progress::Bar;
use crate::verbs::redraw::Loaded;
use crate::verbs::run::{LLC, Messages, asked_for, launch};
use crate::{output, status};
use anyhow::Context as _;
use cachewise_experiments::LabError;
use cachewise_experiments::launches::merge;
use cachewise_experiments::recorder::Progress as _;
use cachewise_judge::race::{self, Ran, Runner, Stage};
use cachewise_measure::{Record, record};
use cachewise_report::closing::{Closing, ClosingAnswer, Trust};
use cachewise_report::compare::{self, CompareOutcome, Comparison};
use tempfile::TempDir;

/// Lines of the table where not every row was asked for.
const LISTED: usize = 40;

/// Compares, says so, and exits by what it found.
pub fn run(args: &Compare) -> anyhow::Result<u8> {
    let files = [&args.csv, &args.markdown, &args.json];
    output::check_all(&files.map(|file| file.as_deref()), &[&args.old, &args.new])?;
    let [old, new] = if args.command.is_empty() {
        [Loaded::read(&args.old)?.record, Loaded::read(&args.new)?.record]
    } else {
        in_turns(args)?
    };
    let [one, two] = [&old, &new].map(|record| &record.header.machine);
    let differences = compare::machine_differences(one, two);
    let files = format!("{} and {}", args.old.display(), args.new.display());
    if !differences.is_empty() && !args.across_machines {
        anyhow::bail!(
            "{files} come from different machines ({}); accepted: records of one machine, or \
             --across-machines",
            differences.join("; ")
        );
    }
    let mut found = compare::compare(&old, &new, args.margin);
    if found.rows.is_empty() && found.left_out == 0 {
        let Comparison { only_old, only_new, .. } = found;
        anyhow::bail!(
            "{files} have no row in common ({only_old} and {only_new} rows); accepted: two records of \
             the same experiment and sizes"
        );
    }
    found.differences.splice(0..0, differences);
    let mut in_place = false;
    for (path, text) in [
        (&args.csv, found.table(true).csv()),
        (&args.json, format!("{}\n", serde_json::to_string(&found)?)),
        (&args.markdown, markdown(&found, args.all)),
    ] {
        if let Some(path) = path {
            output::write(path, text.as_bytes())?;
            in_place |= output::is_stdout(path);
        }
    }
    if !in_place {
        output::print(&text(&found, args.all))?;
        output::print(&format!("\n{}", closing(&found, &old, &new)))?;
    }
    Ok(match found.outcome {
        CompareOutcome::Slower => status::REGRESSION,
        CompareOutcome::CannotTell => status::INCONCLUSIVE,
        CompareOutcome::Faster | CompareOutcome::NoDifference => status::OK,
    })
}

/// Launches of both programs in turns, so that what changes on the machine meanwhile changes for both.
fn in_turns(args: &Compare) -> anyhow::Result<[Record; 2]> {
    if args.command.first().is_none_or(|verb| verb != "run") {
        let found = args.command.join(" ".as_ref());
        return Err(LabError::Usage(format!(
            "found \"{}\" after --, accepted: run EXPERIMENT, with its options",
            found.display()
        ))
        .into());
    }
    let mut turns = Turns {
        args,
        bar: Bar::new()?,
        directory: output::temporary("compare", output::folder)?,
        llc: None,
        knows: [false; 2],
        turn: 0,
        messages: Messages::default(),
    };
    let announce = |turns: &mut Turns<'_>, turn: usize| turns.turn = turn + 1;
    let found = race::pairs(&mut turns, 1, args.launches as usize, fastrand::u64(..), announce)?;
    if found.cut.is_some() {
        return Err(LabError::Interrupted.into());
    }
    let merged = found.sides.map(|runs| merge(runs.samples().cloned().collect()));
    let [old, new] = merged.map(|record| record.context("nothing was run"));
    Ok([old?, new?])
}

/// Two builds whose launches take turns: 0 is the old one.
struct Turns<'a> {
    args: &'a Compare,
    bar: Bar,
    directory: TempDir,
    /// The LLC that the first launch found: all have its cells.
    llc: Option<usize>,
    /// Builds that know the option for it.
    knows: [bool; 2],
    turn: usize,
    messages: Messages,
}

impl Turns<'_> {
    /// One launch of a build, and its record.
    fn launched(&mut self, side: usize, llc: Option<usize>) -> anyhow::Result<Record> {
        let program = [&self.args.old, &self.args.new][side];
        let path = self.directory.path().join("launch.jsonl");
        let mut words = self.args.command.clone();
        words.extend(["--json".into(), path.clone().into()]);
        words.extend(llc.map(asked_for));
        let ended = launch(program, &words, &self.bar, Some(&mut self.messages))?;
        if self.bar.cancelled() {
            return Err(LabError::Interrupted.into());
        }
        if !ended.success() {
            anyhow::bail!(
                "{}: {ended}; accepted: two builds of cachewise that end with status 0",
                program.display()
            );
        }
        let record = record::read(&path)?;
        std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        Ok(record)
    }
}

impl Runner for Turns<'_> {
    type Sample = Record;
    type Error = anyhow::Error;

    fn run(&mut self, side: usize) -> anyhow::Result<Ran<Record>> {
        let program = [&self.args.old, &self.args.new][side].display();
        let (turn, all) = (self.turn, self.args.launches);
        self.bar.say(&format!("cachewise: turn {turn} of {all}: {program}"));
        let is_asked =
            self.args.command.iter().any(|word| word.to_string_lossy().starts_with("--llc"));
        let mut record = self.launched(side, self.llc.filter(|_| self.knows[side]))?;
        // An older build has neither the setting nor the option.
        let found = record.header.settings.get(LLC).and_then(serde_json::Value::as_u64);
        if let Some(found) = found.filter(|_| !is_asked) {
            self.knows[side] = true;
            if *self.llc.get_or_insert(found as usize) != found as usize {
                record = self.launched(side, self.llc)?;
            }
        }
        Ok(Ran::Well(record))
    }

    fn now(&self) -> f64 {
        0.0
    }

    fn progress(&mut self, _: Stage, _: f64) {}
}

fn closing(found: &Comparison, old: &Record, new: &Record) -> Closing {
    let (answer, next) = match found.outcome {
        CompareOutcome::Faster => (ClosingAnswer::Yes, "keep what is new"),
        CompareOutcome::Slower => (
            ClosingAnswer::No,
            "what became slower is listed first; the same again with --all lists every row",
        ),
        CompareOutcome::NoDifference => {
            (ClosingAnswer::No, "nothing; more launches show smaller differences")
        }
        CompareOutcome::CannotTell if found.rows.is_empty() => {
            (ClosingAnswer::CannotTell, "`cachewise report OLD NEW` prints both records' tables")
        }
        CompareOutcome::CannotTell => (
            ClosingAnswer::CannotTell,
            "`cachewise compare OLD-PROGRAM NEW-PROGRAM -- run EXPERIMENT` launches two builds in \
             turns; `cachewise run EXPERIMENT --launches 40` makes a record that can be compared",
        ),
    };
    let mut trust = Trust::default();
    for (record, which) in [(old, "old"), (new, "new")] {
        let interrupted = record.end.as_ref().is_none_or(|end| end.interrupted);
        let one = Trust::of(&record.rows, &record.header.warnings, interrupted);
        if let Some(worst) = one.worst() {
            trust.doubt(format!("in the {which} record, {worst}"));
        }
    }
    for difference in &found.differences {
        trust.doubt(format!("the runs differ in {difference}"));
    }
    let because = match found.outcome {
        CompareOutcome::CannotTell if found.rows.is_empty() => "nothing to compare",
        CompareOutcome::CannotTell => "too few launches",
        outcome => outcome.name(),
    };
    Closing { answer, because: because.to_owned(), trust, next: next.to_owned() }
}

fn text(found: &Comparison, all: bool) -> String {
    let mut text = format!("{}\n", found.sentence);
    for remark in found.remarks() {
        text.push_str(&format!("  {remark}\n"));
    }
    let mut table = found.table(all);
    let more = table.rows.len().saturating_sub(LISTED);
    if !all && more > 0 {
        table.rows.truncate(LISTED);
        table.remarks.push(format!("{more} more changed; --all lists every row"));
    }
    if !table.rows.is_empty() {
        text.push('\n');
        text.push_str(&table.terminal(output::width()));
    }
    text
}

fn markdown(found: &Comparison, all: bool) -> String {
    let mut text = format!("{}\n\n", found.sentence);
    for remark in found.remarks() {
        text.push_str(&format!("- {remark}\n"));
    }
    text.push('\n');
    text.push_str(&found.table(all).markdown());
    text
}
