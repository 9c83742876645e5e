//! `cachewise list`.

use super::doctor;
use crate::args::{Form, List, Listing};
use crate::{output, status};
use cachewise::entry;
use cachewise::profile::OPERATIONS;
use cachewise_kernels::{Features, Kernel, Operation};
use cachewise_lab::{experiments, select};
use cachewise_report::Table;

/// Prints the kernels, the entries or the experiments.
pub fn run(args: &List) -> anyhow::Result<u8> {
    match args.what {
        Listing::Kernels => {
            let operations = args.op.map_or(Operation::ALL.to_vec(), |operation| vec![operation]);
            let kernels = select::kernels(&operations, args.kernels.as_deref())?;
            if args.format == Form::Json {
                output::print(&json(&kernels))?;
            } else {
                write(&cachewise_report::kernels::list(&kernels, Features::detect()), args.format)?;
            }
        }
        Listing::Entries => entries(args)?,
        Listing::Experiments => {
            let mut table = Table::new("", &["name", "answers", "question"]);
            for experiment in experiments::ALL {
                table.push(vec![
                    experiment.name.to_owned(),
                    experiment.seeds.join(" "),
                    experiment.about.to_owned(),
                ]);
            }
            table.remark("answers: items of the source documents, in docs/checklist.md");
            if args.format == Form::Json {
                let lines = experiments::ALL.iter().map(|experiment| {
                    serde_json::json!({
                        "name": experiment.name,
                        "seeds": experiment.seeds,
                        "about": experiment.about,
                    })
                });
                output::print(&lines.map(|line| format!("{line}\n")).collect::<String>())?;
            } else {
                write(&table, args.format)?;
            }
        }
    }
    Ok(status::OK)
}

/// The entries of each operation, and which one calls take.
fn entries(args: &List) -> anyhow::Result<()> {
    // Asked first: an entry is chosen when the decisions are made.
    let title = format!("Entries; decisions: {}", doctor::profile(&cachewise::profile_source()));
    let mut table = Table::new(title, &["operation", "entry", "needs", "here", "in use"]);
    let mut lines = String::new();
    let available = Features::detect();
    for operation in args.op.map_or(OPERATIONS.to_vec(), |operation| vec![operation]) {
        let chosen = entry::chosen(operation).map(|entry| entry.name);
        for entry in entry::variants(operation) {
            let missing = entry.requires.missing_from(available);
            let in_use = chosen == Some(entry.name);
            let line = serde_json::json!({
                "operation": operation.name(),
                "name": entry.name,
                "requires": entry.requires.to_string(),
                "runs_here": missing.is_empty(),
                "in_use": in_use,
            });
            lines.push_str(&format!("{line}\n"));
            table.push(vec![
                operation.name().to_owned(),
                entry.name.to_owned(),
                entry.requires.to_string(),
                if missing.is_empty() { "yes".to_owned() } else { format!("lacks {missing}") },
                if in_use { "yes" } else { "" }.to_owned(),
            ]);
        }
    }
    if args.format == Form::Json { output::print(&lines) } else { write(&table, args.format) }
}

fn write(table: &Table, form: Form) -> anyhow::Result<()> {
    match form {
        Form::Csv => output::print(&table.csv()),
        Form::Markdown => output::print(&table.markdown()),
        Form::Table | Form::Json => output::print(&table.terminal(output::width())),
    }
}

fn json(kernels: &[&Kernel]) -> String {
    let available = Features::detect();
    kernels
        .iter()
        .map(|kernel| {
            let line = serde_json::json!({
                "name": kernel.name,
                "operation": kernel.operation().name(),
                "aliases": kernel.aliases,
                "store": kernel.store.name(),
                "prefetch": kernel.prefetch.to_string(),
                "grouping": kernel.grouping,
                "registers": kernel.registers.name(),
                "requires": kernel.requires.to_string(),
                "deploy": kernel.deploy,
                "runs_here": kernel.runs_on(available),
                "about": kernel.about,
            });
            format!("{line}\n")
        })
        .collect()
}
