//! `compare-latency`: single comparisons by length and first difference, and those of idle guests' pages (document 004).

pub(crate) mod launch;
mod measure;
mod pairs;
mod spike;
mod table;

pub(crate) use spike::spike;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "compare-latency",
    formerly: &["page-compare"],
    about: "comparisons by length and first difference; pages of idle guests, also where registers are saved first; single calls",
    seeds: &["004.3", "004.5", "004.6", "004.7", "004.8", "004.9"],
    operations: &[Operation::Compare, Operation::Equal],
    takes: &["--kernels", "--size", "--distribution"],
    classic: "whole pages; integers against vectors with and without a pre-check of 64 bytes; histograms to 1000 and 5000 ns; three launches",
    tables: table::tables,
    figures: || [measure::figures(), pairs::figures()].concat(),
    run: Some(|setting| {
        let options = setting.options;
        if options.distribution.is_none() {
            measure::run(setting)?;
        }
        let is_other = options.classic || options.kernels.is_some() || !options.sizes.is_empty();
        if is_other { Ok(()) } else { pairs::run(setting) }
    }),
    ..PLAIN
};
