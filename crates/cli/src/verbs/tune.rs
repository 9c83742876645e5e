//! `cachewise tune`: measure, decide, write, check, say.

use crate::args::Tune;
use crate::progress::Bar;
use crate::verbs::drawn_seed;
use crate::verbs::redraw;
use crate::verbs::verify;
use crate::{output, status};
use anyhow::Context;
use cachewise::Reuse;
use cachewise::profile::{self, Decision, MAX_SIZE, Parallel, Profile, fnv1a64};
use cachewise_kernels::Operation;
use cachewise_lab::LabError;
use cachewise_lab::bench::Bench;
use cachewise_lab::tune::{self, Decided, Effort, Evidence, Regret, Stage, Tuner, gains};
use cachewise_measure::{Machine, Row, Writer, stats};
use cachewise_report::Table;
use cachewise_report::tuning::{self, RangeLine};
use cachewise_report::units::{bytes, gain};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs it.
pub fn run(args: &Tune) -> anyhow::Result<u8> {
    if args.verify_only {
        return verify::tuning(args);
    }
    // Refused before files are looked at: nothing would be written to them.
    cachewise_lab::bench::refuse_emulation(&Machine::describe())?;
    let effort = match (args.quick, args.thorough) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Thorough,
        _ => Effort::Standard,
    };
    let profile_path = match &args.output {
        Some(path) => path.clone(),
        None => default_path(args.system)?,
    };
    let record_path = args.record.clone().unwrap_or_else(|| beside(&profile_path));
    output::check_writable(&record_path)?;
    output::check_all(&[args.html.as_deref()])?;
    if !args.grid_only {
        output::check_writable(&profile_path)?;
    }

    let begun = Instant::now();
    let mut bar = Bar::new()?;
    let seed = args.seed.unwrap_or_else(drawn_seed);
    let mut bench = Bench::new(seed, args.memory)?;
    if !args.grid_only {
        anstream::eprintln!("{}", bench.machine.summary_line());
        for warning in bench.warnings() {
            anstream::eprintln!(
                "warning: {} ({}); remedy: {}",
                warning.cause,
                warning.figure,
                warning.remedy
            );
        }
    }
    let mut writer = Writer::create(&record_path)?;
    let mut header = bench.header(BTreeMap::from([
        ("experiment".to_owned(), tune::EXPERIMENT.into()),
        ("effort".to_owned(), effort.name().into()),
        ("launches".to_owned(), effort.launches().into()),
    ]));
    header.figures = tune::figures();
    writer.header(&header)?;

    let mut rows: Vec<Row> = Vec::new();
    let measured = measure(args, effort, &mut bench, &mut bar, &mut writer, &mut rows);
    bar.clear();
    let measured = match measured {
        Ok(measured) => measured,
        Err(error) => {
            if !matches!(error.downcast_ref::<LabError>(), Some(LabError::Record(_))) {
                writer.finish(true)?;
            }
            return Err(error);
        }
    };
    for warning in bench.warnings() {
        writer.note(&format!("{}: {} ({})", warning.id, warning.cause, warning.figure))?;
    }
    let interrupted = measured.stage == Stage::Interrupted;
    for text in measured.decided.iter().flat_map(|decided| verdicts(&bench.machine, decided, &rows))
    {
        writer.verdict(&text);
    }
    let end = writer.finish(interrupted)?;
    if args.grid_only {
        return Ok(if interrupted { status::INTERRUPTED } else { status::OK });
    }
    let Some(decided) = measured.decided else {
        anstream::eprintln!(
            "cachewise: interrupted before the decisions; {} finished rows kept in {}, no profile written",
            rows.len(),
            record_path.display()
        );
        return Ok(status::INTERRUPTED);
    };
    let mut profile = build(&bench.machine, &decided, &record_path, effort)?;
    profile.parallel = tune::paying(&of_threads(&rows));
    profile.write_atomic(&profile_path)?;
    let seconds = begun.elapsed().as_secs_f64();
    output::print(&summary(&Summary {
        machine: &bench.machine,
        rows: &rows,
        decided: &decided,
        regrets: &measured.regrets,
        profile_path: &profile_path,
        record_path: &record_path,
        seconds,
        peak: end.peak_bytes,
        launches: effort.launches(),
    }))?;
    if args.html.is_some() || args.plot {
        let drawn = redraw::Loaded::read(&record_path)?;
        if args.plot {
            output::print(&redraw::plots(&drawn.record))?;
        }
        if let Some(path) = &args.html {
            output::write(path, redraw::page(&[drawn])?.as_bytes())?;
        }
    }
    if interrupted {
        anstream::eprintln!("cachewise: interrupted while checking; the profile is written");
        return Ok(status::INTERRUPTED);
    }
    Ok(status::OK)
}

/// What the stages brought.
struct Measured {
    decided: Option<Vec<Decided>>,
    regrets: Vec<Regret>,
    stage: Stage,
}

fn measure(
    args: &Tune,
    effort: Effort,
    bench: &mut Bench,
    bar: &mut Bar,
    writer: &mut Writer,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Measured> {
    let stopped = |decided, stage| Ok(Measured { decided, regrets: Vec::new(), stage });
    let mut sink = |row: &Row| -> Result<(), LabError> { Ok(writer.row(row)?) };
    let launches = if args.grid_only { 1 } else { effort.launches() };
    if launches > 1 {
        for launch in 1..=launches {
            let seed = bench.seed.wrapping_add(launch as u64);
            let Some(of_launch) = launch_grid(args, seed, launch, launches)? else {
                return stopped(None, Stage::Interrupted);
            };
            for row in &of_launch {
                sink(row)?;
            }
            rows.extend(of_launch);
        }
    }
    let mut tuner = Tuner { bench, effort, largest: args.largest, observer: bar, sink: &mut sink };
    if launches == 1 && tuner.grid(rows)? == Stage::Interrupted {
        return stopped(None, Stage::Interrupted);
    }
    if args.grid_only {
        return stopped(None, Stage::Done);
    }
    let evidence = Evidence::new(rows).on(&tuner.bench.machine.caches);
    let (decided, stage) = tuner.decisions(&evidence, rows)?;
    if stage == Stage::Interrupted {
        return stopped(None, stage);
    }
    let (regrets, stage) = tuner.regrets(&decided, rows)?;
    if stage == Stage::Interrupted {
        return stopped(Some(decided), stage);
    }
    // From here on this process's library follows the new profile.
    let machine = tuner.bench.machine.clone();
    let profile = profile_of(&machine, &decided, None, effort);
    cachewise::load(&profile).context("the profile just made is not accepted")?;
    let mut stage = tuner.library(rows)?;
    if stage == Stage::Done {
        stage = tuner.parallel(rows)?;
    }
    Ok(Measured { decided: Some(decided), regrets, stage })
}

/// The rows that compare numbers of threads.
fn of_threads(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| row.experiment == tune::PARALLEL).cloned().collect()
}

/// From what size on several threads pay, a line for each operation and supply.
fn thread_lines(rows: &[Row]) -> String {
    let mut text = String::new();
    for Parallel { operation, supply, threads, from } in tune::paying(&of_threads(rows)) {
        let from =
            from.map_or("at no size tried".to_owned(), |from| format!("from {} on", bytes(from)));
        text.push_str(&format!("  {:<8}{threads} {supply} threads pay {from}\n", operation.name()));
    }
    if text.is_empty() { text } else { format!("several threads for one call:\n{text}") }
}

/// Measures the grid in a fresh process. `None` when it was interrupted.
fn launch_grid(
    args: &Tune,
    seed: u64,
    launch: usize,
    launches: usize,
) -> anyhow::Result<Option<Vec<Row>>> {
    anstream::eprintln!("launch {launch} of {launches}");
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let record = directory.path().join("launch.jsonl");
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["tune", "--thorough", "--grid-only", "--seed", &seed.to_string()]);
    command.arg("--record").arg(&record);
    if let Some(memory) = args.memory {
        command.args(["--memory", &memory.to_string()]);
    }
    if let Some(largest) = args.largest {
        command.args(["--largest", &largest.to_string()]);
    }
    let exit = command.status().context("a fresh process could not be started")?;
    match exit.code() {
        Some(0) => Ok(Some(cachewise_measure::record::read(&record)?.rows)),
        Some(code) if code == i32::from(status::INTERRUPTED) => Ok(None),
        Some(code) if code == i32::from(status::WRONG_BYTES) => {
            Err(LabError::WrongBytes { what: "in a fresh process; see above".to_owned() }.into())
        }
        _ => Err(LabError::Child { what: format!("launch {launch} ended with {exit}") }.into()),
    }
}

fn default_path(system: bool) -> anyhow::Result<PathBuf> {
    let path = if system { profile::machine_path() } else { profile::user_path() };
    let path = path
        .context("no configuration directory: neither XDG_CONFIG_HOME nor HOME is set; name a file with --output")?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: directory not made", directory.display()))?;
    }
    Ok(path)
}

/// The record's place beside a profile.
pub fn beside(profile: &Path) -> PathBuf {
    profile.with_extension("record.jsonl")
}

fn build(
    machine: &Machine,
    decided: &[Decided],
    record: &Path,
    effort: Effort,
) -> anyhow::Result<Profile> {
    let checksum = fnv1a64(&std::fs::read(record).with_context(|| record.display().to_string())?);
    let name = record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(profile_of(machine, decided, Some(profile::Record { name, checksum }), effort))
}

fn profile_of(
    machine: &Machine,
    decided: &[Decided],
    record: Option<profile::Record>,
    effort: Effort,
) -> Profile {
    let started = cachewise_measure::Header::now(
        "",
        machine.clone(),
        cachewise_measure::Clock::calibrate().facts(),
        0,
    )
    .started;
    Profile {
        cpu: cachewise::cpu::Cpu::detect(),
        caches: cachewise::cpu::Caches::detect(),
        record,
        written: format!("{started} by cachewise {}", env!("CARGO_PKG_VERSION")),
        decisions: decided
            .iter()
            .map(|decision| Decision {
                operation: decision.operation,
                reuse: decision.reuse,
                from: decision.range.from as u64,
                to: decision.range.to.map_or(MAX_SIZE, |to| to as u64),
                kernel: decision.range.kernel.clone(),
                nearest: None,
            })
            .collect(),
        parallel: Vec::new(),
        notes: vec![
            format!("effort {}, {} {}", effort.name(), machine.libc.name, machine.libc.version),
            "soon = operation + reader; never = operation + bystander".to_owned(),
            "unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios".to_owned(),
        ],
    }
}

struct Summary<'s> {
    machine: &'s Machine,
    rows: &'s [Row],
    decided: &'s [Decided],
    regrets: &'s [Regret],
    profile_path: &'s Path,
    record_path: &'s Path,
    seconds: f64,
    peak: Option<u64>,
    launches: usize,
}

fn summary(s: &Summary<'_>) -> String {
    let reference = format!("{} {}", s.machine.libc.name, s.machine.libc.version);
    let mut text = format!("{}\n\n", verdict(s.machine, s.decided));
    text.push_str(&decisions(s.machine, s.decided, s.rows).terminal(output::width()));
    text.push_str(&library_lines(s.rows, &reference));
    text.push_str(&thread_lines(s.rows));
    text.push_str(&regret_lines(s.regrets));
    let grid: Vec<Row> =
        s.rows.iter().filter(|row| row.experiment == tune::EXPERIMENT).cloned().collect();
    if s.launches > 1
        && let Some((median, worst)) = Evidence::new(&grid).spread_between_launches()
    {
        text.push_str(&format!(
            "between launches the same kernel's ratio differed by {:.1} % (median), {:.0} % at worst\n",
            median * 100.0,
            worst * 100.0
        ));
    }
    let peak = s.peak.map_or(String::new(), |peak| format!(", {} at the peak", bytes(peak)));
    text.push_str(&format!(
        "\n{:.0} s{peak}\nprofile {}\nrecord  {}\n",
        s.seconds,
        s.profile_path.display(),
        s.record_path.display()
    ));
    text
}

/// The decisions with what each gains.
pub fn decisions(machine: &Machine, decided: &[Decided], rows: &[Row]) -> Table {
    let reference = format!("{} {}", machine.libc.name, machine.libc.version);
    let lines: Vec<RangeLine> = decided
        .iter()
        .map(|decision| RangeLine {
            operation: decision.operation.name().to_owned(),
            reuse: decision.reuse.name().to_owned(),
            from: decision.range.from as u64,
            to: decision.range.to.map(|to| to as u64),
            kernel: decision.range.kernel.clone(),
            operation_ratio: gains(rows, decision, "warm"),
            read_ratio: gains(rows, decision, "read"),
            beside_ratio: gains(rows, decision, "beside"),
        })
        .collect();
    tuning::ranges(&lines, &reference)
}

/// What a tuning amounts to: the finding, then how the library fares per operation.
pub fn verdicts(machine: &Machine, decided: &[Decided], rows: &[Row]) -> Vec<String> {
    let reference = format!("{} {}", machine.libc.name, machine.libc.version);
    let mut found = vec![verdict(machine, decided)];
    for line in library_lines(rows, &reference).lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((operation, rest)) = words.split_first() {
            found.push(format!(
                "{operation}: the library, following these decisions, against {reference}: {}",
                rest.join(" ")
            ));
        }
    }
    found
}

/// The finding in a sentence.
fn verdict(machine: &Machine, decided: &[Decided]) -> String {
    let libc = format!("{} {}", machine.libc.name, machine.libc.version);
    let threshold = machine
        .libc
        .tunables
        .iter()
        .find(|(name, _)| name.ends_with("x86_non_temporal_threshold"))
        .and_then(|(_, value)| parse_number(value));
    let ours = decided
        .iter()
        .filter(|d| d.operation == Operation::Copy && d.reuse == Reuse::Unknown)
        .find(|d| cachewise_kernels::find(&d.range.kernel).is_some_and(|k| k.is_non_temporal()))
        .map(|d| d.range.from as u64);
    let theirs = threshold.map(|threshold| {
        format!("{libc} copies through the cache up to {} here; ", bytes(threshold))
    });
    let theirs = theirs.unwrap_or_default();
    match ours {
        Some(size) => format!(
            "{theirs}measured: copying around the cache pays from {} on when nothing is known about reuse.",
            bytes(size)
        ),
        None => format!(
            "{theirs}measured: copying around the cache pays at no size tried when nothing is known about reuse."
        ),
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The library, dispatch included, against libc: geometric mean and worst size per operation.
fn library_lines(rows: &[Row], reference: &str) -> String {
    let mut text = String::new();
    for operation in profile::OPERATIONS {
        let ratios: Vec<(u64, f64)> = rows
            .iter()
            .filter(|row| row.experiment == tune::LIBRARY && row.candidate != row.reference)
            .filter(|row| row.cell.operation == operation.name())
            .filter_map(|row| row.ratio.map(|ratio| (row.cell.size, ratio.median)))
            .collect();
        let Some((size, worst)) = ratios.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        let values: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
        text.push_str(&format!(
            "  {:<8} {} in the geometric mean over {} sizes, {} at worst ({})\n",
            operation.name(),
            gain(stats::geometric_mean(&values)),
            values.len(),
            gain(worst),
            bytes(size)
        ));
    }
    if text.is_empty() {
        return text;
    }
    format!("The library, following these decisions, against {reference}, warm buffers:\n{text}")
}

/// How the decisions fared at other sizes.
fn regret_lines(regrets: &[Regret]) -> String {
    if regrets.is_empty() {
        return String::new();
    }
    let values: Vec<f64> = regrets.iter().map(|regret| regret.regret).collect();
    let mut worst: Vec<&Regret> = regrets.iter().collect();
    worst.sort_by(|a, b| b.regret.total_cmp(&a.regret));
    let mut text = format!(
        "Checked at {} cells of other sizes: regret {:.1} % in the median, {:.1} % at worst\n",
        regrets.len(),
        stats::median(&values) * 100.0,
        worst[0].regret * 100.0
    );
    for regret in worst.iter().take(3).filter(|regret| regret.regret > 0.05) {
        text.push_str(&format!(
            "  {} {} at {}: {} lost {:.0} % to {}\n",
            regret.operation,
            regret.reuse.name(),
            bytes(regret.size as u64),
            regret.chosen,
            regret.regret * 100.0,
            regret.best
        ));
    }
    text
}
