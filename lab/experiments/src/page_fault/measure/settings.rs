//! The scrubber's settings, one varied at a time: `scrub_start`, `scrub_stop` and `scrub_load` of
//! seed 003, and zeroing by temporal stores in place of non-temporal ones.
//!
//! A program takes three quarters of a pool, touches one line of each page and gives all of it
//! back; then it does other work, in which the scrubber has its time: a bystander walks its working
//! set. Half of the pool is in pieces, since every sixteenth page of it stays in use: there the
//! settings differ. Rows have the program's time a page, the bystander's time a line, how many
//! pages were found zeroed, and the scrubber's CPU.

use super::arms::{free, pause, unhindered};
use crate::prelude::*;
use cachewise_measure::{Bystander, turns};
use cachewise_pages::{EngineChoice, Pool, PoolError, Scrub};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

const POOL: usize = 16 << 20;
const BURST: usize = POOL / PAGE_SIZE / 4 * 3;
/// Pages of the second half for each one of them that stays in use.
const HELD: usize = 16;
/// The other work takes at least so many times what zeroing a burst takes alone: the bystander has
/// its part of the memory's bandwidth meanwhile.
const GAP: u32 = 4;
/// And at least this: the scrubber is woken, and ages count in ticks of the coarse clock (4 ms on a
/// kernel of 250 Hz, 10 on one of 100).
const LEAST_GAP: Duration = Duration::from_millis(10);

/// An order above that of every block here: nothing wakes the scrubber.
const NEVER: u32 = 18;

/// One candidate: a pool in the state that its last turn left.
struct Candidate {
    name: &'static str,
    pool: Pool,
    found: TurnTimes,
}

/// The results of a candidate's turns.
#[derive(Default)]
struct TurnTimes {
    /// Nanoseconds of the program a page, and of the bystander a line, by round.
    program: Vec<f64>,
    bystander: Vec<f64>,
    hits: u64,
    misses: u64,
    scrub_cpu: Duration,
}

fn candidates() -> Vec<(&'static str, Scrub, EngineChoice)> {
    let base = || Scrub { start: 4, stop: 0, ..unhindered() };
    vec![
        (SCRUB_BASE, base(), EngineChoice::CpuAround),
        ("start 0", Scrub { start: 0, ..base() }, EngineChoice::CpuAround),
        ("start 9", Scrub { start: 9, ..base() }, EngineChoice::CpuAround),
        ("start 9, stop 4", Scrub { start: 9, stop: 4, ..base() }, EngineChoice::CpuAround),
        ("start 18: never", Scrub { start: NEVER, ..base() }, EngineChoice::CpuAround),
        ("load 0", Scrub { load: 0.0, ..base() }, EngineChoice::CpuAround),
        (SCRUB_THROUGH, base(), EngineChoice::CpuThrough),
        ("no scrubber", Scrub { enabled: false, ..base() }, EngineChoice::CpuAround),
    ]
}

impl Candidate {
    fn new(name: &'static str, scrub: Scrub, engine: EngineChoice) -> Result<Candidate, PoolError> {
        let builder = Pool::builder().capacity(POOL).initial(POOL).scrub(scrub).engine(engine);
        let pool = builder.build()?;
        let base = pool.base() as usize;
        let all: Result<Vec<NonNull<u8>>, _> =
            (0..POOL / PAGE_SIZE).map(|_| pool.alloc_raw(0)).collect();
        // The others stay in use for as long as the pool is there.
        let others = all?.into_iter().filter(|page| {
            let at = (page.as_ptr() as usize - base) / PAGE_SIZE;
            at < POOL / PAGE_SIZE / 2 || !at.is_multiple_of(HELD)
        });
        // SAFETY: taken above, and used by nobody.
        unsafe { free(&pool, others) }?;
        pool.flush_thread_cache();
        Ok(Candidate { name, pool, found: TurnTimes::default() })
    }

    /// Takes a burst, touches each page, and gives all of it back.
    fn burst(&self, pages: &mut Vec<NonNull<u8>>) -> Result<(), PoolError> {
        let pool = &self.pool;
        for _ in 0..BURST {
            let page = pool.zalloc_raw(0)?;
            // SAFETY: just handed out.
            unsafe { page.as_ptr().write_volatile(1) };
            pages.push(page);
        }
        // SAFETY: taken above, and used by nobody.
        unsafe { free(pool, pages.drain(..)) }?;
        pool.flush_thread_cache();
        Ok(())
    }

    /// One turn: the burst, then the bystander while the scrubber works.
    fn turn(
        &mut self,
        (bystander, gap): (&Bystander, Duration),
        pages: &mut Vec<NonNull<u8>>,
    ) -> Result<(), PoolError> {
        let pool = &self.pool;
        let before = pool.stats()?;
        pool.resume_scrubber();
        bystander.walk();
        let begun = Instant::now();
        self.burst(pages)?;
        self.found.program.push(begun.elapsed().as_secs_f64() * 1e9 / BURST as f64);
        let (begun, mut walks) = (Instant::now(), 0.0);
        while begun.elapsed() < gap {
            bystander.walk();
            walks += 1.0;
        }
        let lines = walks * (bystander.bytes() / LINE) as f64;
        self.found.bystander.push(begun.elapsed().as_secs_f64() * 1e9 / lines);
        pause(pool);
        let after = pool.stats()?;
        self.found.hits += after.zero_hits - before.zero_hits;
        self.found.misses += after.zero_misses - before.zero_misses;
        self.found.scrub_cpu += after.scrub_cpu.saturating_sub(before.scrub_cpu);
        Ok(())
    }
}

/// How long a burst takes to be zeroed by this thread, with nothing beside, in a pool of its own. The
/// second time: the first meets pages as they were made.
fn zeroing(engine: EngineChoice, pages: &mut Vec<NonNull<u8>>) -> Result<Duration, PoolError> {
    let scrub = Scrub { enabled: false, ..Scrub::default() };
    let candidate = Candidate::new("zeroing", scrub, engine)?;
    let mut last = Duration::ZERO;
    for _ in 0..2 {
        candidate.burst(pages)?;
        let begun = Instant::now();
        candidate.pool.scrub_now(usize::MAX)?;
        last = begun.elapsed();
    }
    Ok(last)
}

/// Two rows a setting: the program's and the bystander's.
pub(super) fn rows(setting: &mut Setting) -> Result<Vec<Row>> {
    let (rounds, seed) = (setting.plan(false).rounds, setting.bench.seed);
    // Lines in another core's own L2 cannot be evicted from here.
    let beyond = 4 * setting.bench.machine.caches.l2.bytes;
    let bystander = Bystander::new(beyond.max(setting.bench.bystander_bytes(POOL)), seed)?;
    let made = candidates().into_iter().map(|(name, scrub, engine)| {
        let candidate = Candidate::new(name, scrub, engine)?;
        pause(&candidate.pool);
        Ok(candidate)
    });
    let mut candidates = made.collect::<Result<Vec<_>, PoolError>>()?;
    let mut pages = Vec::with_capacity(BURST);
    let mut alone = |engine| zeroing(engine, &mut pages);
    let zeroing = alone(EngineChoice::CpuAround)?.max(alone(EngineChoice::CpuThrough)?);
    let gap = (zeroing * GAP).max(LEAST_GAP);
    for (round, order) in turns::orders(candidates.len(), rounds + 1, seed).iter().enumerate() {
        for &turn in order {
            setting.go_on()?;
            candidates[turn].turn((&bystander, gap), &mut pages)?;
        }
        if round == 0 {
            // This turn met pages as they were made.
            candidates.iter_mut().for_each(|candidate| candidate.found = TurnTimes::default());
        }
    }
    let first = &candidates[0].found;
    let mut rows = Vec::new();
    for Candidate { name, found, .. } in &candidates {
        let asked = (found.hits + found.misses).max(1) as f64;
        let figures = [
            (HIT_SHARE, found.hits as f64 / asked),
            (SCRUB_CPU, found.scrub_cpu.as_nanos() as f64 / (rounds * BURST) as f64),
        ];
        let walked = bystander.bytes() / LINE;
        for (state, times, reference, size, calls) in [
            (SCRUB_SETTINGS, &found.program, &first.program, PAGE_SIZE, BURST),
            (BYSTANDER_WALK, &found.bystander, &first.bystander, LINE, walked),
        ] {
            let cell = CellKey::new("zero", size, state);
            let row = setting.compared(cell, (name, times), (SCRUB_BASE, reference));
            rows.push(Row { calls: calls as u32, ..row.with(&figures) });
        }
    }
    Ok(rows)
}
