//! `copy-matrix`, `zero-matrix`, `compare-matrix` and `whole-cost`.

mod measure;

use crate::experiment::{Experiment, Flag, Serves};
use crate::roofline::speeds;
use cachewise_measure::record::names::LIBC;

pub(crate) const COPY_MATRIX: Experiment = Experiment {
    name: "copy-matrix",
    about: "every copy kernel and libc at every residency, with the columns of document 002",
    seeds: &["000.1-6", "002.1-8", "002.10", "002.15"],
    operations: measure::COPYING,
    takes: &[Flag::Op],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: speeds,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: |setting| measure::operation_alone(setting, measure::COPYING),
};

pub(crate) const ZERO_MATRIX: Experiment = Experiment {
    name: "zero-matrix",
    about: "every zero and fill kernel and libc at every residency",
    seeds: &["000.1-6", "002.13", "003.2"],
    operations: measure::FILLING,
    takes: &[Flag::Op],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: speeds,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: |setting| measure::operation_alone(setting, measure::FILLING),
};

pub(crate) const COMPARE_MATRIX: Experiment = Experiment {
    name: "compare-matrix",
    about: "every compare and equal kernel and libc on equal buffers, at every residency",
    seeds: &["004.1-5"],
    operations: measure::COMPARING,
    takes: &[Flag::Op],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: speeds,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: |setting| measure::operation_alone(setting, measure::COMPARING),
};

pub(crate) const WHOLE_COST: Experiment = Experiment {
    name: "whole-cost",
    about: "copy, zero and fill, with their reader and with a bystander whose lines they evict",
    seeds: &["000.11", "001.1-6"],
    operations: measure::WRITING,
    takes: &[Flag::Op],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: measure::costs,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::whole_cost,
};
