//! A receive by io_uring.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64"))]
mod here {
    use io_uring::{IoUring, opcode, types::Fd};
    use std::io;
    use std::net::TcpStream;
    use std::os::fd::AsRawFd as _;

    pub(crate) struct Ring(IoUring);

    impl Ring {
        /// The kernel's error, if it or a filter of system calls refuses.
        pub(crate) fn new() -> io::Result<Ring> {
            IoUring::new(2).map(Ring)
        }

        /// Fills the buffer, a request for each part that comes, as `read` has a call.
        pub(crate) fn receive(&mut self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<()> {
            let mut done = 0;
            while done < buffer.len() {
                let left = &mut buffer[done..];
                let bytes = u32::try_from(left.len()).unwrap_or(u32::MAX);
                let socket = Fd(stream.as_raw_fd());
                let receive = opcode::Recv::new(socket, left.as_mut_ptr(), bytes).build();
                // SAFETY: the buffer and the socket outlive the request, whose completion is waited for
                // below; nothing else touches the buffer until then.
                unsafe { self.0.submission().push(&receive) }.map_err(io::Error::other)?;
                while let Err(error) = self.0.submit_and_wait(1) {
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                let result = self.0.completion().next().map_or(0, |completion| completion.result());
                match usize::try_from(result) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(bytes) => done += bytes,
                    Err(_) => return Err(io::Error::from_raw_os_error(-result)),
                }
            }
            Ok(())
        }
    }
}

/// Without a layout of its structures there is no ring.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64")))]
mod here {
    use std::io;
    use std::net::TcpStream;

    pub(crate) enum Ring {}

    impl Ring {
        pub(crate) fn new() -> io::Result<Ring> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn receive(&mut self, _: &TcpStream, _: &mut [u8]) -> io::Result<()> {
            match *self {}
        }
    }
}

pub(super) use here::Ring;
