//! A service that keeps all CPUs busy: each request takes 2 MiB of zeroed memory, writes a quarter of it, works,
//! and gives it back. What its pool's engine changes: requests, CPU time, and how long a request waits for its memory.
//!
//! A pool's scrubber rests while threads wait for CPUs. One that does not (003.7) is a thread that zeroes whenever
//! something is dirty. Beside it the time of one thread says nothing, since the scheduler divides the CPUs: the rows
//! are the requests of all threads by wall time, and the CPU time of the whole process for each request.

use crate::prelude::*;
use crate::threads;
use cachewise_pages::{EngineChoice, Pool, PoolError, Scrub};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The order of a request's block: 2 MiB of 4 KiB pages.
const ORDER: u32 = (HUGE_PAGE / PAGE_SIZE).ilog2();
/// Bytes of the pool for each CPU.
const POOL: usize = 128 << 20;
/// Requests of each thread in a sample.
const REQUESTS: usize = 24;
/// The arm whose scrubber does not rest.
const RESTLESS: &str = "cpu-around, never resting";
/// The state of the rows of CPU time.
const SERVICE_CPU: &str = "busy service, CPU time";
/// Bytes that it zeroes at once.
const CHUNK: usize = 512 << 10;
/// A request's own work, in nanoseconds.
const WORK: [f64; 2] = [3e5, 1e6];

struct Arm {
    name: &'static str,
    pool: Pool,
    /// Nobody zeroes: what a service that needs no zeroed memory does.
    dirty: bool,
    /// A thread of this process zeroes whenever something is dirty.
    restless: bool,
    requests: Vec<f64>,
    /// CPU time of the process for each request, user and system, in nanoseconds.
    cpu: Vec<f64>,
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
    all.insert(2, (RESTLESS, off(), EngineChoice::CpuAround, false));
    let arm = |(name, scrub, engine, dirty)| {
        let builder = Pool::builder().capacity(size).initial(size).cache_blocks(0).scrub(scrub);
        let pool = builder.engine(engine).build()?;
        let [requests, cpu, waits] = [const { Vec::new() }; 3];
        let restless = name == RESTLESS;
        Ok(Arm { name, pool, dirty, restless, requests, cpu, waits, hits: 0, misses: 0 })
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

    /// Zeroes what is dirty until the sample is over.
    fn zero_on(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            if !matches!(self.pool.scrub_now(CHUNK), Ok(1..)) {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        }
    }

    /// A sample: all threads at once.
    fn sample(&mut self, clock: &Clock, threads: usize, work: f64) -> Result {
        let before = self.pool.stats()?;
        let waits = Mutex::new(Ok(Vec::new()));
        let is_over = AtomicBool::new(false);
        let cpu = cpu_ns();
        let serve = || {
            let own = self.serve(clock, work);
            let mut all = waits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match (&mut *all, own) {
                (Ok(all), Ok(own)) => all.extend(own),
                (all, Err(error)) => *all = Err(error),
                (Err(_), Ok(_)) => {}
            }
        };
        let mut refused: Result = Ok(());
        let took = clock.time(|| {
            std::thread::scope(|scope| {
                let mut serving = Vec::new();
                refused = (|| {
                    if self.restless {
                        threads::start(scope, || self.zero_on(&is_over))?;
                    }
                    for _ in 0..threads {
                        serving.push(threads::start(scope, &serve)?);
                    }
                    Ok(())
                })();
                serving.into_iter().for_each(|thread| {
                    let _ = thread.join();
                });
                is_over.store(true, Ordering::Relaxed);
            });
        });
        refused?;
        self.cpu.push((cpu_ns() - cpu) / (REQUESTS * threads) as f64);
        self.waits.extend(waits.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?);
        self.requests.push(took / REQUESTS as f64);
        let after = self.pool.stats()?;
        self.hits += after.zero_hits - before.zero_hits;
        self.misses += after.zero_misses - before.zero_misses;
        Ok(())
    }
}

/// CPU time of this process so far.
fn cpu_ns() -> f64 {
    let usage = cachewise_measure::children::usage(libc::RUSAGE_SELF);
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// A row for each engine and each amount of work, and one of its CPU time.
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
        let (reference, cpu) = (arms[0].requests.clone(), arms[0].cpu.clone());
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
            let cell = CellKey { state: SERVICE_CPU.into(), ..row.cell.clone() };
            rows.push(row.with(&figures));
            rows.push(setting.compared(cell, (arm.name, &arm.cpu), (SERVICE_HOT, &cpu)));
        }
    }
    Ok(rows)
}
