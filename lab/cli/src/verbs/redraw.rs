//! Records back from disk, and what is drawn from them: what `report`, `run` and `tune` share.

use crate::{advised, output};
use anyhow::Context;
use cachewise_experiments::said;
use cachewise_measure::{Record, record};
use cachewise_report::html::{self, Sheet};
use cachewise_report::{Said, plot, text};
use cachewise_tune::say::Tuned;
use std::path::Path;

/// Columns where there is no terminal to ask.
const COLUMNS: u16 = 80;

/// A record with its file's name.
pub struct Loaded {
    pub name: String,
    pub record: Record,
}

impl Loaded {
    /// Reads a record; of a file with several, `FILE#EXPERIMENT`.
    pub fn read(path: &Path) -> anyhow::Result<Loaded> {
        Ok(Loaded { name: named(path), record: record::read(path)? })
    }

    /// Reads every record of a file; of one that `FILE#EXPERIMENT` names, that one.
    pub fn read_all(path: &Path) -> anyhow::Result<Vec<Loaded>> {
        if !path.exists() {
            return Ok(vec![Loaded::read(path)?]);
        }
        let all = record::read_all(path)?;
        let several = all.len() > 1;
        let loaded = |record: Record| match record.name().filter(|_| several) {
            Some(own) => Loaded { name: format!("{}#{own}", named(path)), record },
            None => Loaded { name: named(path), record },
        };
        Ok(all.into_iter().map(loaded).collect())
    }
}

/// A file's name without its folder.
pub fn named(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The page of those records.
pub fn page(all: &[Loaded]) -> anyhow::Result<String> {
    let sheets = all.iter().map(|Loaded { name, record }| Sheet {
        name: name.clone(),
        record,
        said: said(record),
    });
    html::page(&sheets.collect::<Vec<_>>()).context("the page was not drawn")
}

/// Sentences and tables of a record: an experiment's or a tuning's.
pub fn said(record: &Record) -> Said {
    let libc = super::libc(&record.header.machine);
    let tuned = Tuned::of(record, &libc);
    let mut said = tuned.said(record).unwrap_or_else(|| said::said(record));
    if said.decisions.is_none() && tuned.is_decided() {
        said.decisions = Some(tuned.table());
    }
    if record.experiment() == Some(advised::EXPERIMENT) {
        said.tables = advised::tables(record);
        // Its answer, with the command and the variables to set.
        said.verdicts = record.end.as_ref().map_or(Vec::new(), |end| end.verdicts.clone());
    }
    said
}

/// Sentences of a record, its machine and its tables, or its decisions where there are some.
pub fn summary(record: &Record, said: &Said) -> String {
    let mut text: String = said.verdicts.iter().map(|verdict| format!("{verdict}\n")).collect();
    text.push_str(&format!("{}\n", record.header.machine.summary_line()));
    let decided = said.decisions.as_slice();
    for table in if decided.is_empty() { &said.tables } else { decided } {
        text.push('\n');
        text.push_str(&table.terminal(output::width()));
    }
    text
}

/// The figures in text, as wide as the terminal.
pub fn plots(record: &Record) -> String {
    let width = output::width().unwrap_or(COLUMNS);
    plot::plots(record).iter().map(|plot| format!("\n{}", text::plot(plot, width))).collect()
}
