//! The question "what should be set for this program", from the first run to the answer.

use crate::answer::{Answer, Terms, answer, changes, percent};
use crate::bound::{ACCOUNTED_FROM, Bound, Costs, Seen, WORTH};
use crate::executable::{Executable, Linkage, installed, is_go};
use crate::four::{self, Look};
use crate::gathered::{Counts, Gathered};
use crate::lists;
use crate::parts::mib;
use crate::program::{
    Arm, Conditions, Failed, Figure, KILLED, Measured, NAMED, Programs, Sample, WORKS,
};
use crate::settings::{self, ALLOCATORS, Acts, Candidate, Facts, LeftOut};
use crate::watched::Watched;
use anyhow::{Context as _, bail};
use cachewise_judge::Verdict;
use cachewise_judge::margin::SETTING;
use cachewise_judge::race::{self, Fate, KEEP, Outcome, Promise, Question};
use cachewise_measure::units::{bytes, counted};
use cachewise_measure::{NoiseSnapshot, children, costs};
use regex_lite::Regex;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Seconds that an answer takes at least, and at most, where nobody says.
const BUDGET: (f64, f64) = (180.0, 600.0);
/// Rounds of the best that a default budget holds.
const ROUNDS: f64 = 4.0;
/// Page faults of a program that does nothing: `/bin/true` has some hundred.
const IDLE_FAULTS: f64 = 100.0;
/// A first run with so many times the CPU time or the faults of the next ones is another kind of run.
const UNLIKE: f64 = 3.0;
/// Scatter of one run that a budget is told for: of what is counted, and of the clock, quiet and beside others.
const SCATTER: (f64, f64, f64) = (0.02, 0.06, 0.15);

/// The figure that is to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Time, or a figure that the program prints.
    #[default]
    Time,
    /// Memory after the load.
    Memory,
    /// The most memory at a time.
    Peak,
}

impl Goal {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Memory => "memory",
            Goal::Peak => "peak",
        }
    }
}

/// An option that cannot be: found, and accepted.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Nanoseconds by which the fastest routine beats libc in a call: of an operation, bytes, and seconds of a byte.
pub type Saved = Box<dyn Fn(&str, u64, f64) -> f64>;

/// The question.
pub struct Asked {
    /// The plain program.
    pub plain: Arm,
    /// Its words.
    pub words: Vec<String>,
    /// The figure that is to be small.
    pub goal: Goal,
    /// The part of time that may be lost for memory.
    pub at_most: f64,
    /// Seconds for all of it; none for as long as it needs within bounds.
    pub budget: Option<f64>,
    /// Rounds that every setting has, whatever they show.
    pub rounds: Option<usize>,
    /// Settings of the user's own.
    pub also: Vec<Candidate>,
    /// Settings that may race, by their names.
    pub only: Option<Regex>,
    /// The conditions of every run.
    pub conditions: Conditions,
    /// Loads that tell whether live memory grows.
    pub loads: usize,
    /// The library that asks a program's allocators.
    pub probe: Option<PathBuf>,
    /// The origin of all random orders.
    pub seed: u64,
    /// The machine before anything runs.
    pub before: NoiseSnapshot,
    /// The machine's glibc.
    pub glibc: Option<(u32, u32)>,
    /// `LD_PRELOAD` with the library that counts calls.
    pub counting: Option<OsString>,
    /// `GLIBC_TUNABLES` of the profile.
    pub thresholds: Option<String>,
    /// Variables that preload this project's library with the profile.
    pub preload: Option<Vec<(String, String)>>,
    /// Nanoseconds by which the fastest routine beats libc in a call, by operation, bytes, and seconds of a byte that libc
    /// copies.
    pub saved: Saved,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// Findings on a program.
pub struct Findings {
    /// The answer.
    pub answer: Answer,
    /// The runs.
    pub outcome: Outcome<Sample>,
    /// The settings that raced: the user's own first, then the simplest.
    pub settings: Vec<Candidate>,
    /// Settings that did not, and why.
    pub left_out: Vec<LeftOut>,
    /// The figure that was judged.
    pub cost: Figure,
    /// The figure of which only a part may be lost.
    pub loss: Option<Figure>,
    /// The first run.
    pub first: Option<Sample>,
    /// The program's allocator, as mapped.
    pub allocator: String,
    /// Places of its memory, from one run with its load.
    pub memory: Option<Look>,
    /// Bound on the gain, by what was counted.
    pub bound: Option<Bound>,
    /// For the reader.
    pub notes: Vec<String>,
    /// Allocators that are worth installing: how.
    pub install: Vec<String>,
    /// The programs, for a further run.
    pub programs: Programs,
}

impl Findings {
    /// Runs the program once more, started by a shell that has read a file of variables; why the setting is not in force by
    /// it, where it is not.
    ///
    /// # Errors
    /// The system fails.
    pub fn try_written(
        &mut self,
        file: &Path,
        setting: &Candidate,
    ) -> anyhow::Result<Option<String>> {
        let plain = self.programs.arms[0].clone();
        let place = if file.is_absolute() { PathBuf::new() } else { PathBuf::from(".") };
        let line = r#"set -a; . "$0"; set +a; exec "$@""#;
        let mut words: Vec<OsString> = vec!["sh".into(), "-c".into(), line.into()];
        words.push(place.join(file).into_os_string());
        words.push(plain.file.clone().into_os_string());
        words.extend(setting.words.iter().map(OsString::from));
        words.extend(plain.words.iter().skip(1).cloned());
        self.programs.arms.push(Arm { file: "/bin/sh".into(), words, ..plain });
        self.programs.race_on();
        let ran = self.programs.measure(self.programs.arms.len() - 1, &[])?;
        Ok(match ran {
            Ok(ran) => ran
                .watched
                .lacks(Some(setting))
                .map(|not| format!("{} runs without {}", not.process, not.what)),
            Err(Failed::Wrong(why)) => Some(why),
            Err(Failed::Stopped) => None,
        })
    }
}

/// Shows how far it is: a stage, seconds spent and seconds left.
pub type Progress = Box<dyn FnMut(&str, f64, f64)>;

/// Finds out; `tell` gets lines for the reader who waits.
///
/// # Errors
/// The plain program fails the first time, an option names nothing ([`Usage`]), or the system fails.
pub fn ask(asked: &Asked, progress: Progress, tell: &dyn Fn(&str)) -> anyhow::Result<Findings> {
    children::adopt_orphans();
    let limit = Duration::from_secs_f64(asked.budget.unwrap_or(BUDGET.1));
    let (conditions, stop) = (asked.conditions.clone(), Arc::clone(&asked.stop));
    let programs = Programs::new(vec![asked.plain.clone()], conditions, stop, limit, progress)?;
    let mut found = Findings {
        answer: Answer::unknown("it was stopped before its end", "the same again, to its end"),
        outcome: Outcome { ended: race::Ended::Stopped, ..Outcome::new(0) },
        settings: Vec::new(),
        left_out: Vec::new(),
        cost: Figure::Wall,
        loss: None,
        first: None,
        allocator: String::new(),
        memory: None,
        bound: None,
        notes: Vec::new(),
        install: Vec::new(),
        programs,
    };
    asked.stages(&mut found, tell)?;
    found.notes.append(&mut found.programs.notes);
    if found.programs.left > 0 {
        let left = counted(found.programs.left, "process");
        found.notes.push(format!(
            "it leaves {left} running: ended after each run (--load is for servers)"
        ));
    }
    Ok(found)
}

/// Prices of memory on this machine, in seconds.
struct Prices {
    fault: f64,
    mapping: f64,
    block: f64,
    byte: f64,
}

/// Findings of the first runs.
struct First {
    sample: Sample,
    watched: Watched,
    /// Seconds of the fastest run.
    seconds: f64,
    /// Seconds that one takes, with all around it.
    one: f64,
    /// The run in which calls were counted, and these.
    observed: Option<Sample>,
    counts: Option<Counts>,
    /// CPU time stands for the clock's.
    is_cpu: bool,
}

impl Asked {
    fn stages(&self, found: &mut Findings, tell: &dyn Fn(&str)) -> anyhow::Result<()> {
        (found.programs.progress)("what memory costs here", 0.0, 1.0);
        let prices = Prices {
            fault: costs::page_fault()?,
            mapping: costs::mapping()?,
            block: costs::block(),
            byte: costs::byte()?,
        };
        let Some(first) = self.first(found)? else { return Ok(()) };
        found.outcome.ended = race::Ended::Time;
        if let Some(not) = first.watched.lacks(None) {
            found.answer = Answer::unknown(
                format!("the settings do not reach {}: it runs without {}", not.process, not.what),
                "the program itself, without what starts it (env -i, su -, tox, a wrapper); or the setting in what starts it",
            );
            return Ok(());
        }
        if let Some(answer) = self.unlike(&first) {
            found.answer = answer;
            return Ok(());
        }
        if self.goal != Goal::Time {
            self.look_at_memory(&first, found, tell)?;
        }
        self.judge_by(&first, found);
        let facts = self.facts(&first);
        let bound = self.bound(&first, &prices, &facts, found);
        if self.goal == Goal::Time {
            tell(&format!("cachewise: {}", bound_said(&bound)));
        }
        if self.is_bounded(&first, &facts) && bound.is_nothing() {
            let why = format!("nothing to gain: at most {} of a run", percent(bound.total()));
            let next = "nothing: leave the program as it is";
            found.answer = Answer::of(Verdict::Same, why.replace("at most less", "less"), next);
            return Ok(());
        }
        self.choose(&facts, &bound, found)?;
        self.race(&first, &prices, found, tell)
    }

    /// A plain run, and where calls matter one in which they are counted; `None` where the user stopped it.
    fn first(&self, found: &mut Findings) -> anyhow::Result<Option<First>> {
        let programs = &mut found.programs;
        (programs.progress)("plain run", 0.0, 1.0);
        let before = programs.begun.elapsed();
        let mut ran = programs.measure(0, &[])?;
        if let Err(Failed::Wrong(why)) = &ran
            && why.starts_with(KILLED)
        {
            found.notes.push(format!("the plain program is {why}: it runs without the limit"));
            programs.limited_from = 1;
            ran = programs.measure(0, &[])?;
        }
        let measured = match ran {
            Ok(measured) => measured,
            Err(Failed::Stopped) => return Ok(None),
            Err(Failed::Wrong(why)) => bail!(
                "{}: the plain run: {why}; accepted: {}",
                self.plain.file.display(),
                programs.accepted()
            ),
        };
        let one = (programs.begun.elapsed() - before).as_secs_f64();
        let is_cpu = measured.sample.is_mostly_cpu();
        let Measured { sample, watched, .. } = measured;
        found.first = Some(sample.clone());
        found.allocator = watched.allocator();
        let mut first = First {
            seconds: sample.wall,
            sample,
            watched,
            one,
            observed: None,
            counts: None,
            is_cpu,
        };
        let is_counted = self.goal == Goal::Time
            && self.conditions.prints.is_none()
            && self.conditions.load.is_none();
        if is_counted
            && let Some(counting) = &self.counting
            && !observe(&mut found.programs, counting, &mut first)?
        {
            return Ok(None);
        }
        Ok(Some(first))
    }

    /// Places of the memory, before any setting is tried; said at once.
    fn look_at_memory(
        &self,
        first: &First,
        found: &mut Findings,
        tell: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let Some(library) = &self.probe else {
            found
                .notes
                .push("its allocators were not asked: the library for it is not here".to_owned());
            return Ok(());
        };
        (found.programs.progress)("where its memory is", 0.0, 1.0);
        // All loads and one after the trim, if the budget has room for them.
        let room = self
            .budget
            .map_or(f64::INFINITY, |budget| budget - found.programs.begun.elapsed().as_secs_f64());
        let loads = ((room / first.one) as usize).saturating_sub(1).clamp(1, self.loads);
        let is_python = is_python(&first.watched);
        let look = four::look(&mut found.programs, library, &first.sample, loads, is_python)?;
        match look {
            Some(look) => {
                look.lines().iter().for_each(|line| tell(line));
                found.memory = Some(look);
            }
            None => found.notes.push("it ended before its allocators could be asked".to_owned()),
        }
        Ok(())
    }

    /// The answer that runs differ in kind: the first had something to do that the next ones do not find any more.
    fn unlike(&self, first: &First) -> Option<Answer> {
        let again = first.observed.as_ref().filter(|_| self.conditions.prepare.is_none())?;
        is_unlike(&first.sample, again).then(|| prepare(&first.sample, again))
    }

    /// Judges by CPU time where other work leaves the program to wait for a CPU, and CPU is most of what it takes.
    fn judge_by(&self, first: &First, found: &mut Findings) {
        let busy = NoiseSnapshot::take().busy_since(&self.before);
        let by_cpu = busy.is_some() && first.is_cpu && self.conditions.load.is_none();
        let time = if by_cpu { Figure::Cpu } else { Figure::Wall };
        found.cost = match (self.goal, &self.conditions.prints) {
            (Goal::Memory, _) => Figure::Level,
            (Goal::Peak, _) => Figure::Peak,
            (Goal::Time, Some(_)) => Figure::Own(NAMED.to_owned()),
            (Goal::Time, None) => time.clone(),
        };
        let lost = match &self.conditions.prints {
            Some(_) => Figure::Own(NAMED.to_owned()),
            None => time,
        };
        found.loss = (self.goal != Goal::Time).then_some(lost);
        if let Some(busy) = busy {
            let how = if by_cpu { "time is CPU time" } else { "figures scatter" };
            found.notes.push(format!("the machine is busy ({busy}): {how}"));
        }
    }

    fn facts(&self, first: &First) -> Facts {
        let executed =
            Executable::open(&self.plain.file, self.plain.words.get(1..).unwrap_or_default());
        let linkage = executed.linkage();
        let huge =
            fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        let held_huge = first.sample.held.as_ref().is_some_and(|held| held.huge > 0.0);
        let chooses = |word: &str| word.starts_with("-XX:+Use") && word.ends_with("GC");
        Facts {
            linkage,
            glibc: self.glibc,
            malloc: first.watched.malloc(&executed.file),
            mapped: first.watched.mapped(),
            inside: if self.goal == Goal::Time { Vec::new() } else { first.watched.inside() },
            threads: first.watched.threads,
            allocators: installed(linkage),
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            thresholds: self.thresholds.clone(),
            preload: self.preload.clone(),
            huge_on_request: huge.contains("[madvise]"),
            has_huge_pages: held_huge || huge.contains("[always]"),
            is_go: first.watched.is_any(is_go),
            is_python: is_python(&first.watched),
            has_collector: first.watched.has_word(chooses),
        }
    }

    fn bound(&self, first: &First, prices: &Prices, facts: &Facts, found: &mut Findings) -> Bound {
        let Sample { cpu, system, faults, .. } = first.sample;
        // A run that waited for a CPU is longer than what it could gain is a part of.
        let seconds =
            if found.cost == Figure::Cpu { first.seconds.min(cpu) } else { first.seconds };
        let seen = Seen {
            seconds,
            system: (cpu >= ACCOUNTED_FROM).then_some(system),
            faults,
            idle_faults: IDLE_FAULTS,
            has_huge_pages: facts.has_huge_pages,
        };
        let saved = |operation: &str, size: u64| (self.saved)(operation, size, prices.byte);
        let &Prices { fault, mapping, block, .. } = prices;
        let costs = Costs { fault, mapping, block, saved: &saved };
        let bound = Bound::of(&seen, first.counts.as_ref(), &costs);
        found.bound =
            (self.goal == Goal::Time && self.conditions.prints.is_none()).then_some(bound);
        bound
    }

    /// Returns whether what was counted is all that the settings change: time by the clock or the CPU, of a program on glibc
    /// that does its work itself, with settings of ours alone.
    fn is_bounded(&self, first: &First, facts: &Facts) -> bool {
        self.goal == Goal::Time
            && self.conditions.prints.is_none()
            && self.conditions.load.is_none()
            && self.also.is_empty()
            && self.rounds.is_none()
            && facts.linkage == Linkage::Glibc
            && first.is_cpu
            && !facts.environment.iter().any(|(name, _)| settings::is_of_allocator(name))
    }

    /// The settings: the user's own first, then the simplest, with the caller's lists extended.
    fn choose(&self, facts: &Facts, bound: &Bound, found: &mut Findings) -> anyhow::Result<()> {
        let is_for_memory = self.goal != Goal::Time;
        let (mut all, mut left_out) = settings::all(facts, is_for_memory);
        let is_counted = found.bound.is_some() && self.rounds.is_none();
        all.retain(|one| {
            let part = match one.acts {
                Acts::Faults => Some(bound.faults),
                Acts::Copies => bound.copies,
                Acts::Blocks | Acts::Anything => None,
            };
            let is_idle = is_counted && part.is_some_and(|part| part < WORTH);
            if is_idle {
                let why =
                    format!("what it makes cheaper is {} of a run", percent(part.unwrap_or(0.0)));
                left_out.push(LeftOut { name: one.name.clone(), why });
            }
            !is_idle
        });
        // What little glibc holds neither its settings give back nor an allocator in its place: those stand last.
        let level = found.first.as_ref().map_or(f64::NAN, |first| first.level);
        let is_of_end = |look: &&Look| !four::is_other(&look.parts, level);
        if self.goal == Goal::Memory
            && let Some(look) = found.memory.as_ref().filter(is_of_end)
        {
            let (level, held) = (look.parts.level(), look.parts.of_glibc());
            if held < SETTING * level {
                let why = format!("glibc holds {} of {}", mib(held), mib(level));
                let idle = all.extract_if(.., |one| one.is_of_glibc());
                left_out.extend(idle.map(|one| LeftOut { name: one.name, why: why.clone() }));
                all.sort_by_key(Candidate::replaces_glibc);
            }
        }
        let mut tried: Vec<Candidate> = self.also.iter().cloned().chain(all).collect();
        if let Some(only) = &self.only {
            if !tried.iter().any(|one| only.is_match(&one.name)) {
                let left = left_out.iter().map(|out| out.name.as_str());
                let names: Vec<&str> =
                    tried.iter().map(|one| one.name.as_str()).chain(left.clone()).collect();
                let names = names.join("; ");
                if !left.into_iter().any(|name| only.is_match(name)) {
                    return Err(Usage(format!(
                        "--only: expected {names}, found \"{}\", which no setting matches",
                        only.as_str()
                    ))
                    .into());
                }
            }
            tried.retain(|one| only.is_match(&one.name));
        }
        for (name, value) in tried.iter_mut().flat_map(|one| &mut one.variables) {
            *value = lists::extended(name, std::env::var(&*name).ok().as_deref(), value);
        }
        let is_set = |one: &Candidate| {
            let same = |(name, value): &(String, String)| {
                std::env::var(name).is_ok_and(|set| set == *value)
            };
            !one.variables.is_empty() && one.words.is_empty() && one.variables.iter().all(same)
        };
        let (set, tried): (Vec<Candidate>, Vec<Candidate>) = tried.into_iter().partition(is_set);
        let why = "the caller has set it already";
        left_out.extend(set.into_iter().map(|one| LeftOut { name: one.name, why: why.to_owned() }));
        let spends = is_for_memory || bound.faults + bound.blocks.unwrap_or(WORTH) >= WORTH;
        let missing = |of: &&settings::Allocator| {
            spends
                && left_out
                    .iter()
                    .any(|out| out.name == of.name && out.why.contains("not installed"))
        };
        found.install =
            ALLOCATORS.iter().filter(missing).map(settings::Allocator::install).collect();
        (found.settings, found.left_out) = (tried, left_out);
        Ok(())
    }

    fn race(
        &self,
        first: &First,
        prices: &Prices,
        found: &mut Findings,
        tell: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let waits = waits(first);
        if found.settings.is_empty() {
            let why = "there is no setting for it here that could be tried";
            let why = waits.map_or_else(|| why.to_owned(), |waits| format!("{why}; {waits}"));
            found.answer = Answer::unknown(why, "a setting of your own: --also NAME=VALUE");
            return Ok(());
        }
        let (count, one) = (found.settings.len(), first.one);
        let spent = found.programs.begun.elapsed().as_secs_f64();
        let beside = count.min(KEEP) as f64 + 1.0;
        let look = if count > 1 { (count + 1) as f64 * one } else { 0.0 };
        let needed = spent + look + ROUNDS * beside * one;
        let budget = self.budget.unwrap_or_else(|| needed.clamp(BUDGET.0, BUDGET.1));
        if self.rounds.is_none() {
            let rounds = ((budget - spent - look) / (beside * one)).max(0.0) as usize
                + usize::from(count > 1);
            tell(&format!("cachewise: {}", self.foreseen(found, first, look, rounds, budget)));
        }
        found.programs.race(&found.settings);
        let (cost, loss) = (found.cost.clone(), found.loss.clone());
        let of_cost = |sample: &Sample| cost.of(sample);
        let of_loss = |sample: &Sample| loss.as_ref().map_or(f64::NAN, |loss| loss.of(sample));
        let promise =
            |other: &Sample, own: &Sample| promised(&cost, first.is_cpu, prices.fault, other, own);
        let question = Question {
            contestants: count,
            own: self.also.len().min(count),
            expected: one,
            end: budget,
            rounds: self.rounds,
            margin: SETTING,
            cost: &of_cost,
            loss: loss.as_ref().map(|_| (&of_loss as &dyn Fn(&Sample) -> f64, self.at_most)),
            promise: &promise,
            is_known: None,
            seed: self.seed,
        };
        found.outcome = race::race(&mut found.programs, &question)?;
        let terms = Terms {
            settings: &found.settings,
            cost: found.cost.clone(),
            loss: found.loss.clone().map(|loss| (loss, self.at_most)),
            beside: self.beside(),
            one,
            budget,
            rounds: self.rounds,
            words: &self.words,
            waits,
        };
        found.answer = answer(&found.outcome, &terms);
        self.within_limit(found);
        let next = found.outcome.runs[0].samples().next().cloned();
        if let Some(again) = next.filter(|again| is_unlike(&first.sample, again))
            && found.answer.verdict != Verdict::Faster
            && self.conditions.prepare.is_none()
        {
            found.answer = prepare(&first.sample, &again);
        }
        Ok(())
    }

    /// Under a limit: how far the answer stays below it; and where the plain program does not survive, the fastest that does.
    fn within_limit(&self, found: &mut Findings) {
        let (Some(fits), runs) = (self.conditions.fits, &found.outcome.runs) else { return };
        let median = |at: usize| runs[at].median(|sample| found.cost.of(sample));
        let survives = |at: &usize| {
            !matches!(found.outcome.fates[*at - 1], Fate::Disqualified(_))
                && median(*at).is_finite()
        };
        let killed = found.programs.limited_from > 0;
        if killed && found.answer.verdict != Verdict::Faster {
            let survivors = (1..runs.len()).filter(survives);
            let fastest = survivors.min_by(|a, b| median(*a).total_cmp(&median(*b)));
            found.answer = match fastest {
                Some(at) => Answer {
                    setting: Some(at - 1),
                    ratio: Some(found.outcome.ratio(at, |sample| found.cost.of(sample))),
                    costs: changes(&found.outcome, at, found.loss.iter().chain(&self.beside())),
                    ..Answer::of(
                        Verdict::Faster,
                        format!("{}: the fastest that survives", found.settings[at - 1].name),
                        found.settings[at - 1].line(&self.words),
                    )
                },
                None => Answer::of(
                    Verdict::Unknown,
                    "no setting that was tried survives the limit",
                    "a larger limit",
                ),
            };
        }
        let at = found.answer.setting.map_or(0, |at| at + 1);
        let peak = found.programs.peaks.get(at).copied().filter(|peak| *peak > 0);
        if let Some(peak) = peak {
            let part = percent(1.0 - peak as f64 / fits as f64);
            let [peak, fits] = [peak, fits].map(bytes);
            let said = format!("; it takes {peak} of the {fits} allowed, {part} are left");
            found.answer.why.push_str(&said);
        }
    }

    /// Gains that the budget can see, before it is spent.
    fn foreseen(
        &self,
        found: &Findings,
        first: &First,
        look: f64,
        rounds: usize,
        budget: f64,
    ) -> String {
        let count = found.settings.len();
        let is_busy = found.notes.iter().any(|note| note.contains("busy"));
        let scatter = match found.cost {
            Figure::Cpu | Figure::Level | Figure::Peak => SCATTER.0,
            _ if is_busy => SCATTER.2,
            _ => SCATTER.1,
        };
        let runs = format!("{}, {} each", counted(count, "setting"), duration(first.one));
        let look =
            if look > 0.0 { format!(": one look takes {}", duration(look)) } else { String::new() };
        match rounds {
            ..4 => format!("{runs}{look}; {} hold no comparison", duration(budget)),
            _ => format!(
                "{runs}{look}; {} will show gains of {} or more",
                duration(budget),
                percent(race::visible(count, rounds, scatter, SETTING))
            ),
        }
    }

    /// Figures that an answer names beside the one that is judged.
    fn beside(&self) -> Vec<Figure> {
        match self.goal {
            Goal::Time => vec![Figure::Peak, Figure::Cpu, Figure::Faults],
            Goal::Memory | Goal::Peak => vec![Figure::Faults],
        }
    }
}

/// True if any process of the tree is a Python.
fn is_python(watched: &Watched) -> bool {
    watched.is_any(|program| {
        program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"))
    })
}

/// Promise of a run over another, by what scatters least: memory by its level, CPU time by CPU time and page faults.
fn promised(cost: &Figure, is_cpu: bool, fault: f64, other: &Sample, own: &Sample) -> Promise {
    /// CPU seconds below which a run's own scatter is large.
    const COUNTED_FROM: f64 = 0.05;
    let ratio = cost.of(own) / cost.of(other);
    match cost {
        Figure::Level | Figure::Peak => Promise { ratio, is_counted: true },
        Figure::Wall | Figure::Cpu if is_cpu && other.cpu >= COUNTED_FROM => {
            let saved = (other.faults - own.faults) * fault / other.cpu;
            Promise {
                ratio: (own.cpu / other.cpu).min(1.0 - saved.clamp(0.0, 0.9)),
                is_counted: true,
            }
        }
        _ => Promise { ratio, is_counted: false },
    }
}

/// Seconds for people.
fn duration(seconds: f64) -> String {
    match seconds {
        ..9.95 => format!("{seconds:.1} s"),
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.1} min", seconds / 60.0),
    }
}

/// A run in which calls are counted; false where the user stopped it.
fn observe(
    programs: &mut Programs,
    counting: &OsString,
    first: &mut First,
) -> anyhow::Result<bool> {
    (programs.progress)("observed run", 1.0, 1.0);
    let gathered = Gathered::new().context("counting")?;
    let more = [("LD_PRELOAD", counting.clone()), ("CACHEWISE_STATS", gathered.variable().into())];
    match programs.measure(0, &more)? {
        Ok(observed) => {
            first.seconds = first.seconds.min(observed.sample.wall);
            first.counts = gathered.counts()?;
            first.observed = Some(observed.sample);
            if first.counts.is_none() {
                programs.notes.push(
                    "copies, fills and blocks were not counted: nothing of it could be preloaded"
                        .to_owned(),
                );
            }
        }
        Err(Failed::Stopped) => return Ok(false),
        Err(Failed::Wrong(why)) => programs.notes.push(format!("the observed run: {why}")),
    }
    Ok(true)
}

/// Returns whether a first run did much that the next one did not find to do.
fn is_unlike(first: &Sample, next: &Sample) -> bool {
    first.cpu > UNLIKE * next.cpu + 0.05 || first.faults > UNLIKE * next.faults + 2000.0
}

/// The answer that the first run was another kind of run.
fn prepare(first: &Sample, next: &Sample) -> Answer {
    let why = format!(
        "the first run took {} of CPU, the next one {}: it finds its work done",
        duration(first.cpu),
        duration(next.cpu)
    );
    Answer::unknown(
        why,
        "the same again with --prepare COMMAND, which undoes before each run what one has done",
    )
}

/// Remark on a program that hardly works itself.
fn waits(first: &First) -> Option<String> {
    let Sample { wall, cpu, delay, .. } = first.sample;
    let part = (cpu + delay) / wall.max(1e-9);
    (part < WORKS).then(|| {
        format!(
            "it waits for {:.0} % of its time: where another process does the work, ask for that one, with this command as --load",
            100.0 * (1.0 - part)
        )
    })
}

/// The bound in a sentence.
#[must_use]
pub fn bound_said(bound: &Bound) -> String {
    let mut parts = vec![format!("page faults {}", percent(bound.faults))];
    let counted = [("copies and fills", bound.copies), ("the allocator's calls", bound.blocks)];
    parts.extend(
        counted.iter().filter_map(|(name, part)| Some(format!("{name} {}", percent((*part)?)))),
    );
    let missing: Vec<&str> =
        counted.iter().filter(|(_, part)| part.is_none()).map(|(name, _)| *name).collect();
    let missing = match missing[..] {
        [] => String::new(),
        _ => format!("; not counted: {}", missing.join(", ")),
    };
    format!(
        "what was counted is {} of a run ({}{missing})",
        percent(bound.total()),
        parts.join(", ")
    )
}
