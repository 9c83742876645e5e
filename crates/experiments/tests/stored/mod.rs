//! The records of `record/`, by name.

use cachewise_measure::{Record, record};

/// All of them, in the order of their names.
pub fn records() -> Vec<(String, Record)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../record");
    let entries = std::fs::read_dir(directory).expect("the records").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".jsonl.gz"));
    names.sort();
    let read = |name: String| {
        let record = record::read(format!("{directory}/{name}").as_ref());
        (name, record.unwrap_or_else(|error| panic!("{error}")))
    };
    names.into_iter().map(read).collect()
}
