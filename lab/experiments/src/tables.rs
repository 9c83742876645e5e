//! Names that nearly every experiment's tables use, in one place.

pub(crate) use cachewise_measure::record::names::*;
pub(crate) use cachewise_measure::record::{by_cell, distinct, groups};
pub(crate) use cachewise_measure::units::{
    bytes, counted, gigabytes_per_second, significant, time,
};
pub(crate) use cachewise_measure::{
    CellKey, Histogram, PairedRatio, Residency, Row, Verdict, stats,
};
pub(crate) use cachewise_report::cells::*;
pub(crate) use cachewise_report::cost::{self, comparison, median};
pub(crate) use cachewise_report::grid::{Grid, candidate, sized, what};
pub(crate) use cachewise_report::rows::{axis, or_dash};
pub(crate) use cachewise_report::table::{Column, Table};
pub(crate) use std::cmp::Ordering;
