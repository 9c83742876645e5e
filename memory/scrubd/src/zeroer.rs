//! The thread that zeroes: it works through a queue, in the background at its pace, or at once with several threads
//! where a client waits.

use crate::memory::{Mapping, Source, empty};
use crate::pins::Pins;
use crate::store::User;
use cachewise_pages::engine::{CpuEngine, EngineError, Range};
use cachewise_pages::{Pace, Proved, Rest, cpus, thread_cpu_time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that one of several threads takes at a time: then it sees that the server ends.
const PIECE: usize = 8 << 20;
/// Bytes that are zeroed at once between two looks at the queue, and at how many threads pay.
const SLICE: usize = 128 << 20;
/// Bytes between two looks in the background.
const CHUNK: usize = 512 << 10;
/// Bytes of a batch of a device: it is told of each batch's memory anew.
const DEVICE_BATCH: usize = 64 << 20;
/// Bytes a second that are zeroed beside busy threads at least: 1 GiB in 8 s. The work is theirs to bear in any case; a
/// lower rate only spreads it, and leaves the next client without memory for longer.
const PROMISED: u64 = 128 << 20;
/// Seconds in which all that a large server holds is zeroed beside busy threads.
const PROMISED_SECONDS: u64 = 600;
/// The number of times that a large job of a client's lets smaller ones go first.
const PATIENCE: u32 = 4;

/// The engine that zeroes.
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

/// A file whose memory is to go back to the system.
#[derive(Clone, Debug)]
pub struct Old {
    /// It.
    pub file: Arc<OwnedFd>,
    /// The user that had it; `None` if no client had it.
    pub user: Option<User>,
}

/// The work of a job.
#[derive(Debug)]
pub enum Work {
    /// Old files go, and that is all.
    Empty,
    /// A new file is made, which takes longer than a client should wait for another.
    New,
    /// A file with somebody's data is zeroed where it is.
    InPlace(Old),
}

/// A file to be made resident and zero, or memory to be taken back.
#[derive(Debug)]
pub struct Job {
    /// Its number in the store.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    /// The work of a job.
    pub work: Work,
    /// Files to be emptied and closed before: their memory is needed for this one.
    pub old: Vec<Old>,
    /// True if it is of the first memory that is taken, as fast as may be.
    pub at_start: bool,
    begun: Option<Begun>,
    put_back: u32,
}

impl Job {
    /// A job that has not begun.
    #[must_use]
    pub fn new(id: u64, bytes: u64, work: Work, old: Vec<Old>) -> Job {
        Job { id, bytes, work, old, at_start: false, begun: None, put_back: 0 }
    }

    fn left(&self) -> u64 {
        self.bytes - self.begun.as_ref().map_or(0, |begun| begun.done as u64)
    }

    /// The files that go if it does.
    fn files(self) -> Vec<Old> {
        let Job { work, old, begun, .. } = self;
        let in_place = if let Work::InPlace(old) = work { Some(old) } else { None };
        let user = in_place.as_ref().and_then(|old| old.user);
        let begun = begun.map(|begun| Old { file: begun.file, user });
        old.into_iter().chain(begun.or(in_place)).collect()
    }
}

/// A file that is being worked on, and how much of it is done.
#[derive(Debug)]
struct Begun {
    file: Arc<OwnedFd>,
    mapping: Mapping,
    done: usize,
}

/// The end of a job.
#[derive(Debug)]
pub enum Outcome {
    /// The old files are gone, as far as they go.
    Emptied,
    /// Resident and zero.
    Made {
        /// The file.
        file: Arc<OwnedFd>,
        /// Bytes in huge pages.
        huge: u64,
    },
    /// Nothing came of it.
    Failed {
        /// The file, as far as there is one.
        file: Option<Arc<OwnedFd>>,
        /// The reason.
        why: EngineError,
    },
    /// Memory was short, or did not come back; what there was of it is gone.
    GivenUp,
}

/// A job that has ended.
#[derive(Debug)]
pub struct Done {
    /// Its number.
    pub id: u64,
    /// Its end.
    pub outcome: Outcome,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: VecDeque<Job>,
    urgent: BTreeSet<u64>,
    /// The job that is being worked on.
    pub working: Option<u64>,
    /// The job that is not to be gone on with.
    given_up: Option<u64>,
    done: Vec<Done>,
}

impl Queue {
    /// Takes a job out that has not begun, was put back, or is done and nobody has heard of it. Its files.
    pub fn withdraw(&mut self, id: u64) -> Vec<Old> {
        let place = self.jobs.iter().position(|job| job.id == id);
        let job = place.and_then(|place| self.jobs.remove(place));
        self.urgent.remove(&id);
        let done = self.done.extract_if(.., |done| done.id == id);
        let done = done.filter_map(|done| match done.outcome {
            Outcome::Made { file, .. } => Some(Old { file, user: None }),
            Outcome::Failed { file, .. } => file.map(|file| Old { file, user: None }),
            Outcome::Emptied | Outcome::GivenUp => None,
        });
        done.chain(job.into_iter().flat_map(Job::files)).collect()
    }

    /// Ends the job that is being worked on, at its next piece; its memory goes.
    pub fn give_up(&mut self, id: u64) {
        self.given_up = (self.working == Some(id)).then_some(id);
    }

    fn is_urgent(&self, id: u64) -> bool {
        self.urgent.contains(&id)
    }

    /// Returns whether another job goes first: memory that goes back; a client's; of clients' the smaller one, so that the
    /// largest does not hold up all, unless it has been put back often enough.
    fn others_first(&self, job: &Job) -> bool {
        let urgent = self.is_urgent(job.id);
        self.jobs.iter().any(|other| match other.work {
            Work::Empty => true,
            _ if !self.is_urgent(other.id) => false,
            _ => !urgent || other.left() < job.left() && job.put_back < PATIENCE,
        })
    }

    fn next(&mut self) -> Option<Job> {
        let rank = |job: &Job| match job.work {
            Work::Empty => (0, 0),
            _ if !self.is_urgent(job.id) => (3, 0),
            _ if job.put_back >= PATIENCE => (1, 0),
            _ => (2, job.left()),
        };
        let first = self.jobs.iter().enumerate().min_by_key(|(place, job)| (rank(job), *place));
        let job = first.map(|(place, _)| place).and_then(|place| self.jobs.remove(place));
        self.working = job.as_ref().map(|job| job.id);
        self.given_up = None;
        job
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    bell: OwnedFd,
    /// Memory that did not come back.
    pins: Mutex<Pins>,
    /// Bytes zeroed, and CPU nanoseconds of that.
    zeroed: AtomicU64,
    cpu_ns: AtomicU64,
    /// Threads that zero at once.
    threads: AtomicUsize,
    /// True if the server ends: seen between two pieces of memory.
    stop: AtomicBool,
    /// True if no CPU was idle of late.
    low: AtomicBool,
    /// True if there is a device that zeroes, and if it was caught in a lie that nobody has heard of.
    device: AtomicBool,
    lied: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes a second that a server of so many bytes zeroes beside busy threads.
pub fn promised(size: u64) -> f64 {
    PROMISED.max(size / PROMISED_SECONDS) as f64
}

/// The handle of the thread.
#[derive(Debug)]
pub struct Zeroer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Zeroer {
    /// Starts it. New files are of `source`.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        method: Method,
        pace: Pace,
        device: Option<Proved>,
        source: Arc<Source>,
    ) -> std::io::Result<Zeroer> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            pins: Mutex::new(Pins::new(&source)),
            zeroed: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            threads: AtomicUsize::new(1),
            stop: AtomicBool::new(false),
            low: AtomicBool::new(false),
            device: AtomicBool::new(device.is_some()),
            lied: AtomicBool::new(false),
        });
        let unit = source.unit() as usize;
        let chunk = if device.is_some() { DEVICE_BATCH } else { CHUNK }.next_multiple_of(unit);
        let worker = Worker {
            shared: Arc::clone(&shared),
            source,
            method,
            device,
            chunk,
            piece: PIECE.next_multiple_of(unit),
            pace,
            threads: Threads::new(cpus()),
        };
        let thread = std::thread::Builder::new().name("cw-scrubd".into());
        let thread = Some(thread.spawn(move || worker.run())?);
        Ok(Zeroer { shared, thread })
    }

    /// The queue, which stands still for as long as this is held.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.lock()
    }

    /// Memory that did not come back.
    pub fn pins(&self) -> MutexGuard<'_, Pins> {
        self.shared.pins()
    }

    /// Adds something to do.
    pub fn submit(&self, job: Job, urgent: bool) {
        let mut queue = self.shared.lock();
        if urgent {
            queue.urgent.insert(job.id);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// Hastens that one: a client waits for it.
    pub fn hurry(&self, id: u64) {
        let mut queue = self.shared.lock();
        // It may have been done just now.
        if queue.working == Some(id) || queue.jobs.iter().any(|job| job.id == id) {
            queue.urgent.insert(id);
            self.shared.changed.notify_all();
        }
    }

    /// The jobs that have ended since.
    #[must_use]
    pub fn done(&self) -> Vec<Done> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.shared.bell, &mut count);
        std::mem::take(&mut self.shared.lock().done)
    }

    /// A descriptor that is readable when a job has ended.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Threads that zero at once where a client waits.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.threads.load(Ordering::Relaxed)
    }

    /// Returns whether it zeroes no more than it must, since no CPU is idle.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.shared.low.load(Ordering::Relaxed)
    }

    /// Returns whether a device zeroes still.
    #[must_use]
    pub fn has_device(&self) -> bool {
        self.shared.device.load(Ordering::SeqCst)
    }

    /// Returns whether the device was caught in a lie since this was asked last.
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
        let queue = self.shared.lock();
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(queue);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The reason why a job is not gone on with.
enum Stopped {
    /// It has ended.
    Ended(Outcome),
    /// Another one goes first.
    ForAnother,
    /// The server ends.
    ForGood,
}

struct Worker {
    shared: Arc<Shared>,
    source: Arc<Source>,
    method: Method,
    device: Option<Proved>,
    /// Bytes between two looks in the background.
    chunk: usize,
    /// Bytes that one of several threads takes at a time.
    piece: usize,
    pace: Pace,
    threads: Threads,
}

impl Worker {
    fn run(mut self) {
        gives_way();
        loop {
            let mut queue = self.shared.lock();
            let mut job = loop {
                if self.shared.stops() {
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
                Stopped::ForAnother => {
                    job.put_back += 1;
                    queue.jobs.push_front(job);
                }
                Stopped::Ended(outcome) => {
                    queue.urgent.remove(&job.id);
                    queue.done.push(Done { id: job.id, outcome });
                    let _ = rustix::io::write(&self.shared.bell, &1u64.to_ne_bytes());
                }
            }
        }
    }

    fn work(&mut self, job: &mut Job) -> Stopped {
        if !self.take_back(job.old.drain(..)) {
            return Stopped::Ended(Outcome::GivenUp);
        }
        if matches!(job.work, Work::Empty) {
            return Stopped::Ended(Outcome::Emptied);
        }
        let mut begun = match job.begun.take().map_or_else(|| self.begin(job), Ok) {
            Ok(begun) => begun,
            Err(errno) => {
                let why = EngineError::System(errno.raw_os_error());
                return Stopped::Ended(Outcome::Failed { file: None, why });
            }
        };
        match self.zero(job, &mut begun) {
            Ok(None) => {
                let Begun { file, mapping, .. } = begun;
                self.shared.pins().came_back(&file, &mapping);
                Stopped::Ended(Outcome::Made { huge: mapping.huge_bytes(), file })
            }
            Ok(Some(Stopped::ForAnother)) => {
                job.begun = Some(begun);
                Stopped::ForAnother
            }
            Ok(Some(Stopped::Ended(outcome))) => {
                let in_place = if let Work::InPlace(old) = &job.work { old.user } else { None };
                drop(begun.mapping);
                self.take_back([Old { file: begun.file, user: in_place }]);
                Stopped::Ended(outcome)
            }
            Ok(Some(Stopped::ForGood)) => Stopped::ForGood,
            Err(why) => Stopped::Ended(Outcome::Failed { file: Some(begun.file), why }),
        }
    }

    /// Zeroes what is left of a file; why it stopped before the end.
    fn zero(&mut self, job: &Job, begun: &mut Begun) -> Result<Option<Stopped>, EngineError> {
        let in_place = matches!(job.work, Work::InPlace(_));
        while begun.mapping.part(begun.done, self.chunk).length != 0 {
            let queue = self.shared.lock();
            if self.shared.stops() {
                return Ok(Some(Stopped::ForGood));
            }
            if queue.given_up == Some(job.id) {
                return Ok(Some(Stopped::Ended(Outcome::GivenUp)));
            }
            if queue.others_first(job) {
                return Ok(Some(Stopped::ForAnother));
            }
            let by_device = in_place && self.device.is_some();
            let at_once = queue.is_urgent(job.id) || job.at_start;
            if at_once && !by_device {
                drop(queue);
                self.at_once(begun, in_place)?;
                continue;
            }
            let rest = if at_once { None } else { self.pace.rest(!by_device) };
            let low = matches!(rest, Some(Rest::Load(_)));
            self.shared.low.store(low, Ordering::Relaxed);
            if let Some(Rest::Load(time) | Rest::Limits(time)) = rest {
                drop(self.shared.changed.wait_timeout(queue, time));
                continue;
            }
            drop(queue);
            let range = begun.mapping.part(begun.done, self.chunk);
            match self.chunk(range, in_place) {
                Ok(()) => begun.done += range.length,
                // Earlier work of this engine on the file is not trusted either.
                Err(EngineError::Lied) => begun.done = 0,
                Err(error) => return Err(error),
            }
        }
        // The last slice may have been left as it was.
        Ok(self.shared.stops().then_some(Stopped::ForGood))
    }

    /// Takes old files' memory back. Returns whether all of it came, but for less than a page of the largest kind.
    fn take_back(&self, old: impl IntoIterator<Item = Old>) -> bool {
        let mut all = true;
        for Old { file, user } in old {
            let Some(user) = user else {
                empty(&file);
                continue;
            };
            let mut pins = self.shared.pins();
            let held = |pins: &Pins| pins.by_user().into_values().sum::<u64>();
            let before = held(&pins);
            pins.take_back(file, user);
            all &= held(&pins) < before + self.source.unit();
        }
        all
    }

    fn begin(&self, job: &Job) -> Result<Begun, Errno> {
        let file = match &job.work {
            Work::InPlace(old) => Arc::clone(&old.file),
            Work::New | Work::Empty => Arc::new(self.source.file(job.bytes)?),
        };
        let mapping = Mapping::new(&file, job.bytes)?;
        Ok(Begun { file, mapping, done: 0 })
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

    /// Zeroes the next slice of a file with as many threads as pay.
    fn at_once(&mut self, begun: &mut Begun, in_place: bool) -> Result<(), EngineError> {
        let engine = self.method.engine(in_place);
        let length = begun.mapping.part(begun.done, SLICE.max(self.piece)).length;
        let part = begun.done..begun.done + length;
        let (then, threads) = (Instant::now(), self.threads.now());
        let (ended, cpu) =
            at_once(&begun.mapping, part, &engine, threads, self.piece, &self.shared.stop);
        if !in_place {
            self.threads.measured(length as f64 / then.elapsed().as_secs_f64());
            self.shared.threads.store(self.threads.now(), Ordering::Relaxed);
        }
        self.count(length, cpu);
        begun.done += length;
        ended
    }

    /// Returns whether the device has zeroed a chunk. One that fails is no more.
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

/// Has this thread take no CPU from a thread that runs: so it notices that none is idle, by having to wait.
fn gives_way() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: this thread alone, and a value that is read. Where it is refused, less is noticed.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
}

/// Zeroes a part of a file that is nobody's. It is made resident first: a client may have punched holes, or the
/// system have swapped it out.
fn zero(range: Range, engine: &CpuEngine) -> Result<(), EngineError> {
    // SAFETY: whole pages of a mapping of this server's (`Mapping::part`), which nobody else has.
    unsafe { CpuEngine::populating().zero_at_once(range) }?;
    // SAFETY: as above.
    unsafe { engine.zero_at_once(range) }
}

/// Zeroes a part of a file with so many threads, until the server ends. What came of it, and the CPU time.
fn at_once(
    mapping: &Mapping,
    part: std::ops::Range<usize>,
    engine: &CpuEngine,
    threads: usize,
    piece: usize,
    stop: &AtomicBool,
) -> (Result<(), EngineError>, Duration) {
    let next = AtomicUsize::new(part.start);
    let cpu = AtomicU64::new(0);
    let pieces = || {
        let begun = thread_cpu_time();
        let mut result = Ok(());
        while result.is_ok() && !stop.load(Ordering::Relaxed) {
            let from = next.fetch_add(piece, Ordering::Relaxed);
            if from >= part.end {
                break;
            }
            let range = mapping.part(from, piece.min(part.end - from));
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

/// The number of threads that pays for zeroing at once: twice as many as long as they are a tenth faster.
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
    use super::*;

    #[test]
    fn beside_busy_threads_a_gib_takes_8_seconds_and_a_large_server_ten_minutes() {
        assert_eq!((1u64 << 30) as f64 / promised(1 << 30), 8.0);
        let large = 512u64 << 30;
        assert!((599.0..=601.0).contains(&(large as f64 / promised(large))));
    }

    #[test]
    fn memory_goes_back_first_and_the_largest_holds_up_nobody() {
        let job = |id, bytes, work| Job::new(id, bytes, work, Vec::new());
        let mut queue = Queue::default();
        queue.jobs.extend([
            job(1, 9, Work::New),
            job(2, 8, Work::New),
            job(3, 1, Work::New),
            job(4, 9, Work::Empty),
        ]);
        queue.urgent.extend([2, 3]);
        assert_eq!(queue.next().map(|job| job.id), Some(4));
        let large = job(2, 8, Work::New);
        assert!(queue.others_first(&large) && !queue.others_first(&job(3, 1, Work::New)));
        // One that has waited long enough goes on.
        let waited = Job { put_back: PATIENCE, ..large };
        assert!(!queue.others_first(&waited));
        assert_eq!(queue.next().map(|job| job.id), Some(3));
        assert_eq!(queue.next().map(|job| job.id), Some(2));
        assert!(!queue.others_first(&job(1, 9, Work::New)));
        assert_eq!(queue.next().map(|job| job.id), Some(1));
        assert!(queue.next().is_none() && queue.working.is_none());
    }

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
