//! Error of a profile: where it is, what is expected there and what was found.

use crate::cpu::Text;
use crate::cursor::Cursor;
use core::fmt::{self, Write as _};

/// A piece of text in an error, cut to its length and printable.
type Piece = Text<64>;

/// Why a profile is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileError {
    line: Option<u32>,
    field: &'static str,
    expected: Piece,
    found: Piece,
    is_beyond_this_cpu: bool,
}

impl ProfileError {
    pub(super) fn new(
        line: Option<u32>,
        field: &'static str,
        expected: fmt::Arguments<'_>,
        found: fmt::Arguments<'_>,
    ) -> ProfileError {
        let (expected, found) = (piece(expected), piece(found));
        ProfileError { line, field, expected, found, is_beyond_this_cpu: false }
    }

    /// Marks the error of a line that names what this CPU, or its hypervisor, cannot run.
    pub(super) fn beyond_this_cpu(self) -> ProfileError {
        ProfileError { is_beyond_this_cpu: true, ..self }
    }

    /// The line it is about, from 1; `None` for the whole file.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// The field it is about.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns whether another CPU of this model could follow the line: the rest of the profile is followed here.
    #[must_use]
    pub fn is_beyond_this_cpu(&self) -> bool {
        self.is_beyond_this_cpu
    }
}

/// The text of some arguments, cut where it is too long.
fn piece(arguments: fmt::Arguments<'_>) -> Piece {
    let mut bytes = [0; 64];
    let mut cursor = Cursor::new(&mut bytes);
    // An error of the cursor says that the text was cut.
    let _ = cursor.write_fmt(arguments);
    Text::from_bytes(cursor.written())
}

/// `line 7, to: expected a whole number of bytes or max, found "12q"`
impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProfileError { line, field, expected, found, .. } = self;
        if let Some(line) = line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "{field}: expected {expected}, found {found}")
    }
}

impl core::error::Error for ProfileError {}
