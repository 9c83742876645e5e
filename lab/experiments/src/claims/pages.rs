//! Answers for readers: the short answer, a page for each document, and all rows as CSV and as a
//! page with filters.

use super::answers::{Answer, Answered, Answers, CPUS, OWN, agrees, range};
use super::claim::{Found, PHRASES, bound};
use super::rule::{Ratios, Word};
use crate::registry;
use cachewise_judge::interval;
use cachewise_measure::record::distinct;
use cachewise_measure::units::significant;
use cachewise_report::{Table, html};
use serde::Serialize;
use std::fmt::Write as _;

/// A row of a Markdown table.
fn line(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("|{}|\n", cells.join("|"))
}

/// The answer of a row that has no word.
const NO_WORD: [&str; 2] = ["asked", "not tested"];

impl Answered {
    /// The word and the number of CPUs; of a row without a word what it is.
    fn answer(&self) -> String {
        self.verdict().map_or_else(|| self.wordless().to_owned(), |verdict| verdict.text())
    }

    fn wordless(&self) -> &'static str {
        NO_WORD[usize::from(!self.claim.instead.is_empty())]
    }

    /// Figures over CPUs: one range where they agree, each word's range and CPUs where they do not.
    fn times(&self) -> String {
        let mut groups: Vec<(Option<Word>, Vec<f64>, Vec<String>)> = Vec::new();
        let answer = self.verdict().map(|verdict| verdict.word);
        let mut shown = None;
        for (cpu, found) in self.answers() {
            let own = found.word();
            // CPUs of words that the answer joins are one group, the first.
            let word = if own.zip(answer).is_some_and(|(own, answer)| agrees(own, answer)) {
                answer
            } else {
                own
            };
            let name = if found.launched { cpu.to_owned() } else { format!("{cpu}*") };
            let medians = found.medians();
            match groups.iter_mut().find(|(known, ..)| *known == word) {
                Some((_, of_group, names)) => {
                    of_group.extend(medians);
                    names.push(name);
                }
                None => groups.push((word, medians, vec![name])),
            }
            shown.get_or_insert(found);
        }
        let Some(found) = shown else { return "-".to_owned() };
        let figure = |value: f64| self.claim.reads.shown(value, &found.measured);
        let of = |values: &[f64]| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            range(least, values.iter().copied().fold(0.0, f64::max), figure)
        };
        groups.sort_by_key(|(word, ..)| (*word != answer, *word));
        // The largest group needs no names where it is the answer's.
        let most = groups.iter().map(|(.., names)| names.len()).max();
        let texts = groups.iter().map(|(word, values, names)| {
            let is_plain = *word == answer && answer != Some(Word::Depends);
            match word {
                Some(word) if groups.len() > 1 && !(is_plain && Some(names.len()) == most) => {
                    format!("{} {} ({})", word.mark(), of(values), names.join(", "))
                }
                _ => of(values),
            }
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    /// The sentence with the sizes that were measured.
    fn asks(&self) -> String {
        self.measured().named_in(&self.claim.asks)
    }

    fn said(&self) -> String {
        match (&*self.claim.quote, &*self.claim.means) {
            ("", _) => String::new(),
            (quote, "") => format!("\"{quote}\""),
            (quote, means) => format!("\"{quote}\" ({means})"),
        }
    }
}

impl Answers {
    fn rows_of<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a Answered> {
        self.rows.iter().filter(move |row| row.claim.item.starts_with(document))
    }

    /// The number of rows for each answer, in a sentence.
    pub fn counts(&self) -> String {
        let rows: Vec<&Answered> = self.rows.iter().filter(|row| row.claim.item != OWN).collect();
        let with = |wanted: Word| {
            let verdicts = rows.iter().filter_map(|row| row.verdict());
            let found: Vec<usize> =
                verdicts.filter(|one| one.word == wanted).map(|one| one.cpus).collect();
            let alone = found.iter().filter(|cpus| **cpus == 1).count();
            let alone = if alone > 0 { format!(" ({alone} by one CPU)") } else { String::new() };
            (!found.is_empty()).then(|| format!("{} {}{alone}", wanted.name(), found.len()))
        };
        let words: Vec<String> = Word::ALL.into_iter().filter_map(with).collect();
        let wordless = NO_WORD.map(|name| {
            let of_kind =
                rows.iter().filter(|row| row.verdict().is_none() && row.wordless() == name);
            format!("{name} {}", of_kind.count())
        });
        let empty = CPUS.iter().enumerate().map(|(at, (name, _))| {
            format!("{name} {}", rows.iter().filter(|row| row.of_cpus[at].is_none()).count())
        });
        format!(
            "**Of {} rows: {}, {}. Rows without a figure: {}.**",
            rows.len(),
            words.join(", "),
            wordless.join(", "),
            empty.collect::<Vec<_>>().join(", ")
        )
    }

    /// One line a question, as Markdown.
    pub fn short(&self) -> String {
        let mut heads = vec!["time of the first over that of the second: 0.5 is half the time"];
        heads.extend(CPUS.map(|(name, _)| name));
        heads.push("item");
        let mut rules = ["---:"; CPUS.len() + 2];
        (rules[0], rules[CPUS.len() + 1]) = ("---", "---");
        let mut text = line(&heads) + &line(&rules);
        // Document 003 first: what it asks has the largest answer.
        let ordered =
            ["003", "000", "001", "002", "004"].into_iter().flat_map(|name| self.rows_of(name));
        for row in ordered.filter(|row| !row.claim.short.is_empty()) {
            let mut cells = vec![row.measured().named_in(&row.claim.short)];
            cells.extend(row.of_cpus.iter().map(|found| match found {
                Some((answer, _)) => answer.figures(row.claim),
                None => "-".to_owned(),
            }));
            cells.push(row.claim.item.clone());
            text += &line(&cells);
        }
        text
    }

    /// A document's main answers, as Markdown, and the commands that ask them.
    pub fn page(&self, document: &str) -> String {
        let mut text = line(&["item", "he says", "measured", "answer", "times"])
            + &line(&["---", "---", "---", "---", "---:"]);
        let mut commands = Vec::new();
        let mut said = String::new();
        for row in self.rows_of(document) {
            // A row without words of its own is about those above it.
            said = if row.claim.quote.is_empty() { said } else { row.said() };
            if !row.claim.page {
                continue;
            }
            let (answer, asks) = (row.answer(), row.asks());
            text += &line(&[
                &*row.claim.item,
                &*said,
                &*asks,
                &*format!("**{answer}**"),
                &*row.times(),
            ]);
            commands.extend(command(&row.claim.record));
        }
        let commands: Vec<String> =
            distinct(commands).iter().map(|one| format!("`{one}`")).collect();
        _ = write!(text, "\n\\*: one process. Try it: {}.\n", commands.join(", "));
        text
    }

    /// The bounds of phrases, as Markdown.
    pub fn phrases(&self) -> String {
        let rows = PHRASES.iter().map(|(_, words, expect)| line(&[*words, &*bound(*expect)]));
        line(&["words", "yes"]) + &line(&["---", "---:"]) + &rows.collect::<String>()
    }

    /// All rows, a line each.
    pub fn table(&self) -> Table {
        let mut heads = vec!["item", "he says", "measured", "theirs", "yes", "answer", "times"];
        heads.extend(CPUS.map(|(name, _)| name));
        heads.extend(["not tested, because", "record"]);
        let mut table = Table::new("", &heads);
        for row in &self.rows {
            let claim = row.claim;
            let yes = claim.expect().map(bound).unwrap_or_default();
            let mut cells = vec![claim.item.clone(), row.said(), row.asks()];
            cells.extend([claim.theirs().unwrap_or_default(), yes, row.answer(), row.times()]);
            cells.extend(row.of_cpus.iter().map(|found| match found {
                Some((answer, _)) => answer.text(claim),
                None => "-".to_owned(),
            }));
            cells.extend([claim.instead.clone(), claim.record.clone()]);
            table.push(cells);
        }
        table
    }

    /// All rows as one page: filters by document, answer and CPU; behind each row its cells.
    ///
    /// # Errors
    /// The template and this function disagree, which a test would have shown.
    pub fn html(&self) -> Result<String, minijinja::Error> {
        let documents: Vec<&str> =
            distinct(self.rows.iter().map(|row| document_of(&row.claim.item)));
        let words: Vec<(String, &str)> = Word::ALL
            .map(Word::name)
            .into_iter()
            .chain(NO_WORD)
            .map(|name| (class(name), name))
            .collect();
        let filters = [
            Filter::new("document", documents.iter().map(|name| (format!("d{name}"), *name))),
            Filter::new("answer", words.iter().map(|(class, name)| (class.clone(), *name))),
            Filter::new("CPU", CPUS.iter().map(|(name, class)| ((*class).to_owned(), *name))),
        ];
        let mut style = String::new();
        for (filter, at) in filters.iter().zip(1..) {
            for (class, _) in &filter.choices {
                let others =
                    |what: &str| format!("main:has(#f{at}-{class}:checked) .{what}:not(.{class})");
                let cpus = if filter.name == "CPU" { others("cpu") + "," } else { String::new() };
                _ = writeln!(style, "{cpus}{}{{display:none}}", others("row"));
            }
        }
        let title = "Cachewise: all answers";
        let first = ("rows", "To the rows");
        let head = html::Head { title, brand: title, first, written: "", style };
        let rows = self.rows.iter().map(Entry::of).collect();
        html::render(head, include_str!("rows.html"), Sheet { filters, rows })
    }
}

/// Command that measures a record again; none where no command does.
fn command(record: &str) -> Option<String> {
    let (name, classic) = match record.strip_suffix("-classic") {
        Some(name) => (name, " --classic"),
        None => (record, ""),
    };
    let found = registry::of(name).filter(|found| found.is_here())?;
    Some(format!("cachewise run {}{classic}", found.words()))
}

/// `000` of `000.12`.
fn document_of(item: &str) -> &str {
    item.split('.').next().unwrap_or(item)
}

/// A word as a class of the page's style.
fn class(word: &str) -> String {
    format!("w-{}", word.replace(' ', "-"))
}

/// Values of the template of all rows.
#[derive(Serialize)]
struct Sheet<'a> {
    filters: [Filter; 3],
    rows: Vec<Entry<'a>>,
}

/// A choice among classes of rows.
#[derive(Serialize)]
struct Filter {
    name: &'static str,
    choices: Vec<(String, String)>,
}

impl Filter {
    fn new<'n>(name: &'static str, choices: impl Iterator<Item = (String, &'n str)>) -> Filter {
        Filter { name, choices: choices.map(|(class, name)| (class, name.to_owned())).collect() }
    }
}

/// One row of the page.
#[derive(Serialize)]
struct Entry<'a> {
    classes: String,
    item: &'a str,
    said: String,
    asks: String,
    answer: String,
    times: String,
    theirs: Option<String>,
    yes: Option<String>,
    instead: &'a str,
    cpus: Vec<OfCpu<'a>>,
}

/// The answer of one CPU, cell by cell.
#[derive(Serialize)]
struct OfCpu<'a> {
    class: &'static str,
    name: &'static str,
    text: String,
    record: &'a str,
    /// Cell, ratio, interval, word.
    cells: Vec<[String; 4]>,
}

impl Entry<'_> {
    fn of(row: &Answered) -> Entry<'_> {
        let claim = row.claim;
        let mut cpus = Vec::new();
        for ((name, class), found) in CPUS.into_iter().zip(&row.of_cpus) {
            let Some((answer, record)) = found else { continue };
            let words = answer.judged.words.iter().map(|word| word.mark());
            let cell = |(cell, word): (&Found, &str)| {
                let figure = claim.reads.shown(cell.ratios.median(), &answer.measured);
                [cell.cell.clone(), figure, interval_of(answer, &cell.ratios), word.to_owned()]
            };
            let cells = answer.cells.iter().zip(words.chain(std::iter::repeat(""))).map(cell);
            let (text, cells) = (answer.text(claim), cells.collect());
            cpus.push(OfCpu { class, name, text, record, cells });
        }
        let word = row.verdict().map_or(row.wordless(), |verdict| verdict.word.name());
        let mut classes = format!("d{} {}", document_of(&claim.item), class(word));
        cpus.iter().for_each(|cpu| classes += &format!(" {}", cpu.class));
        Entry {
            classes,
            item: &claim.item,
            said: row.said(),
            asks: row.asks(),
            answer: row.answer(),
            times: row.times(),
            theirs: claim.theirs(),
            yes: claim.expect().map(bound),
            instead: &claim.instead,
            cpus,
        }
    }
}

/// The 95 % interval of a cell, by launches or rounds; empty of a single figure.
fn interval_of(answer: &Answer, ratios: &Ratios) -> String {
    if ratios.0.len() < 2 {
        return String::new();
    }
    let ratio = interval::paired(&ratios.0);
    let (low, high) = (significant(ratio.low), significant(ratio.high));
    let rounds = if answer.launched { "launches" } else { "rounds" };
    format!("{low} .. {high} ({} {rounds})", ratios.0.len())
}
