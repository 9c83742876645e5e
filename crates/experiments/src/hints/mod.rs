//! `hints`.

mod measure;

use crate::experiment::Experiment;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hints",
    about: "does the hint `soon` make the reader faster, and does `never` spare the bystander?",
    seeds: &["000.14", "001.6"],
    operations: measure::OPERATIONS,
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
