//! `xtask learn-programs`: `cachewise learn --prove` on real programs that nobody here wrote: every
//! table of call sites, and a verdict on each whole program. For a quiet machine.
//!
//! Nothing of the user's is touched: the profile in force is copied, and what is learned stays in a
//! directory that is removed, unless `--keep` names one. Runs learn, none of them timed, until no site
//! is left that more of them could decide, or a third of the program's share of the time is spent.
//! Then the number of rounds is settled, and libc, the profile alone and what was learned take turns.

use super::script::Script;
use super::{
    Common, LEARNING, LEAST_RUNS, Shown, Turn, begin, campaign, chosen, open_to_all, ran, rounds,
};
use anyhow::{Context as _, Result};
use cachewise_measure::{PairedRatio, turns};
use cachewise_report::Table;
use fs_err as fs;
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to learn, and how thoroughly.
#[derive(Debug, clap::Args)]
pub struct LearnPrograms {
    #[command(flatten)]
    common: Common,
    /// At most so many runs that learn, but 3
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    runs: u32,
    /// The profile to start from [default: the one in force]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Keep what is learned, and the pages, in this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// This program in place of one built for release first
    #[arg(long, value_name = "FILE")]
    cachewise: Option<PathBuf>,
}

/// Room for so many runs of a program is wanted: one to see how long it takes, a third of them to
/// learn, and one to warm up and a hundred and fifty that count of each of three. Where the times of
/// two runs differ by a tenth, that is an interval of 2 % to each side.
const RUNS: f64 = 1.0 + 1.5 * 3.0 * (1.0 + 150.0);
/// A site is hardly decided by fewer calls (docs/learning.md).
const CALLS: f64 = 350.0;

/// Work of a few seconds, most of it with large buffers; the last two are there for not having any.
const SCRIPTS: [(&str, &str); 9] = [
    ("numpy-large", include_str!("../../programs/learn/numpy-large.sh")),
    ("sqlite-memory", include_str!("../../programs/learn/sqlite-memory.sh")),
    ("bytearray", include_str!("../../programs/learn/bytearray.sh")),
    ("redis-large", include_str!("../../programs/learn/redis-large.sh")),
    ("postgres-large", include_str!("../../programs/learn/postgres-large.sh")),
    ("zstd-large", include_str!("../../programs/learn/zstd-large.sh")),
    ("rustc", include_str!("../../programs/learn/rustc.sh")),
    ("xz", include_str!("../../programs/xz.sh")),
    ("gzip", include_str!("../../programs/gzip.sh")),
];

/// In a directory of its own, the same one each time: some programs' output names it.
const WORK: &str = "rm -rf run && mkdir run && cd run && exec sh \"$SCRIPT\" run";

/// Runs them; an error where any output differs or any program is slower.
pub fn run(args: &LearnPrograms) -> Result<()> {
    let programs = chosen(&SCRIPTS, &args.common.only)?;
    let begun = begin(&args.common, "learn", "cachewise-preload")?;
    let tools = Tools::new(args, begun.scratch.path(), begun.library.clone())?;
    let mut table = Table::of(
        "",
        "program | verdict | >sites | >decided | >speed, profile only | >speed, learned | >CPU, \
         learned | >runs that learned | >rounds | >input, %",
    );
    table.remark(
        "speed: libc's time over the program's own, in turns, with its 95 % interval; above 1 is \
         faster. CPU: the CPU time of all its processes over that with libc",
    );
    let mut one = |turn: &Turn<'_>, text: &&str| tools.one(turn, text, args);
    campaign(&args.common, &programs, table, begun, &mut one)
}

struct Tools {
    cachewise: PathBuf,
    library: PathBuf,
    config: PathBuf,
    profile: Option<PathBuf>,
    kept: PathBuf,
}

impl Tools {
    fn new(args: &LearnPrograms, scratch: &Path, library: PathBuf) -> Result<Tools> {
        let kept = match &args.keep {
            Some(directory) => {
                fs::create_dir_all(directory)?;
                fs::canonicalize(directory)?
            }
            None => scratch.to_owned(),
        };
        let cachewise = match &args.cachewise {
            Some(named) => fs::canonicalize(named)?,
            None => crate::install::built("cachewise-cli")?.join("cachewise"),
        };
        let own = kept.join("learned.profile");
        let profile = super::profile(args.profile.as_deref(), &own)?;
        let config = kept.join("config");
        let programs = match &profile {
            Some(_) => own.with_extension("programs"),
            None => {
                let name = cachewise::profile::user_path().context("no HOME")?;
                let name = name.file_name().context("a profile has a name")?.to_owned();
                config.join("cachewise").join(name).with_extension("programs")
            }
        };
        fs::create_dir_all(&programs)?;
        // Servers that refuse to run as root are run as somebody else, who saves what he learned too.
        fs::set_permissions(&programs, Permissions::from_mode(0o777))?;
        let above = programs.ancestors().skip(1);
        above.take_while(|directory| directory.starts_with(&kept)).try_for_each(open_to_all)?;
        Ok(Tools { cachewise, library, config, profile, kept })
    }

    /// One run that learns, or with `prove` so many rounds after it: what `cachewise learn` wrote.
    fn learn(&self, turn: &Turn<'_>, script: &Script<'_>, prove: Option<usize>) -> Result<Value> {
        let record = turn.directory.join("record.json");
        let mut learn = script.command(&self.cachewise, &turn.directory);
        learn.env("XDG_CONFIG_HOME", &self.config);
        learn.arg("learn").arg("--library").arg(&self.library).args(["--name", turn.name]);
        if let Some(profile) = &self.profile {
            learn.arg("--profile").arg(profile);
        }
        if let Some(rounds) = prove {
            learn.args(["--prove", "--rounds", &rounds.to_string()]);
        }
        let page = self.kept.join(format!("{}.html", turn.name));
        learn.arg("--json").arg(&record).arg("--html").arg(page).args(["--", "sh", "-c", WORK]);
        // As long as it takes.
        let run = ran(&mut learn, turn, Duration::from_secs(24 * 3600))?;
        let text = fs::read_to_string(&record)
            .with_context(|| format!("cachewise learn: {}: {}", run.status, run.told))?;
        fs::remove_file(&record)?;
        Ok(serde_json::from_str(&text)?)
    }

    fn one(&self, turn: &Turn<'_>, text: &str, args: &LearnPrograms) -> Result<Shown> {
        let name = turn.name;
        let (script, seconds) = Script::prepare(turn, text, "", RUNS)?;
        let learning = turn.share.mul_f64(LEARNING);
        let (learning_began, mut runs) = (Instant::now(), 0);
        // The last one learns before the proof, in the same command.
        while runs + 1 < args.runs {
            let record = self.learn(turn, &script, None)?;
            runs += 1;
            let sites = sites(&record);
            if sites.is_empty() {
                return Ok(shown(record, runs, script.percent));
            }
            let fit = turns::rounds(
                learning.saturating_sub(learning_began.elapsed()),
                learning_began.elapsed() / runs,
                LEAST_RUNS.saturating_sub(runs) as usize,
                (args.runs - runs) as usize,
            );
            let open = open_sites(sites, runs, u32::try_from(fit)?);
            if runs == 1 {
                eprintln!("{name}: {open} of {} sites open, {fit} more runs at most", sites.len());
            }
            if fit <= 1 || open == 0 && runs + 1 >= LEAST_RUNS {
                break;
            }
        }
        let learned = learning_began.elapsed().as_secs_f64() / f64::from(runs.max(1));
        let round = Duration::from_secs_f64(3.0 * seconds.max(learned));
        let rounds = rounds(turn.left(), round, args.common.rounds);
        let percent = script.percent;
        eprintln!("{name}: {runs} runs learned; {rounds} rounds of {percent} % of its input");
        Ok(shown(self.learn(turn, &script, Some(rounds))?, runs + 1, percent))
    }
}

fn sites(record: &Value) -> &[Value] {
    record["sites"].as_array().map_or(&[], Vec::as_slice)
}

/// How many of the sites that are not decided could be by so many more runs, given so many so far.
fn open_sites(sites: &[Value], runs: u32, more: u32) -> usize {
    let open = |site: &&Value| {
        let calls = site["calls"].as_f64().unwrap_or(0.0);
        matches!(site["outcome"].as_str(), Some("too-few-calls" | "reopened"))
            && calls / f64::from(runs) * f64::from(runs + more) >= CALLS
    };
    sites.iter().filter(open).count()
}

/// A program's line, from what `cachewise learn --prove` wrote.
fn shown(mut record: Value, runs: u32, percent: u32) -> Shown {
    let proof = &record["proof"];
    let ratio = |of: &Value| {
        let ratio = serde_json::from_value::<PairedRatio>(of.clone());
        ratio.map_or("-".to_owned(), |ratio| ratio.to_string())
    };
    let all = sites(&record);
    let decided = |site: &&Value| matches!(site["outcome"].as_str(), Some("temporal" | "nt"));
    let verdict = proof["verdict"].as_str().unwrap_or("nothing to gain").to_owned();
    let differs = proof["comparable"] == true && proof["same_output"] == false;
    let wrong = match verdict.as_str() {
        _ if differs => Some("another output than with libc".to_owned()),
        "SLOWER" => Some("slower than libc".to_owned()),
        _ => None,
    };
    let line = vec![
        wrong.clone().unwrap_or(verdict),
        all.len().to_string(),
        all.iter().filter(decided).count().to_string(),
        ratio(&proof["speed_against_libc"]["profile only"]),
        ratio(&proof["speed_against_libc"]["learned"]),
        ratio(&proof["cpu_over_libc"]["learned"]),
        runs.to_string(),
        proof["rounds"].as_u64().map_or("-".to_owned(), |rounds| rounds.to_string()),
        percent.to_string(),
    ];
    record["input_percent"] = percent.into();
    record["learning_runs"] = runs.into();
    Shown { lines: vec![line], json: record, wrong }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_judged_and_shown() {
        let speed = json!({ "median": 1.1, "low": 1.05, "high": 1.2, "rounds": 9 });
        let record = |verdict: &str, same: bool| {
            json!({
                "sites": [{ "outcome": "nt" }, { "outcome": "too-few-calls" }],
                "proof": {
                    "speed_against_libc": { "learned": speed, "profile only": speed },
                    "verdict": verdict, "same_output": same, "comparable": true, "rounds": 9,
                },
            })
        };
        let line = |record| {
            let Shown { lines, wrong, .. } = shown(record, 4, 50);
            (lines[0].join("|"), wrong)
        };
        let (text, wrong) = line(record("faster", true));
        let both = "1.100 (1.050 .. 1.200)";
        assert_eq!((text, wrong), (format!("faster|2|1|{both}|{both}|-|4|9|50"), None));
        assert!(line(record("SLOWER", true)).1.is_some());
        assert!(line(record("faster", false)).1.is_some());
        let (text, wrong) = line(json!({ "sites": [], "proof": null }));
        assert!(text.starts_with("nothing to gain|0|0|-|") && wrong.is_none(), "{text}");
    }

    #[test]
    fn a_site_is_open_while_more_runs_could_decide_it() {
        let site = |outcome: &str, calls: u64| json!({ "outcome": outcome, "calls": calls });
        let open = |outcome: &str, calls, runs, more| {
            open_sites(&[site(outcome, calls), site("temporal", 5000)], runs, more)
        };
        for outcome in ["too-few-calls", "reopened"] {
            assert_eq!(open(outcome, 100, 1, 3), 1);
            assert_eq!(open(outcome, 100, 1, 2), 0, "300 calls do not decide");
            assert_eq!(open(outcome, 100, 2, 5), 1);
        }
        for settled in ["temporal", "nt", "no-difference", "unconfirmed"] {
            assert_eq!(open(settled, 10_000, 1, 30), 0, "{settled}");
        }
    }
}
