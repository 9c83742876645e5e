//! Files of memory, the ends of leases, and the way back of their memory.

use super::state::{File, Server};
use crate::memory::{empty, is_alone, is_memory, was_given};
use crate::store::{Entry, Holder, State};
use crate::systemd::Name;
use crate::zeroer::{Job, Method, Old, Work};
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
    /// Takes over what an earlier server left with the manager. The file itself says whether a client has had it, since
    /// names and messages can be lost. One that no client had and nobody else has is ready; one that somebody has is
    /// leased; all others go back to the system.
    pub(super) fn adopt(&mut self, files: Vec<(Option<Name>, OwnedFd)>) {
        let ids = files.iter().filter_map(|(name, _)| Some(name.as_ref()?.id));
        self.store.start_after(ids.max().unwrap_or(0));
        for (name, file) in files {
            // Nothing of anybody else's is touched.
            let Some(found) = rustix::fs::fstat(&file).ok().filter(|_| is_memory(&file)) else {
                continue;
            };
            let bytes = found.st_size.cast_unsigned();
            let of_that_size = name.filter(|name| name.bytes == bytes);
            let resident = (found.st_blocks.cast_unsigned()).saturating_mul(512) >= bytes;
            let (alone, given) = (is_alone(&file), was_given(&file));
            let room = self.store.bytes(|_| true) + bytes <= self.settings.size;
            let unknown = Holder { user: None, process: 0 };
            let state = match (alone, name.map(|name| name.state)) {
                (Ok(false), Some(leased @ State::Leased(_))) => leased,
                (Ok(false), _) if given || name.is_none() => State::Leased(unknown),
                (Ok(true), Some(State::Ready))
                    if !given && room && resident && of_that_size.is_some() =>
                {
                    State::Ready
                }
                // The question has no answer: it is left to those who have it.
                (Err(_), _) => continue,
                _ => {
                    empty(&file);
                    if let Some(name) = &name {
                        self.manager.forget(name);
                    }
                    continue;
                }
            };
            let bytes = name.map_or(bytes, |name| name.bytes);
            let id = self.store.adopt(bytes, state);
            self.enter(id, Arc::new(file));
            if let Some(entered) = self.files.get_mut(&id) {
                // The kind of its pages is unknown.
                (entered.kept, entered.by_path) = (name, true);
            }
            // Its end may have come before it was watched for.
            self.looks.insert(id, (Instant::now() + SOON, SOON));
        }
    }

    /// Enters a file, and has the system tell when a description of it is closed.
    pub(super) fn enter(&mut self, id: u64, file: Arc<OwnedFd>) {
        let watch = self.watch(&file);
        if let Some(watch) = watch {
            self.watches.insert(watch, id);
        }
        let since = Instant::now();
        self.files.insert(id, File { file, watch, since, by_path: false, kept: None });
    }

    fn watch(&mut self, file: &OwnedFd) -> Option<i32> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let events = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE;
        let watch = inotify::add_watch(self.inotify.as_ref()?, path, events);
        watch.map_err(|errno| self.cannot_watch(errno, "fs.inotify.max_user_watches")).ok()
    }

    /// Says once why files are looked at instead of watched.
    pub(super) fn cannot_watch(&mut self, errno: Errno, limit: &str) {
        if !std::mem::replace(&mut self.told_unwatched, true) {
            let found = match errno {
                Errno::NOSPC | Errno::MFILE => format!("found {limit} used up"),
                errno => errno.to_string(),
            };
            let text = "the ends of leases are seen within a second, not at once";
            self.lines.push(format!("watching files (inotify): {found}: {text}"));
        }
    }

    /// Has no more to do with a file; it is returned, to be emptied.
    pub(super) fn leave(&mut self, id: u64) -> Option<Arc<OwnedFd>> {
        let file = self.files.remove(&id)?;
        self.small.remove(&id);
        if let (Some(inotify), Some(watch)) = (&self.inotify, file.watch) {
            self.watches.remove(&watch);
            let _ = inotify::remove_watch(inotify, watch);
        }
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
        // A ready file that was leased would not be taken back.
        let leased = matches!(entry.state, State::Leased(_));
        let name = Name { id, bytes: entry.bytes, state: entry.state };
        let name = (leased || !was_given(&file.file)).then_some(name);
        if let Some(before) = std::mem::replace(&mut file.kept, name) {
            self.manager.forget(&before);
        }
        if let Some(name) = &name {
            self.manager.keep(name, &file.file);
        }
    }

    /// Files of which a description was closed.
    pub(super) fn see_closed(&mut self) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let Some(inotify) = &self.inotify else { return };
        let mut events = inotify::Reader::new(inotify, &mut space);
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
            let watched = self.files.get(&id).is_some_and(|file| file.watch.is_some());
            if !self.see_end(id) && self.is_leased(id) && (pause < LATEST || !watched) {
                self.looks.insert(id, (Instant::now() + pause, (pause * 2).min(LATEST)));
            }
        }
    }

    pub(super) fn is_leased(&self, id: u64) -> bool {
        self.store.get(id).is_some_and(|entry| matches!(entry.state, State::Leased(_)))
    }

    /// Returns whether a lease has ended; then its memory is zeroed, or goes back to the system.
    pub(super) fn see_end(&mut self, id: u64) -> bool {
        let Some(file) = self.files.get(&id) else { return true };
        let Some(&Entry { bytes, state: State::Leased(holder), .. }) = self.store.get(id) else {
            return false;
        };
        match is_alone(&file.file) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(errno) => {
                // Asked at the start, and answered then.
                self.figures.unanswered += 1;
                if self.figures.unanswered == 1 {
                    let line =
                        "a lease's end cannot be seen any more (F_SETLEASE, fs.leases-enable)";
                    self.lines.push(format!("{line}: {errno}"));
                }
                return false;
            }
        }
        let whole = rustix::fs::fstat(&file.file).is_ok_and(|found| found.st_size as u64 == bytes);
        let in_place = self.settings.method != Method::System
            && whole
            && !file.by_path
            && holder.user.is_some();
        self.figures.returned += 1;
        self.store.returned(id, in_place);
        let job = if in_place {
            let old = Old { file: Arc::clone(&file.file), user: Some(holder.user) };
            if let Some(kept) = self.files.get_mut(&id).and_then(|file| file.kept.take()) {
                self.manager.forget(&kept);
            }
            Job::new(id, bytes, Work::InPlace(old), Vec::new())
        } else {
            let file = self.leave(id);
            let old = file.map(|file| Old { file, user: Some(holder.user) });
            Job::new(id, bytes, Work::Empty, old.into_iter().collect())
        };
        self.zeroer.submit(job, false);
        true
    }

    /// Returns whether a file's pages were zeroed in place, or are to be.
    pub(super) fn is_in_place(&self, id: u64) -> bool {
        self.store.get(id).is_some_and(|entry| entry.user.is_some())
    }

    /// Returns whether the device was caught in a lie; then nothing that it zeroed and nobody has is believed.
    pub(super) fn see_lie(&mut self) -> bool {
        let lied = self.zeroer.take_lie();
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
        let user = self.store.get(id).and_then(|entry| entry.user);
        let Some((bytes, promised)) = self.store.doubt(id) else { return false };
        let old = self.leave(id).map(|file| Old { file, user: user.map(Some) });
        self.zeroer.submit(Job::new(id, bytes, Work::New, old.into_iter().collect()), promised);
        true
    }

    /// The memory of a lease is back: a file of the same size is made, if a client waits or will, or its place is free.
    pub(super) fn emptied(&mut self, id: u64) {
        let Some(&Entry { bytes, promised, .. }) = self.store.get(id) else { return };
        let held: u64 = self.store.held().values().sum();
        let over = self.store.bytes(|_| true) + held > self.settings.size;
        // Under pressure its place stays free.
        let quiet = Instant::now() >= self.fill_from;
        if !over && (promised.is_some() || quiet && self.store.is_wanted(bytes)) {
            self.zeroer.submit(Job::new(id, bytes, Work::New, Vec::new()), promised.is_some());
        } else {
            self.store.remove(id);
            self.serve_again(Some(id));
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
