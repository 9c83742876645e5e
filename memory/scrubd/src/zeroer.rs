//! The thread that makes new files resident, which the kernel zeroes: in the background at its pace, or at once where a
//! client waits.

use crate::memory::{Mapping, Source};
use cachewise_pages::{Pace, Rest, cpus, thread_cpu_time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Bytes that one of several threads takes at a time: then it sees that the server ends.
const PIECE: usize = 8 << 20;
/// Bytes that are made at once between two looks at the queue.
const SLICE: usize = 128 << 20;
/// Bytes between two looks in the background.
const CHUNK: usize = 512 << 10;
/// Threads that work at once: more of them share the bandwidth of the memory.
const THREADS: usize = 8;

/// The haste with which a file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// In the background, at its pace.
    Background,
    /// At once, in the order of the queue: the memory that is taken at the start.
    Start,
    /// At once, in turns with others of its kind: a client waits, and the largest request holds up nobody.
    Client,
}

/// A file that was made, or could not be.
#[derive(Debug)]
pub struct Done {
    /// Its number in the store.
    pub id: u64,
    /// The file and its bytes in huge pages.
    pub made: Result<(OwnedFd, u64), Errno>,
}

#[derive(Debug)]
struct Job {
    id: u64,
    bytes: u64,
    haste: Haste,
    /// `None` before the first step, and while a step is being done.
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    file: OwnedFd,
    mapping: Mapping,
    done: usize,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    done: Vec<Done>,
}

impl Queue {
    fn place(&self, id: u64) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    /// The place of the first job of those in the greatest haste.
    fn next(&self) -> Option<usize> {
        let most = self.jobs.iter().map(|job| job.haste).max()?;
        self.jobs.iter().position(|job| job.haste == most)
    }

    /// Puts a job back that is not done, behind all others if it takes turns with them.
    fn go_on(&mut self, place: usize, begun: Begun) {
        self.jobs[place].begun = Some(begun);
        if self.jobs[place].haste == Haste::Client
            && let Some(job) = self.jobs.remove(place)
        {
            self.jobs.push_back(job);
        }
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    bell: OwnedFd,
    zeroed: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of the thread.
#[derive(Debug)]
pub struct Zeroer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Zeroer {
    /// Starts it.
    ///
    /// # Errors
    /// Returns the system's refusal of a descriptor or a thread.
    pub fn start(source: Source, pace: Pace) -> std::io::Result<Zeroer> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            zeroed: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let worker = Worker { shared: Arc::clone(&shared), source, pace };
        let thread = std::thread::Builder::new().name("cw-scrubd".into());
        let thread = Some(thread.spawn(move || worker.run())?);
        Ok(Zeroer { shared, thread })
    }

    /// Has a file made.
    pub fn submit(&self, id: u64, bytes: u64, haste: Haste) {
        self.shared.lock().jobs.push_back(Job { id, bytes, haste, begun: None });
        self.shared.changed.notify_all();
    }

    /// Hastens a file: a client waits for it.
    pub fn hurry(&self, id: u64) {
        let mut queue = self.shared.lock();
        // It may have been done just now.
        if let Some(place) = queue.place(id) {
            queue.jobs[place].haste = Haste::Client;
            self.shared.changed.notify_all();
        }
    }

    /// Gives a file up, in whatever state; what there is of it goes back at the end of the step that is being done.
    pub fn withdraw(&self, id: u64) {
        let mut queue = self.shared.lock();
        let job = queue.place(id).and_then(|place| queue.jobs.remove(place));
        queue.done.retain(|done| done.id != id);
        drop(queue);
        drop(job);
    }

    /// Files that were made since, or could not be.
    #[must_use]
    pub fn done(&self) -> Vec<Done> {
        let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
        std::mem::take(&mut self.shared.lock().done)
    }

    /// A descriptor that is readable when there is something [`done`](Zeroer::done).
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Bytes zeroed since the start.
    #[must_use]
    pub fn zeroed(&self) -> u64 {
        self.shared.zeroed.load(Ordering::Relaxed)
    }
}

impl Drop for Zeroer {
    fn drop(&mut self) {
        let queue = self.shared.lock();
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(queue);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    source: Source,
    pace: Pace,
}

impl Worker {
    fn run(mut self) {
        gives_way();
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.lock();
        while !shared.stop.load(Ordering::SeqCst) {
            let Some(place) = queue.next() else {
                queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Job { id, bytes, haste, begun } = &mut queue.jobs[place];
            let (id, bytes, at_once) = (*id, *bytes, *haste != Haste::Background);
            if !at_once && let Some(Rest::Load(time) | Rest::Limits(time)) = self.pace.rest(true) {
                let waited = shared.changed.wait_timeout(queue, time);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let begun = begun.take();
            drop(queue);
            let step = self.step(bytes, at_once, begun).map(|begun| {
                let huge = (begun.done as u64 == bytes).then(|| begun.mapping.huge_bytes());
                (begun, huge)
            });
            queue = shared.lock();
            match (queue.place(id), step) {
                // Withdrawn meanwhile: its memory goes while nobody waits for the queue.
                (None, step) => {
                    drop(queue);
                    drop(step);
                    queue = shared.lock();
                }
                (Some(place), Ok((begun, None))) => queue.go_on(place, begun),
                (Some(place), ended) => {
                    queue.jobs.remove(place);
                    let made = ended.map(|(begun, huge)| (begun.file, huge.unwrap_or(0)));
                    queue.done.push(Done { id, made });
                    let _ = rustix::io::write(&shared.bell, &1u64.to_ne_bytes());
                }
            }
        }
    }

    /// Makes the next part of a file resident.
    fn step(&mut self, bytes: u64, at_once: bool, begun: Option<Begun>) -> Result<Begun, Errno> {
        let mut begun = match begun {
            Some(begun) => begun,
            None => {
                let file = self.source.file(bytes)?;
                Begun { mapping: Mapping::new(&file, bytes)?, file, done: 0 }
            }
        };
        let unit = self.source.unit() as usize;
        let most = if at_once { SLICE } else { CHUNK }.next_multiple_of(unit);
        let length = most.min(bytes as usize - begun.done);
        let (then, before) = (Instant::now(), thread_cpu_time());
        if at_once {
            let part = begun.done..begun.done + length;
            self.at_once(&begun.mapping, part, PIECE.next_multiple_of(unit))?;
        } else {
            begun.mapping.populate(begun.done, length)?;
            self.pace.spent(then, thread_cpu_time().saturating_sub(before), length);
        }
        self.shared.zeroed.fetch_add(length as u64, Ordering::Relaxed);
        begun.done += length;
        Ok(begun)
    }

    /// Makes a part resident with several threads, unless the server ends.
    fn at_once(
        &self,
        mapping: &Mapping,
        part: std::ops::Range<usize>,
        piece: usize,
    ) -> Result<(), Errno> {
        let next = AtomicUsize::new(part.start);
        let pieces = || {
            while !self.shared.stop.load(Ordering::Relaxed) {
                let from = next.fetch_add(piece, Ordering::Relaxed);
                if from >= part.end {
                    break;
                }
                mapping.populate(from, piece.min(part.end - from))?;
            }
            Ok(())
        };
        let threads = part.len().div_ceil(piece).min(cpus()).min(THREADS);
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads)
                .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, pieces).ok())
                .collect();
            let own = pieces();
            helpers.into_iter().fold(own, |all, helper| all.and(helper.join().unwrap_or(Ok(()))))
        })
    }
}

/// Has this thread take no CPU from a thread that runs: so it notices that none is idle, by having to wait.
fn gives_way() {
    // Priority 0; musl's has further fields.
    let none = std::mem::MaybeUninit::<libc::sched_param>::zeroed();
    // SAFETY: this thread alone, and numbers that are read, all zero. Where it is refused, less is noticed.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, none.as_ptr()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns_and_all_others_keep_their_order() {
        let mut queue = Queue::default();
        let begun = || {
            let source = Source::Small;
            let file = source.file(source.unit()).expect("a file");
            Begun { mapping: Mapping::new(&file, source.unit()).expect("memory"), file, done: 0 }
        };
        let add = |queue: &mut Queue, id, haste| {
            queue.jobs.push_back(Job { id, bytes: 9, haste, begun: None });
        };
        let turns = |queue: &mut Queue, number| -> Vec<u64> {
            let turn = |_| {
                let place = queue.next().expect("a job");
                let id = queue.jobs[place].id;
                queue.go_on(place, begun());
                id
            };
            (0..number).map(turn).collect()
        };
        add(&mut queue, 1, Haste::Background);
        add(&mut queue, 2, Haste::Background);
        assert_eq!(turns(&mut queue, 2), [1, 1]);
        add(&mut queue, 3, Haste::Start);
        assert_eq!(turns(&mut queue, 2), [3, 3]);
        add(&mut queue, 4, Haste::Client);
        add(&mut queue, 5, Haste::Client);
        assert_eq!(turns(&mut queue, 4), [4, 5, 4, 5]);
    }
}
