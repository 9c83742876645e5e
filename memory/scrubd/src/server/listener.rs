//! The socket that clients connect to.

use super::state::{ServeError, Settings, refused};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::path::{Path, PathBuf};

/// The socket that clients connect to.
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    /// Where it is bound, and where it will be.
    paths: Option<(PathBuf, PathBuf)>,
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
    /// Binds beside the path: clients find the socket once it answers.
    pub(super) fn new(
        settings: &Settings,
        passed: Option<OwnedFd>,
    ) -> Result<Listener, ServeError> {
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
