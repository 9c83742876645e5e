//! Files of memory: which there are, when a lease ends, and what becomes of it then.

use super::state::{File, Server};
use crate::memory::{empty, is_alone};
use crate::store::{Entry, State};
use crate::systemd::Name;
use crate::zeroer::{Job, Method, Zeroer};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After a file was closed, how soon it is looked again whether it was the last, and until when: the kernel
/// tells of the end of a description just before it counts it.
pub(super) const SOON: Duration = Duration::from_micros(200);
const LATEST: Duration = Duration::from_secs(1);
/// After memory was refused, how long none is asked for in the background.
const HOLD_OFF: Duration = Duration::from_secs(10);

impl Server {
    /// Takes over what an earlier server left with the manager: what is leased, and what is proved to be zero
    /// by nobody else having had it.
    pub(super) fn adopt(&mut self, files: Vec<(Name, OwnedFd)>) {
        self.store.start_after(files.iter().map(|(name, _)| name.id).max().unwrap_or(0));
        for (name, file) in files {
            let whole =
                rustix::fs::fstat(&file).is_ok_and(|found| found.st_size as u64 == name.bytes);
            let alone = is_alone(&file) == Ok(true);
            let leased = matches!(name.state, State::Leased(_));
            let room = self.store.bytes(|_| true) + name.bytes <= self.settings.size;
            let stays = if leased { !alone } else { alone && whole && room };
            if !stays {
                empty(&file);
                self.manager.forget(&name);
                continue;
            }
            let id = self.store.adopt(name.bytes, name.state);
            if self.enter(id, Arc::new(file)).is_ok()
                && let Some(entered) = self.files.get_mut(&id)
            {
                // Of which pages it is nothing is known.
                (entered.kept, entered.by_path) = (Some(name), true);
            } else {
                self.store.remove(id);
            }
        }
    }

    pub(super) fn enter(&mut self, id: u64, file: Arc<OwnedFd>) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let watch = inotify::add_watch(
            &self.inotify,
            path,
            inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE,
        )?;
        self.watches.insert(watch, id);
        let since = Instant::now();
        self.files.insert(id, File { file, watch, since, by_path: false, kept: None });
        Ok(())
    }

    /// Has no more to do with a file; it is returned, to be emptied.
    pub(super) fn leave(&mut self, id: u64) -> Option<Arc<OwnedFd>> {
        let file = self.files.remove(&id)?;
        self.small.remove(&id);
        self.watches.remove(&file.watch);
        let _ = inotify::remove_watch(&self.inotify, file.watch);
        if let Some(name) = &file.kept {
            self.manager.forget(name);
        }
        Some(file.file)
    }

    /// That one is resident and zero.
    pub(super) fn ready(&mut self, id: u64, huge: u64) -> bool {
        let promised = self.store.zeroed(id);
        let bytes = self.store.get(id).map_or(0, |entry| entry.bytes);
        self.small.insert(id, bytes.saturating_sub(huge));
        self.keep(id);
        promised
    }

    /// Has the manager keep a file as what it is now.
    pub(super) fn keep(&mut self, id: u64) {
        if !self.manager.is_there() {
            return;
        }
        let (Some(file), Some(entry)) = (self.files.get_mut(&id), self.store.get(id)) else {
            return;
        };
        let name = Name { id, bytes: entry.bytes, state: entry.state };
        if let Some(before) = file.kept.replace(name) {
            self.manager.forget(&before);
        }
        self.manager.keep(&name, &file.file);
    }

    /// Files of which a description was closed.
    pub(super) fn see_closed(&mut self) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.inotify, &mut space);
        while let Ok(event) = events.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                let all = self.watches.values().map(|id| (*id, (Instant::now(), SOON)));
                self.looks.extend(all);
            } else if let Some(id) = self.watches.get(&event.wd()) {
                self.looks.insert(*id, (Instant::now(), SOON));
            }
        }
    }

    /// Looks at leases that may have ended.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let due: Vec<_> =
            self.looks.iter().filter(|(_, (then, _))| *then <= now).map(|(id, _)| *id).collect();
        for id in due {
            let Some((_, pause)) = self.looks.remove(&id) else { continue };
            if !self.see_end(id) && self.is_leased(id) && pause < LATEST {
                self.looks.insert(id, (Instant::now() + pause, pause * 2));
            }
        }
    }

    pub(super) fn is_leased(&self, id: u64) -> bool {
        self.store.get(id).is_some_and(|entry| matches!(entry.state, State::Leased(_)))
    }

    /// Whether a lease has ended; then its memory is zeroed.
    pub(super) fn see_end(&mut self, id: u64) -> bool {
        let Some(file) = self.files.get(&id) else { return true };
        if !self.is_leased(id) || is_alone(&file.file) != Ok(true) {
            return false;
        }
        let bytes = self.store.get(id).map_or(0, |entry| entry.bytes);
        let whole = rustix::fs::fstat(&file.file).is_ok_and(|found| found.st_size as u64 == bytes);
        let in_place = self.settings.method != Method::System && whole && !file.by_path;
        self.figures.returned += 1;
        self.store.returned(id, in_place);
        if in_place {
            let file = Some(Arc::clone(&file.file));
            if let Some(kept) = self.files.get_mut(&id).and_then(|file| file.kept.take()) {
                self.manager.forget(&kept);
            }
            self.submit(Job { id, file, bytes, in_place, old: Vec::new(), begun: None }, false);
        } else {
            let old = self.leave(id).into_iter().collect();
            self.renew(id, bytes, old, false);
        }
        true
    }

    /// Whether a file's pages were zeroed in place, or are to be.
    pub(super) fn is_in_place(&self, id: u64) -> bool {
        self.store.get(id).is_some_and(|entry| entry.user.is_some())
    }

    /// Whether the device was caught in a lie; then nothing that it zeroed and nobody has is believed.
    pub(super) fn see_lie(&mut self) -> bool {
        let lied = self.zeroer.as_ref().is_some_and(Zeroer::take_lie);
        if lied {
            let ready = |(id, entry): (u64, &Entry)| {
                (entry.state == State::Ready && entry.user.is_some()).then_some(id)
            };
            let doubted: Vec<_> = self.store.entries().filter_map(ready).collect();
            for id in doubted {
                self.again(id);
            }
        }
        lied
    }

    /// Has new memory made in the place of what is not believed.
    pub(super) fn again(&mut self, id: u64) -> bool {
        let Some((bytes, promised)) = self.store.doubt(id) else { return false };
        let old = self.leave(id).into_iter().collect();
        self.renew(id, bytes, old, promised);
        true
    }

    /// Has a new file made of that size, after the old ones have gone.
    pub(super) fn renew(&self, id: u64, bytes: u64, old: Vec<Arc<OwnedFd>>, urgent: bool) {
        self.submit(Job { id, file: None, bytes, in_place: false, old, begun: None }, urgent);
    }

    pub(super) fn submit(&self, job: Job, urgent: bool) {
        if let Some(zeroer) = &self.zeroer {
            zeroer.submit(job, urgent);
        }
    }

    /// The system has no memory for that one.
    pub(super) fn fail(&mut self, id: u64) {
        self.figures.failed += 1;
        self.store.remove(id);
        if let Some(file) = self.leave(id) {
            empty(&file);
        }
        self.fill_from = Instant::now() + HOLD_OFF;
    }
}
