//! The items of the five source documents: where each is answered, or why it is not.
//!
//! `docs/checklist.md` lists them. An item is answered where a row of a table in `docs/findings.md`
//! begins with it and names, in its last column, records that are there; a row may say "no record" and
//! so does not count. Each row of the table of claims gives one of [`ANSWERS`]; their totals stand above
//! the table, once. A CPU's figure needs a record of that CPU among those named, or says in its cell
//! that it is "by a small program". What was not tested is listed with its reason below [`NOT_TESTED`], an item without a row
//! among it.

use crate::command::files_in;
use anyhow::{Result, bail, ensure};
use cachewise_measure::record;
use fs_err as fs;
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// The heading of the list of what is left out.
const NOT_TESTED: &str = "## Not tested, and why";

/// How the answer to a claim begins.
const ANSWERS: [&str; 6] =
    ["confirmed", "refuted", "depends", "cannot tell", "question", "not tested"];

/// Cells of a row of the table of claims: item, claim, figure, four CPUs, answer, record.
const CLAIM_CELLS: usize = 9;
/// Of the other table: items, what there is, record.
const OTHER_CELLS: usize = 3;
const CPUS: [&str; 4] = ["Zen 3", "Cascade Lake", "Zen 4", "Zen 5"];
/// The same in the names of records.
const IN_NAMES: [&str; 4] = ["zen3", "cascade-lake", "zen4", "zen5"];
/// What a cell says of a figure that has no record.
const UNRECORDED: &str = "by a small program";
/// How the sentence with the totals begins.
const TOTALS: &str = "**Of ";

/// What the findings say about the items.
#[derive(Default)]
struct Findings {
    /// Records by item.
    answered: BTreeMap<String, BTreeSet<String>>,
    /// Reasons by item.
    reasons: BTreeMap<String, String>,
    /// Rows by their answer.
    totals: BTreeMap<&'static str, usize>,
    /// Rows without a figure by CPU.
    empty: [usize; CPUS.len()],
    /// Rows that are none: too many or too few cells, an unknown answer, one that is there twice.
    unclear: Vec<String>,
    /// Items, CPU and records of each figure of the table of claims.
    figures: Vec<(String, usize, Vec<String>)>,
    /// The lines of the list of what was not tested.
    not_tested: Vec<String>,
}

impl Findings {
    /// The sentence above the table.
    fn sentence(&self) -> String {
        let all: usize = self.totals.values().sum();
        let of = |answer| self.totals.get(answer).copied().unwrap_or(0);
        let counts = ANSWERS.map(|answer| format!("{answer} {}", of(answer))).join(", ");
        let empty = CPUS.iter().zip(self.empty).map(|(cpu, rows)| format!("{cpu} {rows}"));
        let empty = empty.collect::<Vec<_>>().join(", ");
        format!("**Of {all} rows: {counts}. Rows without a figure: {empty}.**")
    }
}

/// Prints every item with its records or the reason, and last those not answered; an error if one has
/// neither, or a record that is named is not there.
pub fn run() -> Result<()> {
    let root = crate::command::root();
    let listed = items_of_list(&fs::read_to_string(root.join("docs/checklist.md"))?);
    let text = fs::read_to_string(root.join("docs/findings.md"))?;
    let findings = findings(&text);
    let mut names: Vec<String> =
        record::folder(&root.join("record"), |_| true)?.into_iter().map(|(name, _)| name).collect();
    let others = files_in(&root.join("record"), "", "")?;
    names.extend(others.iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())));
    let records: Vec<(String, usize)> =
        names.iter().filter_map(|name| name_and_cpu(name)).collect();
    let there = |name: &str| records.iter().any(|(known, _)| known == name);
    let mut missing = Vec::new();
    for (first, cpu, names) in &findings.figures {
        if !names.iter().any(|name| records.contains(&(name.clone(), *cpu))) {
            let (names, cpu) = (names.join(", "), CPUS[*cpu]);
            missing.push(format!("{first}: {names} on {cpu}, whose figure the row gives"));
        }
    }
    let twice = listed.iter().enumerate().find(|(at, item)| listed[..*at].contains(item));
    if let Some((_, item)) = twice {
        bail!("docs/checklist.md: {item} is there twice");
    }
    let mut unanswered = Vec::new();
    for item in &listed {
        match (findings.answered.get(item), findings.reasons.get(item)) {
            (Some(names), _) => {
                let names: Vec<String> = names.iter().cloned().collect();
                println!("{item}: {}", names.join(", "));
                missing.extend(names.into_iter().filter(|name| !there(name)));
            }
            (None, Some(reason)) => unanswered.push(format!("{item}: {reason}")),
            (None, None) => missing.push(format!("{item} (neither row nor reason)")),
        }
    }
    println!("\nanswered: {} of {} items", findings.answered.len(), listed.len());
    println!("not answered: {}", unanswered.len());
    unanswered.iter().for_each(|line| println!("  {line}"));
    println!("\n{}", findings.sentence().trim_matches('*'));
    println!("not tested, and why:");
    findings.not_tested.iter().for_each(|line| println!("  {line}"));
    ensure!(
        findings.unclear.is_empty(),
        "docs/findings.md: found {}; accepted: {CLAIM_CELLS} cells, of which the eighth begins \
         with one of {}, or {OTHER_CELLS} cells, and no row twice",
        findings.unclear.join("; "),
        ANSWERS.join(", ")
    );
    let totals: Vec<&str> = text.lines().filter(|line| line.contains(TOTALS)).collect();
    let sentence = findings.sentence();
    ensure!(
        totals == [&sentence],
        "docs/findings.md: accepted above the table of claims: {sentence}"
    );
    if let Some(item) = findings.answered.keys().find(|item| !listed.contains(item)) {
        bail!("docs/findings.md: {item} is not in docs/checklist.md");
    }
    ensure!(missing.is_empty(), "docs/findings.md: not there: {}", missing.join(", "));
    Ok(())
}

/// `2026-11-22-page-fault-zen5-guest` is the record `page-fault` of the fourth CPU.
fn name_and_cpu(file: &str) -> Option<(String, usize)> {
    let stem = file.strip_suffix("-guest")?;
    let name_and_cpu = stem.get("2026-11-22-".len()..)?;
    IN_NAMES.iter().enumerate().find_map(|(cpu, of_cpu)| {
        Some((name_and_cpu.strip_suffix(of_cpu)?.strip_suffix('-')?.to_owned(), cpu))
    })
}

/// The lines `- 002.4: what` of the checklist.
fn items_of_list(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    lines.flat_map(|(item, _)| items(item)).collect()
}

/// The items a text cites: `002.4`, and all of `000.1-7`.
fn items(text: &str) -> Vec<String> {
    let citation = Regex::new(r"\b(00[0-4])\.(\d{1,2})(?:-(\d{1,2}))?\b").expect("a pattern");
    let mut found = Vec::new();
    for parts in citation.captures_iter(text) {
        let number = |index| parts.get(index).and_then(|text| text.as_str().parse::<u32>().ok());
        if let Some(first) = number(2) {
            let last = number(3).unwrap_or(first);
            found.extend((first..=last).map(|item| format!("{}.{item}", &parts[1])));
        }
    }
    found
}

/// The rows of tables that begin with items, and the list of reasons.
fn findings(text: &str) -> Findings {
    let mut found = Findings::default();
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    let (body, left_out) = text.split_once(NOT_TESTED).unwrap_or((text, ""));
    for line in body.lines().filter(|line| line.starts_with("| 00")) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let (Some(&first), Some(last)) = (cells.first(), cells.last()) else { continue };
        let names: Vec<String> = last.split(", ").map(str::to_owned).collect();
        if ![OTHER_CELLS, CLAIM_CELLS].contains(&cells.len()) {
            found.unclear.push(format!("{} cells for {first}", cells.len()));
        }
        if !known.insert((first, cells.get(1).copied().unwrap_or(""))) {
            found.unclear.push(format!("{first} twice with the same words"));
        }
        let mut tested = true;
        if let [_, _, _, figures @ .., answer, _] = &cells[..]
            && cells.len() == CLAIM_CELLS
        {
            // `refuted` or `refuted: why`, not `refutedly`.
            let begins = |known: &&str| {
                let rest = answer.strip_prefix(*known);
                rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            match ANSWERS.into_iter().find(begins) {
                Some(known) => *found.totals.entry(known).or_default() += 1,
                None => found.unclear.push(format!("\"{answer}\" for {first}")),
            }
            tested = !answer.starts_with("not tested");
            for (cpu, cell) in figures.iter().enumerate() {
                if *cell == "-" {
                    found.empty[cpu] += 1;
                } else if !cell.contains(UNRECORDED) {
                    found.figures.push((first.to_owned(), cpu, names.clone()));
                }
            }
        }
        if last.contains("no record") || !tested {
            continue;
        }
        for item in items(first) {
            found.answered.entry(item).or_default().extend(names.iter().cloned());
        }
    }
    for line in left_out.lines() {
        let Some(line) = line.strip_prefix("- ") else { continue };
        found.not_tested.push(line.to_owned());
        if let Some((item, reason)) =
            line.split_once(": ").filter(|(_, why)| !why.trim().is_empty())
        {
            found.reasons.extend(items(item).into_iter().map(|item| (item, reason.to_owned())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_the_source_documents_has_a_finding_with_a_record_or_a_reason() {
        run().expect("the printed list says which have not");
    }

    #[test]
    fn only_a_row_with_a_record_answers() {
        let text = "in prose 001.1\n| item | record |\n| 001.2, 002.4-5 | yes | roofline, peers |\n\
                    | 001.3 | yes | a program, no record |\n## Not tested, and why\n- 001.4: too hard\n\
                    - 001.5: \n";
        let found = findings(text);
        let answered: Vec<_> = found.answered.keys().collect();
        assert_eq!(answered, ["001.2", "002.4", "002.5"]);
        assert_eq!(Vec::from_iter(&found.answered["001.2"]), ["peers", "roofline"]);
        assert_eq!(found.reasons.len(), 1);
        assert_eq!(found.not_tested, ["001.4: too hard", "001.5: "]);
        assert!(found.totals.is_empty(), "short rows are no claims");
        let claims = "| 001.1 | c | 2 | 1 | - | 4 | 3 | refuted: no | no record |\n\
                      | 001.2 | c | 2 | - | - | - | 3 | perhaps | a |\n";
        let found = super::findings(claims);
        assert_eq!((found.totals["refuted"], found.empty), (1, [1, 2, 1, 0]));
        assert_eq!(found.unclear, ["\"perhaps\" for 001.2"]);
        assert!(found.sentence().starts_with("**Of 1 rows: confirmed 0, refuted 1,"));
        assert_eq!(found.figures.len(), 4, "three and one, each with its records");
        assert!(found.answered.contains_key("001.2"));
        assert_eq!(items_of_list("- 000.1: a\n- 000.2: b 000.9\n"), items("000.1-2"));
    }

    #[test]
    fn what_looks_like_an_answer_and_is_none_does_not_count() {
        let of = |line: &str| findings(line);
        let untested =
            of("| 003.14 | lmbench | 1 | - | - | - | - | not tested: no kernel | page-fault |\n");
        assert!(untested.answered.is_empty(), "a row that was not tested answers nothing");
        let split = of("| 001.1 | a | b | 2 | 1 | - | 4 | 3 | refuted: no | peers |\n");
        assert_eq!(split.unclear, ["10 cells for 001.1"]);
        let row = "| 001.1 | c | 2 | 1 | - | 4 | 3 | refuted | peers |\n";
        assert_eq!(of(&row.repeat(2)).unclear, ["001.1 twice with the same words"]);
        assert_eq!(of(&row.replace("refuted", "refutedly")).unclear.len(), 1);
        let small =
            of("| 003.14 | c | 4 | - | 1.9, by a small program | - | 1 | refuted | page-fault |\n");
        assert_eq!(small.figures, [("003.14".to_owned(), 3, vec!["page-fault".to_owned()])]);
        assert_eq!(
            name_and_cpu("2026-11-22-page-fault-cascade-lake-guest"),
            Some(("page-fault".to_owned(), 1))
        );
        // No part of a record's name is a record.
        assert_ne!(name_and_cpu("2026-11-22-page-fault-zen5-guest").unwrap().0, "page");
        assert_eq!(name_and_cpu("README.md"), None);
    }
}
