//! A server under load: started, awaited, loaded by another command, ended.

use crate::watched::tree;
use cachewise_measure::children;
use cachewise_measure::whole::{self, Ended, Run};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that a server may take until it listens, and to end when asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two questions to it.
const OFTEN: Duration = Duration::from_millis(5);

/// Time between two looks at a server that rests.
const READING: Duration = Duration::from_millis(20);

/// Load on a server.
#[derive(Clone, Debug)]
pub struct Load {
    /// A line for the shell.
    pub line: String,
    /// Succeeds once the server can be used; without it, when the server listens.
    pub ready: Option<String>,
}

impl Load {
    /// Starts the server, waits until it listens, runs the load, and ends the server. The seconds are
    /// the load's, and so is what was printed; CPU, memory and faults are the server's.
    ///
    /// # Errors
    /// The server cannot be started; of kind `Other` it does not listen, with its last words.
    pub fn run(
        &self,
        server: &mut Command,
        directory: &Path,
        limit: Duration,
        stop: &AtomicBool,
        settle: Duration,
        watch: &mut dyn FnMut(Pid),
    ) -> std::io::Result<Ended> {
        let ran = self.with(server, directory, limit, stop, |pid| {
            watch(pid);
            let loaded = whole_of(&self.line, directory, limit, stop, pid, watch);
            // It is looked at for so long after its load.
            rest(settle, stop, pid, watch);
            loaded
        })?;
        let Some((loaded, used)) = ran else { return Ok(Ended::Stopped) };
        let Ended::Run(run) = loaded? else {
            return Ok(if stop.load(Ordering::Relaxed) { Ended::Stopped } else { Ended::TooLong });
        };
        let children::Used { cpu, system, peak, faults, delay } = used;
        Ok(Ended::Run(Run { cpu, system, resident: peak, faults, delay, ..run }))
    }

    /// Starts the server, does something with it once it listens, and ends it; `None` where the user stopped it before.
    ///
    /// # Errors
    /// Errors of [`run`](Load::run).
    pub fn with<T>(
        &self,
        server: &mut Command,
        directory: &Path,
        limit: Duration,
        stop: &AtomicBool,
        work: impl FnOnce(Pid) -> T,
    ) -> std::io::Result<Option<(T, children::Used)>> {
        let [output, errors] = ["server-output", "server-errors"].map(|name| directory.join(name));
        server.stdout(whole::private(&output)?).stderr(whole::private(&errors)?).process_group(0);
        children::forget_peak();
        let mut child = server.spawn()?;
        let pid = Pid::from_child(&child);
        let begun = Instant::now();
        let told = || {
            let text = fs::read(&errors).unwrap_or_default();
            String::from_utf8_lossy(&text).trim().to_owned()
        };
        let patience = PATIENCE.min(limit);
        while !self.is_ready(pid, patience.saturating_sub(begun.elapsed()), stop) {
            // Not waited for here: how it ended is asked below.
            let ended = has_ended(pid);
            if ended || stop.load(Ordering::Relaxed) || begun.elapsed() >= patience {
                let stopped = stop.load(Ordering::Relaxed);
                end(&mut child)?;
                if stopped {
                    return Ok(None);
                }
                let what = if ended { "ended before it listened" } else { "does not listen" };
                let told = told();
                let last = told.lines().last().map(|last| format!(": {last}")).unwrap_or_default();
                return Err(std::io::Error::other(format!("the server {what}{last}")));
            }
            std::thread::sleep(OFTEN);
        }
        let done = work(pid);
        Ok(Some((done, end(&mut child)?)))
    }

    /// Runs the load once against a server that is there: its seconds; `None` where it fails, takes too long or is stopped.
    pub(crate) fn once(
        &self,
        directory: &Path,
        limit: Duration,
        stop: &AtomicBool,
    ) -> std::io::Result<Option<f64>> {
        let mut load = Command::new("sh");
        load.args(["-c", &self.line]).stdin(std::process::Stdio::null());
        let ended = whole::run(&mut load, directory, limit, stop, &mut |_| {}, false)?;
        Ok(match ended {
            Ended::Run(run) if run.status.success() => Some(run.seconds),
            _ => None,
        })
    }

    /// One request, by the command that asks whether the server is ready; false where there is none.
    pub(crate) fn touch(&self, limit: Duration, stop: &AtomicBool) -> bool {
        let ready = self.ready.as_ref();
        ready.is_some_and(|line| succeeds(line, limit, stop).unwrap_or(false))
    }

    fn is_ready(&self, server: Pid, limit: Duration, stop: &AtomicBool) -> bool {
        match &self.ready {
            Some(line) => succeeds(line, limit, stop).unwrap_or(false),
            None => listens(server),
        }
    }
}

/// Returns whether a line of the shell succeeds in time; where it does not, it is killed with all that it started.
fn succeeds(line: &str, limit: Duration, stop: &AtomicBool) -> std::io::Result<bool> {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).stdin(std::process::Stdio::null()).process_group(0);
    shell.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let (mut shell, begun) = (shell.spawn()?, Instant::now());
    loop {
        if let Some(status) = shell.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() >= limit || stop.load(Ordering::Relaxed) {
            // Not waited for yet, so that its number is still its own.
            let _ = kill_process_group(Pid::from_child(&shell), Signal::KILL);
            shell.wait()?;
            return Ok(false);
        }
        std::thread::sleep(OFTEN);
    }
}

/// Runs the load; the server is looked at meanwhile.
fn whole_of(
    line: &str,
    directory: &Path,
    limit: Duration,
    stop: &AtomicBool,
    server: Pid,
    watch: &mut dyn FnMut(Pid),
) -> std::io::Result<Ended> {
    let mut load = Command::new("sh");
    load.args(["-c", line]).stdin(std::process::Stdio::null());
    whole::run(&mut load, directory, limit, stop, &mut |_| watch(server), false)
}

/// Looks at a process for so long; false where the user wants to stop.
fn rest(long: Duration, stop: &AtomicBool, server: Pid, watch: &mut dyn FnMut(Pid)) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < long {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        watch(server);
        std::thread::sleep(READING.min(long.saturating_sub(begun.elapsed())));
    }
    true
}

fn has_ended(pid: Pid) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Asks it to end, waits, and ends what is left.
fn end(server: &mut Child) -> std::io::Result<children::Used> {
    let pid = Pid::from_child(server);
    // It may have ended by itself; it was not waited for, so that the number is its own.
    let _ = kill_process(pid, Signal::TERM);
    let begun = Instant::now();
    while !has_ended(pid) {
        if begun.elapsed() > PATIENCE {
            let _ = kill_process_group(pid, Signal::KILL);
            break;
        }
        std::thread::sleep(OFTEN);
    }
    let (_, used) = children::wait_for(server)?;
    children::end_all(whole::ENDING);
    Ok(used)
}

/// Returns whether a process of this tree listens on a socket, by proc(5).
fn listens(server: Pid) -> bool {
    let listening = listening();
    let is_one = |link: &Path| {
        let text = link.to_string_lossy();
        let inode = text.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| listening.contains(inode))
    };
    tree(server.as_raw_nonzero().get()).into_iter().any(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| is_one(&link))
    })
}

/// Inodes of the sockets that listen.
fn listening() -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    // Column of the state, how it reads where one listens, and column of the inode.
    let tables = [("tcp", 3, "0A", 9), ("tcp6", 3, "0A", 9), ("unix", 3, "00010000", 6)];
    for (table, state, listens, inode) in tables {
        let text = fs::read_to_string(Path::new("/proc/net").join(table)).unwrap_or_default();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = lines.filter(|fields| fields.get(state) == Some(&listens));
        inodes
            .extend(found.filter_map(|fields| fields.get(inode).map(|inode| (*inode).to_owned())));
    }
    inodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_hangs_ends_in_time() {
        let begun = Instant::now();
        let asked =
            |line, stop: &AtomicBool| succeeds(line, Duration::from_millis(200), stop).expect("sh");
        let going = AtomicBool::new(false);
        assert!(asked("true", &going) && !asked("false", &going));
        assert!(!asked("sleep 60 | sleep 60", &going));
        assert!(!asked("sleep 60", &AtomicBool::new(true)));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_socket_that_listens_is_found() {
        let own = rustix::process::getpid();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        assert!(listens(own));
        drop(socket);
        let directory = tempfile::tempdir().expect("a directory");
        let _socket =
            std::os::unix::net::UnixListener::bind(directory.path().join("s")).expect("a socket");
        assert!(listens(own));
    }
}
