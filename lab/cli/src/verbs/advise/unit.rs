//! A service of systemd: restarted with a setting in a run-time drop-in, and restored whatever happens.
//!
//! A guard waits for the end of this process, however it ends: it holds the other end of a pipe. Then it removes the
//! drop-in and restarts the service as it was. Nobody else removes it, so that this way is the tested one.

use anyhow::{Context as _, bail};
use cachewise_advise::candidates::Candidate;
use cachewise_advise::written;
use rustix::process::Pid;
use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The drop-in's file: behind those of others.
const FILE: &str = "zz-cachewise-advise.conf";
/// How long a service may take until it is active.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often it is asked.
const OFTEN: Duration = Duration::from_millis(20);
/// Script of the guard: `$1` is the drop-in, `$2` the service; the rest is how systemctl is called.
const GUARD: &str = "trap '' INT TERM HUP QUIT; read _; file=$1 unit=$2; shift 2; \
    rm -f \"$file\"; rmdir \"${file%/*}\" 2>/dev/null; \"$@\" daemon-reload; \
    \"$@\" reset-failed \"$unit\" 2>/dev/null; exec \"$@\" restart \"$unit\"";

/// A running service.
pub struct Unit {
    name: String,
    /// `systemctl`, and `--user` for a user's.
    manager: Vec<String>,
    file: PathBuf,
    guard: Option<(Child, ChildStdin)>,
}

impl Unit {
    /// A service that is active: the system's, or else the user's.
    ///
    /// # Errors
    /// There is no such service, it does not run, or nothing can be set for it.
    pub fn open(name: &str) -> anyhow::Result<Unit> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            bail!("--unit {name:?}: accepted the name of a unit, such as redis or redis.service");
        }
        let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        if !full.ends_with(".service") {
            bail!("--unit {name}: found another kind of unit; accepted a service");
        }
        let mut found = Vec::new();
        for scope in [&[][..], &["--user"]] {
            let manager: Vec<String> = std::iter::once("systemctl")
                .chain(scope.iter().copied())
                .map(str::to_owned)
                .collect();
            let Ok(shown) = show(&manager, &full, "LoadState,ActiveState") else { continue };
            if shown == ["loaded", "active"] {
                let folder = run_time_folder(&manager)?;
                let file = folder.join(format!("{full}.d")).join(FILE);
                return Ok(Unit { name: full, manager, file, guard: None });
            }
            found.push(shown.join(", "));
        }
        let found = if found.is_empty() { "no systemd".to_owned() } else { found.join("; ") };
        bail!("--unit {name}: found {found}; accepted a service that is loaded and active")
    }

    /// Restarts it by a setting, or as it is; its first process.
    ///
    /// # Errors
    /// It cannot be written for or restarted, or does not become active.
    pub fn restart(&mut self, by: Option<&Candidate>) -> anyhow::Result<Pid> {
        if self.guard.is_none() {
            self.guard = Some(self.watch_over()?);
        }
        match by {
            None if self.file.exists() => fs::remove_file(&self.file)?,
            None => {}
            Some(candidate) => {
                if !candidate.words.is_empty() {
                    bail!("--unit: {}: a service's command is not changed", candidate.name);
                }
                let about = format!("{}: tried by cachewise advise", candidate.name);
                let text = written::text(written::Form::Systemd, candidate, &[], &about);
                let text = text.map_err(anyhow::Error::msg)?;
                let folder = self.file.parent().unwrap_or(Path::new("/"));
                let named = || self.file.display().to_string();
                fs::create_dir_all(folder).with_context(named)?;
                fs::write(&self.file, text).with_context(named)?;
            }
        }
        self.systemctl(&["daemon-reload"])?;
        // Many restarts in a short time are what is asked for here.
        let _ = self.systemctl(&["reset-failed", &self.name]);
        self.systemctl(&["restart", &self.name])?;
        let begun = Instant::now();
        loop {
            let shown = show(&self.manager, &self.name, "ActiveState,MainPID")?;
            if let [state, main] = &shown[..]
                && state == "active"
                && let Some(pid) = main.parse().ok().and_then(Pid::from_raw)
            {
                return Ok(pid);
            }
            if begun.elapsed() > PATIENCE || shown.first().is_some_and(|state| state == "failed") {
                bail!("{}: {} after a restart", self.name, shown.join(", "));
            }
            std::thread::sleep(OFTEN);
        }
    }

    /// CPU seconds since it was started; none where they are not counted.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let shown = show(&self.manager, &self.name, "CPUUsageNSec").ok()?;
        shown
            .first()?
            .parse::<u64>()
            .ok()
            .filter(|used| *used < u64::MAX)
            .map(|used| used as f64 * 1e-9)
    }

    /// The service's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Restores it: as before, without the drop-in.
    ///
    /// # Errors
    /// It could not be restarted; the drop-in is gone all the same.
    pub fn restore(mut self) -> anyhow::Result<()> {
        self.end_guard()
    }

    fn end_guard(&mut self) -> anyhow::Result<()> {
        let Some((mut guard, pipe)) = self.guard.take() else { return Ok(()) };
        drop(pipe);
        let status = guard.wait()?;
        if !status.success() {
            bail!("{}: the restart that restores it: {status}", self.name);
        }
        Ok(())
    }

    fn watch_over(&self) -> anyhow::Result<(Child, ChildStdin)> {
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD, "guard"]).arg(&self.file).arg(&self.name).args(&self.manager);
        // A group of its own: Ctrl-C at a terminal does not reach it.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut guard = shell.spawn().context("sh")?;
        let pipe = guard.stdin.take().context("a pipe")?;
        Ok((guard, pipe))
    }

    fn systemctl(&self, words: &[&str]) -> anyhow::Result<()> {
        let (program, scope) = self.manager.split_first().context("systemctl")?;
        let said = Command::new(program).args(scope).args(words).stdin(Stdio::null()).output()?;
        if !said.status.success() {
            let told = String::from_utf8_lossy(&said.stderr);
            bail!(
                "systemctl {}: {}",
                words.join(" "),
                told.trim().lines().last().unwrap_or("failed")
            );
        }
        Ok(())
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // Said by `restore` where somebody asks.
        let _ = self.end_guard();
    }
}

/// Properties of a unit, in the order in which they are asked for.
fn show(manager: &[String], unit: &str, properties: &str) -> anyhow::Result<Vec<String>> {
    let (program, scope) = manager.split_first().context("systemctl")?;
    let mut child = Command::new(program)
        .args(scope)
        .args(["show", unit, "--property", properties])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("systemctl")?;
    let mut text = String::new();
    child.stdout.take().context("a pipe")?.read_to_string(&mut text)?;
    if !child.wait()?.success() {
        bail!("systemctl show {unit}: failed");
    }
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().to_owned()
    };
    Ok(properties.split(',').map(value).collect())
}

/// Directory of a manager's drop-ins that a restart of the machine removes.
fn run_time_folder(manager: &[String]) -> anyhow::Result<PathBuf> {
    let (program, scope) = manager.split_first().context("systemctl")?;
    let mut command = Command::new(program);
    command.args(scope).args(["show", "--property", "UnitPath", "--value"]).stdin(Stdio::null());
    let text = String::from_utf8_lossy(&command.output().context("systemctl")?.stdout).into_owned();
    let is_one = |folder: &&str| {
        folder.contains("/run/")
            && (folder.ends_with("/systemd/system") || folder.ends_with("/systemd/user"))
    };
    let found = text.split_whitespace().find(is_one);
    Ok(PathBuf::from(found.unwrap_or("/run/systemd/system")))
}
