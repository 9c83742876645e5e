//! Document 002, Evans and Dillon 2007: which instructions copy best, and is the FPU worth it?

use super::claim::{Claim, Expect, between, is_at};
use cachewise_measure::CellKey;
use cachewise_measure::record::names::*;

fn l1(cell: &CellKey) -> bool {
    between(cell, "copy", "L1")
}

fn l2(cell: &CellKey) -> bool {
    between(cell, "copy", "L2")
}

fn dram(cell: &CellKey) -> bool {
    between(cell, "copy", "DRAM")
}

/// A cell of `read-batch`, whose kernels read so many bytes before they write.
fn batch(cell: &CellKey, level: &str, bytes: f64) -> bool {
    is_at(cell, level) && cell.axis(READ_BYTES) == Some(bytes)
}

fn zeroing(cell: &CellKey, reader: f64, delay: f64) -> bool {
    cell.operation == "zero"
        && is_at(cell, "DRAM")
        && cell.reader == Some(reader)
        && cell.axis(DELAY_BYTES) == Some(delay)
}

fn break_even(cell: &CellKey, operation: &str) -> bool {
    cell.operation == operation && cell.state == "break-even"
}

/// A chunk of an extent, in order.
fn pages_in_order(cell: &CellKey) -> bool {
    cell.operation == "copy" && cell.axis(CHUNK) == Some(4096.0) && cell.axis(SHUFFLED) == Some(0.0)
}

fn one_call(cell: &CellKey) -> bool {
    cell.operation == "copy" && super::claim::is_whole(cell)
}

const EIGHT_BY_EIGHT: &[(&str, &str)] = &[("copy.sse2.movdqa.g*", "copy.sse2.movdqa.g*")];
const NT_BLOCKS: &[(&str, &str)] =
    &[("copy.avx512.nt.block*|copy.avx.nt.block*", "copy.avx512.nt.block*|copy.avx.nt.block*")];
const STRAY: &[(&str, &str)] =
    &[("movntq, stray lines", "movntq"), ("movntdq, stray lines", "movntdq")];
const NT_ZERO_OVER_LIBC: &[(&str, &str)] = &[("zero.avx512.nt|zero.avx.nt", "libc")];
const BARE: &[(&str, &str)] = &[(
    "fastest of copy.sse2, bare|copy.avx, bare|copy.avx512, bare",
    "fastest of copy.gpr64|copy.rep.movsb",
)];
const SAVED: &[(&str, &str)] = &[(
    "fastest of copy.sse2 + xsavec, dirty|copy.avx + xsavec, dirty|copy.avx512 + xsavec, dirty",
    "fastest of copy.gpr64|copy.rep.movsb",
)];

pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(("002.21", "integer instructions beat it easily on A64", "L1, `movsq` over `movdqa`"), "copy-matrix", l1, &[("copy.rep.movsq", "copy.sse2.movdqa")])
        .expects(Expect::AtMost(0.9), "0.81"),
    Claim::new(("002.21", "", "the same, integer `movq` over `movdqa`"), "copy-matrix", l1, &[("copy.gpr64", "copy.sse2.movdqa")])
        .expects(Expect::AtMost(0.9), "0.83"),
    Claim::new(("002.15", "XMM vs integer is irrelevant for bandwidth considerations for the L1 level", "integer over SSE2"), "copy-matrix", l1, &[("copy.gpr64", "copy.sse2")])
        .expects(Expect::Within(0.95, 1.05), "1"),
    Claim::new(("002.20", "has the same speed as integer moves of half the size", "DRAM, `movdqa` over `movq`"), "copy-matrix", dram, &[("copy.sse2.movdqa", "copy.gpr64")])
        .expects(Expect::Within(0.95, 1.05), "0.99"),
    Claim::new(("002.28", "It is necessary to use movnt to get anywhere near memory bandwidth", "DRAM, `movnti` over `movq`"), "copy-matrix", dram, &[("copy.gpr64.nt", "copy.gpr64")])
        .expects(Expect::AtMost(0.8), "0.61"),
    Claim::new(
        ("002.19", "any form of movnt can be used for this", "DRAM; `movntps`, `movntq`, `movntdq` over `movnti`"),
        "copy-matrix",
        dram,
        &[("copy.sse.nt", "copy.gpr64.nt"), ("copy.mmx.nt", "copy.gpr64.nt"), ("copy.sse2.nt", "copy.gpr64.nt")],
    )
    .expects(Expect::Within(0.9, 1.1), "1"),
    Claim::new(
        ("002.18", "I've never seen 128-bit nontemporal writes go faster than 64-bit ones", "`movntdq` over `movnti`, L1 to DRAM"),
        "copy-matrix",
        |cell| l1(cell) || l2(cell) || between(cell, "copy", "LLC") || dram(cell),
        &[("copy.sse2.nt", "copy.gpr64.nt")],
    )
    .expects(Expect::AtLeast(0.98), ">= 1"),
    Claim::new(("002.24", "movsl is quite slow", "L1, `movsl` over `movsq`"), "copy-matrix", l1, &[("copy.rep.movsl", "copy.rep.movsq")])
        .expects(Expect::AtLeast(1.1), "1.7"),
    Claim::new(("002.23", "Which modern CPUs can't keep up with L2?", "L2, integer copies over the widest vectors"), "copy-matrix", l2, &[("copy.gpr64", "copy.avx512|copy.avx")]),
    Claim::new(("002.9", "prefetchnta seems to work fine on A64", "DRAM, `movnti` with over without"), "copy-matrix", dram, &[("copy.gpr64.nt.pf320", "copy.gpr64.nt")])
        .expects(Expect::AtMost(0.95), "0.81"),
    Claim::new(("002.9", "", "DRAM, `movdqa` with over without"), "copy-matrix", dram, &[("copy.sse2.movdqa.pf320", "copy.sse2.movdqa")])
        .expects(Expect::AtMost(0.95), "0.92"),
    Claim::new(("002.9", "So here is a case where prefetchnta is bad.", "L2, `movdqa` with over without"), "copy-matrix", l2, &[("copy.sse2.movdqa.pf320", "copy.sse2.movdqa")])
        .expects(Expect::AtLeast(1.25), "1.57"),
    Claim::new(("002.22", "movnti is quite fast provided prefetchnta is not used with it", "L2, with over without"), "copy-matrix", l2, &[("copy.gpr64.nt.pf320", "copy.gpr64.nt")])
        .expects(Expect::AtLeast(1.25), "1.93"),
    Claim::new(("002.29", "the extra instructions for the prefetch are a bit wasteful", "L1, `movdqa` with over without"), "copy-matrix", l1, &[("copy.sse2.movdqa.pf320", "copy.sse2.movdqa")])
        .expects(Expect::Within(1.0, 1.25), "> 1"),
    Claim::new(("002.8", "prefetch N bytes", "DRAM, `movnti` with block prefetch over without"), "copy-matrix", dram, &[("copy.gpr64.nt.block8k", "copy.gpr64.nt")])
        .expects(Expect::AtMost(0.95), "0.84"),
    Claim::new(("002.8", "Just make N much larger than 128", "NT copies in DRAM, blocks of 4 KiB over 512 B"), "read-batch", |cell| batch(cell, "DRAM", 4096.0), NT_BLOCKS)
        .against(|cell| batch(cell, "DRAM", 512.0))
        .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(("002.8", "easily beat simply loading and storing 128 bytes at a time", "DRAM, fastest block prefetch over Dillon's"), "copy-matrix", dram, &[("fastest of copy.sse2.nt.block*|copy.gpr64.nt.block*|copy.sse2.movdqa.block*|copy.sse2.block*", "copy.sse2.dillon")])
        .expects(Expect::AtMost(0.95), "< 1"),
    Claim::new(("002.7", "For large copies, nothing beats it.", "DRAM, Dillon's over the fastest other"), "copy-matrix", dram, &[("copy.sse2.dillon", "fastest of libc|copy.rep*|copy.gpr64*|copy.mmx*|copy.sse.*|copy.avx*|copy.sse2.nt*|copy.sse2.t0*|copy.sse2.g*|copy.sse2.movdqa*")])
        .expects(Expect::AtMost(1.0), "<= 1"),
    Claim::new(("002.7", "destroy performance", "DRAM, a stray store a line, `movntq` and `movntdq`"), "twins", dram, STRAY)
        .expects(Expect::AtLeast(1.25), "large"),
    Claim::new(("002.7", "it is even better to spend the time linearly mapping large copy spaces", "64 MiB by pages over one call; libc, NT"), "extent", pages_in_order, &[("libc", "libc"), ("copy.avx512.nt|copy.avx.nt", "copy.avx512.nt|copy.avx.nt")])
        .against(one_call)
        .expects(Expect::AtLeast(1.02), "> 1"),
    Claim::new(("002.10", "the more data you can load into the cpu on the 'read' side", "DRAM, 128 bytes over 16 before they are written"), "read-batch", |cell| batch(cell, "DRAM", 128.0), EIGHT_BY_EIGHT)
        .against(|cell| batch(cell, "DRAM", 16.0))
        .expects(Expect::AtMost(0.95), "< 1"),
    Claim::new(("002.4", "in the fully-L1-cached case, this speeds it down", "8 loads, then 8 stores over one by one"), "read-batch", |cell| batch(cell, "L1", 128.0), EIGHT_BY_EIGHT)
        .against(|cell| batch(cell, "L1", 16.0))
        .expects(Expect::AtLeast(1.25), "1.49"),
    Claim::new(("002.4", "in the fullyL2-cached case, this speeds it up", "the same"), "read-batch", |cell| batch(cell, "L2", 128.0), EIGHT_BY_EIGHT)
        .against(|cell| batch(cell, "L2", 16.0))
        .expects(Expect::AtMost(0.97), "0.92"),
    Claim::new(
        ("002.11", "This can make a difference of 30% for bzero bandwidth", "L2, pages of one colour over every colour; libc, widest"),
        "page-colour",
        |cell| cell.state == PAGES_OF[0] && is_at(cell, "L2"),
        &[("libc", "libc"), ("zero.avx512|zero.avx", "zero.avx512|zero.avx")],
    )
    .against(|cell| cell.state == PAGES_OF[1] && is_at(cell, "L2"))
    .expects(Expect::AtLeast(1.25), "1.3"),
    Claim::new(
        ("002.12", "ps is slow if there are denormals in the data", "`movntps`, denormals over random bytes"),
        "values",
        |cell| cell.operation == "copy" && cell.axis(VALUE) == Some(3.0),
        &[("copy.sse.nt", "copy.sse.nt")],
    )
    .against(|cell| cell.operation == "copy" && cell.axis(VALUE) == Some(2.0))
    .expects(Expect::AtLeast(1.25), "> 1"),
    Claim::new(("002.13", "movnt* is a clear win in at least one case: zeroing pages in idle.", "DRAM over libc; a line read after 64 MiB of traffic"), "reuse-map", |cell| zeroing(cell, 0.015625, 67_108_864.0), NT_ZERO_OVER_LIBC)
        .whole()
        .expects(Expect::AtMost(0.95), "< 1"),
    Claim::new(("002.13", "This might not be best for non-idle zeroing.", "the same, read at once"), "reuse-map", |cell| zeroing(cell, 1.0, 0.0), NT_ZERO_OVER_LIBC)
        .whole()
        .expects(Expect::AtLeast(1.0), ">= 1"),
    Claim::new(("002.14", "This seems too small.", "NT over temporal, received, 128 B to 1 KiB"), "receive-small", |cell| cell.state == RECEIVE && cell.size <= 1024, &[(POLICIES[2], POLICIES[0])])
        .whole()
        .expects(Expect::AtLeast(1.0), "> 1"),
    Claim::new(
        ("002.16", "I don't try hard to optimize or benchmark misaligned cases.", "libc's copies, 4 KiB to 4 MiB, misaligned over aligned"),
        "peers",
        |cell| cell.operation == "copy" && cell.state == "misaligned" && cell.size >= 4096,
        &[("libc", "libc")],
    )
    .against(|cell| cell.operation == "copy" && cell.state == "warm"),
    Claim::new(("002.17", "you should *DEFINITELY* use the FP unit", "nothing to save, 256 B to 8 KiB; vectors over the faster of `rep movsb` and integers"), "vector-state", |cell| break_even(cell, "copy") && (256..=8192).contains(&cell.size), BARE)
        .expects(Expect::AtMost(1.0), "< 1")
    .short("copies of 256 B to 8 KiB: vectors over integers and `rep movsb`"),
    Claim::new(("002.17", "", "the same, 32 KiB to 64 KiB"), "vector-state", |cell| break_even(cell, "copy") && (32768..=65536).contains(&cell.size), BARE)
        .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(("002.17", "how many bytes you have to have to copy", "all registers saved and restored, copies of 64 KiB"), "vector-state", |cell| break_even(cell, "copy") && cell.size == 65536, SAVED),
    Claim::new(
        ("002.17", "", "the same for equal comparisons of 8 KiB, over integers"),
        "vector-state",
        |cell| break_even(cell, "compare") && cell.size == 8192,
        &[("fastest of compare.avx2 + xsavec, dirty|compare.avx512 + xsavec, dirty", "compare.gpr64")],
    ),
    Claim::new(
        ("002.17", "", "what that saving and restoring takes, ns (dirty, `xsavec`)"),
        "vector-state",
        |cell| cell.state == "registers dirty" && matches!(cell.axis(COMPONENTS), Some(7.0 | 231.0)),
        &[("xsavec + xrstor", "xsavec + xrstor")],
    )
    .figure(NET_NS),
];
