//! The records of `record/`, by name.

use cachewise_measure::{Record, record};
use std::io::Read as _;

/// All of them, in the order of their names.
pub fn records() -> Vec<(String, Record)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../record");
    let entries = std::fs::read_dir(directory).expect("the records").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".jsonl.gz"));
    names.sort();
    let read = |name: String| {
        let stored = std::fs::File::open(format!("{directory}/{name}")).expect("a record");
        let mut text = String::new();
        let mut decoder = flate2::read::MultiGzDecoder::new(stored);
        decoder.read_to_string(&mut text).expect("a whole gzip file");
        let record = record::read_text(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        (name, record)
    };
    names.into_iter().map(read).collect()
}
