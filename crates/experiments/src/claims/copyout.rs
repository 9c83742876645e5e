//! Document 001, Evans and Gallatin 2006: non-temporal `copyin` and `copyout`.

use super::claim::{Claim, Expect, between, is_at};
use cachewise_measure::CellKey;
use cachewise_measure::record::names::*;

fn dram(cell: &CellKey) -> bool {
    between(cell, "copy", "DRAM")
}

fn target(cell: &CellKey, state: &str) -> bool {
    cell.state == *state && cell.axis(SOURCE_CACHED) == Some(1.0)
}

fn pre_read(cell: &CellKey) -> bool {
    target(cell, TARGET_READ)
}

fn far(cell: &CellKey) -> bool {
    target(cell, TARGET_FAR)
}

const PERIOD: &[(&str, &str)] = &[("copy.mmx.nt", "copy.mmx"), ("copy.sse.nt", "copy.sse2")];
const ITSELF: &[(&str, &str)] = &[
    ("copy.mmx.nt", "copy.mmx.nt"),
    ("copy.sse.nt", "copy.sse.nt"),
    ("copy.gpr64.nt", "copy.gpr64.nt"),
];

fn received(cell: &CellKey) -> bool {
    cell.state == RECEIVE
}

fn sent(cell: &CellKey) -> bool {
    cell.state == SEND
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        (
            "001.1",
            "more than doubles bcopy bandwidth",
            "DRAM; `movnti` with prefetchnta over `rep movsq`",
        ),
        "copy-matrix",
        dram,
        &[("copy.gpr64.nt.pf320", "copy.rep.movsq")],
    )
    .expects(Expect::AtMost(0.5), "0.48"),
    Claim::new(
        ("001.1", "", "the fastest non-temporal copy over libc's"),
        "copy-matrix",
        dram,
        &[(
            "fastest of copy.mmx.nt*|copy.sse.nt*|copy.sse2.nt*|copy.avx.nt*|copy.avx512.nt*",
            "libc",
        )],
    )
    .expects(Expect::AtMost(0.5), "0.48"),
    Claim::new(
        (
            "001.3",
            "with the source cached?",
            "`movntq` over `movq`, 8 KiB, source cached, target in memory",
        ),
        "cached-target",
        far,
        &[("copy.mmx.nt", "copy.mmx")],
    ),
    Claim::new(
        (
            "001.2",
            "almost as fast (to within about 10%",
            "same width: `movntq` over `movq`, `movntps` over SSE2; target read before",
        ),
        "cached-target",
        pre_read,
        PERIOD,
    )
    .expects(Expect::AtMost(1.10), "1.1"),
    Claim::new(
        ("001.2", "", "the same width with the target's reader"),
        "cached-target",
        pre_read,
        PERIOD,
    )
    .whole()
    .expects(Expect::AtMost(1.10), "1.1"),
    Claim::new(
        ("001.2", "", "the same over today's fastest temporal stores"),
        "cached-target",
        pre_read,
        &[(
            "fastest of copy.mmx.nt|copy.sse.nt|copy.sse2.nt|copy.avx.nt|copy.avx512.nt",
            "fastest of libc|copy.avx|copy.avx512|copy.sse2|copy.rep.movsq",
        )],
    )
    .expects(Expect::AtMost(1.10), "1.1"),
    Claim::new(
        (
            "001.4",
            "limited to the speed of main memory whether or not the target buffer is pre-read",
            "`movntq`, `movntps`, `movnti`: pre-read over target in memory",
        ),
        "cached-target",
        pre_read,
        ITSELF,
    )
    .against(far)
    .expects(Expect::Within(0.9, 1.1), "1"),
    Claim::new(
        (
            "001.5",
            "with half the extra overhead for prefetchnta",
            "`movntq` in the L1, with over without",
        ),
        "cached-target",
        |cell| cell.state == PREFETCHNTA && is_at(cell, "L1"),
        &[("copy.mmx.nt.pf320", "copy.mmx.nt")],
    )
    .expects(Expect::Within(1.02, 1.10), "1.05"),
    Claim::new(
        (
            "001.10",
            "3 to 5 times slower on my test machines",
            "`movq`, target in memory over target read before",
        ),
        "cached-target",
        far,
        &[("copy.mmx", "copy.mmx")],
    )
    .against(pre_read)
    .expects(Expect::AtLeast(3.0), "3-5"),
    Claim::new(
        (
            "001.11",
            "slower if the application actually uses the data soon enough",
            "always NT over never, received and read",
        ),
        "receive",
        |cell| received(cell) && cell.axis(READ) == Some(1.0),
        &[(POLICIES[1], POLICIES[0])],
    )
    .whole()
    .expects(Expect::AtLeast(1.0), "> 1"),
    Claim::new(
        (
            "001.8",
            "only be used in cases where it is know",
            "NT when known over never; all cells of receiving and sending",
        ),
        "receive",
        |cell| !cell.state.is_empty(),
        &[(POLICIES[5], POLICIES[0])],
    )
    .whole()
    .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(
        ("001.8", "", "the same, the document's sizes and kernels"),
        "receive-classic",
        |cell| !cell.state.is_empty(),
        &[(POLICIES[5], POLICIES[0])],
    )
    .whole()
    .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(
        (
            "001.8",
            "copies that are so large that they can't fit in the L2 cache",
            "NT above the L2 over never, calls above the L2",
        ),
        "receive",
        |cell| received(cell) && cell.size > 1 << 20,
        &[(POLICIES[4], POLICIES[0])],
    )
    .whole()
    .expects(Expect::AtMost(1.0), "< 1"),
    Claim::new(
        ("001.9", "copyin() might be different", "NT copyin over temporal"),
        "receive",
        sent,
        &[(POLICIES[6], POLICIES[0])],
    )
    .whole()
    .expects(Expect::AtMost(1.0), "< 1")
    .short("copies that only a device reads, with a bystander: non-temporal over temporal"),
    Claim::new(
        (
            "001.9",
            "",
            "the kernel's own: a stream over virtual Ethernet, `tx-nocache-copy` on over off, CPU of both ends",
        ),
        "receive",
        |cell| cell.state == STREAM,
        &[(STREAMS[2], STREAMS[1])],
    ),
    Claim::new(
        (
            "001.7",
            "uses nearly 90% CPU",
            "a stream over loopback, of a CPU at 10 Gb/s, the receiver",
        ),
        "receive",
        |cell| cell.state == STREAM,
        &[(TCP, TCP)],
    )
    .figure(CPU_SHARE)
    .theirs("117 %"),
    Claim::new(
        (
            "001.7",
            "up to 70% of the time is spent in copyout",
            "one user-space copy over a receive of 2 to 4 MiB",
        ),
        "receive",
        |cell| received(cell) && cell.size >= 2 << 20 && cell.axis(OTHER_CORE) == Some(0.0),
        &[("libc", TCP)],
    )
    .figure_over(COPY_SHARE)
    .theirs("0.7"),
    Claim::new(
        (
            "001.7",
            "",
            "asking the kernel to copy less: io_uring over read and write, CPU of both ends",
        ),
        "receive",
        |cell| cell.state == TCP_MESSAGE,
        &[(TCP_WAYS[3], TCP_WAYS[0])],
    ),
    Claim::new(
        ("001.7", "", "mapping what arrives over reading it"),
        "receive",
        |cell| cell.state == TCP_PINNED_MESSAGE,
        &[(TCP_WAYS[2], TCP_WAYS[1])],
    ),
];
