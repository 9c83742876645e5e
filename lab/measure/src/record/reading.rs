//! Reading a record, and saying precisely what is wrong with one.

use super::{Decisions, Header, Record, SCHEMA_VERSION};
use flate2::read::MultiGzDecoder;
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

/// Why a record was refused. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be read or written.
    #[error("{file}: {source}")]
    Io { file: String, source: std::io::Error },
    /// Content that cannot be a record's, or cannot stand where it does.
    #[error("{at}: {what}")]
    Refused {
        /// The file, and the line where it is one's.
        at: String,
        /// The text found, and the forms accepted.
        what: String,
    },
}

/// No record of ours comes near, packed or not; what is longer is none, as a device without end.
pub const MOST_BYTES: u64 = 1 << 30;

/// Reads a file.
///
/// # Errors
/// The system's, or that there is more than [`MOST_BYTES`].
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path, &mut bytes)?;
    if file.take(MOST_BYTES + 1).read_to_end(&mut bytes)? as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("expected at most {MOST_BYTES} bytes, found more")));
    }
    Ok(bytes)
}

/// Time that a pipe may have no writer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a file, and reads the first of what a pipe has: an error where nobody writes to it, for which a program would
/// wait without looking whether it is to stop.
fn open(path: &Path, first: &mut Vec<u8>) -> io::Result<fs::File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    let begun = Instant::now();
    let mut part = [0; 4096];
    while is_pipe && first.is_empty() {
        match file.read(&mut part) {
            // No writer yet, or none any more.
            Ok(0) if begun.elapsed() > PATIENCE => {
                return Err(io::Error::other("expected a pipe with a writer, found none"));
            }
            Ok(0) => std::thread::sleep(Duration::from_millis(10)),
            Ok(length) => first.extend_from_slice(&part[..length]),
            // A writer that has written nothing yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a whole record, unpacking it where it is compressed by gzip. Of a file with several,
/// `FILE#EXPERIMENT` is one.
///
/// # Errors
/// [`RecordError`] for whatever keeps it from being one; several, with their experiments.
pub fn read(path: &Path) -> Result<Record, RecordError> {
    let (file, wanted) = parted(path);
    let mut all = records(&file.display().to_string(), &unpacked(&file)?, wanted)?;
    let names: Vec<&str> = all.iter().map(|one| one.name().unwrap_or_default()).collect();
    let named = match wanted {
        None if all.len() == 1 => Some(0),
        None => None,
        Some(wanted) => names.iter().position(|name| *name == wanted),
    };
    let Some(at) = named else {
        let (many, names, file) = (names.len(), names.join(", "), file.display());
        let what = format!("{many} records ({names}); accepted: one of them, as {file}#NAME");
        return Err(RecordError::Refused { at: path.display().to_string(), what });
    };
    Ok(all.swap_remove(at))
}

/// A file, and the experiment or program that its name asks for behind `#`.
fn parted(path: &Path) -> (PathBuf, Option<&str>) {
    let parts = path.to_str().and_then(|text| text.rsplit_once('#'));
    match parts.filter(|_| !path.exists()) {
        Some((file, wanted)) => (PathBuf::from(file), Some(wanted)),
        None => (path.to_owned(), None),
    }
}

/// Reads every record of a file, in their order there.
///
/// # Errors
/// Reads several records as [`read`] does.
pub fn read_all(path: &Path) -> Result<Vec<Record>, RecordError> {
    records(&path.display().to_string(), &unpacked(path)?, None)
}

/// The records of a folder whose names are `wanted`, by name: `DATE-WHAT-MACHINE`. Those in a file
/// called `DATE-experiments-MACHINE` have the name of their experiment for WHAT; in one called
/// `DATE-classic-MACHINE` that and `-classic`; in one called `DATE-programs-MACHINE` their program's and
/// `-program`.
///
/// # Errors
/// The folder's, and those of [`read_all`].
pub fn folder(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, Record)>, RecordError> {
    let refused = |source| RecordError::Io { file: path.display().to_string(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(refused)? {
        let file = entry.map_err(refused)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((name, _)) = name.split_once(".jsonl") else { continue };
        let several =
            [("-experiments-", ""), ("-classic-", "-classic"), ("-programs-", "-program")];
        let several = several
            .into_iter()
            .find(|(part, _)| name.get(DATE..).is_some_and(|rest| rest.starts_with(part)));
        match several {
            Some((part, behind)) => found.extend(read_all(&file)?.into_iter().map(|record| {
                let own = record.name().unwrap_or_default();
                (name.replacen(part, &format!("-{own}{behind}-"), 1), record)
            })),
            None if wanted(name) => {
                found.extend(read_all(&file)?.into_iter().map(|record| (name.to_owned(), record)));
            }
            None => {}
        }
    }
    found.retain(|(name, _)| wanted(name));
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

/// Bytes of `2026-11-22`.
const DATE: usize = 10;

/// The text of a file, unpacked where it is compressed by gzip.
///
/// # Errors
/// [`RecordError`] for a file that cannot be read or unpacked.
pub fn unpacked(path: &Path) -> Result<String, RecordError> {
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
    Ok(String::from_utf8_lossy(&data).into_owned())
}

/// Reads a record from text; errors call it `file`.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn read_text(file: &str, text: &str) -> Result<Record, RecordError> {
    let mut all = records(file, text, None)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (_, before) => Err(RecordError::Refused {
            at: file.to_owned(),
            what: format!("{} records; accepted: one", before + 1),
        }),
    }
}

/// The records of a text, each from its header to its end; the rows of the `wanted` alone, if one is.
fn records(file: &str, text: &str, wanted: Option<&str>) -> Result<Vec<Record>, RecordError> {
    let is_other = |record: &Record| wanted.is_some() && record.name() != wanted;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut lines = lines.map(|(at, text)| (Position { file, line: at + 1 }, text));
    let Some((mut at, first)) = lines.next() else {
        let what = "empty; accepted: a record, beginning with a header line".to_owned();
        return Err(RecordError::Refused { at: file.to_owned(), what });
    };
    let mut all = vec![at.header(first)?];
    for (place, text) in lines {
        let before = std::mem::replace(&mut at, place);
        let record = all.last_mut().expect("a header has been read");
        if is_other(record) && text.starts_with(ROW) {
            continue;
        }
        if record.end.is_some() {
            if !is_other(record) {
                before.check(record)?;
            }
            all.push(at.header(text)?);
            continue;
        }
        let (kind, object) = at.object(text)?;
        match kind.as_str() {
            "header" => return Err(at.misplaced(&kind, "row, note, decisions, end")),
            "row" => record.rows.push(at.typed(object)?),
            "decisions" => {
                let made: Decisions = at.typed(object)?;
                record.decisions.kernels.extend(made.kernels);
            }
            "note" => record.notes.push(at.typed(object)?),
            "end" => record.end = Some(at.typed(object)?),
            _ => return Err(at.misplaced(&kind, &KINDS.join(", "))),
        }
    }
    let last = all.last().expect("a header has been read");
    if !is_other(last) {
        at.check(last)?;
    }
    Ok(all)
}

/// Beginning of a row's line as [`Writer`](super::Writer) writes it.
const ROW: &str = "{\"type\":\"row\"";

const KINDS: [&str; 5] = ["header", "row", "note", "decisions", "end"];

/// A line of a file.
pub(super) struct Position<'a> {
    pub(super) file: &'a str,
    pub(super) line: usize,
}

impl Position<'_> {
    /// The beginning of a record.
    fn header(&self, text: &str) -> Result<Record, RecordError> {
        let (kind, object) = self.object(text)?;
        if kind != "header" {
            return Err(self.misplaced(&kind, "header"));
        }
        let schema = object.get("schema");
        match schema.and_then(Value::as_u64) {
            Some(found) if found == u64::from(SCHEMA_VERSION) => {}
            Some(found) => {
                let by = if found > u64::from(SCHEMA_VERSION) { "a newer" } else { "an older" };
                let accepted = format!("{SCHEMA_VERSION}; {by} cachewise wrote this");
                return Err(self.field("schema", &found.to_string(), &accepted));
            }
            None => {
                return Err(self.field("schema", &describe(schema), &SCHEMA_VERSION.to_string()));
            }
        }
        let header: Header = self.typed(object)?;
        let decisions = Decisions::default();
        Ok(Record { header, rows: Vec::new(), notes: Vec::new(), decisions, end: None })
    }

    /// That a record whose last line this is has ended, with as many rows as it says.
    fn check(&self, record: &Record) -> Result<(), RecordError> {
        let found = match &record.end {
            None => "no end line".to_owned(),
            Some(end) if end.rows != record.rows.len() as u64 => {
                format!("{} rows where the end counts {}", record.rows.len(), end.rows)
            }
            Some(_) => return Ok(()),
        };
        let accepted = "a record that closes with its end line";
        Err(self.wrong(format!("truncated: {found}; accepted: {accepted}")))
    }

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

    /// Quotes a file's text as it is, except for line ends.
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
