//! How each answer of `advise` ends: how far it can be trusted, and its files.

use super::forms;
use crate::args::Advise;
use crate::verbs::redraw::{self, Loaded};
use crate::{advised, output};
use cachewise_advise::candidates::Candidate;
use cachewise_measure::{Record, Warning};
use cachewise_report::closing::Trust;
use std::time::Instant;

/// Disturbances that change an answer about whole programs, the gravest first: what is so for plain runs and settings
/// alike (a guest, a governor) is in the record alone.
const GRAVE: [&str; 8] =
    ["emulation", "swapping", "throttled", "load", "others", "steal", "memory", "quota"];

/// How far an answer can be trusted that was found while these disturbed.
pub(super) fn trust(disturbed: &[Warning], stopped: bool) -> Trust {
    let mut trust = Trust::of(&[], &[], stopped);
    let gravest = GRAVE.iter().find_map(|id| disturbed.iter().find(|one| one.id == *id));
    if let Some(Warning { cause, figure, .. }) = gravest {
        trust.doubt(format!("{figure}: {cause}"));
    }
    trust
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
        (Some(file), Some((candidate, about))) => forms::write(file, candidate, words, &about)?,
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
        let name = format!("{}.jsonl", advised::EXPERIMENT);
        output::write(path, redraw::page(&[Loaded { name, record }])?.as_bytes())?;
    }
    Ok(())
}
