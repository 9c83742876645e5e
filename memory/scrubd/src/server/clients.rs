//! Clients: their requests, and the answers.

use super::files::SOON;
use super::state::{Client, Server, Wants};
use crate::memory::{mark_given, open_again};
use crate::store::{Answer, State};
use crate::zeroer::{Job, Old, Work};
use cachewise_pages::lease;
use rustix::event::PollFlags;
use rustix::fd::{AsFd as _, OwnedFd};
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

impl Server {
    /// Hears what clients say, and which have gone.
    pub(super) fn hear(&mut self, came: &[PollFlags]) {
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

    pub(super) fn accept(&mut self, listener: &OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.clients.len() < CLIENTS {
            let Ok(socket) = rustix::net::accept_with(listener, flags) else { return };
            let Some(holder) = self.users.holder(&socket) else { continue };
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
    pub(super) fn request(&mut self, mut client: Client) {
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
    pub(super) fn serve(&mut self, mut client: Client) {
        self.see_lie();
        let Wants::Memory { bytes, promise, .. } = &mut client.wants else { return };
        let bytes = *bytes;
        *promise = None;
        if !self.store.has(bytes, client.holder) {
            // Leases that ended unnoticed.
            let leased: Vec<_> =
                self.files.keys().copied().filter(|id| self.is_leased(*id)).collect();
            for id in leased {
                self.see_end(id);
            }
            if !self.store.has(bytes, client.holder)
                && self.store.refuses(bytes, client.holder).is_none()
                && let Some(why) = self.too_little(bytes)
            {
                return self.refuse(&client, &why);
            }
        }
        // The thread takes nothing meanwhile.
        let mut queue = self.zeroer.queue();
        match self.store.ask(bytes, client.holder, queue.working) {
            Answer::Lease(id) => {
                drop(queue);
                self.give(client, id);
            }
            Answer::Promise(id) => {
                drop(queue);
                *promise = Some(id);
                self.zeroer.hurry(id);
                self.clients.push(client);
            }
            Answer::Make { id, dropped } => {
                let mut old = Vec::new();
                for (id, user) in &dropped {
                    // Memory that stayed with a user had been given to it.
                    let withdrawn = queue.withdraw(*id).into_iter();
                    old.extend(
                        withdrawn.map(|old| Old { user: old.user.or(user.map(Some)), ..old }),
                    );
                }
                drop(queue);
                *promise = Some(id);
                self.figures.made += 1;
                for (id, user) in dropped {
                    let file = self.leave(id);
                    old.extend(file.map(|file| Old { file, user: user.map(Some) }));
                }
                self.zeroer.submit(Job::new(id, bytes, Work::New, old), true);
                self.clients.push(client);
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

    /// The reason why memory that is not there yet is not to be had, if the system has too little for it.
    fn too_little(&mut self, bytes: u64) -> Option<String> {
        let own = self
            .store
            .bytes(|entry| !matches!(entry.state, State::Leased(_)) && entry.promised.is_none());
        let room = self.room()?;
        let most = room.available.saturating_add(own).saturating_sub(room.margin() / 2);
        (most < bytes).then(|| {
            let [asked, most] = [bytes, most].map(cachewise_measure::units::bytes);
            format!("no memory was to be had: found a request of {asked}, available are {most}")
        })
    }

    /// Serves those clients anew who wait for that one, or for any.
    pub(super) fn serve_again(&mut self, id: Option<u64>) {
        let waits = |client: &Client| matches!(client.wants, Wants::Memory { promise, .. } if promise == id || promise.is_none());
        let (again, others) = std::mem::take(&mut self.clients).into_iter().partition(waits);
        self.clients = others;
        let again: Vec<Client> = again;
        again.into_iter().for_each(|client| self.serve(client));
    }

    /// Hands a file over. Where that fails, nobody has it, which is seen.
    pub(super) fn give(&mut self, client: Client, id: u64) {
        let Wants::Memory { bytes, by_path, since, .. } = client.wants else { return };
        self.store.lease(id, client.holder);
        let Some(file) = self.files.get_mut(&id) else { return };
        (file.since, file.by_path) = (Instant::now(), file.by_path || by_path);
        let waited = since.elapsed().as_secs_f64();
        let figures = &mut self.figures;
        if waited > 0.001 {
            figures.waited += 1;
            figures.waited_seconds += waited;
            figures.waited_longest_seconds = figures.waited_longest_seconds.max(waited);
        }
        // Marked before anybody has it: a mark, unlike a message to the manager, is not lost.
        let given = mark_given(&file.file, by_path).and_then(|()| open_again(&file.file));
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

    pub(super) fn refuse(&mut self, client: &Client, why: &str) {
        self.figures.refused += 1;
        let text = format!("refused {why}");
        let _ = rustix::net::send(&client.socket, text.as_bytes(), SendFlags::NOSIGNAL);
    }

    pub(super) fn tell_status(&mut self, mut client: Client) {
        let text = serde_json::to_string(&self.status()).unwrap_or_default();
        let mut rest = text.into_bytes();
        send_parts(&client.socket, &mut rest);
        if !rest.is_empty() {
            client.wants = Wants::Rest(rest, Instant::now() + PATIENCE);
            self.clients.push(client);
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
