//! `cachewise doctor`: whether this machine's memcpy settings are right, what it is, and what would
//! disturb measurements on it.

use super::redraw::Loaded;
use crate::{output, status};
use anyhow::Context as _;
use cachewise::profile::Profile;
use cachewise_measure::{Clock, Latencies, Machine, NoiseSnapshot, Warning};
use cachewise_report::advice::Advice;
use cachewise_report::closing::{Closing, ClosingAnswer};
use cachewise_report::{Table, html};
use cachewise_tune::say::Tuned;
use std::path::Path;

/// Prints the advice, what this machine is, what will disturb measurements and the fix, and whose
/// profile is in force. The status is that of the advice.
pub fn run(json: bool) -> anyhow::Result<u8> {
    let before = NoiseSnapshot::take();
    let machine = Machine::describe();
    // An emulated CPU's clock and latencies are its emulator's: they are not even looked at.
    let mut measured = None;
    if machine.emulated.is_none() {
        let clock = Clock::of_process();
        measured = Some((clock, Latencies::shared(&clock, &machine.caches)?));
    }
    let zeroing = measured.as_ref().map(|(clock, _)| {
        let said = cachewise_experiments::zeroing_engines::least_cost(clock);
        said.unwrap_or_else(|error| error.to_string())
    });
    // Long enough to see somebody else at work.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let warnings = cachewise_measure::warnings(&before, &NoiseSnapshot::take(), &machine);
    let source = cachewise::profile_source();
    let advice = advice(&machine);
    let status = match advice {
        // Nothing is wrong where the library is faster.
        Advice::LibcIsFine(_) | Advice::UseLibrary(_) => status::OK,
        Advice::CannotTell(_) => status::INCONCLUSIVE,
    };

    if json {
        let line = serde_json::json!({
            "machine": machine,
            "clock": measured.as_ref().map(|(clock, _)| clock.facts()),
            "latencies_ns": measured.as_ref().map(|(_, latencies)| latencies),
            "warnings": warnings,
            "profile": profile(&source),
            "zeroing": zeroing,
            "advice": advice.to_string(),
        });
        output::print(&format!("{line}\n"))?;
        return Ok(status);
    }
    output::print(&format!("{advice}\n"))?;
    output::print(&text(&machine, measured.as_ref(), &warnings, &profile(&source), zeroing))?;
    Ok(status)
}

/// Are this machine's memcpy settings right? From what was measured here, and from nothing else.
fn advice(machine: &Machine) -> Advice {
    if let Some(emulator) = &machine.emulated {
        let why = format!("this CPU is emulated by {emulator}; ask on the machine itself");
        return Advice::CannotTell(why);
    }
    let Some(path) = super::profile_in_force() else {
        return Advice::CannotTell(
            "nothing was measured on this machine; `cachewise tune --quick` measures for about a \
             minute and decides"
                .to_owned(),
        );
    };
    from_profile(path, machine).unwrap_or_else(|error| {
        Advice::CannotTell(format!("{error:#}; `cachewise tune --quick` measures again"))
    })
}

fn from_profile(path: &Path, machine: &Machine) -> anyhow::Result<Advice> {
    let profile = Profile::read(path)?;
    let named = profile.record.as_ref().context("the profile names no record")?;
    let record = Loaded::read(&path.with_file_name(&named.name))?.record;
    let libc = super::libc(machine);
    let tuned = Tuned::of(&record, &libc);
    if !record.decisions.kernels.is_empty() && !tuned.has_kernels() {
        // The library was compared nowhere, since it does what libc does.
        let Closing { answer, because, .. } = tuned.closing();
        return Ok(match answer {
            ClosingAnswer::No => Advice::LibcIsFine(because),
            _ => Advice::CannotTell(format!("{because}; `cachewise tune` measures longer")),
        });
    }
    let advice = Advice::of_library(&tuned.library(), &libc);
    Ok(match advice {
        Advice::UseLibrary(why) if machine.libc.release().is_some_and(|of| of < LATER) => {
            let later = format!(
                "later releases of glibc do part of it by themselves: `cachewise run peers --libc DIRECTORY` \
                 compares with one, and docs/upstream.md says what {}.{} changed",
                LATER.0, LATER.1
            );
            Advice::UseLibrary(format!("{why}; {later}"))
        }
        advice => advice,
    })
}

/// The release whose changes `docs/upstream.md` compares with 2.36.
const LATER: (u32, u32) = (2, 41);

/// Source of the library's decisions, in words.
pub fn profile(source: &cachewise::Source) -> String {
    use cachewise::Source;
    match source {
        Source::Computed => {
            let unfit = cachewise::shipped_profile().and_then(|shipped| {
                let why = shipped.unfit?;
                Some(format!(" (the one shipped for {} is not followed: {why})", shipped.model))
            });
            format!(
                "none{}; decisions are computed from the caches; `cachewise tune` makes one",
                unfit.unwrap_or_default()
            )
        }
        Source::Shipped(_) => {
            format!(
                "{source}, for caches of these sizes; `cachewise tune` makes one for this machine"
            )
        }
        other => other.to_string(),
    }
}

fn text(
    machine: &Machine,
    measured: Option<&(Clock, Latencies)>,
    warnings: &[Warning],
    profile: &str,
    zeroing: Option<String>,
) -> String {
    let verdict = match warnings.len() {
        _ if machine.emulated.is_some() => {
            "Not fit to measure: this CPU is emulated, and its timings would mean nothing."
                .to_owned()
        }
        0 => "Ready to measure: nothing found that would disturb it.".to_owned(),
        1 => "One thing will disturb measurements; see below.".to_owned(),
        n => format!("{n} things will disturb measurements; see below."),
    };
    let mut facts = html::machine(machine);
    facts.extend(machine.caches.notes.iter().map(|note| ("caches", note.clone())));
    let timing = measured.map(|(clock, latencies)| html::timing(&clock.facts(), Some(latencies)));
    facts.extend(timing.unwrap_or_else(|| vec![("clock", "no timing is taken here".to_owned())]));
    let tunables = machine.libc.tunables.iter();
    facts.extend(tunables.map(|(name, value)| ("tunable", format!("{name} = {value}"))));
    facts.push(("profile", profile.to_owned()));
    facts.extend(zeroing.map(|said| ("zeroing", said)));
    let mut table = Table::new("", &["", ""]);
    facts.into_iter().for_each(|(name, value)| table.push(vec![name.to_owned(), value]));
    let drawn = table.terminal(output::width());
    let mut text = format!("{verdict}\n\n{}", drawn.trim_start_matches('\n'));
    for Warning { id, figure, cause, remedy } in warnings {
        text.push_str(&format!("\n{id} ({figure})\n  {cause}\n  remedy: {remedy}\n"));
    }
    text
}
