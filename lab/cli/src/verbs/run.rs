//! `cachewise run EXPERIMENT`: in this process, or in several that are one record.

use crate::args::Run;
use crate::progress::Bar;
use crate::verbs::redraw::{self, Loaded};
use crate::{output, status};
use anyhow::{Context as _, bail};
use cachewise::profile::Profile;
use cachewise_experiments::LabError;
use cachewise_experiments::bench::Bench;
use cachewise_experiments::experiment::{Experiment, Serves};
use cachewise_experiments::launches::merge;
use cachewise_experiments::other_libc::OtherLibc;
use cachewise_experiments::recorder::{Progress as _, Recorder};
use cachewise_experiments::registry;
use cachewise_experiments::{Options, Setting, said};
use cachewise_measure::record::names::SHARED;
use cachewise_measure::record::{self, Record};
use cachewise_measure::{Header, NoiseSnapshot, Note, Warning, Writer, warnings};
use cachewise_report::Said;
use cachewise_report::closing::{self, Closing, Trust};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The setting that says how much of the LLC operands were made for; `--llc` asks for the same.
const LLC: &str = "llc";

/// Runs it, prints its tables, writes what was asked for.
pub fn run(args: &Run) -> anyhow::Result<u8> {
    let experiment = registry::find(&args.experiment, args.item.as_deref())?;
    // Cheap refusals before a second is spent on calibration.
    cachewise_experiments::select::kernels(experiment.operations, args.kernels.as_deref())?;
    let read: Vec<&PathBuf> = args.libc.iter().chain(&args.distribution).collect();
    output::check_all(&args.files(), &read)?;
    let mut bar = Bar::new()?;
    match (args.launch, args.launches) {
        (Some(which), Some(many)) => {
            bar.launch = Some((which, many));
            end_with_parent();
        }
        (None, Some(many)) => return launches(args, experiment, many, &bar),
        _ => {}
    }
    let options = options(args, experiment)?;
    let mut writer = writer(args)?;
    let mut bench = bench(args)?;
    let header = header(args, experiment, &bench);
    writer.header(&header)?;
    let mut out = Recorder::new(&mut bar, Some(writer));
    let mut setting = Setting { bench: &mut bench, options: &options, out: &mut out };
    let outcome = experiment.carry_out(&mut setting);
    let interrupted = matches!(outcome, Err(LabError::Interrupted | LabError::Record(_)));
    // Finished rows are shown although their record cannot be written.
    let lost = match outcome {
        Ok(()) | Err(LabError::Interrupted) => Ok(()),
        Err(error @ LabError::Record(_)) => Err(error),
        Err(error) => {
            let _ = out.finish(true, &[]);
            return Err(error.into());
        }
    };
    let said = said::of(experiment.name, &header.settings, &out.rows);
    let (end, lost) = match out.finish(interrupted, &said.verdicts) {
        Ok(end) => (end, lost),
        Err(error) => (None, lost.and(Err(error.into()))),
    };
    let Recorder { rows, notes, decisions, .. } = out;
    bar.clear();
    let exit = if interrupted { status::INTERRUPTED } else { status::OK };
    if args.launch.is_some() {
        // The parent shows all launches together.
        return Ok(lost.map(|()| exit)?);
    }
    let notes = notes.into_iter().map(|text| Note { text }).collect();
    let record = Record { header, rows, notes, decisions, end };
    if interrupted {
        tell_of_end(record.rows.len(), lost.is_err());
    }
    let shown = show(args, experiment, record, said, interrupted, &bench.warnings());
    lost?;
    shown?;
    Ok(exit)
}

/// The bench, for the part of the LLC that was asked for.
fn bench(args: &Run) -> anyhow::Result<Bench> {
    let seed = args.seed.unwrap_or_else(super::drawn_seed);
    let mut bench = Bench::new(seed, args.memory, args.size.iter().copied().max().unwrap_or(0))?;
    if let Some(llc) = args.llc {
        bench.machine.caches.count_on(llc);
    }
    Ok(bench)
}

/// The library for C programs, written out to a file: not the file beside the program, which may be of another build.
fn shared(args: &Run) -> Option<PathBuf> {
    let found = crate::libraries::written_out("libcachewise_c.so");
    let why = match found {
        Ok(Some(library)) => return Some(library),
        Ok(None) => "this build carries no library".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    // The first of several launches prints it.
    if matches!(args.launch, None | Some(1)) {
        output::tell(&format!("note: {SHARED} left out: {why}"));
    }
    None
}

fn options(args: &Run, experiment: &Experiment) -> anyhow::Result<Options> {
    Ok(Options {
        kernels: args.kernels.clone(),
        sizes: args.size.clone(),
        placements: args.residency.clone(),
        quick: args.quick,
        classic: args.classic,
        rounds: args.rounds,
        operations: args.op.clone(),
        peers: args.peer.clone(),
        libcs: args.libc.iter().map(|folder| OtherLibc::of(folder)).collect::<Result<_, _>>()?,
        distribution: args.distribution.clone(),
        launch: args.launch,
        helper: std::env::current_exe().ok(),
        shared: experiment.takes_peers().then(|| shared(args)).flatten(),
    })
}

fn writer(args: &Run) -> anyhow::Result<Writer> {
    Ok(match args.launch_record.as_ref().or(args.json.as_ref()) {
        Some(path) => output::record_writer(path)?,
        None => Writer::to(Box::new(std::io::sink())),
    })
}

fn header(args: &Run, experiment: &Experiment, bench: &Bench) -> Header {
    let settings = BTreeMap::from([
        ("experiment".to_owned(), experiment.name.into()),
        ("quick".to_owned(), args.quick.into()),
        ("classic".to_owned(), args.classic.into()),
        (LLC.to_owned(), bench.machine.caches.usable().into()),
    ]);
    Header { figures: (experiment.figures)(), ..bench.header(settings) }
}

/// `--launches N`: the same in N processes, one after the other, and one record of what they found.
fn launches(args: &Run, experiment: &Experiment, many: u32, bar: &Bar) -> anyhow::Result<u8> {
    let directory = output::temporary("--launches", output::folder)?;
    let writer = match &args.json {
        Some(path) => Some(output::record_writer(path)?),
        None => None,
    };
    let before = NoiseSnapshot::take();
    let (mut records, mut interrupted) = (Vec::new(), false);
    for which in 1..=many {
        let path = directory.path().join("launch.jsonl");
        let llc = records.first().map(|first: &Record| first.header.machine.caches.usable());
        let llc = llc.filter(|_| args.llc.is_none());
        let ended = if bar.cancelled() { None } else { Some(again(which, llc, &path, bar)?) };
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
    let said = said::said(&all);
    let keep = |writer| output::write_record(writer, &all, &said.verdicts, interrupted);
    let written = writer.map(keep).transpose();
    let disturbed = all.header.warnings.clone();
    if interrupted {
        tell_of_end(all.rows.len(), written.is_err());
    }
    show(args, experiment, all, said, interrupted, &disturbed)?;
    written?;
    Ok(if interrupted { status::INTERRUPTED } else { status::OK })
}

/// Says what happened to the rows of a run that did not come to its end.
fn tell_of_end(rows: usize, is_lost: bool) {
    let (ended, kept) = match is_lost {
        true => ("its record cannot be written", "shown, not kept"),
        false => ("interrupted", "kept"),
    };
    output::tell(&format!("cachewise: {ended}; {rows} finished rows {kept}"));
}

/// In one of them: when the process ends that started it, this one stops, too, as by SIGTERM: `nohup` ignores a Ctrl-C.
fn end_with_parent() {
    // If the system refuses, the launch runs to its end.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
}

/// Starts this program as one of the launches, which stops when this process ends, and waits. It is sent a signal when
/// the user wants to stop.
fn again(which: u32, llc: Option<usize>, path: &Path, bar: &Bar) -> anyhow::Result<ExitStatus> {
    let program = std::env::current_exe().context("this program's own file")?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    command.args(["--launch".into(), which.to_string()]).arg("--launch-record").arg(path);
    command.args(llc.map(|llc| format!("--{LLC}={llc}")));
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
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes and prints what was asked for of one launch or of several; what cannot be written costs nothing of the rest.
fn show(
    args: &Run,
    experiment: &Experiment,
    record: Record,
    said: Said,
    interrupted: bool,
    warnings: &[Warning],
) -> anyhow::Result<()> {
    let rows = &record.rows;
    let notes: Vec<String> = record.notes.iter().map(|note| note.text.clone()).collect();
    let mut written = Ok(());
    if let Some(path) = &args.csv {
        let csv = cachewise_report::matrix::flat([(&record.header.machine, &rows[..])]).csv();
        written = written.and(output::write(path, csv.as_bytes()));
    }
    if let Some(path) = &args.markdown {
        let text: Vec<String> = said.tables.iter().map(cachewise_report::Table::markdown).collect();
        written = written.and(output::write(path, text.join("\n").as_bytes()));
    }
    let next = next(experiment, args.json.is_some(), interrupted);
    let (answer, because) = closing::gain_of(rows, experiment.today);
    let closing = Closing { answer, because, trust: Trust::of(rows, warnings, interrupted), next };
    for warning in warnings {
        output::tell(&format!("warning: {warning}"));
    }
    if !args.files().into_iter().flatten().any(output::is_stdout) {
        let text = redraw::summary(&record, &said);
        written = written.and(output::print(&format!("{text}\n{closing}")));
    }
    if let Some(path) = &args.html {
        let name = format!("{}.jsonl", experiment.name);
        let page = redraw::page(&[Loaded { name, record }]);
        written = written.and(page.and_then(|page| output::write(path, page.as_bytes())));
    }
    for note in notes {
        output::tell(&format!("note: {note}"));
    }
    written
}

/// Next step after a run.
fn next(experiment: &Experiment, is_kept: bool, interrupted: bool) -> String {
    let has_profile = super::profile_in_force().is_some_and(|path| Profile::read(path).is_ok());
    match experiment.serves {
        _ if interrupted => "the same command again, to its end".to_owned(),
        Serves::Library if !has_profile => {
            "`cachewise tune --quick`, then this again: the library had no profile to follow"
                .to_owned()
        }
        Serves::Library => {
            "`cachewise exec -- PROGRAM` runs a program on the library; `cachewise doctor` says \
             whether that pays here"
                .to_owned()
        }
        Serves::Pool => {
            "a pool in the program (docs/page-pool.md) where its rows are ahead of `calloc`'s and THP's; \
             `cachewise advise -- PROGRAM` tries what else there is"
                .to_owned()
        }
        Serves::Tuner if is_kept => {
            "`cachewise tune` measures what to use and writes it down".to_owned()
        }
        Serves::Tuner => format!(
            "`cachewise tune` measures what to use and writes it down; `run {} --json FILE` \
             keeps these figures",
            experiment.name
        ),
    }
}
