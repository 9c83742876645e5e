//! `cachewise list`.

use crate::args::{Form, List, Listing};
use crate::{output, status};
use cachewise_kernels::{Features, Kernel, Operation};
use cachewise_lab::{experiments, select};
use cachewise_report::Table;

/// Prints the kernels or the experiments.
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
        Listing::Experiments => {
            let mut table = Table::new("", &["name", "seed items", "question"]);
            for experiment in experiments::ALL {
                table.push(vec![
                    experiment.name.to_owned(),
                    experiment.seeds.join(" "),
                    experiment.about.to_owned(),
                ]);
            }
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

fn write(table: &Table, form: Form) -> anyhow::Result<()> {
    match form {
        Form::Csv => {
            let mut bytes = Vec::new();
            table.csv(&mut bytes)?;
            output::print(&String::from_utf8_lossy(&bytes))
        }
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
