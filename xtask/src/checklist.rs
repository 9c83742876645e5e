//! The items of the five source documents: where each is answered, or why it is not.
//!
//! An item is answered where an experiment, a kernel, a rule of the pool or a page under `docs/`
//! cites it (`seed 002.4`, `"000.1-7"`). What nobody cites has to be listed with a reason in
//! `docs/findings.md`, below the heading that [`NOT_ANSWERED`] names.

use anyhow::{Context, Result, bail};
use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Documents and how many items each has.
const DOCUMENTS: [(&str, u32); 5] = [("000", 15), ("001", 8), ("002", 17), ("003", 15), ("004", 9)];

/// The heading of the list of what is left out.
const NOT_ANSWERED: &str = "## Not answered here";

type Citations = BTreeMap<(String, u32), Vec<String>>;

/// Prints every item with the places that cite it, or the reason; an error if one has neither.
pub fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cited = Citations::new();
    for folder in ["crates", "docs"] {
        for file in files(&root.join(folder))? {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
            for item in items(without_reasons(&text)) {
                let places = cited.entry(item).or_default();
                if places.last() != Some(&name) {
                    places.push(name.clone());
                }
            }
        }
    }
    let findings = fs::read_to_string(root.join("docs/findings.md")).context("docs/findings.md")?;
    let reasons = reasons(&findings);
    let mut unanswered = Vec::new();
    for (document, count) in DOCUMENTS {
        for number in 1..=count {
            let item = (document.to_owned(), number);
            match (cited.get(&item), reasons.get(&item)) {
                (Some(places), _) => {
                    let shown: Vec<&str> = places.iter().take(4).map(String::as_str).collect();
                    let more = places.len().saturating_sub(4);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    println!("{document}.{number}: {}{more}", shown.join(", "));
                }
                (None, Some(reason)) => println!("{document}.{number}: not answered: {reason}"),
                (None, None) => {
                    println!("{document}.{number}: NOWHERE");
                    unanswered.push(format!("{document}.{number}"));
                }
            }
        }
    }
    if !unanswered.is_empty() {
        bail!(
            "cited nowhere and not listed below \"{NOT_ANSWERED}\" in docs/findings.md: {}",
            unanswered.join(", ")
        );
    }
    Ok(())
}

/// Sources and pages below a folder, in order; snapshots and generated files cite nothing.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut entries: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The items a text cites: `002.4`, and all of `000.1-7`.
fn items(text: &str) -> Vec<(String, u32)> {
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

/// The text up to the list of what is left out.
fn without_reasons(text: &str) -> &str {
    text.split(NOT_ANSWERED).next().unwrap_or(text)
}

/// The lines `- 002.14: why` of that list.
fn reasons(findings: &str) -> BTreeMap<(String, u32), String> {
    let list = findings.split(NOT_ANSWERED).nth(1).unwrap_or("");
    let mut found = BTreeMap::new();
    for line in list.lines() {
        if let Some((item, reason)) = line.strip_prefix("- ").and_then(|line| line.split_once(": "))
        {
            found.extend(items(item).into_iter().map(|item| (item, reason.to_owned())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_the_source_documents_is_answered_or_given_a_reason() {
        run().expect("the printed list says which are not");
    }

    #[test]
    fn citations_are_read_with_their_ranges() {
        let cited = items("seed 002.4, \"000.1-3\", 1000.5, 005.1, 003.15.");
        let cited: Vec<String> = cited.iter().map(|(doc, item)| format!("{doc}.{item}")).collect();
        assert_eq!(cited, ["002.4", "000.1", "000.2", "000.3", "003.15"]);
        let text = "001.1\n## Not answered here\n- 001.2: too hard\n";
        assert_eq!(items(without_reasons(text)), [("001".to_owned(), 1)]);
        assert_eq!(reasons(text).get(&("001".to_owned(), 2)).map(String::as_str), Some("too hard"));
    }
}
