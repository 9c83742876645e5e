//! The pool as it is, under schedules that a seed decides: threads that take, write and give back through
//! their caches, one that zeroes, returns and makes resident in the background, forks in the middle of all
//! that, and system calls that fail. `CACHEWISE_SEED=N` runs one schedule again; without it there are as many
//! as `CACHEWISE_SEEDS` says, or 150.

#![cfg(debug_assertions)]

use crate::alone;
use crate::common::{Asked, Made};
use cachewise_pages::inject::{Call, fail};
use cachewise_pages::schedule::{self, Body};
use cachewise_pages::{PageSize, Pool, Scrub};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const USERS: u64 = 3;
const STEPS: u32 = 24;

struct Held {
    start: NonNull<u8>,
    frames: u32,
    word: u64,
}

/// One word of each page, each at another place.
fn words(pool: &Pool, start: NonNull<u8>, frames: u32) -> impl Iterator<Item = *mut u64> + use<> {
    let page = pool.page_size();
    (0..frames as usize).map(move |at| {
        // SAFETY: inside the page.
        unsafe { start.as_ptr().add(at * page + at % 8 * 8) }.cast()
    })
}

struct User<'a> {
    pool: &'a Pool,
    random: fastrand::Rng,
    held: Vec<Held>,
    forks: Option<&'a AtomicU32>,
}

impl User<'_> {
    fn take(&mut self) {
        let (order, any) = (self.random.u32(0..8), self.random.u32(1..160));
        let way = self.random.u8(0..6);
        let (frames, taken) = match way {
            0 => (1 << order, self.pool.alloc_raw(order)),
            1 => (1 << order, self.pool.zalloc_raw(order)),
            2 => (1 << order, self.pool.zalloc_to_fill_raw(order)),
            3 => (any, self.pool.alloc_run_raw(any)),
            4 => (any, self.pool.zalloc_run_raw(any)),
            _ => {
                let align = self.pool.page_size() << (order % 4);
                let Some(run) = self.pool.aligned_run_raw(any, align, true) else { return };
                let aligned = |start: &NonNull<u8>| start.addr().get().is_multiple_of(align);
                assert!(
                    run.as_ref().is_ok_and(aligned) || run.is_err(),
                    "not a multiple of {align}"
                );
                (any, run)
            }
        };
        // A full pool says so, and a call that was made to fail.
        let Ok(start) = taken else { return };
        let zero = !matches!(way, 0 | 3);
        let held = Held { start, frames, word: self.random.u64(1..) };
        for word in words(self.pool, start, frames) {
            // SAFETY: the block is this thread's.
            let found = unsafe { word.read() };
            assert!(!zero || found == 0, "handed out as zero: {found:#x}");
            // SAFETY: as above.
            unsafe { word.write(held.word) };
        }
        self.held.push(held);
    }

    fn check(&self) {
        for held in &self.held {
            for word in words(self.pool, held.start, held.frames) {
                // SAFETY: the block is this thread's.
                let found = unsafe { word.read() };
                assert_eq!(found, held.word, "a block in use was written to");
            }
        }
    }

    fn give_back(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let Held { start, frames, .. } =
            self.held.swap_remove(self.random.usize(..self.held.len()));
        // SAFETY: this thread's, and not used any more.
        let freed = unsafe { self.pool.free_run_raw(start, frames) };
        assert!(freed.is_ok(), "{freed:?}");
    }

    /// A child goes on with what it has, alone.
    fn fork(&mut self, forks: &AtomicU32) {
        // SAFETY: the child runs what follows, which a process with one thread may, and ends.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no child");
        if child == 0 {
            schedule::leave();
            // A hang is ended.
            // SAFETY: asks for a signal.
            unsafe { libc::alarm(60) };
            let sound = catch_unwind(AssertUnwindSafe(|| {
                self.check();
                self.pool.check().expect("sound in the child");
                (0..8).for_each(|_| self.take());
                while !self.held.is_empty() {
                    self.give_back();
                }
                self.pool.flush_thread_cache();
                self.pool.check_zeros().expect("zero in the child");
                let stats = self.pool.figures();
                assert_eq!((stats.cached, stats.in_flight), (0, 0));
            }));
            // SAFETY: ends the process, without what the parent is to do at its end.
            unsafe { libc::_exit(i32::from(sound.is_err())) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for what it says.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child found something");
        forks.fetch_add(1, Ordering::Relaxed);
    }

    fn run(mut self) {
        for step in 0..STEPS {
            match self.random.u8(0..8) {
                0..=4 => self.take(),
                5..=6 => self.give_back(),
                _ => self.check(),
            }
            if let Some(forks) = self.forks.filter(|_| step == STEPS / 2) {
                self.fork(forks);
            }
            schedule::point();
        }
        self.check();
        while !self.held.is_empty() {
            self.give_back();
        }
        self.pool.flush_thread_cache();
    }
}

fn background(pool: &Pool, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..STEPS {
        match random.u8(0..8) {
            0..=2 => drop(pool.scrub_now(random.usize(1..64) * pool.page_size())),
            3 => drop(pool.trim_at_most(random.usize(1..32) * pool.page_size())),
            4 => fail(Call::Discard, random.u32(0..2), libc::ENOMEM),
            5 => fail(Call::Populate, random.u32(0..2), libc::ENOMEM),
            _ => while pool.grow_ahead() {},
        }
        schedule::point();
    }
    pool.flush_thread_cache();
}

/// Result of one seed.
struct Told {
    trace: Vec<u8>,
    grown: u64,
    forks: u32,
}

fn run(seed: u64) -> Told {
    let scrub = Scrub { enabled: false, ..Scrub::default() };
    let pool = Pool::builder().capacity(8 << 20).growth(256 << 10).scrub(scrub);
    let pool = pool.page_size(PageSize::Base).grow_ahead(1 << 20).cache_blocks(32).made();
    let forks = AtomicU32::new(0);
    let mut bodies: Vec<Body<'_>> = Vec::new();
    for user in 0..USERS {
        let random = fastrand::Rng::with_seed(seed * USERS + user);
        let forks = (user == 0 && seed.is_multiple_of(4)).then_some(&forks);
        let pool = &pool;
        bodies.push(Box::new(move || User { pool, random, held: Vec::new(), forks }.run()));
    }
    bodies.push(Box::new(|| background(&pool, seed)));
    let trace = schedule::run(seed, bodies);
    for call in [Call::Discard, Call::Populate] {
        fail(call, 0, 0);
    }
    pool.check().expect("sound");
    pool.check_zeros().expect("what is known to be zero is zero");
    let stats = pool.figures();
    assert_eq!((stats.allocated, stats.cached, stats.in_flight), (0, 0, 0), "all is given back");
    Told { trace, grown: stats.grown_ahead, forks: forks.load(Ordering::Relaxed) }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

#[test]
fn a_pool_is_sound_under_every_schedule() {
    let _alone = alone();
    let seeds = match number("CACHEWISE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CACHEWISE_SEEDS").unwrap_or(150),
    };
    let (mut points, mut grown, mut forks) = (0, 0, 0);
    for seed in seeds.clone() {
        match catch_unwind(|| run(seed)) {
            Ok(told) => {
                points += told.trace.len();
                grown += told.grown;
                forks += told.forks;
            }
            Err(panic) => {
                eprintln!("CACHEWISE_SEED={seed} runs this schedule again");
                resume_unwind(panic);
            }
        }
    }
    println!("{seeds:?}: {points} points, {forks} forks, {grown} bytes grown ahead");
    let whole = seeds.start == 0 && seeds.end >= 100;
    assert!(!whole || (forks >= 25 && grown > 0), "{forks} forks, {grown} bytes grown ahead");
}

#[test]
fn a_seed_is_the_same_schedule_again() {
    let _alone = alone();
    for seed in [0, 3, 7] {
        let (first, again) = (run(seed).trace, run(seed).trace);
        let parted = first.iter().zip(&again).position(|(one, other)| one != other);
        assert_eq!((parted, first.len()), (None, again.len()), "seed {seed}");
    }
    assert_ne!(run(1).trace, run(2).trace, "another seed is another schedule");
}
