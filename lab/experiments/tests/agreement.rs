//! One judge: a command prints of a record what findings print of it, word for word and figure for figure.

use cachewise_experiments::claims::{Answers, CPUS, OWN, all, of_record};
use cachewise_experiments::said;
use cachewise_measure::Record;
use std::collections::BTreeSet;
use std::path::Path;

/// A row's figure of one CPU as a command prints it: the line's start, in which the sizes that were measured stand in
/// braces, and its end.
struct Line {
    start: String,
    end: String,
    cpu: &'static str,
}

/// The lines of all rows as a command prints them, from the table that readers have.
fn findings() -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let table = Answers::of(&folder).expect("records").table();
    assert_eq!(table.rows.len(), all().count());
    let first = table.columns.iter().position(|(head, _)| head == CPUS[0].0).expect("a CPU");
    let mut lines = Vec::new();
    for (row, claim) in table.rows.iter().zip(all()) {
        assert_eq!(row[0], claim.item);
        assert_eq!(beyond(&row[2], &claim.asks), Some(""), "{row:?}");
        let quote = if row[1].is_empty() { String::new() } else { format!("{}: ", row[1]) };
        let start = format!("{}: {quote}{}", claim.item, claim.asks);
        for (text, (_, cpu)) in row[first..].iter().zip(CPUS).filter(|(text, _)| *text != "-") {
            lines.push(Line { start: start.clone(), end: format!(" Here {text}"), cpu });
        }
    }
    lines
}

/// The rest of a text behind a start that has sizes in braces.
fn beyond<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let mut pieces = start.split(['{', '}']).step_by(2);
    let mut rest = text.strip_prefix(pieces.next()?)?;
    for piece in pieces {
        let sizes = rest.find(piece)?;
        let is_size = |word: &str| {
            ["and", "to", "B", "KiB", "MiB", "GiB"].contains(&word) || word.parse::<f64>().is_ok()
        };
        if sizes == 0 || !rest[..sizes].split(' ').all(is_size) {
            return None;
        }
        rest = &rest[sizes + piece.len()..];
    }
    Some(rest)
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
    let is_printed = |line: &&Line| {
        let end = format!("-{}-guest", line.cpu);
        let of_cpu = records.iter().filter(|(name, _)| name.ends_with(&end));
        let is_it = |found: &String| {
            let end = beyond(found, &line.start).and_then(|rest| rest.strip_prefix(&line.end));
            end.is_some_and(|end| end.is_empty() || end.starts_with("; "))
        };
        of_cpu.into_iter().any(|(_, printed)| printed.iter().any(is_it))
    };
    let wrong: Vec<_> = lines.iter().filter(|line| !is_printed(line)).collect();
    let wrong: Vec<_> =
        wrong.iter().map(|it| format!("{}{} {}", it.start, it.end, it.cpu)).collect();
    let shown = lines.len();
    assert!(shown > 300, "{shown}");
    assert!(wrong.is_empty(), "{} of {shown}: {wrong:#?}", wrong.len());
}

/// A figure that somebody wrote above a page's table stands in the rows: none is made from a rounded one.
#[test]
fn figures_of_pages_stand_in_the_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let rows = std::fs::read_to_string(folder.join("rows.csv")).expect("rows");
    let figures = |text: &str| -> BTreeSet<String> {
        let words = text.split(|sign: char| !sign.is_ascii_digit() && sign != '.');
        let words = words.flat_map(|word| word.split("..")).map(|word| word.trim_matches('.'));
        words.filter(|word| word.contains('.')).map(str::to_owned).collect()
    };
    let known = figures(&rows);
    let mut found = 0;
    for document in ["000", "001", "002", "003", "004"] {
        let page = std::fs::read_to_string(folder.join(document).with_extension("md"));
        let page = page.expect(document);
        let written: String = page.lines().filter(|line| !line.starts_with('|')).collect();
        for figure in figures(&written).iter().filter(|figure| figure.parse::<f64>().is_ok()) {
            assert!(known.contains(figure), "{document}: {figure} is in no row");
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
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
        assert!(claim.quote.is_empty() && claim.expect().is_none() && claim.theirs.is_empty());
    }
}
