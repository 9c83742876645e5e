//! `cachewise run EXPERIMENT`.

use crate::args::Run;
use crate::progress::Bar;
use crate::verbs::export::tunables_of;
use crate::verbs::redraw;
use crate::verbs::verify;
use crate::{output, status};
use anyhow::Context;
use cachewise::Source;
use cachewise::profile::Profile;
use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::elsewhere::TUNED_LIBC;
use cachewise_lab::experiments::{self, Finish, Options, Setting};
use cachewise_measure::{Row, Writer};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs it, prints its tables, writes what was asked for.
pub fn run(args: &Run) -> anyhow::Result<u8> {
    let experiment = experiments::find(&args.experiment)?;
    // Cheap refusals before a second is spent on calibration.
    cachewise_lab::select::kernels(experiment.operations, args.kernels.as_deref())?;
    let files = [&args.json, &args.csv, &args.markdown, &args.html];
    if args.verify_only {
        return verify::experiment(args, experiment);
    }
    for path in files.into_iter().flatten() {
        if path != Path::new("-") {
            output::check_writable(path)?;
        }
    }
    let mut bar = Bar::new()?;
    let mut bench = Bench::new(args.seed.unwrap_or_else(drawn_seed), args.memory)?;
    // The profile in force decides for the library and, in glibc's terms, for libc.
    let profile = match cachewise::profile_source() {
        Source::Environment(path) | Source::User(path) | Source::Machine(path) => {
            Profile::read(path.as_path()).ok()
        }
        _ => None,
    };
    let tunables = profile.filter(|_| cfg!(target_env = "gnu")).as_ref().map(tunables_of);
    if experiment.name == "peers" && tunables.is_none() {
        anstream::eprintln!(
            "note: {TUNED_LIBC} left out: it takes glibc and a profile for this CPU (`cachewise tune`)"
        );
    }
    let options = Options {
        tunables,
        kernels: args.kernels.clone(),
        sizes: args.size.clone(),
        placements: args.residency.iter().map(|p| (p.source, p.destination)).collect(),
        quick: args.quick,
        classic: args.classic,
        rounds: args.rounds.map(|rounds| rounds as usize),
        operations: args.op.clone(),
        peers: args.peer.clone(),
        distribution: args.distribution.clone(),
        helper: std::env::current_exe().ok(),
        launcher: Some(super::time_calls::launch),
    };
    let mut settings = BTreeMap::from([
        ("experiment".to_owned(), experiment.name.into()),
        ("quick".to_owned(), args.quick.into()),
        ("classic".to_owned(), args.classic.into()),
    ]);
    if let Some(tunables) = options.tunables.as_ref().filter(|_| experiment.name == "peers") {
        settings.insert("libc+tunables".to_owned(), tunables.as_str().into());
    }
    let mut writers: Vec<Writer> =
        args.json.as_deref().map(output::record_writer).transpose()?.into_iter().collect();
    // What is drawn is drawn from a record, whether or not one was asked for.
    let kept = (args.html.is_some() || args.plot)
        .then(|| tempfile::tempdir().context("no temporary directory"))
        .transpose()?;
    let kept_path =
        kept.as_ref().map(|kept| kept.path().join(format!("{}.jsonl", experiment.name)));
    if let Some(path) = &kept_path {
        writers.push(Writer::create(path)?);
    }
    let mut header = bench.header(settings);
    header.figures = experiment.figures();
    writers.iter_mut().try_for_each(|writer| writer.header(&header))?;
    let mut rows: Vec<Row> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    let mut verdicts: Vec<String> = Vec::new();
    let outcome = {
        let writers = std::cell::RefCell::new(&mut writers);
        experiment.run(&mut Setting {
            bench: &mut bench,
            options: &options,
            observer: &mut bar,
            rows: &mut |row| {
                writers.borrow_mut().iter_mut().try_for_each(|writer| writer.row(row))?;
                rows.push(row.clone());
                Ok(())
            },
            notes: &mut |note| {
                writers.borrow_mut().iter_mut().try_for_each(|writer| writer.note(&note))?;
                notes.push(note);
                Ok(())
            },
            verdicts: &mut |verdict| {
                writers.borrow_mut().iter_mut().for_each(|writer| writer.verdict(&verdict));
                verdicts.push(verdict);
            },
        })
    };
    bar.clear();
    let finish = match outcome {
        Ok(finish) => finish,
        // What is finished was honestly measured; a record that cannot be written is lost anyway.
        Err(error @ LabError::Record(_)) => return Err(error.into()),
        Err(error) => {
            for writer in writers {
                writer.finish(true)?;
            }
            return Err(error.into());
        }
    };
    let interrupted = finish == Finish::Interrupted;
    let stdout = Some(Path::new("-"));
    let to_stdout = args.json.as_deref() == stdout || args.html.as_deref() == stdout;
    for writer in writers {
        writer.finish(interrupted)?;
    }
    let tables = cachewise_report::experiment_tables(experiment.name, &rows);
    if let Some(path) = &args.csv {
        let mut bytes = Vec::new();
        cachewise_report::matrix::flat(&rows).csv(&mut bytes)?;
        output::write(path, &bytes)?;
    }
    if let Some(path) = &args.markdown {
        let text: Vec<String> = tables.iter().map(cachewise_report::Table::markdown).collect();
        output::write(path, text.join("\n").as_bytes())?;
    }
    if !to_stdout {
        let mut text = String::new();
        for verdict in &verdicts {
            text.push_str(verdict);
            text.push('\n');
        }
        text.push_str(&format!("{}\n", bench.machine.summary_line()));
        for table in &tables {
            text.push('\n');
            text.push_str(&table.terminal(output::width()));
        }
        output::print(&text)?;
    }
    if let Some(path) = &kept_path {
        let drawn = redraw::Loaded::read(path)?;
        if args.plot && !to_stdout {
            output::print(&redraw::plots(&drawn.record))?;
        }
        if let Some(path) = &args.html {
            output::write(path, redraw::page(&[drawn])?.as_bytes())?;
        }
    }
    for warning in bench.warnings() {
        anstream::eprintln!(
            "warning: {} ({}); remedy: {}",
            warning.cause,
            warning.figure,
            warning.remedy
        );
    }
    for note in &notes {
        anstream::eprintln!("note: {note}");
    }
    if interrupted {
        anstream::eprintln!("cachewise: interrupted; {} finished rows kept", rows.len());
        return Ok(status::INTERRUPTED);
    }
    Ok(status::OK)
}

/// A seed nobody chose; it is recorded.
pub fn drawn_seed() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes) >> 16,
        _ => std::process::id().into(),
    }
}
