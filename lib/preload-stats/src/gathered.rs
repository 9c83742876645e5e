//! The statistics of a program's processes in one place: a file in memory that `cachewise exec --stats` made before it
//! became the program. Each process that ends adds its own, and the first one prints all of them when it ends: no
//! process stands between the program and its caller (`docs/decisions/exec-stats.md`).
//!
//! The file begins with the [`Totals`]; the tables follow in the order in which processes ended.

use crate::os;
use crate::text::Text;
use core::ffi::{CStr, c_int};
use core::fmt::{self, Write as _};
use core::str::FromStr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes before the first table.
const FIRST: usize = 4096;

/// Sums of one process.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    /// Bytes of the classes of sizes that the profile leaves to libc.
    pub(crate) left: u64,
}

/// The sums of the processes that have ended; zero at first.
struct Totals {
    processes: AtomicU64,
    calls: AtomicU64,
    bytes: AtomicU64,
    left: AtomicU64,
}

/// The file, as the environment names it: `fd:DESCRIPTOR:DEVICE:INODE:PROCESS:NAMESPACE`.
///
/// A descriptor or a process's number may have become another one's, so nothing is written to a file before its
/// device and inode are compared. In another PID namespace the first process's number is another process's.
pub(crate) struct Gathered {
    descriptor: c_int,
    object: os::Object,
    first: u32,
    /// True if this process is the one that the command became.
    pub(crate) is_first: bool,
}

impl Gathered {
    /// Parses the variable; `None` where it is a file's name.
    pub(crate) fn read(variable: &CStr) -> Option<Gathered> {
        let text = variable.to_str().ok()?.strip_prefix("fd:")?;
        let mut fields = text.split(':');
        let descriptor = next(&mut fields)?;
        let object = os::Object { device: next(&mut fields)?, inode: next(&mut fields)? };
        let (first, namespace) = (next(&mut fields)?, next::<u64>(&mut fields)?);
        // Asked when the program is loaded: later it may see another `/proc`.
        let is_first = os::process_id() == first && os::pid_namespace() == namespace;
        fields.next().is_none().then_some(Gathered { descriptor, object, first, is_first })
    }

    /// Runs `body` with the file's descriptor: the inherited one, or where the process has closed it (Python closes
    /// what its children inherit) the first process's.
    fn with_file(&self, body: impl FnOnce(c_int)) {
        if os::object(self.descriptor) == Some(self.object) {
            return body(self.descriptor);
        }
        let mut path = [0; 64];
        let mut path = Text::new(&mut path);
        let _ = write!(path, "/proc/{}/fd/{}\0", self.first, self.descriptor);
        let Ok(path) = CStr::from_bytes_with_nul(path.written()) else { return };
        // Opening another process's pipe or device would have effects: it is looked at first.
        let Ok(seen) = os::open_to_look(path) else { return };
        if os::object(seen) == Some(self.object) {
            let mut path = [0; 64];
            let mut path = Text::new(&mut path);
            let _ = write!(path, "/proc/self/fd/{seen}\0");
            if let Ok(path) = CStr::from_bytes_with_nul(path.written())
                && let Ok(file) = os::open_to_update(path)
            {
                body(file);
                os::close(file);
            }
        }
        os::close(seen);
    }

    /// Adds what this process counted.
    pub(crate) fn add(&self, sums: &Sums, table: &[u8]) {
        self.with_file(|file| {
            if let Some(totals) = totals(file) {
                totals.processes.fetch_add(1, Relaxed);
                totals.calls.fetch_add(sums.calls, Relaxed);
                totals.bytes.fetch_add(sums.bytes, Relaxed);
                totals.left.fetch_add(sums.left, Relaxed);
            }
            // A limit on the size of files is no reason to say anything in a program's child.
            let _ = os::write_all(file, table);
        });
    }

    /// Prints what all other processes added, what this one counted, and the sum.
    pub(crate) fn print(&self, to: c_int, sums: &Sums, table: &[u8], part: &mut [u8]) {
        let (mut processes, mut calls, mut bytes, mut left) =
            (1, sums.calls, sums.bytes, sums.left);
        self.with_file(|file| {
            if let Some(totals) = totals(file) {
                processes += totals.processes.load(Relaxed);
                calls += totals.calls.load(Relaxed);
                bytes += totals.bytes.load(Relaxed);
                left += totals.left.load(Relaxed);
            }
            let mut at = FIRST;
            while let Ok(length @ 1..) = os::read_at(file, part, at) {
                if os::write_all(to, part.get(..length).unwrap_or(&[])).is_err() {
                    break;
                }
                at += length;
            }
        });
        let mut line = [0; 256];
        let mut line = Text::new(&mut line);
        let _ = summary(&mut line, processes, &Sums { calls, bytes, left });
        let _ = os::write_all(to, table).and_then(|()| os::write_all(to, line.written()));
    }
}

fn next<T: FromStr>(fields: &mut core::str::Split<'_, char>) -> Option<T> {
    fields.next()?.parse().ok()
}

/// The beginning of the file, as memory that all processes share.
fn totals(file: c_int) -> Option<&'static Totals> {
    let start = os::shared_page(file)?;
    // SAFETY: a page for the life of the process, aligned; atomics only, and any bytes are numbers. The file has
    // that page for ever: it is sealed against becoming smaller.
    Some(unsafe { &*start.cast::<Totals>() })
}

/// Prints the calls of all processes together, and the part that the library can change; nothing without a call.
fn summary(text: &mut Text<'_>, processes: u64, all: &Sums) -> fmt::Result {
    let Some(per_cent) =
        (100 * u128::from(all.bytes - all.left.min(all.bytes))).checked_div(all.bytes.into())
    else {
        return Ok(());
    };
    text.push(b"cachewise: ");
    match processes {
        1 => text.push(b"the process"),
        _ => write!(text, "all {processes} processes")?,
    }
    write!(text, ": {} calls, {}: ", all.calls, Size(all.bytes))?;
    if all.left == all.bytes {
        text.push(b"nothing to gain: the profile leaves these sizes to libc\n");
        return Ok(());
    }
    if per_cent == 0 {
        text.push(b"under ");
    }
    writeln!(
        text,
        "{} % of the bytes are at sizes that the library does itself; `cachewise advise -- PROGRAM` measures what \
         that gains",
        per_cent.max(1)
    )
}

/// Bytes in the largest unit of which there is one, with three digits.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let power = self.0.checked_ilog2().unwrap_or(0) / 10;
        let unit = UNITS.get(power as usize).unwrap_or(&"?");
        let (whole, rest) = (self.0 >> (10 * power), self.0 & ((1 << (10 * power)) - 1));
        let hundredths = (u128::from(rest) * 100) >> (10 * power);
        match (whole, hundredths) {
            (_, 0) | (100.., _) => write!(f, "{whole} {unit}"),
            (10.., _) => write!(f, "{whole}.{} {unit}", hundredths / 10),
            _ => write!(f, "{whole}.{hundredths:02} {unit}"),
        }
    }
}
