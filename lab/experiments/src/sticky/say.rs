//! What the rows of `sticky` amount to. Pure.

use crate::words::*;

/// Less than this is not named: eight calls of nine routines would give a few by chance.
const NOTICED: f64 = 1.05;

/// How a routine fares after non-temporal stores, against itself after temporal ones.
struct Recovery {
    /// From which call on it is no slower, counted from 1; none where it is slower to the last.
    from: Option<usize>,
    /// The most times as long that a call took, and that the last one took.
    worst: f64,
    last: f64,
}

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let after = |state: &str| rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let evicted = after(AFTER[1]);
    let (mut said, mut slow) = (Vec::new(), None);
    let key = |row: &Row| (row.cell.operation.clone(), row.candidate.clone());
    for ((operation, candidate), of_it) in groups(evicted.iter().copied(), key) {
        let mut found: Vec<(u64, Recovery)> = Vec::new();
        for (size, calls) in groups(of_it.iter().copied(), |row| row.cell.size) {
            let Some(recovery) = recovery(&calls) else { continue };
            slow = slow.max(Some(recovery.from.map_or(most_calls(&calls), |call| call - 1)));
            found.push((size, recovery));
        }
        let part = |(from, sizes): (Option<usize>, Vec<&(u64, Recovery)>)| {
            let (at, calls) =
                (joined(sizes.iter().map(|(size, _)| bytes(*size)), ", "), most_calls(&of_it));
            let most = |of: fn(&Recovery) -> f64| {
                sizes.iter().map(|(_, recovery)| of(recovery)).fold(1.0, f64::max)
            };
            let (worst, last) = (most(|found| found.worst), most(|found| found.last));
            match from {
                Some(1) => format!("at once at {at}"),
                Some(call) => {
                    format!("from call {call} on at {at} (up to {worst:.2} times as long before)")
                }
                None => format!(
                    "not in {calls} calls at {at} (up to {last:.2} times as long in the last)"
                ),
            }
        };
        let alike = groups(&found, |(_, recovery)| recovery.from).into_iter();
        said.extend((!found.is_empty()).then(|| {
            format!(
                "{operation}, {candidate}: after non-temporal stores as fast as after temporal ones {}",
                joined(alike.map(part), "; ")
            )
        }));
    }
    let calls = most_calls(&evicted);
    let headline = match slow {
        None => return said,
        Some(0) => "The order of callers does not show in these times: no routine is shown to be slower after \
                    non-temporal stores than after temporal ones"
            .to_owned(),
        Some(slow) if slow >= calls => format!(
            "A destination that non-temporal stores evicted stays slow for some routine through all \
             {calls} calls: a benchmark has to restore the destination before every sample"
        ),
        Some(slow) => format!(
            "A destination that non-temporal stores evicted is slow for the first {}: a benchmark has \
             to restore it before every sample, or to leave {slow} untimed",
            counted(slow, "call")
        ),
    };
    std::iter::once(headline).chain(said).chain(a_read(&after(AFTER[2]))).collect()
}

/// Whether one read of the destination is enough.
fn a_read(rows: &[&Row]) -> Option<String> {
    let key = |row: &Row| (row.cell.operation.clone(), row.candidate.clone(), row.cell.size);
    let cells = groups(rows.iter().copied(), key);
    let found: Vec<_> = cells.iter().filter_map(|(_, calls)| recovery(calls)).collect();
    let (all, at_once) = (found.len(), found.iter().filter(|found| found.from == Some(1)).count());
    (all > 0).then(|| {
        format!(
            "One read of the evicted destination: the first call is as fast as after temporal stores \
             in {at_once} of {all} cells"
        )
    })
}

fn recovery(calls: &[&Row]) -> Option<Recovery> {
    let mut calls = calls.to_vec();
    calls.sort_by(|a, b| axis(a, CALL).total_cmp(&axis(b, CALL)));
    let ratios = calls.iter().map(|row| row.ratio).collect::<Option<Vec<_>>>()?;
    let is_slow = |pair: &PairedRatio| says(*pair) == Verdict::Slower && pair.median > NOTICED;
    let from = match ratios.iter().rposition(is_slow) {
        None => Some(1),
        Some(at) if at + 1 == ratios.len() => None,
        // By the call's own number: one that could not be measured is not among them.
        Some(at) => Some(axis(calls[at], CALL) as usize + 1),
    };
    let worst = ratios.iter().map(|pair| pair.median).fold(1.0, f64::max);
    Some(Recovery { from, worst, last: ratios.last()?.median })
}

fn most_calls(rows: &[&Row]) -> usize {
    rows.iter().map(|row| axis(row, CALL)).fold(0.0, f64::max) as usize
}
