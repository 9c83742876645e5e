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

use crate::os::{self, Mapping};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::format;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};

/// Bytes of a request, or of one message of an answer, at most.
pub const MESSAGE: usize = 16 << 10;

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Nobody serves there.
    #[error("{socket}: accepted is the socket of a running `cachewise scrubd`: {source}")]
    Unreachable {
        /// The socket's path.
        socket: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The server's answer in its words.
    #[error("scrubd refused: {0}")]
    Refused(String),
    /// The server ended, or something else answered.
    #[error("{socket}: found {found}, accepted an answer of `cachewise scrubd`")]
    Answer {
        /// The socket's path.
        socket: String,
        /// What came.
        found: String,
    },
}

/// Where the server is unless told otherwise: the path in `CACHEWISE_SCRUBD`; else
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
    /// Asks the server at `socket` for that many bytes, and waits until they are zero.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub fn take(socket: &Path, bytes: usize) -> Result<Lease, LeaseError> {
        Lease::ask(socket, &format!("lease {bytes}"))
    }

    /// As [`take`](Lease::take), a file that can be opened again by path while it is leased.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub fn take_path(socket: &Path, bytes: usize) -> Result<Lease, LeaseError> {
        Lease::ask(socket, &format!("lease {bytes} path"))
    }

    fn ask(socket: &Path, request: &str) -> Result<Lease, LeaseError> {
        let connection = connect(socket, request)?;
        let (text, file) = receive(&connection).map_err(|source| unreachable(socket, source))?;
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
        // Where the system gives huge pages only to those that ask.
        let _ = mapping.advise_huge(true);
        Ok(mapping)
    }
}

impl AsFd for Lease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The figures of the server at `socket`, as JSON.
///
/// # Errors
/// [`LeaseError`].
pub fn status(socket: &Path) -> Result<String, LeaseError> {
    let connection = connect(socket, "status")?;
    let mut all = String::new();
    loop {
        let (text, _) = receive(&connection).map_err(|source| unreachable(socket, source))?;
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

fn connect(path: &Path, request: &str) -> Result<OwnedFd, LeaseError> {
    let connected = || -> Result<OwnedFd, Errno> {
        let socket = net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        net::send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)?;
        Ok(socket)
    };
    connected().map_err(|source| unreachable(path, source))
}

/// One message and the descriptor that came with it; no text at the end.
fn receive(socket: &OwnedFd) -> Result<(String, Option<OwnedFd>), Errno> {
    use net::{RecvAncillaryBuffer, RecvAncillaryMessage};
    let mut text = std::vec![0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut text)];
        match net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            // It ended without an answer.
            Err(Errno::CONNRESET) => return Ok((String::new(), None)),
            received => break received?,
        }
    };
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    text.truncate(received.bytes);
    Ok((String::from_utf8_lossy(&text).into_owned(), file))
}
