//! Two records of `run --launches`.

use super::Said;
use crate::args::Compare;
use crate::status;
use crate::verbs::redraw::Loaded;
use cachewise_measure::Record;
use cachewise_report::closing::Trust;
use cachewise_report::compare::{self, CompareOutcome, Comparison};
use std::path::Path;

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
    let said = Said {
        sentence: &found.sentence,
        remarks: found.remarks(),
        table: &|all| found.table(all),
        ratios: &[],
        judged: None,
        margin: found.margin,
        json: serde_json::to_string(&found)?,
        below: format!("\ntrust:      {}\n", trust(&found, &old, &new)),
    };
    said.write(args)?;
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
