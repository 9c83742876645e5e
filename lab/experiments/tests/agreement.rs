//! One judge: a command prints of a record what findings print of it, word for word and figure for figure.

use cachewise_experiments::claims::{Answers, CPUS, OWN, all, of_record};
use cachewise_experiments::said;
use cachewise_measure::Record;
use std::path::Path;

/// The lines of findings' tables as a command prints them, each with its CPU.
fn findings() -> Vec<(String, &'static str)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let answers = Answers::of(&folder).expect("records");
    let documents = ["000", "001", "002", "003", "004"].map(|document| answers.table(document));
    let own = answers.table(OWN);
    let rows = |table: &str, has_items: bool| -> Vec<(String, &'static str)> {
        let line = |line: &str| {
            let cells: Vec<&str> = line.split('|').collect();
            let (start, cpus) = match has_items {
                true => (format!("{}: {} Here ", cells[1], cells[2]), &cells[4..]),
                false => (format!("{OWN}: {} Here ", cells[1]), &cells[2..]),
            };
            let of_cpu = cpus.iter().zip(CPUS).filter(|(text, _)| **text != "-");
            of_cpu.map(|(text, (_, cpu))| (format!("{start}{text}"), cpu)).collect::<Vec<_>>()
        };
        table.lines().skip(2).flat_map(line).collect()
    };
    documents.iter().flat_map(|table| rows(table, true)).chain(rows(&own, false)).collect()
}

/// Tells whether a text cites an item of a document, `000.12`.
fn cites_an_item(text: &str) -> bool {
    let mut words = text.split([' ', '(', ')', ',', ';', ':']);
    words.any(|word| {
        let bytes = word.as_bytes();
        bytes.len() >= 5
            && bytes.starts_with(b"00")
            && bytes[3] == b'.'
            && bytes[4].is_ascii_digit()
    })
}

/// The lines that a command prints of a record before its tables.
fn printed(record: &Record) -> Vec<String> {
    said::said(record).verdicts
}

#[test]
fn commands_print_what_findings_print() {
    let records = crate::stored::records().into_iter();
    let records: Vec<_> = records.map(|(name, record)| (name, printed(&record))).collect();
    let lines = findings();
    let is_printed = |(line, cpu): &(String, &str)| {
        let of_cpu = records.iter().filter(|(name, _)| name.ends_with(&format!("-{cpu}-guest")));
        let is_it = |found: &String| {
            found.strip_prefix(line).is_some_and(|end| end.is_empty() || end.starts_with("; "))
        };
        of_cpu.into_iter().any(|(_, printed)| printed.iter().any(is_it))
    };
    let wrong: Vec<_> = lines.iter().filter(|line| !is_printed(line)).collect();
    let shown = lines.len();
    assert!(shown > 300, "{shown}");
    assert!(wrong.is_empty(), "{} of {shown}: {wrong:#?}", wrong.len());
}

/// No line about a document is anything but a claim's row.
#[test]
fn nothing_else_is_said_of_a_document() {
    for (name, record) in crate::stored::records() {
        let answers = of_record(&record);
        let rows: Vec<String> =
            answers.iter().map(|(claim, answer)| answer.sentence(claim)).collect();
        let printed = printed(&record);
        for row in &rows {
            assert!(printed.contains(row), "{name}: {row}");
        }
        if name.contains("tune") || name.contains("program") {
            continue;
        }
        for line in printed.iter().filter(|line| !rows.contains(line)) {
            assert!(!cites_an_item(line), "{name}: {line}");
        }
    }
}

#[test]
fn rows_of_no_document_have_a_section_of_their_own() {
    let own: Vec<_> = all().filter(|claim| claim.item == OWN).collect();
    assert!(own.len() > 5);
    for claim in own {
        assert!(claim.quote.is_empty() && claim.says.is_none() && claim.theirs.is_empty());
    }
}
