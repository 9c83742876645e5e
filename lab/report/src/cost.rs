//! Cost of a row: operation, reader and bystander together, against the reference's; and the checks
//! that it is credible.
//!
//! Reader and bystander are differences of times. Noise makes a small one negative, which is shown as
//! 0. What cannot be is not a result: a part that is negative beyond noise, a sum that is not above
//! 0, an interval that ends before it begins. It is shown as [`NOT_MEASURABLE`] and has no verdict.

pub use cachewise_measure::MARGIN;

use crate::units::time;
use cachewise_measure::record::PART_NOISE;
use cachewise_measure::{PairedRatio, Row, Verdict, stats};

/// A difference of less than this is none worth a change: the best of a dozen is a little faster by luck.
pub const WORTHWHILE: f64 = cachewise_judge::margin::HEADLINE;

/// In place of a figure that cannot be.
pub const NOT_MEASURABLE: &str = "not measurable here";

/// The median; 0 where there is no such part.
pub fn median(times: &[f64]) -> f64 {
    if times.is_empty() { 0.0 } else { stats::median(times) }
}

/// The ratio, where it can be: above 0, finite, and inside its interval.
pub fn sane(ratio: PairedRatio) -> Option<PairedRatio> {
    let PairedRatio { median, low, high, .. } = ratio;
    (0.0 < low && low <= median && median <= high && high.is_finite()).then_some(ratio)
}

/// The ratio that counts: of the sum where there are parts; `None` where there is none or it cannot be.
pub fn ratio(row: &Row) -> Option<PairedRatio> {
    row.whole_ratio().filter(|_| row.is_measurable()).and_then(sane)
}

/// In place of a verdict whose proof of residency failed.
const WITHHELD: &str = "withheld";

/// In place of a verdict of fewer rounds than an interval takes.
const TOO_FEW: &str = "too few rounds";

/// Verdict of that ratio; `None` for the reference itself, and where nothing can be said.
pub fn verdict(row: &Row) -> Option<Verdict> {
    let compared = row.candidate != row.reference && !row.dropped && !row.is_withheld();
    ratio(row).filter(|_| compared).map(|ratio| ratio.verdict(MARGIN))
}

/// A part of the row as text; `-` where there is no such part.
pub fn part(row: &Row, times: &[f64]) -> String {
    match median(times) {
        _ if times.is_empty() => "-".to_owned(),
        value if value >= 0.0 => time(value),
        value if value >= -PART_NOISE * median(&row.operation_ns) => time(0.0),
        _ => NOT_MEASURABLE.to_owned(),
    }
}

/// Operation, reader, bystander and their sum as texts.
pub fn parts(row: &Row) -> [String; 4] {
    let [operation, reader, bystander] =
        [&row.operation_ns, &row.reader_ns, &row.bystander_ns].map(|times| part(row, times));
    [operation, reader, bystander, total(row)]
}

pub fn total(row: &Row) -> String {
    if row.is_measurable() { time(median(&row.total_ns())) } else { NOT_MEASURABLE.to_owned() }
}

/// Ratio, interval and verdict as texts.
pub fn comparison(row: &Row) -> [String; 3] {
    let told = |text: &str| [String::from("-"), String::new(), text.to_owned()];
    if row.candidate == row.reference {
        return ["1".to_owned(), String::new(), "reference".to_owned()];
    }
    match ratio(row) {
        Some(ratio) => [
            format!("{:.3}", ratio.median),
            match ratio.has_interval() {
                true => format!("{:.3} .. {:.3}", ratio.low, ratio.high),
                false => String::new(),
            },
            match row.dropped {
                true => "dropped, slow",
                false if row.is_withheld() => WITHHELD,
                false if !ratio.has_interval() => TOO_FEW,
                false => ratio.verdict(MARGIN).name(),
            }
            .to_owned(),
        ],
        None if row.ratio.is_some() || row.total_ratio.is_some() => told(NOT_MEASURABLE),
        None => told(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::row;

    fn with(operation: f64, bystander: f64, ratio: (f64, f64, f64)) -> Row {
        let (low, median, high) = ratio;
        Row {
            operation_ns: vec![operation; 15],
            bystander_ns: vec![bystander; 15],
            total_ratio: Some(PairedRatio { median, low, high, rounds: 15 }),
            ..row("copy", 4096, "beside", "copy.k0")
        }
    }

    #[test]
    fn what_cannot_be_has_no_figure_and_no_verdict() {
        let good = (0.7, 0.8, 0.9);
        for (operation, bystander, ratio, sum) in [
            // Figures that were printed once: a negative part, a negative sum, intervals that end
            // before they begin, or nowhere.
            (434.0, -579.0, (-5.0, -4.113, -3.0), false),
            (1000.0, -300.0, good, false),
            (1000.0, 10.0, (2.34, 2.34, -0.31), true),
            (1000.0, 10.0, (0.9, 1.0, f64::INFINITY), true),
            (1000.0, 10.0, (f64::NAN, f64::NAN, f64::NAN), true),
            (0.0, 10.0, good, false),
        ] {
            let row = with(operation, bystander, ratio);
            assert_eq!(verdict(&row), None, "{operation} {bystander} {ratio:?}");
            assert_eq!(comparison(&row)[2], NOT_MEASURABLE, "{operation} {bystander} {ratio:?}");
            assert_eq!(total(&row) != NOT_MEASURABLE, sum, "{operation} {bystander} {ratio:?}");
        }
    }

    #[test]
    fn a_verdict_that_was_withheld_stays_so() {
        let good = with(1000.0, 10.0, (0.7, 0.8, 0.9));
        let row = Row { verdict: None, ..good.clone() };
        assert_eq!((verdict(&good), verdict(&row)), (Some(Verdict::Faster), None));
        let [ratio, _, said] = comparison(&row);
        assert_eq!((ratio.as_str(), said.as_str()), ("0.800", WITHHELD));
        let (answer, said) = crate::closing::gain_of(&[row], &["libc"]);
        assert_eq!(answer, crate::closing::ClosingAnswer::CannotTell, "{said}");
    }

    #[test]
    fn noise_around_nothing_is_nothing() {
        let row = with(1000.0, -15.0, (0.7, 0.8, 0.9));
        assert_eq!(verdict(&row), Some(Verdict::Faster));
        assert_eq!(part(&row, &row.bystander_ns), "0.00 ns");
        assert_eq!(part(&row, &[]), "-");
        assert_eq!(part(&row, &[-21.0]), NOT_MEASURABLE);
    }
}
