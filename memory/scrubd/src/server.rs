//! The server: one thread that listens, gives, and sees leases end.

mod clients;
mod leases;
mod listener;
mod pressure;

use crate::memory::{Pages, Source};
use crate::status::{Files, Leased, Status};
use crate::store::{Entry, Holder, State, Store};
use crate::zeroer::{Done, Haste, Zeroer};
use cachewise_host::units::bytes as size;
use cachewise_host::{Groups, Room, Tree};
use cachewise_pages::{Pace, Scrub};
use clients::{CLIENTS, Client};
use leases::File;
use listener::Listener;
pub use listener::passed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Descriptors that are not files of memory: sockets, and those that clients wait with.
const DESCRIPTORS: u64 = CLIENTS as u64 + 64;
/// Bytes a second that are zeroed beside busy threads at least: 1 GiB in 8 s. The work is theirs to bear in any case; a
/// lower rate only spreads it, and leaves the next client without memory for longer.
const PROMISED: u64 = 128 << 20;
/// Seconds in which all that a large server holds is zeroed beside busy threads.
const PROMISED_SECONDS: u64 = 600;
/// After memory was refused or given back, the time in which none is taken in the background.
const QUIET: Duration = Duration::from_secs(10);
/// The longest time between two looks at the machine's memory, or at a lease that the system does not watch.
const LOOK: Duration = Duration::from_secs(1);

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
    /// The limits of zeroing in the background.
    pub scrub: Scrub,
}

/// The reason why the server did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting is outside what is accepted.
    #[error("{0}")]
    Setting(String),
    /// No source of huge pages: what was tried, and what each needs.
    #[error(
        "no huge pages here ({0}), and leases of small pages gain nothing; --pages small insists"
    )]
    NoHugePages(String),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// The request.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(Errno) -> ServeError {
    let what = what.into();
    move |errno| ServeError::System { what, source: errno.into() }
}

struct Server<'t> {
    settings: Settings,
    source: Source,
    store: Store,
    files: BTreeMap<u64, File>,
    /// Files by their watches.
    watches: BTreeMap<i32, u64>,
    /// The descriptor that tells of closed files.
    inotify: OwnedFd,
    zeroer: Zeroer,
    clients: Vec<Client>,
    /// Leases that may have ended: the time of the next look, and the pause before it.
    looks: BTreeMap<u64, (Instant, Duration)>,
    /// The control groups, where the memory is not reserved and others gain by what is given back.
    host: Option<Groups>,
    room: Room,
    next_look: Instant,
    figures: Status,
    started: Instant,
    /// True until all memory was there for the first time.
    starting: bool,
    fill_from: Instant,
    /// The score that the killer was told, and the one that was there.
    score: (i32, i32),
    tell: &'t mut dyn FnMut(&str),
}

/// Serves until `stop` can be read, on the socket that was `passed` or one of its own. `tell` gets a line of what goes on.
///
/// # Errors
/// Returns [`ServeError`] where the settings, the system or its memory do not allow it.
pub fn serve(
    settings: Settings,
    passed: Option<OwnedFd>,
    stop: BorrowedFd<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ServeError> {
    let listener = Listener::new(&settings, passed)?;
    check_files(&settings)?;
    let source = Source::find(settings.pages).map_err(ServeError::NoHugePages)?;
    // Nobody else gains by explicit huge pages' going back.
    let host = (!matches!(source, Source::Hugetlb(_))).then(Groups::of_process);
    let room = Room::of_process();
    let segment = check(&settings, source.unit(), host.as_ref().map(|_| room))?;
    let shown = "the ends of leases cannot be seen here (fcntl F_SETLEASE; accepted: fs.leases-enable=1, and a system \
                 that has it)";
    match source.shows_ends() {
        Ok(true) => {}
        Ok(false) => return Err(refused(shown)(Errno::OPNOTSUPP)),
        Err(errno) => return Err(refused(shown)(errno)),
    }
    let pace = Pace::new(settings.scrub.clone()).at_least(promised(settings.size) as f64);
    let zeroer = Zeroer::start(source, pace).map_err(|source| ServeError::System {
        what: "starting the thread that zeroes".into(),
        source,
    })?;
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let watching = "watching files (inotify; accepted: a larger fs.inotify.max_user_instances)";
    let now = Instant::now();
    let score = pressure::score();
    let mut server = Server {
        store: Store::new(
            settings.size / source.unit() * source.unit(),
            settings.user_most,
            segment,
        ),
        files: BTreeMap::new(),
        watches: BTreeMap::new(),
        inotify: inotify::init(flags).map_err(refused(watching))?,
        zeroer,
        clients: Vec::new(),
        looks: BTreeMap::new(),
        host,
        room,
        next_look: now,
        figures: Status::default(),
        started: now,
        starting: true,
        fill_from: now,
        score: (score, score),
        source,
        settings,
        tell,
    };
    server.fill();
    let _path = listener.open()?;
    // A manager that does not listen holds up nobody.
    std::thread::spawn(|| sd_notify::notify(&[sd_notify::NotifyState::Ready]));
    (server.tell)(&format!("serves at {}", server.settings.socket.display()));
    while !server.turn(&listener.socket, stop)? {}
    Ok(())
}

/// Bytes a second that a server of that size zeroes beside busy threads at least.
fn promised(size: u64) -> u64 {
    PROMISED.max(size / PROMISED_SECONDS)
}

/// Raises a limit to what it may be; returns the limit.
fn raised(resource: Resource) -> Option<u64> {
    let most = getrlimit(resource).maximum;
    let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
    getrlimit(resource).current
}

/// Refuses sizes that the system would end this process for (SIGXFSZ): files of memory are files.
fn check_files(settings: &Settings) -> Result<(), ServeError> {
    match raised(Resource::Fsize) {
        Some(most) if most < settings.size => Err(ServeError::Setting(format!(
            "file sizes: expected a limit of {} or more (ulimit -Hf, LimitFSIZE=), found {}",
            size(settings.size),
            size(most),
        ))),
        _ => Ok(()),
    }
}

/// Refuses what cannot work before anything is populated; returns the size of files.
fn check(settings: &Settings, unit: u64, room: Option<Room>) -> Result<u64, ServeError> {
    let room = room.unwrap_or_else(Room::of_process);
    let most = room.whole.saturating_sub(pressure::margin(room));
    let segment = settings.segment.unwrap_or((settings.size / 4).min(1 << 30));
    for (option, found, least, most) in [
        ("--size", settings.size, unit, most),
        ("--segment", segment, 0, settings.size),
        ("--keep", settings.keep, 0, settings.size),
        ("--user-limit", settings.user_most, unit, u64::MAX),
    ] {
        if found < least {
            let text = format!("{option}: expected {} or more, found {}", size(least), size(found));
            return Err(ServeError::Setting(text));
        }
        if found > most {
            let text = format!("{option}: expected at most {}, found {}", size(most), size(found));
            return Err(ServeError::Setting(text));
        }
    }
    let segment = (segment / unit).max(1) * unit;
    let needed = settings.size / segment + DESCRIPTORS;
    match raised(Resource::Nofile).filter(|most| *most < needed) {
        Some(most) => Err(ServeError::Setting(format!(
            "open files: expected a limit of {needed} or more (ulimit -Hn, LimitNOFILE=) or a larger --segment, found {most}"
        ))),
        None => Ok(segment),
    }
}

impl Server<'_> {
    /// Waits for something to happen and does what there is to do. Returns whether it was told to stop.
    fn turn(&mut self, listener: &OwnedFd, stop: BorrowedFd<'_>) -> Result<bool, ServeError> {
        let full = self.clients.len() >= CLIENTS;
        let mut waits = vec![
            PollFd::new(&stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.zeroer.bell(), PollFlags::IN),
            PollFd::new(listener, if full { PollFlags::empty() } else { PollFlags::IN }),
            PollFd::new(&self.inotify, PollFlags::IN),
        ];
        let others = waits.len();
        let clients = self.clients.iter();
        waits.extend(clients.map(|client| PollFd::new(&client.socket, client.wants.events())));
        let timeout = self.next().map(|then| then.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(refused("waiting")(errno)),
        }
        let came: Vec<_> = waits.iter().map(PollFd::revents).collect();
        drop(waits);
        let [stopped, done, connected, closed] = [0, 1, 2, 3].map(|place| !came[place].is_empty());
        if stopped {
            return Ok(true);
        }
        // Others wait for memory: before anything else is done with it.
        self.relieve();
        // While clients are in the order in which they were waited for.
        self.hear(&came[others..]);
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
        self.tell_score();
        Ok(false)
    }

    /// The next time at which there is something to do even if nothing happens.
    fn next(&self) -> Option<Instant> {
        let looks = self.looks.values().map(|(then, _)| *then);
        let clients = self.clients.iter().filter_map(|client| client.wants.until());
        let fill = Some(self.fill_from).filter(|then| *then > Instant::now());
        let host = self.host.as_ref().map(|_| self.next_look);
        looks.chain(clients).chain(fill).chain(host).min()
    }

    /// Takes what the thread has made since.
    fn see_done(&mut self) {
        for Done { id, made } in self.zeroer.done() {
            let waits = |client: &Client| client.wants.promise() == Some(id);
            let client = self.clients.iter().position(waits);
            let client = client.map(|place| self.clients.swap_remove(place));
            match made {
                Ok((file, huge)) => {
                    self.enter(id, file, huge);
                    self.store.zeroed(id);
                    if let Some(client) = client {
                        self.give(client, id);
                    }
                }
                Err(errno) => {
                    self.figures.failed += 1;
                    self.store.remove(id);
                    self.fill_from = Instant::now() + QUIET;
                    if let Some(client) = client {
                        self.refuse(&client, &format!("no memory was to be had: {errno}"));
                    }
                }
            }
        }
    }

    /// Has memory zeroed for which there is room.
    fn fill(&mut self) {
        while Instant::now() >= self.fill_from {
            let Some(id) = self.store.fill() else { break };
            if !self.has_room() {
                self.store.remove(id);
                break;
            }
            let haste = if self.starting { Haste::Start } else { Haste::Background };
            self.zeroer.submit(id, self.store.segment(), haste);
        }
        if self.starting && self.store.bytes(|entry| entry.state == State::Zeroing) == 0 {
            self.starting = false;
            let Status { ready, small, untaken, available, .. } = self.status();
            let text = format!(
                "{} resident and zero in {:.2} s ({}, {} of it huge)",
                size(ready),
                self.started.elapsed().as_secs_f64(),
                self.source.name(),
                size(ready - small),
            );
            (self.tell)(&text);
            if untaken >= self.store.segment() {
                let [untaken, available] = [untaken, available].map(size);
                (self.tell)(&format!("{untaken} not taken: {available} are available here"));
            }
        }
    }

    fn status(&self) -> Status {
        let of = |which: fn(&Entry) -> bool| self.store.bytes(which);
        let mut files: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut leases, mut small) = (Vec::new(), 0);
        for (id, entry) in self.store.entries() {
            let Some(file) = self.files.get(&id) else { continue };
            match entry.state {
                State::Ready => {
                    *files.entry(entry.bytes).or_default() += 1;
                    small += entry.bytes.saturating_sub(file.huge);
                }
                State::Leased(Holder { user, process }) => {
                    let seconds = file.since.elapsed().as_secs_f64();
                    leases.push(Leased { user, process, bytes: entry.bytes, seconds });
                }
                State::Zeroing => {}
            }
        }
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Status {
            size: self.settings.size,
            pages: self.source.name().to_owned(),
            seconds: self.started.elapsed().as_secs_f64(),
            ready: of(|entry| entry.state == State::Ready),
            zeroing: of(|entry| entry.state == State::Zeroing),
            leased: of(|entry| matches!(entry.state, State::Leased(_))),
            untaken: self.settings.size - of(|_| true),
            short: self.host.is_some() && pressure::missing(self.room) > 0,
            available: self.host.as_ref().map_or(0, |_| self.room.available),
            small,
            files: files.into_iter().map(|(bytes, number)| Files { bytes, number }).collect(),
            leases,
            zeroed: self.zeroer.zeroed(),
            cpu_seconds: Duration::try_from(cpu).map_or(0.0, |cpu| cpu.as_secs_f64()),
            ..self.figures.clone()
        }
    }

    /// Looks at the memory that is left.
    fn look_at_room(&mut self) -> Option<Room> {
        let groups = self.host.as_ref()?;
        self.room = Room::of(&Tree::default(), groups);
        let idle = self.store.bytes(Entry::is_idle);
        // With nothing to give there is nothing to be quick about.
        let pause = if idle == 0 { LOOK } else { pressure::pause(self.room).min(LOOK) };
        self.next_look = Instant::now() + pause;
        Some(self.room)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn beside_busy_threads_a_gib_takes_8_seconds_and_a_large_server_ten_minutes() {
        for (gib, seconds) in [(1, 8), (10, 80), (750, 600), (4096, 600)] {
            assert_eq!((gib << 30) / super::promised(gib << 30), seconds, "{gib} GiB");
        }
    }
}
