//! The server's settings, its parts, and the reasons for its end.

use super::peer::Users;
use crate::memory::{Pages, Source};
use crate::pressure::{Host, Room};
use crate::status::Status;
use crate::store::{Holder, Store};
use crate::systemd::{Manager, Name};
use crate::zeroer::{Method, Zeroer};
use cachewise_pages::Scrub;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of its socket.
    pub socket: PathBuf,
    /// Bytes at most.
    pub size: u64,
    /// Bytes of ready memory that are not given back under pressure.
    pub keep: u64,
    /// Bytes of the files that are there from the start; `None` is a quarter of all, at most 1 GiB.
    pub segment: Option<u64>,
    /// Bytes leased to one user at most.
    pub user_most: u64,
    /// Permissions of the socket.
    pub mode: u32,
    /// The group of the socket.
    pub group: Option<u32>,
    /// The pages.
    pub pages: Pages,
    /// The engine that zeroes.
    pub method: Method,
    /// The limits of zeroing in the background.
    pub scrub: Scrub,
    /// True if this process tells the system's killer that its memory can go first (`/proc/self/oom_score_adj`).
    pub goes_first: bool,
}

/// The reason why the server did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting is outside what is accepted.
    #[error("{0}")]
    Setting(String),
    /// No source of huge pages.
    #[error(
        "no huge pages here ({tried}), and leases of small pages gain nothing; run it as root, or reserve \
         pages (sysctl vm.nr_hugepages={reserve}), or allow them for shared memory (echo advise > \
         /sys/kernel/mm/transparent_hugepage/shmem_enabled); --pages small insists"
    )]
    NoHugePages {
        /// The ways that were tried, and what came of them.
        tried: String,
        /// Pages to reserve.
        reserve: u64,
    },
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// The request.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
}

pub(super) fn refused(what: impl Into<String>) -> impl FnOnce(Errno) -> ServeError {
    let what = what.into();
    move |errno| ServeError::System { what, source: errno.into() }
}

pub(super) struct Server {
    pub(super) settings: Settings,
    pub(super) source: Arc<Source>,
    pub(super) store: Store,
    pub(super) files: BTreeMap<u64, File>,
    /// Files by their watches.
    pub(super) watches: BTreeMap<i32, u64>,
    /// The descriptor that tells of closed files, where there is one.
    pub(super) inotify: Option<OwnedFd>,
    pub(super) told_unwatched: bool,
    pub(super) zeroer: Zeroer,
    pub(super) manager: Manager,
    pub(super) users: Users,
    pub(super) clients: Vec<Client>,
    /// Leases that may have ended: when it is looked next, and for how long it was waited.
    pub(super) looks: BTreeMap<u64, (Instant, Duration)>,
    /// Memory that did not come back: when it is looked next, and for how long it was waited.
    pub(super) held_look: Option<(Instant, Duration)>,
    /// The machine's memory, when it is looked at next, and what was found; `None` where the memory is reserved.
    pub(super) host: Option<(Host, Instant, Room)>,
    /// Bytes in small pages of what is ready.
    pub(super) small: BTreeMap<u64, u64>,
    pub(super) figures: Status,
    pub(super) started: Instant,
    /// Since when memory is taken for the first time, until it is there.
    pub(super) starting: Option<Instant>,
    pub(super) fill_from: Instant,
    /// The last score that the killer was told, and the one that was there.
    pub(super) score: (i32, i32),
    /// Lines to be told.
    pub(super) lines: Vec<String>,
}

/// A file of memory, as the server has it.
pub(super) struct File {
    pub(super) file: Arc<OwnedFd>,
    pub(super) watch: Option<i32>,
    /// Since when it is leased.
    pub(super) since: Instant,
    /// True if its client may have opened it again: its pages are not used again.
    pub(super) by_path: bool,
    /// The name under which the manager keeps it.
    pub(super) kept: Option<Name>,
}

/// The wish of a client.
pub(super) enum Wants {
    /// Its request, until then.
    Unknown(Instant),
    /// Memory.
    Memory { bytes: u64, by_path: bool, promise: Option<u64>, since: Instant },
    /// To read the rest, until then.
    Rest(Vec<u8>, Instant),
}

pub(super) struct Client {
    pub(super) socket: OwnedFd,
    pub(super) holder: Holder,
    pub(super) wants: Wants,
}
