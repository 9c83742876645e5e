//! `struct cw_pool_stats`: its layout and its versions.

use crate::Code;
use crate::settings::Refused;
use cachewise_pages::Stats;
use std::ptr;

/// See `cachewise_pool.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolStats {
    struct_size: usize,
    figures: [usize; FIGURES],
}

const FIGURES: usize = 28;
/// Bytes of the structure's first published version.
const FIRST: usize = size_of::<usize>() * 23;

/// In the header's order.
fn figures(stats: &Stats) -> [u64; FIGURES] {
    [
        stats.capacity,
        stats.managed,
        stats.allocated,
        stats.cached,
        stats.dirty,
        stats.in_flight,
        stats.zero_resident,
        stats.zero_absent,
        stats.quarantined,
        stats.resident,
        stats.zero_hits,
        stats.zero_misses,
        stats.dirty_allocations,
        stats.frees,
        stats.hot_zeroed,
        stats.populated,
        stats.scrubbed,
        u64::try_from(stats.scrub_cpu.as_nanos()).unwrap_or(u64::MAX),
        stats.wasted,
        stats.trimmed,
        stats.verified,
        stats.verify_failed,
        stats.grown_ahead,
        stats.huge_broken,
        stats.quarantined_ever,
        stats.engine_faults,
        stats.lock_holds,
        stats.load_rests,
    ]
}

/// Fills in the members that the caller's structure has room for; those that only a newer version
/// has are left alone.
///
/// # Safety
/// Null, or writable for the size it says.
pub(crate) unsafe fn write(stats: &Stats, out: *mut PoolStats) -> Result<(), Refused> {
    if out.is_null() {
        let text = "out: found NULL, accepted a place for the figures";
        return Err((Code::Invalid, text.to_owned()));
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { out.cast::<usize>().read() };
    if size < FIRST {
        return Err((
            Code::Version,
            format!("out.struct_size: found {size}, accepted {FIRST} and more"),
        ));
    }
    let figures = figures(stats).map(|figure| usize::try_from(figure).unwrap_or(usize::MAX));
    let all = PoolStats { struct_size: size, figures };
    let known = size.min(size_of::<PoolStats>()) / size_of::<usize>();
    let (from, to) = (ptr::from_ref(&all).cast::<usize>(), out.cast::<usize>());
    // SAFETY: so many whole members are readable there, and writable here by the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, known) };
    Ok(())
}
