//! The program that a verb runs, and its file.

use anyhow::Context as _;
use cachewise::profile::Profile;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The profile that the option names, wherever a program looks for it from.
pub fn canonical(profile: &Path) -> anyhow::Result<PathBuf> {
    let named = || format!("--profile {}", profile.display());
    let path = fs::canonicalize(profile).with_context(named)?;
    Profile::read(&path).context("--profile")?;
    Ok(path)
}

/// Names that [`is_name`] accepts.
pub const NAMES: &str = "1 to 245 bytes that are a file's name, without control characters, spaces, brackets and quotes";
/// The longest name of a file, less what the folder of a systemd drop-in has behind it.
const LONGEST: usize = 255 - ".service.d".len();

/// Returns whether a program's name is one file's name, and one word in the files that are made of it.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !"/[]\"'\\".contains(c);
    let dots = matches!(name, "." | "..");
    !name.is_empty() && name.len() <= LONGEST && !dots && name.chars().all(fits)
}

/// As a shell finds it: by `PATH` unless there is a slash in the name.
pub fn find(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 || name.is_absolute() || name.starts_with(".") {
        return name.exists().then(|| name.to_path_buf());
    }
    // The C library's own list, where nobody set one.
    let list = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&list).map(|path| path.join(name)).find(|path| is_executable(path))
}

/// The reason why a program that was found cannot be started: of a script whose interpreter is missing the system says that
/// the script itself is.
pub fn not_started(program: &Path, error: &std::io::Error) -> String {
    let file = program.display();
    if program.is_dir() {
        return format!("{file}: found a directory, accepted a program");
    }
    let first_line = || {
        let mut begin = Vec::new();
        regular(program).ok()?.take(256).read_to_end(&mut begin).ok()?;
        let line =
            begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
        let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
        Some(String::from_utf8_lossy(name).escape_debug().to_string())
    };
    match error.kind() == std::io::ErrorKind::NotFound && program.exists() {
        true => match first_line() {
            Some(interpreter) => format!("{file}: its interpreter {interpreter}: {error}"),
            None => format!("{file}: the interpreter or the loader that it names: {error}"),
        },
        false
            if error.kind() == std::io::ErrorKind::PermissionDenied && !is_executable(program) =>
        {
            format!("{file}: it is not executable (chmod +x); {error}")
        }
        false => format!("{file}: {error}"),
    }
}

/// Returns true for a file that somebody may execute.
fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
}

/// Opens a file that is one: no pipe that never ends, and no device.
pub fn regular(path: &Path) -> std::io::Result<fs::File> {
    let check = |metadata: fs::Metadata| {
        let kind = metadata.file_type();
        let found = match () {
            () if kind.is_file() => return Ok(()),
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        Err(std::io::Error::other(format!("found {found}, accepted a regular file")))
    };
    // A socket cannot be opened, and another file may come meanwhile.
    check(fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_file_and_one_word() {
        for name in ["redis-server", "a.out", "g++", "prog:1", "straße"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(LONGEST + 1);
        let refused = [
            "", ".", "..", "../x", "a/b", "/x", "a]b", "[x", "a\nb", "a b", "a\0", "a\"b",
            "a\u{85}", &long,
        ];
        for name in refused {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
