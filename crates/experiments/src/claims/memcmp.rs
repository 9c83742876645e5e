//! Document 004, A Power Technical Blog 2017: `memcmp` with vectors on POWER8.

use super::claim::{Claim, Expect, between};
use cachewise_measure::CellKey;
use cachewise_measure::record::names::*;

const PRE_64: &str = "compare.avx512.pre64|compare.avx2.pre64";
const PATCHED: &[(&str, &str)] = &[(PRE_64, "compare.gpr64")];
const VECTORS: &[(&str, &str)] = &[("compare.avx512|compare.avx2", "compare.gpr64")];

fn sweep(cell: &CellKey) -> bool {
    cell.state == "sweep"
}

fn of_guests(cell: &CellKey) -> bool {
    cell.state == "pages"
}

fn pairs(cell: &CellKey) -> bool {
    PAIRS.iter().any(|state| cell.state == **state)
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(("004.1", "a vectorised loop is significantly quicker", "equal 4 KiB in the L1, over integers"), "compare-matrix", |cell| between(cell, "compare", "L1"), VECTORS)
        .expects(Expect::AtMost(0.9), "< 1")
    .short("comparing equal 4 KiB in the L1: vectors over integers"),
    Claim::new(("004.4", "in the order of tens of bytes then it really wasn't worth it", "64 equal bytes, registers saved, over integers"), "vector-state", |cell| cell.operation == "compare" && cell.state == "break-even" && cell.size == 64, &[("compare.avx2 + xsavec, dirty", "compare.gpr64")])
        .expects(Expect::AtLeast(1.05), "> 1"),
    Claim::new(("004.5", "the first 64 bytes are checked using general purpose registers", "pages of idle guests, the pre-check over none"), "compare-latency", of_guests, &[("compare.avx512.pre64", "compare.avx512"), ("compare.avx2.pre64", "compare.avx2")])
        .expects(Expect::AtMost(0.95), "< 1"),
    Claim::new(("004.5", "Why the first 64 bytes, well why not?", "the same, 16 bytes over 64"), "compare-latency", of_guests, &[("compare.avx512.pre16|compare.avx2.pre16", PRE_64)]),
    Claim::new(("004.5", "", "64 bytes by integers, then saving, vectors and restoring, over integers alone; pages of guests"), "compare-latency", pairs, &[("compare.avx512, saved behind 64 B|compare.avx2, saved behind 64 B", "compare.gpr64")])
        .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(("004.5", "", "saving for every pair over saving behind 64 bytes"), "compare-latency", pairs, &[("compare.avx512, saved|compare.avx2, saved", "compare.avx512, saved behind 64 B|compare.avx2, saved behind 64 B")])
        .expects(Expect::AtLeast(1.05), "> 1"),
    Claim::new(("004.8", "no downside to adopting this approach", "pre-check and vectors over integers, 64 B to 4 KiB by first difference"), "compare-latency", sweep, PATCHED)
        .expects(Expect::AtMost(1.02), "<= 1"),
    Claim::new(("004.8", "haven't noticeably slowed the performance of long duration memcmp()", "equal 4 KiB"), "compare-latency", |cell| sweep(cell) && cell.size == 4096 && cell.axis(FIRST_DIFFERENCE) == Some(4096.0), PATCHED)
        .expects(Expect::AtMost(1.02), "<= 1"),
    Claim::new(("004.8", "resulted in more sub 100ns deltas for the patched kernel", "single calls below 100 ns, part over part"), "compare-latency", |cell| cell.state == "calls to 1000 ns", PATCHED).figure_over(BELOW_100),
    Claim::new(("004.6", "", "pages of files: first difference within 16 bytes"), "compare-latency", of_guests, &[("libc", "libc")]).figure(WITHIN[0]).theirs("76 %"),
    Claim::new(("004.6", "", "within 64 bytes"), "compare-latency", of_guests, &[("libc", "libc")]).figure(WITHIN[2]).theirs("84 %"),
];
