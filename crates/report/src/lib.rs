//! Records drawn as terminal tables, CSV and Markdown; pure functions, no measuring.
//!
//! Everything here can redraw any old record: it reads the record's rows and nothing else.
#![warn(missing_docs)]

pub mod forms;
pub mod kernels;
pub mod matrix;
pub mod table;
pub mod tuning;
pub mod units;

pub use table::{Align, Table};

/// How an experiment's rows become tables.
type Form = fn(&[cachewise_measure::Row]) -> Vec<Table>;

/// The experiments whose tables have a form of their own, the source document's.
const FORMS: &[(&str, Form)] = &[
    ("read-batch", forms::read_batch::tables),
    ("aliasing", forms::aliasing::tables),
    ("values", forms::values::tables),
    ("vector-state", forms::vector_state::tables),
    ("compare-latency", forms::compare_latency::tables),
    ("extent", forms::extent::tables),
];

/// An experiment's tables: in its own form, or the matrix.
#[must_use]
pub fn experiment_tables(experiment: &str, rows: &[cachewise_measure::Row]) -> Vec<Table> {
    let form = FORMS.iter().find(|(name, _)| *name == experiment);
    form.map_or(matrix::tables as Form, |(_, form)| *form)(rows)
}
