//! A record in words: the rows of the claims that it answers, what is withheld, and its tables. Made here and
//! nowhere else: an old record is read by today's rules.
//!
//! Two kinds of rows are withheld, whatever the experiment: those of cells whose operands were not where they are
//! said to be, and those whose times are not above nothing.

use crate::claims;
use crate::registry;
use cachewise_measure::record::by_cell;
use cachewise_measure::units::bytes;
use cachewise_measure::{ProofVerdict, Record, Row};
use cachewise_report::rows::experiment_of;
use cachewise_report::{Said, matrix};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns what a record says. For rows without an experiment here: the sentences that stand in the record.
pub fn said(record: &Record) -> Said {
    let mut said = of(experiment_of(record), &record.header.settings, &record.rows);
    if registry::of(experiment_of(record)).is_none() && said.verdicts.is_empty() {
        said.verdicts = record.end.as_ref().map_or_else(Vec::new, |end| end.verdicts.clone());
    }
    said
}

/// Returns what these rows of the experiment of that name say, measured with these settings.
pub fn of(experiment: &str, settings: &BTreeMap<String, Value>, rows: &[Row]) -> Said {
    let is_classic = settings.get("classic").is_some_and(|value| value == true);
    let answers = claims::of_rows(experiment, rows, is_classic, settings.contains_key("launches"));
    let mut verdicts: Vec<String> =
        answers.iter().map(|(claim, answer)| answer.sentence(claim)).collect();
    let Some(found) = registry::of(experiment) else {
        return Said { verdicts, decisions: None, tables: matrix::tables(rows) };
    };
    let (sound, withheld) = sound(rows);
    verdicts.splice(..0, (found.say)(&sound));
    verdicts.extend(withheld);
    Said { verdicts, decisions: None, tables: (found.tables)(rows) }
}

/// The rows that can be relied on, and a sentence about each kind of the others.
fn sound(rows: &[Row]) -> (Vec<Row>, Vec<String>) {
    let mut sound = Vec::new();
    let (mut misplaced, mut first) = (0, None);
    let cells = by_cell(rows);
    let all = cells.len();
    for (key, of_cell) in cells {
        let mut proofs = of_cell.iter().flat_map(|row| &row.proofs);
        if let Some(proof) = proofs.find(|proof| proof.verdict == ProofVerdict::Failed) {
            misplaced += 1;
            first.get_or_insert_with(|| {
                let place = key.levels().unwrap_or_else(|| key.state.to_string());
                format!("{} of {}, {place}: {}", key.operation, bytes(key.size), proof.text)
            });
        } else {
            sound.extend(of_cell.into_iter().cloned());
        }
    }
    let mut said = Vec::new();
    said.extend(first.map(|reason| {
        format!(
            "Withheld: {misplaced} of {all} cells, whose operands were not where they are said to \
             be ({reason})"
        )
    }));
    let before = sound.len();
    let example = sound.iter().find(|row| !row.is_measurable());
    let example = example.map(|row| {
        let cell = &row.cell;
        format!("{}, {} of {}, {}", row.candidate, cell.operation, bytes(cell.size), cell.state)
    });
    sound.retain(Row::is_measurable);
    said.extend(example.map(|example| {
        format!(
            "Not measurable here: {} of {before} rows, whose times are lost in noise ({example})",
            before - sound.len()
        )
    }));
    (sound, said)
}
