//! `parallel`: from what size on several threads pay for one copy or one zeroing, made for the call
//! or kept in a pool, and how near all of them together come to the machine's ceiling.
//!
//! The tuner asks the same contest, and writes what it finds into the profile.

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::prelude::*;
use crate::tables::*;
use crate::threads;
use cachewise::parallel::{Threads, Workers, copy_by, zero_by};
use cachewise::profile::Supply;
use cachewise_measure::units::bytes;

pub(super) const PART: Experiment = Experiment {
    name: "parallel",
    about: "large copies and zeroing by several threads, started for the call or kept waiting",
    seeds: &[],
    operations: &[Operation::Copy, Operation::Zero],
    refuses: &[
        (Flag::Kernels, "it compares numbers of threads"),
        (Flag::Residency, "one pair of buffers is used over and over"),
    ],
    tables: Some(|rows| THREADS_TOGETHER.tables(rows)),
    figures,
    today: &["1 thread"],
    run,
    ..PLAIN
};

fn figures() -> Vec<Figure> {
    let title = "Speed by size and number of threads";
    vec![Figure::curve(title, "size", "gbps").by(&["operation"]).of("alone|spawned|pooled|ceiling")]
}

/// A pool whose threads wait between calls.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    /// One that serves calls of up to `threads` threads, the calling one among them.
    ///
    /// # Errors
    /// The system refuses to make a thread.
    pub fn new(threads: usize) -> Result<Pool> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.saturating_sub(1).max(1))
            .build()
            .map(Pool)
            .map_err(|error| threads::refused(std::io::Error::other(error)))
    }
}

impl Workers for Pool {
    fn threads(&self) -> usize {
        self.0.current_num_threads() + 1
    }

    fn run(&self, threads: usize, job: &(dyn Fn() + Sync)) {
        self.0.in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| job());
            }
            job();
        });
    }
}

/// Numbers of threads that are tried: powers of two below all, and all.
pub(crate) fn counts(all: usize) -> Vec<usize> {
    let below = (1..).map(|log| 1 << log).take_while(|count| *count < all);
    below.chain((all > 1).then_some(all)).collect()
}

/// All ways: alone, by numbers of threads, and what shows the machine's ceiling.
fn ways<'p>(operation: Operation, all: usize, pool: &'p Pool, bench: &Bench) -> Vec<Call<'p>> {
    let way = |state: &'static str, name: String, threads: usize, one: Box<dyn Fn(&Place) + 'p>| {
        Call::new(name, move |places: &[Place]| places.iter().for_each(&one))
            .checked(if operation == Operation::Copy { is_copied } else { is_zeroed })
            .in_cell(move |cell| CellKey {
                state: state.into(),
                ..cell.with(&[(THREADS, threads as f64)])
            })
    };
    let shared = |threads, is_pooled: bool| -> Box<dyn Fn(&Place) + 'p> {
        let made = Threads::new(threads);
        Box::new(move |place| {
            let Place { dst, src, n } = *place;
            let workers: &dyn Workers = if is_pooled { pool } else { &made };
            if operation == Operation::Copy {
                // SAFETY: the sampler's places are valid for n bytes, source and destination apart.
                unsafe { copy_by(threads, Reuse::Unknown, workers, dst, src, n) };
            } else {
                // SAFETY: the sampler's places are valid for n bytes.
                unsafe { zero_by(threads, Reuse::Unknown, workers, dst, n) };
            }
        })
    };
    let mut ways = vec![way(ALONE, "1 thread".to_owned(), 1, shared(1, false))];
    for (threads, supply) in counts(all).into_iter().flat_map(|n| Supply::ALL.map(|by| (n, by))) {
        let calls = shared(threads, supply == Supply::Pooled);
        ways.push(way(supply.name(), format!("{threads} {supply}"), threads, calls));
    }
    for &Kernel { name, function, .. } in ceilings(operation, bench) {
        let calls = Box::new(move |place: &Place| in_equal_parts(function, all, pool, place));
        ways.push(way(CEILING, format!("{name} by {all}"), all, calls));
    }
    ways
}

/// Every thread of the pool does one part of whole pages.
fn in_equal_parts(function: Function, threads: usize, pool: &Pool, place: &Place) {
    let part = place.n.div_ceil(threads).next_multiple_of(PAGE_SIZE);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (dst, src, n) = (place.dst.expose_provenance(), place.src.expose_provenance(), place.n);
    let job = || {
        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed).saturating_mul(part);
        if at < n {
            let piece = Place {
                dst: std::ptr::with_exposed_provenance_mut(dst + at),
                src: std::ptr::with_exposed_provenance(src + at),
                n: part.min(n - at),
            };
            once(function, &piece);
        }
    };
    pool.run(threads, &job);
}

/// The kernels that a ceiling is sought among: the straight ones, non-temporal and by string.
fn ceilings(operation: Operation, bench: &Bench) -> Vec<&'static Kernel> {
    TABLE
        .iter()
        .filter(|kernel| kernel.operation() == operation && kernel.runs_on(bench.features))
        .filter(|kernel| {
            matches!(
                kernel.technique(),
                "sse2.nt" | "avx.nt" | "avx512.nt" | "clzero" | "neon.nt" | "zva" | "vsx" | "dcbz"
            )
        })
        .collect()
}

fn run(setting: &mut Setting) -> Result {
    let all = Threads::all().threads();
    if all < 2 {
        return nothing("this process may run on one CPU only");
    }
    let pool = Pool::new(all)?;
    let step = if setting.options.quick { 2 } else { 1 };
    let sizes = setting.sizes_or(sizes(setting.bench).into_iter().rev().step_by(step).rev());
    let both = [Operation::Copy, Operation::Zero].into_iter();
    let cells = both.flat_map(|one| sizes.iter().map(move |size| (one, *size))).collect();
    let weight = |(_, size): &(Operation, usize)| (*size as f64).max(8e6);
    setting.through(cells, weight, |setting, (operation, size)| {
        let ways = ways(operation, all, &pool, setting.bench);
        setting.calls(&setting.task(operation, size, Cell::reused(ALONE)), ways)?;
        Ok(format!("{operation} {}", bytes(size as u64)))
    })
}

/// Octaves from 256 KiB to four times the last level, or what the budget has.
fn sizes(bench: &Bench) -> Vec<usize> {
    let most = (2 * bench.machine.caches.llc.bytes)
        .max(64 << 20)
        .min(MemoryBudget::process().limit() / 4)
        .min(bench.largest_size());
    (18..usize::BITS).map(|log| 1 << log).take_while(|size| *size <= most).collect()
}

/// `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.
const THREADS_TOGETHER: Grid = Grid {
    caption: |row| {
        let operation = &row.cell.operation;
        (format!("{operation} by several threads: GB/s (time over one thread's)"), None)
    },
    lines: (">bytes", |row| bytes(row.cell.size)),
    column: |row| Some((0.0, row.candidate.clone())),
    cell: |row| if row.candidate == row.reference { gbps(row) } else { speed(row) },
    legend: "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1",
    ..Grid::PLAIN
};

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn all_threads_are_tried_and_fewer() {
        assert!(counts(1).is_empty());
        assert_eq!(counts(2), [2]);
        assert_eq!(counts(6), [2, 4, 6]);
        assert_eq!(counts(64), [2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn equal_parts_cover_everything() {
        let pool = Pool::new(3).expect("threads");
        for n in [1, PAGE_SIZE, 3 * PAGE_SIZE + 1, 100_000] {
            let mut bytes = vec![1u8; n];
            let place = Place { dst: bytes.as_mut_ptr(), src: bytes.as_ptr(), n };
            let kernel = cachewise_kernels::find("zero.bytes").expect("the reference");
            in_equal_parts(kernel.function, 3, &pool, &place);
            assert!(bytes.iter().all(|byte| *byte == 0), "{n}");
        }
    }
}
