//! The programs.

use crate::world::{CHUNK, CHUNKS, Op, Program, QUIET, Range};
use fastrand::Rng;

/// The cache of all of them, in chunks.
const CACHE: usize = 512;
/// The same in bytes.
pub const CACHE_BYTES: u64 = (CACHE * CHUNK) as u64;

const SRC: usize = 0;
const DST: usize = 1100;
const OTHER: usize = 3000;

fn range(start: usize, length: usize) -> Range {
    start..start + length
}

/// A copy from and to places that move on, so that neither is cached from the last time.
fn streaming(site: usize, round: usize, length: usize) -> Op {
    let at = round * length % 1024;
    Op::Copy { site, src: range(SRC + at, length), dst: range(DST + at, length) }
}

/// Where the copy of a round went.
fn copied(round: usize, length: usize) -> Range {
    range(DST + round * length % 1024, length)
}

fn one_site<'a>(work: impl Fn(usize, &mut Rng) -> Vec<Op> + 'a) -> Program<'a> {
    let round = Box::new(move |_: usize, round: usize, rng: &mut Rng| work(round, rng));
    Program { threads: 1, sites: 1, capacity: CACHE, stays: 1, noise: QUIET, round }
}

/// All with one site, by name.
pub fn single() -> Vec<(&'static str, Program<'static>)> {
    const N: usize = 32;
    vec![
        (
            "read at once",
            one_site(|round, _| vec![streaming(0, round, N), Op::Read(copied(round, N))]),
        ),
        ("never read", one_site(|round, _| vec![streaming(0, round, N), Op::Work(10_000)])),
        (
            "read in part",
            one_site(|round, _| vec![streaming(0, round, N), Op::Read(copied(round, N / 2))]),
        ),
        (
            "read after other work",
            one_site(|round, _| {
                vec![
                    streaming(0, round, N),
                    Op::Read(range(OTHER, 64)),
                    Op::Work(50_000),
                    Op::Read(copied(round, N)),
                ]
            }),
        ),
        (
            "read too late: the cache has forgotten it",
            one_site(|round, _| {
                vec![
                    streaming(0, round, N),
                    Op::Read(range(OTHER, CACHE + 10)),
                    Op::Read(copied(round, N)),
                ]
            }),
        ),
        (
            "read three calls later",
            one_site(|round, _| {
                vec![streaming(0, round, N), Op::Read(copied(round + 1024 / N - 3, N))]
            }),
        ),
        (
            "eight copies, then all are read",
            one_site(|round, _| {
                let mut ops = vec![streaming(0, round, N)];
                if round % 8 == 7 {
                    ops.extend((0..8).map(|back| Op::Read(copied(round - back, N))));
                }
                ops
            }),
        ),
        (
            "beside a working set that just fits",
            one_site(|round, _| vec![streaming(0, round, 64), Op::Read(range(OTHER, CACHE - 100))]),
        ),
        (
            "written after the copy",
            one_site(|round, _| vec![streaming(0, round, N), Op::Write(copied(round, N))]),
        ),
        (
            "one reader in twenty calls",
            one_site(|round, rng| {
                let mut ops = vec![streaming(0, round, N), Op::Work(10_000)];
                if rng.u32(..20) == 0 {
                    ops.push(Op::Read(copied(round, N)));
                }
                ops
            }),
        ),
        (
            "a period of four, one block's length",
            one_site(|round, _| {
                let work = if round % 4 == 0 { 400_000 } else { 1000 };
                vec![streaming(0, round, N), Op::Read(copied(round, N)), Op::Work(work)]
            }),
        ),
        (
            "a period of seven, unread",
            one_site(|round, _| {
                let work = if round % 7 < 3 { 300_000 } else { 0 };
                vec![streaming(0, round, N), Op::Work(work)]
            }),
        ),
        (
            "sizes mixed within an octave",
            one_site(|round, rng| {
                let n = rng.usize(17..=32);
                vec![streaming(0, round, n), Op::Read(copied(round, n))]
            }),
        ),
        (
            "one buffer over and over",
            one_site(|_, _| {
                vec![Op::Copy { site: 0, src: range(SRC, N), dst: range(DST, N) }, Op::Work(20_000)]
            }),
        ),
    ]
}

/// The program, with so many ns of work in each round.
pub fn beside_work(program: Program<'static>, work: u64) -> Program<'static> {
    let inner = program.round;
    let round = Box::new(move |thread: usize, round: usize, rng: &mut Rng| {
        let mut ops = inner(thread, round, rng);
        ops.push(Op::Work(work));
        ops
    });
    Program { round, ..program }
}

/// A program whose time does not depend on its copies.
pub fn indifferent() -> Program<'static> {
    one_site(|_, rng| {
        vec![
            Op::Copy { site: 0, src: 0..0, dst: 0..0 },
            Op::Work(if rng.u32(..10) == 0 { 900_000 } else { 100_000 + rng.u64(..50_000) }),
        ]
    })
}

/// Read at once for so many calls, and never after.
pub fn two_phases(change: usize) -> Program<'static> {
    one_site(move |round, _| {
        let mut ops = vec![streaming(0, round, 32), Op::Work(10_000)];
        if round < change {
            ops.push(Op::Read(copied(round, 32)));
        }
        ops
    })
}

/// Two threads with buffers of their own that call from one place; both read, or neither.
pub fn two_threads(reading: bool) -> Program<'static> {
    let round = Box::new(move |thread: usize, round: usize, _: &mut Rng| {
        let at = round * 32 % 512 + thread * 512;
        let dst = range(DST + at, 32);
        let mut ops = vec![Op::Copy { site: 0, src: range(SRC + at, 32), dst: dst.clone() }];
        // The threads do not keep in step.
        ops.push(Op::Work(5000 + 9000 * thread as u64));
        if reading {
            ops.push(Op::Read(dst));
        }
        ops
    });
    Program { threads: 2, sites: 1, capacity: CACHE, stays: 1, noise: QUIET, round }
}

/// Two sites, one whose copies are read and one whose are not, in one loop.
pub fn two_sites() -> Program<'static> {
    let round = Box::new(|_: usize, round: usize, _: &mut Rng| {
        let at = round * 16 % 512;
        vec![
            Op::Copy { site: 0, src: range(SRC + at, 16), dst: range(DST + at, 16) },
            Op::Read(range(DST + at, 16)),
            Op::Copy { site: 1, src: range(SRC + 512 + at, 16), dst: range(DST + 512 + at, 16) },
        ]
    });
    Program { threads: 1, sites: 2, capacity: CACHE, stays: 1, noise: QUIET, round }
}

/// Threads in a loop over many sites, each with cached buffers of its own that are read at once:
/// non-temporal stores cost nearly three times as much.
pub fn many(threads: usize, sites: usize) -> Program<'static> {
    let round = Box::new(move |thread: usize, _: usize, _: &mut Rng| {
        let buffer = |site: usize| (thread * sites + site) * 2;
        let calls = (0..sites).flat_map(|site| {
            let (src, dst) = (range(buffer(site), 1), range(buffer(site) + 1, 1));
            [Op::Copy { site, src, dst: dst.clone() }, Op::Read(dst)]
        });
        calls.collect()
    });
    Program { threads, sites, capacity: CHUNKS, stays: 1, noise: QUIET, round }
}

/// Copies from one buffer to eight in turn that nobody reads. All fit into a cache that takes many
/// calls to keep them: until then each copy through it pays for the ones around it.
pub fn settles_late() -> Program<'static> {
    let program = one_site(|round, _| {
        vec![Op::Copy { site: 0, src: range(SRC, 16), dst: range(DST + round % 8 * 16, 16) }]
    });
    Program { stays: 4, ..program }
}
