//! `cachewise explain`: a decision, and the figures behind it.

use super::{learned, profile_in_force};
use crate::{args, output, status};
use anyhow::{Context, bail};
use cachewise::profile::{FIRST_SIZE, LIBC, MAX_SIZE, Profile, fnv1a64};
use cachewise::{Reuse, Source, decision};
use cachewise_kernels::{Operation, find};
use cachewise_measure::record;
use cachewise_report::programs;
use cachewise_report::tuning::Tuned;
use cachewise_report::units::bytes;
use std::path::{Path, PathBuf};

/// What stands in a kernel's place where the library's own paths serve.
const INLINED: &str = "inlined";

/// One call to be explained.
struct Explain {
    op: Operation,
    size: usize,
    reuse: Reuse,
    profile: Option<PathBuf>,
}

impl Explain {
    fn words(&self) -> String {
        format!("{} of {} with reuse {}", self.op, bytes(self.size as u64), self.reuse.name())
    }
}

/// Prints the decision, who made it, and what it was made from.
pub fn run(args: &args::Explain) -> anyhow::Result<u8> {
    if let Some(name) = &args.program {
        return program(name, args);
    }
    let (Some(op), Some(size)) = (args.op, args.size) else { bail!("--op and --size are needed") };
    call(&Explain { op, size, reuse: args.reuse, profile: args.profile.clone() })
}

/// The call sites of a program.
fn program(name: &str, args: &args::Explain) -> anyhow::Result<u8> {
    let (name, place) = learned::existing(name, args.profile.as_deref())?;
    let program = learned::read(&name, &place)?;
    if let Some(file) = &args.html {
        output::write(file, programs::page(&program)?.as_bytes())?;
    }
    output::print(&programs::sites(&program).terminal(output::width()))?;
    Ok(status::OK)
}

/// One call: the decision, who made it, and the rows it was made from.
fn call(args: &Explain) -> anyhow::Result<u8> {
    let (kernel, from, to, who, path) = decided(args)?;
    let upto = if to == MAX_SIZE { "and up".to_owned() } else { format!("to {}", bytes(to)) };
    let mut text = format!("{}: {kernel} (from {} {upto})\n", args.words(), bytes(from));
    if let Some(row) = find(&kernel) {
        text.push_str(&format!("  {}\n", row.about));
    } else if kernel == LIBC {
        text.push_str("  the C library's own routine\n");
    }
    text.push_str(&format!("decided by: {who}\n"));
    if let (None, Some(why)) = (&args.profile, silent(args, &kernel)) {
        text.push_str(&format!("  {why}\n"));
    }
    if let Some(entry) = entry(args)? {
        text.push_str(&format!("entry: {entry}\n"));
    }
    let small = (args.size as u64) < FIRST_SIZE || kernel == INLINED;
    // No line of a profile decides this size, but its record has the race of entries.
    let in_force = || profile_in_force().filter(|_| small).map(Path::to_owned);
    let path = path.or_else(in_force);
    if small {
        text.push_str(
            "calls this small are the entry's alone, whatever is decided for larger ones\n",
        );
    }
    if let Some(path) = path {
        match evidence(&path, args, (!small).then_some(&*kernel)) {
            Ok(drawn) => text.push_str(&format!("\n{drawn}")),
            Err(error) => text.push_str(&format!("no figures: {error:#}\n")),
        }
    } else {
        text.push_str("no figures: nothing was measured here; `cachewise tune` does\n");
    }
    output::print(&text)?;
    Ok(status::OK)
}

type Decision = (String, u64, u64, String, Option<PathBuf>);

fn decided(args: &Explain) -> anyhow::Result<Decision> {
    let size = args.size as u64;
    if let Some(path) = &args.profile {
        let profile = Profile::read(path)?;
        let mut of_it =
            profile.decisions.iter().filter(|d| d.operation == args.op && d.reuse == args.reuse);
        let Some(found) = of_it.find(|d| d.from <= size && size <= d.to) else {
            let (file, call) = (path.display(), args.words());
            bail!("{file}: no decision for {call}");
        };
        let who = format!("{} ({})", path.display(), profile.written);
        return Ok((found.kernel.clone(), found.from, found.to, who, Some(path.clone())));
    }
    let found = decision(args.op, args.reuse, size);
    let path = super::file_of(found.source).map(Path::to_owned);
    Ok((found.name().to_owned(), found.from, found.to, found.source.to_string(), path))
}

/// Why the profile in force has not decided, where one is.
fn silent(args: &Explain, kernel: &str) -> Option<String> {
    let source = cachewise::profile_source();
    let computed = |source: &Source| matches!(source, Source::Computed);
    let found = decision(args.op, args.reuse, args.size as u64).source;
    if kernel == INLINED || computed(&source) || !computed(&found) {
        return None;
    }
    let hint = args.reuse.name();
    Some(format!("{source} says nothing about {} with reuse {hint}", args.op))
}

/// The entry of calls without a hint: the profile's, else the one that is in use.
fn entry(args: &Explain) -> anyhow::Result<Option<String>> {
    let named = match &args.profile {
        Some(path) => Profile::read(path)?.entries.into_iter().find(|(op, _)| *op == args.op),
        None => None,
    };
    let in_use = || Some(cachewise::entry::chosen(args.op)?.name.to_owned());
    Ok(named.map(|(_, name)| name).or_else(in_use))
}

/// The reason that the tuning gave for its decision.
fn why(record: &record::Record, args: &Explain) -> Option<String> {
    let holds =
        |from: u64, to: Option<u64>| (from..=to.unwrap_or(MAX_SIZE)).contains(&(args.size as u64));
    let mut of_it = record.decisions.kernels.iter().filter(|decision| {
        decision.operation == args.op.name() && decision.reuse == args.reuse.name()
    });
    of_it.find(|decision| holds(decision.from, decision.to))?.why.clone()
}

/// Who was shown to be what at the measured sizes around the one asked for, and what was checked; who won
/// the race of entries.
fn evidence(profile_path: &Path, args: &Explain, chosen: Option<&str>) -> anyhow::Result<String> {
    let profile = Profile::read(profile_path)?;
    let named = profile.record.context("the profile names no record")?;
    let path = profile_path.with_file_name(&named.name);
    let content = record::bytes(&path).with_context(|| path.display().to_string())?;
    if fnv1a64(&content) != named.checksum {
        bail!("{}: not the record this profile was made from", path.display());
    }
    let record = record::read(&path)?;
    let libc = &record.header.machine.libc;
    let libc = format!("{} {}", libc.name, libc.version);
    let tuned = Tuned::of(&record, &libc);
    let mut tables = String::new();
    let of_size = chosen.map(|chosen| tuned.evidence(args.op.name(), args.size as u64, chosen));
    for table in of_size.into_iter().flatten().chain(tuned.entries(args.op.name())) {
        tables.push_str(&table.terminal(output::width()));
    }
    if tables.is_empty() {
        bail!("{}: no rows of this operation that decisions are made from today", path.display());
    }
    let why = why(&record, args).map_or_else(String::new, |why| format!("why: {why}\n"));
    Ok(format!("{why}{tables}record: {}\n", path.display()))
}
