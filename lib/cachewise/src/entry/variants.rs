//! The entries as they can be asked for, called and measured by themselves.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use super::ways;
use crate::choice::{self, Entry};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::rows::place;
use cachewise_kernels::Operation;

/// The entries of an operation, by number; none where the entries are not written out: on every
/// other architecture, and for targets without vector registers.
///
/// ```
/// use cachewise_kernels::Operation;
///
/// for entry in cachewise::entry::variants(Operation::Copy) {
///     println!("copy {} needs {}", entry.name, entry.requires);
/// }
/// ```
#[must_use]
pub fn variants(operation: Operation) -> &'static [Entry] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return ways::ENTRIES.get(place(operation)).map_or(&[], |entries| &entries[..]);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let _ = operation;
        &[]
    }
}

/// The entry of an operation that calls take now; `None` where there is but one. It is chosen with the decisions, which
/// this makes if no call has yet.
#[must_use]
pub fn chosen(operation: Operation) -> Option<&'static Entry> {
    crate::source::init();
    variants(operation).get(usize::from(choice::variant(operation)))
}
