//! The claims answered from a folder of records: a table, counts, and the list of items.

use super::claim::{Claim, Expect, Measured, Reads, Word};
use super::items::{Item, Kind, items};
use crate::registry;
use cachewise_judge::family;
use cachewise_measure::units::significant;
use cachewise_measure::{Record, record};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The CPUs of the records: their names in tables and in file names.
pub const CPUS: [(&str, &str); 5] = [
    ("Zen 3", "zen3"),
    ("Cascade Lake", "cascade-lake"),
    ("Zen 4", "zen4"),
    ("Zen 5", "zen5"),
    ("Emerald Rapids", "emerald-rapids"),
];

/// A column of figures in Markdown.
const NUMBERS: &str = "---:|";

/// All claims, by document.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    static ALL: LazyLock<Vec<Claim>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("claims.json")).expect("claims, which a test has read")
    });
    ALL.iter()
}

/// What one CPU says about one claim.
#[derive(Clone, Debug, Default)]
struct Answer {
    cells: Vec<Measured>,
    words: Vec<Word>,
    /// Whether its rounds are launches.
    launched: bool,
}

/// All claims, answered.
pub struct Answers {
    rows: Vec<(&'static Claim, [Option<Answer>; CPUS.len()])>,
}

/// The records of a folder that claims may be answered from, the newest first.
pub(super) struct Shelf(Vec<(String, Record)>);

impl Shelf {
    pub(super) fn new(folder: &Path) -> Result<Shelf, String> {
        let wanted = |name: &str| parts(name).is_some_and(|(what, _)| !what.starts_with("tune"));
        let mut records = record::folder(folder, wanted).map_err(|error| error.to_string())?;
        records.reverse();
        Ok(Shelf(records))
    }

    /// Those of an experiment on a CPU.
    fn records(&self, experiment: &str, cpu: &str) -> impl Iterator<Item = &(String, Record)> {
        let is_its = move |(what, of): (&str, &str)| {
            let asks = registry::of(what).is_some_and(|found| found.answers_to(experiment));
            of == cpu && (what == experiment || asks)
        };
        self.0.iter().filter(move |(name, _)| parts(name).is_some_and(is_its))
    }

    /// The newest of them; none where there is none.
    pub(super) fn newest(&self, experiment: &str, cpu: &str) -> Option<&Record> {
        self.records(experiment, cpu).next().map(|(_, record)| record)
    }

    /// What the newest record with such rows says.
    fn answer(&self, claim: &Claim, cpu: &str) -> Option<Answer> {
        self.records(&claim.record, cpu).find_map(|(_, record)| {
            let cells = claim.measured(&record.rows);
            let launched = record.header.settings.contains_key("launches");
            (!cells.is_empty()).then_some(Answer { cells, words: Vec::new(), launched })
        })
    }
}

/// `2026-11-22-page-fault-zen5-guest` is of `page-fault` on `zen5`.
fn parts(name: &str) -> Option<(&str, &str)> {
    let after_date = name.get("2026-11-22-".len()..)?.strip_suffix("-guest")?;
    CPUS.iter().find_map(|(_, cpu)| Some((after_date.strip_suffix(cpu)?.strip_suffix('-')?, *cpu)))
}

impl Answers {
    /// Answers every claim from the records of a folder.
    ///
    /// # Errors
    /// The folder or a record cannot be read: its name and what was found.
    pub fn of(folder: &Path) -> Result<Answers, String> {
        let shelf = Shelf::new(folder)?;
        let mut rows = Vec::new();
        for claim in all() {
            let mut answers = [const { None }; CPUS.len()];
            for (answer, (_, cpu)) in answers.iter_mut().zip(CPUS) {
                *answer = shelf.answer(claim, cpu);
            }
            rows.push((claim, answers));
        }
        let mut answers = Answers { rows };
        (0..CPUS.len()).for_each(|cpu| answers.judge(cpu));
        Ok(answers)
    }

    /// Words for all cells of a CPU, corrected for how many they are.
    fn judge(&mut self, cpu: usize) {
        let mut sides = Vec::new();
        for (claim, answers) in &self.rows {
            let Some((expect, answer)) = claim.expect.zip(answers[cpu].as_ref()) else { continue };
            sides.extend(answer.cells.iter().map(|cell| cell.side(expect)));
        }
        let p: Vec<f64> = sides.iter().map(|(_, p)| *p).collect();
        let told = sides.iter().zip(family::discoveries(&p));
        let mut words =
            told.map(|((word, _), stands)| if stands { *word } else { Word::CannotTell });
        for (claim, answers) in &mut self.rows {
            if let Some((_, answer)) = claim.expect.zip(answers[cpu].as_mut()) {
                answer.words = words.by_ref().take(answer.cells.len()).collect();
            }
        }
    }

    /// Claims for which no record of any CPU has a row: there should be none.
    pub fn without_rows(&self) -> Vec<&'static str> {
        let empty = self.rows.iter().filter(|(_, answers)| answers.iter().all(Option::is_none));
        empty.map(|(claim, _)| &*claim.asks).collect()
    }

    /// How many claims have which answer, in a sentence.
    pub fn counts(&self) -> String {
        let words: Vec<Option<Word>> = self.rows.iter().map(word).collect();
        let of = |wanted: Option<Word>| words.iter().filter(|word| **word == wanted).count();
        let all = [Word::Confirmed, Word::Weaker, Word::Refuted, Word::Depends, Word::CannotTell];
        let counts = all.map(|word| format!("{} {}", word.name(), of(Some(word)))).join(", ");
        let empty: Vec<String> = CPUS
            .iter()
            .enumerate()
            .map(|(at, (name, _))| {
                let none = self.rows.iter().filter(|(_, answers)| answers[at].is_none()).count();
                format!("{name} {none}")
            })
            .collect();
        format!(
            "**Of {} rows: {counts}, asked {}. Rows without a figure: {}.**",
            words.len(),
            of(None),
            empty.join(", ")
        )
    }

    /// One line a question, as Markdown.
    pub fn short(&self) -> String {
        let mut text = String::from("|times of the first over the second|");
        CPUS.iter().for_each(|(name, _)| _ = write!(text, "{name}|"));
        _ = writeln!(text, "item|\n|---|{}---|", NUMBERS.repeat(CPUS.len()));
        // Document 003 first: what it asks has the largest answer.
        let of = |document: &'static str| {
            self.rows.iter().filter(move |(claim, _)| claim.item.starts_with(document))
        };
        let ordered = ["003", "000", "001", "002", "004"].into_iter().flat_map(of);
        for (claim, answers) in ordered.filter(|(claim, _)| !claim.short.is_empty()) {
            _ = write!(text, "|{}|", claim.short);
            for answer in answers {
                let shown = answer.as_ref().map_or("-".to_owned(), |answer| figures(claim, answer));
                _ = write!(text, "{shown}|");
            }
            _ = writeln!(text, "{}|", claim.item);
        }
        text
    }

    /// The rows of one document, or of all, as Markdown.
    pub fn table(&self, document: &str) -> String {
        let mut text = String::from("|item|claim|theirs|");
        CPUS.iter().for_each(|(name, _)| _ = write!(text, "{name}|"));
        _ = writeln!(text, "answer|record|\n|---|---|{}---|---|", NUMBERS.repeat(CPUS.len() + 1));
        for row in self.rows.iter().filter(|(claim, _)| claim.item.starts_with(document)) {
            let (claim, answers) = row;
            let quote =
                if claim.quote.is_empty() { String::new() } else { format!("\"{}\"", claim.quote) };
            let both = !quote.is_empty() && !claim.asks.is_empty();
            let asks = if both { format!("{quote} ({})", claim.asks) } else { quote + &claim.asks };
            _ = write!(text, "|{}|{asks}|{}|", claim.item, claim.theirs);
            for answer in answers {
                let shown = answer.as_ref().map_or("-".to_owned(), |answer| cell(claim, answer));
                _ = write!(text, "{shown}|");
            }
            let word = word(row).map_or("asked", Word::name);
            _ = writeln!(text, "{word}|{}|", claim.record);
        }
        text
    }

    /// The items of one document as a Markdown list, each with what answers it.
    pub fn items(&self, document: &str) -> String {
        let mut text = String::new();
        for item in items().filter(|item| item.number.starts_with(document)) {
            let of_item = self.rows.iter().filter(|(claim, _)| claim.item == item.number);
            let records: std::collections::BTreeSet<&str> =
                of_item.map(|(claim, _)| &*claim.record).collect();
            let records: Vec<String> =
                records.into_iter().map(|name| format!("`{name}`")).collect();
            let answer = match (item.answer, records.is_empty()) {
                (answer, true) => answer.to_owned(),
                ("", false) => records.join(", "),
                (answer, false) => format!("{}; {answer}", records.join(", ")),
            };
            _ = writeln!(text, "- {}: {}: {answer}.", item.number, said(&item));
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

/// The word over all CPUs; none where the document only asks.
fn word((claim, answers): &(&'static Claim, [Option<Answer>; CPUS.len()])) -> Option<Word> {
    claim.expect?;
    let of_cpus: Vec<Word> =
        answers.iter().flatten().map(|answer| together(claim, &answer.words)).collect();
    Some(joined(&of_cpus))
}

/// The word over a CPU's cells. Of an existential claim one cell decides.
fn together(claim: &Claim, words: &[Word]) -> Word {
    let exists = matches!(claim.expect, Some(Expect::SomeAtLeast(_)));
    match exists && words.contains(&Word::Confirmed) {
        true => Word::Confirmed,
        false => joined(words),
    }
}

/// The word that all share who can tell, or it depends. Those who cannot tell contradict nobody, but more than
/// half of them leave the whole open.
fn joined(words: &[Word]) -> Word {
    let told: Vec<Word> = words.iter().copied().filter(|word| *word != Word::CannotTell).collect();
    match told[..] {
        [first, ref rest @ ..] if rest.iter().any(|word| *word != first) => Word::Depends,
        [first, ..] if 2 * told.len() >= words.len() => first,
        _ => Word::CannotTell,
    }
}

/// The least and the greatest of a CPU's figures.
fn figures(claim: &Claim, answer: &Answer) -> String {
    let mut medians: Vec<f64> = answer.cells.iter().map(Measured::median).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let figure = |value: f64| match &claim.reads {
        Reads::Figure(name) if name.contains("share") || name.starts_with("within_") => {
            format!("{:.0} %", value * 100.0)
        }
        _ => significant(value),
    };
    match medians[..] {
        [first, .., last] => format!("{}..{}", figure(first), figure(last)),
        _ => figure(medians[0]),
    }
}

/// A CPU's figures and its word.
fn cell(claim: &Claim, answer: &Answer) -> String {
    let figures = figures(claim, answer);
    if claim.expect.is_none() {
        return figures;
    }
    let word = together(claim, &answer.words);
    let count = |wanted: Word| answer.words.iter().filter(|word| **word == wanted).count();
    let of = match (answer.words.len(), word) {
        (1, _) | (_, Word::CannotTell) => String::new(),
        (all, Word::Depends) => format!(" {}/{all}", count(Word::Confirmed)),
        (all, word) if count(word) == all => String::new(),
        (all, word) => format!(" {}/{all}", count(word)),
    };
    match answer.launched {
        true => format!("{figures} {}{of}", word.mark()),
        false => format!("{figures} ({}{of})", word.mark()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Word::*, *};

    #[test]
    fn who_cannot_tell_contradicts_nobody_and_more_than_half_of_them_leave_it_open() {
        for (words, expected) in [
            (&[][..], CannotTell),
            (&[Confirmed], Confirmed),
            (&[Refuted, CannotTell, Refuted], Refuted),
            (&[Weaker, CannotTell], Weaker),
            (&[Confirmed, CannotTell, CannotTell], CannotTell),
            (&[CannotTell; 3], CannotTell),
            (&[Confirmed, Weaker], Depends),
            (&[Confirmed, Refuted, CannotTell, CannotTell, CannotTell], Depends),
            // A CPU whose cells differ.
            (&[Depends, CannotTell], Depends),
            (&[Confirmed, Depends], Depends),
        ] {
            assert_eq!(joined(words), expected, "{words:?}");
        }
    }
}
