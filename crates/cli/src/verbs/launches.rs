//! `cachewise run EXPERIMENT --launches N`: the same in N processes, and one record of them.

use super::outcome::show;
use crate::args::Run;
use crate::progress::Bar;
use crate::{output, status};
use anyhow::{Context as _, bail};
use cachewise_lab::experiments::Experiment;
use cachewise_lab::launches::merge;
use cachewise_lab::recorder::Progress as _;
use cachewise_measure::{NoiseSnapshot, record, warnings};
use cachewise_report::sentences;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Starts them one after the other, and shows and writes what they found together.
pub fn run(args: &Run, experiment: &Experiment, many: u32, bar: &Bar) -> anyhow::Result<u8> {
    let directory = output::temporary("--launches", tempfile::tempdir)?;
    let writer = args.json.as_deref().map(output::record_writer).transpose()?;
    let before = NoiseSnapshot::take();
    let (mut records, mut interrupted) = (Vec::new(), false);
    for which in 1..=many {
        let path = directory.path().join("launch.jsonl");
        let ended = if bar.cancelled() { None } else { Some(launch(which, &path, bar)?) };
        let code = ended.and_then(|ended| ended.code());
        // One that was told before it could listen died of it.
        interrupted =
            code == Some(i32::from(status::INTERRUPTED)) || code.is_none() && bar.cancelled();
        match code {
            Some(0) => {}
            _ if interrupted && path.exists() => {}
            _ if interrupted => break,
            // It has said why.
            Some(code) => return Ok(u8::try_from(code).unwrap_or(status::ERROR)),
            None => bail!("launch {which} of {many}: {}", ended.unwrap_or_default()),
        }
        records.push(record::read(&path)?);
        std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        if interrupted {
            break;
        }
    }
    let Some(mut all) = merge(records) else {
        output::tell("cachewise: interrupted; 0 finished rows kept");
        return Ok(status::INTERRUPTED);
    };
    all.header.command = std::env::args().collect();
    all.header.warnings = warnings(&before, &NoiseSnapshot::take(), &all.header.machine);
    let verdicts = sentences::of(experiment.name, &all.rows, &all.decisions.kernels);
    let written =
        writer.map(|writer| output::write_record(writer, &all, &verdicts, interrupted)).transpose();
    let disturbed = all.header.warnings.clone();
    show(args, experiment.name, all, interrupted, &disturbed)?;
    written?;
    Ok(if interrupted { status::INTERRUPTED } else { status::OK })
}

/// In one of them: when the process ends that started it, this one stops, too, as by a Ctrl-C.
pub fn end_with_parent() {
    // Where the system refuses, it goes on to its end for nobody.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::INT));
}

/// Starts this program as one of the launches, and waits. It is told when the user wants to stop, and stops
/// when this process ends.
fn launch(which: u32, path: &Path, bar: &Bar) -> anyhow::Result<ExitStatus> {
    let program = std::env::current_exe().context("this program's own file")?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    command.arg("--launch").arg(which.to_string()).arg("--launch-record").arg(path);
    // A Ctrl-C reaches this process alone, so that the other is told once.
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let started = command.spawn();
    let mut child = started.with_context(|| format!("{}: not started", program.display()))?;
    let mut told = false;
    loop {
        if let Some(ended) = child.try_wait()? {
            return Ok(ended);
        }
        if bar.cancelled() && !told {
            told = true;
            // It may have ended just now.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
