//! The Python that a program runs on: users have several, and mean one of them.

use crate::program as programs;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns whether a file's name is an interpreter's: `python`, `python3.12`.
fn is_python(file: &Path) -> bool {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// The interpreter that a program is, or that its first line names; none for other programs.
fn interpreter(program: &OsStr) -> Option<PathBuf> {
    let file = programs::find(Path::new(program))?;
    if is_python(&file) {
        return Some(file);
    }
    let mut line = Vec::new();
    BufReader::new(programs::regular(&file).ok()?).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = Path::new(words.next()?);
    let named = match first.ends_with("env") {
        true => Path::new(words.find(|word| !word.starts_with('-'))?),
        false => first,
    };
    programs::find(named).filter(|found| is_python(found))
}

/// A line that names the interpreter and its version, where a program runs on one.
pub fn told(program: &OsStr) -> Option<String> {
    let file = interpreter(program)?;
    let output = Command::new(&file).arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().replace("Python ", "");
    let here = std::env::current_dir().unwrap_or_default();
    let shown = file.strip_prefix(&here).unwrap_or(&file).display();
    Some(format!("python: {shown} ({version})"))
}

/// An error of a program's plain run; where its Python lacked a module, with that Python, and with how to have the command
/// run on the user's own.
pub fn explained(error: anyhow::Error, program: &[OsString]) -> anyhow::Error {
    let told = format!("{error:#}");
    let file = program.first().and_then(|program| interpreter(program));
    let Some(file) = file.filter(|_| told.contains("ModuleNotFoundError: ")) else { return error };
    let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
    anyhow::anyhow!(
        "{told} (of {}; in the folder of a project `uv run --with cachewise cachewise advise -- {}` runs it on the \
         project's Python)",
        file.display(),
        words.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_interpreter_is_the_program_or_that_of_its_first_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("set");
            file
        };
        let python = place("python3.12", "#!/bin/sh\necho Python 3.12.7\n");
        let script = place("script", &format!("#!{}\n", python.display()));
        let other = place("pythonic", "#!/bin/sh\n");
        for (program, found) in [(&python, Some(&python)), (&script, Some(&python)), (&other, None)]
        {
            assert_eq!(interpreter(program.as_os_str()).as_ref(), found, "{}", program.display());
        }
        let line = told(script.as_os_str()).expect("a Python");
        assert_eq!(line, format!("python: {} (3.12.7)", python.display()));
        let words = [script.into_os_string(), "x.py".into()];
        let explained = |why: &'static str| explained(anyhow::anyhow!(why), &words).to_string();
        let line = explained("exit status: 1: ModuleNotFoundError: No module named 'numpy'");
        assert!(line.contains("python3.12;") && line.contains("uv run"), "{line}");
        assert_eq!(explained("ValueError: 3"), "ValueError: 3");
    }
}
