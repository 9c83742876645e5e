//! Document 003, Lameter 2005: pages that are zero before they are asked for.

use super::claim::{Claim, Expect};
use cachewise_measure::CellKey;
use cachewise_measure::record::names::*;

/// Pages handed out: lines touched, threads, repetitions.
fn pages(cell: &CellKey, lines: f64, threads: f64, reps: f64) -> bool {
    let axis = |name| cell.axis(name);
    cell.state == FAULT
        && (axis(LINES), axis(THREADS), axis(REPS)) == (Some(lines), Some(threads), Some(reps))
}

fn sparse(cell: &CellKey) -> bool {
    pages(cell, 1.0, 1.0, 1.0)
}

fn full(cell: &CellKey) -> bool {
    pages(cell, 64.0, 1.0, 1.0)
}

fn draining(cell: &CellKey) -> bool {
    pages(cell, 1.0, 1.0, 10.0)
}

fn full_draining(cell: &CellKey) -> bool {
    pages(cell, 64.0, 1.0, 10.0)
}

fn by_size(cell: &CellKey) -> bool {
    cell.state == FAULT_BY_SIZE
}

fn huge(cell: &CellKey) -> bool {
    by_size(cell) && cell.size == 2 << 20
}

fn hot(cell: &CellKey, lines: f64) -> bool {
    cell.state == HOT_PAGES && cell.axis(LINES) == Some(lines)
}

fn kernel_huge(cell: &CellKey) -> bool {
    cell.size == 2 << 20
}

fn large_batch(cell: &CellKey) -> bool {
    cell.state == ENGINE && cell.size == 32 << 20
}

fn busy_service(cell: &CellKey) -> bool {
    cell.state == SERVICE
}

fn extent(cell: &CellKey, chunk: f64, shuffled: f64) -> bool {
    cell.operation == "zero"
        && cell.axis(CHUNK) == Some(chunk)
        && cell.axis(SHUFFLED) == Some(shuffled)
}

const IN_ONE_POOL: &[(&str, &str)] = &[(PREZEROED, HOT_ZERO)];
const DRAINED: &[(&str, &str)] = &[(DRAINING, HOT_ZERO)];
const LIBC_AND_NT: &[(&str, &str)] =
    &[("libc", "libc"), ("zero.avx512.nt|zero.avx.nt", "zero.avx512.nt|zero.avx.nt")];
const ZEROED_BLOCK: &[(&str, &str)] = &[("hitting", "off")];
const BY_GPU: &[(&str, &str)] = &[(ENGINE_CUDA, ENGINE_AROUND)];
const READY: &[(&str, &str)] = &[(READY_FAULT, KERNEL_FAULT)];

pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(("003.14", "The result is a significant increase of the page fault performance", "2 MiB: ready shared over anonymous"), "page-fault", huge, &[(SHARED_READY, ANONYMOUS)])
        .expects(Expect::AtMost(0.5), "0.23")
    .short("a 2 MiB fault that finds its page zero (shared), over one that zeroes it (anonymous)"),
    Claim::new(("003.14", "", "in the allocator of `linux/`'s kernel: a 2 MiB block zeroed ahead over one zeroed at hand-out"), "zeroed-bench", kernel_huge, ZEROED_BLOCK)
        .expects(Expect::AtMost(0.5), "0.23")
    .short("a kernel's 2 MiB block zeroed ahead, over one zeroed at hand-out"),
    Claim::new(("003.14", "", "the same, all lines read"), "zeroed-bench", kernel_huge, ZEROED_BLOCK)
        .whole()
        .expects(Expect::AtMost(0.5), "0.23"),
    Claim::new(("003.14", "", "the same kernel without zeroed blocks left, over never zeroing ahead; 4 KiB to 2 MiB"), "zeroed-bench", |cell| cell.state != "hot", &[("missing", "off")])
        .expects(Expect::AtMost(1.05), "1"),
    Claim::new(("003.18", "The most expensive operation in the page fault handler", "a 2 MiB fault that finds its page zero, over one that zeroes it: shared memory"), "page-fault", huge, &[(SHARED_READY, SHARED_FRESH)])
        .expects(Expect::AtMost(0.5), "< 0.5"),
    Claim::new(("003.18", "", "a 4 KiB fault that finds its page zero, over an anonymous one that zeroes; one line"), "page-fault", sparse, READY)
        .expects(Expect::AtMost(0.5), "< 0.5")
    .short("the same for 4 KiB, one line touched"),
    Claim::new(("003.16", "", "order of clearing: an anonymous 2 MiB fault over a fresh shared one"), "page-fault", huge, &[(ANONYMOUS, SHARED_FRESH)]),
    Claim::new(("003.14", "", "faults of 64 KiB to 1 MiB: ready shared over anonymous"), "page-fault", |cell| by_size(cell) && (65_536..2 << 20).contains(&cell.size), &[(SHARED_READY, ANONYMOUS)])
        .expects(Expect::AtMost(0.5), "0.23"),
    Claim::new(("003.16", "zeroing large consecutive areas of memory is more efficient", "128 MiB by pages in order over one call; libc, NT"), "extent", |cell| extent(cell, 4096.0, 0.0), LIBC_AND_NT)
        .against(|cell| cell.operation == "zero" && super::claim::is_whole(cell))
        .expects(Expect::AtLeast(1.05), "> 1")
    .short("zeroing 128 MiB by pages over one call (libc; non-temporal)"),
    Claim::new(("003.16", "Memory subsystems are typically optimized for linear accesses", "pages shuffled over in order"), "extent", |cell| extent(cell, 4096.0, 1.0), LIBC_AND_NT)
        .against(|cell| extent(cell, 4096.0, 0.0))
        .expects(Expect::AtLeast(1.05), "> 1"),
    Claim::new(("003.14", "", "in one pool: prezeroed over zeroed at hand-out, one line, read later"), "page-fault", sparse, IN_ONE_POOL)
        .whole()
        .expects(Expect::AtMost(0.5), "0.23")
    .short("a pool's page prezeroed, over zeroed at hand-out: one line touched, all read later"),
    Claim::new(("003.14", "still makes this a winner", "the same ten times over, which drains it"), "page-fault", draining, DRAINED)
        .whole()
        .expects(Expect::AtMost(0.75), "0.48")
    .short("the same where the pool is drained ten times over"),
    Claim::new(("003.14", "The benefits of prezeroing are reduced to minimal quantities if all cachelines of a page are touched.", "in one pool, all lines"), "page-fault", full, IN_ONE_POOL)
        .whole()
        .expects(Expect::AtLeast(0.9), "1")
    .short("a pool's page prezeroed, over zeroed at hand-out: all lines touched"),
    Claim::new(("003.14", "", "the same for the fault"), "page-fault", full, READY)
        .expects(Expect::AtLeast(0.9), "1"),
    Claim::new(("003.14", "", "the same in one pool, ten times over"), "page-fault", full_draining, DRAINED)
        .whole()
        .expects(Expect::AtLeast(0.9), "1"),
    Claim::new(("003.14", "", "pool prezeroed over `calloc`, one line, read later"), "page-fault", sparse, &[(PREZEROED, "calloc")]).whole(),
    Claim::new(("003.14", "", "pool draining over `calloc`, ten times over"), "page-fault", draining, &[(DRAINING, "calloc")]).whole()
    .short("a drained pool over `calloc`, one line touched, all read later"),
    Claim::new(("003.14", "", "pool prezeroed over a 4 KiB fault, one line, read later"), "page-fault", sparse, &[(PREZEROED, KERNEL_FAULT)]).whole(),
    Claim::new(("003.14", "", "pool prezeroed over transparent huge pages, all lines"), "page-fault", full, &[(PREZEROED, "kernel THP")]).whole(),
    Claim::new(("003.14", "", "pool draining over transparent huge pages, all lines, ten times over"), "page-fault", full_draining, &[(DRAINING, "kernel THP")]).whole(),
    Claim::new(("003.15", "Approaches like that will only shift processing to somewhere else", "CPU a page in all, all lines: prezeroed over zeroed at hand-out"), "page-fault", full, IN_ONE_POOL).figure_over(TOTAL_CPU),
    Claim::new(("003.15", "", "the same over `calloc`, one line"), "page-fault", sparse, &[(PREZEROED, "calloc")]).figure_over(TOTAL_CPU),
    Claim::new(("003.17", "are better hot zeroed", "all lines touched: a cold prezeroed page over zeroing one that was just used"), "page-fault", |cell| hot(cell, 64.0), &[(COLD_PREZEROED, HOT_ZEROED)])
        .expects(Expect::AtLeast(1.0), "> 1")
        .short("touching all of a page zeroed long ago, over zeroing one that was just used and touching it"),
    Claim::new(("003.17", "", "the same, one line touched"), "page-fault", |cell| hot(cell, 1.0), &[(COLD_PREZEROED, HOT_ZEROED)])
        .expects(Expect::AtLeast(1.0), "> 1"),
    Claim::new(("003.17", "", "in the kernel's allocator, all lines read: a 4 KiB page zeroed ahead over one that was just used"), "zeroed-bench", |cell| cell.size == 4096 && cell.state == "first", ZEROED_BLOCK)
        .against(|cell| cell.state == "hot")
        .whole()
        .expects(Expect::AtLeast(1.0), "> 1"),
    Claim::new(("003.6", "until all pages of order /proc/sys/vm/scrub_stop and higher are zeroed", "a program's time, stop 4 over stop 0"), "page-fault", |cell| cell.state == SCRUB_SETTINGS, &[("start 9, stop 4", "start 9")]),
    Claim::new(("003.6", "", "pages found zeroed with stop 4"), "page-fault", |cell| cell.state == SCRUB_SETTINGS, &[("start 9, stop 4", "start 9")]).figure(HIT_SHARE),
    Claim::new(("003.7", "not running kscrubd under high loads is to slow the system down even further", "a program's time, resting under load over not resting"), "page-fault", |cell| cell.state == SCRUB_SETTINGS, &[("load 0", SCRUB_BASE)])
        .expects(Expect::AtLeast(1.02), "> 1"),
    Claim::new(("003.4", "Implements a driver to shift the zeroing off the cpu into hardware.", "without hardware: CPU, reader and bystander; temporal over non-temporal stores, 32 MiB"), "zeroing-engines", large_batch, &[(ENGINE_THROUGH, ENGINE_AROUND)]).whole(),
    Claim::new(("003.19", "With hardware support there will be minimal impact of zeroing on the performance of the system.", "without hardware: ms that a bystander loses for a GB"), "zeroing-engines", large_batch, &[(ENGINE_AROUND, ENGINE_AROUND)]).figure(BYSTANDER_PER_GB),
    Claim::new(("003.19", "", "a GPU: CPU time of its engine over stores around the cache, batches of 32 MiB"), "zeroing-engines", large_batch, BY_GPU)
        .expects(Expect::AtMost(0.05), "minimal"),
    Claim::new(("003.19", "", "a GPU, all CPUs busy: time a request over zeroing at hand-out; 0.3 and 1 ms of own work"), "zeroing-engines", busy_service, &[(ENGINE_CUDA, SERVICE_HOT)])
        .short("a request of a service with all CPUs busy: a GPU zeroes, over zeroing at hand-out"),
    Claim::new(("003.19", "", "the same over memory that nobody zeroes"), "zeroing-engines", busy_service, &[(ENGINE_CUDA, SERVICE_NEVER)])
        .expects(Expect::AtMost(1.02), "minimal"),
    Claim::new(("003.20", "The scrub daemon is hardly noticable", "a bystander beside it over none"), "page-fault", |cell| cell.state == BYSTANDER_WALK, &[(SCRUB_BASE, "no scrubber")])
        .expects(Expect::AtMost(1.02), "1"),
    Claim::new(("003.20", "", "a bystander, temporal over non-temporal scrubbing"), "page-fault", |cell| cell.state == BYSTANDER_WALK, &[(SCRUB_THROUGH, SCRUB_BASE)]),
];
