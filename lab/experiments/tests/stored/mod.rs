//! The records of `record/`, by name.

use cachewise_measure::{Record, record};

/// All of them, in the order of their names.
pub fn records() -> Vec<(String, Record)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../record");
    record::folder(folder.as_ref(), |_| true).unwrap_or_else(|error| panic!("{error}"))
}
