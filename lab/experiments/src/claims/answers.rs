//! The claims answered: by one record, and by a folder of records, CPU by CPU.

use super::claim::{Claim, Found, Measured, Reads};
use super::rule::{Asked, Judged, Over, Ratios, Word, joined, judge};
use crate::experiment::Experiment;
use crate::registry;
use cachewise_measure::units::significant;
use cachewise_measure::{Record, Row, record};
use cachewise_report::rows::experiment_of;
use std::path::Path;
use std::sync::LazyLock;

/// The CPUs of the records: their names in tables and in file names.
pub const CPUS: [(&str, &str); 6] = [
    ("Zen 1", "zen1"),
    ("Zen 3", "zen3"),
    ("Cascade Lake", "cascade-lake"),
    ("Zen 4", "zen4"),
    ("Zen 5", "zen5"),
    ("Emerald Rapids", "emerald-rapids"),
];

pub fn all() -> impl Iterator<Item = &'static Claim> {
    static ALL: LazyLock<Vec<Claim>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("claims.json")).expect("claims, which a test has read")
    });
    ALL.iter()
}

/// The answer of one record to one claim.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) cells: Vec<Found>,
    pub(super) measured: Measured,
    pub(super) judged: Judged,
    /// True where its rounds are launches.
    pub(super) launched: bool,
}

/// The claims that a record has rows of, judged together.
pub fn of_record(record: &Record) -> Vec<(&'static Claim, Answer)> {
    let flag = |name: &str| record.header.settings.get(name);
    let launched = flag("launches").is_some();
    let is_classic = flag("classic").is_some_and(|value| value == true);
    of_rows(experiment_of(record), &record.rows, is_classic, launched)
}

/// Claims that rows answer which are in no record yet, judged together.
pub fn of_rows(
    experiment: &str,
    rows: &[Row],
    is_classic: bool,
    launched: bool,
) -> Vec<(&'static Claim, Answer)> {
    let answers = |claim: &&Claim| {
        let name = claim.record.strip_suffix(CLASSIC);
        let asks = |found: &Experiment| found.answers_to(name.unwrap_or(&claim.record));
        name.is_some() == is_classic
            && (name.unwrap_or(&claim.record) == experiment
                || registry::of(experiment).is_some_and(asks))
    };
    let measured = all().filter(answers).map(|claim| (claim, claim.measured(rows)));
    let measured: Vec<_> = measured.filter(|(_, (cells, _))| !cells.is_empty()).collect();
    let judged = |claim: &Claim| claim.expect().filter(|_| claim.reads.has_ratios());
    let ratios: Vec<Vec<Ratios>> = measured
        .iter()
        .map(|(_, (cells, _))| cells.iter().map(|cell| cell.ratios.clone()).collect())
        .collect();
    let asked = measured.iter().zip(&ratios).filter_map(|((claim, _), cells)| {
        Some(Asked { expect: judged(claim)?, over: claim.over, cells })
    });
    let mut words = judge(&asked.collect::<Vec<_>>()).into_iter();
    let answer = |(claim, (cells, measured)): (&'static Claim, (Vec<Found>, Measured))| {
        let judged = match (claim.count(), judged(claim)) {
            (Some(count), _) => Judged::counted(count, cells.iter().map(|cell| &cell.ratios)),
            (None, expect) => expect.and_then(|_| words.next()).unwrap_or_default(),
        };
        (claim, Answer { cells, measured, judged, launched })
    };
    measured.into_iter().map(answer).collect()
}

/// Behind the name of an experiment whose record is by a document's own parameters.
const CLASSIC: &str = "-classic";

/// Every claim with what the records of a folder answer.
pub struct Answers {
    pub(super) rows: Vec<Answered>,
}

/// One claim with the answer of each CPU and the name of its record.
pub struct Answered {
    pub claim: &'static Claim,
    pub of_cpus: [Option<(Answer, String)>; CPUS.len()],
}

/// The records of a folder that claims may be answered from, the newest first, runs of chosen cells last.
pub(super) struct Shelf(pub(super) Vec<(String, Record)>);

impl Shelf {
    pub(super) fn new(folder: &Path) -> Result<Shelf, String> {
        let wanted = |name: &str| cpu_of(name).is_some();
        let mut records = record::folder(folder, wanted).map_err(|error| error.to_string())?;
        records.retain(|(_, record)| {
            registry::of(experiment_of(record)).is_some() || is_no_experiments(record)
        });
        records.sort_by(|(_, one), (_, other)| rank(one).cmp(&rank(other)));
        records.reverse();
        Ok(Shelf(records))
    }
}

/// The rank of a record among others that answer the same claims: runs of chosen sizes or operations are the lowest, as
/// their cells are not those of other CPUs; then its time and the number of its launches decide.
pub(super) fn rank(record: &Record) -> (bool, &str, u64) {
    let header = &record.header;
    let chooses =
        |word: &String| ["--op", "--size"].contains(&word.split('=').next().unwrap_or(word));
    let launches = header.settings.get("launches").and_then(serde_json::Value::as_u64);
    (!header.command.iter().any(chooses), &header.started, launches.unwrap_or(1))
}

/// Tells whether it is a record of the allocator of `linux/`'s kernel, of the one before it, or of scrubd's host, which are no experiments.
fn is_no_experiments(record: &Record) -> bool {
    let name = experiment_of(record);
    ["prezero-bench", "zeroed-bench"].contains(&name) || name.starts_with("scrubd-")
}

/// `2026-11-22-page-fault-zen5-guest` is of `zen5`.
fn cpu_of(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix("-guest")?;
    CPUS.iter().map(|(_, cpu)| *cpu).find(|cpu| name.ends_with(&format!("-{cpu}")))
}

impl Answers {
    /// Answers every claim from the records of a folder: from the newest of each CPU that has rows of it.
    ///
    /// # Errors
    /// The folder or a record cannot be read: its name and what was found.
    pub fn of(folder: &Path) -> Result<Answers, String> {
        let shelf = Shelf::new(folder)?;
        let empty = |claim| Answered { claim, of_cpus: [const { None }; CPUS.len()] };
        let mut rows: Vec<Answered> = all().map(empty).collect();
        for (name, record) in &shelf.0 {
            let Some(cpu) = CPUS.iter().position(|(_, cpu)| cpu_of(name) == Some(cpu)) else {
                continue;
            };
            for (claim, answer) in of_record(record) {
                let row = rows.iter_mut().find(|row| std::ptr::eq(row.claim, claim));
                let free = row.map(|row| &mut row.of_cpus[cpu]).filter(|free| free.is_none());
                free.into_iter().for_each(|free| *free = Some((answer.clone(), name.clone())));
            }
        }
        if rows.iter().all(|row| row.answers().next().is_none()) {
            let names: Vec<&str> = CPUS.iter().map(|(_, name)| *name).collect();
            return Err(format!(
                "{}: expected records of experiments by the name ...-CPU-guest.jsonl.gz, CPU being one of {}, found none",
                folder.display(),
                names.join(", ")
            ));
        }
        Ok(Answers { rows })
    }

    /// Claims for which no record of any CPU has a row: there should be none.
    pub fn without_rows(&self) -> Vec<&'static str> {
        let empty = self.rows.iter().filter(|row| row.answers().next().is_none());
        empty.map(|row| &*row.claim.asks).collect()
    }
}

/// The item of a row that no document asked for.
pub const OWN: &str = "own";

/// The word over CPUs, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub word: Word,
    /// The CPUs whose own word agrees with it, and those that have one.
    pub agreeing: usize,
    pub cpus: usize,
}

impl Answered {
    pub fn answers(&self) -> impl Iterator<Item = (&'static str, &Answer)> {
        let named = CPUS.iter().zip(&self.of_cpus);
        named.filter_map(|((name, _), found)| Some((*name, &found.as_ref()?.0)))
    }

    /// The values that were measured on any CPU.
    pub fn measured(&self) -> Measured {
        let mut all = Measured::default();
        self.answers().for_each(|(_, answer)| all.join(&answer.measured));
        all
    }

    /// The word over all CPUs; none where the document only asks. CPUs of single processes alone do not make an
    /// answer *depend*: a second start may change their figures more than anything between CPUs.
    pub fn verdict(&self) -> Option<Verdict> {
        let expect = self.claim.expect()?;
        let of = |launched: bool| -> Vec<Word> {
            let answers = self.answers().filter(|(_, answer)| answer.launched == launched);
            answers.filter_map(|(_, answer)| answer.word()).collect()
        };
        let joined = |words: &[Word]| joined(words, self.claim.over, expect);
        let (launched, single) = (of(true), of(false));
        let all = [&launched[..], &single].concat();
        let is_open = |word: Word| matches!(word, Word::Depends | Word::CannotTell);
        let mut word = joined(&all);
        if word == Word::Depends && !is_open(joined(&launched)) {
            let beside = |word: &Word| [&launched[..], &[*word]].concat();
            let agrees = |word: &&Word| joined(&beside(word)) != Word::Depends;
            let kept: Vec<Word> = single.iter().filter(agrees).copied().collect();
            word = joined(&[&launched[..], &kept].concat());
            word = if is_open(word) { joined(&launched) } else { word };
        }
        let agreeing = all.iter().filter(|own| agrees(**own, word)).count();
        Some(Verdict { word, agreeing, cpus: all.len() })
    }
}

/// Tells whether the word of one CPU is among those that an answer joins.
pub(super) fn agrees(own: Word, answer: Word) -> bool {
    match answer {
        Word::Some => matches!(own, Word::Some | Word::Confirmed),
        Word::Refuted => matches!(own, Word::Refuted | Word::Same | Word::Weaker),
        _ => own == answer,
    }
}

impl Verdict {
    /// The word and the number of CPUs, `confirmed (5 of 6 CPUs)`.
    pub fn text(self) -> String {
        let Verdict { word, agreeing, cpus } = self;
        match (word, cpus) {
            (_, 1) => format!("{} (one CPU)", word.name()),
            (Word::Depends | Word::CannotTell, _) => format!("{} ({cpus} CPUs)", word.name()),
            _ => format!("{} ({agreeing} of {cpus} CPUs)", word.name()),
        }
    }
}

impl Answer {
    /// The medians of its cells, the least first.
    pub(super) fn medians(&self) -> Vec<f64> {
        let mut medians: Vec<f64> = self.cells.iter().map(|cell| cell.ratios.median()).collect();
        medians.sort_unstable_by(f64::total_cmp);
        medians
    }

    /// The least and the greatest of its figures.
    pub fn figures(&self, claim: &Claim) -> String {
        if let (Reads::Spike, [launches]) = (&claim.reads, &self.cells[..]) {
            let found = launches.ratios.0.iter().sum::<f64>();
            return format!("{found:.0} of {}", launches.ratios.0.len());
        }
        let medians = self.medians();
        let figure = |value: f64| claim.reads.shown(value, &self.measured);
        range(medians[0], medians[medians.len() - 1], figure)
    }

    /// Its figures and its word, as rows and commands print them: in brackets where it rests on one process.
    pub fn text(&self, claim: &Claim) -> String {
        let figures = self.figures(claim);
        let Some(word) = self.judged.word else { return figures };
        let (all, count) = (self.judged.words.len(), |wanted: Word| {
            self.judged.words.iter().filter(|word| **word == wanted).count()
        });
        let counted = if word == Word::Depends { Word::Confirmed } else { word };
        let is_counted = word == Word::Depends || claim.over != Over::Most;
        let of = match self.judged.pooled {
            Some(mean) => format!(", mean {}", significant(mean)),
            None if is_counted && count(counted) < all => format!(" {}/{all}", count(counted)),
            None => String::new(),
        };
        match self.launched {
            true => format!("{figures} {}{of}", word.mark()),
            false => format!("{figures} ({}{of})", word.mark()),
        }
    }

    /// Its word; none where the document only asks.
    pub fn word(&self) -> Option<Word> {
        self.judged.word
    }

    /// Item, words, figures and bound in a sentence.
    pub fn sentence(&self, claim: &Claim) -> String {
        let words = claim.words(&self.measured);
        format!("{}: {words} Here {}{}", claim.item, self.text(claim), claim.ending())
    }
}

/// The least and the greatest of figures, or one where they are printed the same.
pub(super) fn range(least: f64, most: f64, figure: impl Fn(f64) -> String) -> String {
    match (figure(least), figure(most)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least}..{most}"),
    }
}
