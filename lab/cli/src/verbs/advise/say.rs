//! Output of `advise`: the answer first, then the evidence.

use super::ending;
use super::recorded::{self, TimeFindings};
use crate::args::Advise;
use crate::verbs::redraw;
use crate::{advised, output, status};
use cachewise_advise::verdict::{self, TimeAnswer};
use cachewise_measure::{NoiseSnapshot, Record, Warning, warnings};
use cachewise_report::closing::{self, Closing};

impl TimeFindings {
    /// Prints and writes everything that is known, where it was asked for; the exit status.
    pub fn say(self, args: &Advise, words: &[String]) -> anyhow::Result<u8> {
        let disturbed = warnings(&self.before, &NoiseSnapshot::take(), &self.machine);
        let stopped = self.outcome.stopped || !self.ran;
        let closing = self.closing(words, &disturbed);
        let mut record = recorded::record(&self, args, words, disturbed);
        record.end = Some(recorded::end(&self, &record, &closing, stopped));
        let set = match &self.answer {
            TimeAnswer::Set(at, speed) => {
                let candidate = &self.candidates[*at];
                Some((candidate, format!("{}: {speed:.2} times the speed", candidate.name)))
            }
            _ => None,
        };
        ending::give(args, words, &self.text(&record, &closing), set, record, self.begun)?;
        Ok(match self.answer {
            _ if stopped => status::INTERRUPTED,
            TimeAnswer::Set(..) | TimeAnswer::Nothing(_) => status::OK,
            TimeAnswer::CannotTell(_) => status::INCONCLUSIVE,
        })
    }

    fn closing(&self, words: &[String], disturbed: &[Warning]) -> Closing {
        let by = if self.by_cpu { " by CPU time" } else { "" };
        let (answer, because, next) = match &self.answer {
            TimeAnswer::Set(at, speed) => (
                closing::ClosingAnswer::Yes,
                format!("{}: {speed:.2} times the speed{by}", self.candidates[*at].name),
                self.candidates[*at].line(words),
            ),
            TimeAnswer::Nothing(why) => (
                closing::ClosingAnswer::No,
                match why.starts_with("nothing") {
                    true => why.clone(),
                    false => format!("nothing to gain: {why}"),
                },
                "nothing: leave the program as it is".to_owned(),
            ),
            TimeAnswer::CannotTell(why) => {
                (closing::ClosingAnswer::CannotTell, why.clone(), self.next(why))
            }
        };
        Closing { answer, because, trust: ending::trust(disturbed, self.outcome.stopped), next }
    }

    /// The next step where nothing was shown.
    fn next(&self, why: &str) -> String {
        ending::next(&self.outcome, self.ran, why)
    }

    /// The answer, what it costs, then what was measured.
    fn text(&self, record: &Record, closing: &Closing) -> String {
        let mut text = format!("{closing}");
        if let TimeAnswer::Set(at, _) = &self.answer {
            for sentence in verdict::why(&self.outcome, &self.candidates[*at]) {
                text.push_str(&format!("{sentence}\n"));
            }
        }
        if let Some(bound) = &self.bound {
            let gained = match &self.answer {
                TimeAnswer::Set(_, speed) => Some(speed),
                _ => None,
            };
            text.push_str(&format!("\n{}\n", verdict::of_bound(bound, gained)));
        }
        let tables = advised::tables(record);
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
}
