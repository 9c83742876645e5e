//! `parallel`: from what size on several threads pay for one copy or one zeroing, made for the call
//! or kept in a pool, and how near all of them together come to the machine's ceiling.
//!
//! The tuner asks the same contest, and writes what it finds into the profile.

use super::prelude::*;
use cachewise::parallel::{Threads, Workers, copy_by, zero_by};
use cachewise::profile::Supply;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Speed by size and number of threads";
    vec![Figure::curve(title, "size", "gbps").by(&["operation"])]
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
            .map_err(|error| LabError::Nothing(format!("no threads for a pool: {error}")))
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
pub fn counts(all: usize) -> Vec<usize> {
    let below = (1..).map(|log| 1 << log).take_while(|count| *count < all);
    below.chain((all > 1).then_some(all)).collect()
}

/// A way to do the operation.
struct Way {
    state: &'static str,
    name: String,
    threads: usize,
    /// The kernel that does equal parts, where it is not the library.
    ceiling: Option<Function>,
}

impl Way {
    fn of(state: &'static str, name: String, threads: usize) -> Way {
        Way { state, name, threads, ceiling: None }
    }

    fn candidate<'p>(&self, operation: Operation, pool: &'p Pool) -> Call<'p> {
        let Way { state, threads, ceiling, .. } = *self;
        let made = Threads::new(threads);
        let call = move |place: &Place| {
            let (dst, src, n) = (place.dst, place.src, place.n);
            let is_pooled = state == Supply::Pooled.name();
            let workers: &dyn Workers = if is_pooled { pool } else { &made };
            match (ceiling, operation) {
                (Some(kernel), _) => in_equal_parts(kernel, threads, pool, place),
                // SAFETY: the sampler's places are valid for n bytes, source and destination apart.
                (_, Operation::Copy) => unsafe {
                    copy_by(threads, Reuse::Unknown, workers, dst, src, n);
                },
                // SAFETY: the sampler's places are valid for n bytes.
                _ => unsafe { zero_by(threads, Reuse::Unknown, workers, dst, n) },
            }
        };
        let calls =
            Call::new(self.name.as_str(), move |places: &[Place]| places.iter().for_each(&call));
        calls.checked(if operation == Operation::Copy { is_copied } else { is_zeroed })
    }
}

/// All ways: alone, by numbers of threads, and what shows the machine's ceiling.
fn ways(operation: Operation, all: usize, bench: &Bench) -> Vec<Way> {
    let mut ways = vec![Way::of(ALONE, "1 thread".to_owned(), 1)];
    for threads in counts(all) {
        ways.extend(
            Supply::ALL
                .map(|supply| Way::of(supply.name(), format!("{threads} {supply}"), threads)),
        );
    }
    ways.extend(ceilings(operation, bench).into_iter().map(|kernel| Way {
        ceiling: Some(kernel.function),
        ..Way::of(CEILING, format!("{} by {all}", kernel.name), all)
    }));
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
            run_all(function, &[piece]);
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

pub(super) fn run(setting: &mut Setting) -> Result {
    let all = Threads::all().threads();
    if all < 2 {
        return nothing("this process may run on one CPU only");
    }
    let pool = Pool::new(all)?;
    let step = if setting.options.quick { 2 } else { 1 };
    let sizes = setting.sizes_or(sizes(setting.bench).into_iter().rev().step_by(step).rev());
    setting.begin(2.0 * sizes.iter().map(|s| work(*s)).sum::<f64>());
    for operation in [Operation::Copy, Operation::Zero] {
        let ways = ways(operation, all, setting.bench);
        for &size in &sizes {
            one_size(setting, operation, size, &ways, &pool)?;
            setting.out.advance(&format!("{operation} {}", bytes(size)), work(size));
        }
    }
    Ok(())
}

/// One operation of one size, every way in turns.
fn one_size(
    setting: &mut Setting,
    operation: Operation,
    size: usize,
    ways: &[Way],
    pool: &Pool,
) -> Result {
    let mut calls: Vec<Call<'_>> = ways.iter().map(|way| way.candidate(operation, pool)).collect();
    let task = setting.task(operation, size, Cell::reused(ALONE));
    let stop = || setting.out.stopped();
    let found = setting.bench.measure(&task, &mut each(&mut calls), &stop)?;
    for (mut row, way) in found.rows().into_iter().zip(ways) {
        row.cell.state = way.state.into();
        setting.out.row(at(row, &[(THREADS, way.threads as f64)]))?;
    }
    Ok(())
}

/// Octaves from 256 KiB to four times the last level, or what the budget has.
fn sizes(bench: &Bench) -> Vec<usize> {
    let most = (2 * bench.machine.caches.llc.bytes)
        .max(64 << 20)
        .min(MemoryBudget::process().limit() / 4)
        .min(bench.largest_size());
    (18..usize::BITS).map(|log| 1 << log).take_while(|size| *size <= most).collect()
}

fn work(size: usize) -> f64 {
    (size as f64).max(8e6)
}

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
