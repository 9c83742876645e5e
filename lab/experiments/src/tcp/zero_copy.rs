//! Linux's own ways around copying: `MSG_ZEROCOPY` with its completions, and `TCP_ZEROCOPY_RECEIVE`
//! (Documentation/networking/msg_zerocopy.rst and `struct tcp_zerocopy_receive` in linux/tcp.h).

use cachewise_kernels::PAGE_SIZE;
use memmap2::{MmapOptions, MmapRaw};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// A receive that takes this long will not come.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// `SO_EE_CODE_ZEROCOPY_COPIED` of linux/errqueue.h: the kernel copied after all.
const COPIED: u8 = 1;

/// `SO_EE_ORIGIN_ZEROCOPY` there.
const ZEROCOPY: u8 = 5;

/// Zero-copy sends, and what the kernel said of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZeroCopy {
    pending: u64,
    pub(super) completed: u64,
    pub(super) copied: u64,
}

/// Sets an option of a socket that is an `int`.
pub(super) fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: usize) -> io::Result<()> {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    // SAFETY: an int of ours, with its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<i32>() as u32,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn wait(socket: &TcpStream, events: PollFlags) -> io::Result<()> {
    let patience = PATIENCE.try_into().ok();
    match poll(&mut [PollFd::new(socket, events)], patience.as_ref())? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

impl ZeroCopy {
    /// Sends a message from its own pages. Completions that are there are counted; after the `last`
    /// message all are waited for, as whoever wants to write to the buffer again has to.
    pub(super) fn send(
        &mut self,
        stream: &TcpStream,
        message: &[u8],
        last: bool,
    ) -> io::Result<()> {
        let mut left = message;
        while !left.is_empty() {
            let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
            // SAFETY: bytes of a message that nobody writes, and that lives until all is completed.
            let sent =
                unsafe { libc::send(stream.as_raw_fd(), left.as_ptr().cast(), left.len(), flags) };
            match usize::try_from(sent) {
                Ok(bytes) => {
                    left = &left[bytes..];
                    self.pending += 1;
                }
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    // Too many are pending.
                    error if error.raw_os_error() == Some(libc::ENOBUFS) && self.pending > 0 => {
                        wait(stream, PollFlags::empty())?;
                    }
                    error => return Err(error),
                },
            }
            self.reap(stream)?;
        }
        while last && self.pending > 0 {
            wait(stream, PollFlags::empty())?;
            self.reap(stream)?;
        }
        Ok(())
    }

    fn reap(&mut self, stream: &TcpStream) -> io::Result<()> {
        loop {
            let mut control = [0_u64; 16];
            // SAFETY: all zeros is a message header with no buffers.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control) as _;
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            // SAFETY: a header whose control buffer is ours and aligned.
            if unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut header, flags) } < 0 {
                let error = io::Error::last_os_error();
                let none = error.kind() == io::ErrorKind::WouldBlock;
                return if none { Ok(()) } else { Err(error) };
            }
            // SAFETY: the header that the kernel has just filled.
            let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
            if first.is_null() {
                return Ok(());
            }
            // SAFETY: a control message that the kernel wrote.
            let data = unsafe { libc::CMSG_DATA(first) }.cast::<libc::sock_extended_err>();
            // SAFETY: the error queue of a TCP socket holds extended errors.
            let error = unsafe { data.read_unaligned() };
            if error.ee_errno != 0 || error.ee_origin != ZEROCOPY {
                return Err(io::Error::from_raw_os_error(error.ee_errno as i32));
            }
            let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
            self.pending = self.pending.saturating_sub(sends);
            self.completed += sends;
            self.copied += if error.ee_code & COPIED != 0 { sends } else { 0 };
        }
    }
}

/// The head of `struct tcp_zerocopy_receive`, as kernels since 4.19 know it.
#[repr(C)]
#[derive(Default)]
struct Request {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
}

/// The memory where the kernel maps what a socket has received.
pub(super) struct Mapping(MmapRaw);

impl Mapping {
    /// Room for a message of this size, in whole pages.
    pub(super) fn of(stream: &TcpStream, size: usize) -> io::Result<Mapping> {
        let mut room = MmapOptions::new();
        room.len(size.next_multiple_of(PAGE_SIZE)).map_raw_read_only(stream).map(Mapping)
    }

    /// One message of the buffer's length: pages are mapped and shown, the rest is read. How many bytes
    /// were mapped.
    pub(super) fn receive(
        &mut self,
        stream: &mut TcpStream,
        buffer: &mut [u8],
        mut shown: impl FnMut(usize, &[u8]),
    ) -> io::Result<usize> {
        let (mut done, mut mapped) = (0, 0);
        while done < buffer.len() {
            let pages = (buffer.len() - done) / PAGE_SIZE * PAGE_SIZE;
            if pages == 0 || !done.is_multiple_of(PAGE_SIZE) {
                let to = (done + 1).next_multiple_of(PAGE_SIZE).min(buffer.len());
                stream.read_exact(&mut buffer[done..to])?;
                done = to;
                continue;
            }
            let at = self.0.as_ptr().wrapping_add(done);
            let mut request = Request {
                address: at.expose_provenance() as u64,
                length: pages.min(1 << 30) as u32,
                ..Request::default()
            };
            let mut length = size_of::<Request>() as u32;
            // SAFETY: a request of ours, for pages of the mapping, of which nothing is borrowed.
            let result = unsafe {
                libc::getsockopt(
                    stream.as_raw_fd(),
                    libc::IPPROTO_TCP,
                    libc::TCP_ZEROCOPY_RECEIVE,
                    (&raw mut request).cast(),
                    &raw mut length,
                )
            };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
            if request.err != 0 {
                return Err(io::Error::from_raw_os_error(request.err.abs()));
            }
            let (now, skip) = (request.length as usize, request.recv_skip_hint as usize);
            if now > 0 {
                // SAFETY: the kernel has mapped so many bytes there, and leaves them until the next request.
                shown(done, unsafe { std::slice::from_raw_parts(at, now) });
            }
            done += now;
            mapped += now;
            if skip > 0 {
                let to = (done + skip).min(buffer.len());
                stream.read_exact(&mut buffer[done..to])?;
                done = to;
            } else if now == 0 {
                wait(stream, PollFlags::IN)?;
            }
        }
        Ok(mapped)
    }
}
