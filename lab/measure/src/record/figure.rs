//! Figures that a record asks to be drawn.
//!
//! A report is redrawn from the record alone, so the experiment writes here what its axes are; the
//! report decides how a curve looks.

use serde::{Deserialize, Serialize};

/// One picture of an experiment's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    pub title: String,
    pub kind: FigureKind,
    /// Coordinate along the horizontal axis: `size`, `candidate`, `state`, `reader`, `bystander`,
    /// or a name among the cells' `axes`.
    pub x: String,
    /// For a heat map, the coordinate along the vertical axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// The quantity: `gbps` (decimal gigabytes per second), `ns` (operation), `total_ns`, `ratio`,
    /// `total_ratio`, `cost` (operation, reader and bystander stacked), or a name among `extra`.
    pub value: String,
    /// Coordinates whose values each get a panel of their own, beside the operation, which always
    /// does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<String>,
    /// Only these candidates, in this order; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// Only rows whose state starts with this; empty is all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub states: String,
}

impl Figure {
    /// A figure of all candidates in all states, without panels.
    pub fn new(title: &str, kind: FigureKind, x: &str, value: &str) -> Figure {
        let (title, x, value) = (title.to_owned(), x.to_owned(), value.to_owned());
        Figure { title, kind, x, value, ..Figure::default() }
    }

    /// Bars of a quantity, one for each candidate.
    pub fn bars(title: &str, value: &str) -> Figure {
        Figure::new(title, FigureKind::Bars, "candidate", value)
    }

    /// Curves of a quantity over a coordinate.
    pub fn curve(title: &str, x: &str, value: &str) -> Figure {
        Figure::new(title, FigureKind::Curve, x, value)
    }

    /// With a panel for each value of these coordinates.
    #[must_use]
    pub fn by(mut self, panels: &[&str]) -> Figure {
        self.panels = panels.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Only of rows whose state starts with this, or with one of several between `|`.
    #[must_use]
    pub fn of(mut self, states: &str) -> Figure {
        states.clone_into(&mut self.states);
        self
    }

    /// Returns whether rows in that state are shown.
    pub fn shows(&self, state: &str) -> bool {
        self.states.split('|').any(|begins| state.starts_with(begins))
    }

    /// Only of these candidates, in this order.
    #[must_use]
    pub fn among<'n>(mut self, candidates: impl IntoIterator<Item = &'n str>) -> Figure {
        self.candidates = candidates.into_iter().map(str::to_owned).collect();
        self
    }
}

/// Form of a [`Figure`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A line with its interval band per candidate.
    #[default]
    Curve,
    /// A bar per candidate, stacked where the value is `cost`.
    Bars,
    /// A coloured grid per candidate, with the line where the ratio is one.
    HeatMap,
    /// The rows' histograms, with their running tally.
    Histogram,
    /// A dot with its interval per candidate on one axis, with a line at the reference and one at the bound.
    Dots,
}
