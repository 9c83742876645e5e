//! Meaning of a figure's names: the coordinate of a row along an axis, and the quantity it shows.

use crate::cost;
use crate::units;
use cachewise_measure::{PairedRatio, Row, stats};

/// A row's place along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    Number(f64),
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
        "source" => cell.source.and_then(|one| label(one.name())),
        "destination" => cell.destination.and_then(|one| label(one.name())),
        "reader" => cell.reader.map(Coordinate::Number),
        "bystander" => cell.bystander.map(|bytes| Coordinate::Number(bytes as f64)),
        other => cell.axes.get(other).copied().map(Coordinate::Number),
    }
    .filter(|found| !matches!(found, Coordinate::Number(value) if !value.is_finite()))
}

/// Unit of an axis's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `4 KiB`.
    Bytes,
    /// `1.2 us`.
    Time,
    /// A fraction as a percentage.
    Share,
    Plain,
}

impl Unit {
    /// The unit an axis of that name is in.
    pub fn of(name: &str) -> Unit {
        match name {
            "size" | "bystander" | "offset" | "first_difference" | "block" | "buffer"
            | "distance" => Unit::Bytes,
            "reader" | "touched" | "touched_fraction" | "fraction" => Unit::Share,
            _ if name.ends_with("_bytes") || name.ends_with("_size") => Unit::Bytes,
            _ if name.ends_with("_ns") => Unit::Time,
            _ => Unit::Plain,
        }
    }

    pub fn write(self, value: f64) -> String {
        match self {
            Unit::Bytes if value >= 0.0 && value.fract() == 0.0 => units::bytes(value as u64),
            Unit::Time if value == 0.0 => "0".to_owned(),
            Unit::Time => {
                let text = units::time(value);
                let (number, unit) = text.split_once(' ').unwrap_or((&text, "ns"));
                format!("{} {unit}", trim(number))
            }
            Unit::Share => format!("{} %", trim(&units::significant(value * 100.0))),
            Unit::Bytes | Unit::Plain if value.abs() >= 1e6 => format!("{value:e}"),
            Unit::Bytes | Unit::Plain => trim(&format!("{value:.4}")),
        }
    }
}

/// Without the zeros after the point.
fn trim(text: &str) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0') } else { text };
    text.trim_end_matches('.').to_owned()
}

pub fn axis_title(name: &str) -> String {
    match name {
        "size" => "bytes per call".to_owned(),
        "reader" => "share read afterwards".to_owned(),
        "bystander" => "working set beside it".to_owned(),
        other => {
            let words =
                other.strip_suffix("_ns").unwrap_or(other).split('_').map(|word| match word {
                    "cpu" => "CPU",
                    "gb" => "GB",
                    "gbit" => "Gbit",
                    word => word,
                });
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// The quantity a figure shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Decimal gigabytes per second of the operation.
    Gbps,
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

/// Quantities with a name of their own in records, and their titles.
const KNOWN: [(&str, Quantity, &str); 6] = [
    ("gbps", Quantity::Gbps, "GB/s"),
    ("ns", Quantity::Ns, "time per call"),
    ("total_ns", Quantity::TotalNs, "operation + reader + bystander"),
    ("ratio", Quantity::Ratio, "time over the reference's"),
    ("total_ratio", Quantity::TotalRatio, "whole cost over the reference's"),
    ("cost", Quantity::Cost, "whole cost per call"),
];

/// A value with its 95 % interval; of fewer than six rounds there is none, and both ends are the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mid: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let (low, high) = cachewise_judge::interval::of_median(&finite);
        (!finite.is_empty())
            .then(|| Spread::around(stats::median(&finite), low, high, finite.len()))
    }

    fn around(mid: f64, low: f64, high: f64, rounds: usize) -> Spread {
        if rounds < stats::LEAST_ROUNDS { Spread::exactly(mid) } else { Spread { mid, low, high } }
    }

    /// The interval as its quantity is written: `0.9 .. 1.1`; none where there is none.
    pub fn interval(&self, of: &Quantity) -> Option<String> {
        let ends = || format!("{} .. {}", of.write(self.low), of.write(self.high));
        (self.low < self.high).then(ends)
    }

    /// The value, behind it the interval.
    pub fn write(&self, of: &Quantity) -> String {
        let interval = self.interval(of).map_or(String::new(), |ends| format!(" (95 %: {ends})"));
        of.write(self.mid) + &interval
    }

    fn exactly(value: f64) -> Spread {
        Spread { mid: value, low: value, high: value }
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
        let known = KNOWN.into_iter().find(|(known, ..)| *known == name);
        known.map_or_else(|| Quantity::Extra(name.to_owned()), |(_, quantity, _)| quantity)
    }

    /// The row's value; `None` if it has none.
    pub fn of(&self, row: &Row) -> Option<Spread> {
        match self {
            Quantity::Gbps => {
                let Spread { mid, low, high } = Spread::of(&row.operation_ns)?;
                let [mid, low, high] = [mid, high, low].map(|time| row.cell.size as f64 / time);
                let is_finite = [mid, low, high].iter().all(|speed| speed.is_finite());
                is_finite.then_some(Spread { mid, low, high })
            }
            Quantity::Ns => Spread::of(&row.operation_ns),
            Quantity::TotalNs | Quantity::Cost if !row.is_measurable() => None,
            Quantity::TotalNs | Quantity::Cost => Spread::of(&row.total_ns()),
            Quantity::Ratio | Quantity::TotalRatio => {
                let ratio = match self {
                    Quantity::TotalRatio => cost::ratio(row),
                    _ => row.ratio.and_then(cost::sane),
                };
                let itself = (row.candidate == row.reference).then(|| Spread::exactly(1.0));
                ratio
                    .map(|PairedRatio { median, low, high, rounds }| {
                        Spread::around(median, low, high, rounds)
                    })
                    .or(itself)
            }
            Quantity::Extra(name) => {
                row.figure(name).filter(|value| value.is_finite()).map(Spread::exactly)
            }
        }
    }

    pub fn title(&self) -> String {
        match (self, KNOWN.iter().find(|(_, known, _)| known == self)) {
            (Quantity::Extra(name), _) => axis_title(name),
            (_, known) => known.map_or("", |(.., title)| title).to_owned(),
        }
    }

    fn unit(&self) -> Unit {
        match self {
            Quantity::Ns | Quantity::TotalNs | Quantity::Cost => Unit::Time,
            Quantity::Extra(name) if name.ends_with("share") => Unit::Share,
            Quantity::Extra(name) => Unit::of(name),
            _ => Unit::Plain,
        }
    }

    /// A value of it as text.
    pub fn write(&self, value: f64) -> String {
        match (self, self.unit()) {
            (Quantity::Gbps, _) => format!("{} GB/s", units::significant(value)),
            (Quantity::Ratio | Quantity::TotalRatio, _) => format!("{value:.3}"),
            (_, Unit::Time) => units::time(value),
            (_, Unit::Share) => format!("{} %", units::significant(value * 100.0)),
            _ => trim(&units::significant(value)),
        }
    }

    /// A tick of its axis.
    pub fn tick(&self, value: f64) -> String {
        self.unit().write(value)
    }

    /// Returns whether more of it is better; `None` where the experiment alone knows.
    pub fn more_is_better(&self) -> Option<bool> {
        match self {
            Quantity::Gbps => Some(true),
            Quantity::Ratio | Quantity::TotalRatio => Some(false),
            _ if self.unit() == Unit::Time => Some(false),
            Quantity::Extra(name) if name.contains("gbps") || name.contains("per_s") => Some(true),
            _ => None,
        }
    }

    /// Returns whether 1 is the line between better and worse.
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
        assert_eq!(Unit::of("size").write(65536.0), "64 KiB");
        assert_eq!(Unit::of("delay_ns").write(1500.0), "1.5 us");
        assert_eq!(Unit::of("reader").write(0.5), "50 %");
        assert_eq!(Unit::of("threads").write(2.0), "2");
        assert_eq!(Quantity::Gbps.tick(0.5), "0.5");
        assert_eq!(Quantity::named("total_ns").tick(2e6), "2 ms");
        assert_eq!(axis_title("bystander_ms_per_gb"), "bystander ms per GB");
    }
}
