//! Waiting of the pool's threads: a lock of one word, and the bell that wakes scrubbers. All that
//! depends on the order in which other CPUs see what is written is here and in `buddy`: `tests/loom.rs`
//! takes both through all interleavings, with a futex made of loom's own lock.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

use futex::Futex;

/// Value of a free lock; otherwise the mark of its holder, written by the exchange that takes it.
const OPEN: u32 = 0;
/// Beside a mark: somebody may be asleep.
const AWAITED: u32 = 1;
/// Looks before a thread sleeps: some microseconds, several times what the lock is
/// held for.
const SPINS: u32 = if cfg!(loom) { 1 } else { 200 };

/// A lock of the threads of one process, which says who has it. A mark is even and not 0.
#[derive(Debug, Default)]
pub struct Word(Futex);

impl Word {
    /// Takes the lock, waiting for it if it has to.
    pub fn acquire(&self, me: u32) {
        let word = &self.0.word;
        let take = |with: u32| {
            word.compare_exchange(OPEN, with, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        for _ in 0..SPINS {
            if word.load(Ordering::Relaxed) == OPEN && take(me) {
                return;
            }
            core::hint::spin_loop();
        }
        loop {
            let found = word.load(Ordering::Relaxed);
            if found == OPEN {
                // Others may be asleep too.
                if take(me | AWAITED) {
                    return;
                }
                continue;
            }
            let awaited = found | AWAITED;
            if found == awaited
                || word
                    .compare_exchange(found, awaited, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                self.0.wait(awaited, None);
            }
        }
    }

    /// Releases the lock, by the thread that holds it.
    pub fn release(&self) {
        if self.0.word.swap(OPEN, Ordering::Release) & AWAITED != 0 {
            self.0.wake(1);
        }
    }

    /// Checks whether that is the mark in the lock.
    pub fn is_held_by(&self, mark: u32) -> bool {
        self.0.word.load(Ordering::Relaxed) & !AWAITED == mark
    }
}

/// A bell that wakes threads which wait for work.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Bell {
    /// Changes when there is something to look at; they wait on it.
    rung: Futex,
    /// Non-zero while the scrubber sleeps until something happens; the waker stores 0, so only one wake-up is sent.
    /// A scrubber that sleeps for a time, or was told to rest, leaves it at 0.
    listening: AtomicU32,
}

impl Bell {
    /// Lets them look again: all, or if one listens. What there is to see was written before: with a
    /// [`SeqCst`](Ordering::SeqCst) store where all are woken, and under a lock otherwise.
    pub fn ring(&self, always: bool) {
        let listened = self.listening.load(Ordering::SeqCst) != 0
            && self.listening.swap(0, Ordering::SeqCst) != 0;
        if always || listened {
            self.rung.word.fetch_add(1, Ordering::SeqCst);
            self.rung.wake(u32::MAX >> 1);
        }
    }

    /// Sleeps until it rings, unless `ready` says that there is something to do already. Who listens
    /// must look for what comes without ringing for all **under the lock** under which it is written:
    /// of a look without it nothing says that it came after `listening` was seen.
    pub fn wait(
        &self,
        timeout: Option<core::time::Duration>,
        listen: bool,
        ready: impl FnOnce() -> bool,
    ) {
        let seen = self.rung.word.load(Ordering::SeqCst);
        if listen {
            self.listening.store(1, Ordering::SeqCst);
        }
        if !ready() {
            self.rung.wait(seen, timeout);
        }
    }
}

#[cfg(not(loom))]
pub(crate) mod futex {
    //! Linux's.

    use super::AtomicU32;
    use core::time::Duration;
    use rustix::thread::futex;

    /// A word to wait on.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct Futex {
        pub(super) word: AtomicU32,
    }

    impl Futex {
        /// Sleeps if the word is still that, until woken; at times for no reason.
        pub(super) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            let timeout = timeout.map(|timeout| futex::Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(timeout.subsec_nanos()),
            });
            let _ = futex::wait(&self.word, futex::Flags::PRIVATE, expected, timeout.as_ref());
        }

        pub(super) fn wake(&self, most: u32) {
            let _ = futex::wake(&self.word, futex::Flags::PRIVATE, most);
        }
    }
}

#[cfg(loom)]
pub mod futex {
    //! The system's, as loom can follow it: the comparison and going to sleep are one step for whoever
    //! wakes. Nobody is woken by the time, so that a call that is missed is a deadlock, which loom reports.

    use super::{AtomicU32, Ordering};
    use core::time::Duration;
    use loom::sync::{Condvar, Mutex};

    /// A word to wait on.
    #[derive(Debug, Default)]
    pub struct Futex {
        pub(super) word: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        pub(super) fn wait(&self, expected: u32, _: Option<Duration>) {
            let queue = self.queue.lock().expect("no panic");
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.woken.wait(queue).expect("no panic"));
            }
        }

        pub(super) fn wake(&self, most: u32) {
            let queue = self.queue.lock().expect("no panic");
            if most == 1 {
                self.woken.notify_one();
            } else {
                self.woken.notify_all();
            }
            drop(queue);
        }
    }
}
