//! By how much the fastest routine beats libc, by operation and size: from the profile's record. Without one, all
//! that libc takes, which nothing can beat.

use cachewise::profile::Profile;
use cachewise_measure::{Record, Row, record};
use cachewise_tune::seam::Script;
use std::collections::BTreeMap;
use std::path::Path;

/// A tuning measures smaller calls together, with the sizes of programs.
const LEAST: u64 = 256;

/// Time that could be saved.
pub struct Saved {
    /// Nanoseconds a call, by operation and bytes.
    by_size: BTreeMap<(String, u64), f64>,
    /// Nanoseconds a call of those with the sizes of programs, in the cache or in memory, whichever saves more.
    of_small: BTreeMap<String, f64>,
}

impl Saved {
    /// Computes the time that could be saved from a profile's record.
    pub fn of(profile: Option<&Path>, parsed: Option<&Profile>) -> Saved {
        let named = profile.zip(parsed.and_then(|parsed| parsed.record.as_ref()));
        let record =
            named.and_then(|(path, record)| record::read(&path.with_file_name(&record.name)).ok());
        Saved::of_rows(record.as_ref().map_or(&[][..], |record: &Record| &record.rows))
    }

    fn of_rows(rows: &[Row]) -> Saved {
        let (mut by_size, mut of_small) = (BTreeMap::new(), BTreeMap::new());
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
            let operation = cell.operation.clone();
            let is_small = Script::ALL.iter().any(|of| of.name() == cell.state.as_str());
            let most = if is_small {
                of_small.entry(operation).or_insert(0.0_f64)
            } else {
                by_size.entry((operation, cell.size)).or_insert(0.0)
            };
            *most = most.max(libc - best);
        }
        Saved { by_size, of_small }
    }

    /// Nanoseconds of one call that could be saved; `byte` is the seconds that libc takes to copy one.
    pub fn nanoseconds(&self, operation: &str, size: u64, byte: f64) -> f64 {
        if size < LEAST {
            return self.of_small.get(operation).copied().unwrap_or(0.0);
        }
        let of_operation = |size: u64| (operation.to_owned(), size);
        let below = self.by_size.range(of_operation(0)..=of_operation(size)).next_back();
        match below.map(|((_, known), saved)| saved * size as f64 / *known as f64) {
            Some(saved) => saved,
            None => size as f64 * byte * 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::record::CellKey;

    #[test]
    fn small_calls_save_what_those_of_programs_save_and_larger_ones_by_their_size() {
        let rows = |experiment: &str, size, state: &'static str, times: [f64; 2]| {
            let cell = CellKey::new("compare", size, state);
            let libc = record::names::LIBC;
            [(libc, times[0]), ("compare.avx2", times[1])]
                .map(|(name, ns)| Row::new(experiment, cell.clone(), name, libc, vec![ns; 3]))
        };
        let all = [
            rows("tune", 1024, "plain", [30.0, 20.0]),
            rows("tune-referee", 16 << 10, "script-hot", [12.0, 9.0]),
            rows("tune-referee", 64 << 20, "script-cold", [34.0, 29.0]),
        ];
        let saved = Saved::of_rows(&all.concat());
        assert_eq!(saved.nanoseconds("compare", 16, 1.0), 5.0);
        assert_eq!(saved.nanoseconds("compare", 64 << 20, 1.0), 10.0 * 65536.0);
        // Nothing is known of these.
        assert_eq!(
            [saved.nanoseconds("copy", 16, 1.0), saved.nanoseconds("copy", 1000, 1.0)],
            [0.0, 1e12]
        );
    }
}
