//! `cachewise list`.

use crate::args::{Form, List, Listing};
use crate::{output, status};
use cachewise_experiments::experiment::Experiment;
use cachewise_experiments::registry;
use cachewise_experiments::{LabError, select};
use cachewise_kernels::{Features, Operation};
use cachewise_report::Table;
use serde_json::{Value, json};

/// A table, and the same as objects.
type Listed = (Table, Vec<Value>);

/// Columns of the list of kernels that a terminal shows; the other forms have all.
const SHOWN: [&str; 4] = ["name", "aliases", "here", "meaning"];

/// Prints the kernels or the experiments, or how many there are.
pub fn run(args: &List) -> anyhow::Result<u8> {
    if args.what.is_none()
        && args.op.is_none()
        && args.kernels.is_none()
        && args.format == Form::Table
    {
        return summary();
    }
    let listing = args.what.unwrap_or(Listing::Kernels);
    let (what, other) = match listing {
        Listing::Kernels => ("kernels", None),
        Listing::Experiments => {
            let op = args.op.map(|_| "--op");
            ("experiments", op.or(args.kernels.as_ref().map(|_| "--kernels")))
        }
    };
    if let Some(option) = other {
        let refusal = format!("{option}: not for {what}; use it with `list kernels`");
        return Err(LabError::Usage(refusal).into());
    }
    let (mut table, objects) = match listing {
        Listing::Kernels => kernels(args)?,
        Listing::Experiments => experiments(),
    };
    if listing == Listing::Kernels && args.format == Form::Table {
        table = table.only(&SHOWN);
        table.remark("--format csv, markdown and json: also stores, prefetch, grouping, registers");
    }
    output::print(&match args.format {
        Form::Table => table.terminal(output::width()),
        Form::Csv => table.csv(),
        Form::Markdown => table.markdown(),
        Form::Json => objects.iter().map(|object| format!("{object}\n")).collect(),
    })?;
    Ok(status::OK)
}

/// Prints a summary of all lists on one screen.
fn summary() -> anyhow::Result<u8> {
    let kernels = select::kernels(&Operation::ALL, None)?;
    let table = cachewise_report::kernels::summary(&kernels, Features::detect());
    let names: Vec<String> = registry::here().map(Experiment::words).collect();
    output::print(&format!(
        "{}\nexperiments: {}\n\nmore: `cachewise list kernels --op copy`, `list experiments`\n",
        table.terminal(output::width()),
        names.join(" ")
    ))?;
    Ok(status::OK)
}

fn kernels(args: &List) -> anyhow::Result<Listed> {
    let operations = args.op.map_or(Operation::ALL.to_vec(), |operation| vec![operation]);
    let kernels = select::kernels(&operations, args.kernels.as_deref())?;
    let available = Features::detect();
    let objects = kernels.iter().map(|kernel| {
        json!({
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
        })
    });
    Ok((cachewise_report::kernels::list(&kernels, available), objects.collect()))
}

fn experiments() -> Listed {
    let mut table = Table::new("", &["name", "answers", "question"]);
    table.remark("answers: items of the source documents, in docs/checklist.md");
    let mut objects = Vec::new();
    for experiment in registry::here() {
        let Experiment { seeds, about, .. } = experiment;
        let name = experiment.words();
        objects.push(json!({ "name": name, "seeds": seeds, "about": about }));
        table.push(vec![name, seeds.join(" "), (*about).to_owned()]);
    }
    (table, objects)
}
