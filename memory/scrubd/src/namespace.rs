//! A tmpfs with huge pages for whoever is not root: a helper process in a user namespace of its own, in
//! which it may mount, and which passes each mount on.

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The helper; it ends when this value is dropped, or this process ends.
#[derive(Debug)]
pub struct Namespace {
    socket: OwnedFd,
    child: libc::pid_t,
}

impl Namespace {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, where users may have no namespaces.
    pub fn start() -> Result<Namespace, Errno> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // Put into words before the fork: the child may not allocate.
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let maps = [format!("{uid} {uid} 1"), format!("{gid} {gid} 1")];
        // SAFETY: the child makes system calls only, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child < 0 {
            return Err(Errno::from_raw_os_error(
                std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN),
            ));
        }
        if child == 0 {
            // It keeps the socket and no other descriptor of the parent.
            let only = theirs.as_raw_fd();
            for (first, last) in [(3, only - 1), (only + 1, libc::c_int::MAX)] {
                if first <= last {
                    // SAFETY: numbers alone; nothing that owns one runs in this process again.
                    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
                }
            }
            let answer = u32::from(enter(&maps).is_err());
            let _ = send(&theirs, &answer.to_ne_bytes(), SendFlags::NOSIGNAL);
            if answer == 0 {
                serve(&theirs);
            }
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) };
        }
        drop(theirs);
        let helper = Namespace { socket: ours, child };
        let mut answer = [0; 4];
        let (read, _) = rustix::net::recv(&helper.socket, &mut answer, RecvFlags::empty())?;
        if read == 4 && answer == [0; 4] { Ok(helper) } else { Err(Errno::PERM) }
    }

    /// A tmpfs of that size, mounted nowhere.
    ///
    /// # Errors
    /// The system's.
    pub fn tmpfs(&self, bytes: u64) -> Result<OwnedFd, Errno> {
        send(&self.socket, &bytes.to_ne_bytes(), SendFlags::NOSIGNAL)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut errno = [0; 4];
        let mut parts = [IoSliceMut::new(&mut errno)];
        recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let refused = i32::from_ne_bytes(errno);
        let refused = if refused == 0 { libc::EPIPE } else { refused };
        files.flatten().next().ok_or(Errno::from_raw_os_error(refused))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let mut status = 0;
        // SAFETY: our own child, and a place for its status. It ends with the socket.
        unsafe { libc::waitpid(self.child, &raw mut status, 0) };
    }
}

/// Goes into namespaces of its own, in which this user is the same one. No allocation.
fn enter(maps: &[String; 2]) -> Result<(), Errno> {
    let last = || {
        let error = std::io::Error::last_os_error().raw_os_error();
        Errno::from_raw_os_error(error.unwrap_or(libc::EPERM))
    };
    // A process that changed its user may not write what follows otherwise.
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    // SAFETY: this process has one thread and shares nothing that it would lose.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return Err(last());
    }
    let write = |path: &core::ffi::CStr, text: &[u8]| {
        // SAFETY: a path that ends in NUL.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        if file < 0 {
            return Err(last());
        }
        // SAFETY: just opened, and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        rustix::io::write(&file, text).map(drop)
    };
    write(c"/proc/self/setgroups", b"deny")?;
    write(c"/proc/self/uid_map", maps[0].as_bytes())?;
    write(c"/proc/self/gid_map", maps[1].as_bytes())
}

/// Answers each size with a mount, until the other end is gone. No allocation.
fn serve(socket: &OwnedFd) {
    loop {
        let mut bytes = [0; 8];
        match rustix::net::recv(socket, &mut bytes, RecvFlags::empty()) {
            Ok((8, _)) => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        let mount = mount(u64::from_ne_bytes(bytes), false);
        let refused = mount.as_ref().err().map_or(0, |errno| errno.raw_os_error());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = mount.as_ref().map(|mount| [mount.as_fd()]);
        if let Ok(files) = &files {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let refused = refused.to_ne_bytes();
        let parts = [IoSlice::new(&refused)];
        if sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

/// A number in words that end in NUL.
fn decimal(mut number: u64, text: &mut [u8; 21]) -> &core::ffi::CStr {
    let mut first = text.len() - 1;
    loop {
        first -= 1;
        text[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    core::ffi::CStr::from_bytes_until_nul(&text[first..]).unwrap_or(c"0")
}

/// A tmpfs of that size with huge pages, mounted nowhere; where it is wanted, never swapped out. No
/// allocation.
///
/// # Errors
/// The system's: mounting takes `CAP_SYS_ADMIN`.
pub fn mount(bytes: u64, stays: bool) -> Result<OwnedFd, Errno> {
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    };
    let system = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, c"huge", c"always")?;
    fsconfig_set_string(&system, c"size", decimal(bytes, &mut [0; 21]))?;
    fsconfig_set_string(&system, c"mode", c"0700")?;
    if stays {
        // Linux 6.4. Without it, what nobody uses may be swapped out.
        let _ = fsconfig_set_flag(&system, c"noswap");
    }
    fsconfig_create(&system)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn numbers_in_words() {
        for number in [0, 7, 10, 1 << 30, u64::MAX] {
            let text = decimal(number, &mut [0; 21]).to_str().expect("digits").to_owned();
            assert_eq!(text, number.to_string());
        }
    }
}
