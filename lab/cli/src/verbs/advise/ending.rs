//! How each answer of `advise` ends: how far it can be trusted, and its files.

use super::forms;
use crate::args::Advise;
use crate::output;
use crate::verbs::redraw::{self, Loaded};
use cachewise_advise::candidates::Candidate;
use cachewise_advise::verdict;
use cachewise_judge::race;
use cachewise_measure::{Record, Warning};
use cachewise_report::closing::Trust;
use std::time::Instant;

/// Disturbances that change an answer about whole programs, the gravest first: what is so for plain runs and settings
/// alike (a guest, a governor) is in the record alone.
const GRAVE: [&str; 8] =
    ["emulation", "swapping", "throttled", "load", "others", "steal", "memory", "quota"];

/// How far an answer can be trusted that was found while these disturbed.
pub(super) fn trust(disturbed: &[Warning], stopped: bool) -> Trust {
    let stopped = stopped.then(|| "it was stopped before its end".to_owned());
    let gravest = GRAVE.iter().find_map(|id| disturbed.iter().find(|one| one.id == *id));
    let gravest = gravest.map(|Warning { cause, figure, .. }| format!("{figure}: {cause}"));
    let reasons: Vec<String> = stopped.into_iter().chain(gravest).collect();
    let mut trust = Trust::default();
    if !reasons.is_empty() {
        trust.doubt(reasons.join("; "));
    }
    trust
}

/// The next step where nothing was shown, for that reason.
pub(super) fn next<S>(outcome: &race::RaceOutcome<S>, ran: bool, why: &str) -> String {
    let again = match outcome.for_all {
        _ if outcome.stopped || !ran => ", to its end".to_owned(),
        _ if outcome.unrepeatable.is_some() => {
            return "a command that can be run twice: one that sets up what it needs, and cleans up"
                .to_owned();
        }
        _ if why.contains("--at-most") => " with that --at-most or --rounds".to_owned(),
        _ if why.contains("--rounds") => " with that --rounds".to_owned(),
        _ if why.contains("--budget") => " with that --budget".to_owned(),
        Some(seconds) => format!(" with {}: time for all settings", verdict::budget(seconds)),
        None => " with a larger --budget, on a quiet machine".to_owned(),
    };
    format!("the same again{again}")
}

/// Prints the text, and writes the setting with the sentence about it, the record and the page, each where it was asked
/// for.
pub(super) fn give(
    args: &Advise,
    words: &[String],
    text: &str,
    set: Option<(&Candidate, String)>,
    record: Record,
    begun: Instant,
) -> anyhow::Result<()> {
    let files = [&args.json, &args.html, &args.write];
    if !files.into_iter().flatten().any(|file| output::is_stdout(file)) {
        output::print(text)?;
    }
    match (&args.write, set) {
        (Some(file), Some((candidate, about))) => {
            forms::write(file, candidate, words, &about)?;
            output::tell(&format!("wrote {}: {}", file.display(), candidate.name));
        }
        (Some(file), None) => {
            let file = file.display();
            output::tell(&format!("note: {file}: not written: there is nothing to set"));
        }
        (None, _) => {}
    }
    if let Some(path) = &args.json {
        let end = record.end.as_ref();
        let verdicts = end.map_or(&[][..], |end| &end.verdicts);
        let stopped = end.is_none_or(|end| end.interrupted);
        output::write_record(
            output::record_writer(path)?.since(begun),
            &record,
            verdicts,
            stopped,
        )?;
    }
    if let Some(path) = &args.html {
        let name = args.json.as_ref().map_or_else(String::new, |file| redraw::named(file));
        output::write(path, redraw::page(&[Loaded { name, record }])?.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_is_that_of_the_gravest_reason() {
        let short =
            || race::RaceOutcome::<()> { for_all: Some(500.0), ..race::RaceOutcome::default() };
        let why = "none of 2 settings gains 2.0 %; 9 settings were not tried for lack of time";
        assert_eq!(
            next(&short(), true, why),
            "the same again with --budget 9min: time for all settings"
        );
        let stopped = race::RaceOutcome { stopped: true, ..short() };
        assert_eq!(next(&stopped, true, why), "the same again, to its end");
        let once = race::RaceOutcome { unrepeatable: Some("exit status: 9".to_owned()), ..short() };
        assert!(next(&once, true, why).starts_with("a command that can be run twice"));
        assert_eq!(
            next(&short(), true, "open; --rounds 60 would tell"),
            "the same again with that --rounds"
        );
    }
}
