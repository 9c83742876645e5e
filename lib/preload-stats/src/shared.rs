//! Counters that all processes of a program have together: a file in memory that `cachewise exec --stats` made before
//! it became the program (`docs/decisions/exec-stats.md`). Each process maps it and counts there; the first one, whose
//! number was the command's, prints when it ends.

use cachewise::Cursor;
use cachewise::os::{self, File};
use core::ffi::{CStr, c_int};
use core::fmt::Write as _;
use core::ptr;
use core::str::FromStr;

/// Bytes of the file.
pub(crate) const BYTES: usize = 64 << 10;

/// The file, as the environment names it: `fd:DESCRIPTOR:DEVICE:INODE:PROCESS:NAMESPACE`.
///
/// A descriptor or a process's number may have become another one's, so nothing is mapped before its device and
/// inode are compared. In another PID namespace the first process's number is another process's.
pub(crate) struct Shared {
    descriptor: c_int,
    identity: [u64; 2],
    /// Number of the process that the command became.
    first: u32,
    namespace: u64,
}

impl Shared {
    /// Parses the variable; `None` where it is a file's name.
    pub(crate) fn read(variable: &CStr) -> Option<Shared> {
        fn next<T: FromStr>(fields: &mut core::str::Split<'_, char>) -> Option<T> {
            fields.next()?.parse().ok()
        }
        let mut fields = variable.to_str().ok()?.strip_prefix("fd:")?.split(':');
        let descriptor = next(&mut fields)?;
        let identity = [next(&mut fields)?, next(&mut fields)?];
        let (first, namespace) = (next(&mut fields)?, next(&mut fields)?);
        fields.next().is_none().then_some(Shared { descriptor, identity, first, namespace })
    }

    /// The number of the process that prints; `None` where it is not in this process's PID namespace.
    pub(crate) fn printer(&self) -> Option<u32> {
        let namespace = File::open(c"/proc/self/ns/pid");
        let found = namespace.map_or(0, |file| os::identity(file.descriptor())[1]);
        (found == self.namespace).then_some(self.first)
    }

    /// Maps the file by the inherited descriptor, or where the process has closed it (Python closes what its
    /// children inherit) by the first process's; null where neither is this file.
    pub(crate) fn map(&self) -> *mut u8 {
        if os::identity(self.descriptor) == self.identity {
            return os::pages(BYTES, Some(self.descriptor));
        }
        let opened = |directory: u32, descriptor: c_int, flags: c_int| {
            let mut path = [0; 64];
            let mut path = Cursor::new(&mut path);
            match directory {
                0 => write!(path, "/proc/self/fd/{descriptor}\0").ok()?,
                process => write!(path, "/proc/{process}/fd/{descriptor}\0").ok()?,
            }
            File::open_with(CStr::from_bytes_until_nul(path.written()).ok()?, flags).ok()
        };
        // Opening another process's pipe or device would have effects: it is looked at first.
        let seen = opened(self.first, self.descriptor, libc::O_PATH);
        let seen = seen.filter(|seen| os::identity(seen.descriptor()) == self.identity);
        let file = seen.and_then(|seen| opened(0, seen.descriptor(), libc::O_RDWR));
        file.map_or(ptr::null_mut(), |file| os::pages(BYTES, Some(file.descriptor())))
    }
}
