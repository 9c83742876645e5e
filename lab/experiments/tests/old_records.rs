//! Every record that is kept is read and drawn.

use cachewise_experiments::{registry, said};
use cachewise_measure::{Figure, FigureKind, ProofVerdict, Record};
use cachewise_report::plot;
use cachewise_report::rows::experiment_of;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_record_is_read_and_drawn() {
    let all = crate::stored::records();
    assert!(all.len() >= 18, "{} records", all.len());
    let mut withheld = 0;
    for (name, record) in all {
        // Today's rules say what it amounts to, in today's words.
        let told = said::said(&record);
        let said = told.verdicts.join("\n");
        let failed = record.rows.iter().flat_map(|row| &row.proofs);
        let failed = failed.filter(|proof| proof.verdict == ProofVerdict::Failed).count();
        let judged = registry::of(experiment_of(&record)).is_some();
        assert!(!judged || said.contains("Withheld: ") == (failed > 0), "{name}: {failed}: {said}");
        withheld += usize::from(judged && failed > 0);
        if experiment_of(&record) == "advise" && record.rows.is_empty() {
            // A question that its bound answers has no race.
            assert!(record.end.is_some_and(|end| !end.verdicts.is_empty()), "{name}");
            continue;
        }
        let tables = told.tables;
        assert!(!tables.is_empty() && !record.rows.is_empty(), "{name}");
        // A quick run, and one with a document's parameters, lacks states that some figures are of; all
        // others are drawn.
        let mut figures = plot::figures(&record);
        // Histograms are tables alone.
        figures.retain(|figure| figure.kind != FigureKind::Histogram);
        let is_of = |figure: &&Figure| record.rows.iter().any(|row| figure.shows(&row.cell.state));
        let mut measured = figures.iter().filter(is_of).peekable();
        assert!(measured.peek().is_some() || figures.is_empty(), "{name}");
        for figure in measured {
            assert!(plot::plot(&record, figure).is_some(), "{name}: {}", figure.title);
        }
        for ratio in record.rows.iter().flat_map(|row| [row.ratio, row.total_ratio]).flatten() {
            assert!(ratio.low <= ratio.high && ratio.median > 0.0, "{name}: {ratio:?}");
        }
    }
    assert!(withheld > 0, "records whose proofs failed are among them");
}

/// On every terminal no word and no figure of any table is broken, and no line is longer than the terminal
/// unless it is one word.
#[test]
fn tables_fit_terminals_of_all_widths() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    // The newest record of each experiment has all its columns.
    let newest: BTreeMap<String, (String, Record)> = crate::stored::records()
        .into_iter()
        .map(|(name, record)| (experiment_of(&record).to_owned(), (name, record)))
        .collect();
    for (name, record) in newest.into_values() {
        for mut table in said::said(&record).tables.into_iter().take(4) {
            table.rows.truncate(12);
            let whole = words(&table.terminal(None));
            for width in [60, 80, 100, 140] {
                let text = table.terminal(Some(width));
                assert_eq!(words(&text), whole, "{name}, {width}:\n{text}");
                let long = text.lines().find(|line| {
                    line.chars().count() > usize::from(width) && line.trim().contains(' ')
                });
                assert_eq!(long, None, "{name}, {width}: {}", table.caption);
            }
        }
    }
}
