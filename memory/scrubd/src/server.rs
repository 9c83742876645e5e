//! The server: one thread that listens, gives, and sees leases end.

mod clients;
mod files;
mod listener;
mod peer;
mod pressure;
mod state;

use crate::memory::Source;
use crate::pressure::Host;
use crate::status::{Files, Held, Leased, Status};
use crate::store::{Entry, Holder, State, Store};
use crate::systemd::{Manager, Passed};
use crate::zeroer::{Done, Job, Method, Outcome, Work, Zeroer, promised};
use cachewise_measure::units::{bytes as size, counted};
use cachewise_pages::engine::{CudaEngine, EngineError};
use cachewise_pages::{Pace, Proved, memory};
use clients::CLIENTS;
use listener::Listener;
use peer::Users;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use state::{Client, Server, Wants, refused};
pub use state::{ServeError, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Descriptors that are not files of memory: sockets, and those that clients wait with.
const DESCRIPTORS: u64 = CLIENTS as u64 + 64;

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
    let listener = Listener::new(&settings, passed.listeners)?;
    check_files(&settings)?;
    let source = Source::find(settings.pages).map_err(|tried| ServeError::NoHugePages {
        tried: tried.join("; "),
        reserve: settings.size.div_ceil(cachewise_pages::hugetlb_size() as u64),
    })?;
    let unit = source.unit();
    // Explicit huge pages were reserved for this: nobody else gains by their going back.
    let reserved = matches!(source, Source::Hugetlb(_));
    let host = (!reserved).then(Host::new).map(|mut host| {
        let room = host.look();
        (host, Instant::now(), room)
    });
    let device = device(&mut settings, tell);
    let segment = settings.segment.unwrap_or((settings.size / 4).min(1 << 30));
    let segment = (segment / unit).max(1) * unit;
    check(&settings, segment, unit, host.as_ref().map(|(_, _, room)| room.margin()))?;
    source.shows_ends().map_err(refused(
        "the ends of leases cannot be seen here (fcntl F_SETLEASE; accepted: fs.leases-enable=1, and a system that \
         has it)",
    ))?;
    let source = Arc::new(source);
    let pace = Pace::new(settings.scrub.clone()).at_least(promised(settings.size));
    let zeroer = Zeroer::start(settings.method, pace, device, Arc::clone(&source));
    let zeroer = zeroer.map_err(|source| ServeError::System {
        what: "starting the thread that zeroes".into(),
        source,
    })?;
    if settings.method == Method::System && !zeroer.pins().are_seen() {
        tell("memory that clients keep in use after a lease is not seen here, which takes root");
    }
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let score = pressure::score();
    let mut server = Server {
        store: Store::new(settings.size / unit * unit, settings.user_most, segment),
        files: BTreeMap::new(),
        watches: BTreeMap::new(),
        inotify: None,
        told_unwatched: false,
        zeroer,
        manager: Manager::new(),
        users: Users::new(),
        clients: Vec::new(),
        looks: BTreeMap::new(),
        held_look: None,
        host,
        figures: Status::default(),
        started: Instant::now(),
        starting: Some(Instant::now()),
        fill_from: Instant::now(),
        small: BTreeMap::new(),
        score: (score, score),
        lines: Vec::new(),
        source,
        settings,
    };
    match inotify::init(flags) {
        Ok(inotify) => server.inotify = Some(inotify),
        Err(errno) => server.cannot_watch(errno, "fs.inotify.max_user_instances"),
    }
    server.adopt(passed.files);
    server.fill();
    let _path = listener.open()?;
    server.manager.ready();
    tell(&format!("serves at {}", server.settings.socket.display()));
    loop {
        let stopped = server.turn(&listener.socket, stop)?;
        server.lines.drain(..).for_each(|line| tell(&line));
        if stopped {
            return Ok(());
        }
    }
}

/// The time that a device may take for a batch.
const DEVICE_DEADLINE: Duration = Duration::from_secs(1);

/// The device that is to zero; where there is none, the CPU does.
fn device(settings: &mut Settings, tell: &mut dyn FnMut(&str)) -> Option<Proved> {
    if settings.method != Method::Cuda {
        return None;
    }
    match CudaEngine::new() {
        Ok(engine) => {
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

/// Raises a limit to what it may be. That.
fn raised(resource: Resource) -> Option<u64> {
    let most = getrlimit(resource).maximum;
    let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
    getrlimit(resource).current
}

/// Refuses sizes that the system would end this process for (SIGXFSZ): files of memory are files.
fn check_files(settings: &Settings) -> Result<(), ServeError> {
    match raised(Resource::Fsize) {
        Some(most) if most < settings.size => Err(ServeError::Setting(format!(
            "file sizes: found a limit of {}, accepted {} and more (ulimit -Hf, LimitFSIZE=)",
            size(most),
            size(settings.size),
        ))),
        _ => Ok(()),
    }
}

/// Refuses what cannot work before anything is populated.
fn check(
    settings: &Settings,
    segment: u64,
    unit: u64,
    margin: Option<u64>,
) -> Result<(), ServeError> {
    let setting = |text: String| Err(ServeError::Setting(text));
    let found = size(settings.size);
    if settings.size < unit {
        return setting(format!("--size: found {found}, accepted {} and more", size(unit)));
    }
    let most = (memory() as u64).saturating_sub(margin.unwrap_or(0));
    if settings.size > most {
        let most = size(most);
        return setting(format!(
            "--size: found {found}, accepted at most {most}: the memory there is here, less what others need"
        ));
    }
    if segment > settings.size {
        return setting(format!("--segment: found {}, accepted at most {found}", size(segment)));
    }
    if settings.keep > settings.size {
        return setting(format!("--keep: found {}, accepted at most {found}", size(settings.keep)));
    }
    let needed = settings.size / segment + DESCRIPTORS;
    if let Some(most) = raised(Resource::Nofile).filter(|most| *most < needed) {
        return setting(format!(
            "open files: found a limit of {most}, accepted {needed} and more (ulimit -Hn, LimitNOFILE=), or \
             a larger --segment"
        ));
    }
    Ok(())
}

impl Server {
    /// Waits for something to happen and does what there is to do. Returns whether it was told to stop.
    fn turn(&mut self, listener: &OwnedFd, stop: BorrowedFd<'_>) -> Result<bool, ServeError> {
        let mut waits = vec![
            PollFd::new(&stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.zeroer.bell(), PollFlags::IN),
        ];
        let full = self.clients.len() >= CLIENTS;
        waits.push(PollFd::new(listener, if full { PollFlags::empty() } else { PollFlags::IN }));
        waits.extend(self.inotify.as_ref().map(|inotify| PollFd::new(inotify, PollFlags::IN)));
        let hosts = waits.len();
        if let Some((host, ..)) = &self.host {
            waits.extend(host.watched().map(|file| PollFd::from_borrowed_fd(file, PollFlags::PRI)));
        }
        let others = waits.len();
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
        let [stopped, done, connected] = [0, 1, 2].map(|place| !came[place].is_empty());
        let closed = came[3..hosts].iter().any(|came| !came.is_empty());
        if stopped {
            return Ok(true);
        }
        // Others wait for memory: before anything else is done with it.
        self.relieve(&came[hosts..others]);
        // While clients are in the order in which they were waited for.
        self.hear(&came[others..]);
        // Before leases that end: a client waits.
        if connected {
            self.accept(listener);
        }
        if closed {
            self.see_closed();
        }
        self.look();
        self.look_at_held();
        if done {
            self.see_done();
        }
        self.fill();
        self.tell_score();
        Ok(false)
    }

    /// The next time at which there is something to do even if nothing happens.
    fn next(&self) -> Option<Instant> {
        let looks = self.looks.values().map(|(then, _)| *then);
        let clients = self.clients.iter().filter_map(|client| match client.wants {
            Wants::Unknown(until) | Wants::Rest(_, until) => Some(until),
            Wants::Memory { .. } => None,
        });
        let fill = self.fill_from > Instant::now();
        let host = self.host.as_ref().map(|(_, then, _)| *then);
        let held = self.held_look.map(|(then, _)| then);
        looks.chain(clients).chain(fill.then_some(self.fill_from)).chain(host).chain(held).min()
    }

    /// Sees what the thread has done since.
    fn see_done(&mut self) {
        let done = self.zeroer.done();
        let lied = self.see_lie();
        self.see_held();
        for Done { id, outcome } in done {
            // It may have been dropped for another.
            if self.store.get(id).is_none() {
                continue;
            }
            let (file, made) = match outcome {
                Outcome::Emptied => {
                    self.emptied(id);
                    continue;
                }
                Outcome::GivenUp => {
                    self.leave(id);
                    self.store.remove(id);
                    self.serve_again(Some(id));
                    continue;
                }
                Outcome::Made { file, huge } => (Some(file), Ok(huge)),
                Outcome::Failed { file, why } => (file, Err(why)),
            };
            if let Some(file) = file.filter(|_| !self.files.contains_key(&id)) {
                self.enter(id, file);
            }
            let doubted = lied && self.is_in_place(id) || made == Err(EngineError::Hung);
            if doubted && self.again(id) {
                continue;
            }
            let promised = match made {
                Ok(huge) => self.ready(id, huge).then_some(Ok(())),
                Err(why) => {
                    self.fail(id);
                    Some(Err(why))
                }
            };
            let waits = |client: &Client| matches!(client.wants, Wants::Memory { promise: Some(other), .. } if other == id);
            if let Some(made) = promised
                && let Some(place) = self.clients.iter().position(waits)
            {
                let client = self.clients.swap_remove(place);
                match made {
                    Ok(()) => self.give(client, id),
                    Err(why) => self.refuse(&client, &format!("no memory was to be had: {why}")),
                }
            }
        }
        // The clients that were told to ask again.
        self.serve_again(None);
    }

    /// Has memory zeroed for which there is room.
    fn fill(&mut self) {
        let waits = self.clients.iter().any(|client| matches!(client.wants, Wants::Memory { .. }));
        while !waits && Instant::now() >= self.fill_from {
            let Some(id) = self.store.fill() else { break };
            if !self.has_room() {
                self.store.remove(id);
                break;
            }
            let mut job = Job::new(id, self.store.segment(), Work::New, Vec::new());
            job.at_start = self.starting.is_some();
            self.zeroer.submit(job, false);
        }
        if self.store.bytes(|entry| entry.state == State::Zeroing) == 0
            && let Some(begun) = self.starting.take()
        {
            self.tell_start(begun);
        }
    }

    /// Tells what is there from the start.
    fn tell_start(&mut self, begun: Instant) {
        let ready = self.store.bytes(|entry| entry.state == State::Ready);
        let small: u64 = self.small.values().sum();
        let of = match small {
            0 => String::new(),
            small => format!(", {} of it huge", size(ready.saturating_sub(small))),
        };
        self.lines.push(format!(
            "{} resident and zero in {:.2} s by {} ({}{of})",
            size(ready),
            begun.elapsed().as_secs_f64(),
            counted(self.zeroer.threads(), "thread"),
            self.source.name(),
        ));
        let all = self.store.bytes(|_| true);
        if let Some((_, _, room)) = &self.host
            && all + self.store.segment() <= self.settings.size
        {
            let (size, available) = (size(self.settings.size - all), size(room.available));
            self.lines.push(format!("{size} not taken: {available} are available here"));
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
        let (zeroed, zeroed_cpu) = self.zeroer.work();
        let (ready, zeroing) =
            (of(|entry| entry.state == State::Ready), of(|entry| entry.state == State::Zeroing));
        let leased = of(|entry| matches!(entry.state, State::Leased(_)));
        let held = self.store.held();
        let all_held = held.values().sum::<u64>();
        let held = held.iter().map(|(user, bytes)| Held { user: *user, bytes: *bytes }).collect();
        let room = self.host.as_ref().map(|(_, _, room)| room);
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Status {
            size: self.settings.size,
            pages: self.source.name().to_owned(),
            engine: match self.settings.method {
                Method::System => "the system",
                Method::Cuda if self.zeroer.has_device() => "a GPU in place",
                Method::Cuda => "the CPU in place, since the GPU failed",
                Method::Around => "the CPU in place, around the cache",
                Method::Through => "the CPU in place, through the cache",
            }
            .to_owned(),
            threads: self.zeroer.threads() as u64,
            seconds: self.started.elapsed().as_secs_f64(),
            ready,
            zeroing,
            leased,
            held,
            untaken: self.settings.size.saturating_sub(ready + zeroing + leased + all_held),
            short: room.is_some_and(|room| room.missing() > 0),
            low: zeroing != 0 && self.zeroer.is_low(),
            available: room.map_or(0, |room| room.available),
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
