//! `cachewise advise`: what to set for one program, found by running it.

mod hints;
mod load;
mod looks;
pub mod recorded;
mod runner;
mod saved;
pub mod table;

pub use looks::installed;

use super::{exec, export, program as programs, reach};
use crate::args::Advise;
use crate::progress::Bar;
use crate::verbs::redraw::{self, Loaded};
use crate::{output, status};
use anyhow::bail;
use cachewise::profile::{Profile, program_name};
use cachewise_advise::bound::{Bound, Costs, Seen, WORTH};
use cachewise_advise::candidates::{self, Acts, Candidate, Facts, LeftOut, Linking};
use cachewise_advise::counts::Counts;
use cachewise_advise::race::{self, Outcome};
use cachewise_advise::verdict::{self, Answer, percent};
use cachewise_advise::written::{self, Form};
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::{Machine, NoiseSnapshot, children, costs, warnings};
use cachewise_report::closing::{self, Closing, Trust};
use recorded::Found;
use runner::{Failed, Figure, Runner};
use saved::Saved;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run is given up after so many times the plain program's time, and some seconds.
const PATIENCE: f64 = 10.0;
const AT_LEAST: Duration = Duration::from_secs(5);

/// Finds out, says, and writes what was asked for.
pub fn run(args: &Advise) -> anyhow::Result<u8> {
    let files = [args.json.as_deref(), args.html.as_deref(), args.write.as_deref()];
    output::check_all(&files)?;
    let Some(file) = exec::program(&args.program[0]) else { return Ok(exec::NOT_FOUND) };
    let words: Vec<String> =
        args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let profile = args.profile.as_deref().map(programs::canonical).transpose()?;
    let asked = Asked::new(args, &words, profile);
    let linked =
        looks::linking(&looks::interpreter(&file), reach::is_secure(&looks::interpreter(&file)));
    let found = asked.advise(&file, linked)?;
    found.say(args, &words)
}

/// What was asked for, and what is known before anything is run.
struct Asked<'a> {
    args: &'a Advise,
    words: &'a [String],
    profile: Option<PathBuf>,
    machine: Machine,
    before: NoiseSnapshot,
    seed: u64,
}

impl<'a> Asked<'a> {
    fn new(args: &'a Advise, words: &'a [String], profile: Option<PathBuf>) -> Self {
        let machine = Machine::describe();
        let seed = args.seed.unwrap_or_else(super::drawn_seed);
        let before = NoiseSnapshot::take();
        Asked { args, words, profile, machine, before, seed }
    }

    /// All of it: costs, two runs, the bound, and a race where one is due.
    fn advise(&self, file: &Path, linking: Linking) -> anyhow::Result<Found> {
        children::adopt_orphans();
        let args = self.args;
        let budget = args.budget.unwrap_or(180.0);
        let mut bar = Bar::new()?;
        bar.begin("what memory costs here", 1.0);
        let costs = [costs::page_fault()?, costs::mapping()?, costs::block(), costs::byte()?];
        let directory = output::temporary("advise", tempfile::tempdir)?;
        // Servers that refuse to run as root write there as somebody else.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        bar.begin("plain run", 1.0);
        let mut runner = Runner {
            program: file.to_owned(),
            words: &args.program,
            input: args.input.clone(),
            compared: args.compare.clone(),
            load: args.load.clone().map(|line| load::Load { line, ready: args.ready.clone() }),
            figure: args.figure.clone().map(|pattern| Figure { pattern, less: args.less }),
            directory,
            stop: bar.stop(),
            bar,
            begun: Instant::now(),
            limit: Duration::from_secs_f64(budget),
            expected: None,
            profiles: BTreeMap::new(),
            left: 0,
        };
        let mut found = Found {
            machine: self.machine.clone(),
            before: self.before.clone(),
            seed: self.seed,
            bound: None,
            candidates: Vec::new(),
            left_out: Vec::new(),
            outcome: Outcome::default(),
            answer: Answer::CannotTell("it was stopped before its end".to_owned()),
            notes: Vec::new(),
            ran: false,
            hints: BTreeMap::new(),
            profile: None,
        };
        let done = self.stages(&mut runner, linking, costs, budget, &mut found);
        runner.bar.clear();
        if runner.left > 0 {
            let left = cachewise_measure::units::counted(runner.left, "process");
            found.notes.push(format!("it leaves {left} running: ended after each run"));
        }
        done.map(|()| found)
    }

    fn stages(
        &self,
        runner: &mut Runner<'_>,
        linking: Linking,
        [fault, mapping, block, byte]: [f64; 4],
        budget: f64,
        found: &mut Found,
    ) -> anyhow::Result<()> {
        let args = self.args;
        let mut watched = looks::Watched::default();
        let plain = match runner.measure(None, &[], &mut watched)? {
            Ok(plain) => plain,
            Err(Failed::Stopped) => return Ok(()),
            Err(Failed::Wrong(why)) => bail!(
                "{}: the plain run: {why}; accepted: a program that ends by itself with status 0 within the \
                 budget (--load is for servers)",
                runner.program.display()
            ),
        };
        let long = Duration::from_secs_f64(plain.seconds * PATIENCE);
        runner.limit = long.max(Duration::from_secs_f64(plain.seconds) + AT_LEAST);
        runner.expected = Some(plain.printed.clone());
        let library = match exec::library(exec::LIBRARY, "--library", args.library.as_deref()) {
            Ok(library) => Some(library),
            Err(why) if args.library.is_none() && linking == Linking::Glibc => {
                found.notes.push(format!("nothing of this project's is preloaded: {why:#}"));
                None
            }
            Err(why) if args.library.is_some() => return Err(why),
            Err(_) => None,
        };
        let mut counts = None;
        let mut seconds = plain.seconds;
        let counting = exec::library(exec::STATISTICS_LIBRARY, "--library", None);
        if let (Ok(counting), Linking::Glibc) = (counting, linking) {
            runner.bar.begin("observed run", 1.0);
            let counted = runner.directory.path().join("counts");
            fs::write(&counted, "")?;
            fs::set_permissions(&counted, fs::Permissions::from_mode(0o666))?;
            let more = [
                ("LD_PRELOAD", exec::preload(&counting, &[])?),
                ("CACHEWISE_STATS", counted.clone().into_os_string()),
            ];
            match runner.measure(None, &more, &mut watched)? {
                Ok(observed) => {
                    seconds = seconds.min(observed.seconds);
                    let text = String::from_utf8_lossy(&fs::read(&counted)?).into_owned();
                    let all = Counts::read(&text);
                    counts = Some(all).filter(|all| all.processes > 0);
                    if observed.printed != plain.printed {
                        runner.expected = None;
                    }
                }
                Err(Failed::Stopped) => return Ok(()),
                Err(Failed::Wrong(why)) => found.notes.push(format!("the observed run: {why}")),
            }
        }
        if runner.expected.is_none() {
            found.notes.push(
                "what it prints differs from run to run: not compared; --compare FILE names what has to be the \
                 same"
                .to_owned(),
            );
        }
        if counts.is_none() {
            let why = "copies, fills and blocks were not counted: nothing was preloaded, or it does not end by itself";
            found.notes.push(why.to_owned());
        }
        let profile = self.profile.as_deref().or_else(|| super::profile_in_force());
        let parsed = super::read_or_shipped(profile)?;
        found.profile = profile.map(Path::to_owned);
        let saved = Saved::of(profile, parsed.as_ref(), byte);
        let seen = Seen {
            seconds,
            system: plain.system,
            faults: plain.sample.faults,
            idle_faults: IDLE_FAULTS,
        };
        let of = |operation: &str, size: u64| saved.nanoseconds(operation, size);
        let bound = Bound::of(&seen, counts.as_ref(), &Costs { fault, mapping, block, saved: &of });
        found.bound = Some(bound);
        found.ran = true;
        output::tell(&format!("cachewise: {}", verdict::of_bound(&bound)));
        if args.rounds.is_none()
            && let Some(answer) = Answer::of_bound(&bound)
        {
            found.answer = answer;
            return Ok(());
        }
        let facts =
            self.facts(runner, found, linking, &watched, library.as_deref(), parsed.as_ref())?;
        let (all, left_out) = candidates::all(&facts);
        found.left_out = left_out;
        let (tried, idle): (Vec<Candidate>, Vec<Candidate>) =
            all.into_iter().partition(|one| args.rounds.is_some() || may_gain(one.acts, &bound));
        for Candidate { name, acts, .. } in idle {
            let part =
                if acts == Acts::Copies { bound.copies.unwrap_or(0.0) } else { bound.faults };
            let why = format!("what it makes cheaper is {} of a run", percent(part));
            found.left_out.push(LeftOut { name, why });
        }
        found.candidates = tried;
        if let Some(only) = &args.only {
            found.candidates.retain(|one| only.is_match(&one.name));
        }
        if found.candidates.is_empty() {
            let privileged = linking == Linking::Privileged;
            let why =
                if privileged { "nothing reaches it" } else { "there is no setting for it here" };
            found.answer = Answer::Nothing(why.to_owned());
            return Ok(());
        }
        let left = budget - runner.begun.elapsed().as_secs_f64();
        let rounds = args.rounds.map(|rounds| rounds as usize);
        found.outcome =
            race::race(runner, &found.candidates, seconds, left.max(0.0), rounds, self.seed)?;
        found.answer = Answer::of(&found.outcome);
        if found.outcome.too_short {
            let need = Duration::from_secs((seconds * 60.0).ceil() as u64);
            found.answer = Answer::CannotTell(format!(
                "{budget:.0} s have no room for a comparison of runs of {seconds:.1} s; --budget {}s has",
                need.as_secs()
            ));
        }
        Ok(())
    }

    fn facts(
        &self,
        runner: &mut Runner<'_>,
        found: &mut Found,
        linking: Linking,
        watched: &looks::Watched,
        library: Option<&Path>,
        parsed: Option<&Profile>,
    ) -> anyhow::Result<Facts> {
        let profile = found.profile.clone();
        let executed = looks::interpreter(&runner.program);
        let huge = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let libc = &self.machine.libc;
        let mut profiles = Vec::new();
        if let (Some(parsed), Some(library)) = (parsed, library) {
            let preload = ("LD_PRELOAD".to_owned(), library.to_string_lossy().into_owned());
            // The library finds a user's and a machine's profile by itself.
            let named = profile.as_ref().filter(|_| {
                self.profile.is_some()
                    || matches!(cachewise::profile_source(), cachewise::Source::Environment(_))
            });
            let named = named
                .map(|path| ("CACHEWISE_PROFILE".to_owned(), path.to_string_lossy().into_owned()));
            let variables: Vec<_> = std::iter::once(preload).chain(named).collect();
            profiles.push(("this machine's profile by preload".to_owned(), variables.clone()));
            let program = program_name(&runner.program);
            // Of a profile that came with the library there is no file to keep them in.
            let hints = profile.as_ref().map_or_else(Vec::new, |_| hints::all(parsed, &program));
            for (name, hints) in hints {
                let file = runner.directory.path().join(format!("{}.profile", profiles.len()));
                hints::write(parsed, &hints, &file)?;
                let name = format!("the same, {name}");
                let mut variables = variables.clone();
                variables.push(("CACHEWISE_PROGRAM".to_owned(), program.clone()));
                profiles.push((name.clone(), variables));
                runner.profiles.insert(name.clone(), file);
                found.hints.insert(name, hints);
            }
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
            numpy_pool: has_numpy_pool(&runner.program, self.words),
            huge_on_request: huge.is_ok_and(|text| text.contains("[madvise]")),
        })
    }
}

/// Page faults of a program that does nothing: `/bin/true` has some hundred.
const IDLE_FAULTS: f64 = 100.0;

/// Whether a setting may gain what is worth it.
fn may_gain(acts: Acts, bound: &Bound) -> bool {
    match acts {
        Acts::Faults => bound.faults >= WORTH,
        Acts::Copies => bound.copies.is_none_or(|copies| copies >= WORTH),
        Acts::Blocks => bound.blocks.is_none_or(|blocks| blocks + bound.faults >= WORTH),
    }
}

/// Whether the program is a Python with a file or module to run, in which `cachewise.numpy` can be had.
fn has_numpy_pool(program: &Path, words: &[String]) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_one = name.starts_with("python")
        && words.get(1).is_some_and(|word| word == "-m" || !word.starts_with('-'));
    if !is_one {
        return false;
    }
    let mut asks = std::process::Command::new(program);
    asks.args(["-c", "import cachewise.numpy, cachewise.run"]).stdin(std::process::Stdio::null());
    asks.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    asks.status().is_ok_and(|status| status.success())
}

impl Found {
    /// Everything that is known, where it was asked for.
    fn say(self, args: &Advise, words: &[String]) -> anyhow::Result<u8> {
        let line = |candidate: &Candidate| match self.hints.contains_key(&candidate.name) {
            true => format!("cachewise exec -- {}", candidates::command(words)),
            false => candidate.line(words),
        };
        let machine = self.machine.clone();
        let disturbed = warnings(&self.before, &NoiseSnapshot::take(), &machine);
        let record = recorded::record(&self, args, words, disturbed.clone());
        let (answer, because, next) = match &self.answer {
            Answer::Set(at, speed) => (
                closing::Answer::Yes,
                format!("{}: {speed:.2} times the speed", self.candidates[*at].name),
                line(&self.candidates[*at]),
            ),
            Answer::Nothing(why) => (
                closing::Answer::No,
                format!("nothing to gain: {why}"),
                "nothing: leave the program as it is".to_owned(),
            ),
            Answer::CannotTell(why) => (
                closing::Answer::CannotTell,
                why.clone(),
                "the same again with a larger --budget, on a quiet machine".to_owned(),
            ),
        };
        let mut text = String::new();
        if let Some(bound) = &self.bound {
            text.push_str(&format!("{}\n", verdict::of_bound(bound)));
        }
        let tables = table::tables(&record.rows);
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            text.push_str(&format!("\n{}", table.terminal(output::width())));
        }
        if !record.rows.is_empty() {
            text.push_str(&redraw::plots(&record));
        }
        for note in &record.notes {
            text.push_str(&format!("\nnote: {}", note.text));
        }
        if matches!(self.answer, Answer::Set(..)) {
            for sentence in verdict::why(&self.outcome) {
                text.push_str(&format!("\n{sentence}"));
            }
        }
        let trust = Trust::of(&[], &disturbed, self.outcome.stopped);
        let closing = Closing { answer, because, trust, next };
        let in_place = [&args.json, &args.html, &args.write]
            .into_iter()
            .flatten()
            .any(|file| output::is_stdout(file));
        if !in_place {
            output::print(&format!("{}\n\n{closing}", text.trim_end()))?;
        }
        if let (Answer::Set(at, speed), Some(file)) = (&self.answer, &args.write) {
            let about = format!(
                "{}: {speed:.2} times the speed, by cachewise advise",
                self.candidates[*at].name
            );
            let text = written::text(Form::of(file), &self.candidates[*at], words, &about);
            output::write(file, text.as_bytes())?;
        } else if let Some(file) = &args.write {
            output::tell(&format!(
                "note: {}: not written: there is nothing to set",
                file.display()
            ));
        }
        if let (Answer::Set(at, _), Some(file)) = (&self.answer, &self.profile)
            && let Some(hints) = self.hints.get(&self.candidates[*at].name)
        {
            hints::keep(file, hints)?;
            output::tell(&format!(
                "hints for this program are in {}: `exec` follows them",
                file.display()
            ));
        }
        let stopped = self.outcome.stopped || !self.ran;
        if let Some(path) = &args.json {
            let verdicts = [format!("{}: {}", closing.answer.name(), closing.because)];
            output::write_record(output::record_writer(path)?, &record, &verdicts, stopped)?;
        }
        if let Some(path) = &args.html {
            let name = format!("{}.jsonl", recorded::EXPERIMENT);
            output::write(path, redraw::page(&[Loaded { name, record }])?.as_bytes())?;
        }
        Ok(match self.answer {
            _ if stopped => status::INTERRUPTED,
            Answer::Set(..) | Answer::Nothing(_) => status::OK,
            Answer::CannotTell(_) => status::INCONCLUSIVE,
        })
    }
}
