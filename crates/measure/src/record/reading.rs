//! Reading a record, and saying precisely what is wrong with one.

use super::names::OLD_CANDIDATES;
use super::{Decisions, Figure, Header, Record, Row, SCHEMA_VERSION};
use crate::PairedRatio;
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::{fs, io};

/// Why a record was refused. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// What it holds cannot be a record's, or cannot stand where it does.
    #[error("{at}: {what}")]
    Refused {
        /// The file, and the line where it is one's.
        at: String,
        /// What was found, and what would be accepted.
        what: String,
    },
}

/// No record of ours comes near, packed or not; what is longer is none, as a device without end.
pub const MOST_BYTES: u64 = 1 << 30;

/// What is in a file.
///
/// # Errors
/// The system's, or that there is more than [`MOST_BYTES`].
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    if file.take(MOST_BYTES + 1).read_to_end(&mut bytes)? as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("more than {MOST_BYTES} bytes")));
    }
    Ok(bytes)
}

/// How a gzip file begins (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a whole record, unpacking it where it is compressed by gzip.
///
/// # Errors
/// [`RecordError`] for whatever keeps it from being one.
pub fn read(path: &Path) -> Result<Record, RecordError> {
    let file = path.display().to_string();
    let mut data = bytes(path).map_err(|source| RecordError::Io { file: file.clone(), source })?;
    if data.starts_with(&GZIP) {
        let packed = std::mem::take(&mut data);
        let unpacked = MultiGzDecoder::new(&*packed).take(MOST_BYTES).read_to_end(&mut data);
        unpacked.map_err(|error| RecordError::Refused {
            at: file.clone(),
            what: format!("not unpacked: {error}; accepted: a whole gzip file"),
        })?;
    }
    read_text(&file, &String::from_utf8_lossy(&data))
}

/// Reads a record from text; errors call it `file`.
pub fn read_text(file: &str, text: &str) -> Result<Record, RecordError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.map(|(at, text)| (Position { file, line: at + 1 }, text));
    let Some((mut at, first)) = lines.next() else {
        let what = "empty; accepted: a record, beginning with a header line".to_owned();
        return Err(RecordError::Refused { at: file.to_owned(), what });
    };
    let (kind, object) = at.object(first)?;
    if kind != "header" {
        return Err(at.misplaced(&kind, "header"));
    }
    match object.get("schema").and_then(Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA_VERSION) => {
            let accepted = format!("up to {SCHEMA_VERSION}; a newer cachewise wrote this");
            return Err(at.field("schema", &found.to_string(), &accepted));
        }
        Some(1..) => {}
        _ => {
            let accepted = format!("1 to {SCHEMA_VERSION}");
            return Err(at.field("schema", &describe(object.get("schema")), &accepted));
        }
    }
    let mut header: Header = at.typed(object)?;
    header.figures.iter_mut().for_each(Figure::rename);
    let decisions = Decisions::default();
    let mut record = Record { header, rows: Vec::new(), notes: Vec::new(), decisions, end: None };
    for (place, text) in lines {
        at = place;
        let (kind, object) = at.object(text)?;
        if record.end.is_some() && KINDS.contains(&kind.as_str()) {
            return Err(at.misplaced(&kind, "nothing, the record has ended"));
        }
        match kind.as_str() {
            "header" => return Err(at.misplaced(&kind, "row, note, decisions, end")),
            "row" => {
                let mut row: Row = at.typed(object)?;
                // Schema 1 wrote down ratios of times below nothing, which say nothing.
                row.ratio = row.ratio.filter(PairedRatio::is_sound);
                row.total_ratio = row.total_ratio.filter(PairedRatio::is_sound);
                for name in [&mut row.candidate, &mut row.reference] {
                    if let Some((_, today)) = OLD_CANDIDATES.iter().find(|(old, _)| old == name) {
                        (*today).clone_into(name);
                    }
                }
                record.rows.push(row);
            }
            "decisions" => {
                let made: Decisions = at.typed(object)?;
                record.decisions.kernels.extend(made.kernels);
                record.decisions.threads.extend(made.threads);
            }
            "note" => record.notes.push(at.typed(object)?),
            "end" => record.end = Some(at.typed(object)?),
            _ => return Err(at.misplaced(&kind, &KINDS.join(", "))),
        }
    }
    let found = match &record.end {
        None => "no end line".to_owned(),
        Some(end) if end.rows != record.rows.len() as u64 => {
            format!("{} rows where the end counts {}", record.rows.len(), end.rows)
        }
        Some(_) => return Ok(record),
    };
    let accepted = "a record that closes with its end line";
    Err(at.wrong(format!("truncated: {found}; accepted: {accepted}")))
}

/// Types of lines.
const KINDS: [&str; 5] = ["header", "row", "note", "decisions", "end"];

/// A line of a file.
pub(super) struct Position<'a> {
    pub(super) file: &'a str,
    pub(super) line: usize,
}

impl Position<'_> {
    /// A line's object, and its type.
    fn object(&self, text: &str) -> Result<(String, Value), RecordError> {
        let not_json = |found: String| {
            self.wrong(format!("not a JSON object ({found}); accepted: one JSON object per line"))
        };
        match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => match value.get("type") {
                Some(Value::String(kind)) => Ok((kind.clone(), value)),
                other => Err(self.field("type", &describe(other), &KINDS.join(", "))),
            },
            Ok(other) => Err(not_json(describe(Some(&other)))),
            Err(error) => Err(not_json(format!("column {}: {}", error.column(), cause(&error)))),
        }
    }

    fn typed<T: DeserializeOwned>(&self, object: Value) -> Result<T, RecordError> {
        serde_path_to_error::deserialize(object).map_err(|error| {
            let path = error.path().to_string();
            let message = error.inner().to_string();
            // serde says "missing field `x`", "invalid type: a, expected b", "unknown variant `x`,
            // expected one of ...": split into what was found and what is accepted.
            let missing = message.strip_prefix("missing field `");
            if let Some(name) = missing.and_then(|rest| rest.split('`').next()) {
                let field = if path == "." { name.to_owned() } else { format!("{path}.{name}") };
                return self.field(&field, "missing", "a value");
            }
            let (found, accepted) = message
                .split_once(", expected ")
                .map_or((message.as_str(), "see docs/schema/record.md"), |(a, b)| (a, b));
            self.field(&path, found, accepted)
        })
    }

    fn field(&self, field: &str, found: &str, accepted: &str) -> RecordError {
        self.wrong(format!("field \"{field}\": {found}; accepted: {accepted}"))
    }

    /// A line stands where none of its type may.
    pub(super) fn misplaced(&self, found: &str, accepted: &str) -> RecordError {
        self.wrong(format!("a line of type \"{found}\"; accepted here: {accepted}"))
    }

    /// What a file says is quoted as it is, but for what would end the line.
    fn wrong(&self, what: String) -> RecordError {
        let what = what.replace(char::is_control, "\u{fffd}");
        RecordError::Refused { at: format!("{}:{}", self.file, self.line), what }
    }
}

/// The parser's message without its position, which is relative to the line.
fn cause(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

fn describe(value: Option<&Value>) -> String {
    match value {
        None => "missing".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
        Some(Value::Array(_)) => "an array".to_owned(),
        Some(other) => {
            let text = other.to_string();
            match text.char_indices().nth(40) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text,
            }
        }
    }
}
