//! The claims answered from a folder of records: a table, counts, and the list of items.

use super::claim::{Claim, Measured, Reads};
use super::items::{Item, Kind, items};
use super::rule::{Asked, Judged, Over, Ratios, Word, joined, judge};
use crate::experiment::Experiment;
use crate::registry;
use cachewise_measure::units::significant;
use cachewise_measure::{Record, Row, record};
use cachewise_report::rows::experiment_of;
use std::fmt::Write as _;
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

/// A column of figures in Markdown.
const NUMBERS: &str = "---:|";

pub fn all() -> impl Iterator<Item = &'static Claim> {
    static ALL: LazyLock<Vec<Claim>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("claims.json")).expect("claims, which a test has read")
    });
    ALL.iter()
}

/// The answer of one record to one claim.
#[derive(Clone, Debug)]
pub struct Answer {
    cells: Vec<Ratios>,
    measured: Measured,
    judged: Judged,
    /// True where its rounds are launches.
    launched: bool,
}

/// The claims that a record has rows of, judged together.
pub fn of_record(record: &Record) -> Vec<(&'static Claim, Answer)> {
    let flag = |name: &str| record.header.settings.get(name);
    let launched = flag("launches").is_some();
    let is_classic = flag("classic").is_some_and(|value| value == true);
    of_rows(experiment_of(record), &record.rows, is_classic, launched)
}

/// The same of rows that are in no record yet.
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
    let asked = measured.iter().filter_map(|(claim, (cells, _))| {
        Some(Asked { expect: judged(claim)?, over: claim.over, cells })
    });
    let mut words = judge(&asked.collect::<Vec<_>>()).into_iter();
    let answer = |(claim, (cells, measured)): (&'static Claim, (Vec<Ratios>, Measured))| {
        let judged = judged(claim).and_then(|_| words.next()).unwrap_or_default();
        (claim, Answer { cells, measured, judged, launched })
    };
    measured.into_iter().map(answer).collect()
}

/// Behind the name of an experiment whose record is by a document's own parameters.
const CLASSIC: &str = "-classic";

pub struct Answers {
    rows: Vec<(&'static Claim, [Option<Answer>; CPUS.len()])>,
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
        let mut rows: Vec<_> = all().map(|claim| (claim, [const { None }; CPUS.len()])).collect();
        for (name, record) in &shelf.0 {
            let Some(cpu) = CPUS.iter().position(|(_, cpu)| cpu_of(name) == Some(cpu)) else {
                continue;
            };
            for (claim, answer) in of_record(record) {
                let row = rows.iter_mut().find(|(known, _)| std::ptr::eq(*known, claim));
                let free = row.map(|(_, answers)| &mut answers[cpu]).filter(|free| free.is_none());
                free.into_iter().for_each(|free| *free = Some(answer.clone()));
            }
        }
        Ok(Answers { rows })
    }

    /// Claims for which no record of any CPU has a row: there should be none.
    pub fn without_rows(&self) -> Vec<&'static str> {
        let empty = self.rows.iter().filter(|(_, answers)| answers.iter().all(Option::is_none));
        empty.map(|(claim, _)| &*claim.asks).collect()
    }

    /// The number of claims for each answer, in a sentence.
    pub fn counts(&self) -> String {
        let of_documents = || self.rows.iter().filter(|(claim, _)| claim.item != OWN);
        let words: Vec<Option<Word>> = of_documents().map(word).collect();
        let of = |wanted: Option<Word>| words.iter().filter(|word| **word == wanted).count();
        let counted = Word::ALL.into_iter().filter(|word| of(Some(*word)) > 0);
        let counts: Vec<String> =
            counted.map(|word| format!("{} {}", word.name(), of(Some(word)))).collect();
        let empty = CPUS.iter().enumerate().map(|(at, (name, _))| {
            let none = of_documents().filter(|(_, answers)| answers[at].is_none()).count();
            format!("{name} {none}")
        });
        format!(
            "**Of {} rows: {}, asked {}. Rows without a figure: {}.**",
            words.len(),
            counts.join(", "),
            of(None),
            empty.collect::<Vec<_>>().join(", ")
        )
    }

    /// One line a question, as Markdown.
    pub fn short(&self) -> String {
        let mut text =
            String::from("|speed of the first over that of the second: 2 is twice as fast|");
        CPUS.iter().for_each(|(name, _)| _ = write!(text, "{name}|"));
        _ = writeln!(text, "item|\n|---|{}---|", NUMBERS.repeat(CPUS.len()));
        // Document 003 first: what it asks has the largest answer.
        let of = |document: &'static str| {
            self.rows.iter().filter(move |(claim, _)| claim.item.starts_with(document))
        };
        let ordered = ["003", "000", "001", "002", "004"].into_iter().flat_map(of);
        for (claim, answers) in ordered.filter(|(claim, _)| !claim.short.is_empty()) {
            _ = write!(text, "|{}|", measured(answers).named_in(&claim.short));
            for answer in answers {
                let shown = answer.as_ref().map_or("-".to_owned(), Answer::speeds);
                _ = write!(text, "{shown}|");
            }
            _ = writeln!(text, "{}|", claim.item);
        }
        text
    }

    /// The rows of one document, or those that no document asked (`own`), as Markdown.
    pub fn table(&self, document: &str) -> String {
        let is_own = document == OWN;
        let head = if is_own { "|sentence|" } else { "|item|sentence|theirs; yes|" };
        let mut text = head.to_owned();
        CPUS.iter().for_each(|(name, _)| _ = write!(text, "{name}|"));
        text.push_str(if is_own { "record|\n|---|" } else { "answer|record|\n|---|---|---:|" });
        _ = writeln!(
            text,
            "{}{}",
            NUMBERS.repeat(CPUS.len()),
            if is_own { "---|" } else { "---|---|" }
        );
        for row in self.rows.iter().filter(|(claim, _)| claim.item.starts_with(document)) {
            let (claim, answers) = row;
            let words = claim.words(&measured(answers));
            match is_own {
                true => _ = write!(text, "|{words}|"),
                false => _ = write!(text, "|{}|{words}|{}|", claim.item, claim.bounds()),
            }
            for answer in answers {
                let shown = answer.as_ref().map_or("-".to_owned(), |answer| answer.text(claim));
                _ = write!(text, "{shown}|");
            }
            if !is_own {
                _ = write!(text, "{}|", word(row).map_or("asked", Word::name));
            }
            _ = writeln!(text, "{}|", claim.record);
        }
        text
    }

    /// The items of one document as a Markdown list: those whose rows answer them by number, the others with what
    /// answers them.
    pub fn items(&self, document: &str) -> String {
        let of_document = || items().filter(|item| item.number.starts_with(document));
        let has_rows = |item: &Item| self.rows.iter().any(|(claim, _)| claim.item == item.number);
        let with_rows: Vec<&str> = of_document().filter(has_rows).map(|item| item.number).collect();
        let mut text = format!(
            "- Answered by rows of the [findings](findings.md): {}.\n",
            with_rows.join(", ")
        );
        for item in of_document().filter(|item| !item.answer.is_empty()) {
            _ = writeln!(text, "- {}: {}: {}.", item.number, said(&item), item.answer);
        }
        text
    }
}

/// An item's words, and whose they are.
fn said(item: &Item) -> String {
    match item.kind {
        Kind::Quoted => format!("\"{}\"", item.words),
        Kind::Inferred => format!("† {}", item.words),
        Kind::Elsewhere(source) => format!("{} ({source})", item.words),
    }
}

/// The item of a row that no document asked for.
pub const OWN: &str = "own";

/// The values that were measured on any CPU.
fn measured(answers: &[Option<Answer>]) -> Measured {
    let mut all = Measured::default();
    answers.iter().flatten().for_each(|answer| all.join(&answer.measured));
    all
}

/// The word over all CPUs; none where the document only asks.
fn word((claim, answers): &(&'static Claim, [Option<Answer>; CPUS.len()])) -> Option<Word> {
    claim.says.as_ref()?;
    let of_cpus: Vec<Word> =
        answers.iter().flatten().filter_map(|answer| answer.judged.word).collect();
    Some(joined(&of_cpus, claim.over))
}

impl Answer {
    /// The least and the greatest of its figures.
    fn figures(&self, claim: &Claim) -> String {
        if let (Reads::Spike, [launches]) = (&claim.reads, &self.cells[..]) {
            let found = launches.0.iter().sum::<f64>();
            return format!("{found:.0} of {}", launches.0.len());
        }
        let mut medians: Vec<f64> = self.cells.iter().map(Ratios::median).collect();
        medians.sort_unstable_by(f64::total_cmp);
        let figure = |value: f64| claim.reads.shown(value, &self.measured);
        match medians[..] {
            [first, .., last] if figure(first) != figure(last) => {
                format!("{}..{}", figure(first), figure(last))
            }
            _ => figure(medians[0]),
        }
    }

    /// The least and the greatest of its speeds: 1 over the times' ratio.
    fn speeds(&self) -> String {
        let speeds = self.cells.iter().map(|cell| 1.0 / cell.median());
        let mut speeds: Vec<f64> = speeds.collect();
        speeds.sort_unstable_by(f64::total_cmp);
        match speeds[..] {
            [first, .., last] if significant(first) != significant(last) => {
                format!("{}..{}", significant(first), significant(last))
            }
            _ => significant(speeds[0]),
        }
    }

    /// Its figures and its word, as findings and commands print them: in brackets where it rests on one process.
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

    /// The same in a sentence.
    pub fn sentence(&self, claim: &Claim) -> String {
        let words = claim.words(&self.measured);
        format!("{}: {words} Here {}{}", claim.item, self.text(claim), claim.ending())
    }
}
