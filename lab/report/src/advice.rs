//! "Are this machine's memcpy settings right?": the answer in a sentence, from what was measured on
//! this machine.

use crate::Table;
use crate::closing::ClosingAnswer;
use crate::cost::{self, WORTHWHILE};
use crate::units::{bytes, gain};
use cachewise_judge::interval;
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::{Row, Verdict};
use std::fmt;

/// Advice about this machine's memcpy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    LibcIsFine(String),
    /// Set this, for the reason given.
    SetThis(String, String),
    /// Run programs on the library.
    UseLibrary(String),
    /// It was not measured, or not well enough: why, and the command that does.
    CannotTell(String),
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::LibcIsFine(why) => write!(f, "The C library is fine here: {why}."),
            Advice::SetThis(what, why) => write!(f, "Set {what}: {why}."),
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
            "where this machine's profile names a kernel, the speed of the library against {libc}: {} \
             in the middle of {} cells (95 %: {} .. {}); more than 3 % slower in {slow}",
            gain(mean.median),
            mean.rounds,
            gain(mean.high),
            gain(mean.low)
        );
        if mean.high < 1.0 - WORTHWHILE {
            Advice::UseLibrary(told)
        } else if mean.low > 1.0 - WORTHWHILE {
            Advice::LibcIsFine(told)
        } else {
            Advice::CannotTell(format!("{told}; `cachewise tune` measures longer"))
        }
    }
}

/// Result of trying a setting of the C library: whether to use it, and why. A setting that loses
/// anywhere is not to be used, nor one of which nothing can be told.
pub fn of_setting(rows: &[Row]) -> (ClosingAnswer, String) {
    let compared: Vec<&Row> = rows.iter().filter(|row| row.candidate != row.reference).collect();
    let says = |row: &Row| cost::ratio(row).map(|ratio| ratio.verdict(WORTHWHILE));
    let count = |wanted| compared.iter().filter(|row| says(row) == Some(wanted)).count();
    let (gained, lost, all) = (count(Verdict::Faster), count(Verdict::Slower), compared.len());
    match (gained, lost) {
        (0, 0) => {
            let why = format!("no difference is larger than the noise in any of {all} cells");
            (ClosingAnswer::CannotTell, why)
        }
        (_, 0) => (
            ClosingAnswer::Yes,
            format!("libc is faster with it in {gained} of {all} cells, slower in none"),
        ),
        _ => {
            let faster = match gained {
                0 => "faster in none".to_owned(),
                _ => format!("and faster in {gained}"),
            };
            (
                ClosingAnswer::No,
                format!("libc is slower with it in {lost} of {all} cells, {faster}"),
            )
        }
    }
}

/// Table of a setting's trial, size by size.
pub fn tried(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "libc with the setting against libc without it, warm buffers, fresh processes in turns",
        &["operation", "set", ">bytes", ">speed", ">95 % interval", "verdict"],
    );
    for row in rows.iter().filter(|row| row.candidate != row.reference) {
        let who = row.candidate.clone();
        let mut cells = vec![row.cell.operation.clone(), who, bytes(row.cell.size)];
        cells.extend(match cost::ratio(row) {
            Some(ratio) => [
                gain(ratio.median),
                match ratio.has_interval() {
                    true => format!("{} .. {}", gain(ratio.high), gain(ratio.low)),
                    false => String::new(),
                },
                ratio.verdict(WORTHWHILE).to_string(),
            ],
            None => ["-".to_owned(), String::new(), cost::NOT_MEASURABLE.to_owned()],
        });
        table.push(cells);
    }
    table.remark("verdict: a difference of up to 3 % does not justify a setting");
    table.remark("set: one variable, or all of the operation's together (libc+tunables)");
    table
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
    fn the_advice_is_one_of_four_sentences() {
        let library =
            |ratios: &[f64]| Advice::of_library(&cells("cachewise", ratios), "glibc 2.36");
        let told = library(&[0.8; 8]).to_string();
        assert_eq!(
            told,
            "Use the library (`cachewise exec -- PROGRAM`): where this machine's profile names a \
             kernel, the speed of the library against glibc 2.36: +25 % in the middle of 8 \
             cells (95 %: +25 % .. +25 %); more than 3 % slower in 0."
        );
        assert!(matches!(library(&[1.0; 8]), Advice::LibcIsFine(_)));
        assert!(matches!(library(&[1.5; 8]), Advice::LibcIsFine(_)));
        assert!(matches!(library(&[0.6, 1.3, 0.7, 1.2, 0.9, 1.1]), Advice::CannotTell(_)));
        assert!(matches!(library(&[0.8; 5]), Advice::CannotTell(_)));
        let told = Advice::SetThis("GLIBC_TUNABLES=a".into(), "it is faster".into()).to_string();
        assert_eq!(told, "Set GLIBC_TUNABLES=a: it is faster.");
    }

    #[test]
    fn a_setting_that_loses_anywhere_is_not_to_be_used() {
        let tried = |ratios: &[f64]| of_setting(&cells("libc+tunables", ratios)).0;
        assert_eq!(tried(&[0.8, 1.0, 0.9]), ClosingAnswer::Yes);
        assert_eq!(tried(&[0.8, 1.2]), ClosingAnswer::No);
        assert_eq!(tried(&[1.0, 1.2]), ClosingAnswer::No);
        assert_eq!(tried(&[1.0, 1.0]), ClosingAnswer::CannotTell);
        assert_eq!(tried(&[]), ClosingAnswer::CannotTell);
    }
}
