//! A helper at work, from the end that asks.

use super::request::{Request, send};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A helper at work.
pub struct Helper {
    child: Child,
    answers: BufReader<ChildStdout>,
    failed: Option<io::Error>,
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
            Err(format!("found \"{}\", accepted a helper's answer", text.trim()))
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

    /// The same for a candidate that is timed: what goes wrong is kept, and from then on nothing is asked.
    pub(crate) fn ask_or_keep<T: DeserializeOwned>(&mut self, request: &Request) -> Option<T> {
        if self.failed.is_some() {
            return None;
        }
        self.ask(request).map_err(|error| self.failed = Some(error)).ok()
    }

    /// What went wrong with a candidate, if anything did: its times mean nothing then.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// As [`ask`](Helper::ask), until `stop` says so: then the helper is killed, and there is no answer.
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
