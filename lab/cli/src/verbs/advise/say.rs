//! Output of `advise`: the answer first, then the evidence.

use super::recorded::{self, Found};
use super::{forms, hints, table};
use crate::args::Advise;
use crate::verbs::redraw::{self, Loaded};
use crate::{output, status};
use cachewise_advise::candidates::{self, Candidate};
use cachewise_advise::verdict::{self, Answer};
use cachewise_measure::{NoiseSnapshot, Record, Warning, warnings};
use cachewise_report::closing::{self, Closing, Trust};
use std::path::Path;

/// Disturbances that change an answer about whole programs, the gravest first: what is so for plain runs and settings
/// alike (a guest, a governor) is in the record alone.
const GRAVE: [&str; 8] =
    ["emulation", "swapping", "throttled", "load", "others", "steal", "memory", "quota"];

impl Found {
    /// Prints and writes everything that is known, where it was asked for; the exit status.
    pub fn say(self, args: &Advise, words: &[String]) -> anyhow::Result<u8> {
        let disturbed = warnings(&self.before, &NoiseSnapshot::take(), &self.machine);
        let stopped = self.outcome.stopped || !self.ran;
        let closing = self.closing(words, &disturbed);
        let mut record = recorded::record(&self, args, words, disturbed);
        record.end = Some(recorded::end(&self, &record, &closing, stopped));
        let in_place = [&args.json, &args.html, &args.write]
            .into_iter()
            .flatten()
            .any(|file| output::is_stdout(file));
        if !in_place {
            output::print(&self.text(&record, &closing))?;
        }
        self.write(args, words)?;
        if let Some(path) = &args.json {
            let verdicts = record.end.iter().flat_map(|end| end.verdicts.clone());
            let verdicts: Vec<String> = verdicts.collect();
            output::write_record(output::record_writer(path)?, &record, &verdicts, stopped)?;
        }
        if let Some(path) = &args.html {
            let name = format!("{}.jsonl", recorded::EXPERIMENT);
            output::write(path, redraw::page(&[Loaded { name, record }])?.as_bytes())?;
        }
        Ok(match self.answer {
            _ if stopped => status::INTERRUPTED,
            Answer::Set(..) | Answer::Nothing(_) => status::OK,
            Answer::CannotTell(_) => status::INCONCLUSIVE,
        })
    }

    /// The program's command by a setting, as it would be typed.
    pub fn line(&self, candidate: &Candidate, words: &[String]) -> String {
        match self.hints.contains_key(&candidate.name) {
            true => format!("cachewise exec -- {}", candidates::command(words)),
            false => candidate.line(words),
        }
    }

    fn closing(&self, words: &[String], disturbed: &[Warning]) -> Closing {
        let by = if self.by_cpu { " by CPU time" } else { "" };
        let (answer, because, next) = match &self.answer {
            Answer::Set(at, speed) => (
                closing::Answer::Yes,
                format!("{}: {speed:.2} times the speed{by}", self.candidates[*at].name),
                self.line(&self.candidates[*at], words),
            ),
            Answer::Nothing(why) => (
                closing::Answer::No,
                match why.starts_with("nothing") {
                    true => why.clone(),
                    false => format!("nothing to gain: {why}"),
                },
                "nothing: leave the program as it is".to_owned(),
            ),
            Answer::CannotTell(why) => (closing::Answer::CannotTell, why.clone(), self.next(why)),
        };
        Closing { answer, because, trust: self.trust(disturbed), next }
    }

    /// The next step where nothing was shown.
    fn next(&self, why: &str) -> String {
        match () {
            () if self.outcome.unrepeatable.is_some() => {
                "a command that can be run twice: one that sets up what it needs, and cleans up"
                    .to_owned()
            }
            () if why.contains("--rounds") => "the same again with that --rounds".to_owned(),
            () if why.contains("--budget") => "the same again with that --budget".to_owned(),
            () => "the same again with a larger --budget, on a quiet machine".to_owned(),
        }
    }

    fn trust(&self, disturbed: &[Warning]) -> Trust {
        let mut trust = Trust::of(&[], &[], self.outcome.stopped);
        let gravest = GRAVE.iter().find_map(|id| disturbed.iter().find(|one| one.id == *id));
        if let Some(Warning { cause, figure, .. }) = gravest {
            trust.doubt(format!("{figure}: {cause}"));
        }
        trust
    }

    /// The answer, what it costs, then what was measured.
    fn text(&self, record: &Record, closing: &Closing) -> String {
        let mut text = format!("{closing}");
        if let Answer::Set(at, _) = &self.answer {
            for sentence in verdict::why(&self.outcome, &self.candidates[*at]) {
                text.push_str(&format!("{sentence}\n"));
            }
        }
        if let Some(bound) = &self.bound {
            let gained = match &self.answer {
                Answer::Set(_, speed) => Some(speed),
                _ => None,
            };
            text.push_str(&format!("\n{}\n", verdict::of_bound(bound, gained)));
        }
        let tables = table::tables(record);
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            text.push_str(&format!("\n{}", table.terminal(output::width())));
        }
        if !record.rows.is_empty() {
            text.push_str(&redraw::plots(record));
        }
        for note in &record.notes {
            text.push_str(&format!("note: {}\n", note.text));
        }
        format!("{}\n", text.trim_end())
    }

    /// Writes the setting, and keeps its hints in the profile.
    fn write(&self, args: &Advise, words: &[String]) -> anyhow::Result<()> {
        let Answer::Set(at, speed) = &self.answer else {
            if let Some(file) = &args.write {
                let file = file.display();
                output::tell(&format!("note: {file}: not written: there is nothing to set"));
            }
            return Ok(());
        };
        let candidate = &self.candidates[*at];
        if let Some(file) = &args.write {
            let about = format!("{}: {speed:.2} times the speed", candidate.name);
            forms::write(file, candidate, words, &about)?;
        }
        if let (Some(file), Some(hints)) = (&self.profile, self.hints.get(&candidate.name)) {
            self.keep(file, hints)?;
        }
        Ok(())
    }

    fn keep(&self, file: &Path, hints: &[cachewise::profile::ProgramHint]) -> anyhow::Result<()> {
        hints::keep(file, hints)?;
        let file = file.display();
        output::tell(&format!("hints for this program are in {file}: `exec` follows them"));
        Ok(())
    }
}
