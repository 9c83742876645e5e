//! `compare-latency`.

pub(crate) mod launch;
mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "compare-latency",
    about: "comparisons by length and first difference; pages of idle guests; single calls",
    seeds: &["004.5", "004.6", "004.7", "004.8", "004.9"],
    operations: &[Operation::Compare, Operation::Equal],
    classic: "whole pages; integers against vectors with and without a pre-check of 64 bytes; histograms to 1000 and 5000 ns; three launches",
    figures: measure::figures,
    run: measure::run,
};
