//! One record of several launches.
//!
//! The places of a program's memory, stack and libraries are drawn anew at each start, and calls of a few
//! nanoseconds come out a cycle or two apart for that alone (Mytkowicz et al., ASPLOS 2009). Rounds of one
//! process do not show it. Here each launch is a round: a row's times are the launches' medians, and its
//! intervals hold what changes from launch to launch.

use crate::peers::of_envelope;
use cachewise_judge::interval;
use cachewise_measure::record::groups;
use cachewise_measure::stats::{DriftVerdict, median};
use cachewise_measure::{Histogram, PairedRatio, Record, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Launches of which something can be shown: with fewer no 95 % interval of a median exists.
pub const LEAST: usize = cachewise_measure::stats::LEAST_ROUNDS;

/// The record of these launches of one experiment; `None` for none. What is said of the machine is the first
/// one's; notes are those of any.
#[must_use]
pub fn merge(launches: Vec<Record>) -> Option<Record> {
    let many = launches.len();
    let mut launches = launches.into_iter();
    let mut whole = launches.next()?;
    let first = std::mem::take(&mut whole.rows);
    let mut rows: Vec<(usize, Row)> = first.into_iter().map(|row| (0, row)).collect();
    for (at, launch) in (1..).zip(launches) {
        rows.extend(launch.rows.into_iter().map(|row| (at, row)));
        let new: Vec<_> = launch.notes.into_iter().filter(|n| !whole.notes.contains(n)).collect();
        whole.notes.extend(new);
        whole.decisions.kernels.extend(launch.decisions.kernels);
    }
    whole.header.settings.insert("launches".to_owned(), many.into());
    let key = |(_, row): &(usize, Row)| (row.experiment.clone(), row.cell.clone());
    whole.rows = groups(&rows, key).into_iter().flat_map(|(_, rows)| of_cell(&rows)).collect();
    of_envelope(&mut whole.rows);
    Some(whole)
}

/// The rows of one cell: all candidates have the same launches, so that their times are pairs.
fn of_cell(rows: &[&(usize, Row)]) -> Vec<Row> {
    // A launch whose operands were elsewhere says nothing, if enough others do.
    let all: BTreeSet<usize> = rows.iter().map(|(at, _)| *at).collect();
    let elsewhere = rows.iter().filter(|(_, row)| row.is_withheld()).map(|(at, _)| *at);
    let sound: BTreeSet<usize> = &all - &elsewhere.collect();
    let used = if sound.len() >= LEAST { sound } else { all };
    let rows = rows.iter().filter(|(at, _)| used.contains(at)).map(|(_, row)| row);
    let by_name = groups(rows, |row: &Row| row.candidate.clone());
    let mut merged: Vec<Row> = by_name.into_iter().map(|(_, rows)| merged(&rows)).collect();
    let references = merged.clone();
    for row in merged.iter_mut().filter(|row| row.candidate != row.reference) {
        let reference = references.iter().find(|other| other.candidate == row.reference);
        let Some(reference) =
            reference.filter(|of| of.operation_ns.len() == row.operation_ns.len())
        else {
            continue;
        };
        let is_withheld = row.verdict.is_none();
        row.ratio =
            row.ratio.map(|_| PairedRatio::paired(&row.operation_ns, &reference.operation_ns));
        let totals =
            row.total_ratio.map(|_| PairedRatio::paired(&row.total_ns(), &reference.total_ns()));
        row.total_ratio = totals;
        row.verdict = row.said().filter(|_| !is_withheld);
    }
    merged
}

/// One candidate in one cell: the medians of its launches.
fn merged(rows: &[&Row]) -> Row {
    // A candidate that most launches dropped for its slowness is one that they dropped.
    let is_dropped = 2 * rows.iter().filter(|row| row.dropped).count() > rows.len();
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.dropped == is_dropped).collect();
    let medians = |part: fn(&Row) -> &Vec<f64>| -> Vec<f64> {
        let parts = rows.iter().map(|row| part(row));
        parts.filter(|part| !part.is_empty()).map(|part| median(part)).collect()
    };
    let mut one = rows[0].clone();
    one.operation_ns = medians(|row| &row.operation_ns);
    one.reader_ns = medians(|row| &row.reader_ns);
    one.bystander_ns = medians(|row| &row.bystander_ns);
    one.ratio = ratio(rows.iter().map(|row| row.ratio));
    one.total_ratio = ratio(rows.iter().map(|row| row.total_ratio));
    let is_withheld = rows.iter().any(|row| row.verdict.is_none());
    one.verdict = one.said().filter(|_| !is_withheld);
    one.proofs = rows.iter().flat_map(|row| row.proofs.clone()).collect();
    let drifts = || rows.iter().filter_map(|row| row.drift);
    let drifting = drifts().find(|drift| matches!(drift, DriftVerdict::Drifting { .. }));
    one.drift = drifting.or(drifts().next());
    let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| &row.extra) {
        figures.entry(name.clone()).or_default().push(*value);
    }
    one.extra = figures.into_iter().map(|(name, values)| (name, median(&values))).collect();
    one.histogram = sum(rows.iter().map(|row| row.histogram.as_ref()));
    one
}

/// None where noise left a launch without one: what the others have is not of all launches.
fn ratio(launches: impl Iterator<Item = Option<PairedRatio>>) -> Option<PairedRatio> {
    let ratios: Vec<f64> = launches.flatten().map(|ratio| ratio.median).collect();
    let is_known = !ratios.is_empty() && ratios.iter().all(|ratio| ratio.is_finite());
    is_known.then(|| interval::paired(&ratios))
}

/// The calls of all launches; none where their bins differ.
fn sum<'h>(mut launches: impl Iterator<Item = Option<&'h Histogram>>) -> Option<Histogram> {
    let mut all = launches.next()??.clone();
    for one in launches {
        let one = one.filter(|one| one.edges_ns == all.edges_ns)?;
        all.counts.iter_mut().zip(&one.counts).for_each(|(all, one)| *all += one);
        all.above += one.above;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routines::{LIBC, LIBRARY};
    use cachewise_measure::record::{made_up, read_text};
    use cachewise_measure::{CellKey, Note, Verdict};

    /// A launch of `peers` in which the library takes this over libc's time, another library half of that.
    fn launch(ratio: f64) -> Record {
        let header = include_str!("../../../fuzz/corpus/record/seed-00").lines().next();
        let end = r#"{"type":"end","rows":0,"interrupted":false,"seconds":1.0}"#;
        let text = format!("{}\n{end}", header.expect("a header"));
        let mut record = read_text("made up", &text).expect("a record");
        let libc = made_up::row(CellKey::new("copy", 64, "warm"), LIBC, LIBC, 10.0);
        for (candidate, times) in [(LIBC, 1.0), (LIBRARY, ratio), ("other", ratio / 2.0)] {
            let mut row = Row { candidate: candidate.to_owned(), ..libc.clone() };
            row.experiment = "peers".to_owned();
            row.operation_ns.iter_mut().for_each(|time| *time *= times);
            let over_libc = PairedRatio::paired(&row.operation_ns, &libc.operation_ns);
            record.rows.push(row.with_ratio(over_libc));
        }
        record
    }

    #[test]
    fn a_launch_without_a_ratio_leaves_none_to_all() {
        let known = |median| Some(PairedRatio { median, low: 0.9, high: 1.1, rounds: 9 });
        let six = [1.0, 1.1, 1.2, 0.9, 1.0, 1.0];
        assert_eq!(ratio(six.map(known).into_iter()).map(|all| all.rounds), Some(6));
        let lost = six.map(known).into_iter().chain([known(f64::NAN)]);
        assert_eq!(ratio(lost), None);
    }

    #[test]
    fn each_launch_is_a_round() {
        let ratios = [0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4];
        let all = merge(ratios.map(launch).to_vec()).expect("a record");
        assert_eq!(all.header.settings["launches"], 7);
        let names: Vec<&str> = all.rows.iter().map(|row| row.candidate.as_str()).collect();
        assert_eq!(names, [LIBC, LIBRARY, "other"]);
        let library = &all.rows[1];
        assert_eq!(library.operation_ns.len(), 7);
        let ratio = library.ratio.expect("a ratio");
        let expected = interval::paired(&ratios);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(near(ratio.median, expected.median) && ratio.rounds == 7, "{ratio:?}");
        assert!(near(ratio.low, expected.low) && near(ratio.high, expected.high), "{ratio:?}");
        assert_eq!(library.verdict, Some(Verdict::Unknown));
        // The other library is the best one in each launch.
        let of_envelope = library.extra["of_envelope"];
        assert!((of_envelope - 2.0).abs() < 1e-9, "{of_envelope}");
        assert!(merge(Vec::new()).is_none());
    }

    /// A launch whose operands were elsewhere is left out of every candidate of its cell: times of different
    /// launches are no pairs.
    #[test]
    fn candidates_of_a_cell_have_the_same_launches() {
        let mut launches: Vec<Record> = (0..7).map(|_| launch(0.5)).collect();
        for (at, launch) in launches.iter_mut().enumerate() {
            let slow = 1.0 + at as f64;
            launch.rows.iter_mut().flat_map(|row| &mut row.operation_ns).for_each(|ns| *ns *= slow);
        }
        launches[0].rows[1].verdict = None;
        let all = merge(launches).expect("a record");
        assert!(all.rows.iter().all(|row| row.operation_ns.len() == 6));
        let ratio = all.rows[1].ratio.expect("a ratio");
        assert!((ratio.low - 0.5).abs() < 1e-9 && (ratio.high - 0.5).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn what_one_launch_withheld_or_said_is_kept() {
        let mut launches = [1.2; 6].map(launch).to_vec();
        assert_eq!(merge(launches.clone()).expect("one").rows[1].verdict, Some(Verdict::Slower));
        launches[4].rows[1].verdict = None;
        let note = Note { text: "left out".to_owned() };
        launches[2].notes.push(note.clone());
        launches[3].notes.push(note.clone());
        launches.iter_mut().take(4).for_each(|launch| {
            launch.rows[2].dropped = true;
            launch.rows[2].operation_ns.truncate(3);
        });
        let all = merge(launches).expect("a record");
        assert_eq!((all.rows[1].verdict, all.notes), (None, vec![note]));
        assert!(all.rows[2].dropped && all.rows[2].operation_ns.len() == 4);

        let mut launches = [1.2; 7].map(launch).to_vec();
        launches[4].rows[1].verdict = None;
        let all = merge(launches).expect("one");
        assert_eq!(all.rows[1].verdict, Some(Verdict::Slower));
        assert_eq!(all.rows[1].ratio.map(|ratio| ratio.rounds), Some(6));
    }
}
