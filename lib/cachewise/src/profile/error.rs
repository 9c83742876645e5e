//! Errors of a profile: each case says where, what was found and what is accepted.

use super::format::{MAX_BYTES, VERSION};
use crate::cpu::Text;
use crate::reuse::Reuse;
use cachewise_kernels::{Features, Operation};
use core::fmt;

/// A piece of a damaged file, as an error shows it: at most 48 bytes, printable.
pub type Found = Text<48>;

/// Why a profile is refused. Lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// More bytes than [`MAX_BYTES`].
    TooLarge,
    /// The first line is not a profile's.
    NotAProfile {
        /// The first line.
        found: Found,
    },
    /// A format version that this library does not know.
    NewerVersion {
        /// The version.
        found: u32,
    },
    /// No `end` line: the file was cut off.
    Truncated {
        /// Complete lines found.
        lines: u32,
    },
    /// A field that cannot be read.
    Field {
        /// Line, from 1.
        line: u32,
        /// The field's name.
        field: &'static str,
        /// Text found there.
        found: Found,
        /// Forms accepted there.
        accepted: &'static str,
    },
    /// A line that may stand once stands again.
    Duplicate {
        /// The second one.
        line: u32,
        /// Its first word.
        key: &'static str,
    },
    /// A required line is absent.
    Missing {
        /// The last line.
        line: u32,
        /// The absent line's first word.
        key: &'static str,
    },
    /// A range leaves a gap after, or overlaps, the one before it.
    Range {
        /// Line, from 1.
        line: u32,
        /// The size the range starts at.
        found: u64,
        /// The size it must start at; `None` where the ranges have reached `max` already.
        accepted: Option<u64>,
    },
    /// The ranges of an operation and a hint do not reach `max`.
    Unfinished {
        /// The last line.
        line: u32,
        /// Operation of the line.
        operation: Operation,
        /// With which hint.
        reuse: Reuse,
        /// The first size without a decision.
        next: u64,
    },
    /// The number of lines is not what the `end` line says.
    LineCount {
        /// The `end` line.
        line: u32,
        /// The number it gives.
        found: u64,
        /// The lines before it.
        accepted: u32,
    },
    /// The bytes are not those that the checksum was computed over.
    Checksum {
        /// The `end` line.
        line: u32,
        /// The checksum it gives.
        found: u64,
        /// That of the bytes before it.
        accepted: u64,
    },
    /// The profile was tuned on another CPU model.
    ForeignCpu {
        /// Line, from 1.
        line: u32,
        /// The CPU it is for.
        found: Found,
        /// This CPU.
        accepted: Found,
    },
    /// No kernel of that name on this architecture.
    UnknownKernel {
        /// Line, from 1.
        line: u32,
        /// The name.
        found: Found,
    },
    /// A kernel that does something else.
    OtherOperation {
        /// Line, from 1.
        line: u32,
        /// The kernel.
        kernel: &'static str,
        /// The operation of the decision.
        operation: Operation,
    },
    /// A kernel that exists to be measured only.
    NotDeployable {
        /// Line, from 1.
        line: u32,
        /// The kernel.
        kernel: &'static str,
    },
    /// A kernel that this CPU, or its hypervisor, cannot run.
    CannotRun {
        /// Line, from 1.
        line: u32,
        /// The kernel.
        kernel: &'static str,
        /// Features that it needs and the CPU lacks.
        missing: Features,
    },
}

impl ProfileError {
    /// The line it is about, if it is about one.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.place().0
    }

    /// The field it is about.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.place().1
    }

    fn place(&self) -> (Option<u32>, &'static str) {
        use ProfileError as E;
        let (line, field) = match *self {
            E::TooLarge => return (None, "size of the file"),
            E::NotAProfile { .. } => (1, "first line"),
            E::NewerVersion { .. } => (1, "version"),
            E::Truncated { lines } => (lines, "end"),
            E::Field { line, field, .. } => (line, field),
            E::Duplicate { line, key, .. } | E::Missing { line, key, .. } => (line, key),
            E::Range { line, .. } => (line, "from"),
            E::Unfinished { line, .. } => (line, "to"),
            E::LineCount { line, .. } => (line, "number of lines"),
            E::Checksum { line, .. } => (line, "checksum"),
            E::ForeignCpu { line, .. } => (line, "cpu"),
            E::UnknownKernel { line, .. }
            | E::OtherOperation { line, .. }
            | E::NotDeployable { line, .. }
            | E::CannotRun { line, .. } => (line, "kernel"),
        };
        (Some(line), field)
    }
}

/// `line 7, to: found "12q", accepted a whole number of bytes or max`
impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ProfileError as E;
        if let Some(line) = self.line() {
            write!(f, "line {line}, ")?;
        }
        write!(f, "{}: found ", self.field())?;
        match self {
            E::TooLarge => {
                write!(f, "more than {max} bytes, accepted at most {max} bytes", max = MAX_BYTES)
            }
            E::NotAProfile { found } => {
                write!(f, "\"{found}\", accepted \"cachewise-profile {}\"", VERSION)
            }
            E::NewerVersion { found } => {
                write!(f, "{found}, accepted {VERSION} (a newer cachewise wrote it)")
            }
            E::Truncated { .. } => f.write_str("the end of the file, accepted an end line"),
            E::Field { found, accepted, .. } => write!(f, "\"{found}\", accepted {accepted}"),
            E::Duplicate { .. } => f.write_str("a second one, accepted one"),
            E::Missing { .. } => f.write_str("none, accepted one"),
            E::Range { found, accepted: Some(accepted), .. } => {
                let relation = if found > accepted { "gap" } else { "overlap" };
                write!(f, "{found} ({relation}), accepted {accepted}")
            }
            E::Range { found, accepted: None, .. } => {
                write!(f, "{found} (overlap), accepted no range after max")
            }
            E::Unfinished { operation, reuse, next, .. } => {
                write!(f, "no decision for {operation} {reuse} from {next} on, accepted max")
            }
            E::LineCount { found, accepted, .. } => write!(f, "{found}, accepted {accepted}"),
            E::Checksum { found, accepted, .. } => {
                write!(f, "fnv1a64:{found:016x}, accepted fnv1a64:{accepted:016x}")
            }
            E::ForeignCpu { found, accepted, .. } => {
                write!(f, "\"{found}\", accepted \"{accepted}\" (this CPU)")
            }
            E::UnknownKernel { found, .. } => {
                write!(f, "\"{found}\", accepted a name from `cachewise list kernels`")
            }
            E::OtherOperation { kernel, operation, .. } => {
                write!(f, "\"{kernel}\", accepted a kernel whose operation is {operation}")
            }
            E::NotDeployable { kernel, .. } => {
                write!(f, "\"{kernel}\", accepted a kernel that is not only there to be measured")
            }
            E::CannotRun { kernel, missing, .. } => {
                write!(f, "\"{kernel}\", accepted a kernel that runs without {missing}")
            }
        }
    }
}

impl core::error::Error for ProfileError {}
