//! Records back from disk, and what is drawn from them: what `report`, `run` and `tune` share.

use crate::output;
use crate::verbs::tune;
use anyhow::Context;
use cachewise::profile::{FIRST_SIZE, MAX_SIZE, OPERATIONS, Profile, fnv1a64, hints};
use cachewise_lab::decide::{self, Range};
use cachewise_lab::tune::{Decided, EXPERIMENT, Evidence, figures};
use cachewise_measure::{Machine, Record, Row, record};
use cachewise_report::html::{self, Sheet};
use cachewise_report::{Table, plot, text};
use std::io::Read as _;
use std::path::Path;

/// Columns where there is no terminal to ask.
const COLUMNS: u16 = 80;
/// No record of ours comes near; what unpacks to more is no record.
const MOST_BYTES: u64 = 1 << 30;

/// A record with its text.
pub struct Loaded {
    /// Its file name.
    pub name: String,
    /// What it says.
    pub record: Record,
    /// Its lines, unpacked.
    pub data: Vec<u8>,
    /// What it decided, of a tuning.
    pub decided: Option<Vec<Decided>>,
}

impl Loaded {
    /// Reads a record, unpacking it where it is compressed, and finds its decisions where it is a
    /// tuning's.
    pub fn read(path: &Path) -> anyhow::Result<Loaded> {
        let file = path.display().to_string();
        let stored = std::fs::read(path).with_context(|| file.clone())?;
        let data = if stored.starts_with(&[0x1f, 0x8b]) {
            let mut unpacked = Vec::new();
            flate2::read::MultiGzDecoder::new(stored.as_slice())
                .take(MOST_BYTES)
                .read_to_end(&mut unpacked)
                .with_context(|| format!("{file}: not unpacked; accepted: a whole gzip file"))?;
            unpacked
        } else {
            stored
        };
        let mut record = record::read_text(&file, &String::from_utf8_lossy(&data))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let decided = decided(path, &record, &data);
        // Tunings from before records named their figures.
        if decided.is_some() && record.header.figures.is_empty() {
            record.header.figures = figures();
        }
        Ok(Loaded { name, record, data, decided })
    }

    /// The decisions as a table.
    pub fn decisions(&self) -> Option<Table> {
        let decided = self.decided.as_ref()?;
        Some(tune::decisions(&self.record.header.machine, decided, &self.record.rows))
    }

    /// What the record says it amounts to, or what a tuning from before it said so does.
    pub fn verdicts(&self) -> Vec<String> {
        let own = cachewise_report::verdicts(&self.record);
        match &self.decided {
            Some(decided) if own.is_empty() => {
                tune::verdicts(&self.record.header.machine, decided, &self.record.rows)
            }
            _ => own,
        }
    }
}

/// A tuning's decisions: those of the profile beside the record that was made from it, or else from
/// the rows again, with crossovers halfway between the sizes of the grid.
fn decided(path: &Path, record: &Record, data: &[u8]) -> Option<Vec<Decided>> {
    let rows: Vec<Row> =
        record.rows.iter().filter(|row| row.experiment == EXPERIMENT).cloned().collect();
    if rows.is_empty() {
        return None;
    }
    profile_beside(path, data)
        .or_else(|| again(&rows, &record.header.machine))
        .filter(|decided| !decided.is_empty())
}

fn profile_beside(path: &Path, data: &[u8]) -> Option<Vec<Decided>> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let checksum = fnv1a64(data);
    let profiles = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    for candidate in profiles.filter(|path| path.extension().is_some_and(|e| e == "profile")) {
        let Ok(profile) = Profile::read(&candidate) else { continue };
        if profile.record.as_ref().is_some_and(|record| record.checksum == checksum) {
            let decided = profile.decisions.into_iter().map(|d| Decided {
                operation: d.operation,
                reuse: d.reuse,
                range: Range {
                    from: d.from as usize,
                    to: (d.to != MAX_SIZE).then_some(d.to as usize),
                    kernel: d.kernel,
                },
            });
            return Some(decided.collect());
        }
    }
    None
}

fn again(rows: &[Row], machine: &Machine) -> Option<Vec<Decided>> {
    let evidence = Evidence::new(rows).on(&machine.caches);
    let mut decided = Vec::new();
    for operation in OPERATIONS {
        for &reuse in hints(operation) {
            // Where a crossover was narrowed only two kernels were measured.
            let grid: Vec<decide::AtSize> = evidence
                .sizes(operation)
                .into_iter()
                .map(|size| evidence.at(operation, reuse, size))
                .filter(|at| at.costs.len() > 2)
                .collect();
            let ranges =
                decide::ranges(&decide::sequence(&grid), FIRST_SIZE as usize, |below, above| {
                    below.midpoint(above)
                });
            decided.extend(ranges.into_iter().map(|range| Decided { operation, reuse, range }));
        }
    }
    Some(decided)
}

/// The page of those records.
pub fn page(all: &[Loaded]) -> anyhow::Result<String> {
    let sheets: Vec<Sheet<'_>> = all
        .iter()
        .map(|loaded| Sheet {
            name: loaded.name.clone(),
            record: &loaded.record,
            data: &loaded.data,
            verdicts: loaded.verdicts(),
            tables: loaded.decisions().into_iter().collect(),
        })
        .collect();
    html::page(&sheets).context("the page was not drawn")
}

/// The figures in text, as wide as the terminal.
pub fn plots(record: &Record) -> String {
    let style = text::Style { width: output::width().unwrap_or(COLUMNS), colour: output::colour() };
    let mut drawn = String::new();
    for figure in plot::figures(record) {
        if let Some(plot) = plot::plot(record, &figure) {
            drawn.push('\n');
            drawn.push_str(&text::plot(&plot, style));
        }
    }
    drawn
}
