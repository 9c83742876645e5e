//! The socket that clients connect to: passed by a service manager (`sd_listen_fds(3)`), or bound to a path.

use super::{ServeError, Settings, refused};
use rustix::fd::{FromRawFd as _, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::path::{Path, PathBuf};

/// Takes the socket that this process was passed; other descriptors that were passed are closed.
///
/// # Errors
/// Returns [`ServeError::Setting`] where what was passed is no socket that listens, in whole messages.
///
/// # Safety
/// Called once, and nobody else uses the descriptors that `LISTEN_FDS` counts.
pub unsafe fn passed() -> Result<Option<OwnedFd>, ServeError> {
    use rustix::net::sockopt::{socket_acceptconn, socket_type};
    let what = "what a service manager passed (LISTEN_FDS)";
    let files = sd_notify::listen_fds()
        .map_err(|source| ServeError::System { what: what.into(), source })?;
    // SAFETY: each is open (the crate has set a flag of it), and this is its only owner by the caller's promise.
    let files = files.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    let files: Vec<_> = files.collect();
    let is_none = files.is_empty();
    let listens = |socket: &OwnedFd| {
        socket_acceptconn(socket) == Ok(true) && socket_type(socket) == Ok(SocketType::SEQPACKET)
    };
    let Some(socket) = files.into_iter().find(listens) else {
        let text = "expected a socket that listens (ListenSequentialPacket=), found another file";
        return if is_none {
            Ok(None)
        } else {
            Err(ServeError::Setting(format!("{what}: {text}")))
        };
    };
    rustix::fs::fcntl_setfl(&socket, OFlags::NONBLOCK).map_err(refused(what))?;
    Ok(Some(socket))
}

/// The socket that clients connect to.
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    /// The path where it is bound, and the one where it will be.
    paths: Option<(PathBuf, PathBuf)>,
    _lock: Option<Lock>,
}

/// A file beside the socket that one server at a time has locked.
struct Lock {
    path: PathBuf,
    _file: OwnedFd,
}

impl Lock {
    /// Locks it; `None` if another server has.
    fn take(path: PathBuf) -> Result<Option<Lock>, Errno> {
        use rustix::fs::{FlockOperation, Mode, flock, fstat, open, stat};
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            let file = open(&path, flags, Mode::RUSR | Mode::WUSR)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) => return Ok(None),
                locked => locked?,
            }
            // Unless it went with its server meanwhile.
            let same = |there: rustix::fs::Stat, here: rustix::fs::Stat| {
                (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
            };
            if stat(&path).is_ok_and(|there| fstat(&file).is_ok_and(|here| same(there, here))) {
                return Ok(Some(Lock { path, _file: file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody else's: it is locked still.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A path that goes when the server does.
pub(super) struct Bound(Option<(PathBuf, u64)>);

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
    /// Takes what was passed, or binds beside the path: clients find the socket once it answers.
    pub(super) fn new(
        settings: &Settings,
        passed: Option<OwnedFd>,
    ) -> Result<Listener, ServeError> {
        if let Some(socket) = passed {
            return Ok(Listener { socket, paths: None, _lock: None });
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
        let beside = |end: &str| {
            let mut beside = path.clone().into_os_string();
            beside.push(end);
            PathBuf::from(beside)
        };
        let busy = |what: &str| {
            let text = format!("{shown}: expected a path that is not in use, found {what}");
            Err(ServeError::Setting(text))
        };
        // From before anything is looked at or replaced until the end.
        let lock = Lock::take(beside(".lock")).map_err(refused(format!("{shown}.lock")))?;
        let Some(lock) = lock else { return busy("a server at work") };
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
                return busy(if is_socket { "a server at work" } else { "another file" });
            }
        }
        let beside = beside(".new");
        let _ = std::fs::remove_file(&beside);
        let socket = new().map_err(refused("making a socket"))?;
        rustix::net::bind(&socket, &address(&beside)?).map_err(refused(shown.clone()))?;
        let listener =
            Listener { socket, paths: Some((beside.clone(), path.clone())), _lock: Some(lock) };
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
    pub(super) fn open(&self) -> Result<Bound, ServeError> {
        let Some((beside, path)) = &self.paths else { return Ok(Bound(None)) };
        let shown = || path.display().to_string();
        rustix::net::listen(&self.socket, 1024).map_err(refused(shown()))?;
        std::fs::rename(beside, path)
            .map_err(|source| ServeError::System { what: shown(), source })?;
        let inode = rustix::fs::stat(path).map_err(refused(shown()))?.st_ino;
        Ok(Bound(Some((path.clone(), inode))))
    }
}
