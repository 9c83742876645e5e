//! What a figure's names mean: the coordinate of a row along an axis, and the quantity it shows.

use crate::cost;
use crate::units;
use cachewise_measure::{PairedRatio, Row, stats};

/// A row's place along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    /// Somewhere on a scale.
    Number(f64),
    /// One of several names.
    Label(String),
}

/// The row's place along the axis of that name; `None` where it has none.
pub fn coordinate(row: &Row, name: &str) -> Option<Coordinate> {
    let cell = &row.cell;
    let label = |text: &str| Some(Coordinate::Label(text.to_owned()));
    match name {
        "size" => Some(Coordinate::Number(cell.size as f64)),
        "candidate" => label(&row.candidate),
        "operation" => label(&cell.operation),
        "experiment" => label(&row.experiment),
        "state" => label(cell.state.as_str()),
        "source" => cell.source.as_deref().and_then(label),
        "destination" => cell.destination.as_deref().and_then(label),
        "reader" => cell.reader.map(Coordinate::Number),
        "bystander" => cell.bystander.map(|bytes| Coordinate::Number(bytes as f64)),
        other => cell.axes.get(other).copied().map(Coordinate::Number),
    }
    .filter(|found| !matches!(found, Coordinate::Number(value) if !value.is_finite()))
}

/// How the numbers of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `4 KiB`.
    Bytes,
    /// `1.2 us`.
    Time,
    /// A fraction as a percentage.
    Share,
    /// Just the number.
    Plain,
}

impl Unit {
    /// The unit an axis of that name is in.
    pub fn of_axis(name: &str) -> Unit {
        const OF_BYTES: [&str; 7] =
            ["size", "bystander", "offset", "first_difference", "block", "buffer", "distance"];
        if OF_BYTES.contains(&name) || name.ends_with("_bytes") || name.ends_with("_size") {
            Unit::Bytes
        } else if name.ends_with("_ns") {
            Unit::Time
        } else if matches!(name, "reader" | "touched" | "touched_fraction" | "fraction") {
            Unit::Share
        } else {
            Unit::Plain
        }
    }

    /// The number as text.
    pub fn write(self, value: f64) -> String {
        match self {
            Unit::Bytes if value >= 0.0 && value.fract() == 0.0 => units::bytes(value as u64),
            Unit::Time if value == 0.0 => "0".to_owned(),
            Unit::Time => trim_unit(&units::time(value)),
            Unit::Share => format!("{} %", trim(&units::significant(value * 100.0))),
            Unit::Bytes | Unit::Plain if value.abs() >= 1e6 => format!("{value:e}"),
            Unit::Bytes | Unit::Plain => trim(&format!("{value:.4}")),
        }
    }
}

/// Without the zeros after the point.
fn trim(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

fn trim_unit(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", trim(number)),
        None => trim(text),
    }
}

/// What an axis measures, for people.
pub fn axis_title(name: &str) -> String {
    match name {
        "size" => "bytes per call".to_owned(),
        "reader" => "share read afterwards".to_owned(),
        "bystander" => "working set beside it".to_owned(),
        other => other.strip_suffix("_ns").unwrap_or(other).replace('_', " "),
    }
}

/// The quantity a figure shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Decimal gigabytes per second of the operation.
    Gbps,
    /// Nanoseconds of the operation.
    Ns,
    /// Nanoseconds of operation, reader and bystander.
    TotalNs,
    /// The operation over the reference's.
    Ratio,
    /// The sum over the reference's.
    TotalRatio,
    /// The three parts of the sum.
    Cost,
    /// A figure particular to the experiment.
    Extra(String),
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub mid: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if finite.is_empty() {
            return None;
        }
        let (low, high) = stats::median_interval(&finite);
        Some(Spread { mid: stats::median(&finite), low, high })
    }

    fn exactly(value: f64) -> Spread {
        Spread { mid: value, low: value, high: value }
    }

    fn finite(self) -> Option<Spread> {
        (self.mid.is_finite() && self.low.is_finite() && self.high.is_finite()).then_some(self)
    }

    /// Several launches of the same cell: the median of their medians, and the widest interval.
    pub fn pooled(spreads: &[Spread]) -> Option<Spread> {
        let mids: Vec<f64> = spreads.iter().map(|spread| spread.mid).collect();
        let low = spreads.iter().map(|spread| spread.low).reduce(f64::min)?;
        let high = spreads.iter().map(|spread| spread.high).reduce(f64::max)?;
        Some(Spread { mid: stats::median(&mids), low, high })
    }
}

impl Quantity {
    /// The quantity of that name in a record.
    pub fn named(name: &str) -> Quantity {
        match name {
            "gbps" => Quantity::Gbps,
            "ns" => Quantity::Ns,
            "total_ns" => Quantity::TotalNs,
            "ratio" => Quantity::Ratio,
            "total_ratio" => Quantity::TotalRatio,
            "cost" => Quantity::Cost,
            other => Quantity::Extra(other.to_owned()),
        }
    }

    /// What the row says; `None` where it says nothing.
    pub fn of(&self, row: &Row) -> Option<Spread> {
        match self {
            Quantity::Gbps => {
                let time = Spread::of(&row.operation_ns)?;
                let speed = |time: f64| row.cell.size as f64 / time;
                Spread { mid: speed(time.mid), low: speed(time.high), high: speed(time.low) }
                    .finite()
            }
            Quantity::Ns => Spread::of(&row.operation_ns),
            Quantity::TotalNs | Quantity::Cost if !row.is_measurable() => None,
            Quantity::TotalNs | Quantity::Cost => Spread::of(&row.total_ns()),
            Quantity::Ratio | Quantity::TotalRatio => {
                let ratio = match self {
                    Quantity::TotalRatio => cost::ratio(row),
                    _ => row.ratio.and_then(cost::sane),
                };
                let spread = |PairedRatio { median: mid, low, high, .. }| Spread { mid, low, high };
                let itself = (row.candidate == row.reference).then(|| Spread::exactly(1.0));
                ratio.map(spread).or(itself)
            }
            Quantity::Extra(name) => {
                row.figure(name).filter(|value| value.is_finite()).map(Spread::exactly)
            }
        }
    }

    /// For the axis.
    pub fn title(&self) -> String {
        match self {
            Quantity::Gbps => "GB/s".to_owned(),
            Quantity::Ns => "time per call".to_owned(),
            Quantity::TotalNs => "operation + reader + bystander".to_owned(),
            Quantity::Ratio => "time over the reference's".to_owned(),
            Quantity::TotalRatio => "whole cost over the reference's".to_owned(),
            Quantity::Cost => "whole cost per call".to_owned(),
            Quantity::Extra(name) => axis_title(name),
        }
    }

    /// A value of it as text.
    pub fn write(&self, value: f64) -> String {
        match self {
            Quantity::Gbps => format!("{} GB/s", units::significant(value)),
            Quantity::Ns | Quantity::TotalNs | Quantity::Cost => units::time(value),
            Quantity::Ratio | Quantity::TotalRatio => format!("{value:.3}"),
            Quantity::Extra(name) if name.ends_with("_ns") => units::time(value),
            Quantity::Extra(name) if name.ends_with("share") => {
                format!("{} %", units::significant(value * 100.0))
            }
            Quantity::Extra(_) => trim(&units::significant(value)),
        }
    }

    /// A tick of its axis.
    pub fn tick(&self, value: f64) -> String {
        match self {
            Quantity::Ns | Quantity::TotalNs | Quantity::Cost => Unit::Time.write(value),
            Quantity::Extra(name) if name.ends_with("share") => Unit::Share.write(value),
            Quantity::Extra(name) => Unit::of_axis(name).write(value),
            _ => Unit::Plain.write(value),
        }
    }

    /// Whether more of it is better; `None` where the experiment alone knows.
    pub fn more_is_better(&self) -> Option<bool> {
        match self {
            Quantity::Gbps => Some(true),
            Quantity::Extra(name) if name.ends_with("_ns") => Some(false),
            Quantity::Extra(name) if name.contains("gbps") || name.contains("per_s") => Some(true),
            Quantity::Extra(_) => None,
            _ => Some(false),
        }
    }

    /// Whether 1 is the line between better and worse.
    pub fn is_ratio(&self) -> bool {
        matches!(self, Quantity::Ratio | Quantity::TotalRatio)
            || matches!(self, Quantity::Extra(name) if name.ends_with("ratio"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_written_short() {
        assert_eq!(Unit::of_axis("size").write(65536.0), "64 KiB");
        assert_eq!(Unit::of_axis("delay_ns").write(1500.0), "1.5 us");
        assert_eq!(Unit::of_axis("reader").write(0.5), "50 %");
        assert_eq!(Unit::of_axis("threads").write(2.0), "2");
        assert_eq!(Quantity::Gbps.tick(0.5), "0.5");
        assert_eq!(Quantity::named("total_ns").tick(2e6), "2 ms");
    }
}
