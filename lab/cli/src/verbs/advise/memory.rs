//! `advise --goal memory` and `--goal peak`: settings race for less memory, with a bound on the time that they lose. And
//! services of systemd, for any goal.

pub mod say;

use super::asked::Asked;
use super::looks::{self, Watched};
use super::runner::{Failed, Measured, Runner};
use super::unit::Unit;
use anyhow::bail;
use cachewise_advise::bound::WORTH;
use cachewise_advise::candidates::{self, Candidate, Facts, LeftOut, Linking};
use cachewise_advise::goal::{self, Goal, GoalAnswer, GoalOutcome, Plain, Sample};
use cachewise_advise::growth::Growth;
use cachewise_experiments::recorder::Progress as _;
use cachewise_judge::race::{self, Question, Ran, Stage};
use cachewise_measure::NoiseSnapshot;
use cachewise_measure::held::Held;
use cachewise_measure::units::counted;
use std::path::Path;
use std::time::{Duration, Instant};

/// A run is given up after so many times the plain program's time, and some seconds.
const PATIENCE: f64 = 10.0;
const AT_LEAST: Duration = Duration::from_secs(5);
/// Readings that cost more of a CPU are mentioned.
const DEAR: f64 = 0.01;

/// Results of the runs.
pub struct GoalFindings {
    pub goal: Goal,
    /// The part of time that may be lost.
    pub allowed: f64,
    pub plain: Plain,
    pub candidates: Vec<Candidate>,
    pub left_out: Vec<LeftOut>,
    pub outcome: GoalOutcome,
    pub answer: GoalAnswer,
    /// Growth that no setting stops.
    pub growth: Option<Growth>,
    pub notes: Vec<String>,
    /// The program's allocator, as mapped.
    pub allocator: String,
    pub by_cpu: bool,
    pub begun: Instant,
    /// True if the plain run came to its end.
    pub ran: bool,
}

/// The program or service under test.
struct Subject<'r, 'a> {
    runner: &'r mut Runner<'a>,
    unit: Option<Unit>,
    goal: Goal,
    expected: Option<Vec<u64>>,
}

/// Finds out.
pub(super) fn advise(
    asked: &Asked<'_>,
    runner: &mut Runner<'_>,
    linking: Linking,
) -> anyhow::Result<GoalFindings> {
    let args = asked.args;
    runner.sampled = true;
    let mut found = GoalFindings {
        goal: args.goal.into(),
        allowed: args.at_most.unwrap_or(DEFAULT_LOSS),
        plain: Plain::default(),
        candidates: Vec::new(),
        left_out: Vec::new(),
        outcome: GoalOutcome::default(),
        answer: GoalAnswer::CannotTell("it was stopped before its end".to_owned()),
        growth: None,
        notes: Vec::new(),
        allocator: String::new(),
        by_cpu: false,
        begun: runner.begun,
        ran: false,
    };
    let unit = args.unit.as_deref().map(Unit::open).transpose()?;
    let mut subject = Subject { runner, unit, goal: found.goal, expected: None };
    let done = stages(asked, &mut subject, linking, &mut found);
    // Restored before anything is said, and whatever became of the race.
    let restored = subject.unit.take().map_or(Ok(()), Unit::restore);
    done.and(restored)?;
    found.notes.append(&mut subject.runner.notes);
    if subject.runner.left > 0 {
        let left = counted(subject.runner.left, "process");
        found.notes.push(format!("it leaves {left} running: ended after each run"));
    }
    Ok(found)
}

/// Time that may be lost where nobody says.
pub const DEFAULT_LOSS: f64 = 0.02;

fn stages(
    asked: &Asked<'_>,
    subject: &mut Subject<'_, '_>,
    linking: Linking,
    found: &mut GoalFindings,
) -> anyhow::Result<()> {
    let mut watched = Watched::default();
    let Some(seconds) = plain_run(subject, &mut watched, found)? else { return Ok(()) };
    look_at_noise(asked, subject, found);
    let executed = looks::interpreter(
        &subject.runner.program,
        asked.args.program.get(1..).unwrap_or_default(),
    );
    let facts = facts(asked, found, linking, &watched, &executed);
    crate::output::tell(&format!("cachewise: {}", found.plain.sentence()));
    let (mut all, left_out) = match found.goal {
        Goal::Time => candidates::all(&facts),
        Goal::Memory | Goal::Peak => candidates::memory::all(&facts),
    };
    found.left_out = left_out;
    if subject.unit.is_some() {
        all.retain(|one| one.words.is_empty());
    }
    all.extend(asked.also());
    found.candidates = asked.tried(all, &mut found.left_out)?;
    if found.candidates.is_empty() {
        found.answer = GoalAnswer::Nothing("there is no setting for it here".to_owned());
        return Ok(());
    }
    subject.runner.candidates.clone_from(&found.candidates);
    let spent = subject.runner.begun.elapsed().as_secs_f64();
    let question = Question {
        contestants: found.candidates.len(),
        expected: seconds + subject.runner.settled().as_secs_f64(),
        budget: (asked.budget - spent).max(0.0),
        rounds: asked.args.rounds.map(|rounds| rounds as usize),
        margin: WORTH,
        allowed: Some(found.allowed),
        seed: asked.seed,
    };
    found.outcome = race::race(subject, question)?;
    found.answer = GoalAnswer::of(&found.outcome, found.goal, found.allowed);
    found.growth = Growth::of(&found.outcome, subject.runner.settled().as_secs_f64());
    Ok(())
}

/// Runs the program without a setting, and bounds the runs that follow by it: its seconds, or `None` where it was
/// stopped.
fn plain_run(
    subject: &mut Subject<'_, '_>,
    watched: &mut Watched,
    found: &mut GoalFindings,
) -> anyhow::Result<Option<f64>> {
    subject.runner.bar.begin("plain run", 1.0);
    let plain = match subject.measure(None, watched)? {
        Ok(plain) => plain,
        Err(Failed::Stopped) => return Ok(None),
        Err(Failed::Wrong(why)) => bail!(
            "{}: the plain run: {why}; accepted: {}",
            subject.name(),
            subject.runner.accepted()
        ),
    };
    found.ran = true;
    let long = Duration::from_secs_f64(plain.seconds * PATIENCE);
    subject.runner.seconds = Some(plain.seconds);
    subject.runner.limit = long.max(Duration::from_secs_f64(plain.seconds) + AT_LEAST);
    subject.expected = Some(plain.printed.clone());
    // The first run's length was not known.
    let held = match plain.held {
        None => subject.measure(None, watched)?.ok().and_then(|again| again.held),
        held => held,
    };
    let Some(held) = held else {
        bail!(
            "{}: its memory cannot be read: it ended within a few milliseconds, or /proc is not mounted",
            subject.name()
        );
    };
    found.allocator = watched.allocator();
    if held.cost > DEAR {
        let cost = cachewise_advise::verdict::percent(held.cost);
        found.notes.push(format!("reading its memory took {cost} of one CPU, beside the program"));
    }
    found.plain = Plain { held };
    Ok(Some(plain.seconds))
}

fn facts(
    asked: &Asked<'_>,
    found: &GoalFindings,
    linking: Linking,
    watched: &Watched,
    executed: &Path,
) -> Facts {
    let name = executed.file_name().unwrap_or_default().to_string_lossy();
    Facts {
        linking,
        glibc: asked.machine.libc.release(),
        malloc: watched.malloc(executed),
        mapped: watched.mapped(),
        threads: watched.threads,
        allocators: looks::installed(),
        has_huge_pages: found.plain.held.huge > 0.0,
        is_go: watched.is_any(looks::is_go),
        is_python: name.starts_with("python"),
        ..Facts::default()
    }
}

/// Judges time by the CPU's where other work leaves the program to wait for a CPU.
fn look_at_noise(asked: &Asked<'_>, subject: &mut Subject<'_, '_>, found: &mut GoalFindings) {
    let Some(busy) = NoiseSnapshot::take().busy_since(&asked.before) else { return };
    let by_clock =
        asked.args.figure.is_none() && asked.args.load.is_none() && subject.unit.is_none();
    let what = if by_clock { "its time is CPU time" } else { "figures scatter" };
    found.notes.push(format!("the machine is busy ({busy}): {what}"));
    (subject.runner.by_cpu, found.by_cpu) = (by_clock, by_clock);
}

impl Subject<'_, '_> {
    fn name(&self) -> String {
        let program = || self.runner.program.display().to_string();
        self.unit.as_ref().map_or_else(program, |unit| unit.name().to_owned())
    }

    fn measure(
        &mut self,
        by: Option<&Candidate>,
        watched: &mut Watched,
    ) -> anyhow::Result<Result<Measured, Failed>> {
        match &mut self.unit {
            None => self.runner.measure(by, &[], watched),
            Some(unit) => self.runner.measure_unit(unit, by, watched),
        }
    }
}

impl race::Runner for Subject<'_, '_> {
    type Sample = Sample;
    type Error = anyhow::Error;

    fn run(&mut self, who: usize) -> anyhow::Result<Ran<Sample>> {
        let by = who.checked_sub(1).map(|at| self.runner.candidates[at].clone());
        let measured = match self.measure(by.as_ref(), &mut Watched::default())? {
            Ok(measured) => measured,
            Err(Failed::Stopped) => return Ok(Ran::Stopped),
            Err(Failed::Wrong(why)) => return Ok(Ran::Wrong(why)),
        };
        let is_expected =
            self.expected.as_ref().is_none_or(|expected| *expected == measured.printed);
        if !is_expected {
            match by {
                None => self.expected = None,
                Some(_) => return Ok(Ran::Wrong("another output".to_owned())),
            }
        }
        let Some(held) = measured.held else {
            return Ok(Ran::Wrong("its memory could not be read".to_owned()));
        };
        let time = if self.runner.by_cpu { measured.sample.cpu } else { measured.sample.cost };
        let memory = match self.goal {
            Goal::Peak => held.peak,
            Goal::Memory => held.level,
            Goal::Time => time,
        };
        // Nothing is lost where time itself is the goal.
        let time = if self.goal == Goal::Time { 1.0 } else { time };
        Ok(Ran::Well(Sample { memory, time, faults: measured.sample.faults, held }))
    }

    fn cost(sample: &Sample) -> f64 {
        sample.memory
    }

    fn loss(sample: &Sample) -> Option<f64> {
        Some(sample.time)
    }

    fn now(&self) -> f64 {
        self.runner.begun.elapsed().as_secs_f64()
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        race::Runner::progress(&mut *self.runner, stage, left);
    }
}

/// The readings of a setting's run whose level is the median one.
pub fn typical(runs: &goal::Runs) -> Option<&Held> {
    let level = runs.median(|sample| sample.held.level);
    let distance = |sample: &&Sample| (sample.held.level - level).abs();
    let nearest = runs.samples().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(&nearest.held)
}
