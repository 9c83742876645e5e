//! What a record amounts to: its verdicts and its tables, made here and nowhere else. Who measures says
//! nothing; who reads an old record is told what today's rules make of it.
//!
//! Two kinds of rows say nothing, whatever the experiment: those of cells whose operands were not where
//! they are said to be, and those whose times are not above nothing. They are withheld here, once, with
//! the reason.

use crate::experiment::Experiment;
use crate::registry;
use crate::words::*;
use cachewise_measure::Record;
use cachewise_report::rows::experiment_of;
use cachewise_report::{Said, matrix};

/// What a record says. Of rows without an experiment here: the verdicts that stand in the record.
pub fn said(record: &Record) -> Said {
    let mut said = of(experiment_of(record), &record.rows, &record.decisions.kernels);
    if said.verdicts.is_empty() {
        said.verdicts = record.end.as_ref().map_or_else(Vec::new, |end| end.verdicts.clone());
    }
    said
}

/// What rows of the experiment of that name say; the first verdict is the headline. One without sentences
/// tells what is withheld.
pub fn of(experiment: &str, rows: &[Row], decisions: &[Decision]) -> Said {
    let Some(found) = registry::of(experiment) else {
        return Said { tables: matrix::tables(rows), is_matrix: true, ..Said::default() };
    };
    let parts = found.rows_by_part(rows);
    let tables =
        |(part, rows): &(&Experiment, Vec<Row>)| part.tables.unwrap_or(matrix::tables)(rows);
    Said {
        verdicts: verdicts(found, rows, decisions),
        decisions: None,
        tables: parts.iter().flat_map(tables).collect(),
        is_matrix: parts.iter().all(|(part, _)| part.tables.is_none()),
    }
}

/// What the parts of an experiment say of rows that can be relied on.
fn told(experiment: &Experiment, rows: &[Row], decisions: &[Decision]) -> Option<Vec<String>> {
    let parts = experiment.rows_by_part(rows);
    let says = parts.iter().filter_map(|(part, rows)| Some(part.say?(rows, decisions)));
    let said: Vec<_> = says.collect();
    (!said.is_empty()).then(|| said.concat())
}

fn verdicts(experiment: &Experiment, rows: &[Row], decisions: &[Decision]) -> Vec<String> {
    let (sound, withheld) = sound(rows);
    let Some(mut said) = told(experiment, &sound, decisions) else { return withheld };
    if said.is_empty() {
        let left = if sound.is_empty() {
            "nothing was measured that can be relied on"
        } else {
            "what was measured does not suffice for a verdict"
        };
        said.push(format!("{}: cannot tell, {left}", experiment.name));
    }
    said.extend(withheld);
    said
}

/// The rows that a sentence may rest on, and a sentence about each kind of the others.
fn sound(rows: &[Row]) -> (Vec<Row>, Vec<String>) {
    let mut sound = Vec::new();
    let (mut misplaced, mut first) = (0, None);
    let cells = by_cell(rows);
    let all = cells.len();
    for (key, of_cell) in cells {
        let mut proofs = of_cell.iter().flat_map(|row| &row.proofs);
        if let Some(proof) = proofs.find(|proof| proof.verdict == ProofVerdict::Failed) {
            misplaced += 1;
            first.get_or_insert_with(|| format!("{}: {}", in_words(key), proof.text));
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
    let unmeasurable = sound.iter().find(|row| !row.is_measurable());
    let example = unmeasurable.map(|row| format!("{}, {}", row.candidate, in_words(&row.cell)));
    sound.retain(Row::is_measurable);
    said.extend(example.map(|example| {
        format!(
            "Not measurable here: {} of {before} rows, whose times are lost in noise ({example})",
            before - sound.len()
        )
    }));
    (sound, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::*;
    use crate::registry::ALL;
    use cachewise_measure::{Level, Proof};

    /// Those that have cases; what is said of `receive` is long to write down as such, and some cases of
    /// `aliasing` are of a part of it.
    #[test]
    fn each_outcome_has_its_sentences() {
        for experiment @ Experiment { name, .. } in ALL {
            // Its kernels are those of x86-64.
            let elsewhere = *name == "cached-target" && !cfg!(target_arch = "x86_64");
            if experiment.has_sentences() && !["aliasing", "receive"].contains(name) && !elsewhere {
                keeps(name, |case| told(experiment, &case.rows, &case.decisions).expect("words"));
            }
        }
    }

    #[test]
    fn claims_are_true_false_or_open() {
        let cell = cell("zero", 4096, "warm");
        let rows = [row(&cell, "a", 100.0), row(&cell, "b", 150.0), noisy(&cell, "c", 100.0, 0.3)];
        let of_cell: Vec<&Row> = rows.iter().collect();
        let slower = between(&of_cell, "b", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, slower), "still true");
        assert_eq!(claim(Verdict::Faster, slower), "no longer true here");
        let open = between(&of_cell, "c", "a").expect("both");
        assert_eq!(claim(Verdict::Slower, open), "cannot tell here");
        assert!(between(&of_cell, "a", "absent").is_none());
        assert!(times(slower).starts_with("1.50 (1."), "{}", times(slower));
    }

    #[test]
    fn an_experiment_without_a_row_cannot_tell() {
        for Experiment { name, say, .. } in ALL {
            let said = of(name, &[], &[]).verdicts;
            let told = said
                .iter()
                .any(|text| ["cannot tell", "not tested"].iter().any(|no| text.contains(no)));
            assert_eq!(told, say.is_some(), "{name}: {said:?}");
        }
    }

    #[test]
    fn what_was_not_where_it_is_said_to_be_says_nothing() {
        let at = |level, ns| {
            let cell = at(level, cell("copy", 4096, "placed")).with(&[(READ_BYTES, ns)]);
            row(&cell, "copy.avx.g*", ns)
        };
        let mut rows = vec![at(Level::L1, 100.0), at(Level::Llc, 100.0), at(Level::Llc, 200.0)];
        let (all, said) = sound(&rows);
        assert!(all.len() == 3 && said.is_empty());
        rows[1].proofs.push(Proof {
            level: Level::Llc,
            verdict: ProofVerdict::Failed,
            nanoseconds_per_line: 99.0,
            expected: (10.0, 20.0),
            text: "LLC not proved: 99.0 ns a line".to_owned(),
        });
        let (left, said) = sound(&rows);
        assert_eq!(left.len(), 2);
        assert_eq!(
            said,
            ["Withheld: 1 of 3 cells, whose operands were not where they are said to be (copy of \
              4 KiB, LLC to LLC: LLC not proved: 99.0 ns a line)"]
        );
        assert!(of("hints", &rows, &[]).verdicts[0].ends_with("does not suffice for a verdict"));
        assert!(
            of("hints", &rows[1..2], &[]).verdicts[0]
                .ends_with("nothing was measured that can be relied on")
        );
        rows[2].bystander_ns = vec![-500.0; 15];
        let said = of("read-batch", &rows, &[]).verdicts;
        assert!(said.iter().any(|text| text.starts_with("Not measurable here: 1 of 2 rows")));
    }
}
