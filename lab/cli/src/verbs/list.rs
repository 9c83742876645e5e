//! `cachewise list`.

use super::doctor;
use crate::args::{Form, List, Listing};
use crate::{output, status};
use cachewise::entry;
use cachewise::profile::OPERATIONS;
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

/// Prints the kernels, the entries or the experiments, or how many there are.
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
        Listing::Entries => ("entries", args.kernels.as_ref().map(|_| "--kernels")),
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
        Listing::Entries => entries(args),
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
    let names: Vec<&str> = registry::ALL.iter().map(|experiment| experiment.name).collect();
    output::print(&format!(
        "{}\nexperiments: {}\n\nmore: `cachewise list kernels --op copy`, `list experiments`, \
         `list entries`\n",
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

/// The entries of each operation, and which one calls take.
fn entries(args: &List) -> Listed {
    // Asked first: an entry is chosen when the decisions are made.
    let title =
        format!("Entry stubs; profile in force: {}", doctor::profile(&cachewise::profile_source()));
    let mut table = Table::new(
        title,
        &[
            "operation",
            "entry",
            "needs",
            "here",
            "in use",
            ">bytes",
            ">loads",
            ">stores",
            ">jumps",
            ">lines",
        ],
    );
    table.remark("jumps: the taken ones of a call; lines: of its code; sizes below are the same in each entry");
    let mut objects = Vec::new();
    for operation in args.op.map_or(OPERATIONS.to_vec(), |operation| vec![operation]) {
        let chosen = entry::chosen(operation).map(|entry| entry.name);
        for (at, entry) in entry::variants(operation).iter().enumerate() {
            let missing = entry.requires.missing_from(Features::detect());
            let in_use = chosen == Some(entry.name);
            let classes = costs(operation, entry.name);
            let mut about = [
                operation.name().to_owned(),
                entry.name.to_owned(),
                entry.requires.to_string(),
                if missing.is_empty() { "yes".to_owned() } else { format!("lacks {missing}") },
                if in_use { "yes" } else { "" }.to_owned(),
            ];
            for class in classes.iter().filter(|class| at == 0 || !class.is_common) {
                let numbers = [class.loads, class.stores, class.jumps, class.lines];
                let row = about.iter().cloned().chain([class.sizes()]);
                table.push(row.chain(numbers.iter().map(usize::to_string)).collect());
                about[2..].fill(String::new());
            }
            objects.push(json!({
                "operation": operation.name(),
                "name": entry.name,
                "requires": entry.requires.to_string(),
                "runs_here": missing.is_empty(),
                "in_use": in_use,
                "classes": classes.iter().map(Costs::object).collect::<Vec<_>>(),
            }));
        }
    }
    (table, objects)
}

/// One class of sizes of an entry.
struct Costs {
    first: usize,
    last: usize,
    loads: usize,
    stores: usize,
    jumps: usize,
    lines: usize,
    is_common: bool,
}

impl Costs {
    fn object(&self) -> serde_json::Value {
        let Costs { first, last, loads, stores, jumps, lines, .. } = self;
        json!({
            "first": first, "last": last, "loads": loads, "stores": stores, "jumps": jumps, "lines": lines,
        })
    }

    fn sizes(&self) -> String {
        let Costs { first, last, .. } = self;
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }
}

#[cfg(target_arch = "x86_64")]
fn costs(operation: Operation, entry: &str) -> Vec<Costs> {
    let classes = cachewise::entry::cost::classes(operation, entry);
    classes
        .map(|class| Costs {
            first: class.first,
            last: class.last,
            loads: class.loads,
            stores: class.stores,
            jumps: class.jumps,
            lines: class.lines,
            is_common: class.entry.is_none(),
        })
        .collect()
}

/// No entries are written out.
#[cfg(not(target_arch = "x86_64"))]
fn costs(_: Operation, _: &str) -> Vec<Costs> {
    Vec::new()
}

fn experiments() -> Listed {
    let mut table = Table::new("", &["name", "answers", "question"]);
    table.remark("answers: items of the source documents, in docs/checklist.md");
    let mut objects = Vec::new();
    for Experiment { name, seeds, about, .. } in registry::ALL {
        objects.push(json!({ "name": name, "seeds": seeds, "about": about }));
        table.push(vec![(*name).to_owned(), seeds.join(" "), (*about).to_owned()]);
    }
    (table, objects)
}
