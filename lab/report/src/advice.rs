//! "Are this machine's memcpy settings right?": the answer in a sentence, from what was measured on
//! this machine.

use crate::cost::{self, WORTHWHILE};
use crate::units::gain;
use cachewise_judge::interval;
use cachewise_measure::Row;
use cachewise_measure::stats::LEAST_ROUNDS;
use std::fmt;

/// Advice about this machine's memcpy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    LibcIsFine(String),
    /// Run programs on the library.
    UseLibrary(String),
    /// Reason why it is not known, and the command that measures it.
    CannotTell(String),
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::LibcIsFine(why) => write!(f, "The C library is fine here: {why}."),
            Advice::UseLibrary(why) => {
                write!(f, "Use the library (`cachewise exec -- PROGRAM`): {why}.")
            }
            Advice::CannotTell(why) => write!(f, "Cannot tell, because {why}."),
        }
    }
}

impl Advice {
    /// From rows in which the library followed this machine's profile, beside libc.
    pub fn of_library(rows: &[Row], libc: &str) -> Advice {
        let ratios: Vec<f64> = rows
            .iter()
            .filter(|row| row.candidate.starts_with("cachewise") && row.candidate != row.reference)
            .filter_map(|row| cost::ratio(row).map(|ratio| ratio.median))
            .collect();
        let mean = interval::paired(&ratios);
        if mean.rounds < LEAST_ROUNDS {
            return Advice::CannotTell(format!(
                "the record compares the library with {libc} in {} cells only; `cachewise tune` \
                 measures again",
                mean.rounds
            ));
        }
        let slow = ratios.iter().filter(|ratio| **ratio > 1.0 + WORTHWHILE).count();
        let told = format!(
            "measured here, the library's speed beside {libc} is {} (95 %: {} .. {}) over {} operations and sizes, \
             {slow} of them more than 3 % slower",
            gain(mean.median),
            gain(mean.high),
            gain(mean.low),
            mean.rounds,
        );
        if mean.high < 1.0 - WORTHWHILE {
            Advice::UseLibrary(told)
        } else if mean.low > 1.0 - WORTHWHILE {
            Advice::LibcIsFine(told)
        } else {
            Advice::CannotTell(format!(
                "a gain of 3 % is neither shown nor excluded: {told}; `cachewise tune` measures longer"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::row;
    use cachewise_measure::PairedRatio;

    fn cells(name: &str, ratios: &[f64]) -> Vec<Row> {
        let row = |(at, median): (usize, &f64)| {
            let (median, low, high) = (*median, median * 0.98, median * 1.02);
            let ratio = Some(PairedRatio { median, low, high, rounds: 15 });
            Row { ratio, total_ratio: None, ..row("copy", 1024 << at, "warm", name) }
        };
        ratios.iter().enumerate().map(row).collect()
    }

    #[test]
    fn advice_follows_the_ratios() {
        let library =
            |ratios: &[f64]| Advice::of_library(&cells("cachewise", ratios), "glibc 2.36");
        assert!(matches!(library(&[0.8; 8]), Advice::UseLibrary(_)));
        assert!(matches!(library(&[1.0; 8]), Advice::LibcIsFine(_)));
        assert!(matches!(library(&[1.5; 8]), Advice::LibcIsFine(_)));
        assert!(matches!(library(&[0.6, 1.3, 0.7, 1.2, 0.9, 1.1]), Advice::CannotTell(_)));
        assert!(matches!(library(&[0.8; 5]), Advice::CannotTell(_)));
    }
}
