//! `cachewise learn`: a program is run, and tells by its own time which way each of its call sites
//! should go.

use super::{exec, learned};
use crate::args::Learn;
use crate::{output, status};
use anyhow::{Context as _, bail};
use cachewise::Reuse;
use cachewise::profile::Profile;
use cachewise_kernels::{Operation, StoreKind};
use cachewise_measure::stats::{PairedRatio, median};
use cachewise_measure::{Verdict, children, turns};
use cachewise_report::units::{bytes, gain, time};
use cachewise_report::{Table, programs};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Differences of a whole program below this are of no interest.
const MARGIN: f64 = 0.01;
/// Seed of the order in each round of a proof.
const SEED: u64 = 1;
/// How long a server that a run started may take to end after it, so that its CPU time is known.
const ENDING: Duration = Duration::from_millis(200);
/// How often a proof says how far it is.
const SAID_EVERY: Duration = Duration::from_secs(15);

/// How a program is run.
struct Launch<'a> {
    program: PathBuf,
    command: &'a [OsString],
    preload: OsString,
    profile: Option<PathBuf>,
    section: PathBuf,
}

/// On what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Libc,
    Profile,
    Learned,
    Trial,
}

impl On {
    const PROOF: [On; 3] = [On::Libc, On::Profile, On::Learned];

    fn name(self) -> &'static str {
        match self {
            On::Libc => "libc",
            On::Profile => "profile only",
            On::Learned => "learned",
            On::Trial => "trial",
        }
    }
}

impl Launch<'_> {
    fn command(&self, on: On) -> Command {
        let mut command = Command::new(&self.program);
        let (name, arguments) = self.command.split_first().unwrap_or((&self.preload, &[]));
        command.arg0(name).args(arguments);
        command.env_remove("CACHEWISE_LEARN").env_remove("CACHEWISE_PROGRAM");
        if on == On::Libc {
            return command;
        }
        command.env("LD_PRELOAD", &self.preload);
        if let Some(profile) = &self.profile {
            command.env("CACHEWISE_PROFILE", profile);
        }
        match on {
            On::Trial => command.env("CACHEWISE_LEARN", "trial"),
            On::Learned => &mut command,
            On::Libc | On::Profile => return command,
        };
        command.env("CACHEWISE_PROGRAM", &self.section);
        command
    }
}

/// Learns, shows, and proves where that is asked for.
pub fn run(args: &Learn) -> anyhow::Result<u8> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        bail!("call sites are learned on x86-64 Linux only");
    }
    output::check_all(&[args.html.as_deref(), args.json.as_deref()])?;
    let Some((name, _)) = args.command.split_first() else { bail!("no program") };
    let library = exec::library(args.library.as_deref())?;
    let Some(program) = exec::find_program(Path::new(name)) else {
        anstream::eprintln!("cachewise: {}: program not found", Path::new(name).display());
        return Ok(exec::NOT_FOUND);
    };
    if let Some(why) = exec::out_of_reach(&program) {
        bail!("{}: {why}: there is nothing to learn from", program.display());
    }
    let own = args.name.clone().unwrap_or_else(|| learned::name_of(&program));
    let section = learned::place(&own, args.profile.as_deref())?;
    if let Some(directory) = section.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    if section.exists() {
        // What is no section is told before anything is run for it; one that is damaged goes.
        let found = learned::read(&own, &section);
        if let Err(why) = found {
            learned::is_ours(&section).then_some(()).ok_or(why)?;
        }
    }
    let profile = args.profile.as_ref().map(fs::canonicalize).transpose()?;
    let launch = Launch {
        program,
        command: &args.command,
        preload: exec::preload(std::slice::from_ref(&library))?,
        profile,
        section,
    };
    // The terminal's signals are for the program: we stay to tell what it taught.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut ended = None;
    let mut runs = 0;
    for _ in 0..args.runs {
        let mut child = match launch.command(On::Trial).spawn() {
            Ok(child) => child,
            Err(error) => return Ok(exec::not_started(&launch.program, &error)),
        };
        let status = child.wait()?;
        ended = Some(status);
        runs += 1;
        if !status.success() || interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    if !launch.section.exists() {
        if let Some(file) = &args.json {
            let nothing = json!({ "program": own, "sites": [], "proof": null });
            output::write(file, text_of(&nothing)?.as_bytes())?;
        }
        output::print(&format!("{own}: {}: nothing learned\n", why_nothing(&launch, ended)?))?;
        return Ok(ended.map_or(status::OK, exec::pass_on));
    }
    let mut found = learned::read(&own, &launch.section)?;
    let mut outcome = ended.map_or(status::OK, exec::pass_on);
    let mut record = learned::as_json(&found);
    // Of this time; a section may hold those of earlier times too.
    record["learning_runs"] = runs.into();
    let proof = match args.prove && ended.is_some_and(|status| status.success()) {
        true => prove(&launch, args.rounds as usize, &interrupted)?,
        false => None,
    };
    if let Some(Proof { table, outcome: verdict, record: proved }) = proof {
        record["proof"] = proved;
        found.remarks.extend(table.remarks.iter().cloned());
        output::print(&programs::sites(&found).terminal(output::width()))?;
        output::print(&format!("\n{}", table.terminal(output::width())))?;
        outcome = verdict;
    } else {
        output::print(&programs::sites(&found).terminal(output::width()))?;
    }
    if let Some(file) = &args.html {
        output::write(file, programs::page(&found).as_bytes())?;
    }
    if let Some(file) = &args.json {
        output::write(file, text_of(&record)?.as_bytes())?;
    }
    anstream::eprintln!("learned: {}", launch.section.display());
    if interrupted.load(Ordering::Relaxed) {
        return Ok(status::INTERRUPTED);
    }
    Ok(outcome)
}

/// Why nothing was saved: the one cause, the first of these that is there.
fn why_nothing(launch: &Launch<'_>, ended: Option<ExitStatus>) -> anyhow::Result<String> {
    if let Some(signal) = ended.and_then(|status| status.signal()) {
        return Ok(format!("ended by signal {signal}, before it could save anything"));
    }
    if let Some(profile) = &launch.profile {
        cachewise::load(&Profile::read(profile)?)?;
    }
    Ok(match two_ways_from() {
        None => "the profile never goes around the cache, so there is nothing to try".to_owned(),
        Some(least) => format!(
            "no copy or fill of {} or more went through the dynamic linker, or it ended by _exit",
            bytes(least)
        ),
    })
}

/// The smallest size with two ways: for some hint the profile in force goes around the cache.
fn two_ways_from() -> Option<u64> {
    let around = |operation, size: &u64| {
        [Reuse::Never, Reuse::Unknown, Reuse::Soon].iter().any(|reuse| {
            let kernel = cachewise::decision(operation, *reuse, *size).kernel;
            let store = kernel.map(|kernel| kernel.store);
            matches!(store, Some(StoreKind::NonTemporal | StoreKind::CacheLineZero))
        })
    };
    let first = |operation| {
        // Eighths of octaves, as the library decides.
        let sizes = (16..40).flat_map(|octave| (8..16).map(move |eighth| eighth << (octave - 3)));
        sizes.into_iter().find(|size| around(operation, size))
    };
    [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero]
        .into_iter()
        .filter_map(first)
        .min()
}

fn text_of(record: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(record)? + "\n")
}

/// What the runs of the whole program have shown.
struct Proof {
    table: Table,
    outcome: u8,
    record: Value,
}

/// One run of the proof.
struct Ran {
    wall: f64,
    cpu: f64,
    printed: Vec<u8>,
    ended: ExitStatus,
}

fn timed(launch: &Launch<'_>, on: On) -> anyhow::Result<Ran> {
    let mut command = launch.command(on);
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let (began, used) = (Instant::now(), children::cpu_seconds());
    let output = command.output().with_context(|| launch.program.display().to_string())?;
    let wall = began.elapsed().as_secs_f64();
    // One that stays on is not counted; the run is over for the clock on the wall anyway.
    children::reap_orphans(ENDING);
    let cpu = children::cpu_seconds() - used;
    Ok(Ran { wall, cpu, printed: output.stdout, ended: output.status })
}

/// What the runs of a proof took and printed, on each of [`On::PROOF`].
#[derive(Default)]
struct Runs {
    wall: [Vec<f64>; 3],
    cpu: [Vec<f64>; 3],
    printed: [Vec<Vec<u8>>; 3],
}

/// The whole program, in turns: its time on libc, on the profile alone and on what was learned, and
/// whether it printed the same. None where the user ended it.
fn prove(
    launch: &Launch<'_>,
    rounds: usize,
    interrupted: &AtomicBool,
) -> anyhow::Result<Option<Proof>> {
    children::adopt_orphans();
    let mut runs = Runs::default();
    let (mut began, mut said) = (Instant::now(), Instant::now());
    // The first round brings files and pages to where the others find them, and is not counted.
    let orders = std::iter::once(vec![0, 1, 2]).chain(turns::orders(3, rounds, SEED));
    for (round, order) in orders.enumerate() {
        for at in order {
            let ran = timed(launch, On::PROOF[at])?;
            if interrupted.load(Ordering::Relaxed) {
                anstream::eprintln!("--prove: interrupted in round {round} of {rounds}: no proof");
                return Ok(None);
            }
            if !ran.ended.success() {
                bail!("--prove: {}: ended with {}", On::PROOF[at].name(), ran.ended);
            }
            if round > 0 {
                runs.wall[at].push(ran.wall);
                runs.cpu[at].push(ran.cpu);
            }
            runs.printed[at].push(ran.printed);
        }
        match round {
            0 => began = Instant::now(),
            _ if said.elapsed() >= SAID_EVERY => {
                let left = began.elapsed().as_secs_f64() / round as f64 * (rounds - round) as f64;
                anstream::eprintln!("--prove: round {round} of {rounds}, some {left:.0} s left");
                said = Instant::now();
            }
            _ => {}
        }
    }
    Ok(Some(judge(&runs)))
}

/// The proof's table and exit status.
fn judge(Runs { wall: seconds, cpu, printed }: &Runs) -> Proof {
    let mut table = Table::new(
        "The whole program, in turns",
        &["on", ">median", ">speed against libc", "verdict", ">CPU, s", ">CPU over libc's"],
    );
    let mut outcome = status::OK;
    let (mut speeds, mut cpus) = (json!({}), json!({}));
    for (at, on) in On::PROOF.into_iter().enumerate() {
        let mut row = vec![on.name().to_owned(), time(median(&seconds[at]) * 1e9)];
        if at > 0 {
            let ratio = PairedRatio::in_turns(&seconds[at], &seconds[0]);
            let bare = |ratio: f64| gain(ratio).trim_end_matches(" %").to_owned();
            row.push(format!(
                "{} ({} .. {})",
                gain(ratio.median),
                bare(ratio.high),
                bare(ratio.low)
            ));
            // Its speed: libc's time over its own.
            let speed = [ratio.median, ratio.high, ratio.low].map(|ratio| 1.0 / ratio);
            speeds[on.name()] = json!({ "median": speed[0], "low": speed[1], "high": speed[2] });
            let verdict = ratio.verdict(MARGIN);
            row.push(verdict.name().to_owned());
            let used = PairedRatio::in_turns(&cpu[at], &cpu[0]);
            row.push(format!("{:.3}", median(&cpu[at])));
            row.push(format!("{:.3} ({:.3} .. {:.3})", used.median, used.low, used.high));
            cpus[on.name()] = json!({ "median": used.median, "low": used.low, "high": used.high });
            if on == On::Learned {
                table.remarks.push(format!(
                    "learned against libc: {:.3}x of the speed ({:.3} .. {:.3}) and {:.3}x of the CPU \
                     time ({:.3} .. {:.3}), {} rounds: {}",
                    speed[0],
                    speed[1],
                    speed[2],
                    used.median,
                    used.low,
                    used.high,
                    ratio.rounds,
                    match verdict {
                        Verdict::Faster => "faster",
                        Verdict::Slower => "SLOWER: `cachewise forget` it",
                        Verdict::CannotTell => "no difference to be told: nothing to gain",
                    }
                ));
                if verdict == Verdict::Slower {
                    outcome = status::REGRESSION;
                }
            }
        }
        if at == 0 {
            row.extend([String::new(), String::new(), format!("{:.3}", median(&cpu[0]))]);
        }
        table.push(row);
    }
    let reference = &printed[0][0];
    let repeats = printed[0].iter().all(|out| out == reference);
    let same = printed.iter().flatten().all(|out| out == reference);
    let told = match (repeats, same) {
        (_, true) => "the same in every run",
        (false, _) => "differs from run to run without the library; not compared",
        (true, false) => "OTHER with the library than without",
    };
    table.remarks.push(format!("output: {told}"));
    if repeats && !same {
        outcome = status::WRONG_BYTES;
    }
    let by_name = |[libc, profile, learned]: &[Vec<f64>; 3]| json!({ "libc": libc, "profile only": profile, "learned": learned });
    let record = json!({
        "rounds": seconds[0].len(),
        "order_seed": SEED,
        "seconds": by_name(seconds),
        "speed_against_libc": speeds,
        "cpu_seconds": by_name(cpu),
        "cpu_over_libc": cpus,
        "output": told,
        "same_output": same,
        "comparable": repeats,
    });
    Proof { table, outcome, record }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(learned: f64, libc: [&str; 2], with: &str) -> Runs {
        let times = |seconds: f64| (0..8).map(|i| seconds + f64::from(i) * 1e-4).collect();
        let bytes = |text: &str| text.as_bytes().to_vec();
        Runs {
            wall: [times(1.0), times(1.0), times(learned)],
            cpu: [times(2.0), times(2.0), times(1.0)],
            printed: [libc.map(bytes).to_vec(), vec![bytes(with); 2], vec![bytes(with); 2]],
        }
    }

    #[test]
    fn a_proof_says_slower_same_and_wrong() {
        let Proof { table, outcome, .. } = judge(&runs(0.9, ["a", "a"], "a"));
        assert_eq!(outcome, status::OK);
        assert!(table.remarks[0].ends_with("faster"), "{:?}", table.remarks);
        assert_eq!(table.remarks[1], "output: the same in every run");
        let Proof { table, outcome, .. } = judge(&runs(1.1, ["a", "b"], "c"));
        assert_eq!(outcome, status::REGRESSION);
        assert!(table.remarks[1].contains("not compared"), "{:?}", table.remarks);
        let Proof { table, outcome, .. } = judge(&runs(1.0, ["a", "a"], "c"));
        assert_eq!(outcome, status::WRONG_BYTES);
        assert!(table.remarks[0].contains("nothing to gain"), "{:?}", table.remarks);
    }

    #[test]
    fn the_record_has_the_seconds_the_speed_and_the_cpu() {
        let even = Runs {
            wall: [vec![1.0; 8], vec![1.0; 8], vec![0.8; 8]],
            cpu: [vec![2.0; 8], vec![2.0; 8], vec![1.0; 8]],
            ..runs(1.0, ["a", "a"], "a")
        };
        let Proof { record, .. } = judge(&even);
        assert_eq!(record["speed_against_libc"]["learned"]["median"], 1.25);
        assert_eq!(record["seconds"]["learned"][7], 0.8);
        assert_eq!(record["cpu_over_libc"]["learned"]["high"], 0.5);
        assert_eq!(record["cpu_seconds"]["libc"][7], 2.0);
        assert_eq!(record["rounds"], 8);
        assert_eq!((&record["same_output"], &record["comparable"]), (&json!(true), &json!(true)));
    }
}
