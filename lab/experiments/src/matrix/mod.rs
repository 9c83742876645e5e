//! `copy-matrix`, `zero-matrix`, `compare-matrix` and `whole-cost`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::roofline::speeds;

pub(crate) const COPY_MATRIX: Experiment = Experiment {
    name: "copy-matrix",
    about: "every copy kernel and libc at every residency, with the columns of document 002",
    seeds: &["000.1-6", "002.1-8", "002.10", "002.15"],
    operations: measure::COPYING,
    takes: &[Flag::Op],
    figures: speeds,
    run: |setting| measure::operation_alone(setting, measure::COPYING),
    ..PLAIN
};

pub(crate) const ZERO_MATRIX: Experiment = Experiment {
    name: "zero-matrix",
    about: "every zero and fill kernel and libc at every residency",
    seeds: &["000.1-6", "002.13", "003.2"],
    operations: measure::FILLING,
    takes: &[Flag::Op],
    figures: speeds,
    run: |setting| measure::operation_alone(setting, measure::FILLING),
    ..PLAIN
};

pub(crate) const COMPARE_MATRIX: Experiment = Experiment {
    name: "compare-matrix",
    about: "every compare and equal kernel and libc on equal buffers, at every residency",
    seeds: &["004.1-5"],
    operations: measure::COMPARING,
    takes: &[Flag::Op],
    figures: speeds,
    run: |setting| measure::operation_alone(setting, measure::COMPARING),
    ..PLAIN
};

pub(crate) const WHOLE_COST: Experiment = Experiment {
    name: "whole-cost",
    about: "copy, zero and fill, with their reader and with a bystander whose lines they evict",
    seeds: &["000.11", "001.1-6"],
    operations: measure::WRITING,
    takes: &[Flag::Op],
    figures: measure::costs,
    run: measure::whole_cost,
    ..PLAIN
};
