//! `cachewise explain`: a decision, and the figures behind it.

use super::redraw::Loaded;
use super::{file_of, profile_in_force};
use crate::{args, output, status};
use anyhow::{Context as _, bail};
use cachewise::profile::{FIRST_SIZE, LIBC, MAX_SIZE, OR_LIBC, Profile, fnv1a64, libc_from};
use cachewise::{Reuse, Source, decision};
use cachewise_experiments::LabError;
use cachewise_kernels::{Operation, find};
use cachewise_measure::{Record, record};
use cachewise_report::units::exact_bytes;
use cachewise_tune::again::decide_again;
use cachewise_tune::recording;
use cachewise_tune::say::Tuned;
use std::path::{Path, PathBuf};

/// Name in a kernel's place where the library's own paths serve.
const INLINED: &str = "inlined";

/// Decider there.
const THE_LIBRARY: &str = "the library, whatever a profile says";

/// One call to be explained.
struct Call<'a> {
    op: Operation,
    size: u64,
    reuse: Reuse,
    profile: Option<&'a Path>,
}

/// Prints the decision, who made it, and what it was made from.
pub fn run(args: &args::Explain) -> anyhow::Result<u8> {
    let (op, profile, size) = (args.op, args.profile.as_deref(), args.size as u64);
    if matches!(op, Operation::Compare | Operation::Equal) && args.reuse != Reuse::Unknown {
        let (op, found) = (op.name(), args.reuse.name());
        return Err(LabError::Usage(format!(
            "--reuse: expected unknown, found {found} for {op}, which writes nothing"
        ))
        .into());
    }
    Call { op, size, reuse: args.reuse, profile }.explain()
}

/// A decision, its sizes, its source and the source's file.
struct Decided<'a> {
    kernel: String,
    from: u64,
    to: u64,
    who: String,
    file: Option<&'a Path>,
}

impl<'a> Call<'a> {
    fn words(&self) -> String {
        format!("{} of {} with reuse {}", self.op, exact_bytes(self.size), self.reuse.name())
    }

    fn explain(&self) -> anyhow::Result<u8> {
        let Decided { kernel, from, to, who, file } = self.decided()?;
        let upto =
            if to == MAX_SIZE { "and up".to_owned() } else { format!("to {}", exact_bytes(to)) };
        let mut text = format!("{}: {kernel} (from {} {upto})\n", self.words(), exact_bytes(from));
        if let Some(row) = kernel.strip_suffix(OR_LIBC).and_then(find) {
            text += &format!(
                "  libc but for operands that are not aligned to each other, or aliased: {}\n",
                row.about
            );
        } else if let Some(row) = find(&kernel) {
            text += &format!("  {}\n", row.about);
        } else if kernel == LIBC
            && self.size < libc_from(self.op)
            && cachewise::below_libc(self.op).is_some()
        {
            text += "  the library's own loop of vectors: at this size a jump to libc's costs more than it gains\n";
        } else if kernel == LIBC {
            text += "  the C library's own routine, called after a look at the size\n";
        }
        text += &format!("decided by: {who}\n");
        if let (None, Some(why)) = (self.profile, self.silent(&kernel)) {
            text += &format!("  {why}\n");
        }
        if let Some(entry) = cachewise::entry::chosen(self.op) {
            text += &format!("entry stub: {}\n", entry.name);
        }
        let small = self.size < FIRST_SIZE || kernel == INLINED;
        if small {
            let to = exact_bytes(to);
            text += &format!("calls of up to {to} are done by the entry stub itself\n");
        }
        // No line of a profile decides a small size, but its record has calls of programs.
        match file.or_else(|| profile_in_force().filter(|_| small)) {
            Some(file) => match self.evidence(file, (!small).then_some(&*kernel)) {
                Ok(drawn) => text += &format!("\n{drawn}"),
                Err(error) => text += &format!("no figures: {error:#}\n"),
            },
            None => text += "no figures: nothing was measured here; `cachewise tune` does\n",
        }
        output::print(&text)?;
        Ok(status::OK)
    }

    fn decided(&self) -> anyhow::Result<Decided<'a>> {
        let Some(path) = self.profile else {
            let found = decision(self.op, self.reuse, self.size);
            let who = match found.name() {
                INLINED => THE_LIBRARY.to_owned(),
                _ => found.source.to_string(),
            };
            return Ok(Decided {
                kernel: found.name().to_owned(),
                from: found.from,
                to: found.to,
                who,
                file: file_of(found.source),
            });
        };
        let profile = Profile::read(path)?;
        if self.size < FIRST_SIZE {
            let (kernel, from, to) = (INLINED.to_owned(), 0, FIRST_SIZE - 1);
            let who = THE_LIBRARY.to_owned();
            return Ok(Decided { kernel, from, to, who, file: Some(path) });
        }
        let mut lines = profile.decisions.into_iter();
        let found = lines.find(|line| {
            (line.operation, line.reuse) == (self.op, self.reuse)
                && (line.from..=line.to).contains(&self.size)
        });
        let file = path.display();
        let found = found.with_context(|| format!("{file}: no decision for {}", self.words()))?;
        let who = format!("{file} ({})", profile.written);
        Ok(Decided { kernel: found.kernel, from: found.from, to: found.to, who, file: Some(path) })
    }

    /// Why the profile in force has not decided, where one is.
    fn silent(&self, kernel: &str) -> Option<String> {
        let source = cachewise::profile_source();
        let computed = |source: &Source| matches!(source, Source::Computed);
        let found = decision(self.op, self.reuse, self.size).source;
        if kernel == INLINED || computed(&source) || !computed(&found) {
            return None;
        }
        let hint = self.reuse.name();
        Some(format!("{source} says nothing about {} with reuse {hint}", self.op))
    }

    /// The reason that the tuning gave for its decision; where the profile was decided again from the record, the reason
    /// that this has.
    fn why(&self, profile: &Profile, record: &Record) -> Option<String> {
        let decided = profile.decisions.iter().find(|line| {
            (line.operation, line.reuse) == (self.op, self.reuse)
                && (line.from..=line.to).contains(&self.size)
        })?;
        let is_it = |line: &record::Decision| {
            (&*line.operation, &*line.reuse) == (self.op.name(), self.reuse.name())
                && (line.from, line.to.unwrap_or(MAX_SIZE)) == (decided.from, decided.to)
                && line.kernel == decided.kernel
        };
        if let Some(line) = record.decisions.kernels.iter().find(|line| is_it(line)) {
            return line.why.clone();
        }
        let header = &record.header;
        let (facts, previous) = (recording::facts(header), recording::previous(header));
        let again = decide_again(&record.rows, facts, &previous).ok()?;
        recording::decisions(&again).kernels.into_iter().find(is_it)?.why
    }

    /// Results at the measured sizes around the one asked for, with the checks; and of small calls.
    fn evidence(&self, profile: &Path, chosen: Option<&str>) -> anyhow::Result<String> {
        let read = Profile::read(profile)?;
        let named = read.record.as_ref().context("the profile names no record")?;
        // One that was kept under another name has the profile's; the checksum tells.
        let names = ["jsonl.gz", "jsonl"].map(|form| profile.with_extension(form));
        let mut paths = std::iter::once(profile.with_file_name(&named.name)).chain(names);
        let is_there = |path: &PathBuf| path.exists();
        let path = paths.find(is_there).unwrap_or_else(|| profile.with_file_name(&named.name));
        let file = path.display();
        let content = record::bytes(&path).with_context(|| file.to_string())?;
        if fnv1a64(&content) != named.checksum {
            bail!("{file}: not the record this profile was made from");
        }
        let record = Loaded::read(&path)?.record;
        let libc = super::libc(&record.header.machine);
        let (tuned, operation) = (Tuned::of(&record, &libc), self.op.name());
        let of_size = chosen.map(|chosen| tuned.evidence(operation, self.size, chosen));
        let never = self.reuse == Reuse::Never && chosen.is_some();
        let beside = never.then(|| tuned.beside(operation, self.size)).flatten();
        let tables = of_size.into_iter().flatten().chain(beside).chain(tuned.small(operation));
        let tables: String = tables.map(|table| table.terminal(output::width())).collect();
        if tables.is_empty() {
            bail!("{file}: no rows of this operation that decisions are made from today");
        }
        let why = self.why(&read, &record).map_or_else(String::new, |why| format!("why: {why}\n"));
        Ok(format!("{why}{tables}record: {file}\n"))
    }
}
