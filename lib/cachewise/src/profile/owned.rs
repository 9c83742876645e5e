//! The owned profile: what the tuner builds and writes, and what the commands read whole.

extern crate std;

use super::{
    DecisionLine, MACHINE_DIRECTORY, MAX_BYTES, MAX_SIZE, ProfileError, ProfileText, VERSION,
    fnv1a64, write_file_name,
};
use crate::cpu::{Caches, Cpu, Signature, Text};
use crate::reuse::Reuse;
use cachewise_kernels::Operation;
use core::fmt::{self, Write as _};
use std::borrow::ToOwned;
use std::boxed::Box;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::string::{String, ToString as _};
use std::vec::Vec;

/// Refuses a pipe, which a program would wait for: who follows a profile reads it again and again.
fn no_pipe(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_fifo(&fs::metadata(path)?.file_type()) {
        return Err(io::Error::other("expected a file, found a pipe"));
    }
    Ok(())
}

/// One decision: which kernel an operation with a hint uses for a range of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Operation on memory.
    pub operation: Operation,
    /// The caller's hint.
    pub reuse: Reuse,
    /// The smallest size it decides, in bytes.
    pub from: u64,
    /// The largest size it decides; [`MAX_SIZE`] for every larger one.
    pub to: u64,
    /// The kernel's canonical name, or [`LIBC`](super::LIBC).
    pub kernel: String,
    /// Beside `libc`: the kernel for where no routine of a C library can be called.
    pub nearest: Option<String>,
}

impl Decision {
    /// For calls of these sizes that give that hint; without a `nearest`.
    #[must_use]
    pub fn new(
        operation: Operation,
        reuse: Reuse,
        (from, to): (u64, u64),
        kernel: &str,
    ) -> Decision {
        Decision { operation, reuse, from, to, kernel: kernel.to_owned(), nearest: None }
    }
}

/// The raw results a profile was decided from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Name of the file, without a directory.
    pub name: String,
    /// [`fnv1a64`] of its bytes.
    pub checksum: u64,
}

/// A per-machine decision table.
///
/// ```
/// use cachewise::Reuse;
/// use cachewise::profile::{Decision, MAX_SIZE, Profile};
/// use cachewise_kernels::Operation;
///
/// let profile = Profile {
///     written: "2026-11-21T09:00:00Z by an example".into(),
///     decisions: vec![Decision::new(Operation::Copy, Reuse::Unknown, (256, MAX_SIZE), "copy.bytes")],
///     ..Profile::here()
/// };
/// assert_eq!(Profile::parse(profile.to_text().as_bytes()), Ok(profile));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The CPU it was tuned on.
    pub cpu: Cpu,
    /// The cache sizes the tuner saw.
    pub caches: Caches,
    /// The record it came from.
    pub record: Option<Record>,
    /// When and by what, `2026-11-21T09:00:00Z by cachewise 0.1.0`; may be empty.
    pub written: String,
    /// Per operation and hint ascending and contiguous, from
    /// [`FIRST_SIZE`](super::FIRST_SIZE) to [`MAX_SIZE`]; an operation and hint without any is
    /// left to the computed defaults.
    pub decisions: Vec<Decision>,
    /// Free text, one line each.
    pub notes: Vec<String>,
}

impl Profile {
    /// One for this CPU that leaves everything to the computed defaults.
    #[must_use]
    pub fn here() -> Profile {
        Profile {
            cpu: Cpu::detect(),
            caches: Caches::detect(),
            record: None,
            written: String::new(),
            decisions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads a profile's text. Whether this CPU can follow it is
    /// [`ProfileText::check`]'s business.
    ///
    /// # Errors
    /// As [`ProfileText::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Profile, ProfileError> {
        let text = ProfileText::parse(bytes)?;
        Ok(Profile {
            cpu: Cpu { signature: text.signature(), name: Text::new(text.cpu_name()) },
            caches: text.caches(),
            record: text
                .record()
                .map(|(name, checksum)| Record { name: name.to_owned(), checksum }),
            written: text.written().to_owned(),
            decisions: text.decisions().map(Decision::from).collect(),
            notes: text.notes().map(ToOwned::to_owned).collect(),
        })
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// The file cannot be read, or what it holds is not a profile; either names the file.
    pub fn read(path: &Path) -> Result<Profile, ReadError> {
        let of = |cause| ReadError { path: path.to_owned(), cause };
        let mut bytes = Vec::new();
        // One byte more than is accepted, so that too much is seen, of a device without end too.
        let read = no_pipe(path)
            .and_then(|()| fs::File::open(path))
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
        read.map_err(|error| of(ReadCause::Io(error)))?;
        Profile::parse(&bytes).map_err(|error| of(ReadCause::Profile(Box::new(error))))
    }

    /// The profile as text. Control characters in free text become spaces.
    ///
    /// The decisions are written as they are: [`parse`](Profile::parse) says what is wrong with
    /// them.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        let (lines, sum) = (text.lines().count(), fnv1a64(text.as_bytes()));
        let _ = writeln!(text, "end {lines} fnv1a64:{sum:016x}");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let line = |text: &str| text.replace(char::is_control, " ");
        let Caches { l1d, l2, llc, clamped } = self.caches;
        writeln!(out, "cachewise-profile {VERSION}")?;
        let size = |to: u64| if to == MAX_SIZE { "max".to_owned() } else { to.to_string() };
        writeln!(out, "cpu {}", self.cpu)?;
        writeln!(out, "caches {l1d} {l2} {llc}{}", if clamped { " assumed" } else { "" })?;
        if let Some(Record { name, checksum }) = &self.record {
            writeln!(out, "record {} fnv1a64:{checksum:016x}", line(name))?;
        }
        if !self.written.is_empty() {
            writeln!(out, "written {}", line(&self.written))?;
        }
        for note in &self.notes {
            writeln!(out, "note {}", line(note))?;
        }
        for Decision { operation, reuse, from, to, kernel, nearest } in &self.decisions {
            write!(out, "decide {operation} {reuse} {from} {} {kernel}", size(*to))?;
            match nearest {
                Some(nearest) => writeln!(out, " {nearest}")?,
                None => out.push('\n'),
            }
        }
        Ok(())
    }
}

impl From<DecisionLine<'_>> for Decision {
    fn from(line: DecisionLine<'_>) -> Decision {
        let DecisionLine { operation, reuse, from, to, kernel, nearest, .. } = line;
        let nearest = nearest.map(ToOwned::to_owned);
        Decision { operation, reuse, from, to, kernel: kernel.to_owned(), nearest }
    }
}

/// Path of this user's profile for this CPU:
/// `$XDG_CONFIG_HOME/cachewise/` or `~/.config/cachewise/`, then
/// `<vendor>-<family>-<model>-<stepping>.profile`.
///
/// `None` where neither variable names an absolute directory (the XDG base directory
/// specification has relative ones ignored).
#[must_use]
pub fn user_path() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute())
    };
    let config = absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("cachewise").join(file_name()?))
}

/// Path of the profile for this CPU that all users of the machine share:
/// `/etc/cachewise/`, then the same file name. Services have no home directory.
#[must_use]
pub fn machine_path() -> Option<PathBuf> {
    Some(Path::new(MACHINE_DIRECTORY).join(file_name()?))
}

fn file_name() -> Option<String> {
    let mut name = String::new();
    write_file_name(&mut name, &Signature::detect()).ok()?;
    Some(name)
}

/// Why a file did not give a profile.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    cause: ReadCause,
}

#[derive(Debug)]
enum ReadCause {
    Io(io::Error),
    Profile(Box<ProfileError>),
}

impl ReadError {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.cause {
            ReadCause::Io(error) => write!(f, "{error}"),
            ReadCause::Profile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {}
