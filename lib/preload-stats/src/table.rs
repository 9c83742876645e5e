//! The table that is printed: lines of words with spaces between them, `operation size calls bytes` by operation and
//! octave, then the calls of the allocator, and a sentence about all.

use crate::statistics::{CLASSES, Counters, OPERATIONS, Operation};
use cachewise::Cursor;
use cachewise::os;
use core::fmt::{self, Write as _};
use core::sync::atomic::Ordering::Relaxed;

/// Writes the table; returns the number of calls.
pub(crate) fn describe(counters: &Counters, text: &mut Cursor<'_>) -> Result<u64, fmt::Error> {
    let mut path = [0; 1024];
    let (program, name) = (program(&mut path), started_as());
    text.push(b"cachewise: calls of ")?;
    match counters.ended.load(Relaxed) {
        0 | 1 => write!(text, "process {}", os::process_id())?,
        processes => write!(text, "{processes} processes")?,
    }
    write!(text, " ({}", Shown(program))?;
    if !name.is_empty() && name != file_name(program) {
        write!(text, " as {}", Shown(name))?;
    }
    writeln!(text, ")")?;
    writeln!(text, "{:<9} {:>12} {:>14} {:>18} done by", "operation", "size", "calls", "bytes")?;
    let (mut all, mut left) = ([0; 2], 0);
    for (place, operation) in OPERATIONS.into_iter().enumerate() {
        let name = operation.name();
        let mut sum = [0; 2];
        for class in 0..CLASSES {
            let [calls, bytes] = counters.of(place, class);
            if calls > 0 {
                let size = Class(class);
                let by = DoneBy(operation, class);
                writeln!(text, "{name:<9} {size:>12} {calls:>14} {bytes:>18} {by}")?;
                left += if by.is_libc() { bytes } else { 0 };
            }
            sum = [sum[0] + calls, sum[1] + bytes];
        }
        if sum[0] > 0 {
            writeln!(text, "{name:<9} {:>12} {:>14} {:>18}", "all", sum[0], sum[1])?;
        }
        all = [all[0] + sum[0], all[1] + sum[1]];
    }
    let [calls, bytes] = counters.blocks();
    writeln!(text, "{:<9} {:>12} {calls:>14} {bytes:>18} malloc, calloc, realloc", "block", "all")?;
    let [calls, bytes] = all;
    if let Some(percent) = (100 * u128::from(bytes - left)).checked_div(bytes.into()) {
        let under = if percent == 0 && left < bytes { "under 1" } else { "" };
        write!(text, "cachewise: {calls} calls, {bytes} bytes: {under}")?;
        if under.is_empty() {
            write!(text, "{percent}")?;
        }
        writeln!(text, " % of them at sizes that the profile does not leave to libc")?;
    }
    Ok(calls)
}

/// The path of the program; empty where it cannot be had.
fn program(into: &mut [u8]) -> &[u8] {
    let (link, start, room) = (c"/proc/self/exe".as_ptr(), into.as_mut_ptr(), into.len());
    // SAFETY: the path ends in NUL, and `into` is writable for its length.
    let length = unsafe { libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, link, start, room) };
    let path = into.get(..os::checked(length).unwrap_or(0)).unwrap_or(&[]);
    // A file that was replaced meanwhile, by a new version mostly.
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

/// The name that the program was started by, without folders: a link's, where it was one.
fn started_as() -> &'static [u8] {
    // SAFETY: always callable; reads the auxiliary vector.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    if name.is_null() {
        return &[];
    }
    // SAFETY: the kernel's promise (getauxval(3)): a string that ends in NUL and stays.
    file_name(unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes())
}

/// File name behind the last slash of a path.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The sizes of a class: `0`, `1`, `2..4`, `1K..2K`; the end is not included.
struct Class(usize);

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 16];
        let mut text = Cursor::new(&mut text);
        match self.0 {
            0 | 1 => write!(text, "{}", self.0)?,
            class if class + 1 == CLASSES => write!(text, "{}..", Size(class - 1))?,
            class => write!(text, "{}..{}", Size(class - 1), Size(class))?,
        }
        f.pad(core::str::from_utf8(text.written()).unwrap_or(""))
    }
}

/// The kernels for the sizes of a class, from the smallest to the largest: a class may have
/// several.
struct DoneBy(Operation, usize);

impl DoneBy {
    /// Calls `each` with the name of what does the sizes, range by range.
    fn visit(&self, mut each: impl FnMut(&'static str) -> fmt::Result) -> fmt::Result {
        let first = if self.1 == 0 { 0 } else { 1_u64 << (self.1 - 1) };
        let last = (2 * first).saturating_sub(1).max(first);
        let mut size = first;
        while size <= last {
            let decided = cachewise::decision(self.0, cachewise::Reuse::Unknown, size);
            each(decided.name())?;
            size = decided.to.max(size).saturating_add(1);
        }
        Ok(())
    }

    fn is_libc(&self) -> bool {
        let mut all = true;
        let _ = self.visit(|name| {
            all &= name == "libc";
            Ok(())
        });
        all
    }
}

impl fmt::Display for DoneBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = "";
        self.visit(|name| {
            if name != said {
                f.write_str(if said.is_empty() { "" } else { ", " })?;
                said = name;
                f.write_str(name)?;
            }
            Ok(())
        })
    }
}

/// A power of two by its exponent.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
        write!(f, "{}{}", 1u64 << (self.0 % 10), UNITS.get(self.0 / 10).unwrap_or(&"?"))
    }
}

/// Text that others chose: what does not print is shown as `?`.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            let shown = if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'?' };
            f.write_char(char::from(shown))?;
        }
        Ok(())
    }
}
