//! `parallel`: from what size on several threads pay for one copy or one zeroing, made for the call
//! or kept in a pool, and how near all of them together come to the machine's ceiling.
//!
//! The tuner asks the same contest, and writes what it finds into the profile.

use super::support::{axis, bytes, figure, gbps, groups, key, versus};
use super::{Experiment, Finish, Setting, short_bytes};
use crate::LabError;
use crate::bench::{Bench, Contest, Entrant, MARGIN, Spot};
use crate::watch::Observer;
use cachewise::Reuse;
use cachewise::parallel::{Threads, Workers, copy_by, zero_by};
use cachewise::profile::{Parallel, Supply};
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE, TABLE};
use cachewise_measure::{
    Contents, Figure, FigureKind, MemoryBudget, PagePolicy, Place, Plan, Row, Verdict,
};

/// Axis: how many threads, the calling one among them.
pub const THREADS: &str = "threads";
/// State of the library on the calling thread alone.
const ALONE: &str = "alone";
/// State of one kernel on equal parts by all threads of the pool.
const CEILING: &str = "ceiling";

pub(super) fn figures() -> Vec<Figure> {
    vec![figure(
        "Speed by size and number of threads",
        FigureKind::Curve,
        "size",
        "gbps",
        &["operation"],
        "",
    )]
}

/// A pool whose threads wait between calls.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    /// One that serves calls of up to `threads` threads, the calling one among them.
    ///
    /// # Errors
    /// The system refuses to make a thread.
    pub fn new(threads: usize) -> Result<Pool, LabError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.saturating_sub(1).max(1))
            .build()
            .map(Pool)
            .map_err(|error| LabError::Nothing { why: format!("no threads for a pool: {error}") })
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
#[must_use]
pub fn counts(all: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        (1..).map(|log| 1 << log).take_while(|count| *count < all).collect();
    if all > 1 {
        counts.push(all);
    }
    counts
}

/// A way to do the operation.
#[derive(Clone, Copy)]
enum Way {
    Alone,
    By(Supply, usize),
    Ceiling(&'static Kernel, usize),
}

impl Way {
    fn state(self) -> &'static str {
        match self {
            Way::Alone => ALONE,
            Way::By(supply, _) => supply.name(),
            Way::Ceiling(..) => CEILING,
        }
    }

    fn threads(self) -> usize {
        match self {
            Way::Alone => 1,
            Way::By(_, threads) | Way::Ceiling(_, threads) => threads,
        }
    }

    fn name(self) -> String {
        match self {
            Way::Alone => "1 thread".to_owned(),
            Way::By(supply, threads) => format!("{threads} {supply}"),
            Way::Ceiling(kernel, threads) => format!("{} by {threads}", kernel.name),
        }
    }

    fn entrant(self, operation: Operation, pool: &Pool) -> Entrant<'_> {
        let call = move |place: &Place| {
            let (dst, src, n) = (place.dst, place.src, place.n);
            match (self, operation) {
                // SAFETY: the sampler's places are valid for n bytes, source and destination apart.
                (Way::By(Supply::Pooled, t), Operation::Copy) => unsafe {
                    copy_by(t, Reuse::Unknown, pool, dst, src, n);
                },
                // SAFETY: as above.
                (Way::By(Supply::Pooled, t), _) => unsafe {
                    zero_by(t, Reuse::Unknown, pool, dst, n);
                },
                (Way::Ceiling(kernel, threads), _) => {
                    in_equal_parts(kernel.function, threads, pool, place);
                }
                // SAFETY: as above.
                (_, Operation::Copy) => unsafe {
                    let threads = self.threads();
                    copy_by(threads, Reuse::Unknown, &Threads::new(threads), dst, src, n);
                },
                // SAFETY: as above.
                (..) => unsafe {
                    let threads = self.threads();
                    zero_by(threads, Reuse::Unknown, &Threads::new(threads), dst, n);
                },
            }
        };
        let entrant =
            Entrant::new(self.name(), move |places: &[Place]| places.iter().for_each(call));
        let copies = operation == Operation::Copy;
        entrant.judged(move |place| {
            // SAFETY: n initialised bytes that nobody writes meanwhile.
            let ours = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
            // SAFETY: as above.
            let source = unsafe { std::slice::from_raw_parts(place.src, place.n) };
            let is_zero =
                || ours.chunks(PAGE_SIZE).all(|part| *part == [0; PAGE_SIZE][..part.len()]);
            let wrong = if copies { ours != source } else { !is_zero() };
            if wrong { Err(format!("not all {} bytes are right", place.n)) } else { Ok(()) }
        })
    }
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
            crate::bench::run_all(function, &[piece]);
        }
    };
    pool.run(threads, &job);
}

/// The kernels that a ceiling is sought among: the straight ones, around the cache and by string.
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

/// One operation of one size, every way in turns. `None` when the user stopped it.
fn contest(
    experiment: &str,
    bench: &mut Bench,
    (operation, size): (Operation, usize),
    ways: &[Way],
    pool: &Pool,
    plan: Plan,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<Row>>, LabError> {
    let mut entrants: Vec<Entrant<'_>> =
        ways.iter().map(|way| way.entrant(operation, pool)).collect();
    let contest = Contest {
        size,
        destination: Spot { level: None, offset: 0 },
        source: (operation == Operation::Copy).then_some(Spot { level: None, offset: 512 }),
        distance: 0,
        pages: PagePolicy::Huge,
        contents: Contents::Overwritten,
        plan,
        write_source: None,
        entrants: &mut entrants,
    };
    let found = bench.hold(contest, observer)?;
    if found.interrupted() {
        return Ok(None);
    }
    let rows = ways.iter().enumerate().map(|(nth, way)| {
        let axes = [(THREADS, way.threads() as f64)];
        let cell = key(operation.name(), size, (None, None), way.state(), &axes);
        found.row(experiment, cell, nth, 0)
    });
    Ok(Some(rows.collect()))
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    for (given, option) in [
        (setting.options.kernels.is_some(), "--kernel"),
        (!setting.options.placements.is_empty(), "--residency"),
    ] {
        if given {
            return Err(LabError::OptionRefused {
                option,
                experiment: experiment.name,
                why: "it compares numbers of threads on one buffer that is used over and over",
            });
        }
    }
    let all = Threads::all().threads();
    if all < 2 {
        return Err(LabError::Nothing { why: "this process may run on one CPU only".to_owned() });
    }
    let pool = Pool::new(all)?;
    let sizes = if setting.options.sizes.is_empty() {
        let step = if setting.options.quick { 2 } else { 1 };
        sizes(setting.bench).into_iter().rev().step_by(step).rev().collect()
    } else {
        setting.options.sizes.clone()
    };
    setting.observer.begin(experiment.name, 2.0 * sizes.iter().map(|s| work(*s)).sum::<f64>());
    let mut rows = Vec::new();
    for operation in [Operation::Copy, Operation::Zero] {
        let mut ways = ways(all);
        ways.extend(
            ceilings(operation, setting.bench).into_iter().map(|kernel| Way::Ceiling(kernel, all)),
        );
        for &size in &sizes {
            let (plan, cell) = (setting.plan(false), (operation, size));
            let found =
                contest(experiment.name, setting.bench, cell, &ways, &pool, plan, setting.observer);
            let Some(found) = found? else {
                verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
                return Ok(Finish::Interrupted);
            };
            for row in &found {
                (setting.rows)(row)?;
            }
            rows.extend(found);
            setting.observer.advance(&format!("{operation} {}", short_bytes(size)), work(size));
        }
    }
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(Finish::Complete)
}

fn ways(all: usize) -> Vec<Way> {
    let mut ways = vec![Way::Alone];
    for threads in counts(all) {
        ways.extend(Supply::ALL.map(|supply| Way::By(supply, threads)));
    }
    ways
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

/// What the tuner finds out about threads: its rows, and the profile's lines they amount to. `None`
/// when the user stopped it.
///
/// # Errors
/// Wrong bytes, refused memory, a sink that fails.
pub(crate) fn tune(
    experiment: &str,
    bench: &mut Bench,
    plan: &Plan,
    most: usize,
    observer: &mut dyn Observer,
    sink: &mut dyn FnMut(&Row) -> Result<(), LabError>,
) -> Result<Option<Vec<Row>>, LabError> {
    let all = Threads::all().threads();
    let sizes: Vec<usize> = sizes(bench).into_iter().filter(|size| *size <= most).collect();
    if all < 2 || sizes.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let pool = Pool::new(all)?;
    observer.begin("several threads", 2.0 * sizes.iter().map(|s| work(*s)).sum::<f64>());
    let mut rows = Vec::new();
    for operation in [Operation::Copy, Operation::Zero] {
        for &size in &sizes {
            let cell = (operation, size);
            let found =
                contest(experiment, bench, cell, &ways(all), &pool, plan.clone(), observer)?;
            let Some(found) = found else { return Ok(None) };
            found.iter().try_for_each(&mut *sink)?;
            rows.extend(found);
            observer.advance(&format!("{operation} {}", short_bytes(size)), work(size));
        }
    }
    Ok(Some(rows))
}

/// From what size on each number of threads is faster than the next smaller one: there and, as far
/// as the medians tell, at every larger size measured. Pure.
#[must_use]
pub fn paying(rows: &[Row]) -> Vec<Parallel> {
    let mut found = Vec::new();
    for (operation, of_it) in groups(rows, |row: &Row| row.cell.operation.clone()) {
        let Some(operation) = Operation::from_name(&operation) else { continue };
        for supply in Supply::ALL {
            let mine = |row: &&Row| [ALONE, supply.name()].contains(&row.cell.state.as_str());
            let mut counts: Vec<u32> =
                of_it.iter().copied().filter(mine).map(|row| axis(row, THREADS) as u32).collect();
            counts.sort_unstable();
            counts.dedup();
            for pair in counts.windows(2) {
                let mut sizes: Vec<u64> = of_it.iter().map(|row| row.cell.size).collect();
                sizes.sort_unstable();
                sizes.dedup();
                let row =
                    |size: u64, threads: u32| {
                        of_it.iter().copied().filter(mine).find(|row| {
                            row.cell.size == size && axis(row, THREADS) as u32 == threads
                        })
                    };
                let mut from = None;
                for &size in sizes.iter().rev() {
                    let (Some(fewer), Some(more)) = (row(size, pair[0]), row(size, pair[1])) else {
                        continue;
                    };
                    let ratio = versus(more, fewer);
                    if ratio.median >= 1.0 {
                        break;
                    }
                    if ratio.verdict(MARGIN) == Verdict::Faster {
                        from = Some(size);
                    }
                }
                found.push(Parallel { operation, supply, threads: pair[1], from });
            }
        }
    }
    found
}

/// The sentences that rows amount to. Pure.
fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences: Vec<String> = paying(rows)
        .iter()
        .map(|Parallel { operation, supply, threads, from }| match from {
            Some(from) => format!(
                "{operation}: {threads} {supply} threads pay from {} on",
                bytes(*from as usize)
            ),
            None => format!("{operation}: {threads} {supply} threads pay at no size tried"),
        })
        .collect();
    for (operation, of_it) in groups(rows, |row: &Row| row.cell.operation.clone()) {
        let largest = of_it.iter().map(|row| row.cell.size).max().unwrap_or(0);
        let best = |state: &str| {
            of_it
                .iter()
                .filter(|row| row.cell.size == largest && row.cell.state == state)
                .max_by(|a, b| gbps(a).total_cmp(&gbps(b)))
        };
        if let (Some(alone), Some(pooled), Some(ceiling)) =
            (best(ALONE), best(Supply::Pooled.name()), best(CEILING))
        {
            let gain = versus(pooled, alone);
            sentences.push(format!(
                "{operation} of {}: {} {:.3} GB/s, {} of one thread's time; {:.2} of the best \
                 kernel on equal parts ({}, {:.3} GB/s)",
                bytes(largest as usize),
                pooled.candidate,
                gbps(pooled),
                format_args!("{:.2}", gain.median),
                gbps(pooled) / gbps(ceiling),
                ceiling.candidate,
                gbps(ceiling),
            ));
        }
    }
    if sentences.is_empty() {
        return vec!["Several threads: cannot tell, nothing was measured".to_owned()];
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::support::made_up;
    use super::*;

    fn row(size: usize, state: &str, threads: f64, ns: f64) -> Row {
        let cell = key("copy", size, (None, None), state, &[(THREADS, threads)]);
        made_up::row(cell, &format!("{threads} {state}"), "1 thread", ns)
    }

    #[test]
    fn threads_pay_from_where_they_are_faster_and_stay_so() {
        let mut rows = Vec::new();
        for (size, spawned, four) in [(1, 2.0, 9.0), (2, 0.9, 1.1), (4, 0.6, 0.7), (8, 0.5, 0.3)] {
            rows.push(row(size << 20, ALONE, 1.0, 1000.0));
            rows.push(row(size << 20, "spawned", 2.0, 1000.0 * spawned));
            rows.push(row(size << 20, "spawned", 4.0, 1000.0 * four));
            rows.push(row(size << 20, "pooled", 2.0, 1001.0));
        }
        let found: Vec<_> = paying(&rows).iter().map(|p| (p.supply, p.threads, p.from)).collect();
        assert_eq!(
            found,
            [
                (Supply::Spawned, 2, Some(2 << 20)),
                (Supply::Spawned, 4, Some(8 << 20)),
                (Supply::Pooled, 2, None),
            ]
        );
        let said = verdicts(&rows);
        assert_eq!(said[0], "copy: 2 spawned threads pay from 2 MiB on");
        assert_eq!(said[2], "copy: 2 pooled threads pay at no size tried");
        assert!(verdicts(&[])[0].contains("cannot tell"));
    }

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
