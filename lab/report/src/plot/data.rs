//! Parts of a figure: plots, panels, axes, series, points.

use super::value::{Coordinate, Quantity, Spread, Unit, axis_title, coordinate};
use cachewise_measure::record::distinct;
use cachewise_measure::{FigureKind, Row};

/// One figure of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub title: String,
    pub kind: FigureKind,
    pub value: Quantity,
    /// Everyone who is drawn in any panel; a series refers to its entry.
    pub keys: Vec<Key>,
    /// One pair of axes each.
    pub panels: Vec<Panel>,
}

/// One entry of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// True if the others are compared with it.
    pub reference: bool,
    /// True if it is drawn before anybody asks.
    pub shown: bool,
    /// The number of its colour; the reference needs none.
    pub colour: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The part of the rows that it shows.
    pub title: String,
    pub x: Axis,
    /// The vertical one, of heat maps only; others have the value there.
    pub y: Option<Axis>,
    pub series: Vec<Series>,
    /// Upright rules: where the operands stop fitting a cache, and which.
    pub rules: Vec<(f64, &'static str)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub name: String,
    /// Names of its places, where they are names; a place is then an index into this.
    pub names: Vec<String>,
    /// True if equal factors are equal distances.
    pub log: bool,
    /// Every place that a point has, in order.
    pub places: Vec<f64>,
}

/// One candidate in one panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Index into [`Plot::keys`].
    pub key: usize,
    /// Its points, in the order of the horizontal axis.
    pub points: Vec<Point>,
}

/// A value at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    /// Along the vertical axis of a heat map, 0 elsewhere.
    pub y: f64,
    pub value: Spread,
    /// Operation, reader and bystander in nanoseconds, where the value is their sum.
    pub parts: Option<[f64; 3]>,
}

impl Point {
    /// The value divided as the medians of its parts are: these do not add up to the median of sums.
    pub(crate) fn divided(&self) -> Option<[f64; 3]> {
        let parts = self.parts?;
        let sum: f64 = parts.iter().sum();
        Some(parts.map(|part| if sum > 0.0 { part / sum * self.value.mid } else { 0.0 }))
    }
}

/// One of the bars of a panel.
pub(crate) struct Bar<'p> {
    pub key: usize,
    pub name: String,
    pub point: &'p Point,
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

impl Plot {
    /// The first bars of a panel, and how many there are beyond. Where there is one for each candidate,
    /// the best is first, and the reference is always among them.
    pub(crate) fn bars<'p>(&self, panel: &'p Panel, most: usize) -> (Vec<Bar<'p>>, usize) {
        let by_candidate = panel.x.names.len() >= panel.series.len()
            && panel.series.iter().all(|series| series.points.len() == 1);
        let mut bars: Vec<Bar<'p>> = Vec::new();
        for Series { key, points, .. } in &panel.series {
            let who = &self.keys[*key].name;
            let name = |point: &Point| match by_candidate {
                true => who.clone(),
                false => format!("{}: {who}", panel.x.write(point.x)),
            };
            bars.extend(points.iter().map(|point| Bar { key: *key, name: name(point), point }));
        }
        bars.sort_by(|a, b| match (by_candidate, self.value.more_is_better()) {
            (false, _) => a.point.x.total_cmp(&b.point.x),
            (true, Some(false)) => a.point.value.mid.total_cmp(&b.point.value.mid),
            (true, _) => b.point.value.mid.total_cmp(&a.point.value.mid),
        });
        let all = bars.len();
        let mut rank = 0;
        bars.retain(|bar| {
            rank += 1;
            rank <= most || (by_candidate && self.keys[bar.key].reference)
        });
        let beyond = all - bars.len();
        (bars, beyond)
    }

    /// The series that a heat map shows: the reference against itself is one everywhere.
    pub(crate) fn grids<'p>(&self, panel: &'p Panel) -> impl Iterator<Item = &'p Series> {
        let alone = !self.value.is_ratio() || panel.series.len() == 1;
        panel.series.iter().filter(move |series| alone || !self.keys[series.key].reference)
    }
}

impl Axis {
    pub fn title(&self) -> String {
        axis_title(&self.name)
    }

    /// A place on it as text.
    pub fn write(&self, place: f64) -> String {
        let name = self.names.get(place as usize).cloned();
        name.unwrap_or_else(|| Unit::of(&self.name).write(place))
    }

    /// Position of a row on the axis.
    pub(super) fn place(&self, row: &Row) -> Option<f64> {
        match coordinate(row, &self.name)? {
            Coordinate::Number(value) => Some(value),
            Coordinate::Label(text) => {
                self.names.iter().position(|known| *known == text).map(|index| index as f64)
            }
        }
    }
}

impl Series {
    /// The point at a place.
    pub(crate) fn at(&self, x: f64, y: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x && point.y == y)
    }
}
