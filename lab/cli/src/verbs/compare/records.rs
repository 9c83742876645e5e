//! Two records of `run --launches`.

use crate::args::Compare;
use crate::verbs::redraw::Loaded;
use crate::{output, status};
use cachewise_measure::Record;
use cachewise_report::closing::Trust;
use cachewise_report::compare::{self, CompareOutcome, Comparison};
use std::path::Path;

/// Lines of the table where not every row was asked for.
const LISTED: usize = 40;

/// Compares, says so, and exits by what it found.
pub fn run(args: &Compare, [old, new]: [&Path; 2]) -> anyhow::Result<u8> {
    let files = format!("{} and {}", old.display(), new.display());
    let [old, new] = [Loaded::read(old)?.record, Loaded::read(new)?.record];
    let [one, two] = [&old, &new].map(|record| &record.header.machine);
    let differences = compare::machine_differences(one, two);
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
        output::print(&format!("\ntrust:      {}\n", trust(&found, &old, &new)))?;
    }
    Ok(match found.outcome {
        CompareOutcome::Slower => status::REGRESSION,
        CompareOutcome::CannotTell => status::INCONCLUSIVE,
        CompareOutcome::Faster | CompareOutcome::NoDifference => status::OK,
    })
}

fn trust(found: &Comparison, old: &Record, new: &Record) -> Trust {
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
    trust
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
