//! `struct cw_pool_stats`: its layout and its versions.

use crate::code::{Code, Refused};
use cachewise_pages::Stats;
use std::ptr;

/// Declares the structure, and fills it in: a member, and what it is of the pool's figures.
macro_rules! members {
    ($stats:ident: $($member:ident = $value:expr,)+) => {
        /// See `cachewise_pool.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct PoolStats {
            struct_size: usize,
            $($member: usize,)+
        }

        fn of($stats: &Stats, struct_size: usize) -> PoolStats {
            PoolStats { struct_size, $($member: usize::try_from($value).unwrap_or(usize::MAX),)+ }
        }

        impl PoolStats {
            /// Names of the members, in their order.
            pub const MEMBERS: &[&str] = &["struct_size", $(stringify!($member)),+];
        }
    };
}

members! {
    stats:
    capacity = stats.capacity,
    managed = stats.managed,
    allocated = stats.allocated,
    cached = stats.cached,
    dirty = stats.dirty,
    in_flight = stats.in_flight,
    zero_resident = stats.zero_resident,
    zero_absent = stats.zero_absent,
    quarantined = stats.quarantined,
    resident = stats.resident,
    zero_hits = stats.zero_hits,
    zero_misses = stats.zero_misses,
    dirty_allocations = stats.dirty_allocations,
    frees = stats.frees,
    hot_zeroed = stats.hot_zeroed,
    populated = stats.populated,
    scrubbed = stats.scrubbed,
    scrub_cpu_ns = stats.scrub_cpu.as_nanos(),
    wasted = stats.wasted,
    trimmed = stats.trimmed,
    verified = stats.verified,
    verify_failed = stats.verify_failed,
    quarantined_ever = stats.quarantined_ever,
    engine_faults = stats.engine_faults,
    load_rests = stats.load_rests,
}

/// Bytes of this version's, the first of its soname.
const OWN: usize = size_of::<PoolStats>();

/// Fills in this library's members; those that only a newer version has are left alone.
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
    let (all, length) = (of(stats, size), OWN.min(size));
    let (from, to) = (ptr::from_ref(&all).cast::<u8>(), out.cast::<u8>());
    // SAFETY: so many bytes are readable there, and writable here by the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, length) };
    Ok(())
}
