//! Records back from disk, and what is drawn from them: what `report`, `run` and `tune` share.

use crate::output;
use anyhow::Context;
use cachewise_measure::{Record, record};
use cachewise_report::html::{self, Sheet};
use cachewise_report::tuning::Tuned;
use cachewise_report::{Table, plot, text};
use cachewise_tune::again::{decide_again, facts};
use cachewise_tune::recording;
use std::path::Path;

/// Columns where there is no terminal to ask.
const COLUMNS: u16 = 80;

/// A record with its file's name.
pub struct Loaded {
    pub name: String,
    pub record: Record,
}

impl Loaded {
    /// Reads a record. A tuning's of schema 1, which does not say
    /// what was decided, is decided from its rows again.
    pub fn read(path: &Path) -> anyhow::Result<Loaded> {
        let mut record = record::read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if record.header.schema == 1
            && record.decisions.kernels.is_empty()
            && let Ok(tuning) = decide_again(&record.rows, facts(&record.header), &[])
        {
            record.decisions = recording::decisions(&tuning);
        }
        Ok(Loaded { name, record })
    }

    /// The decisions as a table.
    pub fn decisions(&self) -> Option<Table> {
        let libc = super::libc(&self.record.header.machine);
        let is_there = !self.record.decisions.kernels.is_empty();
        is_there.then(|| Tuned::of(&self.record, &libc).table())
    }
}

/// The page of those records.
pub fn page(all: &[Loaded]) -> anyhow::Result<String> {
    let sheets = all.iter().map(|loaded| Sheet {
        name: loaded.name.clone(),
        record: &loaded.record,
        tables: loaded.decisions().into_iter().collect(),
    });
    html::page(&sheets.collect::<Vec<_>>()).context("the page was not drawn")
}

/// What a record says, its machine and its tables.
pub fn summary(record: &Record, tables: &[Table]) -> String {
    let mut text: String =
        cachewise_report::verdicts(record).iter().map(|verdict| format!("{verdict}\n")).collect();
    text.push_str(&format!("{}\n", record.header.machine.summary_line()));
    for table in tables {
        text.push('\n');
        text.push_str(&table.terminal(output::width()));
    }
    text
}

/// The figures in text, as wide as the terminal.
pub fn plots(record: &Record) -> String {
    let style = text::Style { width: output::width().unwrap_or(COLUMNS), colour: output::colour() };
    plot::plots(record).iter().map(|plot| format!("\n{}", text::plot(plot, style))).collect()
}
