//! The experiments, one folder for each question, and what they have in common.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`], [`registry`], [`EXPERIMENTS`] | what an experiment is, and every one by name |
//! | [`error`] | what the laboratory refuses |
//! | one folder each | what an experiment measures, and its tables |
//! | [`said`] | what a record amounts to: its claims and its tables |
//! | [`claims`] | what the source documents claim, as data, and what answers it |
//! | [`mod@bench`] | candidates side by side in a cell |
//! | [`recorder`], [`launches`] | rows on their way into a record; records of several launches as one |
//! | [`routines`], [`libraries`], [`select`] | kernels, libc and other libraries as candidates |
//! | [`script`] | calls of many sizes, as programs make them |
//! | [`helper`] | measurements in a child process |
//!
//! Nothing here prints.
#![warn(missing_docs)]

pub mod after;
mod backing;
pub mod bench;
pub mod callee;
pub mod claims;
pub mod error;
pub mod experiment;
mod forking;
pub mod helper;
pub mod launches;
pub mod libraries;
pub mod other_libc;
mod page_loops;
mod pages;
mod prelude;
pub mod recorder;
pub mod registry;
pub mod routines;
pub mod said;
pub mod script;
pub mod select;
pub mod serving;
mod setting;
mod support;
mod tables;
mod tcp;
mod threads;
pub mod tunables;
mod tuned_libc;
pub mod verify;
#[cfg(target_arch = "x86_64")]
mod xstate;

// The experiments: one folder each. A new one is a line here and one in the list below.
mod aliasing;
mod buffer_reuse;
mod cached_target;
mod compare_latency;
mod extent;
mod jumps;
mod mapped;
mod matrix;
mod page_clear;
mod page_colour;
mod page_copy;
pub mod page_fault;
mod peers;
pub mod prefault;
mod read_batch;
mod receive;
mod reuse_map;
mod roofline;
mod sticky;
mod twins;
mod values;
mod vector_state;
pub mod zeroing_engines;

/// All experiments, in the order `list experiments` prints them.
pub const EXPERIMENTS: &[Experiment] = &[
    matrix::COPY_MATRIX,
    matrix::ZERO_MATRIX,
    matrix::COMPARE_MATRIX,
    matrix::WHOLE_COST,
    roofline::EXPERIMENT,
    peers::EXPERIMENT,
    page_clear::EXPERIMENT,
    page_copy::EXPERIMENT,
    reuse_map::EXPERIMENT,
    cached_target::EXPERIMENT,
    buffer_reuse::EXPERIMENT,
    receive::EXPERIMENT,
    read_batch::EXPERIMENT,
    aliasing::EXPERIMENT,
    page_colour::EXPERIMENT,
    values::EXPERIMENT,
    twins::EXPERIMENT,
    sticky::EXPERIMENT,
    vector_state::EXPERIMENT,
    compare_latency::EXPERIMENT,
    jumps::EXPERIMENT,
    extent::EXPERIMENT,
    mapped::EXPERIMENT,
    page_fault::EXPERIMENT,
    prefault::EXPERIMENT,
    zeroing_engines::EXPERIMENT,
];

pub use error::LabError;
pub use setting::{Options, Setting};

use crate::experiment::Experiment;
