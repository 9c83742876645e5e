//! `struct cw_pool_stats`: its layout and its versions.

use crate::code::{Code, Refused};
use cachewise_pages::{FIGURES, Stats};
use std::ptr;

/// See `cachewise_pool.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolStats {
    struct_size: usize,
    figures: [usize; FIGURES],
}

/// Bytes of this version's, the first of its soname.
const OWN: usize = size_of::<PoolStats>();

/// Fills in the members that the caller's structure has room for; those that only a newer version
/// has are left alone.
///
/// # Safety
/// Null, or writable for the size it says.
pub(crate) unsafe fn write(stats: &Stats, out: *mut PoolStats) -> Result<(), Refused> {
    if out.is_null() {
        let text = "out: expected a place for the figures, found NULL";
        return Err((Code::Invalid, text.to_owned()));
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { out.cast::<usize>().read() };
    if size < OWN {
        return Err((
            Code::Version,
            format!("out.struct_size: expected {OWN} and more, found {size}"),
        ));
    }
    let figures = stats.figures().map(|(_, _, value)| usize::try_from(value).unwrap_or(usize::MAX));
    let all = PoolStats { struct_size: size, figures };
    let known = size.min(size_of::<PoolStats>()) / size_of::<usize>();
    let (from, to) = (ptr::from_ref(&all).cast::<usize>(), out.cast::<usize>());
    // SAFETY: so many whole members are readable there, and writable here by the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, known) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_members_are_the_figures_in_their_order() {
        let header = include_str!("../include/cachewise_pool.h");
        let (_, structure) = header.split_once("struct cw_pool_stats {").expect("declared");
        let (structure, _) = structure.split_once("};").expect("closed");
        let members = structure.lines().filter_map(|line| {
            let (member, _) = line.trim().strip_prefix("size_t ")?.split_once(';')?;
            Some(member)
        });
        let members: Vec<_> = members.collect();
        let names = Stats::default().figures().map(|(name, ..)| name);
        assert_eq!(members.split_first(), Some((&"struct_size", names.as_slice())));
    }
}
