//! What a record says about its own drawing: figures to draw, and distributions too large to list.
//!
//! A report is redrawn from the record alone, so the experiment writes here what its axes are; the
//! report decides how a curve looks.

use serde::{Deserialize, Serialize};

/// One picture of an experiment's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// What it shows, as a caption.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// Coordinate along the horizontal axis: `size`, `contestant`, `state`, `reader`, `bystander`,
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
    /// Only these contestants, in this order; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contestants: Vec<String>,
    /// Only rows whose state starts with this; empty is all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub states: String,
}

/// How a [`Figure`] is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A line with its interval band per contestant.
    Curve,
    /// A bar per contestant, stacked where the value is `cost`.
    Bars,
    /// A coloured grid per contestant, with the line where the ratio is one.
    HeatMap,
    /// The rows' histograms, with their running tally.
    Histogram,
}

/// How often something took how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Edges of the bins in nanoseconds, one more than there are bins.
    #[serde(with = "crate::rounded::list")]
    pub edges_ns: Vec<f64>,
    /// Calls per bin.
    pub counts: Vec<u64>,
    /// Calls above the last edge.
    pub above: u64,
}
