//! Rows in groups, as records group them.

pub(crate) use cachewise_measure::record::{by_cell, groups};
