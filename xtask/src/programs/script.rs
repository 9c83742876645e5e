//! A program's script, started: in a directory of its own, with the library or without, and not for
//! ever.

use crate::scripts::{self, SKIPPED, open_to_all};
use anyhow::{Context as _, Result, bail};
use cachewise_measure::children;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a server that a script has ended may take to end, so that its CPU time is known.
pub(crate) const ENDING: Duration = Duration::from_millis(200);

/// What nobody has seen run gets this long.
const FIRST_LIMIT: Duration = Duration::from_secs(600);

/// How it is run.
#[derive(Clone, Copy)]
pub(super) struct Under<'a> {
    pub library: &'a Path,
    /// The profile it follows, where that is not what it finds by itself.
    pub profile: Option<&'a Path>,
    /// Where it writes what it counted.
    pub counts: Option<&'a Path>,
}

/// One run's time and what it printed.
pub(super) struct Ran {
    pub seconds: f64,
    /// With what the script does not count.
    pub whole: f64,
    /// CPU time of all that it started, and of the servers it left to end.
    pub cpu: f64,
    pub output: Vec<u8>,
}

/// Where a script is, and what it prepared.
pub(super) struct Place {
    prepared: PathBuf,
    /// How much of its input it uses.
    percent: u32,
    limit: Duration,
}

/// What `prepare` came to.
pub(super) enum Prepared {
    Ready(Place),
    /// Not here, and why.
    Skipped(String),
}

/// A file that any user may write to.
pub(super) fn shared_file(path: &Path) -> Result<()> {
    fs::write(path, "")?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o666))?)
}

impl Place {
    /// Writes the script into a new directory and lets it prepare there, with so much of its input.
    pub fn prepare(directory: &Path, script: &str, percent: u32) -> Result<Prepared> {
        scripts::lay_out(directory, script)?;
        let place = Place { prepared: directory.to_owned(), percent, limit: FIRST_LIMIT };
        let (status, output, told) = place.start("prepare", directory, None)?;
        match status.code() {
            Some(0) => Ok(Prepared::Ready(place)),
            Some(SKIPPED) => {
                Ok(Prepared::Skipped(String::from_utf8_lossy(&output).trim().to_owned()))
            }
            _ => bail!("prepare: {status}: {told}"),
        }
    }

    /// From now on a run that takes far longer than this is taken for one that hangs. Far longer: the
    /// machine may be suspended meanwhile.
    pub fn usually(&mut self, seconds: f64) {
        self.limit = Duration::from_secs_f64(180.0 + 10.0 * seconds.clamp(0.0, 3600.0));
    }

    /// Runs in a directory of its own, the same one each time: some programs' output names it.
    ///
    /// The time is the script's own where it writes one to `$SECONDS_FILE`, as those do that start a
    /// server first.
    pub fn run(&self, under: Option<Under<'_>>) -> Result<Ran> {
        let directory = self.prepared.join("run");
        fs::create_dir(&directory)?;
        open_to_all(&directory)?;
        let (begun, used) = (Instant::now(), children::cpu_seconds());
        let (status, output, told) = self.start("run", &directory, under)?;
        let whole = begun.elapsed().as_secs_f64();
        children::reap_orphans(ENDING);
        let cpu = children::cpu_seconds() - used;
        let own = fs::read_to_string(directory.join("seconds")).ok();
        fs::remove_dir_all(&directory)?;
        if !status.success() {
            bail!("{status}: {told}");
        }
        let seconds = match own {
            Some(text) => text
                .trim()
                .parse()
                .with_context(|| format!("seconds: found \"{}\"", text.trim()))?,
            None => whole,
        };
        Ok(Ran { seconds, whole, cpu, output })
    }

    fn start(
        &self,
        step: &str,
        directory: &Path,
        under: Option<Under<'_>>,
    ) -> Result<(ExitStatus, Vec<u8>, String)> {
        let command = scripts::step(step, &self.prepared, directory);
        let mut command = scripts::with_input(command, self.percent);
        if let Some(Under { library, profile, counts }) = under {
            command.env("LD_PRELOAD", library);
            if let Some(profile) = profile {
                command.env("CACHEWISE_PROFILE", profile);
            }
            if let Some(counts) = counts {
                command.env("CACHEWISE_STATS", counts);
            }
        }
        // Files and not pipes: what a script leaves running holds no pipe open that we wait for.
        let files = ["output", "errors"].map(|name| self.prepared.join(name));
        command.stdout(File::create(&files[0])?).stderr(File::create(&files[1])?);
        // A group of its own: Ctrl-C is for us, who let it finish and stop its servers.
        command.process_group(0);
        let mut child = command.spawn().context("sh")?;
        let Some(status) = wait(&mut child, self.limit)? else {
            bail!("still running after {:.0} s: ended", self.limit.as_secs_f64());
        };
        let told = String::from_utf8_lossy(&fs::read(&files[1])?).trim().to_owned();
        Ok((status, fs::read(&files[0])?, told))
    }
}

/// Its status; `None` where it was still running after so long, and was killed with its group.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let pid = Pid::from_child(child);
    let watched = pidfd_open(pid, PidfdFlags::empty())?;
    let begun = Instant::now();
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        let timeout = Timespec::try_from(left)?;
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => {
                // Not waited for yet, so that its number is still its own.
                kill_process_group(pid, Signal::KILL)?;
                child.wait()?;
                return Ok(None);
            }
            Ok(_) => return Ok(Some(child.wait()?)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_hangs_is_ended_with_what_it_started() {
        let directory = tempfile::tempdir().expect("a directory");
        let alive = directory.path().join("alive");
        let mut command = Command::new("sh");
        command.arg("-c").arg("sleep 600 & echo $! >alive.new; mv alive.new alive; wait");
        let mut child =
            command.current_dir(directory.path()).process_group(0).spawn().expect("started");
        while !alive.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(wait(&mut child, Duration::from_millis(50)).expect("waited").is_none());
        let started = fs::read_to_string(&alive).expect("its child's number");
        let state = |pid: &str| fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let gone = |stat: std::io::Result<String>| {
            stat.map_or(true, |text| text.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")))
        };
        for _ in 0..1000 {
            if gone(state(&started)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{started} lives on");
    }

    #[test]
    fn a_status_is_passed_on_in_time() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().expect("started");
        let status = wait(&mut child, Duration::from_secs(60)).expect("waited").expect("ended");
        assert_eq!(status.code(), Some(3));
    }
}
