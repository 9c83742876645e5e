//! The command as it was built, a folder for its files, and what it says.

use cachewise::cpu::{Caches, Cpu};
use cachewise::profile::fnv1a64;
use cachewise_measure::record::{self, Record};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Words in backticks in the block of a page that has a mark.
pub fn documented(page: &str, mark: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(page)).expect(page);
    let block = text.split("\n\n").find(|block| block.contains(mark)).expect(mark);
    block.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Keys of all objects in a value, but of those below `cell`.
pub fn keys(value: &Value) -> BTreeSet<String> {
    let own = value.as_object().into_iter().flatten();
    let inner = own.clone().filter(|(key, _)| *key != "cell").map(|(_, value)| value);
    let inner = inner.chain(value.as_array().into_iter().flatten()).flat_map(keys);
    own.map(|(key, _)| key.clone()).chain(inner).collect()
}

/// Gives a command the signals' default actions, which a shell's background job and `nohup` take away.
fn hear_signals(command: &mut Command) {
    let heard = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(heard) };
}

/// The command, without what this process was told by its environment.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachewise"));
    let ours = std::env::vars_os().map(|(name, _)| name);
    let ours = ours.filter(|name| name.to_string_lossy().starts_with("CACHEWISE_"));
    let others = ["NO_COLOR", "CLICOLOR_FORCE", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
    for name in ours.chain(others.map(OsString::from)) {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8");
    // Whoever runs the tests: a home that may be written to, and in which there is no profile.
    command.env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"));
    hear_signals(&mut command);
    command
}

/// The command with arguments that are parted by single spaces.
pub fn asked(arguments: &str) -> Command {
    let mut command = program();
    command.args(arguments.split(' '));
    command
}

/// Started, with its output and its messages in pipes.
pub fn piped(mut command: Command) -> Child {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    child.expect("the program starts")
}

pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("it is running");
}

/// A program's stdout, stderr and exit status.
#[derive(Debug)]
pub struct Said {
    pub arguments: String,
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs it to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.output().expect("the program starts");
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    Said {
        arguments: arguments.join(" "),
        status: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

impl Said {
    /// Checks that it ended with that status.
    #[track_caller]
    pub fn with(self, status: i32) -> Said {
        assert_eq!(self.status, Some(status), "{}: {self:#?}", self.arguments);
        self
    }

    /// The error line of ours or of the parser of arguments, which must be the only one.
    #[track_caller]
    pub fn line(&self) -> &str {
        let ours = |line: &&str| line.starts_with("cachewise: ") || line.starts_with("error: ");
        let lines: Vec<&str> = self.err.lines().filter(ours).collect();
        assert_eq!(lines.len(), 1, "{self:#?}");
        lines[0]
    }
}

pub fn cachewise(arguments: &str) -> Said {
    said(&mut asked(arguments))
}

/// Runs the command, checks its exit status and returns its stdout.
#[track_caller]
pub fn ends(arguments: &str, status: i32) -> String {
    cachewise(arguments).with(status).out
}

#[track_caller]
pub fn ok(arguments: &str) -> String {
    ends(arguments, 0)
}

/// Refuses with that status, in one line that has all of these parts, and prints nothing.
#[track_caller]
pub fn refused(arguments: &str, status: i32, parts: &[&str]) -> Said {
    let said = cachewise(arguments).with(status);
    has(said.line(), parts);
    let is_clean =
        !["panicked", "found found", "expected expected"].iter().any(|odd| said.err.contains(odd));
    assert!(said.out.is_empty() && is_clean, "{said:#?}");
    said
}

/// All of these parts are in the text.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of a test's own, and its files by name.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// Path as the command takes it.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// A new file, or a new content of one: its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).expect("written");
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    pub fn record(&self, name: &str) -> Record {
        record::read(Path::new(&self.path(name))).expect("a whole record")
    }

    /// The files that are there, in order.
    pub fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    /// Waits until a record that is being written here has three rows, or the program ends.
    pub fn wait_for_rows(&self, child: &mut Child) {
        let rows = || {
            let texts = self.names().into_iter().filter_map(|name| fs::read(self.path(&name)).ok());
            texts.map(|record| text(&record).matches("\"type\":\"row\"").count()).max()
        };
        while rows() < Some(3) && child.try_wait().expect("ours").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> = all.map(|entry| text(entry.file_name().as_encoded_bytes())).collect();
    names.sort();
    names
}

/// One decision of a profile.
pub const DECIDED: &str = "decide copy unknown 256 max copy.gpr64";

/// A profile for this CPU with these lines.
pub fn profile(lines: &str) -> String {
    let (cpu, Caches { l1d, l2, llc, .. }) = (Cpu::detect(), Caches::detect());
    resealed(&format!("cachewise-profile 2\ncpu {cpu}\ncaches {l1d} {l2} {llc}\n{lines}\nend "))
}

/// The text with a checksum that fits it, so that only its contents are wrong.
pub fn resealed(text: &str) -> String {
    let body = &text[..text.rfind("end ").expect("an end line")];
    let sum = fnv1a64(body.as_bytes());
    format!("{body}end {} fnv1a64:{sum:016x}\n", body.lines().count())
}
