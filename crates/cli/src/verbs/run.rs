//! `cachewise run EXPERIMENT`.

use crate::args::Run;
use crate::progress::Bar;
use crate::verbs::export::tunables_of;
use crate::verbs::redraw::{self, Loaded};
use crate::verbs::verify;
use crate::{output, status};
use cachewise::profile::Profile;
use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::elsewhere::TUNED_LIBC;
use cachewise_lab::experiments::{self, Finish, Options, Setting};
use cachewise_measure::{Decisions, Note, Record, Row, Warning, Writer};
use cachewise_report::closing::{self, Closing, Trust};
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
    let mut bench = Bench::new(args.seed.unwrap_or_else(super::drawn_seed), args.memory)?;
    // The profile in force decides for the library and, in glibc's terms, for libc.
    let follows = super::profile_in_force().and_then(|path| Profile::read(path).ok());
    let tunables = follows.as_ref().filter(|_| cfg!(target_env = "gnu")).map(tunables_of);
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
    let mut header = bench.header(settings);
    header.figures = experiment.figures();
    let writer = match &args.json {
        Some(path) => output::record_writer(path)?,
        None => Writer::to(Box::new(std::io::sink())),
    };
    let mut kept = Kept { writer, rows: Vec::new(), notes: Vec::new(), verdicts: Vec::new() };
    kept.writer.header(&header)?;
    let outcome = {
        let kept = std::cell::RefCell::new(&mut kept);
        experiment.run(&mut Setting {
            bench: &mut bench,
            options: &options,
            observer: &mut bar,
            rows: &mut |row| kept.borrow_mut().row(row),
            notes: &mut |note| kept.borrow_mut().note(note),
            verdicts: &mut |verdict| kept.borrow_mut().verdict(verdict),
        })
    };
    bar.clear();
    let interrupted = match outcome {
        Ok(finish) => finish == Finish::Interrupted,
        // What is finished was honestly measured; a record that cannot be written is lost anyway.
        Err(error @ LabError::Record(_)) => return Err(error.into()),
        Err(error) => {
            kept.writer.finish(true)?;
            return Err(error.into());
        }
    };
    let end = kept.writer.finish(interrupted)?;
    let notes = kept.notes.iter().map(|text| Note { text: text.clone() }).collect();
    let record =
        Record { header, rows: kept.rows, notes, decisions: Decisions::default(), end: Some(end) };
    show(args, experiment.name, record, &bench.warnings(), follows.is_some())?;
    for note in &kept.notes {
        output::tell(&format!("note: {note}"));
    }
    Ok(if interrupted { status::INTERRUPTED } else { status::OK })
}

/// What a run has brought, written as it comes.
struct Kept {
    writer: Writer,
    rows: Vec<Row>,
    notes: Vec<String>,
    verdicts: Vec<String>,
}

impl Kept {
    fn row(&mut self, row: &Row) -> Result<(), LabError> {
        self.writer.row(row)?;
        self.rows.push(row.clone());
        Ok(())
    }

    fn note(&mut self, note: String) -> Result<(), LabError> {
        self.writer.note(&note)?;
        self.notes.push(note);
        Ok(())
    }

    fn verdict(&mut self, verdict: String) {
        self.writer.verdict(&verdict);
        self.verdicts.push(verdict);
    }
}

/// Writes and prints what was asked for.
fn show(
    args: &Run,
    experiment: &str,
    record: Record,
    warnings: &[Warning],
    has_profile: bool,
) -> anyhow::Result<()> {
    let rows = &record.rows;
    let interrupted = record.end.as_ref().is_some_and(|end| end.interrupted);
    let tables = cachewise_report::experiment_tables(experiment, rows);
    if let Some(path) = &args.csv {
        let mut bytes = Vec::new();
        cachewise_report::matrix::flat(rows).csv(&mut bytes)?;
        output::write(path, &bytes)?;
    }
    if let Some(path) = &args.markdown {
        let text: Vec<String> = tables.iter().map(cachewise_report::Table::markdown).collect();
        output::write(path, text.join("\n").as_bytes())?;
    }
    let (answer, because) = closing::gain_of(rows);
    let closing = Closing {
        answer,
        because,
        trust: Trust::of(rows, warnings, interrupted),
        next: next(experiment, has_profile, interrupted),
    };
    for warning in warnings {
        output::tell(&format!(
            "warning: {} ({}); remedy: {}",
            warning.cause, warning.figure, warning.remedy
        ));
    }
    if interrupted {
        output::tell(&format!("cachewise: interrupted; {} finished rows kept", rows.len()));
    }
    let stdout = Some(Path::new("-"));
    if args.json.as_deref() != stdout && args.html.as_deref() != stdout {
        let mut text = String::new();
        for verdict in cachewise_report::verdicts(&record) {
            text.push_str(&format!("{verdict}\n"));
        }
        text.push_str(&format!("{}\n", record.header.machine.summary_line()));
        for table in &tables {
            text.push('\n');
            text.push_str(&table.terminal(output::width()));
        }
        output::print(&text)?;
        if args.plot {
            output::print(&redraw::plots(&record))?;
        }
        output::print(&format!("\n{closing}"))?;
    }
    if let Some(path) = &args.html {
        output::write(
            path,
            redraw::page(&[Loaded { name: format!("{experiment}.jsonl"), record }])?.as_bytes(),
        )?;
    }
    Ok(())
}

/// What to do after a run.
fn next(experiment: &str, has_profile: bool, interrupted: bool) -> String {
    match experiment {
        _ if interrupted => "the same command again, to its end".to_owned(),
        "peers" | "hints" if !has_profile => {
            "`cachewise tune --quick`, then this again: the library had no profile to follow"
                .to_owned()
        }
        "peers" | "hints" => {
            "`cachewise exec -- PROGRAM` runs a program on the library; `cachewise doctor` says \
             whether that pays here"
                .to_owned()
        }
        "page-fault" => {
            "`cachewise exec --pool 1G -- PROGRAM`, where programs take and give back large blocks"
                .to_owned()
        }
        _ => format!(
            "`cachewise tune` measures what to use and writes it down; `run {experiment} --json FILE` \
             keeps these figures"
        ),
    }
}
