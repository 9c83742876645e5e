//! `twins`.

mod measure;
mod table;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "twins",
    about: "one copy loop with and without alignment, prefetch, and a store to another place",
    seeds: &["000.6", "002.7"],
    operations: &[Operation::Copy],
    takes: &["--size", "--residency"],
    tables: table::tables,
    figures: measure::figures,
    run: Some(measure::run),
    ..PLAIN
};
