//! The items of the five source documents: where each is answered, or why it is not.
//!
//! `docs/checklist.md` lists them. An item is answered where a row of a table in `docs/findings.md`
//! begins with it and names, in its last column, records that are there; a row may say "no record" and
//! so does not count. Each row of the table of claims gives one of [`ANSWERS`]; their totals stand above
//! the table. What was not tested is listed with its reason below [`NOT_TESTED`], an item without a row
//! among it.

use anyhow::{Context, Result, bail};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The heading of the list of what is left out.
const NOT_TESTED: &str = "## Not tested, and why";

/// How the answer to a claim begins.
const ANSWERS: [&str; 6] =
    ["confirmed", "refuted", "depends", "cannot tell", "question", "not tested"];

/// Cells of a row of the table of claims: item, claim, figure, three CPUs, answer, record.
const CLAIM_CELLS: usize = 8;
const CPUS: [&str; 3] = ["Zen 3", "Cascade Lake", "Zen 5"];

type Item = (String, u32);

/// What the findings say about the items.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    /// Records by item.
    answered: BTreeMap<Item, BTreeSet<String>>,
    /// Reasons by item.
    reasons: BTreeMap<Item, String>,
    /// Rows by their answer.
    totals: BTreeMap<&'static str, usize>,
    /// Rows without a figure by CPU.
    empty: [usize; CPUS.len()],
    /// Rows whose answer is none.
    unclear: Vec<String>,
    /// The lines of the list of what was not tested.
    not_tested: Vec<String>,
}

impl Findings {
    /// The sentence above the table.
    fn sentence(&self) -> String {
        let all: usize = self.totals.values().sum();
        let of = |answer| self.totals.get(answer).copied().unwrap_or(0);
        let counts: Vec<String> =
            ANSWERS.iter().map(|answer| format!("{answer} {}", of(answer))).collect();
        let empty: Vec<String> =
            CPUS.iter().zip(self.empty).map(|(cpu, rows)| format!("{cpu} {rows}")).collect();
        format!(
            "**Of {all} rows: {}. Rows without a figure: {}.**",
            counts.join(", "),
            empty.join(", ")
        )
    }
}

/// Prints every item with its records or the reason, and last those not answered; an error if one has
/// neither, or a record that is named is not there.
pub fn run() -> Result<()> {
    let root = crate::command::root();
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let listed = items_of_list(&read("docs/checklist.md")?);
    let text = read("docs/findings.md")?;
    let findings = findings(&text);
    let records: Vec<String> = fs::read_dir(root.join("record"))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let there = |name: &str| records.iter().any(|file| file.contains(&format!("-{name}-")));
    let mut missing = Vec::new();
    let mut unanswered = Vec::new();
    for item @ (document, number) in &listed {
        match (findings.answered.get(item), findings.reasons.get(item)) {
            (Some(names), _) => {
                missing.extend(names.iter().filter(|name| !there(name)).cloned());
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                println!("{document}.{number}: {}", names.join(", "));
            }
            (None, Some(reason)) => unanswered.push(format!("{document}.{number}: {reason}")),
            (None, None) => missing.push(format!("{document}.{number} (neither row nor reason)")),
        }
    }
    println!("\nanswered: {} of {} items", findings.answered.len(), listed.len());
    println!("not answered: {}", unanswered.len());
    unanswered.iter().for_each(|line| println!("  {line}"));
    println!("\n{}", findings.sentence().trim_matches('*'));
    println!("not tested, and why:");
    findings.not_tested.iter().for_each(|line| println!("  {line}"));
    if !findings.unclear.is_empty() {
        let found = findings.unclear.join("; ");
        bail!("docs/findings.md: found answers {found}; accepted: {}", ANSWERS.join(", "));
    }
    if !text.lines().any(|line| line == findings.sentence()) {
        bail!("docs/findings.md: accepted above the table of claims: {}", findings.sentence());
    }
    if let Some(unknown) = findings.answered.keys().find(|item| !listed.contains(item)) {
        bail!("docs/findings.md: {}.{} is not in docs/checklist.md", unknown.0, unknown.1);
    }
    if !missing.is_empty() {
        bail!("docs/findings.md: not there: {}", missing.join(", "));
    }
    Ok(())
}

/// The lines `- 002.4: what` of the checklist.
fn items_of_list(text: &str) -> Vec<Item> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    lines.flat_map(|(item, _)| items(item)).collect()
}

/// The items a text cites: `002.4`, and all of `000.1-7`.
fn items(text: &str) -> Vec<Item> {
    let citation = Regex::new(r"\b(00[0-4])\.(\d{1,2})(?:-(\d{1,2}))?\b").expect("a pattern");
    let mut found = Vec::new();
    for parts in citation.captures_iter(text) {
        let number = |index| parts.get(index).and_then(|text| text.as_str().parse::<u32>().ok());
        if let Some(first) = number(2) {
            let last = number(3).unwrap_or(first);
            found.extend((first..=last).map(|item| (parts[1].to_owned(), item)));
        }
    }
    found
}

/// The rows of tables that begin with items, and the list of reasons.
fn findings(text: &str) -> Findings {
    let mut found = Findings::default();
    let (body, left_out) = text.split_once(NOT_TESTED).unwrap_or((text, ""));
    for line in body.lines().filter(|line| line.starts_with("| 00")) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        if let [.., answer, _] = cells[..]
            && cells.len() == CLAIM_CELLS
        {
            match ANSWERS.iter().find(|known| answer.starts_with(*known)) {
                Some(known) => *found.totals.entry(*known).or_default() += 1,
                None => found.unclear.push(format!("\"{answer}\" for {first}")),
            }
            for (count, cell) in found.empty.iter_mut().zip(&cells[3..]) {
                *count += usize::from(*cell == "-");
            }
        }
        if last.contains("no record") {
            continue;
        }
        for item in items(first) {
            let names = last.split(", ").map(str::to_owned);
            found.answered.entry(item).or_default().extend(names);
        }
    }
    for line in left_out.lines() {
        found.not_tested.extend(line.strip_prefix("- ").map(str::to_owned));
        if let Some((item, reason)) = line.strip_prefix("- ").and_then(|line| line.split_once(": "))
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
                    | 001.3 | yes | a program, no record |\n## Not tested, and why\n- 001.4: too hard\n";
        let found = findings(text);
        let answered: Vec<String> =
            found.answered.keys().map(|(doc, item)| format!("{doc}.{item}")).collect();
        assert_eq!(answered, ["001.2", "002.4", "002.5"]);
        let first = &found.answered[&("001".to_owned(), 2)];
        assert_eq!(first.iter().collect::<Vec<_>>(), ["peers", "roofline"]);
        assert_eq!(found.reasons.len(), 1);
        assert_eq!(found.not_tested, ["001.4: too hard"]);
        assert!(found.totals.is_empty(), "short rows are no claims");
        let claims = "| 001.1 | c | 2 | 1 | - | 3 | refuted: no | no record |\n\
                      | 001.2 | c | 2 | - | - | 3 | perhaps | a |\n";
        let found = super::findings(claims);
        assert_eq!((found.totals["refuted"], found.empty), (1, [1, 2, 0]));
        assert_eq!(found.unclear, ["\"perhaps\" for 001.2"]);
        assert!(found.sentence().starts_with("**Of 1 rows: confirmed 0, refuted 1,"));
        assert_eq!(items_of_list("- 000.1: a\n- 000.2: b 000.9\n"), items("000.1-2"));
    }
}
