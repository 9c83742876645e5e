//! `cachewise tune`: measure until the deadline, decide, have the decisions checked, and only then write
//! them.

use crate::args::Tune;
use crate::progress::Bar;
use crate::verbs::{drawn_seed, libc, redraw};
use crate::{output, status};
use anyhow::Context;
use cachewise::cpu::{Caches, Cpu, Signature, Text};
use cachewise::profile::{self, Profile, fnv1a64};
use cachewise_experiments::LabError;
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::distributions::Distribution;
use cachewise_measure::record::PUBLIC;
use cachewise_measure::{End, Machine, Record, RecordError, Writer, record};
use cachewise_report::closing::{Closing, ClosingAnswer};
use cachewise_report::units::bytes;
use cachewise_tune::again::decide_again;
use cachewise_tune::hardware::{Hardware, Setup};
use cachewise_tune::pooled::pooled;
use cachewise_tune::rounds::Evidence;
use cachewise_tune::say::Tuned;
use cachewise_tune::seam::Stage;
use cachewise_tune::tuning::{Settings, Tuning};
use cachewise_tune::{recording, tuner};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Measures, decides, and writes the profile with its record.
pub fn run(args: &Tune) -> anyhow::Result<u8> {
    let begun = Instant::now();
    if !args.from.is_empty() {
        return again(&args.from, args);
    }
    if cfg!(target_feature = "crt-static") {
        anyhow::bail!(
            "this command is linked statically: there is no C library here whose calls could be compared; tune with the \
             one for glibc, on the same machine, and name its profile with CACHEWISE_PROFILE"
        );
    }
    // Refused before files are looked at: nothing would be written to them.
    cachewise_measure::lab_error::refuse_emulation(&Machine::describe())?;
    let mut plan = Plan::of(args, begun)?;
    let Some(measured) = plan.measure()? else {
        output::tell("cachewise: interrupted; nothing was seen yet, nothing written");
        return Ok(status::INTERRUPTED);
    };
    match measured.outcome {
        Ok(tuning) => plan.finish(measured.record, &tuning, &measured.machine),
        Err(error) => plan.keep_unfinished(&measured.record, error),
    }
}

/// Plan of a tuning, and the paths of its files.
struct Plan<'a> {
    args: &'a Tune,
    begun: Instant,
    budget: f64,
    seed: u64,
    distribution: Option<Distribution>,
    profile: PathBuf,
    record: PathBuf,
    before: Option<Before>,
}

/// A tuning as it ended, with everything that was seen.
struct Measured {
    record: Record,
    outcome: Result<Tuning, LabError>,
    machine: Machine,
}

impl<'a> Plan<'a> {
    /// Checks that what is asked for can be written, before anything is measured for it.
    fn of(args: &'a Tune, begun: Instant) -> anyhow::Result<Plan<'a>> {
        let budget = match args.budget {
            Some(seconds) => seconds,
            None if args.quick => 60.0,
            None if args.thorough => 3600.0,
            None => 600.0,
        };
        let distribution = args.distribution.as_deref().map(Distribution::read).transpose()?;
        let profile = args.output.clone().map_or_else(|| default_path(args.system), Ok)?;
        let beside = || profile.with_extension("record.jsonl");
        let record = args.record.clone().unwrap_or_else(beside);
        let written = [Some(&*record), args.html.as_deref(), Some(&*profile)];
        output::check_all(&written, args.distribution.as_slice())?;
        [&record, &profile].into_iter().try_for_each(|file| output::check_keepable(file))?;
        let before = Before::at(&profile).filter(|_| !args.force);
        if let Some(Before { profile: before, .. }) = &before {
            refuse_shorter(&profile, before, budget)?;
        }
        let seed = args.seed.unwrap_or_else(drawn_seed);
        Ok(Plan { args, begun, budget, seed, distribution, profile, record, before })
    }

    /// Runs the tuner until its deadline; `None` where the user stopped it before anything was seen.
    fn measure(&mut self) -> anyhow::Result<Option<Measured>> {
        let (begun, budget) = (self.begun, self.budget);
        let bar = RefCell::new(Bar::new()?);
        let stop = || bar.borrow().cancelled();
        let mut progress = |stage: Stage, left: f64| {
            bar.borrow_mut().expected(stage.name(), begun.elapsed().as_secs_f64(), left);
        };
        let (memory, distribution) = (self.args.memory, self.distribution.take());
        let (stop, progress) = (&stop, &mut progress);
        let setup = Setup { begun, memory, budget, distribution, stop, progress };
        bar.borrow_mut().expected("getting to know the machine", 0.0, tuner::expected(budget));
        let made = Hardware::new(setup);
        if let Err(LabError::Interrupted) = made {
            bar.borrow().clear();
            return Ok(None);
        }
        let mut hardware = made?;
        let started = hardware.header(self.seed).started;
        bar.borrow().say(&hardware.machine.summary_line());
        for warning in hardware.warnings() {
            bar.borrow().say(&format!("warning: {warning}"));
        }
        if let Some(said) = hardware.without_wide_vectors() {
            bar.borrow().say(&said);
        }
        let settings = Settings { budget, seed: self.seed, previous: previous(&self.profile) };
        let mut evidence = Evidence::default();
        let outcome = tuner::run(&mut hardware, &settings, &mut evidence);
        bar.borrow().clear();
        if matches!(outcome, Err(LabError::Interrupted)) && evidence.rows().is_empty() {
            return Ok(None);
        }
        let tuning = outcome.as_ref().ok();
        let record = recording::record(&hardware, &settings, &evidence, tuning, started);
        Ok(Some(Measured { record, outcome, machine: hardware.machine.clone() }))
    }

    /// Keeps what was seen of a tuning that ended early beside the record that the profile in force names.
    fn keep_unfinished(&self, record: &Record, error: LabError) -> anyhow::Result<u8> {
        let path = match &self.args.record {
            None => self.profile.with_extension("interrupted.jsonl"),
            Some(_) => self.record.clone(),
        };
        let kept = keep(&path, self.begun, record, &[]);
        if !matches!(error, LabError::Interrupted) {
            return Err(error.into());
        }
        kept?;
        output::tell(&format!(
            "cachewise: interrupted; {} rows kept in {}, no profile written",
            record.rows.len(),
            path.display()
        ));
        Ok(status::INTERRUPTED)
    }

    /// Writes what was decided, and says it.
    fn finish(self, record: Record, tuning: &Tuning, machine: &Machine) -> anyhow::Result<u8> {
        let (libc, llc) = (libc(machine), llc(tuning));
        let tuned = Tuned { llc: llc.as_deref(), ..Tuned::of(&record, &libc) };
        let mut closing = tuned.closing();
        let text = tuned.table().terminal(output::width());
        let unasked = self.args.output.is_none() && !self.args.force;
        let weaker = weaker(&record, tuned.has_kernels(), self.before.as_ref(), unasked);
        if let Some(why) = &weaker {
            closing.next = format!(
                "nothing changes: {why}; `cachewise tune --force` replaces it, a longer tuning may too"
            );
        }
        let plan = if weaker.is_some() { self.aside() } else { self };
        let end = match plan.save(&record, tuning, machine, &closing) {
            Ok(end) => end,
            Err(error) => {
                // Measured figures are shown all the same.
                "make room, and the same command again: nothing was written"
                    .clone_into(&mut closing.next);
                output::print(&format!("{text}\n{closing}"))?;
                return Err(error);
            }
        };
        let followed = weaker.is_some() || is_followed(&plan.profile, searched());
        if closing.answer == ClosingAnswer::Yes && !followed {
            let file = plan.profile.display();
            closing.next = format!(
                "programs look for their profile elsewhere: `cachewise exec --profile {file} -- PROGRAM`; why: \
                 `cachewise explain --profile {file} --op memcpy --size 1M`"
            );
        }
        plan.say(text, &end, &closing)?;
        Ok(if weaker.is_some() { status::INCONCLUSIVE } else { status::OK })
    }

    /// Plan with files that replace nothing.
    fn aside(self) -> Plan<'a> {
        let profile = self.profile.with_extension("weaker.profile");
        let record = match &self.args.record {
            None => profile.with_extension("record.jsonl"),
            Some(_) => self.record,
        };
        Plan { profile, record, ..self }
    }

    fn save(
        &self,
        record: &Record,
        tuning: &Tuning,
        machine: &Machine,
        closing: &Closing,
    ) -> anyhow::Result<End> {
        let end = keep(&self.record, self.begun, record, std::slice::from_ref(&closing.because))?;
        let mut profile = profile_of(tuning, machine, &record.header.started, self.budget);
        profile.record = Some(record_of(&self.record)?);
        let folder = self.profile.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::create_dir_all(folder.unwrap_or(Path::new(".")))
            .with_context(|| format!("{}: its directory", self.profile.display()))?;
        let text = profile.to_text();
        Profile::parse(text.as_bytes())
            .with_context(|| format!("{}: not written", self.profile.display()))?;
        output::write_file(&self.profile, text.as_bytes(), PUBLIC)?;
        Ok(end)
    }

    /// Prints the decisions and their figures, and writes the page.
    fn say(&self, mut text: String, end: &End, closing: &Closing) -> anyhow::Result<()> {
        let peak =
            end.peak_bytes.map_or(String::new(), |peak| format!(", {} at the peak", bytes(peak)));
        text.push_str(&format!(
            "\n{:.0} s{peak}\nprofile {}\nrecord  {}\n\n{closing}",
            self.begun.elapsed().as_secs_f64(),
            self.profile.display(),
            self.record.display(),
        ));
        let (html, mut written) = (self.args.html.as_deref(), Ok(()));
        if let Some(path) = html {
            let page = redraw::page(&[redraw::Loaded::read(&self.record)?]);
            written = page.and_then(|page| output::write(path, page.as_bytes()));
        }
        match html.is_some_and(output::is_stdout) {
            true => output::tell_all(&text),
            false => output::print(&text)?,
        }
        written
    }
}

/// Writes the record of a tuning that began then; one without verdicts was interrupted.
fn keep(
    path: &Path,
    begun: Instant,
    record: &Record,
    verdicts: &[String],
) -> Result<End, RecordError> {
    output::write_record(Writer::create(path)?.since(begun), record, verdicts, verdicts.is_empty())
}

/// The profile that a tuning would replace.
struct Before {
    profile: Profile,
    /// True if others ran while it was measured.
    disturbed: bool,
}

impl Before {
    fn at(path: &Path) -> Option<Before> {
        let here = Signature::detect();
        let profile = Profile::read(path).ok();
        let profile = profile.filter(|profile| profile.cpu.signature.same_model(&here))?;
        let named = profile.record.as_ref().map(|record| path.with_file_name(&record.name));
        let record = named.and_then(|path| record::read(&path).ok());
        Some(Before { disturbed: record.is_none_or(|record| disturbed(&record)), profile })
    }
}

/// Returns whether others ran meanwhile.
fn disturbed(record: &Record) -> bool {
    record.header.warnings.iter().any(|warning| warning.id == "others")
}

/// The share of the CPUs that others may use while a profile is measured that every program is to follow.
const CROWDED: f64 = 0.25;

/// CPU time of others, if that was more than [`CROWDED`] and more than half of one CPU.
fn crowded(record: &Record) -> Option<&str> {
    let others = record.header.warnings.iter().find(|warning| warning.id == "others")?;
    let used: f64 = others.figure.split(' ').next()?.parse().ok()?;
    let cpus = record.header.machine.logical_cpus as f64;
    (used > (CROWDED * cpus).max(0.5)).then_some(&*others.figure)
}

/// A profile that took longer is better: nothing is measured that could not replace it.
fn refuse_shorter(path: &Path, before: &Profile, budget: f64) -> anyhow::Result<()> {
    let spent = before.notes.iter().find_map(|note| {
        let (seconds, _) = note.strip_prefix("budget ")?.split_once(' ')?;
        seconds.parse::<f64>().ok()
    });
    match spent.filter(|spent| *spent > budget) {
        None => Ok(()),
        Some(spent) => Err(LabError::Usage(format!(
            "{}: a tuning of {spent} s is there: --force or a budget of as much replaces it, \
             --output FILE writes elsewhere",
            path.display()
        ))
        .into()),
    }
}

/// Why this tuning does not replace what decides today, where it does not. With `unasked`, what
/// decides may be the profile that came with the library or the computed defaults.
fn weaker(
    record: &Record,
    has_kernels: bool,
    before: Option<&Before>,
    unasked: bool,
) -> Option<String> {
    let libc = |profile: &Profile| profile.decisions.iter().all(|one| one.kernel == profile::LIBC);
    if let Some(figure) = crowded(record).filter(|_| unasked) {
        return Some(format!("others ran while this was measured ({figure})"));
    }
    match before {
        Some(Before { profile, .. }) if !has_kernels && !libc(profile) => {
            Some("the profile before has kernels, and none was shown to be faster now".to_owned())
        }
        Some(Before { disturbed: false, .. }) if disturbed(record) => {
            Some("others ran while this was measured, and not before".to_owned())
        }
        None if !has_kernels && unasked => {
            let shipped = cachewise::shipped_profile().filter(|shipped| shipped.unfit.is_none())?;
            Some(format!("the profile shipped for {} has kernels", shipped.model))
        }
        _ => None,
    }
}

/// Decides again from records, and prints the profile; writes it where `--output` says so, with the pooled record beside
/// it.
fn again(paths: &[PathBuf], args: &Tune) -> anyhow::Result<u8> {
    output::check_all(&[args.output.as_deref()], paths)?;
    let file = args.output.as_deref().unwrap_or(Path::new("-"));
    let mut read = Vec::new();
    for path in paths {
        read.push(redraw::Loaded::read(path)?.record);
    }
    let (mut record, mut whole) = (Some(paths[0].clone()), read.swap_remove(0));
    if !read.is_empty() {
        read.push(whole);
        whole = pooled(&read)?;
        record = (!output::is_stdout(file)).then(|| file.with_extension("record.jsonl"));
        if let Some(path) = &record {
            keep(path, Instant::now(), &whole, &["pooled from several hosts".to_owned()])?;
        }
    }
    let previous = recording::previous(&whole.header);
    let tuning = decide_again(&whole.rows, recording::facts(&whole.header), &previous)
        .with_context(|| paths[0].display().to_string())?;
    let machine = &whole.header.machine;
    let mut profile = profile_of(&tuning, machine, &whole.header.started, 0.0);
    profile.notes = vec![match paths.len() {
        1 => "decided again from its record".to_owned(),
        hosts => format!("decided from the records of {hosts} hosts"),
    }];
    profile.record = record.as_deref().map(record_of).transpose()?;
    let here = Signature::detect();
    if !profile.cpu.signature.same_model(&here) {
        output::tell(&format!(
            "note: the record is of another CPU ({}); no library here follows this profile ({here})",
            profile.cpu
        ));
    }
    match output::is_stdout(file) {
        true => output::print_exactly(&profile.to_text())?,
        false => output::write_file(file, profile.to_text().as_bytes(), PUBLIC)?,
    }
    Ok(status::OK)
}

/// The decisions that a new tuning prefers among equals: of the profile that it replaces, else of the one in
/// force, else of the one that comes with the library for this CPU.
fn previous(path: &Path) -> Vec<profile::Decision> {
    let here = Signature::detect();
    let read = |path: &Path| {
        Profile::read(path).ok().filter(|profile| profile.cpu.signature.same_model(&here))
    };
    let shipped = || {
        let shipped = cachewise::shipped_profile().filter(|shipped| shipped.unfit.is_none())?;
        Profile::parse(shipped.text).ok()
    };
    let found = read(path).or_else(|| super::profile_in_force().and_then(read)).or_else(shipped);
    found.map_or_else(Vec::new, |profile| profile.decisions)
}

/// Size of the LLC as measured, if it differs from the CPU's own value.
fn llc(tuning: &Tuning) -> Option<String> {
    let facts = &tuning.facts;
    if !facts.llc_is_ours() {
        return Some("the last-level cache answers no faster than memory".to_owned());
    }
    let [ours, all] = [facts.llc_usable, facts.llc].map(|size| bytes(size as u64));
    (facts.llc_usable < facts.llc / 2)
        .then(|| format!("about {ours} of the last-level cache's {all} are ours"))
}

fn default_path(system: bool) -> anyhow::Result<PathBuf> {
    let path = if system { profile::machine_path() } else { profile::user_path() }
        .context("no configuration directory: neither XDG_CONFIG_HOME nor HOME is an absolute path; name a file with --output")?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: directory not made", directory.display()))?;
    }
    Ok(path)
}

/// Paths where programs look for a profile, in order.
fn searched() -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os("CACHEWISE_PROFILE").map(PathBuf::from);
    [named, profile::user_path(), profile::machine_path()].into_iter().flatten()
}

/// Returns whether a program follows this profile: the first that is there.
fn is_followed(path: &Path, mut searched: impl Iterator<Item = PathBuf>) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    searched.find_map(|place| real(&place)).is_some_and(|first| Some(first) == real(path))
}

fn record_of(path: &Path) -> anyhow::Result<profile::Record> {
    let checksum = fnv1a64(&record::bytes(path).with_context(|| path.display().to_string())?);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(profile::Record { name, checksum })
}

fn profile_of(tuning: &Tuning, machine: &Machine, started: &str, budget: f64) -> Profile {
    let cpu = &machine.cpu;
    Profile {
        cpu: Cpu {
            signature: Signature::new(&cpu.vendor, cpu.family, cpu.model, cpu.stepping),
            name: Text::new(&cpu.model_name),
        },
        caches: Caches {
            l1d: tuning.facts.l1 as u64,
            l2: tuning.facts.l2 as u64,
            llc: tuning.facts.llc as u64,
            clamped: machine.caches.llc.source == "assumed",
        },
        written: format!("{started} by cachewise {}", env!("CARGO_PKG_VERSION")),
        decisions: tuning.decisions.clone(),
        notes: vec![format!("budget {budget:.0} s, {}", libc(machine))],
        ..Profile::here()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boot that starts everything at once; `--output` and `--force` are the caller's own decision.
    #[test]
    fn a_tuning_that_others_disturbed_is_not_installed() {
        let kept = "../../record/2026-11-27-tune-quick-zen4-guest.jsonl.gz";
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(kept);
        let mut record = record::read(&kept).expect("a kept record");
        record.header.machine.logical_cpus = 8;
        let mut refused = |used: &str, unasked: bool| {
            let other = |id: &str, figure: &str| cachewise_measure::Warning {
                id: id.to_owned(),
                figure: figure.to_owned(),
                cause: String::new(),
                remedy: String::new(),
            };
            let others = other("others", &format!("{used} CPUs used by others"));
            record.header.warnings = vec![other("load", "load 11.00"), others];
            weaker(&record, true, None, unasked)
        };
        let why = refused("2.10", true).expect("more than a quarter of the CPUs");
        assert_eq!(why, "others ran while this was measured (2.10 CPUs used by others)");
        assert_eq!([refused("1.90", true), refused("7.90", false)], [None, None]);
    }

    #[test]
    fn the_first_profile_that_is_there_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [absent, first, second] =
            ["absent", "first", "second"].map(|name| folder.path().join(name));
        for path in [&first, &second] {
            std::fs::write(path, "").expect("room");
        }
        let searched = || [absent.clone(), first.clone(), second.clone()].into_iter();
        assert!(is_followed(&first, searched()));
        assert!(!is_followed(&second, searched()));
        assert!(!is_followed(&absent, searched()));
        assert!(!is_followed(&first, std::iter::empty()));
    }
}
