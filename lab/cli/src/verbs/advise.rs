//! `cachewise advise`: what to set for one program, found by running it.

mod asked;
mod blame;
mod caller;
mod ending;
mod figure;
mod forms;
mod load;
mod looks;
pub mod memory;
pub mod recorded;
mod runner;
mod saved;
mod say;
mod unit;

use super::{exec, export, reach};
use crate::args::{self, Advise};
use crate::progress::Bar;
use crate::{output, program as programs, python};
use anyhow::{Context as _, bail};
use asked::Asked;
use cachewise::profile::Profile;
use cachewise_advise::bound::{Bound, Costs, Seen, WORTH};
use cachewise_advise::candidates::{self, Acts, Candidate, Facts, LeftOut, Linking};
use cachewise_advise::counts::Counts;
use cachewise_advise::gathered::Gathered;
use cachewise_advise::sample::TimeOutcome;
use cachewise_advise::verdict::{self, TimeAnswer, percent};
use cachewise_blame::Blamed;
use cachewise_experiments::LabError;
use cachewise_experiments::recorder::Progress as _;
use cachewise_judge::race::{self, Question};
use cachewise_measure::{NoiseSnapshot, children, costs};
use recorded::TimeFindings;
use runner::{Failed, Measured, Runner};
use saved::Saved;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run is given up after so many times the plain program's time, and some seconds.
const PATIENCE: f64 = 10.0;
const AT_LEAST: Duration = Duration::from_secs(5);
/// Finds out, says, and writes what was asked for.
pub fn run(args: &Advise) -> anyhow::Result<u8> {
    let files = [&args.json, &args.html, &args.write, &args.folded].map(|file| file.as_deref());
    args.write.as_deref().map(forms::of).transpose()?;
    has_its_options(args)?;
    let file = match args.program.first() {
        Some(program) => exec::program(program, "advise")?,
        // For a service its manager is run.
        None => exec::program(std::ffi::OsStr::new("systemctl"), "advise")?,
    };
    let Some(file) = file else { return Ok(exec::NOT_FOUND) };
    let inputs: Vec<&PathBuf> = args.compare.iter().chain(&args.input).chain([&file]).collect();
    output::check_all(&files, &inputs)?;
    for input in args.compare.iter().chain(&args.input).filter(|input| input.exists()) {
        programs::regular(input).with_context(|| input.display().to_string())?;
    }
    if let Some(status) = caller::apart()? {
        return Ok(status);
    }
    let words: Vec<String> =
        args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let profile = args.profile.as_deref().map(programs::canonical).transpose()?;
    let asked = Asked::new(args, &words, profile);
    let executed = looks::interpreter(&file, args.program.get(1..).unwrap_or_default());
    let linked = looks::linking(&executed, reach::is_secure(&executed));
    if let Some(line) = args.program.first().and_then(|program| python::told(program)) {
        output::tell(&line);
    }
    let answered = match (args.blame, args.goal) {
        (Some(what), _) => asked.blame(&file, what.into()),
        (None, args::Goal::Time) if args.unit.is_none() => {
            asked.advise(&file, linked).and_then(|answer| answer.say(args, &words))
        }
        (None, _) => asked.save_memory(&file, linked),
    };
    answered.map_err(|error| python::explained(error, &args.program))
}

/// Refuses options that others ask for, and files that are not there, before anything is run.
fn has_its_options(args: &Advise) -> anyhow::Result<()> {
    let is_of_memory = args.unit.is_some() || !matches!(args.goal, args::Goal::Time);
    let lacking = [
        (args.at_most.is_some() && !is_of_memory, "--at-most", "--goal memory or peak"),
        (args.settle.is_some() && args.load.is_none() && args.unit.is_none(), "--settle", "--load"),
    ];
    if let Some((_, option, other)) = lacking.into_iter().find(|(is_lacking, ..)| *is_lacking) {
        return Err(LabError::Usage(format!("{option} needs {other}")).into());
    }
    if let Some(file) = &args.input {
        let shown = format!("--input {}", file.display());
        let is_pipe = fs::metadata(file).with_context(|| shown.clone())?.file_type().is_fifo();
        if is_pipe {
            bail!("{shown}: found a pipe, accepted a file: each run reads it from its beginning");
        }
        fs::File::open(file).context(shown)?;
    }
    Ok(())
}

/// Prices of memory on this machine, in seconds.
struct Prices {
    fault: f64,
    mapping: f64,
    block: f64,
    byte: f64,
}

impl Prices {
    fn measured() -> anyhow::Result<Prices> {
        Ok(Prices {
            fault: costs::page_fault()?,
            mapping: costs::mapping()?,
            block: costs::block(),
            byte: costs::byte()?,
        })
    }
}

/// The first two runs.
struct First {
    plain: Measured,
    /// Seconds of the faster one.
    seconds: f64,
    counts: Option<Counts>,
    watched: looks::Watched,
}

impl Asked<'_> {
    /// All of it: prices, two runs, the bound, and a race where one is due.
    fn advise(&self, file: &Path, linking: Linking) -> anyhow::Result<TimeFindings> {
        children::adopt_orphans();
        let mut bar = Bar::new()?;
        bar.begin("what memory costs here", 1.0);
        let prices = Prices::measured()?;
        bar.begin("plain run", 1.0);
        let mut runner = self.runner(file, bar)?;
        let mut found = TimeFindings {
            machine: self.machine.clone(),
            before: self.before.clone(),
            seed: self.seed,
            bound: None,
            candidates: Vec::new(),
            left_out: Vec::new(),
            outcome: TimeOutcome::default(),
            answer: TimeAnswer::CannotTell("it was stopped before its end".to_owned()),
            notes: Vec::new(),
            ran: false,
            by_cpu: false,
            begun: runner.begun,
            profile: None,
        };
        let done = self.stages(&mut runner, linking, &prices, &mut found);
        runner.bar.clear();
        found.notes.append(&mut runner.notes);
        if runner.left > 0 {
            let left = cachewise_measure::units::counted(runner.left, "process");
            found.notes.push(format!(
                "it leaves {left} running: ended after each run (--load is for servers)"
            ));
        }
        done.map(|()| found)
    }

    /// The stacks of one run.
    fn blame(&self, file: &Path, blamed: Blamed) -> anyhow::Result<u8> {
        children::adopt_orphans();
        let mut bar = Bar::new()?;
        bar.begin("plain run", 1.0);
        let mut runner = self.runner(file, bar)?;
        let stacks = blame::stacks(&mut runner, blamed)?;
        runner.bar.clear();
        blame::say(self, blamed, stacks.as_ref(), runner.begun)
    }

    /// A race for less memory.
    fn save_memory(&self, file: &Path, linking: Linking) -> anyhow::Result<u8> {
        if self.args.unit.is_none() {
            children::adopt_orphans();
        }
        let mut runner = self.runner(file, Bar::new()?)?;
        let found = memory::advise(self, &mut runner, linking);
        runner.bar.clear();
        memory::say::say(&found?, self)
    }

    fn stages(
        &self,
        runner: &mut Runner<'_>,
        linking: Linking,
        prices: &Prices,
        found: &mut TimeFindings,
    ) -> anyhow::Result<()> {
        let library = self.library(linking, found)?;
        let Some(first) = self.first_runs(runner, linking, found)? else { return Ok(()) };
        self.look_at_noise(runner, found);
        let profile = self.profile.as_deref().or_else(|| super::profile_in_force());
        let parsed = super::read_or_shipped(profile)?;
        found.profile = profile.map(Path::to_owned);
        let bound = self.bound(&first, prices, parsed.as_ref(), found);
        output::tell(&format!("cachewise: {}", verdict::of_bound(&bound, None)));
        if self.args.rounds.is_none()
            && let Some(answer) = TimeAnswer::of_bound(&bound)
        {
            found.answer = answer;
            return Ok(());
        }
        let facts = self.facts(
            runner,
            found,
            linking,
            &first.watched,
            library.as_deref(),
            parsed.as_ref(),
        )?;
        self.choose(&facts, &bound, found)?;
        if found.candidates.is_empty() {
            let privileged = linking == Linking::Privileged;
            let why =
                if privileged { "nothing reaches it" } else { "there is no setting for it here" };
            found.answer = TimeAnswer::Nothing(why.to_owned());
            return Ok(());
        }
        runner.candidates.clone_from(&found.candidates);
        self.race(runner, first.seconds, found)
    }

    fn race(
        &self,
        runner: &mut Runner<'_>,
        expected: f64,
        found: &mut TimeFindings,
    ) -> anyhow::Result<()> {
        let spent = runner.begun.elapsed().as_secs_f64();
        let question = Question {
            contestants: found.candidates.len(),
            expected,
            budget: (self.budget - spent).max(0.0),
            rounds: self.args.rounds.map(|rounds| rounds as usize),
            margin: WORTH,
            allowed: None,
            seed: self.seed,
        };
        found.outcome = race::race(runner, question)?;
        found.answer = match found.outcome.needs {
            None => TimeAnswer::of(&found.outcome),
            Some(needs) => TimeAnswer::CannotTell(format!(
                "{:.0} s have no room for a comparison of runs of {expected:.1} s; --budget {:.0}s has",
                self.budget,
                (spent + needs).ceil()
            )),
        };
        Ok(())
    }

    /// This project's library to preload, where there is one that can be.
    fn library(
        &self,
        linking: Linking,
        found: &mut TimeFindings,
    ) -> anyhow::Result<Option<PathBuf>> {
        match exec::library(exec::LIBRARY, "--library", self.args.library.as_deref()) {
            Ok(library) => Ok(Some(library)),
            Err(why) if self.args.library.is_some() => Err(why),
            Err(why) => {
                if linking == Linking::Glibc {
                    found.notes.push(format!("nothing of this project's is preloaded: {why:#}"));
                }
                Ok(None)
            }
        }
    }

    /// A plain run, and one in which calls are counted; `None` where the user stopped it.
    fn first_runs(
        &self,
        runner: &mut Runner<'_>,
        linking: Linking,
        found: &mut TimeFindings,
    ) -> anyhow::Result<Option<First>> {
        let mut watched = looks::Watched::default();
        let plain = match runner.measure(None, &[], &mut watched)? {
            Ok(plain) => plain,
            Err(Failed::Stopped) => return Ok(None),
            Err(Failed::Wrong(why)) => bail!(
                "{}: the plain run: {why}; accepted: {}",
                runner.program.display(),
                runner.accepted()
            ),
        };
        let long = Duration::from_secs_f64(plain.seconds * PATIENCE);
        runner.limit = long.max(Duration::from_secs_f64(plain.seconds) + AT_LEAST);
        runner.expected = Some(plain.printed.clone());
        found.ran = true;
        let mut first = First { seconds: plain.seconds, plain, counts: None, watched };
        if linking == Linking::Glibc && !self.observe(runner, &mut first, found)? {
            return Ok(None);
        }
        if first.counts.is_none() {
            let why = "copies, fills and blocks were not counted: nothing was preloaded, or it does not end by itself";
            found.notes.push(why.to_owned());
        }
        Ok(Some(first))
    }

    /// A run under the library that counts; false where the user stopped it.
    fn observe(
        &self,
        runner: &mut Runner<'_>,
        first: &mut First,
        found: &mut TimeFindings,
    ) -> anyhow::Result<bool> {
        let Ok(counting) = exec::library(exec::STATISTICS_LIBRARY, "--library", None) else {
            return Ok(true);
        };
        runner.bar.begin("observed run", 1.0);
        let gathered = Gathered::new().context("counting")?;
        let more = [
            ("LD_PRELOAD", exec::preload(&counting, &[])?),
            ("CACHEWISE_STATS", gathered.variable().into()),
        ];
        match runner.measure(None, &more, &mut first.watched)? {
            Ok(observed) => {
                first.seconds = first.seconds.min(observed.seconds);
                first.counts = gathered.counts()?;
                if observed.printed != first.plain.printed {
                    runner.ignore_output();
                }
            }
            Err(Failed::Stopped) => return Ok(false),
            Err(Failed::Wrong(why)) => found.notes.push(format!("the observed run: {why}")),
        }
        Ok(true)
    }

    /// Judges by CPU time where other work leaves the program to wait for a CPU, unless a figure or a load is judged.
    fn look_at_noise(&self, runner: &mut Runner<'_>, found: &mut TimeFindings) {
        let Some(busy) = NoiseSnapshot::take().busy_since(&self.before) else { return };
        let by_clock = self.args.figure.is_none() && self.args.load.is_none();
        let what = if by_clock { "settings are judged by CPU time" } else { "figures scatter" };
        found.notes.push(format!("the machine is busy ({busy}): {what}"));
        (runner.by_cpu, found.by_cpu) = (by_clock, by_clock);
    }

    fn bound(
        &self,
        first: &First,
        prices: &Prices,
        parsed: Option<&Profile>,
        found: &mut TimeFindings,
    ) -> Bound {
        let saved = Saved::of(found.profile.as_deref(), parsed, prices.byte);
        let (cpu, faults) = (first.plain.sample.cpu, first.plain.sample.faults);
        // A run that waited for a CPU is longer than what it could gain is a part of.
        let seconds = if found.by_cpu { first.seconds.min(cpu) } else { first.seconds };
        let seen = Seen::of(seconds, cpu, first.plain.system, faults, IDLE_FAULTS);
        let of = |operation: &str, size: u64| saved.nanoseconds(operation, size);
        let &Prices { fault, mapping, block, .. } = prices;
        let costs = Costs { fault, mapping, block, saved: &of };
        let bound = Bound::of(&seen, first.counts.as_ref(), &costs);
        found.bound = Some(bound);
        bound
    }

    /// The candidates, the simplest first, with the caller's lists extended.
    fn choose(&self, facts: &Facts, bound: &Bound, found: &mut TimeFindings) -> anyhow::Result<()> {
        let args = self.args;
        let (all, left_out) = candidates::all(facts);
        found.left_out = left_out;
        let (mut tried, idle): (Vec<Candidate>, Vec<Candidate>) =
            all.into_iter().partition(|one| args.rounds.is_some() || may_gain(one.acts, bound));
        for Candidate { name, acts, .. } in idle {
            let part =
                if acts == Acts::Copies { bound.copies.unwrap_or(0.0) } else { bound.faults };
            let why = format!("what it makes cheaper is {} of a run", percent(part));
            found.left_out.push(LeftOut { name, why });
        }
        tried.extend(self.also());
        found.candidates = self.tried(tried, &mut found.left_out)?;
        Ok(())
    }

    fn facts(
        &self,
        runner: &mut Runner<'_>,
        found: &mut TimeFindings,
        linking: Linking,
        watched: &looks::Watched,
        library: Option<&Path>,
        parsed: Option<&Profile>,
    ) -> anyhow::Result<Facts> {
        let profile = found.profile.clone();
        let executed = looks::interpreter(&runner.program, &runner.words[1..]);
        let huge = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let libc = &self.machine.libc;
        let mut profiles = Vec::new();
        if let (Some(_), Some(library)) = (parsed, library) {
            let preload = ("LD_PRELOAD".to_owned(), library.to_string_lossy().into_owned());
            // The library finds a user's and a machine's profile by itself.
            let named = profile.as_ref().filter(|_| {
                self.profile.is_some()
                    || matches!(cachewise::profile_source(), cachewise::Source::Environment(_))
            });
            let named = named
                .map(|path| ("CACHEWISE_PROFILE".to_owned(), path.to_string_lossy().into_owned()));
            let variables: Vec<_> = std::iter::once(preload).chain(named).collect();
            profiles.push(("this machine's profile by preload".to_owned(), variables));
        }
        Ok(Facts {
            linking,
            glibc: libc.release(),
            malloc: watched.malloc(&executed),
            mapped: watched.mapped(),
            threads: watched.threads,
            allocators: looks::installed(),
            thresholds: parsed
                .map(|parsed| export::tunables_of(parsed, libc))
                .filter(|line| !line.is_empty()),
            profiles,
            huge_on_request: huge.is_ok_and(|text| text.contains("[madvise]")),
            ..Facts::default()
        })
    }
}

/// Page faults of a program that does nothing: `/bin/true` has some hundred.
const IDLE_FAULTS: f64 = 100.0;

/// Returns whether a setting may gain what is worth it.
fn may_gain(acts: Acts, bound: &Bound) -> bool {
    match acts {
        Acts::Faults => bound.faults >= WORTH,
        Acts::Copies => bound.copies.is_none_or(|copies| copies >= WORTH),
        Acts::Blocks => bound.blocks.is_none_or(|blocks| blocks + bound.faults >= WORTH),
        Acts::Memory => false,
    }
}
