//! `xtask learn-known`: programs whose best way to copy can be found out, learned under the preload
//! library: is what it decides right, and what does it cost? For a quiet machine.
//!
//! The programs are those of `crates/preload/tests/c/known.c`. Each is learned; then, for each call
//! site, whole runs with that site always by temporal stores, always by non-temporal ones, and on what
//! was learned take turns. A site's decision is
//!
//! - *right* or *WRONG* where the two ways differ by more than their interval and 2 %;
//! - *nothing between them* where they do not, whatever was decided;
//! - *cannot tell* where nothing was decided.

use super::{
    Common, LEARNING, LEAST_RUNS, Shown, Turn, begin, campaign, chosen, fitting, in_turns, ran,
    rounds,
};
use crate::command::{command, output, text};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use cachewise_learn::Way;
use cachewise_learn::section::{Section, Site, write_end};
use cachewise_learn::trial;
use cachewise_measure::stats::{LEAST_ROUNDS, PairedRatio, Verdict};
use cachewise_measure::turns;
use cachewise_measure::whole::{MARGIN, Run, Times};
use cachewise_report::Table;
use fs_err as fs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What to run, and where to write.
#[derive(Debug, clap::Args)]
pub struct LearnKnown {
    #[command(flatten)]
    common: Common,
    /// At most so many runs that learn: fewer once all sites are decided, or a third of the program's
    /// share of the minutes is spent, but 3
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Calls of a run: fewer where the program's share of the minutes has no room for the runs of so
    /// many, but 200
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// Size of a copy, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 6144, value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    kibibytes: u32,
}

const SOURCE: &str = include_str!("../../../crates/preload/tests/c/known.c");

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

/// Room for so many runs of a program is wanted: one to see how long it takes, a third of them to
/// learn, and one to warm up and thirty that count of each of three.
const RUNS: f64 = 1.0 + 1.5 * 3.0 * (1.0 + 30.0);
/// Calls of a run at least.
const LEAST_CALLS: u32 = 200;
/// What a program may cost above the better way once it is decided.
const AFTER: f64 = 1.03;

/// The verdict that is an error.
const WRONG: &str = "WRONG";

/// What to think of a decision; `ratio` is the non-temporal time over the temporal one.
fn verdict(decided: Option<Way>, ratio: &PairedRatio) -> &'static str {
    if ratio.rounds < LEAST_ROUNDS {
        return "too few rounds to say";
    }
    let better = match ratio.verdict(MARGIN) {
        Verdict::Faster => Way::NonTemporal,
        Verdict::Slower => Way::Temporal,
        Verdict::CannotTell => return "nothing between them",
    };
    match decided {
        None => "cannot tell",
        Some(way) if way == better => "right",
        Some(_) => WRONG,
    }
}

/// Whether what was learned costs more than the better way, beyond its interval.
fn is_dear(ratio: &PairedRatio) -> bool {
    ratio.rounds >= LEAST_ROUNDS && ratio.low > AFTER
}

/// Runs them; an error where a decision is wrong or an output differs.
pub fn run(args: &LearnKnown) -> Result<()> {
    let programs = chosen(&PROGRAMS, &args.common.only)?;
    let begun = begin(&args.common, "known", "cachewise-preload")?;
    let (source, file) = (begun.scratch.path().join("known.c"), begun.scratch.path().join("known"));
    fs::write(&source, SOURCE)?;
    let mut cc = command("cc -std=gnu11 -O1 -fno-builtin -pthread -o");
    output(cc.arg(&file).arg(&source))?;
    let setup = Setup { file, library: begun.library.clone(), args };
    let mut table = Table::of(
        "",
        "program | verdict | decision | size | >calls | >tried | >temporal, ms | >non-temporal, \
         ms | >non-temporal over temporal, whole runs | >learned over the better way | >rounds \
         | >runs that learned",
    );
    table.remark("ms: from call to call; ratios of time, below 1 is faster");
    let mut one = |turn: &Turn<'_>, ends_as: &&str| setup.one(turn, ends_as);
    campaign(&args.common, &programs, table, begun, &mut one)
}

struct Setup<'a> {
    file: PathBuf,
    library: PathBuf,
    args: &'a LearnKnown,
}

/// What each program printed first with so many calls, which it has to print ever after.
type Printed = BTreeMap<(String, u32), Vec<u8>>;

impl Setup<'_> {
    /// A run of a program with so many calls, learning or following a section where one is named; its
    /// seconds are those of its loops.
    fn timed(
        &self,
        turn: &Turn<'_>,
        printed: &mut Printed,
        (program, calls): (&str, u32),
        learning: Option<(&str, &Path)>,
    ) -> Result<Run> {
        let mut command = Command::new(&self.file);
        command.arg(program).arg(calls.to_string()).arg(self.args.kibibytes.to_string());
        if let Some((how, section)) = learning {
            command.env("LD_PRELOAD", &self.library);
            command.env("CACHEWISE_PROGRAM", section).env("CACHEWISE_LEARN", how);
        }
        let mut ran = ran(&mut command, turn, Duration::from_secs(600))?;
        let seconds = ran.told.lines().find_map(|line| line.strip_prefix("seconds ")?.parse().ok());
        let Some(seconds) = seconds.filter(|_| ran.status.success()) else {
            bail!("ended with {}: {}", ran.status, ran.told);
        };
        ran.seconds = seconds;
        let expected =
            printed.entry((program.to_owned(), calls)).or_insert_with(|| ran.output.clone());
        let [found, expected] = [&ran.output, expected].map(|bytes| text(bytes));
        ensure!(found == expected, "{program}: found output {found:?}, expected {expected:?}");
        Ok(ran)
    }

    fn one(&self, turn: &Turn<'_>, ends_as: &str) -> Result<Shown> {
        let program = turn.name;
        fs::create_dir(&turn.directory)?;
        let file = |what: &str| turn.directory.join(what);
        let mut printed = Printed::new();
        self.timed(turn, &mut printed, (program, self.args.calls), None)?;
        let took = turn.begun.elapsed();
        let calls = fitting(self.args.calls, LEAST_CALLS, turn.share, RUNS, took);
        let (learned, began) = (file("learned"), Instant::now());
        let mut runs = 0;
        let (sites, section) = loop {
            self.timed(turn, &mut printed, (program, calls), Some(("trial", &learned)))?;
            runs += 1;
            let section = fs::read_to_string(&learned);
            let section = section.context("no call had two ways: nothing was learned")?;
            let parsed = Section::parse(section.as_bytes()).map_err(|error| anyhow!("{error}"))?;
            let sites: Vec<Site> = parsed.sites().collect();
            let open = sites.iter().any(|site| decided(site).is_none());
            let late = turn.begun.elapsed() + began.elapsed() / runs > turn.share.mul_f64(LEARNING);
            if !open || runs >= self.args.runs || late && runs >= LEAST_RUNS {
                break (sites, section);
            }
        };
        // A round is three runs, and two more where a program ends as another.
        let round = began.elapsed() / runs * if ends_as == program { 3 } else { 5 };
        let (mut lines, mut records, mut wrong) = (Vec::new(), Vec::new(), None);
        for (at, site) in sites.iter().enumerate() {
            let left = turns::share(turn.left(), sites.len() - at);
            let rounds = rounds(left, round, self.args.common.rounds);
            eprintln!("{program}: site {} of {}, {rounds} rounds", at + 1, sites.len());
            let forced = Way::ALL.map(|way| file(way.name()));
            for (way, file) in Way::ALL.into_iter().zip(&forced) {
                fs::write(file, with_decision(&section, &sites, site, way))?;
            }
            let mut of_end = [Vec::new(), Vec::new()];
            let times = in_turns(turn, 3, rounds, |at| {
                let after = file("after");
                let (learn, section) = match forced.get(at) {
                    Some(file) => ("0", file),
                    // A copy: it goes on learning, as in service.
                    None => {
                        fs::copy(&learned, &after)?;
                        ("1", &after)
                    }
                };
                let learning = Some((learn, section.as_path()));
                let ran = self.timed(turn, &mut printed, (program, calls), learning)?;
                if at < 2 && ends_as != program {
                    let end = self.timed(turn, &mut printed, (ends_as, calls), learning)?;
                    of_end[at].push(end.seconds);
                }
                Ok(Some(ran))
            })?;
            let (line, json, verdict) = shown(site, &times, &of_end, (runs, calls));
            if verdict == WRONG {
                wrong = Some("decided for the dearer way".to_owned());
            }
            lines.push(line);
            records.push(json);
        }
        Ok(Shown { lines, json: json!({ "sites": records }), wrong })
    }
}

/// A line of the table and a record of one site, and what is to be thought of its decision.
fn shown(
    site: &Site,
    times: &Times,
    of_end: &[Vec<f64>; 2],
    (runs, calls): (u32, u32),
) -> (Vec<String>, Value, &'static str) {
    let whole = PairedRatio::in_turns(&times.wall[1], &times.wall[0]);
    // Non-temporal over temporal, of whole runs. The first round warmed up.
    let ways = match of_end {
        [temporal, other] if temporal.len() > 1 => {
            PairedRatio::in_turns(&other[1..], &temporal[1..])
        }
        _ => whole,
    };
    // What was learned over the better of both.
    let better = &times.wall[usize::from(whole.median < 1.0)];
    let after = PairedRatio::in_turns(&times.wall[2], better);
    let verdict = verdict(decided(site), &ways);
    let left = &site.left;
    let [temporal, non_temporal] = [0, 1].map(|way| left.evidence.costs[way].mean());
    let line = vec![
        verdict.to_owned(),
        left.outcome.name().to_owned(),
        format!("2^{}", site.octave),
        left.calls.to_string(),
        left.explored.to_string(),
        format!("{:.3}", temporal / 1e6),
        format!("{:.3}", non_temporal / 1e6),
        ways.to_string(),
        format!("{after}{}", if is_dear(&after) { ", DEAR" } else { "" }),
        ways.rounds.to_string(),
        runs.to_string(),
    ];
    let json = json!({
        "octave": site.octave,
        "calls": left.calls,
        "tried": left.explored,
        "temporal_ns": temporal,
        "non_temporal_ns": non_temporal,
        "pairs": left.evidence.pairs(),
        "decision": left.outcome.name(),
        "non_temporal_over_temporal": ways,
        "verdict": verdict,
        "learned_over_better": after,
        // The filling of buffers included.
        "cpu_non_temporal_over_temporal": times.cpu(1, 0),
        "rounds": ways.rounds,
        "learning_runs": runs,
        "calls_of_a_run": calls,
    });
    (line, json, verdict)
}

fn decided(site: &Site) -> Option<Way> {
    match site.left.outcome {
        trial::Outcome::Decided(way) => Some(way),
        trial::Outcome::CannotTell(_) => None,
    }
}

/// The section with one of its sites decided, the others as they are.
fn with_decision(section: &str, sites: &[Site], of: &Site, way: Way) -> String {
    let head = section.lines().take_while(|line| !line.starts_with("site "));
    let mut text: String = head.flat_map(|line| [line, "\n"]).collect();
    for site in sites {
        let mut site = *site;
        if site.module == of.module && site.same_calls(of) {
            site.left.outcome = trial::Outcome::Decided(way);
        }
        let _ = site.write(&mut text);
    }
    let body = text.clone();
    let _ = write_end(&mut text, body.as_bytes());
    text
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
        const NOTHING: &str = "nothing between them";
        let (temporal, non_temporal) = (Some(Way::Temporal), Some(Way::NonTemporal));
        let slower = ratio(1.2, 1.1, 1.3);
        let faster = ratio(0.9, 0.85, 0.95);
        for (decided, ratio, expected) in [
            (temporal, slower, "right"),
            (non_temporal, slower, WRONG),
            (None, slower, "cannot tell"),
            (temporal, faster, WRONG),
            (non_temporal, faster, "right"),
            // By the margin of whole programs.
            (non_temporal, ratio(1.015, 1.01, 1.02), NOTHING),
            (None, ratio(0.985, 0.98, 0.99), NOTHING),
            (non_temporal, PairedRatio { rounds: 5, ..slower }, "too few rounds to say"),
        ] {
            assert_eq!(verdict(decided, &ratio), expected, "{decided:?}, {ratio:?}");
        }
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
        let forced = with_decision(&text, &sites, &sites[1], Way::NonTemporal);
        let forced = Section::parse(forced.as_bytes()).expect("still a section");
        let outcomes: Vec<_> = forced.sites().map(|site| site.left.outcome.name()).collect();
        assert_eq!(outcomes, ["too-few-calls", "nt"]);
        assert_eq!((forced.text("cpu"), forced.modules().count()), ("A 1 2 3", 1));
    }
}
