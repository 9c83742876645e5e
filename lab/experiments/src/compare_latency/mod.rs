//! `compare-latency`.

pub(crate) mod launch;
mod measure;
mod pairs;
mod spike;
mod table;

pub(crate) use spike::spike;

use crate::experiment::{Experiment, Flag, PLAIN, Part};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::PAIRS;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "compare-latency",
    about: "comparisons by length and first difference; pages of idle guests, also where registers are saved first; single calls",
    seeds: &["004.3", "004.5", "004.6", "004.7", "004.8", "004.9"],
    operations: &[Operation::Compare, Operation::Equal],
    refuses: &[(Flag::Residency, "buffers are warm, and pages lie where the tree leaves them")],
    classic: "whole pages; integers against vectors with and without a pre-check of 64 bytes; histograms to 1000 and 5000 ns; three launches",
    tables: Some(table::tables),
    figures: measure::figures,
    second: Some(Part { experiment: &pairs::PART, states: &PAIRS }),
    run: measure::run,
    ..PLAIN
};
