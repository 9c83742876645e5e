//! The user and the process at the other end of a connection.

use crate::store::{Holder, User};
use rustix::fd::{AsRawFd as _, OwnedFd};

/// The users that this process can tell apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Users {
    /// The number that all have who are not in this user namespace.
    overflow: Option<u32>,
}

impl Users {
    pub(super) fn new() -> Users {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let overflow = read("/proc/sys/kernel/overflowuid").trim().parse();
        Users::of(&read("/proc/self/uid_map"), overflow.unwrap_or(65534))
    }

    fn of(map: &str, overflow: u32) -> Users {
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let all = map.lines().any(|line| {
            let mut words = line.split_ascii_whitespace();
            number(words.next()) == Some(0) && number(words.nth(1)) >= Some(u64::from(u32::MAX))
        });
        Users { overflow: (!all).then_some(overflow) }
    }

    fn user(self, user: u32) -> User {
        (self.overflow != Some(user)).then_some(user)
    }

    /// The holder of what a connection asks for.
    pub(super) fn holder(self, socket: &OwnedFd) -> Option<Holder> {
        // No library's type: the process is 0 where it is in a PID namespace that this process cannot see.
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of_val(&peer) as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let place = (&raw mut peer).cast();
        // SAFETY: a place of that length.
        let refused =
            unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut length) };
        (refused == 0).then(|| Holder { user: self.user(peer.uid), process: peer.pid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overflow_user_is_nobody_unless_all_users_are_here() {
        let all = Users::of("         0          0 4294967295\n", 65534);
        assert_eq!((all.user(65534), all.user(0)), (Some(65534), Some(0)));
        // A namespace of one user; one that has a user of that number itself; no answer.
        for map in ["0 1000 1\n", "0 100000 65536\n", ""] {
            let some = Users::of(map, 65534);
            assert_eq!((some.user(65534), some.user(0)), (None, Some(0)), "{map}");
        }
    }
}
