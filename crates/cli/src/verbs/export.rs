//! `cachewise export`: the decisions in other forms.

use crate::args::{Export, ExportForm};
use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context;
use cachewise::Source;
use cachewise::profile::{MAX_SIZE, Profile};
use cachewise_kernels::Operation;
use cachewise_lab::decide::Range;
use cachewise_lab::tunables;
use cachewise_lab::tune::Decided;
use cachewise_lab::watch::Observer;
use cachewise_measure::PairedRatio;
use cachewise_report::Table;
use cachewise_report::units::{bytes, gain};
use std::collections::BTreeMap;
use std::process::Command;

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
    if let Some(path) = &args.profile {
        return Ok(Profile::read(path)?);
    }
    match cachewise::profile_source() {
        Source::Environment(path) | Source::User(path) | Source::Machine(path) => {
            Ok(Profile::read(path.as_path())?)
        }
        _ => anyhow::bail!(
            "there is no profile for this CPU to export; `cachewise tune` makes one, --profile names one"
        ),
    }
}

fn json(profile: &Profile) -> String {
    let decisions: Vec<_> = profile
        .decisions
        .iter()
        .map(|d| {
            serde_json::json!({
                "operation": d.operation.name(),
                "reuse": d.reuse.name(),
                "from": d.from,
                "to": if d.to == MAX_SIZE { None } else { Some(d.to) },
                "kernel": d.kernel,
            })
        })
        .collect();
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
        text.push_str(&format!(
            "\t{{ \"{}\", \"{}\", {}u, {to}, \"{}\" }},\n",
            d.operation.name(),
            d.reuse.name(),
            d.from,
            d.kernel
        ));
    }
    text.push_str("};\n\n#endif\n");
    text
}

/// Sizes at which the setting is tried.
const TRIED: [usize; 8] =
    [1 << 10, 3 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 24 << 20, 64 << 20];

/// Pairs of child processes.
const PAIRS: usize = 7;

/// The value of `GLIBC_TUNABLES` for a profile.
pub(super) fn tunables_of(profile: &Profile) -> String {
    let decided: Vec<Decided> = profile
        .decisions
        .iter()
        .map(|d| Decided {
            operation: d.operation,
            reuse: d.reuse,
            range: Range {
                from: d.from as usize,
                to: (d.to != MAX_SIZE).then_some(d.to as usize),
                kernel: d.kernel.clone(),
            },
        })
        .collect();
    tunables::line(&tunables::of(&decided))
}

fn glibc(args: &Export, profile: &Profile) -> anyhow::Result<u8> {
    let setting = tunables_of(profile);
    if args.untried {
        output::print(&format!("GLIBC_TUNABLES={setting}\n"))?;
        return Ok(status::OK);
    }
    let mut bar = Bar::new()?;
    let operations = [Operation::Copy, Operation::Fill];
    bar.begin("trying the setting", (PAIRS * operations.len() * 2) as f64);
    let mut table = Table::new(
        "libc under the setting against libc without it, warm buffers",
        &["operation", ">bytes", ">speed", ">95 % interval", "verdict"],
    );
    let (mut gained, mut lost) = (Vec::new(), Vec::new());
    for operation in operations {
        let mut with: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut without: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for pair in 0..PAIRS {
            // In turns, and in turn who goes first.
            for first in [pair % 2 == 0, pair % 2 != 0] {
                let tunables = first.then_some(setting.as_str());
                let times = child(operation, tunables)?;
                if bar.stopped() {
                    return Ok(status::INTERRUPTED);
                }
                let into = if first { &mut with } else { &mut without };
                for (size, time) in times {
                    into.entry(size).or_default().push(time);
                }
                bar.advance(operation.name(), 1.0);
            }
        }
        for (size, times) in &with {
            let Some(reference) = without.get(size) else { continue };
            let ratio = PairedRatio::new(times, reference, 0);
            let verdict = ratio.verdict(0.02);
            match verdict {
                cachewise_measure::Verdict::Faster => gained.push((operation, *size, ratio.median)),
                cachewise_measure::Verdict::Slower => lost.push((operation, *size, ratio.median)),
                cachewise_measure::Verdict::CannotTell => {}
            }
            table.push(vec![
                operation.name().to_owned(),
                bytes(*size as u64),
                gain(ratio.median),
                format!("{} .. {}", gain(ratio.high), gain(ratio.low)),
                verdict.to_string(),
            ]);
        }
    }
    bar.clear();
    // The setting alone on stdout, so that a shell can take it; what it gains on stderr.
    output::print(&format!("GLIBC_TUNABLES={setting}\n"))?;
    anstream::eprint!("{}", table.terminal(None));
    let sentence = match (gained.is_empty(), lost.is_empty()) {
        (true, true) => "It gains nothing that can be told from noise.".to_owned(),
        (false, true) => format!("It gains at {} of the cells and loses at none.", gained.len()),
        (true, false) => format!("It only loses, at {} of the cells: do not use it.", lost.len()),
        (false, false) => {
            format!("It gains at {} of the cells and loses at {}.", gained.len(), lost.len())
        }
    };
    anstream::eprintln!("{sentence}");
    Ok(status::OK)
}

/// Times libc in a fresh process.
fn child(operation: Operation, tunables: Option<&str>) -> anyhow::Result<BTreeMap<usize, f64>> {
    let sizes: Vec<String> = TRIED.iter().map(usize::to_string).collect();
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["time-libc", "--op", operation.name(), "--size", &sizes.join(",")]);
    match tunables {
        Some(tunables) => command.env("GLIBC_TUNABLES", tunables),
        None => command.env_remove("GLIBC_TUNABLES"),
    };
    command.stderr(std::process::Stdio::null());
    let output = command.output().context("a fresh process could not be started")?;
    if !output.status.success() {
        anyhow::bail!("timing libc in a fresh process ended with {}", output.status);
    }
    let times: BTreeMap<String, f64> = serde_json::from_slice(&output.stdout)
        .context("what the fresh process printed is not its result")?;
    times.into_iter().map(|(size, time)| Ok((size.parse().context("a size")?, time))).collect()
}
