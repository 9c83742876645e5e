//! Document 000, Vlasenko 2004: non-temporal stores in `copy_page` and `zero_page`.

use super::claim::{Claim, Expect, between, is_at};
use cachewise_measure::CellKey;
use cachewise_measure::record::names::{COLD_DESTINATION, PREFETCHNTA};

/// The document's buffer of 320 KiB was 2.5 times all caches.
const BEYOND: &str = "2.5 x LLC";

fn warm_loops(cell: &CellKey) -> bool {
    cell.operation == "copy" && cell.state.starts_with("buffer + 44k")
}

fn cold_loops(cell: &CellKey) -> bool {
    cell.state == COLD_DESTINATION
}

/// A map's first cell: 1 MiB in DRAM, all of it read at once.
fn read_at_once(cell: &CellKey, operation: &str, size: u64) -> bool {
    cell.operation == operation
        && cell.size == size
        && is_at(cell, "DRAM")
        && cell.state == "read after traffic"
        && cell.reader == Some(1.0)
        && cell.axis("delay_bytes") == Some(0.0)
}

const WIDE: &[(&str, &str)] = &[("copy.avx512.nt|copy.avx.nt", "copy.avx512|copy.avx")];
const WIDE_ZERO: &[(&str, &str)] = &[("zero.avx512.nt|zero.avx.nt", "zero.avx512|zero.avx")];
const NT_ZEROING: &[(&str, &str)] = &[("zero.mmx.nt", "zero.mmx")];
const NT_COPYING: &[(&str, &str)] = &[("mmx_APN", "mmx_APn")];

pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        ("000.16", "MMX and SSE routines are very close in speed.", "zeroing 2.5 x LLC, SSE over MMX"),
        "page-clear",
        |cell| cell.state == BEYOND,
        &[("zero.sse", "zero.mmx")],
    )
    .whole()
    .expects(Expect::Within(0.95, 1.05), "1"),
    Claim::new(
        ("000.6", "Both are 5-10% faster than", "zeroing 2.5 x LLC, MMX and SSE over `rep stosd`"),
        "page-clear",
        |cell| cell.state == BEYOND,
        &[("zero.mmx", "zero.rep.stosl"), ("zero.sse", "zero.rep.stosl")],
    )
    .whole()
    .expects(Expect::AtMost(0.95), "0.91-0.95"),
    Claim::new(
        ("000.6", "", "the same for a fork's pages and eight buffers that fit today's caches, `mmx_APn` over `slow`"),
        "page-copy",
        warm_loops,
        &[("mmx_APn", "slow")],
    )
    .expects(Expect::AtMost(0.95), "0.91-0.99"),
    Claim::new(
        ("000.6", "Aligning main loop gives 0-2% speedup.", "four loops in L1, L2, DRAM; misaligned over aligned"),
        "twins",
        |cell| cell.operation == "copy",
        &[
            ("movq, misaligned", "movq"),
            ("movntq, misaligned", "movntq"),
            ("movdqa, misaligned", "movdqa"),
            ("movntdq, misaligned", "movntdq"),
        ],
    )
    .expects(Expect::Within(0.99, 1.03), "1.00-1.02"),
    Claim::new(
        ("000.6", "Prefetching data in copy loop gives 5-10% speedup.", "`movq` in DRAM, with over without"),
        "cached-target",
        |cell| cell.state == PREFETCHNTA && is_at(cell, "DRAM"),
        &[("copy.mmx.pf320", "copy.mmx")],
    )
    .expects(Expect::AtMost(0.95), "0.91-0.95"),
    Claim::new(
        ("000.6", "Using non-temporal stores gives 50-300% speedup,", "copies in DRAM, the routine alone: MMX with prefetch"),
        "cached-target",
        |cell| cell.state == PREFETCHNTA && is_at(cell, "DRAM"),
        &[("copy.mmx.nt.pf320", "copy.mmx.pf320")],
    )
    .expects(Expect::AtMost(0.667), "0.25-0.67"),
    Claim::new(
        ("000.6", "", "the same, 1 MiB, the widest vectors"),
        "reuse-map",
        |cell| read_at_once(cell, "copy", 1 << 20),
        WIDE,
    )
    .expects(Expect::AtMost(0.667), "0.25-0.67"),
    Claim::new(
        ("000.6", "", "the same for zeroing"),
        "reuse-map",
        |cell| read_at_once(cell, "zero", 1 << 20),
        WIDE_ZERO,
    )
    .expects(Expect::AtMost(0.667), "0.25-0.67")
    .short("zeroing 1 MiB in DRAM, the routine alone: non-temporal over temporal"),
    Claim::new(
        ("000.12", "NT zero_page() is a clear loss for small buffer", "32 KiB, read afterwards; MMX"),
        "page-clear",
        |cell| cell.state == "seed 32k",
        NT_ZEROING,
    )
    .whole()
    .expects(Expect::AtLeast(1.05), "1.6"),
    Claim::new(
        ("000.12", "", "and wins beyond all caches: 2.5 x LLC"),
        "page-clear",
        |cell| cell.state == BEYOND,
        NT_ZEROING,
    )
    .whole()
    .expects(Expect::AtMost(0.95), "0.64"),
    Claim::new(
        ("000.12", "", "320 KiB itself, which fits the L2 today"),
        "page-clear",
        |cell| cell.state == "seed 320k",
        NT_ZEROING,
    )
    .whole()
    .expects(Expect::AtMost(0.95), "0.64"),
    Claim::new(
        ("000.12", "NT copy_page() is *faster* than non-NT one.", "eight buffers that fit today's caches"),
        "page-copy",
        warm_loops,
        NT_COPYING,
    )
    .expects(Expect::AtMost(1.0), "0.77-0.90"),
    Claim::new(
        ("000.12", "", "the same with destinations in memory, MMX and the widest"),
        "page-copy",
        cold_loops,
        &[("mmx_APN", "mmx_APn"), ("avx512.nt|avx.nt", "avx512|avx")],
    )
    .expects(Expect::AtMost(1.0), "0.77-0.90"),
    Claim::new(
        ("000.12", "", "the document's own loops and sizes"),
        "page-copy-classic",
        warm_loops,
        NT_COPYING,
    )
    .expects(Expect::AtMost(1.0), "0.77-0.90"),
    Claim::new(
        ("000.12", "non-NT zero_page does NOT improve", "temporal zeroing with NT copies over NT both; caches"),
        "page-copy",
        warm_loops,
        &[("mmx_APn/APN", "mmx_APN")],
    )
    .expects(Expect::AtLeast(0.99), "1.00-1.05"),
    Claim::new(
        ("000.12", "", "the same with destinations in memory"),
        "page-copy",
        cold_loops,
        &[("mmx_APn/APN", "mmx_APN")],
    )
    .expects(Expect::AtLeast(0.99), "1.00-1.05"),
    Claim::new(
        ("000.13", "does not fit in cache, NT-copy wins hands down", "1 MiB in DRAM, read at once, with its reader"),
        "reuse-map",
        |cell| read_at_once(cell, "copy", 1 << 20),
        WIDE,
    )
    .whole()
    .expects(Expect::AtMost(0.95), "0.77-0.90")
    .short("copying 1 MiB in DRAM and reading it at once: non-temporal over temporal"),
    Claim::new(
        ("000.14", "Is there ANY workload which will be faster on non-NT copy_page()", "NT over temporal with the reader, all cells of the map"),
        "reuse-map",
        |cell| cell.operation == "copy",
        WIDE,
    )
    .whole()
    .expects(Expect::SomeAtLeast(1.05), "asked"),
    Claim::new(
        ("000.15", "he says that NT is a loss", "4 KiB in DRAM, read at once, with its reader"),
        "reuse-map",
        |cell| read_at_once(cell, "copy", 4096),
        WIDE,
    )
    .whole()
    .expects(Expect::AtLeast(1.0), "asked")
    .short("the same for 4 KiB"),
    Claim::new(
        ("000.10", "copies 8 more pages on each fork", "their copying over the whole of fork, child and wait"),
        "page-copy",
        warm_loops,
        &[("mmx_APn", "fork")],
    ),
    Claim::new(
        ("000.14", "", "the document's own routines, 1 and 100 pages in DRAM"),
        "reuse-map-classic",
        between_maps,
        &[("mmx_APN|copy.mmx.nt.pf320.vlasenko|copy.mmx.nt.pf320", "mmx_APn|copy.mmx.pf320.vlasenko|copy.mmx.pf320")],
    )
    .whole()
    .expects(Expect::SomeAtLeast(1.05), "asked"),
    Claim::new(
        ("000.17", "", "zeroing in DRAM without reading first, `clzero` over MMX"),
        "zero-matrix",
        |cell| between(cell, "zero", "DRAM"),
        &[("zero.clzero", "zero.mmx")],
    ),
];

fn between_maps(cell: &CellKey) -> bool {
    cell.operation == "copy" && is_at(cell, "DRAM")
}
