//! Clients: their requests, and the answers.

use super::{Server, pressure};
use crate::memory::{open_again, open_to_all};
use crate::store::{Answer, Entry, Holder};
use crate::zeroer::Haste;
use cachewise_host::units::bytes as size;
use cachewise_pages::lease;
use rustix::event::PollFlags;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// The time that a client may take to say what it wants, or to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients that wait at most, and of one user at most: several users who say nothing leave room for others.
pub(super) const CLIENTS: usize = 1024;
const OF_ONE: usize = 256;
/// Clients beyond which the one that has said nothing for the longest time makes room.
const CROWD: usize = CLIENTS / 2;

/// The state of a client.
pub(super) enum Wants {
    /// No request came yet; one is waited for until then.
    Unknown(Instant),
    /// Memory that is being made.
    Memory { bytes: u64, by_path: bool, promise: u64, since: Instant },
    /// The rest of an answer, until then.
    Rest(Vec<u8>, Instant),
}

impl Wants {
    pub(super) fn events(&self) -> PollFlags {
        match self {
            Wants::Unknown(_) => PollFlags::IN,
            Wants::Memory { .. } => PollFlags::RDHUP,
            Wants::Rest(..) => PollFlags::OUT,
        }
    }

    pub(super) fn until(&self) -> Option<Instant> {
        match self {
            Wants::Unknown(until) | Wants::Rest(_, until) => Some(*until),
            Wants::Memory { .. } => None,
        }
    }

    pub(super) fn promise(&self) -> Option<u64> {
        if let Wants::Memory { promise, .. } = self { Some(*promise) } else { None }
    }
}

pub(super) struct Client {
    pub(super) socket: OwnedFd,
    holder: Holder,
    pub(super) wants: Wants,
}

impl Server<'_> {
    /// Hears what clients say, and which have gone.
    pub(super) fn hear(&mut self, came: &[PollFlags]) {
        let now = Instant::now();
        for (mut client, came) in std::mem::take(&mut self.clients).into_iter().zip(came) {
            let late = client.wants.until().is_some_and(|until| until <= now);
            match &mut client.wants {
                Wants::Unknown(_) if !came.is_empty() => self.request(client),
                Wants::Unknown(_) if late => self.refuse(&client, "no request came"),
                // It has gone.
                Wants::Memory { promise, .. } if !came.is_empty() => {
                    self.store.forget_promise(*promise);
                }
                Wants::Rest(rest, _) if !came.is_empty() && !late => {
                    send_parts(&client.socket, rest);
                    if !rest.is_empty() {
                        self.clients.push(client);
                    }
                }
                Wants::Rest(..) if late => {}
                _ => self.clients.push(client),
            }
        }
    }

    pub(super) fn accept(&mut self, listener: &OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.clients.len() < CLIENTS {
            let Ok(socket) = rustix::net::accept_with(listener, flags) else { return };
            let Some(holder) = holder(&socket) else { continue };
            let wants = Wants::Unknown(Instant::now() + PATIENCE);
            let client = Client { socket, holder, wants };
            let same = |other: &&Client| other.holder.user == holder.user;
            if self.clients.iter().filter(same).count() >= OF_ONE {
                self.refuse(&client, "too many connections of this user");
                continue;
            }
            let silent = |client: &Client| matches!(client.wants, Wants::Unknown(_));
            if self.clients.len() >= CROWD
                && let Some(place) = self.clients.iter().position(silent)
            {
                let client = self.clients.remove(place);
                self.refuse(&client, "no request came, and others wait");
            }
            self.request(client);
        }
    }

    /// Reads a request, if it is there.
    fn request(&mut self, client: Client) {
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
        let bytes = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = text.parse::<u64>().ok().filter(|bytes| digits && *bytes != 0)?;
            bytes.checked_next_multiple_of(self.source.unit())
        };
        let memory = match *words {
            ["status"] => return self.tell_status(client),
            ["lease", size] => bytes(size).map(|bytes| (bytes, false)),
            ["lease", size, "path"] => bytes(size).map(|bytes| (bytes, true)),
            _ => None,
        };
        match memory {
            Some((bytes, by_path)) => self.serve(client, bytes, by_path),
            None => {
                let accepted = "accepted lease BYTES, lease BYTES path, status";
                self.refuse(&client, &format!("found another request, {accepted}"));
            }
        }
    }

    /// Gives what is wanted, has it made, or refuses.
    fn serve(&mut self, mut client: Client, bytes: u64, by_path: bool) {
        let user = client.holder.user;
        if !self.store.has(bytes, user) {
            self.see_ends();
            if !self.store.has(bytes, user)
                && self.store.refuses(bytes, user).is_none()
                && let Some(why) = self.too_little(bytes)
            {
                return self.refuse(&client, &why);
            }
        }
        let wants = |promise| Wants::Memory { bytes, by_path, promise, since: Instant::now() };
        match self.store.ask(bytes, client.holder) {
            Answer::Lease(id) => {
                client.wants = wants(id);
                self.give(client, id);
            }
            Answer::Promise(id) => {
                client.wants = wants(id);
                self.zeroer.hurry(id);
                self.clients.push(client);
            }
            Answer::Make(id, dropped) => {
                for id in dropped {
                    self.zeroer.withdraw(id);
                    self.leave(id);
                }
                self.figures.made += 1;
                client.wants = wants(id);
                self.zeroer.submit(id, bytes, Haste::Client);
                self.clients.push(client);
            }
            Answer::Refused(why) => self.refuse(&client, &why),
        }
    }

    /// The reason why memory that is not there yet is not to be had, if the system has too little for it.
    fn too_little(&mut self, bytes: u64) -> Option<String> {
        let own = self.store.bytes(Entry::is_idle);
        let room = self.look_at_room()?;
        let most = room.available.saturating_add(own).saturating_sub(pressure::margin(room) / 2);
        (most < bytes).then(|| {
            let [asked, most] = [bytes, most].map(size);
            format!("not enough memory: {asked} requested, {most} available")
        })
    }

    /// Hands a file over. Where that fails, nobody has it, which is seen.
    pub(super) fn give(&mut self, client: Client, id: u64) {
        let Wants::Memory { bytes, by_path, since, .. } = client.wants else { return };
        self.store.lease(id, client.holder);
        let Some(file) = self.files.get_mut(&id) else { return };
        file.since = Instant::now();
        self.figures.given += 1;
        let waited = since.elapsed().as_secs_f64();
        if waited > 0.001 {
            self.figures.waited += 1;
            self.figures.waited_seconds += waited;
        }
        let opened = if by_path { open_to_all(&file.file) } else { Ok(()) };
        match opened.and_then(|()| open_again(&file.file)) {
            Ok(own) => {
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
        self.look_soon(id);
    }

    pub(super) fn refuse(&mut self, client: &Client, why: &str) {
        self.figures.refused += 1;
        let text = format!("refused {why}");
        let _ = rustix::net::send(&client.socket, text.as_bytes(), SendFlags::NOSIGNAL);
    }

    fn tell_status(&mut self, mut client: Client) {
        let mut rest = serde_json::to_vec(&self.status()).unwrap_or_default();
        send_parts(&client.socket, &mut rest);
        if !rest.is_empty() {
            client.wants = Wants::Rest(rest, Instant::now() + PATIENCE);
            self.clients.push(client);
        }
    }
}

/// The user and the process at the other end. No library's type: the process is 0 where it is in a PID namespace that this
/// process cannot see.
fn holder(socket: &OwnedFd) -> Option<Holder> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    let (level, name, place) = (libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast());
    // SAFETY: a place of that length.
    let refused =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut length) };
    (refused == 0).then_some(Holder { user: peer.uid, process: peer.pid })
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
