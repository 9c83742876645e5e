//! The tuner: which kernel does what on this machine, by a deadline.
//!
//! | module | what it is |
//! |---|---|
//! | [`seam`] | everything the tuner may ask of a machine |
//! | [`tuner`] | race, decide, referee: pure |
//! | [`rounds`], [`again`] | what was seen; as rows of a record, and decided from them again |
//! | [`tuning`] | what a tuning is set to, and what it amounts to |
//! | [`hardware`] | the machine that this process runs on, behind the seam |
//! | [`nearest`], [`recording`] | what profile and record say besides |
//!
//! A simulated machine behind the same seam is in `tests/machines`.

pub mod again;
mod field;
pub mod hardware;
mod hints;
pub mod nearest;
mod plan;
mod race;
mod ranges;
pub mod recording;
mod referee;
pub mod rounds;
pub mod seam;
mod threads;
pub mod tuner;
pub mod tuning;
mod visits;

use crate::routines::LIBC;
use cachewise_measure::{Figure, FigureKind, State};

pub use crate::evidence::{Decided, Evidence, gains};

/// The name under which its rows stand in records.
pub const EXPERIMENT: &str = "tune";

/// How a tuning's rows are drawn.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let figure = |title, value, state: State| {
        Figure::new(title, FigureKind::Curve, "size", value).of(&state)
    };
    let bars = |title, state: State| {
        Figure::new(title, FigureKind::Bars, "candidate", "cost").by(&["size"]).of(&state)
    };
    vec![
        figure("Speed by size, warm buffers", "gbps", State::Warm),
        figure("The library following these decisions", "ratio", State::Warm)
            .among([LIBC, crate::routines::LIBRARY]),
        figure("Operation and the reader after it", "total_ratio", State::Read),
        figure("Operation and the bystander beside it", "total_ratio", State::Beside),
        figure("Operands off alignment", "ratio", State::Misaligned),
        figure("Operands alike in their low bits", "ratio", State::Aliased),
        figure("Destination never touched before", "ratio", State::Fresh),
        bars("Operation and reader, in time", State::Read),
        bars("Operation and bystander, in time", State::Beside),
    ]
}
