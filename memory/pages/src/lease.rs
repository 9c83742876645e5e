//! Memory of `cachewise scrubd`: resident and zero when it is given, and kept by that server beyond this
//! process.
//!
//! The protocol, on a Unix socket of whole messages (`SOCK_SEQPACKET`):
//! - `lease BYTES` asks for a file of that size, rounded up to whole huge pages. The answer is `lease BYTES`
//!   with the file's descriptor, or `refused REASON`. The server answers when the memory is zero.
//! - `lease BYTES path` asks for a file that this user may also open again, as `/proc/self/fd/N`.
//! - `status` asks for the server's figures: JSON in messages, until the end.
//!
//! A lease ends when no process has the file open or mapped any more: the server sees that itself.
//!
//! No call waits for ever: a server may be stopped, or at work for others.

use crate::os::{self, Mapping};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::format;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::time::{Duration, Instant};

/// Bytes of a request, or of one message of an answer, at most.
pub const MESSAGE: usize = 16 << 10;

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// No server there.
    #[error("{socket}: expected the socket of a running `cachewise scrubd`: {source}")]
    Unreachable {
        /// The socket's path.
        socket: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The server did not answer in time: it is stopped, or zeroes for others.
    #[error("{socket}: no answer in {} s, expected one of `cachewise scrubd`", within.as_secs_f64())]
    Late {
        /// The socket's path.
        socket: String,
        /// Time waited.
        within: Duration,
    },
    /// The server's answer in its words.
    #[error("scrubd refused: {0}")]
    Refused(String),
    /// The server ended, or something else answered.
    #[error("{socket}: expected an answer of `cachewise scrubd`, found {found}")]
    Answer {
        /// The socket's path.
        socket: String,
        /// The text that came.
        found: String,
    },
}

/// The server's usual socket: the path in `CACHEWISE_SCRUBD`; else
/// `cachewise/scrubd.sock` in `XDG_RUNTIME_DIR` if there is one, and in `/run` if there is not.
#[must_use]
pub fn default_socket() -> PathBuf {
    let named = std::env::var_os("CACHEWISE_SCRUBD").filter(|path| !path.is_empty());
    named.map_or_else(
        || {
            let of = |directory: &Path| directory.join("cachewise/scrubd.sock");
            let user = std::env::var_os("XDG_RUNTIME_DIR").map(|path| of(Path::new(&path)));
            user.filter(|path| path.exists()).unwrap_or_else(|| of(Path::new("/run")))
        },
        PathBuf::from,
    )
}

/// A file of memory, resident and zero when it came.
#[derive(Debug)]
pub struct Lease {
    file: OwnedFd,
    bytes: usize,
}

impl Lease {
    /// Asks the server at `socket` for that many bytes, and waits until they are zero: 10 s, and 10 s more for
    /// each GiB.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub fn take(socket: &Path, bytes: usize) -> Result<Lease, LeaseError> {
        Lease::take_within(socket, bytes, patience(bytes) * 10)
    }

    /// [`take`](Lease::take) with a time limit of the caller's.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub fn take_within(socket: &Path, bytes: usize, within: Duration) -> Result<Lease, LeaseError> {
        Lease::ask(socket, &format!("lease {bytes}"), within)
    }

    /// [`take`](Lease::take) of a file that can be opened again by path while it is leased.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub fn take_path(socket: &Path, bytes: usize) -> Result<Lease, LeaseError> {
        Lease::ask(socket, &format!("lease {bytes} path"), patience(bytes) * 10)
    }

    fn ask(socket: &Path, request: &str, within: Duration) -> Result<Lease, LeaseError> {
        let (text, file) = Connection::open(socket, request, within)?.receive()?;
        if let Some(reason) = text.strip_prefix("refused ") {
            return Err(LeaseError::Refused(reason.to_string()));
        }
        let bytes = text.strip_prefix("lease ").and_then(|bytes| bytes.parse().ok());
        match (bytes, file) {
            (Some(bytes), Some(file)) => Ok(Lease { file, bytes }),
            _ => Err(answer(socket, &text)),
        }
    }

    /// Bytes of the file: what was asked for, rounded up to whole huge pages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The file, for those that map it themselves.
    #[must_use]
    pub fn into_file(self) -> OwnedFd {
        self.file
    }

    /// The whole file as memory; the descriptor is closed.
    pub(crate) fn map(self) -> Result<Mapping, Errno> {
        let mapping = Mapping::shared(&self.file, self.bytes, os::huge_page_size())?;
        // Some systems give huge pages only on request.
        let _ = mapping.advise_huge(true);
        Ok(mapping)
    }
}

impl AsFd for Lease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The time that a program may wait for a lease which has other memory to use: 1 s, and 1 s more for each GiB.
/// Making that much memory resident itself takes as long on a slow machine.
pub(crate) fn patience(bytes: usize) -> Duration {
    Duration::from_secs(1) + Duration::from_secs_f64(bytes as f64 / f64::from(1 << 30))
}

/// The time that the server may take to say how it is.
const STATUS: Duration = Duration::from_secs(5);

/// The figures of the server at `socket`, as JSON; waits 5 s for them at most.
///
/// # Errors
/// [`LeaseError`].
pub fn status(socket: &Path) -> Result<String, LeaseError> {
    let connection = Connection::open(socket, "status", STATUS)?;
    let mut all = String::new();
    loop {
        let (text, _) = connection.receive()?;
        if text.is_empty() {
            break;
        }
        all.push_str(&text);
    }
    if all.starts_with('{') { Ok(all) } else { Err(answer(socket, &all)) }
}

fn unreachable(socket: &Path, source: Errno) -> LeaseError {
    LeaseError::Unreachable { socket: socket.display().to_string(), source: source.into() }
}

fn answer(socket: &Path, text: &str) -> LeaseError {
    let found = if text.is_empty() { "the end".into() } else { format!("{text:?}") };
    LeaseError::Answer { socket: socket.display().to_string(), found }
}

/// A connection, on which every step has to be done by one moment.
struct Connection<'p> {
    socket: OwnedFd,
    path: &'p Path,
    within: Duration,
    end: Instant,
}

impl<'p> Connection<'p> {
    /// Connects, and sends the request.
    fn open(path: &'p Path, request: &str, within: Duration) -> Result<Self, LeaseError> {
        let made = || {
            let flags = SocketFlags::CLOEXEC;
            net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        };
        let socket = made().map_err(|errno| unreachable(path, errno))?;
        let end = Instant::now().checked_add(within).unwrap_or_else(Instant::now);
        let connection = Connection { socket, path, within, end };
        let address = SocketAddrUnix::new(path).map_err(|errno| unreachable(path, errno))?;
        // Both wait where the server accepts nobody, or reads nothing.
        connection.step(|socket| net::connect(socket, &address))?;
        connection.step(|socket| {
            net::send(socket, request.as_bytes(), SendFlags::NOSIGNAL).map(|_| ())
        })?;
        Ok(connection)
    }

    /// One call, as long as there is time: again where a signal's handler interrupts it.
    fn step<T>(&self, mut call: impl FnMut(&OwnedFd) -> Result<T, Errno>) -> Result<T, LeaseError> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let late = || LeaseError::Late {
                socket: self.path.display().to_string(),
                within: self.within,
            };
            if left.is_zero() {
                return Err(late());
            }
            // The socket's limits are in microseconds, and none of them is no limit.
            let left = left.max(Duration::from_micros(1));
            let limited = [sockopt::Timeout::Recv, sockopt::Timeout::Send]
                .into_iter()
                .try_for_each(|which| sockopt::set_socket_timeout(&self.socket, which, Some(left)));
            match limited.and_then(|()| call(&self.socket)) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(late()),
                answer => return answer.map_err(|errno| unreachable(self.path, errno)),
            }
        }
    }

    /// One message and the descriptor that came with it; no text at the end.
    fn receive(&self) -> Result<(String, Option<OwnedFd>), LeaseError> {
        use net::{RecvAncillaryBuffer, RecvAncillaryMessage};
        let mut text = std::vec![0; MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let bytes = self.step(|socket| {
            let mut parts = [IoSliceMut::new(&mut text)];
            match net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                // It ended without an answer.
                Err(Errno::CONNRESET) => Ok(0),
                received => Ok(received?.bytes),
            }
        })?;
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file = files.flatten().next();
        text.truncate(bytes);
        Ok((String::from_utf8_lossy(&text).into_owned(), file))
    }
}
