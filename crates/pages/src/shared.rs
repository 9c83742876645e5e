//! A pool that several processes share: what is in the file, who is attached, who is gone.
//!
//! One file in memory holds the bookkeeping and then the data. Each process maps it where it likes;
//! nothing in it is a pointer. Blocks carry the number of the process that holds them. The lock is
//! the C library's robust mutex: when a process dies holding it, the next one is told, makes lists
//! and counts anew from the tags (which are valid at every instant, see `buddy.rs`), and takes back
//! what the dead one held. Who is dead is told by a lock that a process has for as long as its
//! memory lives ([`Alive`]), and by nothing else: a process that could not take one is never taken
//! for dead. Processes that share a pool can write to all of it, the bookkeeping included, so they
//! must trust each other.

use crate::error::PoolError;
use crate::inner::{Control, PROCESSES};
use crate::os::{self, Alive};
use rustix::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec::Vec;

/// What tells a pool's file from any other.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"cw-pool2");

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

/// Of a process's word in the list: its life can be asked for. The rest is its number, to be read
/// by people.
const ASKABLE: u64 = 1 << 32;

/// Enters this process in the list. Returns its number as an owner, and what says that it lives.
pub(crate) fn enter(control: &Control, file: impl AsFd) -> Result<(u16, Option<Alive>), PoolError> {
    let pid = u64::from(std::process::id());
    for askable in [true, false] {
        for (slot, process) in control.processes.iter().enumerate() {
            if process.load(Ordering::Relaxed) != 0 {
                continue;
            }
            // The lock comes first: who is in the list and askable is alive at every moment.
            let alive = if askable { Alive::new(&file, slot) } else { None };
            if askable && alive.is_none() {
                continue;
            }
            let word = if askable { pid | ASKABLE } else { pid };
            let free = process.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed);
            if free.is_ok() {
                return Ok((slot as u16 + 1, alive));
            }
        }
    }
    Err(PoolError::TooManyProcesses(PROCESSES))
}

/// The owners that no longer exist.
pub(crate) fn dead(
    control: &Control,
    file: impl AsFd,
    identity: (u64, u64),
    myself: u16,
) -> Vec<u16> {
    let mut dead = Vec::new();
    for (slot, process) in control.processes.iter().enumerate() {
        let owner = slot as u16 + 1;
        let askable = process.load(Ordering::Acquire) & ASKABLE != 0;
        if askable && owner != myself && os::is_dead(&file, identity, slot) {
            dead.push(owner);
        }
    }
    dead
}

/// Strikes owners off the list; what they held was taken back.
pub(crate) fn leave(control: &Control, owners: &[u16]) {
    for owner in owners {
        if let Some(process) = control.processes.get(usize::from(*owner).wrapping_sub(1)) {
            process.store(0, Ordering::Release);
        }
    }
}
