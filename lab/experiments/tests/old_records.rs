//! Every record that is kept is read and drawn.

use cachewise_experiments::{registry, said};
use cachewise_measure::{Figure, FigureKind, ProofVerdict};
use cachewise_report::plot;
use cachewise_report::rows::experiment_of;

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
