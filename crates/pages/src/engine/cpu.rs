//! The built-in engines: a thread at idle priority that zeroes by one of three methods.

use super::{Cancelled, Engine, EngineError, Progress, Range, Token};
use crate::os;
use cachewise::Reuse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;

/// Bytes zeroed between two looks at whether to stop: some 10 us at memory speed.
const PIECE: usize = 128 << 10;

/// How memory is zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The kernel that the profile has for data not read again.
    Around,
    /// The kernel that the profile has for data read soon.
    Through,
    /// Pages are dropped and populated anew.
    System,
}

impl Method {
    /// Zeroes a range.
    ///
    /// # Safety
    /// The range is mapped and nobody else uses it; for `System` it is whole pages of a
    /// mapping.
    pub(crate) unsafe fn zero(self, range: Range) -> Result<(), EngineError> {
        let hint = match self {
            Method::Around => Reuse::Never,
            Method::Through => Reuse::Soon,
            Method::System => {
                let refused = |error: rustix::io::Errno| EngineError::System(error.raw_os_error());
                // SAFETY: the caller's promise.
                unsafe { os::discard(range.start, range.length) }.map_err(refused)?;
                // SAFETY: the caller's promise.
                return unsafe { os::populate(range.start, range.length) }.map_err(refused);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { cachewise::raw::zero_with(hint, range.start, range.length) };
        Ok(())
    }

    /// Ranges that may be cut into pieces: all but those that huge pages must be dropped from
    /// whole.
    fn piece(self) -> usize {
        match self {
            Method::Around | Method::Through => PIECE,
            Method::System => usize::MAX,
        }
    }
}

#[derive(Debug, Default)]
struct Work {
    job: Option<(Token, Vec<Range>)>,
    running: Option<Token>,
    ended: Option<(Token, Progress)>,
    quit: bool,
}

#[derive(Debug, Default)]
struct Shared {
    work: Mutex<Work>,
    begin: Condvar,
    end: Condvar,
    cancel: AtomicBool,
    cpu_ns: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread at idle priority, started with the first batch, waiting without using the CPU.
#[derive(Debug)]
pub struct CpuEngine {
    method: Method,
    shared: Arc<Shared>,
    thread: Option<os::Spawned>,
    last: u64,
}

impl CpuEngine {
    /// Zeroes with non-temporal stores: with the kernel that the profile has for data not read
    /// again.
    #[must_use]
    pub fn around() -> CpuEngine {
        CpuEngine::new(Method::Around)
    }

    /// Zeroes through the cache: with the kernel that the profile has for data read soon.
    #[must_use]
    pub fn through() -> CpuEngine {
        CpuEngine::new(Method::Through)
    }

    pub(crate) fn new(method: Method) -> CpuEngine {
        CpuEngine { method, shared: Arc::default(), thread: None, last: 0 }
    }
}

// SAFETY: the thread writes to the ranges of the batch it has, says `ended` after the last write,
// and `drop` joins it.
unsafe impl Engine for CpuEngine {
    fn name(&self) -> &'static str {
        match self.method {
            Method::Around => "cpu-around",
            Method::Through => "cpu-through",
            Method::System => "system",
        }
    }

    unsafe fn submit(&mut self, batch: &[Range]) -> Result<Token, EngineError> {
        if self.thread.is_none() {
            let (shared, method) = (Arc::clone(&self.shared), self.method);
            let spawned = os::spawn(c"cw-scrub", move || body(&shared, method));
            let refused = |error: std::io::Error| {
                EngineError::System(error.raw_os_error().unwrap_or(libc::EAGAIN))
            };
            self.thread = Some(spawned.map_err(refused)?);
        }
        let mut work = self.shared.lock();
        if work.job.is_some() || work.running.is_some() {
            return Err(EngineError::Busy);
        }
        self.last += 1;
        let token = Token(self.last);
        work.ended = None;
        work.job = Some((token, batch.to_vec()));
        self.shared.cancel.store(false, Ordering::Relaxed);
        self.shared.begin.notify_one();
        Ok(token)
    }

    fn poll(&mut self, batch: Token) -> Progress {
        self.wait(batch, Duration::ZERO)
    }

    fn wait(&mut self, batch: Token, timeout: Duration) -> Progress {
        let work = self.shared.lock();
        let known = |work: &Work| {
            work.running == Some(batch) || work.job.as_ref().is_some_and(|job| job.0 == batch)
        };
        let waited = self.shared.end.wait_timeout_while(work, timeout, |work| known(work));
        let (mut work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if known(&work) {
            return Progress::Pending;
        }
        match work.ended.take() {
            Some((token, progress)) if token == batch => progress,
            _ => Progress::Fault(EngineError::Unknown),
        }
    }

    fn cancel(&mut self, batch: Token, deadline: Duration) -> Cancelled {
        {
            let mut work = self.shared.lock();
            if work.job.as_ref().is_some_and(|job| job.0 == batch) {
                work.job = None;
                return Cancelled::Stopped;
            }
        }
        self.shared.cancel.store(true, Ordering::Relaxed);
        match self.wait(batch, deadline) {
            Progress::Pending => Cancelled::StillRunning,
            _ => Cancelled::Stopped,
        }
    }

    fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.shared.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for CpuEngine {
    fn drop(&mut self) {
        self.shared.cancel.store(true, Ordering::Relaxed);
        self.shared.lock().quit = true;
        self.shared.begin.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

fn body(shared: &Shared, method: Method) {
    os::become_idle();
    let mut work = shared.lock();
    loop {
        while work.job.is_none() && !work.quit {
            work = shared.begin.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        let Some((token, ranges)) = work.job.take() else { return };
        work.running = Some(token);
        drop(work);
        let progress = zero_all(shared, method, &ranges);
        let used = u64::try_from(os::thread_cpu_time().as_nanos()).unwrap_or(u64::MAX);
        shared.cpu_ns.store(used, Ordering::Relaxed);
        work = shared.lock();
        work.running = None;
        work.ended = Some((token, progress));
        shared.end.notify_all();
    }
}

fn zero_all(shared: &Shared, method: Method, ranges: &[Range]) -> Progress {
    let mut done = 0;
    for range in ranges {
        let mut offset = 0;
        while offset < range.length {
            if shared.cancel.load(Ordering::Relaxed) {
                return Progress::Partial(done);
            }
            let length = (range.length - offset).min(method.piece());
            let piece = Range { start: range.start.wrapping_add(offset), length };
            // SAFETY: a part of a range that is ours until `ended` says otherwise
            // (`Engine::submit`); the pool submits whole pages.
            if let Err(error) = unsafe { method.zero(piece) } {
                return Progress::Fault(error);
            }
            offset += length;
            done += length;
        }
    }
    Progress::Done
}
