//! Records drawn as terminal tables and plots, CSV, Markdown, SVG and one HTML page, compared with
//! each other, and spliced into documents; pure functions, no measuring.
//!
//! Everything here can redraw any old record: it reads the record's rows and nothing else.
#![warn(missing_docs)]

pub mod advice;
pub mod closing;
pub mod compare;
pub mod cost;
pub mod crossover;
pub mod forms;
pub mod html;
pub mod kernels;
pub mod matrix;
pub mod peers;
pub mod plot;
mod rows;
pub mod sentences;
pub mod splice;
mod svg;
pub mod table;
pub mod text;
pub mod tuning;

/// How sizes, rates and times are written: one formatter for all.
pub use cachewise_measure::units;
pub use table::{Align, Table};

/// How an experiment's rows become tables.
type Form = fn(&[cachewise_measure::Row]) -> Vec<Table>;

/// The experiments whose tables have a form of their own, the source document's.
const FORMS: &[(&str, Form)] = &[
    ("advise", forms::advise::tables),
    ("page-clear", forms::page_loops::tables),
    ("page-copy", forms::page_loops::tables),
    ("reuse-map", forms::reuse_map::tables),
    ("cached-target", forms::cached_target::tables),
    ("receive", forms::receive::tables),
    ("peers", peers::tables),
    ("read-batch", |rows| forms::grids::READ_BATCHES.tables(rows)),
    ("aliasing", |rows| {
        [forms::grids::OFFSETS.tables(rows), forms::grids::PAGES.tables(rows)].concat()
    }),
    ("page-colour", |rows| forms::grids::VALUES_STORED.tables(rows)),
    ("values", |rows| forms::grids::VALUES_STORED.tables(rows)),
    ("twins", forms::twins::tables),
    ("sticky", |rows| forms::grids::CALLS.tables(rows)),
    ("vector-state", forms::vector_state::tables),
    ("compare-latency", forms::compare_latency::tables),
    ("extent", |rows| forms::grids::EXTENTS.tables(rows)),
    ("parallel", |rows| forms::grids::THREADS_TOGETHER.tables(rows)),
    ("tune-parallel", |rows| forms::grids::THREADS_TOGETHER.tables(rows)),
    ("page-fault", forms::page_fault::tables),
];

fn form(experiment: &str) -> Option<Form> {
    FORMS.iter().find(|(name, _)| *name == experiment).map(|(_, form)| *form)
}

/// Whether an experiment's tables have a form of their own.
pub fn has_form(experiment: &str) -> bool {
    form(experiment).is_some()
}

/// An experiment's tables: in its own form, or the matrix.
pub fn experiment_tables(experiment: &str, rows: &[cachewise_measure::Row]) -> Vec<Table> {
    form(experiment).unwrap_or(matrix::tables)(rows)
}

/// What a record's rows amount to; the first is the headline. By today's rules, not those of the day it
/// was written: what is withheld today is not repeated from then. Where there are no rules, what the
/// record says.
pub fn verdicts(record: &cachewise_measure::Record) -> Vec<String> {
    match record.experiment().filter(|name| sentences::has(name)) {
        Some(name) => sentences::of(name, &record.rows, &record.decisions.kernels),
        None if rows::experiment_of(record) == "tune" && !record.decisions.kernels.is_empty() => {
            let libc = &record.header.machine.libc;
            let libc = format!("{} {}", libc.name, libc.version);
            vec![tuning::Tuned::of(record, &libc).closing().because]
        }
        None => record.end.as_ref().map_or_else(Vec::new, |end| end.verdicts.clone()),
    }
}
