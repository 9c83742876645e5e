//! All interleavings of small programs of allocating, freeing, scrubbing and trimming:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p cachewise-pages --no-default-features --test
//! loom`, or `cargo run -p xtask -- ci loom`.
//!
//! The allocator is the real one behind a lock that loom knows. The memory of each frame is a cell
//! that loom watches: two threads that touch one frame without an order between them, such as a
//! scrubber that still zeroes what was handed out, fail the run.
//!
//! So do the pool's own lock and what wakes its scrubbers, as they are in the pool, over a futex made
//! of loom's lock: a thread that is not woken is a deadlock.
#![cfg(loom)]

use cachewise_pages::buddy::{Buddy, Core, Frame, State, Use};
use cachewise_pages::waiting::{Bell, Word};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

const FRAMES: usize = 4;

struct World {
    core: Mutex<Core>,
    frames: Vec<Frame>,
    memory: Vec<UnsafeCell<u8>>,
}

// SAFETY: the cells are what is under test: loom reports unordered access to them.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    fn new(state: State) -> Arc<World> {
        let world = World {
            core: Mutex::new(Core::new(2)),
            frames: (0..FRAMES).map(|_| Frame::default()).collect(),
            memory: (0..FRAMES).map(|_| UnsafeCell::new(u8::from(state == State::Dirty))).collect(),
        };
        world.with(|buddy| buddy.extend(FRAMES as u32, state, 0));
        Arc::new(world)
    }

    fn with<R>(&self, call: impl FnOnce(&mut Buddy<'_>) -> R) -> R {
        let mut core = self.core.lock().expect("no panic in another thread");
        call(&mut Buddy::new(&mut core, &self.frames))
    }

    fn write(&self, index: u32, order: u32, byte: u8) {
        for frame in index..index + (1 << order) {
            self.memory[frame as usize].with_mut(|memory| {
                // SAFETY: the block is this thread's; loom checks just that.
                unsafe { *memory = byte };
            });
        }
    }

    fn is_zero(&self, index: u32, order: u32) -> bool {
        (index..index + (1 << order)).all(|frame| {
            self.memory[frame as usize].with(|memory| {
                // SAFETY: as above.
                unsafe { *memory == 0 }
            })
        })
    }

    /// Does as `zalloc`: zero and resident, else dirty and zeroed, else absent.
    fn zalloc(&self, order: u32) -> Option<u32> {
        let take = |state| self.with(|buddy| buddy.take(order, state));
        if let Some(index) = take(State::ZeroResident).or_else(|| take(State::ZeroAbsent)) {
            assert!(self.is_zero(index, order), "known to be zero and is not");
            return Some(index);
        }
        let index = take(State::Dirty)?;
        self.write(index, order, 0);
        Some(index)
    }

    fn use_and_free(&self, order: u32) {
        if let Some(index) = self.zalloc(order) {
            self.write(index, order, 7);
            let freed = self.with(|buddy| buddy.free(index, order, State::Dirty, 1));
            assert!(freed.is_ok(), "{freed:?}");
        }
    }

    fn scrub(&self, chunk: u32) {
        let taken = self.with(|buddy| buddy.take_to_zero(0, chunk, 0, 1));
        if let Some((index, order)) = taken {
            self.write(index, order, 0);
            let landed = self.with(|buddy| buddy.land(index, order, State::ZeroResident, 1));
            assert!(landed.is_ok(), "{landed:?}");
        }
    }

    fn trim(&self) {
        let taken = self.with(|buddy| buddy.take_to_trim((0, 1), 0, 1));
        if let Ok((index, order)) = taken {
            self.write(index, order, 0);
            let landed = self.with(|buddy| buddy.land(index, order, State::ZeroAbsent, 1));
            assert!(landed.is_ok(), "{landed:?}");
        }
    }

    fn finish(&self) {
        let zero: Vec<_> = self.with(|buddy| {
            let counts = buddy.check().expect("sound");
            assert_eq!((counts.out, counts.in_flight), (0, 0));
            buddy.walk().collect()
        });
        for (index, tag) in zero {
            if tag.used() != Some(Use::Free(State::Dirty)) {
                assert!(self.is_zero(index, tag.order()));
            }
        }
    }
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

#[test]
fn allocate_free_and_scrub() {
    model(|| {
        let world = World::new(State::Dirty);
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let scrubber = thread::spawn(move || a.scrub(1));
        let user = thread::spawn(move || b.use_and_free(1));
        world.use_and_free(0);
        scrubber.join().expect("no panic");
        user.join().expect("no panic");
        world.finish();
    });
}

#[test]
fn allocate_scrub_and_trim() {
    model(|| {
        let world = World::new(State::Dirty);
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let scrubber = thread::spawn(move || a.scrub(2));
        let trimmer = thread::spawn(move || b.trim());
        world.use_and_free(0);
        scrubber.join().expect("no panic");
        trimmer.join().expect("no panic");
        world.finish();
    });
}

/// Caches take blocks out of reach of the lock: two threads free one block, and only one may
/// succeed; meanwhile its buddy is freed under the lock, and must not be merged with it.
#[test]
fn one_block_freed_twice_without_the_lock() {
    model(|| {
        let world = World::new(State::ZeroResident);
        let block = world.with(|buddy| buddy.take(0, State::ZeroResident)).expect("one");
        let buddy_block =
            world.with(|buddy| buddy.take(0, State::ZeroResident)).expect("its buddy");
        let cache = move |world: &World| world.frames[block as usize].cache(0, false).is_ok();
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let first = thread::spawn(move || cache(&a));
        let second = thread::spawn(move || {
            b.with(|buddy| buddy.free(buddy_block, 0, State::Dirty, 1)).is_ok()
        });
        let third = cache(&world);
        let first = first.join().expect("no panic");
        assert!(second.join().expect("no panic"));
        assert!(first != third, "exactly one of them had it");
        let (_, refused) = world.with(|buddy| buddy.free_cached(&[block], 0, false, 1));
        assert_eq!(refused, 0);
        world.finish();
    });
}

/// One thread frees a block into its cache while another frees it under the lock: one of them has
/// it, and the other is told. Looking at the tag first and changing it later once let both.
#[test]
fn one_block_freed_into_a_cache_and_under_the_lock() {
    model(|| {
        let world = World::new(State::ZeroResident);
        let index = world.with(|buddy| buddy.take(0, State::ZeroResident)).expect("one");
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let cached = thread::spawn(move || a.frames[index as usize].cache(0, false).is_ok());
        let run = thread::spawn(move || {
            b.with(|buddy| buddy.free_run(index, 1, State::Dirty, 1)).is_ok()
        });
        let freed = world.with(|buddy| buddy.free(index, 0, State::Dirty, 1)).is_ok();
        let cached = cached.join().expect("no panic");
        let run = run.join().expect("no panic");
        assert_eq!(u32::from(freed) + u32::from(cached) + u32::from(run), 1, "one of them had it");
        if cached {
            let (_, refused) = world.with(|buddy| buddy.free_cached(&[index], 0, false, 1));
            assert_eq!(refused, 0);
        }
        world.finish();
    });
}

/// A block goes from one thread's cache to use again while others allocate and scrub around it.
#[test]
fn a_cached_block_is_handed_out_while_the_scrubber_works() {
    model(|| {
        let world = World::new(State::Dirty);
        let block = world.zalloc(0).expect("one");
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let scrubber = thread::spawn(move || a.scrub(2));
        let owner = thread::spawn(move || {
            b.write(block, 0, 9);
            assert!(b.frames[block as usize].cache(0, false).is_ok());
            b.frames[block as usize].hand_out(0);
            b.write(block, 0, 0);
            let freed = b.with(|buddy| buddy.free(block, 0, State::ZeroResident, 1));
            assert!(freed.is_ok());
        });
        world.use_and_free(1);
        scrubber.join().expect("no panic");
        owner.join().expect("no panic");
        world.finish();
    });
}

/// A cache takes blocks under the lock and hands them out without it, while others look through all bookkeeping and
/// allocate next to it.
#[test]
fn a_cache_is_filled_and_used_while_others_look() {
    model(|| {
        let world = World::new(State::ZeroResident);
        let mut blocks = [0; 2];
        let found = world.with(|buddy| buddy.take_cached(0, true, &mut blocks));
        assert_eq!(found, 2);
        let (a, b) = (Arc::clone(&world), Arc::clone(&world));
        let other = thread::spawn(move || {
            a.with(|buddy| buddy.check()).expect("sound at every moment");
        });
        let owner = thread::spawn(move || {
            for block in blocks {
                b.frames[block as usize].hand_out(0);
                assert!(b.is_zero(block, 0), "known to be zero and is not");
                b.write(block, 0, 9);
                assert!(b.frames[block as usize].cache(0, false).is_ok());
            }
            let freed = b.with(|buddy| buddy.free_cached(&blocks, 0, false, 1));
            assert_eq!(freed, (1, 0), "together they are what they were cut from");
        });
        world.use_and_free(0);
        other.join().expect("no panic");
        owner.join().expect("no panic");
        world.finish();
    });
}

/// The pool's lock with its state, its scrubbers' bell, and the data of both.
struct Waiting {
    lock: Word,
    inside: UnsafeCell<u32>,
    bell: Bell,
    /// Written under the lock.
    demand: AtomicU32,
    order: AtomicU32,
}

// SAFETY: the cell is what is under test: loom reports unordered access to it.
unsafe impl Sync for Waiting {}

impl Waiting {
    fn new() -> Arc<Waiting> {
        Arc::new(Waiting {
            lock: Word::default(),
            inside: UnsafeCell::new(0),
            bell: Bell::default(),
            demand: AtomicU32::new(0),
            order: AtomicU32::new(0),
        })
    }

    fn count(&self, mark: u32) {
        self.lock.acquire(mark);
        assert!(self.lock.is_held_by(mark));
        self.inside.with_mut(|count| {
            // SAFETY: under the lock; loom checks just that.
            unsafe { *count += 1 };
        });
        self.lock.release();
    }
}

/// More wait than one at a time: who was asleep takes the lock in the name of those who still are.
#[test]
fn the_lock_lets_one_in_at_a_time_and_wakes_who_waits() {
    model(|| {
        let waiting = Waiting::new();
        let threads = [4, 6].map(|mark| {
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || waiting.count(mark))
        });
        waiting.count(2);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        // SAFETY: all others have ended.
        waiting.inside.with(|count| assert_eq!(unsafe { *count }, 3));
    });
}

/// A scrubber that looks and then sleeps is woken by a request that it did not see, and by one that
/// is told to all.
#[test]
fn no_scrubber_sleeps_through_what_it_waits_for() {
    model(|| {
        let waiting = Waiting::new();
        let scrubber = Arc::clone(&waiting);
        let scrubber = thread::spawn(move || {
            let asked = || {
                scrubber.lock.acquire(4);
                let asked = scrubber.demand.load(Ordering::Relaxed) != 0;
                scrubber.lock.release();
                asked
            };
            while !asked() {
                scrubber.bell.wait(None, true, asked);
            }
        });
        waiting.lock.acquire(2);
        waiting.demand.store(1, Ordering::Relaxed);
        waiting.lock.release();
        waiting.bell.ring(false);
        scrubber.join().expect("no panic");
    });
}

#[test]
fn no_scrubber_sleeps_through_an_order() {
    model(|| {
        let waiting = Waiting::new();
        let threads = [true, false].map(|listens| {
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                let ordered = || waiting.order.load(Ordering::SeqCst) != 0;
                while !ordered() {
                    waiting.bell.wait(None, listens, ordered);
                }
            })
        });
        waiting.order.store(1, Ordering::SeqCst);
        waiting.bell.ring(true);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}
