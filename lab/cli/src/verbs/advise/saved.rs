//! By how much the fastest routine beats libc, by operation and size: from the profile's record. Without one, all
//! that libc takes, which nothing can beat.

use cachewise::profile::Profile;
use cachewise_measure::{Record, record};
use std::collections::BTreeMap;
use std::path::Path;

/// Below, the library does what libc does.
const LEAST: u64 = 256;

/// Time that could be saved.
pub struct Saved {
    /// Nanoseconds a call, by operation and bytes.
    by_size: BTreeMap<(String, u64), f64>,
    /// Seconds of a byte that libc copies.
    byte: f64,
}

impl Saved {
    /// Computes the time that could be saved from a profile's record.
    pub fn of(profile: Option<&Path>, parsed: Option<&Profile>, byte: f64) -> Saved {
        let named = profile.zip(parsed.and_then(|parsed| parsed.record.as_ref()));
        let record =
            named.and_then(|(path, record)| record::read(&path.with_file_name(&record.name)).ok());
        let mut by_size = BTreeMap::new();
        let rows = record.as_ref().map_or(&[][..], |record: &Record| &record.rows);
        for (cell, rows) in record::by_cell(rows.iter()) {
            let libc = rows.iter().find(|row| row.candidate == record::names::LIBC);
            let best = rows
                .iter()
                .map(|row| row.median_ns())
                .filter(|ns| *ns > 0.0)
                .fold(f64::MAX, f64::min);
            let Some(libc) = libc.map(|row| row.median_ns()).filter(|ns| *ns > 0.0) else {
                continue;
            };
            let most = by_size.entry((cell.operation.clone(), cell.size)).or_insert(0.0_f64);
            *most = most.max(libc - best);
        }
        Saved { by_size, byte }
    }

    /// Nanoseconds of one call that could be saved.
    pub fn nanoseconds(&self, operation: &str, size: u64) -> f64 {
        if size < LEAST {
            return 0.0;
        }
        let of_operation = |size: u64| (operation.to_owned(), size);
        let below = self.by_size.range(of_operation(0)..=of_operation(size)).next_back();
        match below.map(|((_, known), saved)| saved * size as f64 / *known as f64) {
            Some(saved) => saved,
            None => size as f64 * self.byte * 1e9,
        }
    }
}
