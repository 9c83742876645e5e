//! `xtask learn-known`: programs whose best way to copy can be found out, learned under the preload
//! library: is what it decides right, and what does it cost? For a quiet machine.
//!
//! The programs are those of `crates/preload/tests/c/known.c`. Each is learned; then, for each call
//! site, whole runs with that site always through the cache and always around it are timed in turns,
//! and runs on what was learned with both. A site's decision is
//!
//! - *right* or *WRONG* where the two ways differ by more than their interval and 2 %;
//! - *nothing between them* where they do not, whatever was decided;
//! - *cannot tell* where nothing was decided.
//!
//! Each program has its share of `--minutes`; what one does not need is the others'. It is learned
//! until all its sites are decided, for a third of that at most. The number of rounds is settled
//! then, before the first of them. Ctrl-C keeps the sites that are finished.

use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::markdown::Outputs;
use crate::programs::minutes;
use crate::scripts;
use anyhow::{Context as _, Result, bail};
use cachewise_learn::Way;
use cachewise_learn::section::{Module, Section, Site, write_end};
use cachewise_learn::trial::Outcome;
use cachewise_measure::stats::PairedRatio;
use cachewise_measure::{children, turns};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct LearnKnown {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// At most so many runs that learn: fewer once all sites are decided, or a third of the program's
    /// share of the minutes is spent, but 3
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// At most so many runs each of both ways and of what was learned: as many as the program's share
    /// of the minutes has room for, but 6, without which there is no interval
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// About this long in all, divided among the programs
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0, value_parser = minutes)]
    minutes: f64,
    /// Calls of a run: fewer where the program's share of the minutes has no room for the runs of so
    /// many, but 200
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// Size of a copy, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 6144, value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    kibibytes: u32,
    #[command(flatten)]
    out: Outputs,
    /// Under this library [default: built for release first]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

const SOURCE: &str = include_str!("../../crates/preload/tests/c/known.c");

/// Name, and the program that is what it ends as: what was learned last is about that.
const PROGRAMS: [(&str, &str); 10] = [
    ("read-at-once", "read-at-once"),
    ("read-late", "read-late"),
    ("read-in-part", "read-in-part"),
    ("never-read", "never-read"),
    ("bystander", "bystander"),
    ("written-after", "written-after"),
    ("two-phases", "never-read"),
    ("two-threads", "two-threads"),
    ("mixed-sizes", "mixed-sizes"),
    ("period-of-four", "period-of-four"),
];

/// Differences below this are of no interest, and fewer rounds have no interval.
const MARGIN: f64 = 0.02;
const LEAST_ROUNDS: usize = 6;
/// Room for so many runs of a program is wanted: one to see how long it takes, a third of them to
/// learn, and one to warm up and thirty that count of each of three.
const RUNS: f64 = 1.0 + 1.5 * 3.0 * (1.0 + 30.0);
/// A run of fewer calls would be start and end only.
const LEAST_CALLS: u32 = 200;
/// Runs that learn, whatever the time.
const LEAST_RUNS: u32 = 3;
/// The part of a program's share that runs which learn may take.
const LEARNING: f64 = 1.0 / 3.0;
/// Seed of the order in each round.
const SEED: u64 = 1;
/// What a program may cost above the better way once it is decided.
const AFTER: f64 = 1.03;

/// What to think of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    CannotTell,
    NothingBetween,
    Wrong,
    /// Too few rounds to say.
    NoInterval,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::CannotTell => "cannot tell",
            Verdict::NothingBetween => "nothing between them",
            Verdict::Wrong => "WRONG",
            Verdict::NoInterval => "too few rounds to say",
        }
    }

    /// `ratio` is the time around the cache over the time through it.
    fn of(decided: Option<Way>, ratio: &PairedRatio) -> Verdict {
        if ratio.rounds < LEAST_ROUNDS {
            return Verdict::NoInterval;
        }
        let better = if ratio.high < 1.0 && ratio.median < 1.0 - MARGIN {
            Way::NonTemporal
        } else if ratio.low > 1.0 && ratio.median > 1.0 + MARGIN {
            Way::Temporal
        } else {
            return Verdict::NothingBetween;
        };
        match decided {
            None => Verdict::CannotTell,
            Some(way) if way == better => Verdict::Right,
            Some(_) => Verdict::Wrong,
        }
    }
}

/// Whether what was learned costs more than the better way, beyond its interval.
fn is_dear(ratio: &PairedRatio) -> bool {
    ratio.rounds >= LEAST_ROUNDS && ratio.low > AFTER
}

/// One site of one program.
struct Shown {
    program: &'static str,
    site: Site,
    /// Around the cache over through it, of whole runs.
    ways: PairedRatio,
    /// The same of their CPU time, the filling of buffers included.
    cpu: PairedRatio,
    /// What was learned over the better of both.
    after: PairedRatio,
    verdict: Verdict,
    /// Runs that learned.
    runs: u32,
    /// Calls of each run.
    calls: u32,
}

/// Runs them; an error where a decision is wrong or an output differs.
pub fn run(args: &LearnKnown) -> Result<()> {
    let wanted = scripts::chosen(&PROGRAMS, &args.only, |(name, _)| name)?;
    args.out.check()?;
    let interrupt = Interrupt::new()?;
    let scratch = tempfile::Builder::new().prefix("cachewise-known").tempdir()?;
    let library = scratch.path().join("libcachewise_preload.so");
    let built = match &args.library {
        Some(library) => library.clone(),
        None => crate::install::build()?.join("libcachewise_preload.so"),
    };
    fs::copy(&built, &library).with_context(|| built.display().to_string())?;
    let file = compile(scratch.path())?;
    let place = Place { file, library, args };
    let (began, mut shown) = (Instant::now(), Vec::new());
    let time = Duration::from_secs_f64(60.0 * args.minutes);
    for (done, (program, ends_as)) in wanted.iter().enumerate() {
        crate::interrupt::progress(program, done, wanted.len(), began);
        let share = turns::share(time.saturating_sub(began.elapsed()), wanted.len() - done);
        match place.one(program, ends_as, (scratch.path(), share), &interrupt, &mut shown) {
            Ok(()) => {}
            Err(_) if interrupt.came() => break,
            Err(error) => return Err(error.context(*program)),
        }
    }
    let text = table(&shown);
    args.out.write(&text, &as_json(&shown))?;
    if interrupt.came() {
        // Destructors are not run by what follows.
        drop(scratch);
        std::process::exit(INTERRUPTED);
    }
    let wrong: Vec<_> = shown.iter().filter(|one| one.verdict == Verdict::Wrong).collect();
    if !wrong.is_empty() {
        let names: Vec<_> = wrong.iter().map(|one| one.program).collect();
        bail!("decided for the dearer way: {}", names.join(", "));
    }
    Ok(())
}

fn compile(scratch: &Path) -> Result<PathBuf> {
    let (source, file) = (scratch.join("known.c"), scratch.join("known"));
    fs::write(&source, SOURCE)?;
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1", "-fno-builtin", "-pthread", "-o"]);
    let output = command.arg(&file).arg(&source).output().context("cc: a C compiler")?;
    if !output.status.success() {
        bail!("cc: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(file)
}

struct Place<'a> {
    file: PathBuf,
    library: PathBuf,
    args: &'a LearnKnown,
}

impl Place<'_> {
    fn command(&self, program: &str, calls: u32) -> Command {
        let mut command = Command::new(&self.file);
        command.arg(program).arg(calls.to_string()).arg(self.args.kibibytes.to_string());
        command
    }

    /// How many calls a run has, after one without the library.
    fn calls(&self, program: &str, share: Duration) -> Result<u32> {
        let began = Instant::now();
        let output =
            self.command(program, self.args.calls).output().context("the program starts")?;
        if !output.status.success() {
            bail!("without the library: {}", output.status);
        }
        Ok(calls(self.args.calls, share, began.elapsed()))
    }

    fn timed(&self, (program, calls): (&str, u32), learn: &str, section: &Path) -> Result<Ran> {
        let mut command = self.command(program, calls);
        command.env("LD_PRELOAD", &self.library);
        command.env("CACHEWISE_PROGRAM", section).env("CACHEWISE_LEARN", learn);
        let used = children::cpu_seconds();
        let output = command.output().context("the program starts")?;
        let cpu = children::cpu_seconds() - used;
        let told = String::from_utf8_lossy(&output.stderr);
        let seconds = told.lines().find_map(|line| line.strip_prefix("seconds "));
        match seconds.and_then(|text| text.parse().ok()) {
            Some(seconds) if output.status.success() => {
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                Ok(Ran { seconds, cpu, printed })
            }
            _ => bail!("ended with {}: {}", output.status, told.trim()),
        }
    }

    fn one(
        &self,
        program: &'static str,
        ends_as: &str,
        (scratch, share): (&Path, Duration),
        interrupt: &Interrupt,
        shown: &mut Vec<Shown>,
    ) -> Result<()> {
        let share_began = Instant::now();
        let calls = self.calls(program, share)?;
        interrupt.check()?;
        let began = Instant::now();
        let file = |what: &str| scratch.join(format!("{program}.{what}"));
        let learned = file("learned");
        let mut printed = Printed::default();
        let mut runs = 0;
        let (sites, section) = loop {
            printed.agree(program, self.timed((program, calls), "trial", &learned)?.printed)?;
            runs += 1;
            interrupt.check()?;
            let bytes = fs::read(&learned).context("no call had two ways: nothing was learned")?;
            let section = Section::parse(&bytes).map_err(|error| anyhow::anyhow!("{error}"))?;
            let sites: Vec<Site> = section.sites().collect();
            let decided = sites.iter().filter(|site| decided(site).is_some()).count();
            let one = began.elapsed() / runs;
            let enough = decided == sites.len() || runs >= self.args.runs;
            let late = share_began.elapsed() + one > share.mul_f64(LEARNING);
            if enough || late && runs >= LEAST_RUNS {
                let all = sites.len();
                eprintln!(
                    "{program}: {runs} runs of {calls} calls learned, {decided} of {all} decided"
                );
                break (sites, bytes);
            }
        };
        let section = Section::parse(&section).map_err(|error| anyhow::anyhow!("{error}"))?;
        // A round is three runs, and two more where a program ends as another.
        let turns = if ends_as == program { 3 } else { 5 };
        let round = began.elapsed() / runs * turns;
        for (at, site) in sites.iter().enumerate() {
            // Settled before the first of them: whoever stops when he likes the interval has none.
            let left = turns::share(share.saturating_sub(share_began.elapsed()), sites.len() - at);
            let left = left.saturating_sub(round);
            let rounds = turns::rounds(
                left,
                round,
                LEAST_ROUNDS.min(self.args.rounds as usize),
                self.args.rounds as usize,
            );
            let (number, all, took) =
                (at + 1, sites.len(), round.as_secs_f64() * (rounds + 1) as f64);
            eprintln!("{program}: site {number} of {all}, {rounds} rounds, some {took:.0} s");
            let forced = Way::ALL.map(|way| file(way.name()));
            for (way, file) in Way::ALL.into_iter().zip(&forced) {
                fs::write(file, with_decision(&section, &sites, site, way))?;
            }
            let mut seconds: [Vec<f64>; 3] = Default::default();
            let mut cpu: [Vec<f64>; 3] = Default::default();
            let mut of_end: [Vec<f64>; 2] = Default::default();
            // The first round brings pages to where the others find them, and is not counted.
            let orders = std::iter::once(vec![0, 1, 2]).chain(turns::orders(3, rounds, SEED));
            for (round, order) in orders.enumerate() {
                for at in order {
                    let (learn, section) = match forced.get(at) {
                        Some(file) => ("0", file),
                        // A copy: it goes on learning, as in service.
                        None => {
                            fs::copy(&learned, file("after"))?;
                            ("1", &file("after"))
                        }
                    };
                    let ran = self.timed((program, calls), learn, section)?;
                    printed.agree(program, ran.printed)?;
                    if round > 0 {
                        seconds[at].push(ran.seconds);
                        cpu[at].push(ran.cpu);
                    }
                    if let Some(of_end) = of_end.get_mut(at).filter(|_| ends_as != program) {
                        let ran = self.timed((ends_as, calls), learn, section)?;
                        printed.agree(ends_as, ran.printed)?;
                        if round > 0 {
                            of_end.push(ran.seconds);
                        }
                    }
                    interrupt.check()?;
                }
            }
            let whole = PairedRatio::in_turns(&seconds[1], &seconds[0]);
            let ways = match of_end[0].is_empty() {
                true => whole,
                false => PairedRatio::in_turns(&of_end[1], &of_end[0]),
            };
            let better = &seconds[usize::from(whole.median < 1.0)];
            shown.push(Shown {
                program,
                site: *site,
                ways,
                cpu: PairedRatio::in_turns(&cpu[1], &cpu[0]),
                after: PairedRatio::in_turns(&seconds[2], better),
                verdict: Verdict::of(decided(site), &ways),
                runs,
                calls,
            });
        }
        Ok(())
    }
}

/// The calls of a run, where one of `most` took so long.
fn calls(most: u32, share: Duration, took: Duration) -> u32 {
    let room = share.as_secs_f64() / RUNS / took.as_secs_f64().max(1e-3);
    ((f64::from(most) * room) as u32).max(LEAST_CALLS).min(most)
}

/// One run: the seconds of its loops, those of CPU, and what it printed.
struct Ran {
    seconds: f64,
    cpu: f64,
    printed: String,
}

/// What each program printed first, which it has to print ever after.
#[derive(Default)]
struct Printed(Vec<(String, String)>);

impl Printed {
    fn agree(&mut self, program: &str, text: String) -> Result<()> {
        match self.0.iter().find(|(of, _)| of == program) {
            Some((_, expected)) if *expected != text => {
                bail!("{program}: found output {text:?}, expected {expected:?}")
            }
            Some(_) => {}
            None => self.0.push((program.to_owned(), text)),
        }
        Ok(())
    }
}

fn decided(site: &Site) -> Option<Way> {
    match site.left.outcome {
        Outcome::Decided(way) => Some(way),
        Outcome::CannotTell(_) => None,
    }
}

/// The section with one site decided, the others as they are.
fn with_decision(section: &Section<'_>, sites: &[Site], of: &Site, way: Way) -> String {
    let mut text = String::from("cachewise-program 2\n");
    for key in ["program", "cpu", "written"] {
        let _ = writeln!(text, "{key} {}", section.text(key));
    }
    for Module { number, id, path } in section.modules() {
        let _ = writeln!(text, "module {number} {id} {path}");
    }
    for site in sites {
        let mut site = *site;
        if site.module == of.module && site.same_calls(of) {
            site.left.outcome = Outcome::Decided(way);
        }
        let _ = site.write(&mut text);
    }
    let body = text.clone();
    let _ = write_end(&mut text, body.as_bytes());
    text
}

fn percent(ratio: &PairedRatio) -> String {
    let one = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    format!("{} ({} .. {})", one(ratio.median), one(ratio.low), one(ratio.high))
}

fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.3}", nanoseconds / 1e6)
}

fn table(shown: &[Shown]) -> String {
    let mut text = String::from(
        "| program | size | calls | tried | from call to call, temporal, ms | non-temporal, ms \
         | decision | non-temporal against temporal, %, whole runs | verdict \
         | learned against the better way, % | rounds | runs that learned \
         | non-temporal against temporal, %, CPU |\n\
         |---|---|---:|---:|---:|---:|---|---:|---|---:|---:|---:|---:|\n",
    );
    for Shown { program, site, ways, cpu, after, verdict, runs, .. } in shown {
        let Site { octave, left, .. } = site;
        let costs = left.evidence.costs.map(|cost| milliseconds(cost.mean()));
        let dear = if is_dear(after) { ", DEAR" } else { "" };
        let _ = writeln!(
            text,
            "| {program} | 2^{octave} | {} | {} | {} | {} | {} | {} | {} | {}{dear} | {} | {runs} | {} |",
            left.calls,
            left.explored,
            costs[0],
            costs[1],
            left.outcome.name(),
            percent(ways),
            verdict.name(),
            percent(after),
            ways.rounds,
            percent(cpu),
        );
    }
    text
}

fn as_json(shown: &[Shown]) -> Value {
    let ratio = |of: &PairedRatio| json!({ "median": of.median, "low": of.low, "high": of.high });
    let lines = shown.iter().map(|one| {
        let left = &one.site.left;
        json!({
            "program": one.program,
            "octave": one.site.octave,
            "calls": left.calls,
            "tried": left.explored,
            "temporal_ns": left.evidence.costs[0].mean(),
            "non_temporal_ns": left.evidence.costs[1].mean(),
            "pairs": left.evidence.pairs(),
            "decision": left.outcome.name(),
            "non_temporal_over_temporal": ratio(&one.ways),
            "verdict": one.verdict.name(),
            "learned_over_better": ratio(&one.after),
            "cpu_non_temporal_over_temporal": ratio(&one.cpu),
            "rounds": one.ways.rounds,
            "learning_runs": one.runs,
            "calls_of_a_run": one.calls,
        })
    });
    json!({ "known_programs": lines.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_learn::evidence::KEPT;

    fn ratio(median: f64, low: f64, high: f64) -> PairedRatio {
        PairedRatio { median, low, high, rounds: 8 }
    }

    #[test]
    fn a_decision_is_judged_by_whole_runs() {
        use Verdict::{CannotTell, NoInterval, NothingBetween, Right, Wrong};
        let (temporal, around) = (Some(Way::Temporal), Some(Way::NonTemporal));
        let slower = ratio(1.2, 1.1, 1.3);
        let faster = ratio(0.9, 0.85, 0.95);
        for (decided, ratio, expected) in [
            (temporal, slower, Right),
            (around, slower, Wrong),
            (None, slower, CannotTell),
            (temporal, faster, Wrong),
            (around, faster, Right),
            // Certain, and of no interest.
            (around, ratio(1.015, 1.01, 1.02), NothingBetween),
            (temporal, ratio(0.985, 0.98, 0.99), NothingBetween),
            // Large, and not certain.
            (around, ratio(1.3, 0.95, 1.6), NothingBetween),
            (None, ratio(1.0, 0.99, 1.01), NothingBetween),
        ] {
            assert_eq!(Verdict::of(decided, &ratio), expected, "{decided:?}, {ratio:?}");
        }
        assert_eq!(Verdict::of(around, &PairedRatio { rounds: 5, ..slower }), NoInterval);
    }

    #[test]
    fn a_long_run_gets_fewer_calls() {
        let second = Duration::from_secs(1);
        let share = second.mul_f64(RUNS + 0.1);
        assert_eq!(calls(800, share, second), 800);
        assert_eq!(calls(800, share, 2 * second), 400);
        assert_eq!(calls(800, share, 100 * second), LEAST_CALLS);
        assert_eq!(calls(100, Duration::ZERO, second), 100, "what was asked for is not raised");
        assert_eq!(calls(800, 40 * second, Duration::ZERO), 800);
    }

    #[test]
    fn dear_is_what_is_certainly_above_three_percent() {
        assert!(is_dear(&ratio(1.06, 1.04, 1.08)));
        assert!(!is_dear(&ratio(1.06, 1.02, 1.08)));
        assert!(!is_dear(&PairedRatio { rounds: 3, ..ratio(1.06, 1.04, 1.08) }));
    }

    #[test]
    fn a_section_is_forced_for_one_site_only() {
        let line = |offset: u64, octave: u32| {
            let evidence = vec!["0"; 7 + KEPT].join(" ");
            format!(
                "site 1 {offset:#x} copy {octave} 9 99 temporal too-few-calls 0 0 {evidence} \
                 {evidence} {evidence}\n"
            )
        };
        let mut text = String::from("cachewise-program 2\nprogram /p\ncpu A 1 2 3\nwritten 5\n");
        text += "module 1 ab /p\n";
        text += &(line(0x10, 21) + &line(0x10, 22));
        let body = text.clone();
        write_end(&mut text, body.as_bytes()).expect("written");
        let section = Section::parse(text.as_bytes()).expect("a section");
        let sites: Vec<_> = section.sites().collect();
        let forced = with_decision(&section, &sites, &sites[1], Way::NonTemporal);
        let forced = Section::parse(forced.as_bytes()).expect("still a section");
        let outcomes: Vec<_> = forced.sites().map(|site| site.left.outcome.name()).collect();
        assert_eq!(outcomes, ["too-few-calls", "nt"]);
        assert_eq!((forced.text("cpu"), forced.modules().count()), ("A 1 2 3", 1));
    }
}
