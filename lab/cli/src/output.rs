//! Destination of text: stdout, or a file that appears whole or not at all.

use anyhow::Context;
use cachewise_experiments::LabError;
use cachewise_measure::record::PRIVATE;
use cachewise_measure::{End, Record, RecordError, Writer};
use cachewise_report::closing::NEXT;
use cachewise_report::{foreign, table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Text for a terminal, in the characters of the locale: where that has no UTF-8, in ASCII.
fn printable(text: &str) -> Cow<'_, str> {
    let text = controlled(text);
    if text.is_ascii() || is_utf8(|name| std::env::var(name).ok()) {
        return text;
    }
    Cow::Owned(text.chars().map(ascii).collect())
}

/// Others' words in it do nothing to a terminal: control characters are shown as `?`, ends of lines and tabs aside.
fn controlled(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| foreign::is_control(c) && c != '\n' && c != '\t';
    match text.contains(is_control) {
        true => text.replace(is_control, "?").into(),
        false => text.into(),
    }
}

/// Returns whether the locale of these variables has UTF-8.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// A character, or what looks like it: blocks of bars and lines of grids.
fn ascii(character: char) -> char {
    match character {
        '\0'..='\x7f' => character,
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▍' | '▎' | '▏' => ' ',
        '▒' => '=',
        '░' => '-',
        '┊' => ':',
        '┄' => '-',
        '·' => '.',
        '×' => 'x',
        '≤' => '<',
        '≥' => '>',
        '–' | '—' => '-',
        '’' => '\'',
        _ => '?',
    }
}

/// Lines no longer than the terminal is wide, broken at spaces. A command is never broken: pasted, its parts would be
/// commands of their own. It is what stands between backticks, and the whole of a last line without any.
fn folded(text: &str, width: Option<u16>) -> String {
    // No text holds it: see `controlled`.
    const KEPT: &str = "\u{1}";
    let Some(width) = width else { return text.to_owned() };
    let lines = text.split('\n').flat_map(|line| {
        let is_command = line.starts_with(NEXT) && !line.contains('`');
        let is_short = line.chars().count() <= usize::from(width);
        if is_short || is_command {
            return vec![line.to_owned()];
        }
        let parts = line.split('`').enumerate();
        let parts = parts
            .map(|(at, part)| if at % 2 == 1 { part.replace(' ', KEPT) } else { part.to_owned() });
        let line = parts.collect::<Vec<_>>().join("`");
        let wrapped = table::wrap(&line, usize::from(width), 2).into_iter();
        wrapped.map(|line| line.replace(KEPT, " ")).collect()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes to stdout, [`printable`]. A reader who has seen enough is no failure: what is still to be
/// written elsewhere is written, and the exit status stays what was found.
pub fn print(text: &str) -> anyhow::Result<()> {
    write_out(folded(&printable(text), width()).as_bytes())
}

/// [`print`] for what a shell or a compiler takes: no line is folded.
pub fn print_exactly(text: &str) -> anyhow::Result<()> {
    write_out(printable(text).as_bytes())
}

fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Writes a line to stderr, [`printable`]: one, also where a name in it has more.
pub fn tell(text: &str) {
    tell_all(&format!("{}\n", foreign::line(text)));
}

/// Writes whole lines to stderr, [`printable`]. Where nobody can be told (a full disk, a terminal that
/// is gone), the work goes on: `eprintln!` would panic.
pub fn tell_all(lines: &str) {
    let _ = anstream::stderr().write_all(folded(&printable(lines), stderr_width()).as_bytes());
}

fn stderr_width() -> Option<u16> {
    terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| width.0)
}

/// Columns of the terminal on stdout; none when stdout is no terminal.
pub fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// Writes to a file that appears whole and that its owner alone may read, or to stdout for `-`.
pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if is_stdout(path) {
        return write_out(bytes);
    }
    write_file(path, bytes, PRIVATE)
}

/// Refuses the files among `outputs` that cannot be written, that are named twice, or that are among the `inputs`: what
/// is read, and the program that is run. A pipe is opened, so that its reader sees no end before there is one.
pub fn check_all(outputs: &[Option<&Path>], inputs: &[impl AsRef<Path>]) -> anyhow::Result<()> {
    let mut seen: Vec<(&Path, Option<(u64, PathBuf)>)> = Vec::new();
    let own = std::env::current_exe().unwrap_or_default();
    let inputs = inputs.iter().map(AsRef::as_ref).chain([&*own]);
    let inputs: Vec<_> = inputs.filter_map(identity).collect();
    for path in outputs.iter().copied().flatten() {
        let name = identity(path);
        let is_same = |(other, of): &(&Path, Option<(u64, PathBuf)>)| {
            is_stdout(path) && is_stdout(other) || name.is_some() && name == *of
        };
        if seen.iter().any(is_same) {
            let twice = "named by more than one option";
            return Err(LabError::Usage(format!("{}: {twice}", path.display())).into());
        }
        if name.as_ref().is_some_and(|name| inputs.contains(name)) {
            let read = "this file is read or run: expected another one";
            return Err(LabError::Usage(format!("{}: {read}", path.display())).into());
        }
        if !is_stdout(path) {
            check_writable(path)?;
        }
        seen.push((path, name));
    }
    Ok(())
}

/// The identity of a file, whatever it is called: its number, and its file system or, of one that is not there yet, its
/// name. Devices may be named more than once.
fn identity(path: &Path) -> Option<(u64, PathBuf)> {
    match path.metadata() {
        Ok(there) if there.file_type().is_char_device() => None,
        Ok(there) => Some((there.ino(), there.dev().to_string().into())),
        Err(_) => Some((0, folder_of(path).canonicalize().ok()?.join(path.file_name()?))),
    }
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Pipes that [`check_all`] has opened, by their paths.
static PIPES: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// A device, a pipe, or what a process has open, to be written into.
fn opened(path: &Path) -> std::io::Result<Patient> {
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    let place = pipes.iter().position(|(other, _)| other == path);
    let file = match place {
        Some(place) => pipes.swap_remove(place).1,
        None => open_special(path)?,
    };
    Ok(Patient { file, was_stopped: crate::progress::is_stopped() })
}

/// The time for which a pipe may have no reader.
const PATIENCE: Duration = Duration::from_secs(2);

fn open_special(path: &Path) -> std::io::Result<File> {
    let begun = Instant::now();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    loop {
        // A file that a process has open has something in it already, perhaps.
        let opened = File::options().append(true).custom_flags(flags).open(path);
        let is_late = begun.elapsed() > PATIENCE || crate::progress::is_stopped();
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && !is_late => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(std::io::Error::other("expected a pipe with a reader, found none"));
            }
            opened => return opened,
        }
    }
}

/// Waits for a reader as long as nobody asks to stop.
struct Patient {
    file: File,
    was_stopped: bool,
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            if !self.was_stopped && crate::progress::is_stopped() {
                return Err(std::io::Error::other("stopped while nobody read it"));
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&pause));
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Returns whether stdout is meant: by one of its names in the system it would be opened a second time, and written over.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// A record's writer: to a new file that appears when it is finished, or into a device or pipe.
pub fn record_writer(path: &Path) -> anyhow::Result<Writer> {
    if is_stdout(path) {
        return Ok(Writer::to(Box::new(std::io::stdout())));
    }
    if cachewise_measure::is_special(path) {
        let file = opened(path).with_context(|| format!("{}: not opened", path.display()))?;
        return Ok(Writer::to(Box::new(file)));
    }
    Ok(Writer::create(path)?)
}

/// Writes a whole record: its header, rows, notes, what was decided, and what they amount to.
pub fn write_record(
    mut writer: Writer,
    record: &Record,
    verdicts: &[String],
    interrupted: bool,
) -> Result<End, RecordError> {
    writer.header(&record.header)?;
    record.rows.iter().try_for_each(|row| writer.row(row))?;
    record.notes.iter().try_for_each(|note| writer.note(&note.text))?;
    if !record.decisions.kernels.is_empty() {
        writer.decisions(&record.decisions)?;
    }
    verdicts.iter().for_each(|text| writer.verdict(text));
    writer.finish(interrupted)
}

/// Writes a file, so that nothing partial ever stands under its name; `mode` is that of a new one. A device or a pipe is
/// written into.
pub fn write_file(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let written = match cachewise_measure::is_special(path) {
        true => opened(path).and_then(|mut file| file.write_all(bytes)),
        false => cachewise_measure::record::write_file(path, bytes, mode),
    };
    written.with_context(|| format!("{}: not written", path.display()))
}

/// Bytes that a disk has room for where something is to be written.
const LEAST: usize = 4096;

/// Refuses a destination that cannot be written before anything is measured for it.
pub fn check_writable(path: &Path) -> anyhow::Result<()> {
    let there = path.metadata().ok();
    let kind = there.as_ref().map(std::fs::Metadata::file_type);
    let found = match kind {
        Some(kind) if kind.is_dir() => "a directory",
        Some(kind) if kind.is_block_device() => "a disk",
        Some(kind) if kind.is_socket() => "a socket",
        Some(kind) if kind.is_file() && there.is_some_and(|file| file.mode() & 0o111 != 0) => {
            "a program"
        }
        _ => "",
    };
    if !found.is_empty() {
        anyhow::bail!("{}: expected a file name, found {found}", path.display());
    }
    if cachewise_measure::is_special(path) {
        let opened = open_special(path);
        let file = opened.with_context(|| format!("{}: cannot be written", path.display()))?;
        if kind.is_some_and(|kind| kind.is_fifo()) {
            // Closed now, it would say to its reader that all has been written.
            let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
            pipes.push((path.to_owned(), file));
        }
        return Ok(());
    }
    // A full disk takes names still.
    let tried = tempfile::NamedTempFile::new_in(folder_of(path))
        .and_then(|mut file| file.write_all(&[0; LEAST]).and_then(|()| file.flush()));
    let Err(error) = tried else { return Ok(()) };
    anyhow::bail!("{}: its directory cannot be written: {}", path.display(), system_of(&error))
}

/// Refuses what a profile and its record cannot be: a device or a pipe would be replaced by a file, or could
/// not be read back; stdout has the tables.
pub fn check_keepable(path: &Path) -> anyhow::Result<()> {
    if is_stdout(path) || cachewise_measure::is_special(path) {
        let file = path.display();
        anyhow::bail!("{file}: expected a file name, found standard output, a device or a pipe");
    }
    Ok(())
}

/// The system's message, without the name that `tempfile` tried.
fn system_of(error: &std::io::Error) -> String {
    let said = error.to_string();
    said.split(" at path ").next().unwrap_or(&said).to_owned()
}

/// A temporary folder that other users cannot look into, whatever the umask.
pub fn folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir()
}

/// Makes a temporary file or folder that an option needs.
pub fn temporary<T>(option: &str, make: fn() -> std::io::Result<T>) -> anyhow::Result<T> {
    make().map_err(|error| {
        anyhow::anyhow!(
            "{option}: {}: {}; accepted in TMPDIR: a directory that can be written",
            std::env::temp_dir().display(),
            system_of(&error)
        )
    })
}

/// Returns whether an error is stdout having been closed by its reader.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|error| error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_the_locale() {
        let of = |set: &'static [(&str, &str)]| {
            is_utf8(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(of(&[("LANG", "en_US.UTF-8")]) && of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!of(&[]) && !of(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(of(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
        assert_eq!("█▌▏ ░ 4 KiB·ß".chars().map(ascii).collect::<String>(), "##  - 4 KiB.?");
    }

    #[test]
    fn long_lines_are_broken_at_spaces() {
        assert_eq!(folded("one two\n  three four\n", Some(10)), "one two\n  three\n    four\n");
        assert_eq!(folded("unbreakable", Some(4)), "unbreakable");
        assert_eq!(folded("one two three", None), "one two three");
    }

    #[test]
    fn a_command_is_never_broken() {
        let command = format!("{NEXT}  A=1:b=2 program --with many words");
        assert_eq!(folded(&command, Some(10)), command);
        let sentence = format!("{NEXT}  nothing; `cachewise tune --force` replaces it");
        let lines = folded(&sentence, Some(12));
        assert!(lines.contains("`cachewise tune --force`") && lines.lines().count() > 2, "{lines}");
    }

    #[test]
    fn what_would_move_a_terminal_is_not_printed() {
        for plain in ["", "a table\nof\ttwo lines\n", "gr\u{f6}\u{df}e"] {
            assert_eq!(controlled(plain), plain);
        }
        for (hostile, shown) in [
            ("\x1b]0;title\x07", "?]0;title?"),
            ("\x1b[2Jcleared", "?[2Jcleared"),
            ("one\rother", "one?other"),
            ("\x1b[1;31mred", "?[1;31mred"),
            ("\x1b", "?"),
            ("\u{9b}31m\x7f\0", "?31m??"),
        ] {
            assert_eq!(controlled(hostile), shown);
        }
    }
}
