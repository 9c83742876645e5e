//! The built-in engines: the calling thread zeroes, by one of three methods.

use super::{Cancelled, Engine, EngineError, Progress, Range, Token};
use crate::os;
use cachewise::Reuse;
use std::time::Duration;

/// A way to zero memory.
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
        let refused = |error: rustix::io::Errno| EngineError::System(error.raw_os_error());
        let hint = match self {
            Method::Around => Reuse::Never,
            Method::Through => Reuse::Soon,
            Method::System => {
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
}

/// The CPU that submits does the work, and a batch has ended when it was submitted.
///
/// A thread of its own at idle priority would cost nobody a CPU, but exit, exec, `seteuid` and core dumps
/// wait for every thread of a process, also for one that the system does not let run.
#[derive(Debug)]
pub struct CpuEngine {
    method: Method,
    last: u64,
    ended: Option<(Token, Progress)>,
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

    /// Has the system drop pages and populate them anew.
    #[must_use]
    pub fn system() -> CpuEngine {
        CpuEngine::new(Method::System)
    }

    pub(crate) fn new(method: Method) -> CpuEngine {
        CpuEngine { method, last: 0, ended: None }
    }
}

// SAFETY: it writes to the ranges of the batch that it is given, and has ended when it returns.
unsafe impl Engine for CpuEngine {
    unsafe fn submit(&mut self, batch: &[Range]) -> Result<Token, EngineError> {
        // SAFETY: a range that is ours until this returns; the pool submits whole pages.
        let zero = |range: &Range| unsafe { self.method.zero(*range) };
        let progress =
            batch.iter().try_for_each(zero).map_or_else(Progress::Fault, |()| Progress::Done);
        self.last += 1;
        self.ended = Some((Token(self.last), progress));
        Ok(Token(self.last))
    }

    fn poll(&mut self, batch: Token) -> Progress {
        match self.ended.take() {
            Some((token, progress)) if token == batch => progress,
            other => {
                self.ended = other;
                Progress::Fault(EngineError::Unknown)
            }
        }
    }

    fn cancel(&mut self, _: Token, _: Duration) -> Cancelled {
        Cancelled::Stopped
    }
}
