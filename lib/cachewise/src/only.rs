//! A table that names one kernel, or libc, alone: for those who measure what the library calls.

use crate::cpu::Identity;
use crate::defaults;
use crate::follow::{decide, note_row};
use crate::profile;
use crate::rows::row;
use crate::slots::{Slot, kernel, libc_slot, slot_of};
use crate::source;
use crate::system;
use cachewise_kernels::{Kernel, Operation};

/// Has every call of a kernel's operation that the table decides done by this kernel, for those who
/// measure it as the library would call it; a profile that is installed ends that. Whether the
/// library may use it.
#[doc(hidden)]
#[cold]
pub fn use_only(kernel: &Kernel) -> bool {
    source::init();
    let slot = slot_of(kernel);
    slot.is_some_and(|slot| use_everywhere(kernel.operation(), slot, &Identity::get()))
}

/// The same with the C library's routine, where a decision for all sizes would call it. Whether there
/// is one.
#[doc(hidden)]
#[cold]
pub fn use_libc(operation: Operation) -> bool {
    source::init();
    system::found() && use_everywhere(operation, libc_slot(operation), &Identity::get())
}

/// The kernel that a decision for libc comes to below [`profile::libc_from`]; `None` where that is libc's.
#[doc(hidden)]
#[must_use]
pub fn below_libc(operation: Operation) -> Option<&'static str> {
    Some(kernel(operation, defaults::below_libc(operation, &Identity::get()))?.name)
}

/// The non-temporal kernel that is called under `never` where no profile decides, and its first size; `None` where there is
/// none.
#[doc(hidden)]
#[must_use]
pub fn never_by_default(operation: Operation) -> Option<(&'static str, u64)> {
    let (from, slot) = defaults::around(operation, &Identity::get())?;
    Some((kernel(operation, slot)?.name, from))
}

fn use_everywhere(operation: Operation, slot: Slot, identity: &Identity) -> bool {
    for reuse in profile::hints(operation) {
        let row = row(operation, *reuse);
        decide(operation, row, profile::FIRST_SIZE..=profile::MAX_SIZE, slot, identity);
        note_row(operation, row);
    }
    true
}
