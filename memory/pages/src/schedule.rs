//! A schedule that a seed decides: of the threads it runs one goes on at a time, and at each *point*
//! another one may. The clock is the number of points passed. The same seed takes the same threads
//! through the same points, so that what fails can be run again. For tests.
//!
//! Points stand where another thread's work can make a difference: at the lock, between a block's being
//! in flight and its landing, at what is changed without the lock.

use crate::thread;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// The work of one of the threads.
pub type Body<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// Points after which threads are taken to wait for each other for ever.
const MOST: u32 = 1 << 20;

struct State {
    /// The thread that goes on.
    current: usize,
    running: Vec<usize>,
    random: u64,
    /// The thread that went on at each point.
    trace: Vec<u8>,
}

struct Schedule {
    state: Mutex<State>,
    /// One for each thread.
    turns: Vec<Condvar>,
    /// Milliseconds: one a point.
    clock: AtomicU32,
}

impl Schedule {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, me: usize) {
        while state.current != me {
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn body(&self, me: usize, body: Body<'_>) {
        self.wait(self.state(), me);
        let thread = thread::current();
        thread.number.store(me as u32, Ordering::Relaxed);
        thread.schedule.store(std::ptr::from_ref(self).cast_mut().cast(), Ordering::Relaxed);
        let ended = catch_unwind(AssertUnwindSafe(body));
        leave();
        let mut state = self.state();
        state.running.retain(|other| *other != me);
        self.choose(&mut state);
        // A thread that ends gives its cache back, in nobody's order: not before all are done.
        while !state.running.is_empty() {
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.turns.iter().for_each(Condvar::notify_one);
        drop(state);
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
    }

    /// Lets one of those that run go on, whoever it is.
    fn choose(&self, state: &mut State) {
        // Marsaglia, "Xorshift RNGs", 2003: the triple 13, 7, 17.
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        let Some(place) = (state.random >> 32).checked_rem(state.running.len() as u64) else {
            return;
        };
        state.current = state.running[place as usize];
        state.trace.push(state.current as u8);
        self.turns[state.current].notify_one();
    }
}

/// Runs the bodies, each in a thread of its own, to their ends. Returns which thread went on at each point.
///
/// # Panics
/// As the first body that does, and where they wait for each other for ever.
pub fn run(seed: u64, bodies: Vec<Body<'_>>) -> Vec<u8> {
    let schedule = Schedule {
        state: Mutex::new(State {
            current: usize::MAX,
            running: (0..bodies.len()).collect(),
            // Steele and others, "Fast Splittable Pseudorandom Number Generators", 2014; never 0.
            random: seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            trace: Vec::new(),
        }),
        turns: bodies.iter().map(|_| Condvar::new()).collect(),
        clock: AtomicU32::new(0),
    };
    std::thread::scope(|scope| {
        let started = bodies.into_iter().enumerate().map(|(me, body)| {
            let schedule = &schedule;
            scope.spawn(move || schedule.body(me, body))
        });
        let threads: Vec<_> = started.collect();
        schedule.choose(&mut schedule.state());
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        if let Some(panic) = ended.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
    });
    let mut state = schedule.state();
    std::mem::take(&mut state.trace)
}

/// Leaves the schedule: in a forked child, where none of the other threads is.
pub fn leave() {
    thread::current().schedule.store(std::ptr::null_mut(), Ordering::Relaxed);
}

fn mine<'a>() -> Option<(&'a Schedule, usize)> {
    let thread = thread::current();
    // SAFETY: null, or set by `Schedule::body`, which outlives what this thread does in between.
    let schedule = unsafe { thread.schedule.load(Ordering::Relaxed).cast::<Schedule>().as_ref() }?;
    Some((schedule, thread.number.load(Ordering::Relaxed) as usize))
}

/// Another thread may go on here. False where this thread is in no schedule.
pub fn point() -> bool {
    let Some((schedule, me)) = mine() else { return false };
    let passed = schedule.clock.fetch_add(1, Ordering::Relaxed);
    assert!(passed < MOST, "threads wait for each other");
    let mut state = schedule.state();
    schedule.choose(&mut state);
    schedule.wait(state, me);
    true
}

/// Milliseconds by the schedule's clock, where this thread is in one.
pub(crate) fn clock() -> Option<u32> {
    mine().map(|(schedule, _)| schedule.clock.load(Ordering::Relaxed))
}
