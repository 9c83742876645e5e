//! `cachewise learn`: a program is run, and tells by its own time which way each of its call sites
//! should go.

use super::{exec, learned};
use crate::args::Learn;
use crate::{output, status};
use anyhow::{Context as _, bail};
use cachewise::Reuse;
use cachewise::profile::Profile;
use cachewise_kernels::{Operation, StoreKind};
use cachewise_measure::children;
use cachewise_measure::stats::median;
use cachewise_measure::whole::{self, Ended, Times, Verdict};
use cachewise_report::closing::{Answer, Closing, Trust};
use cachewise_report::html::shell_words;
use cachewise_report::units::{bytes, time};
use cachewise_report::{Table, programs};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a program is run.
struct Launch<'a> {
    program: PathBuf,
    command: &'a [OsString],
    preload: OsString,
    profile: Option<PathBuf>,
    section: PathBuf,
}

/// On what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Libc,
    Profile,
    Learned,
    Trial,
}

/// What a proof compares, by name.
const PROOF: [(On, &str); 3] =
    [(On::Libc, "libc"), (On::Profile, "profile only"), (On::Learned, "learned")];

impl Launch<'_> {
    fn command(&self, on: On) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(&self.command[0]).args(&self.command[1..]);
        command.env_remove("CACHEWISE_LEARN").env_remove("CACHEWISE_PROGRAM");
        if on != On::Libc {
            command.env("LD_PRELOAD", &self.preload);
            command.envs(self.profile.as_ref().map(|profile| ("CACHEWISE_PROFILE", profile)));
        }
        if matches!(on, On::Learned | On::Trial) {
            command.env("CACHEWISE_PROGRAM", &self.section);
        }
        if on == On::Trial {
            command.env("CACHEWISE_LEARN", "trial");
        }
        command
    }
}

/// Learns, shows, and proves where that is asked for.
pub fn run(args: &Learn) -> anyhow::Result<u8> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        bail!("call sites are learned on x86-64 Linux only");
    }
    let files = [args.html.as_deref(), args.json.as_deref()];
    output::check_all(&files)?;
    let in_place = files.into_iter().flatten().any(output::is_stdout);
    let profile = args.profile.as_deref().map(learned::canonical).transpose()?;
    let library = exec::library(exec::LIBRARY, "--library", args.library.as_deref())?;
    let Some(program) = exec::program(&args.program[0]) else { return Ok(exec::NOT_FOUND) };
    if let Some(why) = exec::out_of_reach(&program) {
        bail!("{}: {why}: there is nothing to learn from", program.display());
    }
    let own = args.name.clone().unwrap_or_else(|| learned::name_of(&program));
    let section = learned::place(&own, args.profile.as_deref())?;
    if let Some(directory) = section.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    // What is no section is told before anything is run for it; one that is damaged goes.
    if section.exists()
        && let Err(why) = learned::read(&own, &section)
        && !learned::is_ours(&section)
    {
        return Err(why);
    }
    // Before the program runs for hours.
    let scratch =
        args.prove.then(|| output::temporary("--prove", tempfile::tempdir)).transpose()?;
    let launch = Launch {
        program,
        command: &args.program,
        preload: exec::preload(&library)?,
        profile,
        section,
    };
    let interrupted = exec::leave_signals_to_the_program()?;
    let mut ended = ExitStatus::default();
    let mut runs = 0;
    while runs < args.runs && ended.success() && !interrupted.load(Ordering::Relaxed) {
        ended = match exec::ended(&mut launch.command(On::Trial))? {
            Ok(ended) => ended,
            Err(error) => return Ok(exec::not_started(&launch.program, &error)),
        };
        runs += 1;
    }
    let write_json = |record: &Value| {
        let Some(file) = &args.json else { return Ok(()) };
        output::write(file, (serde_json::to_string_pretty(record)? + "\n").as_bytes())
    };
    if !launch.section.exists() {
        write_json(&json!({ "program": own, "sites": [], "proof": null }))?;
        let because = why_nothing(&launch, ended)?;
        let told = format!("{own}: {because}: nothing learned");
        let next = "nothing: there is nothing to learn".to_owned();
        let closing = Closing { answer: Answer::No, because, trust: Trust::default(), next };
        if !in_place {
            output::print(&format!("{told}\n\n{closing}"))?;
        }
        return Ok(exec::pass_on(ended));
    }
    let mut found = learned::read(&own, &launch.section)?;
    let mut record = learned::as_json(&found);
    // Of this time; a section may hold those of earlier times too.
    record["learning_runs"] = runs.into();
    let proof = match scratch.filter(|_| ended.success()) {
        Some(scratch) => prove(&launch, scratch.path(), args.rounds as usize, &interrupted)?,
        None => None,
    };
    let outcome = proof.as_ref().map(|proof| proof.outcome);
    let mut trust = Trust::default();
    if outcome == Some(status::WRONG_BYTES) {
        trust.doubt("the output differed");
    } else if !ended.success() {
        trust.doubt("the program did not end with status 0");
    }
    let (text, closing) = match proof {
        Some(Proof { table, outcome, record: proved, answer, because }) => {
            record["proof"] = proved;
            let text = format!("\n{}", table.terminal(output::width()));
            found.remarks.extend(table.remarks);
            (text, Closing { answer, because, trust, next: next(answer, outcome, &own) })
        }
        None => {
            let words = args.program.iter().map(|word| word.to_string_lossy().into_owned());
            let words = shell_words(&words.collect::<Vec<_>>());
            let because = "whole runs were not compared".to_owned();
            let next = format!("`cachewise learn --prove -- {words}` compares them");
            (String::new(), Closing { answer: Answer::CannotTell, because, trust, next })
        }
    };
    let sites = programs::sites(&found).terminal(output::width());
    if !in_place {
        output::print(&format!("{sites}{text}\n{closing}"))?;
    }
    if let Some(file) = &args.html {
        output::write(file, programs::page(&found)?.as_bytes())?;
    }
    write_json(&record)?;
    output::tell(&format!("learned of {own}: {}", launch.section.display()));
    Ok(match outcome {
        _ if interrupted.load(Ordering::Relaxed) => status::INTERRUPTED,
        Some(outcome) => outcome,
        None => exec::pass_on(ended),
    })
}

/// Why nothing was saved: the one cause, the first of these that is there.
fn why_nothing(launch: &Launch<'_>, ended: ExitStatus) -> anyhow::Result<String> {
    if let Some(signal) = ended.signal() {
        return Ok(format!("ended by signal {signal}, before it could save anything"));
    }
    if let Some(profile) = &launch.profile {
        cachewise::load(&Profile::read(profile)?)?;
    }
    Ok(match two_ways_from() {
        None => "the profile has no non-temporal stores, so there is nothing to try".to_owned(),
        Some(least) => format!(
            "no copy or fill of {} or more went through the dynamic linker, or it ended by _exit",
            bytes(least)
        ),
    })
}

/// The smallest size with two ways: for some hint the profile in force has non-temporal stores.
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
    let operations = [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero];
    operations.into_iter().filter_map(first).min()
}

/// What to do after a proof.
fn next(answer: Answer, outcome: u8, own: &str) -> String {
    match (answer, outcome) {
        (_, status::WRONG_BYTES | status::REGRESSION) => {
            format!("`cachewise forget {own}`, and report what happened")
        }
        (Answer::Yes, _) => "`cachewise exec -- PROGRAM` follows what was learned".to_owned(),
        (Answer::No, _) => format!("`cachewise forget {own}`: it gains nothing worth keeping"),
        (Answer::CannotTell, _) => {
            "`--prove --rounds N` with more rounds, on a quiet machine".to_owned()
        }
    }
}

/// What the runs of the whole program have shown.
struct Proof {
    table: Table,
    outcome: u8,
    record: Value,
    answer: Answer,
    because: String,
}

/// The whole program, in turns: its time on libc, on the profile alone and on what was learned, and
/// whether it printed the same. None where the user ended it.
fn prove(
    launch: &Launch<'_>,
    scratch: &Path,
    rounds: usize,
    interrupted: &AtomicBool,
) -> anyhow::Result<Option<Proof>> {
    children::adopt_orphans();
    let mut printed: [Vec<Vec<u8>>; 3] = Default::default();
    let mut say = |round: usize, left: f64| {
        output::tell(&format!("--prove: round {round} of {rounds}, some {left:.0} s left"));
    };
    let times = whole::in_turns(3, rounds, &mut say, &mut |at| {
        let mut command = launch.command(PROOF[at].0);
        command.stdin(Stdio::null());
        let run = match whole::run(&mut command, scratch, Duration::MAX, interrupted)? {
            Ended::Run(run) => run,
            Ended::TooLong | Ended::Stopped => return Ok(None),
        };
        if !run.status.success() {
            bail!("--prove: {}: ended with {}: {}", PROOF[at].1, run.status, run.told);
        }
        printed[at].push(run.output);
        Ok(Some((run.seconds, run.cpu)))
    })?;
    if interrupted.load(Ordering::Relaxed) {
        let round = times.rounds();
        output::tell(&format!("--prove: interrupted in round {round} of {rounds}: no proof"));
        return Ok(None);
    }
    Ok(Some(verdict_of(&times, &printed)))
}

/// What they took and printed, on each of [`PROOF`], as a table and an exit status.
fn verdict_of(times: &Times, printed: &[Vec<Vec<u8>>; 3]) -> Proof {
    let mut table = Table::new(
        "The whole program, in turns",
        &["on", ">median", ">speed over libc's", "verdict", ">CPU, s", ">CPU over libc's"],
    );
    let (mut speeds, mut cpus) = (json!({}), json!({}));
    for (at, (_, on)) in PROOF.into_iter().enumerate() {
        let mut row = vec![on.to_owned(), time(median(&times.wall[at]) * 1e9)];
        let cpu = format!("{:.3}", median(&times.cpu[at]));
        if at == 0 {
            row.extend([String::new(), String::new(), cpu]);
        } else {
            let (speed, used) = (times.speed(at, 0), times.cpu(at, 0));
            let verdict = Verdict::of(&speed).name().to_owned();
            row.extend([speed.to_string(), verdict, cpu, used.to_string()]);
            speeds[on] = json!(speed);
            cpus[on] = json!(used);
        }
        table.push(row);
    }
    let (speed, used) = (times.speed(2, 0), times.cpu(2, 0));
    let verdict = Verdict::of(&speed);
    let answer = match verdict {
        Verdict::Faster => Answer::Yes,
        Verdict::Slower | Verdict::Same => Answer::No,
        // Not shown to gain anything; the interval is too wide to say that there is nothing.
        Verdict::NotSlower | Verdict::CannotTell => Answer::CannotTell,
    };
    let because = format!(
        "learned over libc: speed {speed}, CPU time {used}, {} rounds: {}",
        times.rounds(),
        verdict.name()
    );
    table.remarks.push(because.clone());
    let reference = &printed[0][0];
    let repeats = printed[0].iter().all(|out| out == reference);
    let same = printed.iter().flatten().all(|out| out == reference);
    let told = match (repeats, same) {
        (_, true) => "the same in every run",
        (false, _) => "differs from run to run without the library; not compared",
        (true, false) => "OTHER with the library than without",
    };
    table.remarks.push(format!("output: {told}"));
    let outcome = match verdict {
        _ if repeats && !same => status::WRONG_BYTES,
        Verdict::Slower => status::REGRESSION,
        _ => status::OK,
    };
    let by_name = |all: &[Vec<f64>]| -> Value {
        PROOF.iter().zip(all).map(|((_, on), all)| ((*on).to_owned(), json!(all))).collect()
    };
    let record = json!({
        "rounds": times.rounds(),
        "order_seed": whole::SEED,
        "seconds": by_name(&times.wall),
        "speed_against_libc": speeds,
        "verdict": verdict.name(),
        "cpu_seconds": by_name(&times.cpu),
        "cpu_over_libc": cpus,
        "output": told,
        "same_output": same,
        "comparable": repeats,
    });
    Proof { table, outcome, record, answer, because }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(learned: &[f64], libc: [&str; 2], with: &str) -> Proof {
        let near = |seconds: f64| (0..8).map(|i| seconds + f64::from(i) * 1e-4).collect::<Vec<_>>();
        let bytes = |text: &str| text.as_bytes().to_vec();
        let learned = learned.iter().copied().cycle().take(8).collect();
        let times = Times {
            wall: vec![near(1.0), near(1.0), learned],
            cpu: vec![vec![2.0; 8], vec![2.0; 8], vec![1.0; 8]],
        };
        verdict_of(&times, &[libc.map(bytes).to_vec(), vec![bytes(with); 2], vec![bytes(with); 2]])
    }

    #[test]
    fn a_proof_says_faster_slower_same_wrong_and_cannot_tell() {
        let wide = [0.8, 1.3, 1.25, 0.9];
        for (learned, libc, with, outcome, answer, says) in [
            (&[0.9][..], ["a", "a"], "a", status::OK, Answer::Yes, "faster"),
            (&[1.1], ["a", "b"], "c", status::REGRESSION, Answer::No, "SLOWER"),
            (&[1.0], ["a", "a"], "c", status::WRONG_BYTES, Answer::No, "same"),
            // A wide interval around 1 is not "nothing to gain".
            (&wide, ["a", "a"], "a", status::OK, Answer::CannotTell, "cannot tell"),
        ] {
            let found = proof(learned, libc, with);
            assert_eq!((found.outcome, found.answer), (outcome, answer), "{learned:?}");
            assert!(found.because.ends_with(says), "{}", found.because);
        }
        let differs = proof(&[1.1], ["a", "b"], "c");
        assert!(differs.table.remarks[1].contains("not compared"), "{:?}", differs.table.remarks);
        assert!(next(Answer::CannotTell, status::OK, "p").contains("more rounds"));
    }

    #[test]
    fn the_record_has_the_seconds_the_speed_and_the_cpu() {
        let Proof { record, .. } = proof(&[0.8], ["a", "a"], "a");
        let speed = &record["speed_against_libc"]["learned"]["median"];
        assert!(speed.as_f64() > Some(1.24), "{record}");
        assert_eq!(record["seconds"]["learned"][7], 0.8);
        assert_eq!(record["cpu_over_libc"]["learned"]["high"], 0.5);
        assert_eq!(record["cpu_seconds"]["libc"][7], 2.0);
        assert_eq!((&record["rounds"], &record["verdict"]), (&json!(8), &json!("faster")));
        assert_eq!((&record["same_output"], &record["comparable"]), (&json!(true), &json!(true)));
    }
}
