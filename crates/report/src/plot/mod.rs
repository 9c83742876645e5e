//! A record's figures as data: panels, series, points. What draws them (SVG, text) decides nothing
//! but how they look.

pub mod fixtures;
pub mod scale;
pub mod value;

mod build;

pub use build::{cell_caption, figures, plot, plots};
use cachewise_measure::FigureKind;
use cachewise_measure::record::distinct;
pub use value::{Coordinate, Quantity, Spread, Unit};

/// One figure of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// What its values are.
    pub value: Quantity,
    /// Everyone who is drawn in any panel; a series refers to its entry.
    pub keys: Vec<Key>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// One entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Who.
    pub name: String,
    /// Whether the others are compared with it.
    pub reference: bool,
    /// Whether it is drawn before anybody asks.
    pub shown: bool,
    /// Which of the colours it has; the reference needs none.
    pub colour: usize,
}

/// Gives everyone the same colour in all of the plots, in the order in which they are first seen.
pub fn agree_on_colours(plots: &mut [Plot]) {
    let keys = || plots.iter().flat_map(|plot| &plot.keys).filter(|key| !key.reference);
    let shown = keys().filter(|key| key.shown);
    let names = distinct(shown.chain(keys()).map(|key| key.name.clone()));
    for key in plots.iter_mut().flat_map(|plot| &mut plot.keys) {
        key.colour = names.iter().position(|name| *name == key.name).unwrap_or(0);
    }
}

/// One pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Which part of the rows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical one, of heat maps only; others have the value there.
    pub y: Option<Axis>,
    /// What stands in it.
    pub series: Vec<Series>,
    /// Upright rules: where the operands stop fitting a cache.
    pub rules: Vec<Rule>,
}

impl Panel {
    /// Every point with its series' key, the best first where there is one for each candidate; and
    /// whether there is.
    pub(crate) fn points(&self, value: &Quantity) -> (Vec<(usize, &Point)>, bool) {
        let by_candidate = self.x.names.len() >= self.series.len()
            && self.series.iter().all(|series| series.points.len() == 1);
        let mut found: Vec<(usize, &Point)> = Vec::new();
        for series in &self.series {
            found.extend(series.points.iter().map(|point| (series.key, point)));
        }
        if by_candidate {
            let better = value.more_is_better().unwrap_or(true);
            found.sort_by(|(_, a), (_, b)| {
                let order = a.value.mid.total_cmp(&b.value.mid);
                if better { order.reverse() } else { order }
            });
        }
        (found, by_candidate)
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// How its numbers are written.
    pub unit: Unit,
    /// Names of its places, where they are names; a place is then an index into this.
    pub names: Vec<String>,
    /// Whether equal factors are equal distances.
    pub log: bool,
    /// Every place that a point has, in order.
    pub places: Vec<f64>,
}

impl Axis {
    /// A place on it as text.
    pub fn write(&self, place: f64) -> String {
        self.names.get(place as usize).cloned().unwrap_or_else(|| self.unit.write(place))
    }
}

/// One candidate in one panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Index into [`Plot::keys`].
    pub key: usize,
    /// Its points, in the order of the horizontal axis.
    pub points: Vec<Point>,
    /// Distributions, of histograms only.
    pub histogram: Option<cachewise_measure::Histogram>,
}

/// A value at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis of a heat map.
    pub y: f64,
    /// The value.
    pub value: Spread,
    /// Operation, reader and bystander in nanoseconds, where the value is their sum.
    pub parts: Option<[f64; 3]>,
}

/// An upright rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Where.
    pub at: f64,
    /// What lies there.
    pub name: String,
}
