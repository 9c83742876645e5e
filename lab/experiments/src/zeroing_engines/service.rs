//! A service that keeps all CPUs busy: each request takes 2 MiB of zeroed memory, writes a quarter of it, works,
//! and gives it back. What its pool's engine changes: requests, and how long a request waits for its memory.

use crate::prelude::*;
use cachewise_pages::{EngineChoice, Pool, PoolError, Scrub};
use std::sync::Mutex;

/// The order of a request's block: 2 MiB of 4 KiB pages.
const ORDER: u32 = (HUGE_PAGE / PAGE_SIZE).ilog2();
/// Bytes of the pool for each CPU.
const POOL: usize = 128 << 20;
/// Requests of each thread in a sample.
const REQUESTS: usize = 24;
/// A request's own work, in nanoseconds.
const WORK: [f64; 2] = [3e5, 1e6];

struct Arm {
    name: &'static str,
    pool: Pool,
    /// Nobody zeroes: what a service that needs no zeroed memory does.
    dirty: bool,
    requests: Vec<f64>,
    waits: Vec<f64>,
    hits: u64,
    misses: u64,
}

/// A scrubber that the load holds back, as a pool has it.
fn arms(size: usize, has_device: bool) -> Result<Vec<Arm>, PoolError> {
    let off = || Scrub { enabled: false, ..Scrub::default() };
    let on = || Scrub {
        min_idle: std::time::Duration::ZERO,
        unused_limit: u64::MAX,
        ..Scrub::default()
    };
    let around = EngineChoice::CpuAround;
    let mut all = vec![
        (SERVICE_HOT, off(), EngineChoice::CpuAround, false),
        (ENGINE_AROUND, on(), around, false),
        (SERVICE_NEVER, off(), EngineChoice::CpuAround, true),
    ];
    if has_device {
        all.push((ENGINE_CUDA, on(), EngineChoice::Cuda, false));
    }
    let arm = |(name, scrub, engine, dirty)| {
        let builder = Pool::builder().capacity(size).initial(size).cache_blocks(0).scrub(scrub);
        let pool = builder.engine(engine).build()?;
        let (requests, waits) = (Vec::new(), Vec::new());
        Ok(Arm { name, pool, dirty, requests, waits, hits: 0, misses: 0 })
    };
    all.into_iter().map(arm).collect()
}

impl Arm {
    /// One thread's requests: how long each waited for its memory.
    fn serve(&self, clock: &Clock, work: f64) -> Result<Vec<f64>, PoolError> {
        let mut waits = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let mut taken = Err(PoolError::Closed);
            waits.push(clock.time(|| {
                taken = if self.dirty {
                    self.pool.alloc_raw(ORDER)
                } else {
                    self.pool.zalloc_raw(ORDER)
                };
            }));
            let block = taken?;
            // SAFETY: a block of this size that is this request's alone.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), HUGE_PAGE) };
            bytes[..HUGE_PAGE / 4].fill(1);
            clock.spin(work);
            // SAFETY: taken above, and used no more.
            unsafe { self.pool.free_raw(block, ORDER) }?;
        }
        Ok(waits)
    }

    /// A sample: all threads at once.
    fn sample(&mut self, clock: &Clock, threads: usize, work: f64) -> Result {
        let before = self.pool.stats()?;
        let waits = Mutex::new(Ok(Vec::new()));
        let took = clock.time(|| {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let own = self.serve(clock, work);
                        let mut all =
                            waits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        match (&mut *all, own) {
                            (Ok(all), Ok(own)) => all.extend(own),
                            (all, Err(error)) => *all = Err(error),
                            (Err(_), Ok(_)) => {}
                        }
                    });
                }
            });
        });
        self.waits.extend(waits.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?);
        self.requests.push(took / REQUESTS as f64);
        let after = self.pool.stats()?;
        self.hits += after.zero_hits - before.zero_hits;
        self.misses += after.zero_misses - before.zero_misses;
        Ok(())
    }
}

/// A row for each engine and each amount of work.
pub(super) fn rows(setting: &mut Setting, has_device: bool) -> Result<Vec<Row>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let size = POOL * threads;
    if 4 * size > MemoryBudget::process().limit() {
        let needed = bytes(4 * size);
        setting.out.note(format!("left out the service: its pools need --memory {needed}"))?;
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for work in WORK {
        let mut arms = arms(size, has_device)?;
        setting.in_turns(arms.len(), work as usize, |at| {
            arms[at].sample(&setting.bench.clock, threads, work)
        })?;
        let reference = arms[0].requests.clone();
        for arm in &mut arms {
            arm.waits.sort_unstable_by(f64::total_cmp);
            let at = |share: f64| {
                arm.waits[((share * arm.waits.len() as f64) as usize).min(arm.waits.len() - 1)]
            };
            let asked = (arm.hits + arm.misses).max(1) as f64;
            let figures = [
                (REQUESTS_PER_S, threads as f64 * 1e9 / stats::median(&arm.requests)),
                ("p50_ns", at(0.5)),
                ("p99_ns", at(0.99)),
                (HIT_SHARE, arm.hits as f64 / asked),
            ];
            let cell = CellKey::new("zero", HUGE_PAGE, SERVICE)
                .with(&[(WORK_US, work / 1000.0), (THREADS, threads as f64)]);
            let row = setting.compared(cell, (arm.name, &arm.requests), (SERVICE_HOT, &reference));
            rows.push(row.with(&figures));
        }
    }
    Ok(rows)
}
