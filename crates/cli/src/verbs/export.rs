//! `cachewise export`: the decisions in other forms.

use crate::args::{Export, ExportForm};
use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context;
use cachewise::profile::{Decision, MAX_SIZE, Profile, fnv1a64};
use cachewise_kernels::Operation;
use cachewise_lab::helper::{Helper, Request};
use cachewise_lab::recorder::Progress;
use cachewise_lab::tunables;
use cachewise_measure::record::names::TUNED_LIBC;
use cachewise_measure::{
    CellKey, Clock, Header, Machine, NoiseSnapshot, PairedRatio, Row, State, Writer, record,
};
use cachewise_report::advice;
use cachewise_report::closing::{Answer, Closing, Trust};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Prints the form asked for.
pub fn run(args: &Export) -> anyhow::Result<u8> {
    let profile = profile(args)?;
    match args.form {
        ExportForm::Profile => output::print(&profile.to_text())?,
        ExportForm::Json => output::print(&json(&profile))?,
        ExportForm::C => output::print(&header(&profile))?,
        ExportForm::Glibc => return glibc(args, &profile),
    }
    Ok(status::OK)
}

/// The profile named, or the one in force.
fn profile(args: &Export) -> anyhow::Result<Profile> {
    let path = args.profile.as_deref().or_else(|| super::profile_in_force()).context(
        "there is no profile for this CPU to export; `cachewise tune` makes one, --profile names one",
    )?;
    Ok(Profile::read(path)?)
}

fn json(profile: &Profile) -> String {
    let decision = |d: &Decision| {
        serde_json::json!({
            "operation": d.operation.name(),
            "reuse": d.reuse.name(),
            "from": d.from,
            "to": if d.to == MAX_SIZE { None } else { Some(d.to) },
            "kernel": d.kernel,
        })
    };
    let decisions: Vec<_> = profile.decisions.iter().map(decision).collect();
    let signature = &profile.cpu.signature;
    let value = serde_json::json!({
        "cpu": {
            "vendor": signature.vendor.as_str(),
            "family": signature.family,
            "model": signature.model,
            "stepping": signature.stepping,
            "name": profile.cpu.name.as_str(),
        },
        "caches": {
            "l1d": profile.caches.l1d,
            "l2": profile.caches.l2,
            "llc": profile.caches.llc,
        },
        "record": profile.record.as_ref().map(|record| record.name.clone()),
        "written": profile.written,
        "decisions": decisions,
        "parallel": profile.parallel.iter().map(|line| serde_json::json!({
            "operation": line.operation.name(),
            "supply": line.supply.name(),
            "threads": line.threads,
            "from": line.from,
        })).collect::<Vec<_>>(),
        "notes": profile.notes,
    });
    format!("{value:#}\n")
}

/// A C header: the ranges as an array, for programs that bring dispatch of their own.
fn header(profile: &Profile) -> String {
    let mut text = format!(
        "/* Decisions of `cachewise tune` for {} ({}).\n   One entry per operation, hint and range of sizes; `to` is inclusive. */\n\
         #ifndef CACHEWISE_DECISIONS_H\n#define CACHEWISE_DECISIONS_H\n#include <stdint.h>\n\n\
         struct cachewise_decision {{\n\tconst char *operation, *reuse;\n\tuint64_t from, to;\n\tconst char *kernel;\n}};\n\n\
         static const struct cachewise_decision cachewise_decisions[] = {{\n",
        profile.cpu.name.as_str(),
        profile.written
    );
    for d in &profile.decisions {
        let to = if d.to == MAX_SIZE { "UINT64_MAX".to_owned() } else { format!("{}u", d.to) };
        let (operation, reuse, from, kernel) =
            (d.operation.name(), d.reuse.name(), d.from, &d.kernel);
        text += &format!("\t{{ \"{operation}\", \"{reuse}\", {from}u, {to}, \"{kernel}\" }},\n");
    }
    text.push_str("};\n\n#endif\n");
    text
}

/// Sizes at which the setting is tried.
const TRIED: [usize; 8] =
    [1 << 10, 3 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 24 << 20, 64 << 20];

/// Pairs of fresh processes: with fewer than six there is no interval.
const PAIRS: usize = 7;

/// The name in the record of what was tried.
const EXPERIMENT: &str = "export-glibc";

/// The value of `GLIBC_TUNABLES` for a profile.
pub(super) fn tunables_of(profile: &Profile) -> String {
    tunables::line(&profile.decisions)
}

/// The setting where it was shown to pay, alone on stdout so that a shell can take it; what was seen on
/// stderr, and in a record beside the profile, from which `doctor` answers.
fn glibc(args: &Export, profile: &Profile) -> anyhow::Result<u8> {
    let setting = tunables_of(profile);
    if args.untried {
        output::print(&format!("GLIBC_TUNABLES={setting}\n"))?;
        return Ok(status::OK);
    }
    let operations = [Operation::Copy, Operation::Fill];
    let processes = PAIRS * operations.len() * 2;
    output::tell(&format!(
        "trying GLIBC_TUNABLES={setting} in {processes} fresh processes, with it and without in \
         turns; --untried prints it at once"
    ));
    let machine = Machine::describe();
    let before = NoiseSnapshot::take();
    let mut bar = Bar::new()?;
    bar.begin("trying the setting", processes as f64);
    let mut rows = Vec::new();
    for operation in operations {
        let mut times = [const { BTreeMap::<usize, Vec<f64>>::new() }; 2];
        for pair in 0..PAIRS {
            // In turns, and in turn who goes first.
            for with in [pair % 2, 1 - pair % 2] {
                let of_child = child(operation, (with == 1).then_some(setting.as_str()))?;
                if bar.stopped() {
                    return Ok(status::INTERRUPTED);
                }
                for (size, time) in of_child {
                    times[with].entry(size).or_default().push(time);
                }
                bar.advance(operation.name(), 1.0);
            }
        }
        let [without, with] = times;
        for (size, without) in without {
            let Some(with) = with.get(&size) else { continue };
            let ratio = PairedRatio::in_turns(with, &without);
            rows.push(row(operation, size, "libc", without));
            rows.push(row(operation, size, TUNED_LIBC, with.clone()).with_ratio(ratio));
        }
    }
    bar.clear();
    let warnings = cachewise_measure::warnings(&before, &NoiseSnapshot::take(), &machine);
    output::tell(&advice::tried(&rows).terminal(None));
    let (answer, because) = advice::of_setting(&rows);
    let next = match answer {
        Answer::Yes => "start programs with this setting; `cachewise doctor` remembers it",
        _ => "leave libc as it is: the setting is not printed; `cachewise doctor` says what else",
    };
    let trust = Trust::of(&rows, &warnings, false);
    output::tell(&Closing { answer, because, trust, next: next.to_owned() }.to_string());
    if let Some(path) = args.profile.as_deref().or_else(|| super::profile_in_force())
        && let Err(error) = keep(path, profile, machine, &setting, &rows)
    {
        output::tell(&format!("note: not kept for `doctor`: {error:#}"));
    }
    if answer != Answer::Yes {
        return Ok(status::INCONCLUSIVE);
    }
    output::print(&format!("GLIBC_TUNABLES={setting}\n"))?;
    Ok(status::OK)
}

fn row(operation: Operation, size: usize, who: &str, times: Vec<f64>) -> Row {
    Row::new(EXPERIMENT, CellKey::new(operation.name(), size, State::Warm), who, "libc", times)
}

/// Where the trial of a profile's setting is kept.
fn beside(profile: &Path) -> PathBuf {
    profile.with_extension("glibc.jsonl")
}

fn keep(
    path: &Path,
    profile: &Profile,
    machine: Machine,
    setting: &str,
    rows: &[Row],
) -> anyhow::Result<()> {
    let mut writer = Writer::create(&beside(path))?;
    let clock = Clock::calibrate().facts();
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, machine, clock, 0);
    header.settings = BTreeMap::from([
        ("experiment".to_owned(), EXPERIMENT.into()),
        ("tunables".to_owned(), setting.into()),
        ("profile".to_owned(), checksum(profile).into()),
    ]);
    writer.header(&header)?;
    rows.iter().try_for_each(|row| writer.row(row))?;
    writer.finish(false)?;
    Ok(())
}

fn checksum(profile: &Profile) -> String {
    format!("{:016x}", fnv1a64(profile.to_text().as_bytes()))
}

/// The setting that was tried for this profile, and what that has shown; `None` where it was not tried.
pub(super) fn tried(path: &Path, profile: &Profile) -> Option<(String, Answer, String)> {
    let record = record::read(&beside(path)).ok()?;
    let setting = |name: &str| record.header.settings.get(name)?.as_str().map(str::to_owned);
    if setting("profile")? != checksum(profile) {
        return None;
    }
    let (answer, because) = advice::of_setting(&record.rows);
    Some((format!("GLIBC_TUNABLES={}", setting("tunables")?), answer, because))
}

/// Times libc in a fresh process.
fn child(operation: Operation, tunables: Option<&str>) -> anyhow::Result<BTreeMap<usize, f64>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    // glibc reads its tunables when a process starts; without any, whatever this one has must go.
    let mut helper = Helper::start(&program, Some(tunables.unwrap_or_default()))
        .context("a fresh process could not be started")?;
    let request = Request::Sizes { operation: operation.name().to_owned(), sizes: TRIED.to_vec() };
    let times: Vec<f64> = helper.ask(&request).context("timing libc in a fresh process")?;
    Ok(TRIED.into_iter().zip(times).collect())
}
