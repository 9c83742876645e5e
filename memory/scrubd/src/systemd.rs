//! The service manager: sockets that it passes on, files that it keeps while the server restarts
//! (`sd_listen_fds(3)`, `sd_notify(3)`).

use crate::store::{Holder, State};
use rustix::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use sd_notify::NotifyState;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Messages that wait for the manager at most. One more is lost, and the service goes on.
const WAITING: usize = 1024;

/// Descriptors that this process was passed.
#[derive(Debug, Default)]
pub struct Passed {
    /// Sockets that listen, of a socket unit, or what was passed in their place.
    pub listeners: Vec<OwnedFd>,
    /// Files of memory, with the names that an earlier server gave them.
    pub files: Vec<(Option<Name>, OwnedFd)>,
}

/// Takes the descriptors that this process was passed.
///
/// # Errors
/// They are not what they are said to be.
///
/// # Safety
/// Called once, and nobody else uses the descriptors that `LISTEN_FDS` counts.
pub unsafe fn passed() -> std::io::Result<Passed> {
    let mut passed = Passed::default();
    for (number, name) in sd_notify::listen_fds_with_names()? {
        // SAFETY: it is open (the crate has set a flag of it), and this is its only owner by the caller's promise.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        if name.starts_with(Name::PREFIX) {
            passed.files.push((Name::parse(&name), file));
        } else {
            passed.listeners.push(file);
        }
    }
    Ok(passed)
}

/// The name of a kept file: all that is to be known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its number at that server.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    /// Its state: ready, and no client had it; or leased.
    pub state: State,
}

impl Name {
    const PREFIX: &str = "cachewise-";

    /// The name in words.
    #[must_use]
    pub fn text(&self) -> String {
        let Name { id, bytes, state } = self;
        match state {
            State::Leased(Holder { user, process }) => {
                let user = user.map_or("unknown".into(), |user| user.to_string());
                format!("cachewise-leased-{id}-{bytes}-{user}-{process}")
            }
            State::Ready | State::Zeroing => format!("cachewise-new-{id}-{bytes}"),
        }
    }

    fn parse(text: &str) -> Option<Name> {
        let mut parts = text.strip_prefix(Name::PREFIX)?.split('-');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (id, bytes) = (number()?, number()?);
        let state = match kind {
            "new" => State::Ready,
            "leased" => {
                let user = match parts.next()? {
                    "unknown" => None,
                    user => Some(user.parse().ok()?),
                };
                State::Leased(Holder { user, process: parts.next()?.parse().ok()? })
            }
            _ => return None,
        };
        parts.next().is_none().then_some(Name { id, bytes, state })
    }
}

/// A message, and the file that goes with it.
type Message = (String, Option<Arc<OwnedFd>>);

/// The service manager; without one nothing is told. A thread of its own speaks with it, so that a manager that does
/// not listen holds up nobody.
#[derive(Debug)]
pub struct Manager(Option<SyncSender<Message>>);

impl Manager {
    /// The manager that the environment names.
    #[must_use]
    pub fn new() -> Manager {
        if std::env::var_os("NOTIFY_SOCKET").is_none_or(|path| path.is_empty()) {
            return Manager(None);
        }
        let (messages, waiting) = sync_channel::<Message>(WAITING);
        let speak = move || {
            for (text, file) in waiting {
                let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
                let _ = sd_notify::notify_with_fds(&[NotifyState::Custom(&text)], &files);
            }
        };
        let thread = std::thread::Builder::new().name("cw-manager".into()).spawn(speak);
        Manager(thread.ok().map(|_| messages))
    }

    /// Returns whether there is one.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it that clients are served.
    pub fn ready(&self) {
        self.send(NotifyState::Ready.to_string(), None);
    }

    /// Has it keep a file.
    pub fn keep(&self, name: &Name, file: &Arc<OwnedFd>) {
        let text = format!("FDSTORE=1\nFDPOLL=0\nFDNAME={}", name.text());
        self.send(text, Some(Arc::clone(file)));
    }

    /// Has it close a file.
    pub fn forget(&self, name: &Name) {
        self.send(format!("FDSTOREREMOVE=1\nFDNAME={}", name.text()), None);
    }

    fn send(&self, text: String, file: Option<Arc<OwnedFd>>) {
        if let Some(messages) = &self.0 {
            let _ = messages.try_send((text, file));
        }
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
        let leased = |user| State::Leased(Holder { user, process: 77 });
        for state in [State::Ready, leased(Some(1000)), leased(None)] {
            let name = Name { id: 12, bytes: 1 << 31, state };
            assert_eq!(Name::parse(&name.text()), Some(name));
        }
        // The third is what a server of an earlier version wrote of files that clients may have had.
        for other in [
            "",
            "cachewise-new-1",
            "cachewise-ready-1-2",
            "cachewise-leased-1-2-3",
            "cachewise-new-1-2-3",
            "cachewise-gone-1-2",
            "x",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
