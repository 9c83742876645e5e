//! The `decide` line of a profile, and the meaning of its values.

use super::error::ProfileError;
use crate::operands;
pub use crate::operands::OR_LIBC;
use crate::reuse::Reuse;
use crate::slots;
use cachewise_kernels::{Features, Kernel, Operation};
use core::fmt;

/// In place of a kernel's name in a decision: leaves the sizes to the C library.
pub const LIBC: &str = "libc";

/// From this size on [`LIBC`] means the C library's own routine; without a profile, large stores
/// use it, too. Below it, the jump to the C library costs more than it gains, and [`LIBC`] means
/// what the library does without a profile.
///
/// Below this size glibc's routines are loops of vectors, as the library's are; from it on they use
/// string instructions: from 2112 bytes for copies and moves (the least `rep_movsb_threshold`, on
/// CPUs with FSRM, `sysdeps/x86/dl-cacheinfo.h`), from 2048 for fills (`rep_stosb_threshold`).
#[must_use]
pub const fn libc_from(operation: Operation) -> u64 {
    match operation {
        Operation::Copy | Operation::Move | Operation::CopyPages => 2112,
        _ => 2048,
    }
}

/// A range's end that means every larger size; `max` in the text.
pub const MAX_SIZE: u64 = u64::MAX;

/// One `decide` line, borrowed from the profile's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionLine<'a> {
    /// Line, from 1.
    pub line: u32,
    /// Operation on memory.
    pub operation: Operation,
    /// The caller's hint.
    pub reuse: Reuse,
    /// The smallest size it decides.
    pub from: u64,
    /// The largest size it decides; [`MAX_SIZE`] is written `max`.
    pub to: u64,
    /// The chosen kernel's canonical name, with [`OR_LIBC`] behind it or not, or [`LIBC`].
    pub kernel: &'a str,
    /// Beside [`LIBC`]: the kernel for where no routine of a C library can be called.
    pub nearest: Option<&'a str>,
}

/// Routine that a decision chooses.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Use this kernel.
    Kernel(&'static Kernel),
    /// Use the C library's routine where the operands are aligned to each other and not aliased, else this kernel.
    OrLibc(&'static Kernel),
    /// Use the C library's routine.
    Libc {
        /// The kernel for where there is none; the computed default where the profile names none.
        nearest: Option<&'static Kernel>,
    },
}

impl DecisionLine<'_> {
    /// Returns the choice, if the library may follow it on a CPU with these features.
    ///
    /// # Errors
    /// No such kernel, or one of another operation, not deployable, or in need of more.
    pub fn choice(&self, available: Features) -> Result<Choice, ProfileError> {
        if let Some(name) = self.kernel.strip_suffix(OR_LIBC) {
            let kernel = self.find(name, available)?;
            if !operands::may_look_at_operands(kernel) {
                let expected = format_args!("a plain copy or move before {OR_LIBC}");
                let found = format_args!("\"{name}\"");
                return Err(ProfileError::new(Some(self.line), "kernel", expected, found));
            }
            return Ok(Choice::OrLibc(kernel));
        }
        if self.kernel != LIBC {
            return self.find(self.kernel, available).map(Choice::Kernel);
        }
        let nearest = self.nearest.map(|name| self.find(name, available)).transpose()?;
        Ok(Choice::Libc { nearest })
    }

    fn find(&self, name: &str, available: Features) -> Result<&'static Kernel, ProfileError> {
        // A kernel that is found among these spares a search of all others.
        let mut own = slots::kernels(self.operation).map(|(_, kernel)| kernel);
        let own = own.find(|kernel| kernel.name == name);
        let refused = |expected: fmt::Arguments<'_>| {
            ProfileError::new(Some(self.line), "kernel", expected, format_args!("\"{name}\""))
        };
        let Some(kernel) = own.or_else(|| cachewise_kernels::find(name)) else {
            return Err(refused(format_args!("a name from `cachewise list kernels`")));
        };
        let operation = self.operation;
        if kernel.operation() != operation {
            return Err(refused(format_args!("a kernel whose operation is {operation}")));
        }
        if !kernel.deploy {
            return Err(refused(format_args!("a kernel that is not only there to be measured")));
        }
        let missing = kernel.requires.missing_from(available);
        if !missing.is_empty() {
            let needs = refused(format_args!("a kernel that runs without {missing}"));
            return Err(needs.beyond_this_cpu());
        }
        Ok(kernel)
    }
}
