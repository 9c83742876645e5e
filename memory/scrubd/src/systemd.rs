//! What systemd passes to a service, and keeps for it while it restarts (`sd_listen_fds(3)`,
//! `sd_notify(3)`).

use crate::store::{Holder, State};
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sendmsg_addr,
};
use std::ffi::OsString;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;

/// The first descriptor that a service is passed.
const FIRST: i32 = 3;

/// What this process was passed.
#[derive(Debug, Default)]
pub struct Passed {
    /// A socket that listens, of a socket unit.
    pub listener: Option<OwnedFd>,
    /// Files of memory, with the names that an earlier server gave them.
    pub files: Vec<(Name, OwnedFd)>,
}

/// Takes what this process was passed.
///
/// # Safety
/// Called once, and nobody else uses the descriptors that `LISTEN_FDS` counts.
pub unsafe fn passed() -> Passed {
    let of = |name| std::env::var(name).ok();
    let own = std::process::id().to_string();
    let mut passed = Passed::default();
    if of("LISTEN_PID") != Some(own) {
        return passed;
    }
    let count = of("LISTEN_FDS").and_then(|count| count.parse::<i32>().ok()).unwrap_or(0);
    let names = of("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    for number in FIRST..FIRST.saturating_add(count.min(1 << 20)) {
        // SAFETY: the caller's promise.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let _ = rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC);
        match names.next().and_then(Name::parse) {
            Some(name) => passed.files.push((name, file)),
            None => passed.listener = Some(file),
        }
    }
    passed
}

/// The name of a kept file: what is to be known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its number at that server.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    /// Its state: ready or leased.
    pub state: State,
}

impl Name {
    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        let Name { id, bytes, state } = self;
        match state {
            State::Leased(Holder { user, process }) => {
                format!("cachewise-leased-{id}-{bytes}-{user}-{process}")
            }
            State::Ready | State::Zeroing => format!("cachewise-ready-{id}-{bytes}"),
        }
    }

    fn parse(text: &str) -> Option<Name> {
        let mut parts = text.strip_prefix("cachewise-")?.split('-');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (id, bytes) = (number()?, number()?);
        let state = match kind {
            "ready" => State::Ready,
            "leased" => {
                let user = u32::try_from(number()?).ok()?;
                State::Leased(Holder { user, process: i32::try_from(number()?).ok()? })
            }
            _ => return None,
        };
        Some(Name { id, bytes, state })
    }
}

/// The service manager; without one nothing is told.
#[derive(Debug)]
pub struct Manager(Option<(OwnedFd, OsString)>);

impl Manager {
    /// As the environment says.
    #[must_use]
    pub fn new() -> Manager {
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        );
        Manager(socket.ok().zip(std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())))
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it something.
    pub fn tell(&self, text: &str) {
        self.send(text, None);
    }

    /// Has it keep a file.
    pub fn keep(&self, name: &Name, file: &OwnedFd) {
        self.send(&format!("FDSTORE=1\nFDPOLL=0\nFDNAME={}", name.text()), Some(file));
    }

    /// Has it close a file.
    pub fn forget(&self, name: &Name) {
        self.send(&format!("FDSTOREREMOVE=1\nFDNAME={}", name.text()), None);
    }

    fn send(&self, text: &str, file: Option<&OwnedFd>) {
        let Some((socket, path)) = &self.0 else { return };
        let address = match path.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name),
            None => SocketAddrUnix::new(path.as_os_str()),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = file.map(|file| [file.as_fd()]);
        if let Some(files) = &files {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let parts = [IoSlice::new(text.as_bytes())];
        // A manager that does not listen loses what it is told, and the service goes on.
        let _ = address.and_then(|address| {
            sendmsg_addr(socket, &address, &parts, &mut control, SendFlags::NOSIGNAL)
        });
    }
}

impl Default for Manager {
    fn default() -> Manager {
        Manager::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        for state in [State::Ready, State::Leased(Holder { user: 1000, process: 77 })] {
            let name = Name { id: 12, bytes: 1 << 31, state };
            assert_eq!(Name::parse(&name.text()), Some(name));
        }
        for other in ["", "cachewise-ready-1", "cachewise-leased-1-2-3", "cachewise-gone-1-2", "x"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
