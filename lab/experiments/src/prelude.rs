//! Names that nearly every experiment uses, in one place.

pub(super) use super::setting::*;
pub(super) use super::support::*;
pub(super) use crate::bench::{
    Bench, Call, Cell, Placement, Task, each, is_copied, is_filled, is_zeroed, run_all,
};
pub(super) use crate::callee::{Callee, once};
pub(super) use crate::error::LabError;
pub(super) use crate::experiment::{Experiment, PLAIN, Serves};
pub(super) use crate::names::*;
pub(super) use crate::routines::{
    FILL_BYTE, LIBC, LIBRARY, Routine, SHARED, libc_reference, library,
};
pub(super) use cachewise::Reuse;
pub(super) use cachewise_kernels::{
    Features, Function, Kernel, Operation, PAGE_SIZE, Prefetch, RegisterClass, TABLE, find,
};
pub(super) use cachewise_measure::arena::HUGE_PAGE;
pub(super) use cachewise_measure::record::names::*;
pub(super) use cachewise_measure::record::{by_cell, distinct, groups};
pub(super) use cachewise_measure::units::{counted, significant, time};
pub(super) use cachewise_measure::{
    Arena, Caches, Candidate, CellKey, Clock, Contents, Delay, Figure, FigureKind, Histogram, LINE,
    Level, MeasureError, MemoryBudget, PagePolicy, PairedRatio, Place, Plan, Reader, Residency,
    Row, Verdict, stats,
};
pub(super) use cachewise_report::cells::*;
pub(super) use cachewise_report::cost::{self, comparison, median};
pub(super) use cachewise_report::grid::{Grid, candidate, sized, what};
pub(super) use cachewise_report::rows::{axis, or_dash};
pub(super) use cachewise_report::table::{Column, Table};
pub(super) use std::cmp::Ordering;
pub(super) use std::path::Path;

/// A number of bytes, as a person reads it.
pub(super) fn bytes(n: impl TryInto<u64>) -> String {
    cachewise_measure::units::bytes(n.try_into().unwrap_or(u64::MAX))
}
