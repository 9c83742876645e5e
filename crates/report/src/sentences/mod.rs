//! What a record amounts to, in sentences: pure functions over rows, one file per experiment. Who
//! measures says nothing; who reads an old record is told what today's rules make of it.
//!
//! Two kinds of rows say nothing, whatever the experiment: those of cells whose operands were not where
//! they are said to be, and those whose times are not above nothing. They are withheld here, once, with
//! the reason.

mod aliasing;
mod cached_target;
mod compare_latency;
mod extent;
mod hints;
#[cfg(test)]
mod made_up;
mod page_clear;
mod page_colour;
mod page_compare;
mod page_copy;
mod page_fault;
mod parallel;
mod peers;
mod read_batch;
mod receive;
mod reuse_map;
mod sticky;
mod support;
mod tcp_copies;
mod twins;
mod values;
mod vector_state;

use support::*;

/// What is said of an experiment's rows; the first is the headline.
pub fn of(experiment: &str, rows: &[Row], decisions: &[Decision]) -> Vec<String> {
    let (sound, withheld) = sound(rows);
    let Some(mut said) = own(experiment, &sound, decisions) else { return withheld };
    if said.is_empty() {
        let left = if sound.is_empty() {
            "nothing was measured that can be relied on"
        } else {
            "what was measured does not suffice for a verdict"
        };
        said.push(format!("{experiment}: cannot tell, {left}"));
    }
    said.extend(withheld);
    said
}

/// Whether an experiment has sentences of its own.
pub fn has(experiment: &str) -> bool {
    own(experiment, &[], &[]).is_some()
}

/// The experiment's own sentences, of rows that can be relied on.
fn own(experiment: &str, sound: &[Row], decisions: &[Decision]) -> Option<Vec<String>> {
    Some(match experiment {
        "aliasing" => aliasing::verdicts(sound),
        "cached-target" => cached_target::verdicts(sound),
        "compare-latency" => compare_latency::verdicts(sound),
        "extent" => extent::verdicts(sound),
        "hints" => hints::verdicts(sound, decisions),
        "page-clear" => page_clear::verdicts(sound),
        "page-colour" => page_colour::verdicts(sound),
        "page-compare" => page_compare::verdicts(sound),
        "page-copy" => page_copy::verdicts(sound),
        "page-fault" => page_fault::verdicts(sound),
        "parallel" => parallel::verdicts(sound),
        "peers" => peers::verdicts(sound),
        "read-batch" => read_batch::verdicts(sound),
        "receive" => receive::verdicts(sound),
        "reuse-map" => reuse_map::verdicts(sound),
        "sticky" => sticky::verdicts(sound),
        "tcp-copies" => tcp_copies::verdicts(sound),
        "twins" => twins::verdicts(sound),
        "values" => values::verdicts(sound),
        "vector-state" => vector_state::verdicts(sound),
        _ => return None,
    })
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
    use super::made_up::*;
    use super::*;
    use cachewise_measure::{Level, Proof};

    /// Those whose cases are in `cases/`; what is said of `receive` is long to write down there.
    #[test]
    fn each_outcome_has_its_sentences() {
        let names = "compare-latency extent hints page-clear page-colour page-compare page-copy \
            page-fault parallel peers read-batch reuse-map sticky tcp-copies twins values vector-state";
        // Its kernels are those of x86-64.
        let more = if cfg!(target_arch = "x86_64") { " cached-target" } else { "" };
        for name in names.split(' ').chain(more.split_whitespace()) {
            keeps(name, |case| own(name, &case.rows, &case.decisions).expect("sentences"));
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
        let names = "aliasing cached-target extent page-clear page-colour page-compare page-fault \
            parallel peers receive reuse-map sticky tcp-copies twins vector-state";
        for name in names.split(' ') {
            let said = of(name, &[], &[]);
            assert!(said[0].contains("cannot tell"), "{name}: {said:?}");
        }
        assert!(of("copy-matrix", &[], &[]).is_empty(), "it has no sentences of its own");
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
        assert!(of("hints", &rows, &[])[0].ends_with("does not suffice for a verdict"));
        assert!(
            of("hints", &rows[1..2], &[])[0]
                .ends_with("nothing was measured that can be relied on")
        );
        rows[2].bystander_ns = vec![-500.0; 15];
        let said = of("read-batch", &rows, &[]);
        assert!(said.iter().any(|text| text.starts_with("Not measurable here: 1 of 2 rows")));
    }
}
