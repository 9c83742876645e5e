//! `cachewise export`: the decisions in other forms.

mod mpi;
mod system;
mod trial;

use crate::args::{Export, ExportForm};
use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context;
use cachewise::profile::{Decision, MAX_SIZE, Profile, fnv1a64};
use cachewise_advise::lists;
use cachewise_experiments::LabError;
use cachewise_experiments::helper::{Helper, Request};
use cachewise_experiments::recorder::Progress;
use cachewise_experiments::tunables;
use cachewise_kernels::Operation;
use cachewise_measure::record::names::{LIBC, TUNED_LIBC};
use cachewise_measure::stats::geometric_mean;
use cachewise_measure::{
    CellKey, Clock, Decisions, Header, Libc, Machine, NoiseSnapshot, PairedRatio, Record, Row,
    State, Writer, record,
};
use cachewise_report::advice;
use cachewise_report::closing::{Closing, ClosingAnswer, Trust};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trial::{PAIRS, fresh};

/// The glibc to export for: this process's, or that of a dynamic linker's file.
struct For<'a> {
    loader: Option<&'a Path>,
    libc: Libc,
}

/// Prints the profile named, or the one in force, in the form asked for.
pub fn run(args: &Export) -> anyhow::Result<u8> {
    for (option, given) in [
        ("--untried", args.untried),
        ("--loader", args.loader.is_some()),
        ("--system", args.system.is_some()),
    ] {
        if given && args.form != ExportForm::Glibc {
            let refusal =
                format!("{option}: found with another form, accepted with `export glibc`");
            return Err(LabError::Usage(refusal).into());
        }
    }
    let path = args.profile.as_deref().or_else(|| super::profile_in_force());
    let profile = || {
        super::read_or_shipped(path)?.context(
            "there is no profile for this CPU to export; `cachewise tune` makes one, --profile names one",
        )
    };
    match args.form {
        ExportForm::Profile => output::print_exactly(&profile()?.to_text())?,
        ExportForm::Json => output::print_exactly(&as_json(&profile()?))?,
        ExportForm::C => output::print_exactly(&header(&profile()?))?,
        ExportForm::Mpi => return mpi::run(super::read_or_shipped(path)?.as_ref()),
        ExportForm::Glibc => {
            let loader = args.loader.as_deref();
            let libc = match loader {
                Some(loader) => Libc::of_loader(loader, "")
                    .with_context(|| format!("--loader {}", loader.display()))?,
                None => Machine::describe().libc,
            };
            let (found, setting) = glibc(path, &profile()?, args.untried, &For { loader, libc })?;
            return match &args.system {
                Some(directory) => {
                    system::write(directory, setting.as_deref(), &args.advice, found)
                }
                None => {
                    if let Some(setting) = setting {
                        output::print_exactly(&format!("{}\n", with_the_callers(&setting)))?;
                    }
                    Ok(found)
                }
            };
        }
    }
    Ok(status::OK)
}

fn as_json(profile: &Profile) -> String {
    let signature = &profile.cpu.signature;
    let value = json!({
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
        "record": profile.record.as_ref().map(|record| &record.name),
        "written": profile.written,
        "decisions": profile.decisions.iter().map(|line| json!({
            "operation": line.operation.name(),
            "reuse": line.reuse.name(),
            "from": line.from,
            "to": Some(line.to).filter(|to| *to != MAX_SIZE),
            "kernel": line.kernel,
        })).collect::<Vec<_>>(),
        "notes": profile.notes,
    });
    format!("{value:#}\n")
}

/// A C header: the ranges as an array, for programs that bring dispatch of their own.
fn header(profile: &Profile) -> String {
    let mut text = format!(
        "/* Decisions for {} ({}).\n   One entry per operation, hint and range of sizes; `to` is inclusive. */\n\
         #ifndef CACHEWISE_DECISIONS_H\n#define CACHEWISE_DECISIONS_H\n#include <stdint.h>\n\n\
         struct cachewise_decision {{\n\tconst char *operation, *reuse;\n\tuint64_t from, to;\n\tconst char *kernel;\n}};\n\n\
         static const struct cachewise_decision cachewise_decisions[] = {{\n",
        profile.cpu.name.as_str(),
        profile.written
    );
    for Decision { operation, reuse, from, to, kernel, .. } in &profile.decisions {
        let to = if *to == MAX_SIZE { "UINT64_MAX".to_owned() } else { format!("{to}u") };
        text += &format!("\t{{ \"{operation}\", \"{reuse}\", {from}u, {to}, \"{kernel}\" }},\n");
    }
    text.push_str("};\n\n#endif\n");
    text
}

/// Sizes at which the setting is tried.
const TRIED: [usize; 8] =
    [1 << 10, 3 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 24 << 20, 64 << 20];

const GLIBC_TUNABLES: &str = "GLIBC_TUNABLES";

/// The name in the record of what was tried.
const EXPERIMENT: &str = "export-glibc";

/// The value of `GLIBC_TUNABLES` for a profile, under this glibc; empty under another C library.
pub(super) fn tunables_of(profile: &Profile, libc: &Libc) -> String {
    libc.release().map_or_else(String::new, |release| tunables::line(&profile.decisions, release))
}

/// The caller's tunables of glibc, which stay, whatever is exported.
fn of_the_caller() -> String {
    std::env::var(GLIBC_TUNABLES).unwrap_or_default()
}

/// The assignment that a shell can take: the setting, and what the caller has set besides.
fn with_the_callers(setting: &str) -> String {
    format!("{GLIBC_TUNABLES}={}", lists::extended(GLIBC_TUNABLES, Some(&of_the_caller()), setting))
}

/// An error unless a glibc has in force what the setting says.
fn check_in_force(setting: &str, of: &For<'_>) -> anyhow::Result<()> {
    let Some(loader) = of.loader.map(Path::to_owned).or_else(Libc::loader) else { return Ok(()) };
    let in_force = Libc::of_loader(&loader, setting)?.tunables;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    for (name, value) in setting.split(':').filter_map(|one| one.split_once('=')) {
        let short = name.rsplit('.').next().unwrap_or(name);
        let found = in_force.get(short);
        if found.is_none_or(|found| number(found) != number(value)) {
            let found = found.map_or("nothing", String::as_str);
            anyhow::bail!(
                "glibc {}: {name}: found {found} in force where {value} was set; accepted: what was set",
                of.libc.version
            );
        }
    }
    Ok(())
}

/// Prints the part of the setting that was shown to gain, alone on stdout so that a shell can take it; the evidence on stderr, and in a record beside the profile, from which `doctor` answers.
fn glibc(
    path: Option<&Path>,
    profile: &Profile,
    untried: bool,
    of: &For<'_>,
) -> anyhow::Result<(u8, Option<String>)> {
    let setting = tunables_of(profile, &of.libc);
    let Some(release) = of.libc.release().filter(|_| !setting.is_empty()) else {
        output::tell(
            "cachewise: the profile leaves copies and fills to libc: there is nothing to set",
        );
        return Ok((status::INCONCLUSIVE, None));
    };
    check_in_force(&setting, of)?;
    if untried {
        return Ok((status::OK, Some(setting)));
    }
    output::tell(
        "trying the profile's thresholds in fresh processes, with them and without in turns; \
         --untried prints them at once",
    );
    let machine = Machine::describe();
    let before = NoiseSnapshot::take();
    let Some(Settled { pays, seen: rows }) = try_all(profile, release, of)? else {
        return Ok((status::INTERRUPTED, None));
    };
    let warnings = cachewise_measure::warnings(&before, &NoiseSnapshot::take(), &machine);
    output::tell_table(&advice::tried(&rows));
    let trust = Trust::of(&rows, &warnings, false);
    // The variables that gain are judged, and kept, without the others.
    let (setting, kept) = pays.unwrap_or((setting, rows));
    let (answer, because) = advice::of_setting(&kept);
    // Beside the profile; of a shipped one there is no file. Another glibc's is nothing that `doctor` asks for.
    let beside = path.filter(|_| of.loader.is_none());
    let next = match answer {
        ClosingAnswer::Yes if beside.is_none() => "start programs with this setting",
        ClosingAnswer::Yes => "start programs with this setting; `cachewise doctor` remembers it",
        _ => "leave libc as it is; `cachewise doctor` says what else",
    };
    output::tell(&Closing { answer, because, trust, next: next.to_owned() }.to_string());
    let done = beside.map_or(Ok(()), |path| keep(path, profile, machine, &setting, kept));
    if let Err(error) = done {
        output::tell(&format!("note: not kept for `doctor`: {error:#}"));
    }
    if answer != ClosingAnswer::Yes {
        return Ok((status::INCONCLUSIVE, None));
    }
    Ok((status::OK, Some(setting)))
}

/// Tries the profile's variables, one operation after the other; `None` where the user stopped it.
fn try_all(
    profile: &Profile,
    release: (u32, u32),
    of: &For<'_>,
) -> anyhow::Result<Option<Settled>> {
    let mut bar = Bar::new()?;
    let (mut all, mut paying) = (Vec::new(), Vec::new());
    for (operation, variables) in tunables::variables(&profile.decisions, release) {
        let found = settle(&variables, &mut |who, setting| {
            let what = format!("trying {who} on {operation}");
            bar.begin(&what, (2 * PAIRS) as f64);
            let tried = trial::in_turns(&mut bar, operation.name(), &mut |which| {
                child(operation, (which == 1).then_some(setting), of.loader)
            })?;
            let rows = |[without, with]: trial::Both| {
                let sizes = TRIED.into_iter().zip(without.into_iter().zip(with));
                let of_size = sizes.map(|(size, (without, with))| {
                    let ratio = PairedRatio::paired(&with, &without);
                    let row = |who, times| row(operation, size, who, times);
                    [row(LIBC, without), row(who, with).with_ratio(ratio)]
                });
                of_size.flatten().collect()
            };
            Ok(tried.map(rows))
        })?;
        let Some(Settled { pays, seen }) = found else { return Ok(None) };
        all.extend(seen);
        paying.extend(pays);
    }
    bar.clear();
    let (settings, paid): (Vec<_>, Vec<_>) = paying.into_iter().unzip();
    let pays = (!settings.is_empty()).then(|| (settings.join(":"), paid.concat()));
    Ok(Some(Settled { pays, seen: all }))
}

/// The rows of one trial; `None` where the user stopped it.
type Tried = anyhow::Result<Option<Vec<Row>>>;

/// Result of trying variables: one operation's, or those of all.
struct Settled {
    /// The setting that pays and its rows, if one does; of several all.
    pays: Option<(String, Vec<Row>)>,
    /// All rows.
    seen: Vec<Row>,
}

/// Tries an operation's variables together and, where that does not pay, each alone. `run` is told how the rows are
/// named and what to set.
fn settle(
    variables: &[String],
    run: &mut dyn FnMut(&str, &str) -> Tried,
) -> anyhow::Result<Option<Settled>> {
    let mut found = Settled { pays: None, seen: Vec::new() };
    let together = (variables.len() > 1).then(|| (TUNED_LIBC, variables.join(":")));
    let alone = variables.iter().map(|one| {
        let name = one.split_once('=').map_or(one.as_str(), |(name, _)| name);
        (name.rsplit('.').next().unwrap_or(name), one.clone())
    });
    let mut least = 1.0;
    for (who, setting) in together.into_iter().chain(alone) {
        let Some(rows) = run(who, &setting)? else { return Ok(None) };
        found.seen.extend_from_slice(&rows);
        if advice::of_setting(&rows).0 != ClosingAnswer::Yes {
            continue;
        }
        let ratios: Vec<f64> = rows.iter().filter_map(|row| Some(row.ratio?.median)).collect();
        let mean = geometric_mean(&ratios);
        if found.pays.is_none() || mean < least {
            least = mean;
            found.pays = Some((setting, rows));
        }
        if who == TUNED_LIBC {
            break;
        }
    }
    Ok(Some(found))
}

fn row(operation: Operation, size: usize, who: &str, times: Vec<f64>) -> Row {
    Row::new(EXPERIMENT, CellKey::new(operation.name(), size, State::Warm), who, LIBC, times)
}

/// Path of the trial of a profile's setting.
fn beside(profile: &Path) -> PathBuf {
    profile.with_extension("glibc.jsonl")
}

fn keep(
    path: &Path,
    profile: &Profile,
    machine: Machine,
    setting: &str,
    rows: Vec<Row>,
) -> anyhow::Result<()> {
    let clock = Clock::of_process().facts();
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, machine, clock, 0);
    header.settings = BTreeMap::from([
        ("experiment".to_owned(), EXPERIMENT.into()),
        ("tunables".to_owned(), setting.into()),
        ("profile".to_owned(), checksum(profile).into()),
    ]);
    let record = Record { header, rows, notes: vec![], decisions: Decisions::default(), end: None };
    output::write_record(Writer::create(&beside(path))?, &record, &[], false)?;
    Ok(())
}

fn checksum(profile: &Profile) -> String {
    format!("{:016x}", fnv1a64(profile.to_text().as_bytes()))
}

/// The setting that was tried for this profile, and what that has shown; `None` where it was not tried.
pub(super) fn tried(path: &Path, profile: &Profile) -> Option<(String, ClosingAnswer, String)> {
    let record = record::read(&beside(path)).ok()?;
    let setting = |name: &str| record.header.settings.get(name)?.as_str().map(str::to_owned);
    if setting("profile")? != checksum(profile) {
        return None;
    }
    let (answer, because) = advice::of_setting(&record.rows);
    Some((with_the_callers(&setting("tunables")?), answer, because))
}

/// Times libc in a fresh process, at the sizes of [`TRIED`].
fn child(
    operation: Operation,
    tunables: Option<&str>,
    loader: Option<&Path>,
) -> anyhow::Result<Vec<f64>> {
    // glibc reads its tunables when a process starts: the caller's both times, since what is printed has them too.
    let tunables =
        lists::extended(GLIBC_TUNABLES, Some(&of_the_caller()), tunables.unwrap_or_default());
    let tunables = Some(&*tunables);
    let mut helper = fresh(|program| match loader {
        Some(loader) => Helper::start_by(loader, program, tunables),
        None => Helper::start(program, tunables),
    })?;
    let request = Request::Sizes { operation: operation.name().to_owned(), sizes: TRIED.to_vec() };
    helper.ask(&request).context("timing libc in a fresh process")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a setting with these times over libc's.
    fn rows(who: &str, ratios: [f64; 2]) -> Vec<Row> {
        let of = |(size, over): (usize, f64)| {
            let (median, low, high) = (over, over * 0.99, over * 1.01);
            let ratio = PairedRatio { median, low, high, rounds: PAIRS };
            row(Operation::Copy, size, who, vec![1e3 * over; PAIRS]).with_ratio(ratio)
        };
        TRIED.into_iter().zip(ratios).map(of).collect()
    }

    #[test]
    fn a_variable_pays_alone_where_the_others_lose() {
        let variables = ["glibc.cpu.a=0x1", "glibc.cpu.b=0x2"].map(str::to_owned);
        let paying = |[together, a, b]: [[f64; 2]; 3]| {
            let mut tried = Vec::new();
            let settled = settle(&variables, &mut |who, setting| {
                let ratios = if who == TUNED_LIBC {
                    together
                } else if who == "a" {
                    a
                } else {
                    b
                };
                tried.push(setting.to_owned());
                Ok(Some(rows(who, ratios)))
            });
            let settled = settled.expect("no process was started").expect("nobody stopped it");
            assert_eq!(settled.seen.len(), 2 * tried.len());
            (settled.pays.map(|(setting, _)| setting), tried.len())
        };
        let (good, better, level, bad) = ([0.8, 1.0], [0.7, 0.9], [1.0, 1.0], [0.5, 1.3]);
        assert_eq!(paying([good, bad, bad]), (Some(variables.join(":")), 1));
        assert_eq!(paying([bad, good, bad]), (Some(variables[0].clone()), 3));
        assert_eq!(paying([bad, good, better]), (Some(variables[1].clone()), 3));
        assert_eq!(paying([level, level, bad]), (None, 3));
        // One variable alone has no other combination to try.
        let none = settle(&variables[..1], &mut |who, _| Ok(Some(rows(who, bad))));
        let none = none.expect("no process was started").expect("nobody stopped it");
        assert!(none.pays.is_none() && none.seen.len() == 2);
        let stopped = settle(&variables, &mut |_, _| Ok(None));
        assert!(stopped.expect("no process was started").is_none());
    }
}
