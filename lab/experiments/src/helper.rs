//! A process of its own, for what this one cannot do: forking with one thread, calling another
//! C library, timing single calls in a fresh layout.
//!
//! One protocol for all: a request is a line of JSON, and so is its answer, a `Result` whose error is why
//! there is none. The program serves them ([`serve`](crate::serving::serve)) until its input ends; [`Helper`] is its other end.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A request to a helper, or its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Forks so often, the child using a buffer of so many bytes each time: page faults of the children
    /// (`i64`).
    Fork {
        buffer: usize,
        loops: u64,
        /// Milliseconds for which each child sleeps before it ends.
        #[serde(default)]
        asleep_ms: u64,
    },
    /// Times calls: nanoseconds that those of the C library took together, and those of the library
    /// (`(f64, f64)`).
    Libc(Calls),
    /// Times single comparisons of pages (`Outcome` of `compare-latency`'s launches).
    Calls(Order),
}

impl Request {
    /// Forks whose children do not sleep.
    pub(crate) const fn fork(buffer: usize, loops: u64) -> Request {
        Request::Fork { buffer, loops, asleep_ms: 0 }
    }
}

/// The target of a sample's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    pub(crate) operation: String,
    pub(crate) size: usize,
    /// The destination's place in a page.
    pub(crate) dst: usize,
    /// The source's place in a page.
    pub(crate) src: usize,
    pub(crate) calls: usize,
    /// Number of calls before those, at least one.
    pub(crate) untimed: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub(crate) pages: usize,
    pub(crate) comparisons: usize,
    pub(crate) passes: usize,
    pub(crate) kernels: Vec<String>,
    /// Seed of pages, tree and turns.
    pub(crate) seed: u64,
}

/// In one write: a line in two pieces could wake the other end twice.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    to.write_all(&text)
}

pub struct Helper {
    child: Child,
    answers: BufReader<ChildStdout>,
    failed: Option<io::Error>,
}

impl Helper {
    /// Starts `program helper`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path) -> io::Result<Helper> {
        Helper::by(Command::new(program))
    }

    /// Starts it by another dynamic linker, with the C library beside that one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_by(loader: &Path, program: &Path) -> io::Result<Helper> {
        let mut command = Command::new(loader);
        let beside = loader.canonicalize()?;
        let beside = beside.parent().unwrap_or(Path::new("/"));
        // The C library's place in Debian and Fedora, from the linker's file on.
        let multiarch = format!("../lib/{}-linux-gnu", std::env::consts::ARCH);
        let places = [beside.to_owned(), beside.join(multiarch), beside.join("../lib64")];
        let places = std::env::join_paths(places).map_err(io::Error::other)?;
        command.arg("--library-path").arg(places).arg(program);
        Helper::by(command)
    }

    fn by(mut command: Command) -> io::Result<Helper> {
        command.arg("helper").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        Ok(Helper { child, answers, failed: None })
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        send(self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?, request)
    }

    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut text = String::new();
        self.answers.read_line(&mut text)?;
        let answer = serde_json::from_str(&text).unwrap_or_else(|_| {
            Err(format!("expected a helper's answer, found \"{}\"", text.trim()))
        });
        answer.map_err(io::Error::other::<String>)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// A helper that died, and one that refuses, in its words.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> io::Result<T> {
        self.send(request)?;
        self.receive()
    }

    /// Asks, and looks at the helper while it works: its answer, and what was seen.
    pub(crate) fn ask_beside<T: DeserializeOwned, S>(
        &mut self,
        request: &Request,
        look: impl FnOnce(u32) -> S,
    ) -> io::Result<(io::Result<T>, S)> {
        self.send(request)?;
        let seen = look(self.child.id());
        Ok((self.receive(), seen))
    }

    /// Asks for a candidate that is timed: what goes wrong is kept, and from then on nothing is asked.
    pub(crate) fn ask_or_keep<T: DeserializeOwned>(&mut self, request: &Request) -> Option<T> {
        if self.failed.is_some() {
            return None;
        }
        self.ask(request).map_err(|error| self.failed = Some(error)).ok()
    }

    /// Takes the error of a candidate, if it had one: its times mean nothing then.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Asks until `stop` says so: then the helper is killed, and there is no answer.
    pub fn ask_until<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<Option<T>> {
        self.send(request)?;
        let look = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        loop {
            if stop() {
                self.child.kill()?;
                return Ok(None);
            }
            let answer = PollFd::new(self.answers.get_ref(), PollFlags::IN);
            match poll(&mut [answer], Some(&look)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.receive().map(Some),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Closes its input first, which ends the child.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_refused() {
        let fork = Request::fork(4096, 1);
        let mut silent = Helper::start(Path::new("/bin/true")).expect("it starts");
        assert!(silent.ask::<i64>(&fork).is_err());
        let parrot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parrot.sh");
        let mut parrot = Helper::start(&parrot).expect("it starts");
        assert_eq!(parrot.ask_or_keep::<i64>(&fork), None);
        let error = parrot.take_failure().expect("its own words").to_string();
        assert!(error.contains("expected a helper's answer"), "{error}");
        assert!(parrot.ask_until::<i64>(&fork, &|| true).is_ok_and(|answer| answer.is_none()));
        assert!(Helper::start(Path::new("/nonexistent/program")).is_err());
    }
}
