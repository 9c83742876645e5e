//! THE table: one row per kernel, whatever its architecture, technique or age.
//!
//! Tests, fuzz targets, the laboratory, the documentation and the library's dispatch all iterate
//! [`TABLE`], so a new kernel is one function and one row in its technique's file, and can then be
//! neither untested nor unmeasured.
//!
//! A kernel is *complete*: it takes any length and any alignment and never touches a byte outside
//! its buffers. On x86-64, kernels with non-temporal stores fence before they return; those that
//! use MMX registers end in `emms`; those that use ymm or zmm registers end in `vzeroupper`.
//!
//! Names follow `operation.technique[.nt][.prefetch][.shape]`. The names that the source documents
//! gave their routines are aliases ([`resolve`], [`resolve_pair`]).

use crate::arch::{count, join};
use crate::kernel::{Kernel, Operation};

const PARTS: &[&[Kernel]] = crate::arch::ROWS;

static ROWS: [Kernel; count(PARTS)] = join(PARTS);

/// Every kernel of this architecture, those this CPU cannot run included.
pub static TABLE: &[Kernel] = &ROWS;

/// The kernel of that canonical name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    TABLE.iter().find(|kernel| kernel.name == name)
}

/// Every kernel whose name or alias is `name`: `slow` is a copy and a zero.
pub fn resolve(name: &str) -> impl Iterator<Item = &'static Kernel> {
    TABLE.iter().filter(move |kernel| kernel.answers_to(name))
}

/// The zero and the copy kernel that a seed-000 name stands for: `slow`, `mmx_APN`, or, with the
/// two chosen apart, `mmx_APn/APN` (the copy's part inherits the prefix of the zero's).
#[must_use]
pub fn resolve_pair(name: &str) -> Option<(&'static Kernel, &'static Kernel)> {
    let of = |wanted: Operation, matches: &dyn Fn(&str) -> bool| {
        TABLE.iter().find(|kernel| {
            kernel.operation() == wanted
                && (matches(kernel.name) || kernel.aliases.iter().any(|alias| matches(alias)))
        })
    };
    let (zero, copy) = name.split_once('/').unwrap_or((name, name));
    let inherited = zero.split_once('_').map_or("", |(prefix, _)| prefix);
    let zero_row = of(Operation::Zero, &|candidate| candidate == zero)?;
    let copy_row = of(Operation::Copy, &|candidate| candidate == copy).or_else(|| {
        of(Operation::Copy, &|candidate| candidate.split_once('_') == Some((inherited, copy)))
    })?;
    Some((zero_row, copy_row))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::StoreKind;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_carry_their_operation() {
        let mut seen = BTreeSet::new();
        for kernel in TABLE {
            assert!(seen.insert(kernel.name), "{} stands twice", kernel.name);
            let (operation, technique) = kernel.name.split_once('.').expect("operation.technique");
            assert_eq!(
                Operation::from_name(operation),
                Some(kernel.operation()),
                "{}",
                kernel.name
            );
            assert!(!technique.is_empty() && !kernel.about.is_empty(), "{}", kernel.name);
            let says_nt = kernel.name.split('.').any(|part| part == "nt");
            assert_eq!(says_nt, kernel.store == StoreKind::NonTemporal, "{}", kernel.name);
        }
    }

    #[test]
    fn an_alias_names_one_kernel_per_operation() {
        let mut seen = BTreeSet::new();
        for kernel in TABLE {
            for alias in kernel.aliases {
                assert!(seen.insert((kernel.operation(), *alias)), "{alias} is ambiguous");
                assert!(find(alias).is_none(), "{alias} is also a canonical name");
            }
        }
    }

    #[test]
    fn every_deployable_copy_has_its_move() {
        for copy in TABLE.iter().filter(|k| k.operation() == Operation::Copy && k.deploy) {
            let twin = std::format!("move.{}", copy.technique());
            assert!(find(&twin).is_some_and(|k| k.deploy), "{twin} is missing");
        }
    }
}
