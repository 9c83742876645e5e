//! A pool that several processes share: what is in the file, who is attached, who is gone.
//!
//! One file in memory holds the bookkeeping and then the data. Each process maps it where it likes;
//! nothing in it is a pointer. Blocks carry the number of the process that holds them. The lock is the
//! C library's robust mutex: when a process dies holding it, the next one is told, makes lists and
//! counts anew from the tags (which are valid at every instant, see `buddy.rs`), and takes back what
//! the dead one held. Processes that share a pool can write to all of it, the bookkeeping included,
//! so they must trust each other.

use crate::error::PoolError;
use crate::inner::{Control, PROCESSES};
use crate::os;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec::Vec;

/// What tells a pool's file from any other.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"cw-pool\0");

/// What a process must agree on before it touches the rest.
#[repr(C)]
pub(crate) struct Identity {
    pub(crate) magic: AtomicU64,
    /// Bytes of the control block: another layout is another version.
    pub(crate) control: AtomicU64,
    pub(crate) page_size: AtomicU64,
    pub(crate) frames: AtomicU64,
    /// Where the data starts.
    pub(crate) data: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) max_order: AtomicU64,
    pub(crate) huge: AtomicU64,
}

/// Enters this process in the list. Returns its number as an owner.
pub(crate) fn enter(control: &Control) -> Result<u16, PoolError> {
    let pid = std::process::id();
    let start = os::process_start(pid).unwrap_or(0);
    for (slot, process) in control.processes.iter().enumerate() {
        let free = process.pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Relaxed);
        if free.is_ok() {
            process.start.store(start, Ordering::Release);
            return Ok(slot as u16 + 1);
        }
    }
    Err(PoolError::TooManyProcesses(PROCESSES))
}

/// The owners that no longer exist. A number is taken over by a new process sooner or later, so the
/// time it started is compared too.
pub(crate) fn dead(control: &Control) -> Vec<u16> {
    let mut dead = Vec::new();
    for (slot, process) in control.processes.iter().enumerate() {
        let pid = process.pid.load(Ordering::Acquire);
        // Not yet written: the process is entering.
        let start = process.start.load(Ordering::Acquire);
        let now = if pid == 0 { Some(0) } else { os::process_start(pid) };
        if pid != 0 && now.is_none_or(|now| start != 0 && now != start) {
            dead.push(slot as u16 + 1);
        }
    }
    dead
}

/// Strikes owners off the list; what they held was taken back.
pub(crate) fn leave(control: &Control, owners: &[u16]) {
    for owner in owners {
        if let Some(process) = control.processes.get(usize::from(*owner).wrapping_sub(1)) {
            process.start.store(0, Ordering::Release);
            process.pid.store(0, Ordering::Release);
        }
    }
}
