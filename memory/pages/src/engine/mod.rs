//! Engines that zero blocks in the background, behind one trait: a batch is submitted, asked about, and
//! called back when it takes too long.
//!
//! The built-in engines work in the thread that submits (`cpu.rs`), or have a GPU do it (`cuda.rs`).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "testing")]
pub mod faulty;
pub(crate) mod proof;

pub use cpu::CpuEngine;
pub(crate) use cpu::Method;
#[cfg(feature = "cuda")]
pub use cuda::{CudaEngine, CudaError};

use std::time::{Duration, Instant};

/// Memory to be zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its first byte.
    pub start: *mut u8,
    /// Its length in bytes.
    pub length: usize,
}

// SAFETY: an address and a length; whoever writes there answers for it (see `Engine::submit`).
unsafe impl Send for Range {}

/// A batch that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// Progress of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not finished.
    Pending,
    /// All of it is zero, and the engine writes there no more.
    Done,
    /// That many bytes from the start are zero; the engine gave up and writes there no more.
    Partial(usize),
    /// The engine failed and writes there no more.
    Fault(EngineError),
}

/// Result of calling a batch back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The engine writes there no more.
    Stopped,
    /// The engine may still write there.
    StillRunning,
}

/// Why an engine did not do a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Busy: a batch is there already, and one at a time is taken.
    #[error("busy with another batch")]
    Busy,
    /// The system refused, with this error number.
    #[error("the system refused (error {0})")]
    System(i32),
    /// The device failed.
    #[error("the device failed (code {0})")]
    Device(i32),
    /// No batch of that token.
    #[error("no such batch")]
    Unknown,
}

/// Something that zeroes memory.
///
/// The pool trusts the CPU. Of any other engine it reads the first 64 MiB, then the last line of each
/// batch. It quarantines the blocks of a batch that was late or failed, and has the
/// work done by the CPU; after three failures it drops the engine. One that was caught in a lie it drops at
/// once, and what is zero and unused is dirty again.
///
/// # Safety
/// Until a batch is [`Done`](Progress::Done), [`Partial`](Progress::Partial), a
/// [`Fault`](Progress::Fault) or [`Stopped`](Cancelled::Stopped), the engine may write to its
/// ranges and to nothing else. **When the engine has been dropped it writes nowhere any more**:
/// that is the promise on which blocks leave quarantine. What an engine says of the
/// bytes is believed as far as said above.
pub unsafe trait Engine: Send + core::fmt::Debug {
    /// True if a CPU does its work. Another engine goes on however many threads want to run.
    fn uses_cpu(&self) -> bool {
        true
    }

    /// Is told of the memory that all batches will be part of, resident and to stay so, before the first
    /// one: for devices that have to be told. A pool tells the built-in engine for a GPU.
    ///
    /// # Safety
    /// The memory stays mapped, and its pages stay the same, until the engine has been dropped.
    ///
    /// # Errors
    /// The device cannot have it.
    unsafe fn adopt(&mut self, _memory: Range) -> Result<(), EngineError> {
        Ok(())
    }

    /// Starts on a batch.
    ///
    /// # Safety
    /// Until the batch has ended, or the engine has been dropped, the ranges stay mapped and nobody
    /// else uses them.
    ///
    /// # Errors
    /// The batch was not started.
    unsafe fn submit(&mut self, batch: &[Range]) -> Result<Token, EngineError>;

    /// Progress of a batch, without waiting. A batch that has ended is forgotten once that was returned.
    fn poll(&mut self, batch: Token) -> Progress;

    /// Calls a batch back, waiting at most until the deadline for the engine to let go of it.
    fn cancel(&mut self, batch: Token, deadline: Duration) -> Cancelled;

    /// Ends all its work before it is dropped, waiting at most that long. One that is still running then is
    /// not dropped but forgotten, and what it may write to is nobody's for good.
    fn stop(&mut self, _deadline: Duration) -> Cancelled {
        Cancelled::Stopped
    }

    /// CPU time it has used so far, on any CPU.
    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Waits for a batch to end, at most that long. Without an implementation of its own it polls,
    /// ever more rarely.
    fn wait(&mut self, batch: Token, timeout: Duration) -> Progress {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let progress = self.poll(batch);
            let left = timeout.saturating_sub(begun.elapsed());
            if progress != Progress::Pending || left.is_zero() {
                return progress;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }
}
