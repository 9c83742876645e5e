//! `struct cw_pool_stats`: its layout and its versions.

use crate::Code;
use crate::settings::Refused;
use cachewise_pages::Stats;

/// See `cachewise_pool.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PoolStats {
    struct_size: usize,
    figures: [usize; FIGURES],
}

const FIGURES: usize = 22;

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
    ]
}

/// Fills in the caller's structure; members that only a newer version has are left alone.
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
    if size < size_of::<PoolStats>() {
        let accepted = size_of::<PoolStats>();
        return Err((
            Code::Version,
            format!("out.struct_size: found {size}, accepted {accepted} and more"),
        ));
    }
    let figures = figures(stats).map(|figure| usize::try_from(figure).unwrap_or(usize::MAX));
    // SAFETY: the caller's promise, and long enough.
    unsafe { out.write(PoolStats { struct_size: size, figures }) };
    Ok(())
}
