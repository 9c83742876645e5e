//! `vector-state` (002.17, 004.3): what it costs to own the vector registers, and from how many bytes
//! on a vector kernel pays for it.
//!
//! A kernel that wants vector registers has to save whatever they hold and restore it afterwards;
//! integer kernels need not. First the cost of XSAVE, XSAVEC and XSAVEOPT with XRSTOR is measured by
//! component and by what the registers hold: *dirty* (modified since the last restore), *unmodified*
//! (as the last restore left them) and *clean* (in their initial state, after `vzeroupper` and the
//! like). Then copy, zero and compare by each register class, bare and between save and restore, take
//! turns with the integer kernels. At last integer work is timed after a kernel of each register class: some
//! CPUs lower their clock for a while after vectors of 64 bytes.

use crate::prelude::*;

#[cfg(target_arch = "x86_64")]
mod x86;

/// State: kernels bare, and between saving and restoring.
pub(super) const BREAK_EVEN: &str = "break-even";
/// State: integer work after a kernel.
pub(super) const WORK_AFTER: &str = "what runs after";
/// Operation and beginning of the states of the rows about saving alone.
pub(super) const SAVE_RESTORE: &str = "save-restore";
pub(super) const REGISTERS: &str = "registers ";
/// Suffix of a kernel's name where nothing is saved.
pub(super) const BARE: &str = ", bare";

/// The registers' contents when they are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Dirty,
    Unmodified,
    Clean,
}

impl Held {
    pub(super) const ALL: [Held; 3] = [Held::Dirty, Held::Unmodified, Held::Clean];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Held::Dirty => "dirty",
            Held::Unmodified => "unmodified",
            Held::Clean => "clean",
        }
    }
}

pub(super) fn figures() -> Vec<Figure> {
    let save = "Saving and restoring registers, by component";
    let even = "Time over the faster integer kernel's, save and restore included";
    vec![
        Figure::bars(save, NET_NS).by(&[COMPONENTS, "state"]).of("registers"),
        Figure::curve(even, "size", "ratio").of(BREAK_EVEN),
        Figure::bars("Integer work after a kernel, time over that after integers", "ratio")
            .of(WORK_AFTER),
    ]
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::run;

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_: &mut Setting) -> Result {
    nothing(
        "vector-state: not here; XSAVE exists on x86-64 only, and docs/power-and-arm.md says what a \
         kernel has to measure instead",
    )
}
