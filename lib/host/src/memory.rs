//! The machine's memory, and what is left of it within control groups.

use crate::tree::value;
use crate::{Groups, Tree};

/// `/proc/meminfo` at one moment.
#[derive(Clone, Debug, Default)]
pub struct Meminfo(String);

impl Meminfo {
    /// Reads it; every question has no answer where it cannot be read.
    pub fn read(tree: &Tree) -> Meminfo {
        Meminfo(tree.text("proc/meminfo").unwrap_or_default())
    }

    /// Bytes of a line in kB: `MemTotal`, `MemAvailable`, `Hugepagesize`.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        value(&self.0, name)?.checked_mul(1024)
    }
}

/// Memory of the machine or of the control group that has the least left, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the machine, or the lowest limit; `u64::MAX` where nothing says so.
    pub whole: u64,
    /// Bytes that a process may have in addition without pressing on others.
    pub available: u64,
}

impl Room {
    /// The room of this process.
    pub fn of_process() -> Room {
        Room::of(&Tree::default(), &Groups::of_process())
    }

    /// The room of a process in these groups.
    pub fn of(tree: &Tree, groups: &Groups) -> Room {
        let meminfo = Meminfo::read(tree);
        let whole = meminfo.bytes("MemTotal").unwrap_or(u64::MAX);
        let machine = Room { whole, available: meminfo.bytes("MemAvailable").unwrap_or(whole) };
        groups.limits().fold(machine, |room, limit| {
            let left = limit.bytes.saturating_sub(limit.used).saturating_add(limit.cached);
            Room {
                whole: room.whole.min(limit.bytes),
                available: room.available.min(left).min(limit.bytes),
            }
        })
    }
}
