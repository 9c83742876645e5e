//! Writing a record so that a file of its name is always whole.

use super::reading::Position;
use super::{Decisions, End, Header, Note, RecordError, Row};
use cachewise_host::Tree;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::{NamedTempFile, TempPath};

/// Writes lines in order: the header first, the end when finished. Dropped unfinished, it finishes
/// as interrupted, so that finished rows are kept.
pub struct Writer {
    /// `None` once finished, or after a failure.
    output: Option<Box<dyn Write>>,
    name: String,
    /// The temporary file that is written and its final name.
    files: Option<(TempPath, PathBuf)>,
    started: Instant,
    rows: u64,
    verdicts: Vec<String>,
    has_header: bool,
}

impl Writer {
    /// Writes to a temporary file beside `path`, which takes that name on
    /// [`finish`](Writer::finish) and replaces what had it.
    ///
    /// # Errors
    /// [`RecordError::Io`] when the temporary file cannot be made.
    pub fn create(path: &Path) -> Result<Writer, RecordError> {
        let name = path.display().to_string();
        let new = new_file(path, PRIVATE);
        let (file, temporary) =
            new.map_err(|source| RecordError::Io { file: name.clone(), source })?.into_parts();
        let files = Some((temporary, path.to_path_buf()));
        Ok(Writer::new(Box::new(BufWriter::new(file)), name, files))
    }

    /// Writes to an open stream, standard output for one.
    pub fn to(output: Box<dyn Write>) -> Writer {
        Writer::new(output, "the output".to_owned(), None)
    }

    /// Counts the time from then on, for a run that began before its record.
    #[must_use]
    pub fn since(mut self, started: Instant) -> Writer {
        self.started = started;
        self
    }

    fn new(output: Box<dyn Write>, name: String, files: Option<(TempPath, PathBuf)>) -> Writer {
        Writer {
            output: Some(output),
            name,
            files,
            started: Instant::now(),
            rows: 0,
            verdicts: Vec::new(),
            has_header: false,
        }
    }

    /// Writes the header. It comes first, and once.
    ///
    /// # Errors
    /// [`RecordError::Refused`] for a second one, [`RecordError::Io`] when writing fails.
    pub fn header(&mut self, header: &Header) -> Result<(), RecordError> {
        self.put("header", header)
    }

    /// Writes a row. Each is flushed: an interrupted run keeps it.
    ///
    /// # Errors
    /// [`RecordError::Refused`] before the header, [`RecordError::Io`] when writing fails.
    pub fn row(&mut self, row: &Row) -> Result<(), RecordError> {
        self.put("row", row)?;
        self.rows += 1;
        Ok(())
    }

    pub fn note(&mut self, text: &str) -> Result<(), RecordError> {
        self.put("note", &Note { text: text.to_owned() })
    }

    pub fn decisions(&mut self, decisions: &Decisions) -> Result<(), RecordError> {
        self.put("decisions", decisions)
    }

    /// Keeps a sentence for the end line: what the rows say. The first is the headline.
    pub fn verdict(&mut self, text: &str) {
        self.verdicts.push(text.to_owned());
    }

    /// Writes the end, makes the file durable and gives it its name. Without a header nothing is
    /// kept.
    ///
    /// # Errors
    /// [`RecordError::Refused`] without a header, [`RecordError::Io`] when writing, syncing or
    /// renaming fails.
    pub fn finish(mut self, interrupted: bool) -> Result<End, RecordError> {
        self.close(interrupted)
    }

    fn close(&mut self, interrupted: bool) -> Result<End, RecordError> {
        let end = End {
            rows: self.rows,
            interrupted,
            seconds: self.started.elapsed().as_secs_f64(),
            // Pages of file mappings count, pages given back do not leave the peak.
            peak_bytes: Tree::default().kib_line("proc/self/status", "VmHWM"),
            verdicts: std::mem::take(&mut self.verdicts),
        };
        let outcome = self.put("end", &end);
        self.output = None;
        let Some((temporary, path)) = self.files.take() else { return outcome.map(|()| end) };
        outcome?;
        persist(temporary, &path)
            .map_err(|source| RecordError::Io { file: self.name.clone(), source })?;
        Ok(end)
    }

    fn put(&mut self, kind: &str, body: &impl Serialize) -> Result<(), RecordError> {
        if self.has_header == (kind == "header") {
            let accepted = if self.has_header { "row, note, decisions, end" } else { "header" };
            let at = Position { file: &self.name, line: self.rows as usize + 1 };
            return Err(at.misplaced(kind, accepted));
        }
        self.has_header = true;
        let failed = |source| RecordError::Io { file: self.name.clone(), source };
        let Some(output) = self.output.as_mut() else {
            return Err(failed(io::Error::other("nothing more is written after a failure")));
        };
        let mut text = serde_json::to_vec(&Line { kind, body }).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        let written = output.write_all(&text).and_then(|()| output.flush()).map_err(failed);
        if written.is_err() {
            // Part of a line may be in the file: nothing can be written after it, and the file does not get its name.
            (self.output, self.files) = (None, None);
        }
        written
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// Permissions of a file that says what was run: command lines have passwords in them.
pub const PRIVATE: u32 = 0o600;
/// Permissions of a file that other users' programs read.
pub const PUBLIC: u32 = 0o666;

/// A file beside `path`, of another name, with the permissions and the owner of what is there, or else with those of
/// `mode` that the umask leaves.
fn new_file(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let name = path.file_name();
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "names no file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    // A file that is new: no link leads elsewhere.
    let new =
        tempfile::Builder::new().prefix(&hidden).suffix(".tmp").make_in(folder(path), |new| {
            File::options().write(true).create_new(true).mode(mode).open(new)
        })?;
    // Permissions of a link's target are not its own: others may have made the link.
    if let Some(old) = path.symlink_metadata().ok().filter(|old| old.is_file()) {
        let (file, own) = (new.as_file(), new.as_file().metadata()?);
        let is_own = (old.uid(), old.gid()) == (own.uid(), own.gid());
        // What this user may not give away has no permissions for others.
        if is_own || fchown(file, Some(old.uid()), Some(old.gid())).is_ok() {
            file.set_permissions(old.permissions())?;
        }
    }
    Ok(new)
}

/// Makes a file durable and gives it its name.
fn persist(temporary: TempPath, path: &Path) -> io::Result<()> {
    File::open(&temporary)?.sync_all()?;
    temporary.persist(path)?;
    // Makes the name durable. A file system that cannot sync a directory has done what it can.
    let _ = File::open(folder(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Returns whether a path is something to write into rather than a file to replace: a device, a pipe, what a
/// process has open.
#[must_use]
pub fn is_special(path: &Path) -> bool {
    // `/dev/stdout` leads there, `/dev/fd` is such a folder.
    let is_there =
        |path: io::Result<std::path::PathBuf>| path.is_ok_and(|to| to.starts_with("/proc"));
    let is_open = || is_there(path.read_link()) || is_there(folder(path).canonicalize());
    path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) || is_open()
}

/// Puts a file of that content in place of the one of that name, which is the old one or the whole new
/// one at every moment, also after a crash. Its permissions and owner stay, or are those of `mode` that the umask leaves.
///
/// # Errors
/// Returns the file system's refusal; what was there is there still.
pub fn write_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = new_file(path, mode)?;
    file.write_all(content)?;
    persist(file.into_temp_path(), path)
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.output.is_some() {
            // Nobody is left to hear of a failure.
            let _ = self.close(true);
        }
    }
}
