//! The command as it was built, and what it says.

use cachewise::profile::{Decision, Profile};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

/// The command, without what this process was told by its environment.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachewise"));
    let ours = std::env::vars_os().map(|(name, _)| name);
    let ours = ours.filter(|name| name.to_string_lossy().starts_with("CACHEWISE_"));
    let others = ["NO_COLOR", "CLICOLOR_FORCE", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
    for name in ours.chain(others.map(OsString::from)) {
        command.env_remove(name);
    }
    // Whoever runs the tests: a home that may be written to, and in which there is no profile.
    command.env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"));
    // A shell's background job ignores Ctrl-C, one under `nohup` hang-ups, and the command keeps that.
    let heard = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(heard) };
    command
}

/// Started, with its output and its messages in pipes.
pub fn piped(mut command: Command) -> Child {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    child.expect("the program starts")
}

/// With arguments that are parted by single spaces.
pub fn cachewise(arguments: &str) -> Output {
    program().args(arguments.split(' ')).output().expect("the program starts")
}

/// A profile for this CPU with these ranges of copies that nobody gave a hint for.
pub fn profile(copies: &[(u64, u64, &str)]) -> Profile {
    let decision = |&(from, to, kernel): &(u64, u64, &str)| Decision {
        operation: cachewise_kernels::Operation::Copy,
        reuse: cachewise::Reuse::Unknown,
        from,
        to,
        kernel: kernel.into(),
        nearest: None,
    };
    Profile {
        cpu: cachewise::cpu::Cpu::detect(),
        caches: cachewise::cpu::Caches::detect(),
        record: None,
        written: String::new(),
        decisions: copies.iter().map(decision).collect(),
        parallel: vec![],
        entries: vec![],
        notes: vec![],
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// What it prints where it ends with that status.
#[track_caller]
pub fn ends(arguments: &str, status: i32) -> String {
    let output = cachewise(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {}", stderr(&output));
    stdout(&output)
}

#[track_caller]
pub fn ok(arguments: &str) -> String {
    ends(arguments, 0)
}

/// What it says on stderr where it refuses with that status.
#[track_caller]
pub fn refused(arguments: &str, status: i32) -> String {
    let output = cachewise(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Refuses with that status, in one line of ours that has all of these words; what stderr has in all.
#[track_caller]
pub fn refused_with(arguments: &str, status: i32, words: &[&str]) -> String {
    let text = refused(arguments, status);
    has(line(&text), words);
    text
}

/// All of these parts are in the text.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

/// The error line of ours, which must be the only one.
#[track_caller]
pub fn line(text: &str) -> &str {
    let ours: Vec<&str> = text.lines().filter(|line| line.starts_with("cachewise: ")).collect();
    assert_eq!(ours.len(), 1, "{text}");
    ours[0]
}
