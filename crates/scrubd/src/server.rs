//! The server: one thread that listens, gives, and sees leases end.

use crate::memory::{Mapping, Pages, Source, empty, is_alone, open_again};
use crate::status::{Files, Leased, Status};
use crate::store::{Answer, Entry, Holder, State, Store};
use crate::systemd::{Manager, Name, Passed};
use crate::zeroer::{Done, Job, Method, Threads, Zeroer, at_once};
use cachewise_measure::units::{bytes as size, counted};
use cachewise_pages::engine::CpuEngine;
use cachewise_pages::{Scrub, cpus, lease, memory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, inotify};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a client may take to say what it wants, or to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients that wait at most, and of one user at most.
const CLIENTS: usize = 1024;
const OF_ONE: usize = 256;
/// After a file was closed, how soon it is looked again whether it was the last, and until when: the kernel
/// tells of the end of a description just before it counts it.
const SOON: Duration = Duration::from_micros(200);
const LATEST: Duration = Duration::from_secs(1);
/// After memory was refused, how long none is asked for in the background.
const HOLD_OFF: Duration = Duration::from_secs(10);
/// Bytes populated at the start between two looks at how many threads pay.
const PROBE: usize = 256 << 20;
/// Descriptors that are not files of memory: sockets, and those that clients wait with.
const DESCRIPTORS: u64 = CLIENTS as u64 + 32;

/// What the server is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of its socket.
    pub socket: PathBuf,
    /// Bytes at most.
    pub size: u64,
    /// Bytes of the files that are there from the start; `None` is a quarter of all, at most 1 GiB.
    pub segment: Option<u64>,
    /// Bytes leased to one user at most.
    pub user_most: u64,
    /// Permissions of the socket.
    pub mode: u32,
    /// The group of the socket.
    pub group: Option<u32>,
    /// Which pages.
    pub pages: Pages,
    /// What zeroes.
    pub method: Method,
    /// When it zeroes in the background.
    pub scrub: Scrub,
}

/// Why the server did not start, or ended.
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
        /// What was tried, and what came of it.
        tried: String,
        /// Pages to reserve.
        reserve: u64,
    },
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(Errno) -> ServeError {
    let what = what.into();
    move |errno| ServeError::System { what, source: errno.into() }
}

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
        source,
        settings,
    };
    server.adopt(passed.files);
    server.populate(tell)?;
    let zeroer =
        Zeroer::start(server.settings.method, server.settings.scrub.clone(), server.threads);
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

/// The socket that clients connect to.
struct Listener {
    socket: OwnedFd,
    /// Where it is bound, and where it will be.
    paths: Option<(PathBuf, PathBuf)>,
}

/// A path that goes when the server does.
struct Bound(Option<(PathBuf, u64)>);

impl Drop for Bound {
    fn drop(&mut self) {
        // Unless another server has put its own in the place.
        if let Some((path, inode)) = &self.0
            && rustix::fs::stat(path).is_ok_and(|found| found.st_ino == *inode)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((bound, _)) = &self.paths {
            let _ = std::fs::remove_file(bound);
        }
    }
}

impl Listener {
    /// Binds beside the path: clients find the socket once it answers.
    fn new(settings: &Settings, passed: Option<OwnedFd>) -> Result<Listener, ServeError> {
        if let Some(socket) = passed {
            let flags = OFlags::NONBLOCK;
            rustix::fs::fcntl_setfl(&socket, flags)
                .map_err(refused("the socket that was passed"))?;
            return Ok(Listener { socket, paths: None });
        }
        let path = &settings.socket;
        let shown = path.display().to_string();
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        if !directory.is_dir() {
            let directory = directory.display();
            let text =
                format!("{shown}: there is no directory {directory}; accepted: a path in one");
            return Err(ServeError::Setting(text));
        }
        let kind = SocketType::SEQPACKET;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let new = || rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        let address = |path: &Path| SocketAddrUnix::new(path).map_err(refused(shown.clone()));
        if path.exists() {
            let is_socket = rustix::fs::stat(path).is_ok_and(|found| {
                rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Socket
            });
            let answers = new()
                .and_then(|socket| rustix::net::connect(&socket, &SocketAddrUnix::new(path)?))
                != Err(Errno::CONNREFUSED);
            if answers || !is_socket {
                let what = if is_socket { "a server at work" } else { "another file" };
                let text = format!("{shown}: found {what}, accepted a path that is not in use");
                return Err(ServeError::Setting(text));
            }
        }
        let mut beside = path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let _ = std::fs::remove_file(&beside);
        let socket = new().map_err(refused("making a socket"))?;
        rustix::net::bind(&socket, &address(&beside)?).map_err(refused(shown.clone()))?;
        let listener = Listener { socket, paths: Some((beside.clone(), path.clone())) };
        let mode = rustix::fs::Mode::from_raw_mode(settings.mode);
        rustix::fs::chmod(&beside, mode).map_err(refused(format!("{shown}: its mode")))?;
        if let Some(group) = settings.group {
            let group = Some(rustix::fs::Gid::from_raw(group));
            rustix::fs::chown(&beside, None, group)
                .map_err(refused(format!("{shown}: its group")))?;
        }
        Ok(listener)
    }

    /// Lets clients in.
    fn open(&self) -> Result<Bound, ServeError> {
        let Some((beside, path)) = &self.paths else { return Ok(Bound(None)) };
        let shown = || path.display().to_string();
        rustix::net::listen(&self.socket, 1024).map_err(refused(shown()))?;
        std::fs::rename(beside, path)
            .map_err(|source| ServeError::System { what: shown(), source })?;
        let inode = rustix::fs::stat(path).map_err(refused(shown()))?.st_ino;
        Ok(Bound(Some((path.clone(), inode))))
    }
}

/// A file of memory, as the server has it.
struct File {
    file: Arc<OwnedFd>,
    watch: i32,
    /// Since when it is leased.
    since: Instant,
    /// Whether its client may open it again: its pages are not used again.
    by_path: bool,
    /// As what the manager keeps it.
    kept: Option<Name>,
}

/// What a client is waited for.
enum Wants {
    /// Its request, until then.
    Unknown(Instant),
    /// Memory.
    Memory { bytes: u64, by_path: bool, promise: Option<u64>, since: Instant },
    /// To read the rest, until then.
    Rest(Vec<u8>, Instant),
}

struct Client {
    socket: OwnedFd,
    holder: Holder,
    wants: Wants,
}

struct Server {
    settings: Settings,
    source: Source,
    store: Store,
    files: BTreeMap<u64, File>,
    /// Files by their watches.
    watches: BTreeMap<i32, u64>,
    inotify: OwnedFd,
    zeroer: Option<Zeroer>,
    manager: Manager,
    clients: Vec<Client>,
    /// Leases that may have ended: when it is looked next, and for how long it was waited.
    looks: BTreeMap<u64, (Instant, Duration)>,
    /// Bytes in small pages of what is ready.
    small: BTreeMap<u64, u64>,
    figures: Status,
    started: Instant,
    fill_from: Instant,
    segment: u64,
    threads: usize,
}

impl Server {
    /// Takes over what an earlier server left with the manager: what is leased, and what is proved to be zero
    /// by nobody else having had it.
    fn adopt(&mut self, files: Vec<(Name, OwnedFd)>) {
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
            if self.enter(id, file).is_ok()
                && let Some(entered) = self.files.get_mut(&id)
            {
                // Of which pages it is nothing is known.
                (entered.kept, entered.by_path) = (Some(name), true);
            } else {
                self.store.remove(id);
            }
        }
    }

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
            let entered = self.enter(id, file);
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

    fn enter(&mut self, id: u64, file: OwnedFd) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let watch = inotify::add_watch(
            &self.inotify,
            path,
            inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE,
        )?;
        self.watches.insert(watch, id);
        let file = Arc::new(file);
        let since = Instant::now();
        self.files.insert(id, File { file, watch, since, by_path: false, kept: None });
        Ok(())
    }

    /// Has no more to do with a file; it is returned, to be emptied.
    fn leave(&mut self, id: u64) -> Option<Arc<OwnedFd>> {
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
    fn ready(&mut self, id: u64, huge: u64) -> bool {
        let promised = self.store.zeroed(id);
        let bytes = self.store.get(id).map_or(0, |entry| entry.bytes);
        self.small.insert(id, bytes.saturating_sub(huge));
        self.keep(id);
        promised
    }

    /// Has the manager keep a file as what it is now.
    fn keep(&mut self, id: u64) {
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
        if closed {
            self.see_closed();
        }
        self.look();
        if done {
            self.see_done();
        }
        if connected {
            self.accept(listener);
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

    /// Files of which a description was closed.
    fn see_closed(&mut self) {
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
    fn look(&mut self) {
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

    fn is_leased(&self, id: u64) -> bool {
        self.store.get(id).is_some_and(|entry| matches!(entry.state, State::Leased(_)))
    }

    /// Whether a lease has ended; then its memory is zeroed.
    fn see_end(&mut self, id: u64) -> bool {
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
            let file = Arc::clone(&file.file);
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

    /// Has a new file made of that size, after the old ones have gone. Whether it could be begun.
    fn renew(&mut self, id: u64, bytes: u64, old: Vec<Arc<OwnedFd>>, urgent: bool) -> bool {
        let made = self.source.file(bytes).and_then(|file| self.enter(id, file));
        let file = made.ok().and_then(|()| Some(Arc::clone(&self.files.get(&id)?.file)));
        let Some(file) = file else {
            old.iter().for_each(|file| empty(file));
            self.fail(id);
            return false;
        };
        self.submit(Job { id, file, bytes, in_place: false, old, begun: None }, urgent);
        true
    }

    fn submit(&self, job: Job, urgent: bool) {
        if let Some(zeroer) = &self.zeroer {
            zeroer.submit(job, urgent);
        }
    }

    /// The system has no memory for that one.
    fn fail(&mut self, id: u64) {
        self.figures.failed += 1;
        self.store.remove(id);
        if let Some(file) = self.leave(id) {
            empty(&file);
        }
        self.fill_from = Instant::now() + HOLD_OFF;
    }

    /// What the thread has done since.
    fn see_done(&mut self) {
        let done = self.zeroer.as_ref().map_or_else(Vec::new, Zeroer::done);
        for Done { id, huge } in done {
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

    /// What clients say, and which have gone.
    fn hear(&mut self, came: &[PollFlags]) {
        let now = Instant::now();
        let clients = std::mem::take(&mut self.clients);
        let mut came = came.iter().copied();
        for mut client in clients {
            let came = came.next().unwrap_or(PollFlags::empty());
            match &mut client.wants {
                Wants::Unknown(until) if came.is_empty() => {
                    if *until > now {
                        self.clients.push(client);
                    } else {
                        self.refuse(&client, "no request came");
                    }
                }
                Wants::Unknown(_) => self.request(client),
                Wants::Memory { promise, .. } if !came.is_empty() => {
                    if let Some(id) = promise {
                        self.store.forget_promise(*id);
                    }
                }
                Wants::Rest(rest, until) if *until > now => {
                    if !came.is_empty() {
                        send_parts(&client.socket, rest);
                    }
                    if !rest.is_empty() {
                        self.clients.push(client);
                    }
                }
                Wants::Rest(..) => {}
                Wants::Memory { .. } => self.clients.push(client),
            }
        }
    }

    fn accept(&mut self, listener: &OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.clients.len() < CLIENTS {
            let Ok(socket) = rustix::net::accept_with(listener, flags) else { return };
            let Ok(peer) = rustix::net::sockopt::socket_peercred(&socket) else { continue };
            let holder =
                Holder { user: peer.uid.as_raw(), process: peer.pid.as_raw_nonzero().get() };
            let wants = Wants::Unknown(Instant::now() + PATIENCE);
            let client = Client { socket, holder, wants };
            let same = |other: &&Client| other.holder.user == holder.user;
            if self.clients.iter().filter(same).count() >= OF_ONE {
                self.refuse(&client, "too many connections of this user");
                continue;
            }
            self.request(client);
        }
    }

    /// Reads a request, if it is there.
    fn request(&mut self, mut client: Client) {
        // One byte more than is accepted shows what is longer.
        let mut text = [0; 128];
        let read = match rustix::net::recv(&client.socket, &mut text, RecvFlags::TRUNC) {
            Err(Errno::INTR | Errno::AGAIN) => return self.clients.push(client),
            // It has gone.
            Ok((_, 0)) | Err(_) => return,
            Ok((_, read)) => read,
        };
        let words = text.get(..read).and_then(|text| core::str::from_utf8(text).ok());
        let words: Vec<_> = words.unwrap_or("").split(' ').collect();
        let unit = self.source.unit();
        let bytes = |text: &str| {
            let bytes = text.parse::<u64>().ok().filter(|bytes| *bytes != 0)?;
            bytes.checked_next_multiple_of(unit)
        };
        let memory = match *words {
            ["status"] => return self.tell_status(client),
            ["lease", size] => bytes(size).map(|bytes| (bytes, false)),
            ["lease", size, "path"] => bytes(size).map(|bytes| (bytes, true)),
            _ => None,
        };
        let Some((bytes, by_path)) = memory else {
            let accepted = "found another request, accepted lease BYTES, lease BYTES path, status";
            return self.refuse(&client, accepted);
        };
        client.wants = Wants::Memory { bytes, by_path, promise: None, since: Instant::now() };
        self.serve(client);
    }

    /// Gives what is wanted, has it zeroed, or refuses.
    fn serve(&mut self, mut client: Client) {
        let Wants::Memory { bytes, promise, .. } = &mut client.wants else { return };
        let bytes = *bytes;
        let Some(mut zeroer) = self.zeroer.as_ref() else { return };
        // The thread takes nothing meanwhile.
        let mut queue = zeroer.queue();
        let mut answer = self.store.ask(bytes, client.holder, queue.working);
        if matches!(answer, Answer::Refused(_)) {
            drop(queue);
            // What ended without being seen to.
            let leased: Vec<_> =
                self.files.keys().copied().filter(|id| self.is_leased(*id)).collect();
            for id in leased {
                self.see_end(id);
            }
            let Some(again) = &self.zeroer else { return };
            zeroer = again;
            queue = zeroer.queue();
            answer = self.store.ask(bytes, client.holder, queue.working);
        }
        match answer {
            Answer::Lease(id) => {
                drop(queue);
                self.give(client, id);
            }
            Answer::Promise(id) => {
                drop(queue);
                *promise = Some(id);
                zeroer.hurry(id);
                self.clients.push(client);
            }
            Answer::Make { id, dropped } => {
                let mut old: Vec<_> = dropped.iter().flat_map(|id| queue.withdraw(*id)).collect();
                drop(queue);
                *promise = Some(id);
                self.figures.made += 1;
                old.extend(dropped.iter().filter_map(|id| self.leave(*id)));
                if self.renew(id, bytes, old, true) {
                    self.clients.push(client);
                } else {
                    self.refuse(&client, "no memory was to be had");
                }
            }
            Answer::Later => {
                drop(queue);
                self.clients.push(client);
            }
            Answer::Refused(why) => {
                drop(queue);
                self.refuse(&client, &why);
            }
        }
    }

    /// Hands a file over. Where that fails, nobody has it, which is seen.
    fn give(&mut self, client: Client, id: u64) {
        let Wants::Memory { bytes, by_path, since, .. } = client.wants else { return };
        self.store.lease(id, client.holder);
        let Some(file) = self.files.get_mut(&id) else { return };
        (file.since, file.by_path) = (Instant::now(), by_path);
        let waited = since.elapsed().as_secs_f64();
        let figures = &mut self.figures;
        if waited > 0.001 {
            figures.waited += 1;
            figures.waited_seconds += waited;
            figures.waited_longest_seconds = figures.waited_longest_seconds.max(waited);
        }
        let given = open_again(&file.file).and_then(|own| {
            if by_path {
                let user = Some(rustix::fs::Uid::from_raw(client.holder.user));
                let mine = rustix::fs::fstat(&own)?.st_uid == client.holder.user;
                if !mine {
                    rustix::fs::fchown(&own, user, None)?;
                }
            }
            Ok(own)
        });
        self.keep(id);
        match given {
            Ok(own) => {
                self.figures.given += 1;
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let files = [own.as_fd()];
                control.push(SendAncillaryMessage::ScmRights(&files));
                let text = format!("lease {bytes}");
                let parts = [IoSlice::new(text.as_bytes())];
                let flags = SendFlags::NOSIGNAL;
                let _ = rustix::net::sendmsg(&client.socket, &parts, &mut control, flags);
            }
            Err(errno) => self.refuse(&client, &format!("the file was not opened: {errno}")),
        }
        // Its end may have come before it was watched for.
        self.looks.insert(id, (Instant::now() + SOON, SOON));
    }

    fn refuse(&mut self, client: &Client, why: &str) {
        self.figures.refused += 1;
        let text = format!("refused {why}");
        let _ = rustix::net::send(&client.socket, text.as_bytes(), SendFlags::NOSIGNAL);
    }

    /// Has memory zeroed for which there is room.
    fn fill(&mut self) {
        let waits = self.clients.iter().any(|client| matches!(client.wants, Wants::Memory { .. }));
        while !waits && Instant::now() >= self.fill_from {
            let Some(id) = self.store.fill(self.segment) else { return };
            if !self.renew(id, self.segment, Vec::new(), false) {
                return;
            }
        }
    }

    fn tell_status(&mut self, mut client: Client) {
        let text = serde_json::to_string(&self.status()).unwrap_or_default();
        let mut rest = text.into_bytes();
        send_parts(&client.socket, &mut rest);
        if !rest.is_empty() {
            client.wants = Wants::Rest(rest, Instant::now() + PATIENCE);
            self.clients.push(client);
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

/// Sends as much as the other end takes; the rest stays.
fn send_parts(socket: &OwnedFd, rest: &mut Vec<u8>) {
    while !rest.is_empty() {
        let part = rest.len().min(lease::MESSAGE);
        match rustix::net::send(socket, &rest[..part], SendFlags::NOSIGNAL) {
            Ok(_) => drop(rest.drain(..part)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Err(_) => return rest.clear(),
        }
    }
}
