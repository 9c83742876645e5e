//! Who zeroes: one thread that works through a queue, in the background by the rules of a pool's scrubber,
//! or at once with several threads where a client waits.

use crate::memory::{Mapping, Source, empty};
use cachewise_pages::engine::{CpuEngine, EngineError, Range};
use cachewise_pages::{Pace, Proved, Rest, Scrub, thread_cpu_time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that one of several threads takes at a time.
const PIECE: usize = 32 << 20;

/// What zeroes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The system: a lease is always of pages that nobody had before.
    #[default]
    System,
    /// The CPU, in place, with the kernel that the profile has for data that is not read again.
    Around,
    /// The CPU, in place, with the kernel that the profile has for data that is read soon.
    Through,
    /// A GPU, in place; the CPU once it has failed.
    Cuda,
}

impl Method {
    /// Its engine; new pages are always the system's.
    fn engine(self, in_place: bool) -> CpuEngine {
        match self {
            Method::Around | Method::Cuda if in_place => CpuEngine::around(),
            Method::Through if in_place => CpuEngine::through(),
            _ => CpuEngine::populating(),
        }
    }
}

/// A file to be made resident and zero.
#[derive(Debug)]
pub struct Job {
    /// Its number in the store.
    pub id: u64,
    /// It; `None` if it is to be made, which takes longer than a client should wait for another.
    pub file: Option<Arc<OwnedFd>>,
    /// Its size.
    pub bytes: u64,
    /// Whether it has pages with somebody's data.
    pub in_place: bool,
    /// Files to be emptied and closed before: their memory is needed for this one.
    pub old: Vec<Arc<OwnedFd>>,
    /// As far as it is done.
    pub begun: Option<(Mapping, usize)>,
}

/// What came of a job.
#[derive(Debug)]
pub struct Done {
    /// Its number.
    pub id: u64,
    /// Its file, as far as there is one.
    pub file: Option<Arc<OwnedFd>>,
    /// Bytes in huge pages; or what failed.
    pub huge: Result<u64, EngineError>,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: VecDeque<Job>,
    urgent: BTreeSet<u64>,
    /// The job that is being worked on.
    pub working: Option<u64>,
    done: Vec<Done>,
    stop: bool,
}

impl Queue {
    /// Takes a job out that has not begun, was put back, or is done and nobody has heard of it. Its files.
    pub fn withdraw(&mut self, id: u64) -> Vec<Arc<OwnedFd>> {
        let place = self.jobs.iter().position(|job| job.id == id);
        let job = place.and_then(|place| self.jobs.remove(place));
        self.urgent.remove(&id);
        let done = self.done.extract_if(.., |done| done.id == id).filter_map(|done| done.file);
        done.chain(job.into_iter().flat_map(|job| job.old.into_iter().chain(job.file))).collect()
    }

    fn is_urgent(&self, id: u64) -> bool {
        self.urgent.contains(&id)
    }

    /// Whether a client waits for another job.
    fn others_wait(&self) -> bool {
        self.jobs.iter().any(|job| self.is_urgent(job.id))
    }

    fn next(&mut self) -> Option<Job> {
        let urgent = self.jobs.iter().position(|job| self.urgent.contains(&job.id));
        let job = self.jobs.remove(urgent.unwrap_or(0));
        self.working = job.as_ref().map(|job| job.id);
        job
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    bell: OwnedFd,
    /// Bytes zeroed, and CPU nanoseconds of that.
    zeroed: AtomicU64,
    cpu_ns: AtomicU64,
    threads: AtomicUsize,
    /// Whether there is a device that zeroes; whether it was caught in a lie that nobody has heard of.
    device: AtomicBool,
    lied: AtomicBool,
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
    /// Starts it; `threads` zero at once where a client waits, unless there is a device. New files are of `source`.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        method: Method,
        scrub: Scrub,
        threads: usize,
        device: Option<Proved>,
        source: Arc<Source>,
    ) -> std::io::Result<Zeroer> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            zeroed: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            threads: AtomicUsize::new(threads),
            device: AtomicBool::new(device.is_some()),
            lied: AtomicBool::new(false),
        });
        let worker = Worker {
            shared: Arc::clone(&shared),
            source,
            method,
            device,
            chunk: scrub.chunk,
            pace: Pace::new(scrub),
        };
        let thread = std::thread::Builder::new().name("cw-scrubd".into());
        let thread = Some(thread.spawn(move || worker.run())?);
        Ok(Zeroer { shared, thread })
    }

    /// The queue, which stands still for as long as this is held.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.lock()
    }

    /// Something to do.
    pub fn submit(&self, job: Job, urgent: bool) {
        let mut queue = self.shared.lock();
        if urgent {
            queue.urgent.insert(job.id);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// A client waits for that one.
    pub fn hurry(&self, id: u64) {
        let mut queue = self.shared.lock();
        // It may have been done just now.
        if queue.working == Some(id) || queue.jobs.iter().any(|job| job.id == id) {
            queue.urgent.insert(id);
            self.shared.changed.notify_all();
        }
    }

    /// What was done since.
    #[must_use]
    pub fn done(&self) -> Vec<Done> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.shared.bell, &mut count);
        std::mem::take(&mut self.shared.lock().done)
    }

    /// Readable when something was done.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Whether a device zeroes still.
    #[must_use]
    pub fn has_device(&self) -> bool {
        self.shared.device.load(Ordering::SeqCst)
    }

    /// Whether the device was caught in a lie since this was asked last.
    #[must_use]
    pub fn take_lie(&self) -> bool {
        self.shared.lied.swap(false, Ordering::SeqCst)
    }

    /// Bytes zeroed, and the CPU time of that.
    #[must_use]
    pub fn work(&self) -> (u64, Duration) {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (get(&self.shared.zeroed), Duration::from_nanos(get(&self.shared.cpu_ns)))
    }
}

impl Drop for Zeroer {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why a job is not gone on with.
enum Stopped {
    /// Done, or it failed.
    Ended(Result<(), EngineError>),
    /// Another client waits.
    ForAnother,
    /// The server ends.
    ForGood,
}

struct Worker {
    shared: Arc<Shared>,
    source: Arc<Source>,
    method: Method,
    device: Option<Proved>,
    chunk: usize,
    pace: Pace,
}

impl Worker {
    fn run(mut self) {
        loop {
            let mut queue = self.shared.lock();
            let mut job = loop {
                if queue.stop {
                    return;
                }
                match queue.next() {
                    Some(job) => break job,
                    None => {
                        let waited = self.shared.changed.wait(queue);
                        queue = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(queue);
            let stopped = self.work(&mut job);
            let mut queue = self.shared.lock();
            queue.working = None;
            match stopped {
                Stopped::ForGood => return,
                Stopped::ForAnother => queue.jobs.push_front(job),
                Stopped::Ended(ended) => {
                    queue.urgent.remove(&job.id);
                    let mapping = job.begun.take();
                    let huge = || mapping.map_or(0, |(mapping, _)| mapping.huge_bytes());
                    let huge = ended.map(|()| huge());
                    queue.done.push(Done { id: job.id, file: job.file, huge });
                    let _ = rustix::io::write(&self.shared.bell, &1u64.to_ne_bytes());
                }
            }
        }
    }

    fn work(&mut self, job: &mut Job) -> Stopped {
        job.old.drain(..).for_each(|file| empty(&file));
        if job.begun.is_none() {
            match self.begin(job) {
                Ok(mapping) => job.begun = Some((mapping, 0)),
                Err(errno) => {
                    return Stopped::Ended(Err(EngineError::System(errno.raw_os_error())));
                }
            }
        }
        let Some((mapping, done)) = &mut job.begun else { return Stopped::ForGood };
        while mapping.part(*done, self.chunk).length != 0 {
            let queue = self.shared.lock();
            if queue.stop {
                return Stopped::ForGood;
            }
            let by_device = job.in_place && self.device.is_some();
            let urgent = queue.is_urgent(job.id);
            if urgent && !by_device {
                drop(queue);
                let threads = self.shared.threads.load(Ordering::Relaxed);
                let engine = self.method.engine(job.in_place);
                let bytes = mapping.part(*done, usize::MAX).length;
                let (ended, cpu) = at_once(mapping, *done..*done + bytes, &engine, threads);
                self.count(bytes, cpu);
                return Stopped::Ended(ended);
            }
            if !urgent && queue.others_wait() {
                return Stopped::ForAnother;
            }
            let rest = if urgent { None } else { self.pace.rest(!by_device) };
            if let Some(Rest::Load(time) | Rest::Limits(time)) = rest {
                drop(self.shared.changed.wait_timeout(queue, time));
                continue;
            }
            drop(queue);
            let range = mapping.part(*done, self.chunk);
            match self.chunk(range, job.in_place) {
                Ok(()) => *done += range.length,
                // What it zeroed of this one before is not believed either.
                Err(EngineError::Lied) => *done = 0,
                Err(error) => return Stopped::Ended(Err(error)),
            }
        }
        Stopped::Ended(Ok(()))
    }

    fn begin(&self, job: &mut Job) -> Result<Mapping, Errno> {
        let file = match job.file.take() {
            Some(file) => file,
            None => Arc::new(self.source.file(job.bytes)?),
        };
        Mapping::new(job.file.insert(file), job.bytes)
    }

    /// Zeroes a chunk, and says when the next one may begin.
    fn chunk(&mut self, range: Range, in_place: bool) -> Result<(), EngineError> {
        let (begun, own) = (Instant::now(), thread_cpu_time());
        if !in_place || !self.by_device(range)? {
            zero(range, &self.method.engine(in_place))?;
        }
        let used = thread_cpu_time().saturating_sub(own);
        self.pace.spent(begun, used, range.length);
        self.count(range.length, used);
        Ok(())
    }

    /// Whether the device has zeroed a chunk. One that fails is no more.
    fn by_device(&mut self, range: Range) -> Result<bool, EngineError> {
        let Some(device) = &mut self.device else { return Ok(false) };
        // SAFETY: whole pages of a mapping of this server's (`Mapping::part`), which nobody else has.
        unsafe { CpuEngine::populating().zero_at_once(range) }?;
        // SAFETY: as above; the memory of a job that ends by `Hung` is given to nobody.
        let ended = unsafe { device.zero(range) };
        let Err(error) = ended else { return Ok(true) };
        self.device = None;
        self.shared.lied.store(error == EngineError::Lied, Ordering::SeqCst);
        self.shared.device.store(false, Ordering::SeqCst);
        match error {
            EngineError::Lied | EngineError::Hung => Err(error),
            _ => Ok(false),
        }
    }

    fn count(&self, bytes: usize, cpu: Duration) {
        self.shared.zeroed.fetch_add(bytes as u64, Ordering::Relaxed);
        self.shared.cpu_ns.fetch_add(cpu.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// Zeroes a part of a file that is nobody's. It is made resident first: a client may have punched holes, or the
/// system have swapped it out.
fn zero(range: Range, engine: &CpuEngine) -> Result<(), EngineError> {
    // SAFETY: whole pages of a mapping of this server's (`Mapping::part`), which nobody else has.
    unsafe { CpuEngine::populating().zero_at_once(range) }?;
    // SAFETY: as above.
    unsafe { engine.zero_at_once(range) }
}

/// Zeroes a part of a file with so many threads. What came of it, and the CPU time.
pub fn at_once(
    mapping: &Mapping,
    part: std::ops::Range<usize>,
    engine: &CpuEngine,
    threads: usize,
) -> (Result<(), EngineError>, Duration) {
    let next = AtomicUsize::new(part.start);
    let cpu = AtomicU64::new(0);
    let pieces = || {
        let begun = thread_cpu_time();
        let mut result = Ok(());
        while result.is_ok() {
            let from = next.fetch_add(PIECE, Ordering::Relaxed);
            if from >= part.end {
                break;
            }
            let range = mapping.part(from, PIECE.min(part.end - from));
            result = zero(range, engine);
        }
        let used = thread_cpu_time().saturating_sub(begun);
        cpu.fetch_add(used.as_nanos() as u64, Ordering::Relaxed);
        result
    };
    let ended = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, pieces).ok())
            .collect();
        let own = pieces();
        let others = helpers.into_iter().map(|helper| helper.join().unwrap_or(Ok(())));
        // All are waited for.
        others.fold(own, Result::and)
    });
    (ended, Duration::from_nanos(cpu.load(Ordering::Relaxed)))
}

/// How many threads pay for zeroing at once: twice as many as long as they are a tenth faster.
#[derive(Debug)]
pub struct Threads {
    now: usize,
    most: usize,
    best: Option<(usize, f64)>,
    settled: bool,
}

impl Threads {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(most: usize) -> Threads {
        Threads { now: 1, most, best: None, settled: false }
    }

    /// So many next.
    #[must_use]
    pub fn now(&self) -> usize {
        self.now
    }

    /// So many bytes a second came of it.
    pub fn measured(&mut self, rate: f64) {
        if self.settled {
            return;
        }
        let faster = self.best.is_none_or(|(_, best)| rate > 1.1 * best);
        if faster {
            self.best = Some((self.now, rate));
        }
        let next = (self.now * 2).min(self.most);
        if faster && next != self.now {
            self.now = next;
        } else {
            self.now = self.best.map_or(1, |(threads, _)| threads);
            self.settled = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Threads;

    #[test]
    fn threads_that_pay() {
        let settled = |rates: &[f64]| {
            let mut threads = Threads::new(16);
            rates.iter().for_each(|rate| threads.measured(*rate));
            threads.now()
        };
        assert_eq!(settled(&[1.0, 1.9, 3.0, 3.1, 9.0]), 4);
        assert_eq!(settled(&[1.0, 1.0]), 1);
        assert_eq!(settled(&[1.0, 2.0, 4.0, 8.0, 16.0, 1.0]), 16);
        assert_eq!(settled(&[]), 1);
        let mut one = Threads::new(1);
        one.measured(5.0);
        assert_eq!(one.now(), 1);
    }
}
