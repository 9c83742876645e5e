//! Files of memory, the ends of leases, and the way back of their memory.

use super::Server;
use crate::memory::{is_alone, release};
use crate::store::State;
use crate::zeroer::Haste;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::inotify;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// The pause before the first look after a file was closed: the kernel tells of the end of a description just before it
/// counts it. Each pause is twice the last.
const SOON: Duration = Duration::from_micros(200);

/// A file of memory that was made.
pub(super) struct File {
    pub(super) file: OwnedFd,
    /// `None` where the system watches no more files: it is looked at every second then.
    watch: Option<i32>,
    /// Bytes in huge pages.
    pub(super) huge: u64,
    /// The time of its lease, or of its making.
    pub(super) since: Instant,
}

impl Server<'_> {
    /// Enters a new file, and has the system tell when a description of it is closed.
    pub(super) fn enter(&mut self, id: u64, file: OwnedFd, huge: u64) {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let events = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE;
        let watch = inotify::add_watch(&self.inotify, path, events).ok();
        self.watches.extend(watch.map(|watch| (watch, id)));
        self.files.insert(id, File { file, watch, huge, since: Instant::now() });
    }

    /// Closes a file, if it was made, and gives its memory back.
    pub(super) fn leave(&mut self, id: u64) {
        if let Some(File { file, watch, .. }) = self.files.remove(&id) {
            if let Some(watch) = watch {
                self.watches.remove(&watch);
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
            release(file);
        }
    }

    /// Looks soon whether a lease has ended.
    pub(super) fn look_soon(&mut self, id: u64) {
        self.looks.insert(id, (Instant::now() + SOON, SOON));
    }

    /// Takes note of files of which a description was closed.
    pub(super) fn see_closed(&mut self) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut closed = Vec::new();
        let mut events = inotify::Reader::new(&self.inotify, &mut space);
        while let Ok(event) = events.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                closed.extend(self.watches.values());
            }
            closed.extend(self.watches.get(&event.wd()));
        }
        for id in closed {
            if !self.see_end(id) {
                self.look_soon(id);
            }
        }
    }

    /// Looks at leases that may have ended.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let due = self.looks.iter().filter(|(_, (then, _))| *then <= now).map(|(id, _)| *id);
        for id in due.collect::<Vec<_>>() {
            let Some((_, pause)) = self.looks.remove(&id) else { continue };
            let unwatched = self.files.get(&id).is_some_and(|file| file.watch.is_none());
            if !self.see_end(id) && (unwatched || pause < super::LOOK) {
                let pause = (pause * 2).min(super::LOOK);
                self.looks.insert(id, (Instant::now() + pause, pause));
            }
        }
    }

    /// Returns whether a file is not leased any more. The memory of a lease that has ended goes back, and new memory is
    /// made in its place if that is wanted.
    pub(super) fn see_end(&mut self, id: u64) -> bool {
        let leased =
            self.store.get(id).is_some_and(|entry| matches!(entry.state, State::Leased(_)));
        let Some(file) = self.files.get(&id).filter(|_| leased) else { return true };
        // Asked at the start, and answered then: an error keeps the lease.
        if !is_alone(&file.file).unwrap_or(false) {
            return false;
        }
        self.looks.remove(&id);
        self.figures.returned += 1;
        self.leave(id);
        if let Some((id, bytes)) = self.store.returned(id) {
            if Instant::now() >= self.fill_from && self.has_room() {
                self.zeroer.submit(id, bytes, Haste::Background);
            } else {
                self.store.remove(id);
            }
        }
        true
    }

    /// Looks at all leases: one may have ended unnoticed.
    pub(super) fn see_ends(&mut self) {
        for id in self.files.keys().copied().collect::<Vec<_>>() {
            self.see_end(id);
        }
    }
}
