//! `cachewise advise`: what to set for one program, found by running it.

mod caller;
mod forms;
mod saved;

use super::{exec, export, redraw};
use crate::args::{self, Advise};
use crate::progress::Bar;
use crate::{advised, output, program as programs, python, status};
use anyhow::Context as _;
use cachewise::profile::Profile;
use cachewise_advise::ask::{self, Asked, Findings, Goal, Usage};
use cachewise_advise::figure::Pattern;
use cachewise_advise::load::Load;
use cachewise_advise::parts::LOADS;
use cachewise_advise::probe::LIBRARY as LIBRARY_THAT_ASKS;
use cachewise_advise::program::{Arm, Conditions, Prints};
use cachewise_advise::settings::Candidate;
use cachewise_experiments::LabError;
use cachewise_judge::Verdict;
use cachewise_judge::race::Ended;
use cachewise_measure::{Machine, NoiseSnapshot, warnings};
use saved::Saved;
use std::path::{Path, PathBuf};

/// Seconds after a load, unless `--settle` says otherwise.
const SETTLE: f64 = 1.0;
/// Time that may be lost for memory, unless `--at-most` says otherwise.
const AT_MOST: f64 = 0.02;

/// Finds out, says, and writes what was asked for.
pub fn run(args: &Advise) -> anyhow::Result<u8> {
    args.write.as_deref().map(forms::of).transpose()?;
    has_its_options(args)?;
    let Some(file) = exec::program(&args.program[0], "advise")? else {
        return Ok(exec::NOT_FOUND);
    };
    let inputs: Vec<&PathBuf> = args.compare.iter().chain(&args.input).chain([&file]).collect();
    let files = [&args.json, &args.html, &args.write].map(|file| file.as_deref());
    output::check_all(&files, &inputs)?;
    let compared = args.compare.iter().filter(|file| file.exists());
    for input in compared.chain(&args.input) {
        programs::regular(input).with_context(|| input.display().to_string())?;
    }
    if let Some(status) = caller::apart()? {
        return Ok(status);
    }
    if let Some(line) = args.program.first().and_then(|program| python::told(program)) {
        output::tell(&line);
    }
    let machine = Machine::describe();
    let bar = Bar::new()?;
    let mut notes = Vec::new();
    let profile = InForce::of(args)?;
    let asked = asked(args, file, &machine, &profile, &bar, &mut notes)?;
    let answered = found(&asked, bar);
    let mut found = answered.map_err(|error| python::explained(error, &args.program))?;
    found.notes.splice(0..0, notes);
    say(found, &asked, args, machine)
}

/// Asks, with the bar for how far it is.
fn found(asked: &Asked, mut bar: Bar) -> anyhow::Result<Findings> {
    let progress = Box::new(move |what: &str, spent, left| bar.expected(what, spent, left));
    ask::ask(asked, progress, &output::tell).map_err(|error| match error.downcast::<Usage>() {
        Ok(usage) => LabError::Usage(usage.0).into(),
        Err(error) => error,
    })
}

/// Refuses options that others ask for, and files that are not there, before anything is run.
fn has_its_options(args: &Advise) -> anyhow::Result<()> {
    let lacking = [
        (
            args.at_most.is_some() && args.goal == args::Goal::Time,
            "--at-most",
            "--goal memory or peak",
        ),
        (args.settle.is_some() && args.load.is_none(), "--settle", "--load"),
    ];
    if let Some((_, option, other)) = lacking.into_iter().find(|(is_lacking, ..)| *is_lacking) {
        return Err(LabError::Usage(format!("{option} needs {other}")).into());
    }
    Ok(())
}

/// The profile that decides here.
struct InForce {
    file: Option<PathBuf>,
    parsed: Option<Profile>,
}

impl InForce {
    fn of(args: &Advise) -> anyhow::Result<InForce> {
        let named = args.profile.as_deref().map(programs::canonical).transpose()?;
        let file = named.as_deref().or_else(|| super::profile_in_force()).map(Path::to_owned);
        let parsed = super::read_or_shipped(file.as_deref())?;
        Ok(InForce { file, parsed })
    }

    /// Variables that preload the library with it; the library finds a user's and a machine's profile by itself.
    fn preload(&self, args: &Advise, library: &Path) -> Vec<(String, String)> {
        let is_named = args.profile.is_some()
            || matches!(cachewise::profile_source(), cachewise::Source::Environment(_));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let named = self.file.as_deref().filter(|_| is_named);
        std::iter::once(("LD_PRELOAD".to_owned(), text(library)))
            .chain(named.map(|path| ("CACHEWISE_PROFILE".to_owned(), text(path))))
            .collect()
    }
}

/// The question, as the options ask it.
fn asked(
    args: &Advise,
    file: PathBuf,
    machine: &Machine,
    profile: &InForce,
    bar: &Bar,
    notes: &mut Vec<String>,
) -> anyhow::Result<Asked> {
    let library = match exec::library(exec::LIBRARY, "--library", args.library.as_deref()) {
        Ok(library) => Some(library),
        Err(why) if args.library.is_some() => return Err(why),
        Err(why) => {
            notes.push(format!("nothing of this project's is preloaded: {why:#}"));
            None
        }
    };
    let counting = exec::library(exec::STATISTICS_LIBRARY, "--library", None).ok();
    let counting = counting.map(|library| exec::preload(&library, &[])).transpose()?;
    let probe = exec::library(LIBRARY_THAT_ASKS, "--library", None).ok();
    let saved = Saved::of(profile.file.as_deref(), profile.parsed.as_ref());
    let preload = library.as_deref().filter(|_| profile.parsed.is_some());
    let thresholds =
        profile.parsed.as_ref().map(|parsed| export::tunables_of(parsed, &machine.libc));
    let less = args.less;
    let pattern = args.figure.clone().map(|pattern| Prints::Pattern(Pattern { pattern, less }));
    Ok(Asked {
        plain: Arm {
            file,
            words: args.program.clone(),
            input: args.input.clone(),
            ..Arm::default()
        },
        words: args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        goal: Goal::from(args.goal),
        at_most: args.at_most.unwrap_or(AT_MOST),
        budget: args.budget,
        rounds: args.rounds.map(|rounds| rounds as usize),
        also: args.also.iter().filter_map(|words| Candidate::also(words)).collect(),
        only: args.only.clone(),
        conditions: Conditions {
            prepare: args.prepare.clone(),
            load: args.load.clone().map(|line| Load { line, ready: args.ready.clone() }),
            prints: pattern,
            errors: args.errors.clone(),
            compared: args.compare.clone(),
            sampled: args.goal != args::Goal::Time,
            settle: args.settle.unwrap_or(SETTLE),
            fits: args.limit.map(|bytes| bytes as u64),
            any_output: false,
        },
        loads: args.loads.unwrap_or(LOADS as u32) as usize,
        probe,
        seed: args.seed.unwrap_or_else(crate::verbs::drawn_seed),
        before: NoiseSnapshot::take(),
        glibc: machine.libc.release(),
        counting,
        thresholds: thresholds.filter(|line| !line.is_empty()),
        preload: preload.map(|library| profile.preload(args, library)),
        saved: Box::new(move |operation, size, byte| saved.nanoseconds(operation, size, byte)),
        stop: bar.stop(),
    })
}

/// Prints and writes everything that is known, where it was asked for; the exit status.
fn say(mut found: Findings, asked: &Asked, args: &Advise, machine: Machine) -> anyhow::Result<u8> {
    let begun = found.programs.begun;
    let disturbed = warnings(&asked.before, &NoiseSnapshot::take(), &machine);
    written(&mut found, asked, args)?;
    let is_stopped =
        found.outcome.ended == Ended::Stopped && found.answer.verdict == Verdict::Unknown;
    let record = advised::record(&found, asked, args, machine, disturbed, is_stopped);
    let files = [&args.json, &args.html, &args.write];
    if !files.into_iter().flatten().any(|file| output::is_stdout(file)) {
        output::print(&advised::text(&found, &record))?;
    }
    let verdicts = record.end.as_ref().map_or(&[][..], |end| &end.verdicts);
    if let Some(path) = &args.json {
        let writer = output::record_writer(path)?.since(begun);
        output::write_record(writer, &record, verdicts, is_stopped)?;
    }
    if let Some(path) = &args.html {
        let name = args.json.as_ref().map_or_else(String::new, |file| redraw::named(file));
        let page = redraw::page(&[redraw::Loaded { name, record: record.clone() }])?;
        output::write(path, page.as_bytes())?;
    }
    Ok(match found.answer.verdict {
        _ if is_stopped => status::INTERRUPTED,
        Verdict::Unknown => status::INCONCLUSIVE,
        _ => status::OK,
    })
}

/// Writes the setting where it was asked for. A file of variables is tried before it is called an answer.
fn written(found: &mut Findings, asked: &Asked, args: &Advise) -> anyhow::Result<()> {
    let Some(file) = &args.write else { return Ok(()) };
    let (Verdict::Faster, Some(at)) = (found.answer.verdict, found.answer.setting) else {
        let file = file.display();
        output::tell(&format!("note: {file}: not written: there is nothing to set"));
        return Ok(());
    };
    let setting = found.settings[at].clone();
    forms::write(file, &setting, &asked.words, &found.answer.why)?;
    output::tell(&format!("wrote {}: {}", file.display(), setting.name));
    if forms::is_tried(file)
        && let Some(why) = found.try_written(file, &setting)?
    {
        found.answer.verdict = Verdict::Unknown;
        found.answer.why = format!("{}; by {}: {why}", found.answer.why, file.display());
        found.answer.next = "the setting in what starts the program".to_owned();
    }
    Ok(())
}

impl From<args::Goal> for Goal {
    fn from(goal: args::Goal) -> Goal {
        match goal {
            args::Goal::Time => Goal::Time,
            args::Goal::Memory => Goal::Memory,
            args::Goal::Peak => Goal::Peak,
        }
    }
}
