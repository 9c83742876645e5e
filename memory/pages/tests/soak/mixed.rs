//! Mixed work on pools for as long as one likes, everything checked: mixed sizes, threads, forks,
//! trims, faulty engines. Ten seconds of it run as a test, twenty minutes with
//! `cargo run --release -p xtask -- soak --minutes 20`.

use cachewise_pages::engine::faulty::{BatchOutcome, Faulty, Script};
use cachewise_pages::{EngineChoice, PageSize, Pool, PoolError, Scrub, Verify};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The work to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Time altogether; it goes on until each engine had its turn.
    pub duration: Duration,
    /// Time with one pool; it goes on until all was done there, for [`PATIENCE`] times as long at most.
    pub round: Duration,
    /// Bytes of each pool.
    pub capacity: usize,
    /// Threads that allocate.
    pub threads: usize,
    /// The seed of the random choices.
    pub seed: u64,
}

/// With one pool at least, however slow the machine is: so many forks and blocks, memory returned and
/// zeroed, and a failure of the engine that fails.
const LEAST_FORKS: u64 = 3;
const LEAST_BLOCKS: u64 = 300;
const ENGINES: u64 = 4;
/// In how many times a round's length the least of everything has to be done: the pool's own thread goes last,
/// and a machine may be busy, slow or emulated.
pub const PATIENCE: u32 = 100;

/// The work done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Pools made and taken down.
    pub rounds: u64,
    /// Blocks taken.
    pub blocks: u64,
    /// Bytes of them that had to be zero, all of which were read.
    pub zero_bytes: u64,
    /// Forks whose child used its copy.
    pub forks: u64,
    /// Bytes returned to the system.
    pub trimmed: u64,
    /// Bytes zeroed in the background.
    pub scrubbed: u64,
    /// Batches that engines failed at.
    pub engine_faults: u64,
    /// The most memory this process held at the end of a round's work, and at the very end.
    pub resident: (u64, u64),
}

/// A generator good enough to choose what to do next (Vigna's splitmix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

struct Held {
    start: NonNull<u8>,
    frames: u32,
    mark: u8,
}

struct Shared<'a> {
    pool: &'a Pool,
    stop: AtomicBool,
    blocks: AtomicU64,
    zero_bytes: AtomicU64,
    wrong: Mutex<Option<String>>,
}

impl Shared<'_> {
    fn fail(&self, what: String) {
        self.stop.store(true, Ordering::Relaxed);
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }
}

fn slice(held: &mut Held, page: usize) -> &mut [u8] {
    // SAFETY: a block held by this thread alone, that long.
    unsafe { std::slice::from_raw_parts_mut(held.start.as_ptr(), held.frames as usize * page) }
}

/// Takes a block, proves it zero if it should be, and scribbles on it.
fn take(pool: &Pool, random: &mut Random) -> Result<Option<(Held, u64)>, String> {
    let zeroed = random.below(3) != 0;
    let order = (random.next().trailing_zeros()).min(9);
    let frames = if random.below(4) == 0 {
        1 + random.below(u64::from(2u32 << order)) as u32
    } else {
        1 << order
    };
    let taken = if zeroed { pool.zalloc_run_raw(frames) } else { pool.alloc_run_raw(frames) };
    let start = match taken {
        Ok(start) => start,
        Err(PoolError::Exhausted { .. }) => return Ok(None),
        Err(error) => return Err(format!("taking {frames} pages: {error}")),
    };
    let mark = 1 + random.below(255) as u8;
    let mut held = Held { start, frames, mark };
    let bytes = slice(&mut held, pool.page_size());
    if zeroed && let Some(place) = bytes.iter().position(|byte| *byte != 0) {
        let byte = bytes[place];
        return Err(format!("byte {place} of {frames} zeroed pages is {byte:#04x}"));
    }
    bytes.fill(mark);
    let length = bytes.len() as u64;
    Ok(Some((held, if zeroed { length } else { 0 })))
}

/// Proves that nobody else wrote to a block, and gives it back.
fn give_back(pool: &Pool, mut held: Held) -> Result<(), String> {
    let mark = held.mark;
    let bytes = slice(&mut held, pool.page_size());
    if let Some(place) = bytes.iter().position(|byte| *byte != mark) {
        let byte = bytes[place];
        return Err(format!("byte {place} of a block in use is {byte:#04x}, not {mark:#04x}"));
    }
    // SAFETY: the block is this thread's and not used any more.
    let freed = unsafe { pool.free_run_raw(held.start, held.frames) };
    freed.map_err(|error| format!("giving back: {error}"))
}

fn work(shared: &Shared<'_>, mut random: Random) {
    let pool = shared.pool;
    let mut held: Vec<Held> = Vec::new();
    let result = (|| -> Result<(), String> {
        while !shared.stop.load(Ordering::Relaxed) {
            match random.below(100) {
                0 => {
                    pool.trim_at_most(1 << 20).map_err(|error| format!("trim: {error}"))?;
                }
                1 => {
                    pool.scrub_now(1 << 20).map_err(|error| format!("scrub: {error}"))?;
                }
                2 => pool.flush_thread_cache(),
                3 => {
                    pool.stats().map_err(|error| format!("stats: {error}"))?;
                }
                4 => {
                    pool.pause_scrubber();
                    pool.resume_scrubber();
                }
                5..60 if held.len() < 64 => {
                    let Some((block, zero_bytes)) = take(pool, &mut random)? else {
                        held.drain(..).try_for_each(|block| give_back(pool, block))?;
                        continue;
                    };
                    held.push(block);
                    shared.blocks.fetch_add(1, Ordering::Relaxed);
                    shared.zero_bytes.fetch_add(zero_bytes, Ordering::Relaxed);
                }
                60..63 => std::thread::sleep(Duration::from_millis(random.below(8))),
                _ if !held.is_empty() => {
                    let place = random.below(held.len() as u64) as usize;
                    give_back(pool, held.swap_remove(place))?;
                }
                _ => {}
            }
        }
        held.drain(..).try_for_each(|block| give_back(pool, block))
    })();
    if let Err(what) = result {
        shared.fail(what);
    }
}

/// Forks; the child uses its copy of the pool and says whether all was well.
fn fork_once(pool: &Pool, random: &mut Random) -> Result<(), String> {
    // SAFETY: the child uses the pool, which is made for it, and memory of its own, and leaves
    // without running any destructor.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut well = true;
        for _ in 0..100 {
            well &= match take(pool, random) {
                Ok(Some((block, _))) => give_back(pool, block).is_ok(),
                Ok(None) => true,
                Err(_) => false,
            };
        }
        well &= pool.check().is_ok();
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(if well { 0 } else { 1 }) };
    }
    if pid < 0 {
        return Ok(()); // no process to be had is no fault of the pool
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    if status == 0 { Ok(()) } else { Err(format!("a forked child ended with status {status:#x}")) }
}

fn engine(round: u64, random: &mut Random) -> EngineChoice {
    match round % ENGINES {
        0 => EngineChoice::CpuAround,
        1 => EngineChoice::System,
        2 => EngineChoice::CpuThrough,
        _ => {
            let outcomes = [
                BatchOutcome::Good,
                BatchOutcome::Refuse,
                BatchOutcome::Error,
                BatchOutcome::Hang,
                BatchOutcome::Slow,
                BatchOutcome::Partial,
                BatchOutcome::Lie,
            ];
            let script: VecDeque<_> = (0..40)
                .map(|_| match random.below(3) {
                    0 => outcomes[random.below(outcomes.len() as u64) as usize],
                    _ => BatchOutcome::Good,
                })
                .collect();
            EngineChoice::Custom(Box::new(Faulty::new(Script::new(Mutex::new(script)))))
        }
    }
}

/// Memory this process holds.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Does it.
///
/// # Errors
/// The first thing that was wrong: a byte that was not zero, a block that somebody else wrote to, a
/// count that did not add up, a child that failed, more memory than the pool may hold, too little done in
/// [`PATIENCE`] rounds' time.
pub fn run(plan: &Plan) -> Result<Report, String> {
    let mut report = Report::default();
    let mut random = Random(plan.seed);
    let begun = Instant::now();
    let before = resident();
    let failed = |error: PoolError| format!("{error}");
    while begun.elapsed() < plan.duration || report.rounds < ENGINES {
        let scrub = Scrub {
            start: random.below(3) as u32,
            load: f64::INFINITY,
            cpu_share: 1.0,
            min_idle: Duration::from_millis(random.below(5)),
            chunk: 4096 << random.below(9),
            ..Scrub::default()
        };
        let pages = [PageSize::Base, PageSize::Transparent][random.below(2) as usize];
        let pool = Pool::builder()
            .capacity(plan.capacity)
            .page_size(pages)
            .verify(Verify::Report(1))
            .scrub(scrub)
            .engine(engine(report.rounds, &mut random))
            .engine_deadline(Duration::from_millis(20))
            .engine_strikes(3 + random.below(8) as u32)
            .build()
            .map_err(failed)?;
        let shared = Shared {
            pool: &pool,
            stop: AtomicBool::new(false),
            blocks: AtomicU64::new(0),
            zero_bytes: AtomicU64::new(0),
            wrong: Mutex::new(None),
        };
        let started = Instant::now();
        let end = started + plan.round.min(plan.duration.saturating_sub(begun.elapsed()));
        let longest = plan.round.saturating_mul(PATIENCE);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..plan.threads)
                .map(|_| {
                    let random = Random(random.next());
                    let shared = &shared;
                    scope.spawn(move || work(shared, random))
                })
                .collect();
            let mut forks = 0;
            let missing = |forks| {
                let stats = pool.stats().map_err(failed)?;
                let fails = report.rounds % ENGINES == ENGINES - 1;
                let blocks = shared.blocks.load(Ordering::Relaxed);
                let mut missing = Vec::new();
                for (what, found, least) in [
                    ("forks", forks, LEAST_FORKS),
                    ("blocks", blocks, LEAST_BLOCKS),
                    ("bytes returned to the system", stats.trimmed, 1),
                    ("bytes zeroed in the background", stats.scrubbed, 1),
                    ("failures of the engine", stats.engine_faults, u64::from(fails)),
                ] {
                    if found < least {
                        missing.push(format!("{what}: found {found}, asked {least}"));
                    }
                }
                Ok::<_, String>(missing)
            };
            while !shared.stop.load(Ordering::Relaxed) {
                match missing(forks) {
                    Ok(missing) if missing.is_empty() && Instant::now() >= end => break,
                    Ok(missing) if !missing.is_empty() && started.elapsed() >= longest => {
                        shared.fail(format!("after {longest:?}: {}", missing.join("; ")));
                    }
                    Ok(_) => {}
                    Err(what) => shared.fail(what),
                }
                std::thread::sleep(Duration::from_millis(100));
                match fork_once(&pool, &mut random) {
                    Ok(()) => forks += 1,
                    Err(what) => shared.fail(what),
                }
            }
            report.forks += forks;
            shared.stop.store(true, Ordering::Relaxed);
            // The scope's own end does not wait for caches to come back.
            for worker in workers {
                if worker.join().is_err() {
                    shared.fail(String::from("a thread panicked"));
                }
            }
        });
        if let Some(what) = shared.wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(format!("seed {}, round {}: {what}", plan.seed, report.rounds));
        }
        report.resident.0 = report.resident.0.max(resident());
        let paused = pool.pause_scrubber();
        pool.check().map_err(failed)?;
        if paused {
            pool.check_zeros().map_err(failed)?;
        }
        let stats = pool.stats().map_err(failed)?;
        let states = [stats.dirty, stats.in_flight, stats.zero_resident, stats.zero_absent];
        let sum = states.iter().sum::<u64>() + stats.allocated + stats.cached + stats.quarantined;
        if sum != stats.managed || stats.allocated != 0 {
            return Err(format!("the counts do not add up: {stats:?}"));
        }
        report.rounds += 1;
        report.blocks += shared.blocks.into_inner();
        report.zero_bytes += shared.zero_bytes.into_inner();
        report.trimmed += stats.trimmed;
        report.scrubbed += stats.scrubbed;
        report.engine_faults += stats.engine_faults;
    }
    report.resident.1 = resident();
    let allowance = 64 << 20;
    let most = before + plan.capacity as u64 + allowance;
    if report.resident.0 > most || report.resident.1 > before + allowance {
        let (during, after) = report.resident;
        return Err(format!("resident: {before} B before, {during} B at most, {after} B after"));
    }
    Ok(report)
}
