//! `cachewise run EXPERIMENT`.

use crate::args::Run;
use crate::progress::Bar;
use crate::verbs::export::tunables_of;
use crate::verbs::launches;
use crate::verbs::outcome::show;
use crate::verbs::verify;
use crate::{output, status};
use cachewise::profile::Profile;
use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::experiments::{self, Options, Setting};
use cachewise_lab::recorder::Recorder;
use cachewise_measure::record::names::{SHARED, TUNED_LIBC};
use cachewise_measure::{Note, Record, Writer};
use cachewise_report::sentences;
use std::collections::BTreeMap;

/// Runs it, prints its tables, writes what was asked for.
pub fn run(args: &Run) -> anyhow::Result<u8> {
    let experiment = experiments::find(&args.experiment)?;
    // Cheap refusals before a second is spent on calibration.
    cachewise_lab::select::kernels(experiment.operations, args.kernels.as_deref())?;
    let files = [&args.json, &args.csv, &args.markdown, &args.html];
    if args.verify_only {
        return verify::experiment(args, experiment);
    }
    output::check_all(&files.map(|file| file.as_deref()))?;
    let mut bar = Bar::new()?;
    match (args.launch, args.launches) {
        (Some(which), Some(many)) => {
            bar.launch = Some((which, many));
            launches::end_with_parent();
        }
        (None, Some(many)) => return launches::run(args, experiment, many, &bar),
        _ => {}
    }
    let mut bench = Bench::new(args.seed.unwrap_or_else(super::drawn_seed), args.memory)?;
    // The profile in force decides for the library and, in glibc's terms, for libc.
    let follows = super::profile_in_force().and_then(|path| Profile::read(path).ok());
    let tunables = follows.as_ref().filter(|_| cfg!(target_env = "gnu")).map(tunables_of);
    let is_peers = experiment.name == "peers";
    // Of several launches the first one tells.
    let left_out = |who: &str, why: &str| {
        if matches!(args.launch, None | Some(1)) {
            output::tell(&format!("note: {who} left out: {why}"));
        }
    };
    if is_peers && tunables.is_none() {
        left_out(TUNED_LIBC, "it takes glibc and a profile for this CPU (`cachewise tune`)");
    }
    // Not what lies beside the program, which may be of another build.
    let mut shared = None;
    if is_peers {
        match crate::libraries::written_out("libcachewise_c.so") {
            Ok(Some(library)) => shared = Some(library),
            Ok(None) => left_out(SHARED, "this build carries no library"),
            Err(error) => left_out(SHARED, &format!("{error:#}")),
        }
    }
    let options = Options {
        tunables,
        kernels: args.kernels.clone(),
        sizes: args.size.clone(),
        placements: args.residency.clone(),
        quick: args.quick,
        classic: args.classic,
        rounds: args.rounds.map(|rounds| rounds as usize),
        operations: args.op.clone(),
        peers: args.peer.clone(),
        distribution: args.distribution.clone(),
        helper: std::env::current_exe().ok(),
        shared,
    };
    let mut settings = BTreeMap::from([
        ("experiment".to_owned(), experiment.name.into()),
        ("quick".to_owned(), args.quick.into()),
        ("classic".to_owned(), args.classic.into()),
    ]);
    if let Some(tunables) = options.tunables.as_ref().filter(|_| is_peers) {
        settings.insert("libc+tunables".to_owned(), tunables.as_str().into());
    }
    let mut header = bench.header(settings);
    header.figures = experiment.figures();
    let mut writer = match args.launch_record.as_ref().or(args.json.as_ref()) {
        Some(path) => output::record_writer(path)?,
        None => Writer::to(Box::new(std::io::sink())),
    };
    writer.header(&header)?;
    let mut out = Recorder::new(&mut bar, Some(writer));
    let mut setting = Setting { bench: &mut bench, options: &options, out: &mut out };
    let outcome = experiment.run(&mut setting);
    let interrupted = matches!(outcome, Err(LabError::Interrupted | LabError::Record(_)));
    // What is finished was honestly measured, and is shown although its record cannot be written.
    let lost = match outcome {
        Ok(()) | Err(LabError::Interrupted) => Ok(()),
        Err(error @ LabError::Record(_)) => Err(error),
        Err(error) => {
            let _ = out.finish(true, &[]);
            return Err(error.into());
        }
    };
    let verdicts = sentences::of(experiment.name, &out.rows, &out.decisions.kernels);
    let (end, lost) = match out.finish(interrupted, &verdicts) {
        Ok(end) => (end, lost),
        Err(error) => (None, lost.and(Err(error.into()))),
    };
    let Recorder { rows, notes, decisions, .. } = out;
    bar.clear();
    let exit = if interrupted { status::INTERRUPTED } else { status::OK };
    if args.launch.is_some() {
        // Who started it shows all launches together.
        return Ok(lost.map(|()| exit)?);
    }
    let kept = notes.iter().map(|text| Note { text: text.clone() }).collect();
    let record = Record { header, rows, notes: kept, decisions, end };
    let shown = show(args, experiment.name, record, interrupted, &bench.warnings());
    lost?;
    shown?;
    Ok(exit)
}
