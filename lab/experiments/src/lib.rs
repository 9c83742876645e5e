//! The experiments, one folder for each question, and what they have in common.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`], [`registry`], [`EXPERIMENTS`] | what an experiment is, and every one by name |
//! | a folder or file each | what an experiment measures, and its tables; small questions are in `study` |
//! | [`said`] | what a record amounts to: its claims and its tables |
//! | [`claims`] | what the source documents claim, as data, and what answers it |
//! | [`mod@bench`] | candidates side by side in a cell |
//! | [`recorder`], [`launches`] | rows on their way into a record; records of several launches as one |
//! | [`routines`], [`libraries`], [`select`] | kernels, libc and other libraries as candidates |
//! | [`script`] | calls of many sizes, as programs make them |
//! | [`helper`] | measurements in a child process |
//!
//! Nothing here prints.

mod backing;
pub mod bench;
pub mod claims;
mod elsewhere;
pub mod experiment;
pub mod helper;
pub mod launches;
pub mod libraries;
pub mod names;
pub mod other_libc;
mod pages;
mod prelude;
pub mod recorder;
pub mod registry;
pub mod said;
pub mod script;
pub mod select;
pub mod serving;
mod setting;
mod support;
mod threads;
pub mod tunables;
#[cfg(target_arch = "x86_64")]
mod xstate;

// The experiments. A new one is a line here and one in the list below.
mod compare_latency;
mod fork_pages;
mod matrix;
mod page_fault;
mod peers;
mod receive;
mod retired;
mod reuse_map;
mod roofline;
mod study;
mod twins;
mod vector_state;
pub mod zeroing_engines;

/// All experiments, in the order `list experiments` prints them; then retired ones, whose records are still read.
pub const EXPERIMENTS: &[Experiment] = &[
    matrix::COPY_MATRIX,
    matrix::ZERO_MATRIX,
    matrix::COMPARE_MATRIX,
    matrix::WHOLE_COST,
    roofline::EXPERIMENT,
    peers::EXPERIMENT,
    fork_pages::page_clear::EXPERIMENT,
    fork_pages::page_copy::EXPERIMENT,
    page_fault::EXPERIMENT,
    zeroing_engines::EXPERIMENT,
    reuse_map::EXPERIMENT,
    receive::EXPERIMENT,
    twins::EXPERIMENT,
    vector_state::EXPERIMENT,
    compare_latency::EXPERIMENT,
    study::cached_target::EXPERIMENT,
    study::read_batch::EXPERIMENT,
    study::aliasing::EXPERIMENT,
    study::values::EXPERIMENT,
    study::sticky::EXPERIMENT,
    study::extent::EXPERIMENT,
    study::mapped::EXPERIMENT,
    retired::PAGE_COLOUR,
    retired::PARALLEL,
];

pub use cachewise_measure::{LabError, after, callee, lab_error as error, routines};
pub use setting::{Options, Setting};

use crate::experiment::Experiment;
