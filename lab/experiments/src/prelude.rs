//! Names that nearly every experiment uses, in one place.

pub(super) use super::setting::*;
pub(super) use super::support::*;
pub(super) use crate::bench::{
    Bench, Call, Cell, Placement, Task, each, is_copied, is_filled, is_zeroed, run_all,
};
pub(super) use crate::callee::{Callee, once};
pub(super) use crate::error::LabError;
pub(super) use crate::routines::{
    FILL_BYTE, LIBC, LIBRARY, Routine, SHARED, libc_reference, library,
};
pub(super) use cachewise::Reuse;
pub(super) use cachewise_kernels::{
    Features, Function, Kernel, Operation, PAGE_SIZE, Prefetch, RegisterClass, TABLE,
};
pub(super) use cachewise_measure::arena::HUGE_PAGE;
pub(super) use cachewise_measure::record::names::*;
pub(super) use cachewise_measure::{
    Arena, Caches, Candidate, CellKey, Clock, Contents, Delay, Figure, FigureKind, LINE, Level,
    MeasureError, MemoryBudget, PagePolicy, PairedRatio, Place, Plan, Reader, Row, stats,
};
pub(super) use std::path::Path;
