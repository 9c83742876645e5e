//! `cachewise report`: old records drawn again; of a folder of them, what they answer.

use crate::args::Report;
use crate::verbs::redraw::{self, Loaded};
use crate::{output, status};
use anyhow::Context as _;
use cachewise_experiments::claims::Answers;
use cachewise_report::{compare, html, matrix};
use std::path::Path;

pub fn run(args: &Report) -> anyhow::Result<u8> {
    output::check_all(&[args.output.as_deref(), args.csv.as_deref()], &args.records)?;
    if let [folder] = &args.records[..]
        && folder.is_dir()
    {
        return answers(folder, args);
    }
    let mut all = Vec::new();
    for path in &args.records {
        all.extend(Loaded::read_all(path)?);
    }
    warn_of_mixed_machines(&all);
    if let Some(path) = &args.output {
        output::write(path, redraw::page(&all)?.as_bytes())?;
    }
    if let Some(path) = &args.csv {
        let records = all.iter().map(|one| (&one.record.header.machine, &one.record.rows[..]));
        output::write(path, matrix::flat(records).csv().as_bytes())?;
    }
    let files = args.output.is_some() || args.csv.is_some();
    for (index, one) in all.iter().enumerate() {
        let mut text = String::new();
        if !files {
            if index > 0 {
                text.push('\n');
            }
            if all.len() > 1 {
                text.push_str(&format!("{}\n", one.name));
            }
            text.push_str(&summary(one));
        }
        output::print(&text)?;
    }
    Ok(status::OK)
}

/// The answers of a folder's records to the source documents' claims, CPU by CPU.
fn answers(folder: &Path, args: &Report) -> anyhow::Result<u8> {
    let answers = Answers::of(folder).map_err(anyhow::Error::msg)?;
    if let Some(path) = &args.output {
        output::write(path, answers.html().context("the page was not drawn")?.as_bytes())?;
    }
    if let Some(path) = &args.csv {
        output::write(path, answers.table().csv().as_bytes())?;
    }
    if args.output.is_none() && args.csv.is_none() {
        let table = answers.table().only(&["item", "measured", "answer", "times"]);
        output::print(&table.terminal(output::width()))?;
    }
    Ok(status::OK)
}

/// Text that the experiment printed when it ran.
fn summary(one: &Loaded) -> String {
    let record = &one.record;
    let said = redraw::said(record);
    let mut text = redraw::summary(record, &said);
    if record.rows.is_empty() && said.verdicts.is_empty() {
        text.insert_str(0, &format!("{}\n", html::NOTHING_COMPARED));
    }
    if record.end.as_ref().is_some_and(|end| end.interrupted) {
        text.push_str("\nstopped before its end: these are the rows that were finished\n");
    }
    text
}

fn warn_of_mixed_machines(all: &[Loaded]) {
    let Some(first) = all.first() else { return };
    for other in &all[1..] {
        let [one, two] = [first, other].map(|loaded| &loaded.record.header.machine);
        let differences = compare::machine_differences(one, two);
        if !differences.is_empty() {
            let (other, first, how) = (&other.name, &first.name, differences.join("; "));
            output::tell(&format!(
                "warning: {other} comes from another machine than {first} ({how}); compare ratios, not \
                 seconds"
            ));
        }
    }
}
