//! A process of its own, for what this one cannot do: forking with one thread, calling the C library
//! under other tunables, timing single calls in a fresh layout.
//!
//! One protocol for all: a request is a line of JSON, and so is its answer. The program serves them
//! ([`serve`]) until its input ends; [`Helper`] is its other end.

use crate::LabError;
use crate::bench::{Bench, Cell, Task};
use crate::experiments::compare_latency::launch::{self, Order, Outcome};
use crate::forking::Looper;
use crate::routines::libc_reference;
use crate::tuned_libc::{Calls, Elsewhere};
use cachewise_kernels::Operation;
use cachewise_measure::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What is asked of a helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Forks so often, the child using a buffer of so many bytes each time.
    Fork {
        /// Bytes of the buffer.
        buffer: usize,
        /// How often.
        loops: u64,
    },
    /// Times calls of the C library and of the library.
    Libc(Calls),
    /// Times single comparisons of pages.
    Calls(Order),
    /// Times the C library alone on warm buffers.
    Sizes {
        /// What is done, by name.
        operation: String,
        /// Bytes per call.
        sizes: Vec<usize>,
    },
}

/// What a helper answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Page faults of the children.
    Faults(i64),
    /// Nanoseconds that the calls of the C library took together, and those of the library.
    Nanoseconds(f64, f64),
    /// The single calls.
    Calls(Outcome),
    /// Nanoseconds per call, by size.
    Times(Vec<f64>),
    /// Why there is no such answer.
    Refused(String),
}

/// Serves requests until the input ends.
///
/// # Errors
/// What reading and writing can return; whatever else fails is an answer.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // Ctrl-C reaches the whole foreground group; this process ends when its input does.
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let (mut looper, mut elsewhere) = (Looper::default(), Elsewhere::default());
    for line in input.lines() {
        let line = line?;
        let answer = match serde_json::from_str(&line) {
            Err(error) => {
                Err(io::Error::other(format!("found \"{line}\", accepted a request: {error}")))
            }
            Ok(Request::Fork { buffer, loops }) => looper.run(buffer, loops).map(Answer::Faults),
            Ok(Request::Libc(calls)) => {
                elsewhere.time(&calls).map(|(libc, library)| Answer::Nanoseconds(libc, library))
            }
            // Whoever asked for it ends this process, which needs no asking.
            Ok(Request::Calls(order)) => {
                launch::run(&order, &|| false).map(Answer::Calls).map_err(io::Error::other)
            }
            Ok(Request::Sizes { operation, sizes }) => {
                times(&operation, &sizes).map(Answer::Times).map_err(io::Error::other)
            }
        };
        let answer = answer.unwrap_or_else(|error| Answer::Refused(error.to_string()));
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        output.write_all(&text)?;
        output.flush()?;
    }
    Ok(())
}

/// What libc takes in this process, nanoseconds per call by size.
fn times(operation: &str, sizes: &[usize]) -> Result<Vec<f64>, LabError> {
    let operation = Operation::from_name(operation)
        .ok_or_else(|| LabError::Nothing(format!("no operation is called {operation}")))?;
    let mut bench = Bench::new(0, None)?;
    let time = |&size: &usize| {
        let plan = Plan { screening_rounds: 0, ..Plan::default() };
        let task = Task { operation, size, cell: Cell::warm(), plan };
        let found = bench.routines(&task, &[libc_reference(operation)], true, &|| false)?;
        Ok(found.row(0, 0).median_ns())
    };
    sizes.iter().map(time).collect()
}

/// A helper at work.
pub struct Helper {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts `program helper`, under `GLIBC_TUNABLES` where there are any.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, tunables: Option<&str>) -> io::Result<Helper> {
        let mut command = Command::new(program);
        command.arg("helper").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(tunables) = tunables {
            command.env("GLIBC_TUNABLES", tunables);
        }
        let mut child = command.spawn()?;
        let pipe_missing = || io::Error::other("the child has no pipe");
        let requests = Some(child.stdin.take().ok_or_else(pipe_missing)?);
        let answers = BufReader::new(child.stdout.take().ok_or_else(pipe_missing)?);
        Ok(Helper { child, requests, answers })
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // One write: a line in two pieces could wake the child twice.
        let mut text = serde_json::to_vec(request)?;
        text.push(b'\n');
        requests.write_all(&text)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let mut text = String::new();
        self.answers.read_line(&mut text)?;
        match serde_json::from_str(&text) {
            Ok(Answer::Refused(why)) => Err(io::Error::other(why)),
            Ok(answer) => Ok(answer),
            Err(_) => {
                let found = text.trim();
                Err(io::Error::other(format!("found \"{found}\", accepted a helper's answer")))
            }
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// A helper that died, and one that refuses, in its words.
    pub fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.send(request)?;
        self.receive()
    }

    /// The same, until `stop` says so: then the helper is killed, and there is no answer.
    pub fn ask_until(
        &mut self,
        request: &Request,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<Option<Answer>> {
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
        // The end of its input ends the child.
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(requests: &str) -> Vec<Answer> {
        let mut told = Vec::new();
        serve(requests.as_bytes(), &mut told).expect("served");
        let told = String::from_utf8(told).expect("text");
        told.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
    }

    #[test]
    fn what_is_no_request_is_refused_by_name_and_the_next_is_served() {
        let said = answers("nonsense\n{\"fly\":1}\n{\"fork\":{\"buffer\":4096,\"loops\":1}}\n");
        let refused = |answer: &Answer| match answer {
            Answer::Refused(why) => why.clone(),
            other => panic!("{other:?}"),
        };
        assert!(refused(&said[0]).contains("found \"nonsense\", accepted a request"), "{said:?}");
        assert!(refused(&said[1]).contains("unknown variant `fly`"), "{said:?}");
        // The test harness runs this in a thread of its own.
        assert!(refused(&said[2]).contains("one thread"), "{said:?}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_refused() {
        let fork = Request::Fork { buffer: 4096, loops: 1 };
        let mut silent = Helper::start(Path::new("/bin/true"), None).expect("it starts");
        assert!(silent.ask(&fork).is_err());
        let parrot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parrot.sh");
        let mut parrot = Helper::start(&parrot, None).expect("it starts");
        let error = parrot.ask(&fork).expect_err("its own words").to_string();
        assert!(error.contains("accepted a helper's answer"), "{error}");
        assert!(parrot.ask_until(&fork, &|| true).is_ok_and(|answer| answer.is_none()));
        assert!(Helper::start(Path::new("/nonexistent/program"), None).is_err());
    }
}
