//! The server: one thread that listens, gives, and sees leases end.

mod clients;
mod files;
mod listener;
mod state;

use crate::memory::{Mapping, Source};
use crate::status::{Files, Leased, Status};
use crate::store::{Entry, Holder, State, Store};
use crate::systemd::{Manager, Passed};
use crate::zeroer::{Done, Method, Threads, Zeroer, at_once};
use cachewise_measure::units::{bytes as size, counted};
use cachewise_pages::engine::{CpuEngine, CudaEngine, EngineError};
use cachewise_pages::{Proved, cpus, memory};
use clients::CLIENTS;
use listener::Listener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::inotify;
use rustix::io::Errno;
use state::{Client, Server, Wants, refused};
pub use state::{ServeError, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes populated at the start between two looks at how many threads pay.
const PROBE: usize = 256 << 20;
/// Descriptors that are not files of memory: sockets, and those that clients wait with.
const DESCRIPTORS: u64 = CLIENTS as u64 + 32;

/// Serves until `stop` can be read. `tell` gets a line of what goes on.
///
/// # Errors
/// [`ServeError`].
pub fn serve(
    mut settings: Settings,
    passed: Passed,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ServeError> {
    let listener = Listener::new(&settings, passed.listener)?;
    let source = Source::find(settings.pages).map_err(|tried| ServeError::NoHugePages {
        tried: tried.join("; "),
        reserve: settings.size.div_ceil(cachewise_pages::hugetlb_size() as u64),
    })?;
    let unit = source.unit();
    let device = device(&mut settings, tell);
    settings.scrub.chunk = settings.scrub.chunk.next_multiple_of(unit as usize);
    let segment = settings.segment.unwrap_or((settings.size / 4).min(1 << 30));
    let segment = (segment / unit).max(1) * unit;
    check(&settings, segment, unit)?;
    let mut server = Server {
        store: Store::new(settings.size / unit * unit, settings.user_most),
        files: BTreeMap::new(),
        watches: BTreeMap::new(),
        inotify: inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
            .map_err(refused("watching files (inotify)"))?,
        zeroer: None,
        manager: Manager::new(),
        clients: Vec::new(),
        looks: BTreeMap::new(),
        figures: Status::default(),
        started: Instant::now(),
        fill_from: Instant::now(),
        small: BTreeMap::new(),
        segment,
        threads: 1,
        source: Arc::new(source),
        settings,
    };
    server.adopt(passed.files);
    server.populate(tell)?;
    let scrub = server.settings.scrub.clone();
    let source = Arc::clone(&server.source);
    let zeroer = Zeroer::start(server.settings.method, scrub, server.threads, device, source);
    server.zeroer = Some(zeroer.map_err(|source| ServeError::System {
        what: "starting the thread that zeroes".into(),
        source,
    })?);
    let _path = listener.open()?;
    server.manager.tell("READY=1");
    tell(&format!("serves at {}", server.settings.socket.display()));
    loop {
        if server.turn(&listener.socket, stop)? {
            return Ok(());
        }
    }
}

/// How long a device may take for a batch.
const DEVICE_DEADLINE: Duration = Duration::from_secs(1);
/// Bytes of a batch of it: it is told of each batch's memory anew.
const DEVICE_BATCH: usize = 64 << 20;

/// The device that is to zero; where there is none, the CPU does.
fn device(settings: &mut Settings, tell: &mut dyn FnMut(&str)) -> Option<Proved> {
    if settings.method != Method::Cuda {
        return None;
    }
    match CudaEngine::new() {
        Ok(engine) => {
            settings.scrub.chunk = settings.scrub.chunk.max(DEVICE_BATCH);
            tell(&format!("zeroes by {}", engine.device_name()));
            Some(Proved::new(Box::new(engine), DEVICE_DEADLINE))
        }
        Err(error) => {
            settings.method = Method::Around;
            tell(&format!("no device to zero with ({error}): the CPU instead"));
            None
        }
    }
}

/// Refuses what cannot work before anything is populated.
fn check(settings: &Settings, segment: u64, unit: u64) -> Result<(), ServeError> {
    let setting = |text: String| Err(ServeError::Setting(text));
    let found = size(settings.size);
    if settings.size < unit {
        return setting(format!("--size: found {found}, accepted {} and more", size(unit)));
    }
    let most = memory() as u64;
    if settings.size > most {
        let most = size(most);
        return setting(format!(
            "--size: found {found}, accepted at most {most}, the memory there is here"
        ));
    }
    if segment > settings.size {
        return setting(format!("--segment: found {}, accepted at most {found}", size(segment)));
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum;
    let raised = rustix::process::Rlimit { current: most, maximum: most };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    let needed = settings.size / segment + DESCRIPTORS;
    if most.is_some_and(|most| most < needed) {
        let most = most.unwrap_or(0);
        return setting(format!(
            "open files: found a limit of {most}, accepted {needed} and more (ulimit -Hn, LimitNOFILE=), or \
             a larger --segment"
        ));
    }
    Ok(())
}

impl Server {
    /// Populates what there is room for, with as many threads as pay.
    fn populate(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), ServeError> {
        let begun = Instant::now();
        let mut threads = Threads::new(cpus());
        let (mut bytes, mut huge) = (0, 0);
        let engine = CpuEngine::populating();
        while let Some(id) = self.store.fill(self.segment) {
            let all = self.settings.size;
            let refused = || {
                refused(format!("populating {}: {} are there, and then", size(all), size(bytes)))
            };
            let file = self.source.file(self.segment).map_err(refused())?;
            let mapping = Mapping::new(&file, self.segment).map_err(refused())?;
            let whole = self.segment as usize;
            for from in (0..whole).step_by(PROBE) {
                let part = from..(from + PROBE).min(whole);
                let (length, then) = (part.len(), Instant::now());
                let (ended, _) = at_once(&mapping, part, &engine, threads.now());
                ended.map_err(|error| ServeError::System {
                    what: format!("populating {}", size(self.settings.size)),
                    source: std::io::Error::other(error),
                })?;
                threads.measured(length as f64 / then.elapsed().as_secs_f64());
            }
            let in_huge = mapping.huge_bytes();
            drop(mapping);
            let entered = self.enter(id, Arc::new(file));
            entered.map_err(refused())?;
            self.ready(id, in_huge);
            (bytes, huge) = (bytes + self.segment, huge + in_huge);
        }
        self.threads = threads.now();
        let seconds = begun.elapsed().as_secs_f64();
        let of = if huge == bytes { String::new() } else { format!(", {} of it huge", size(huge)) };
        tell(&format!(
            "{} resident and zero in {seconds:.2} s by {} ({}{of})",
            size(self.store.bytes(|entry| entry.state == State::Ready)),
            counted(self.threads, "thread"),
            self.source.name(),
        ));
        Ok(())
    }

    /// Waits for something to happen and does what there is to do. Whether it was told to stop.
    fn turn(&mut self, listener: &OwnedFd, stop: BorrowedFd<'_>) -> Result<bool, ServeError> {
        let Some(zeroer) = &self.zeroer else { return Ok(true) };
        let bell = zeroer.bell();
        let mut waits = vec![
            PollFd::new(&stop, PollFlags::IN),
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::from_borrowed_fd(bell, PollFlags::IN),
        ];
        let full = self.clients.len() >= CLIENTS;
        waits.push(PollFd::new(listener, if full { PollFlags::empty() } else { PollFlags::IN }));
        waits.extend(self.clients.iter().map(|client| {
            let flags = match client.wants {
                Wants::Unknown(_) => PollFlags::IN,
                Wants::Memory { .. } => PollFlags::RDHUP,
                Wants::Rest(..) => PollFlags::OUT,
            };
            PollFd::new(&client.socket, flags)
        }));
        let now = Instant::now();
        let timeout = self.next().map(|then| then.saturating_duration_since(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(refused("waiting")(errno)),
        }
        self.figures.turns += 1;
        let came: Vec<_> = waits.iter().map(PollFd::revents).collect();
        drop(waits);
        let [stopped, closed, done, connected] = [0, 1, 2, 3].map(|place| !came[place].is_empty());
        if stopped {
            return Ok(true);
        }
        // First, while clients are in the order in which they were waited for.
        self.hear(&came[4..]);
        // Before leases that end: a client waits.
        if connected {
            self.accept(listener);
        }
        if closed {
            self.see_closed();
        }
        self.look();
        if done {
            self.see_done();
        }
        self.fill();
        Ok(false)
    }

    /// When there is something to do even if nothing happens.
    fn next(&self) -> Option<Instant> {
        let looks = self.looks.values().map(|(then, _)| *then);
        let clients = self.clients.iter().filter_map(|client| match client.wants {
            Wants::Unknown(until) | Wants::Rest(_, until) => Some(until),
            Wants::Memory { .. } => None,
        });
        let fill = self.fill_from > Instant::now();
        looks.chain(clients).chain(fill.then_some(self.fill_from)).min()
    }

    /// What the thread has done since.
    fn see_done(&mut self) {
        let done = self.zeroer.as_ref().map_or_else(Vec::new, Zeroer::done);
        let lied = self.see_lie();
        for Done { id, file, huge } in done {
            // It may have been dropped for another.
            if self.store.get(id).is_none() {
                continue;
            }
            let entered = match file {
                Some(file) if !self.files.contains_key(&id) => self.enter(id, file),
                _ => Ok(()),
            };
            let system = |errno: Errno| EngineError::System(errno.raw_os_error());
            let huge = huge.and_then(|huge| entered.map(|()| huge).map_err(system));
            let doubted = lied && self.is_in_place(id) || huge == Err(EngineError::Hung);
            if doubted && self.again(id) {
                continue;
            }
            let promised = match huge {
                Ok(huge) => self.ready(id, huge),
                Err(_) => {
                    self.fail(id);
                    true
                }
            };
            let waits = |client: &Client| matches!(client.wants, Wants::Memory { promise: Some(other), .. } if other == id);
            if promised && let Some(place) = self.clients.iter().position(waits) {
                let client = self.clients.swap_remove(place);
                let refused = huge.err().map(|error| format!("no memory was to be had: {error}"));
                match refused {
                    None => self.give(client, id),
                    Some(why) => self.refuse(&client, &why),
                }
            }
        }
        // Who was told to ask again.
        let waits = |client: &Client| matches!(client.wants, Wants::Memory { promise: None, .. });
        let again: Vec<_> = std::mem::take(&mut self.clients);
        let (again, others): (Vec<_>, Vec<_>) = again.into_iter().partition(waits);
        self.clients = others;
        again.into_iter().for_each(|client| self.serve(client));
    }

    /// Has memory zeroed for which there is room.
    fn fill(&mut self) {
        let waits = self.clients.iter().any(|client| matches!(client.wants, Wants::Memory { .. }));
        while !waits && Instant::now() >= self.fill_from {
            let Some(id) = self.store.fill(self.segment) else { return };
            self.renew(id, self.segment, Vec::new(), false);
        }
    }

    fn status(&self) -> Status {
        let of = |which: fn(&Entry) -> bool| self.store.bytes(which);
        let mut files: BTreeMap<u64, u64> = BTreeMap::new();
        let mut leases = Vec::new();
        for (id, entry) in self.store.entries() {
            match entry.state {
                State::Ready => *files.entry(entry.bytes).or_default() += 1,
                State::Leased(Holder { user, process }) => leases.push(Leased {
                    user,
                    process,
                    bytes: entry.bytes,
                    seconds: self.files.get(&id).map_or(0.0, |f| f.since.elapsed().as_secs_f64()),
                }),
                State::Zeroing => {}
            }
        }
        let is_ready = |id| self.store.get(id).is_some_and(|entry| entry.state == State::Ready);
        let small =
            self.small.iter().filter(|(id, _)| is_ready(**id)).map(|(_, bytes)| bytes).sum();
        let (zeroed, zeroed_cpu) = self.zeroer.as_ref().map(Zeroer::work).unwrap_or_default();
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Status {
            size: self.settings.size,
            pages: self.source.name().to_owned(),
            engine: match self.settings.method {
                Method::System => "the system",
                Method::Cuda if self.zeroer.as_ref().is_some_and(Zeroer::has_device) => {
                    "a GPU in place"
                }
                Method::Cuda => "the CPU in place, since the GPU failed",
                Method::Around => "the CPU in place, around the cache",
                Method::Through => "the CPU in place, through the cache",
            }
            .to_owned(),
            threads: self.threads as u64,
            seconds: self.started.elapsed().as_secs_f64(),
            ready: of(|entry| entry.state == State::Ready),
            zeroing: of(|entry| entry.state == State::Zeroing),
            leased: of(|entry| matches!(entry.state, State::Leased(_))),
            small,
            files: files.into_iter().map(|(bytes, number)| Files { bytes, number }).collect(),
            leases,
            zeroed,
            zeroed_cpu_seconds: zeroed_cpu.as_secs_f64(),
            cpu_seconds: Duration::try_from(cpu).map_or(0.0, |cpu| cpu.as_secs_f64()),
            ..self.figures.clone()
        }
    }
}
