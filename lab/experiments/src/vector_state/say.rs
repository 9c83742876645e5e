//! What the rows of `vector-state` amount to. Pure.

use super::measure::{BARE, BREAK_EVEN, Held, REGISTERS, SAVE_RESTORE, WORK_AFTER};
use crate::words::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let (mut headline, mut details) = (Vec::new(), Vec::new());
    let break_even_rows =
        rows.iter().filter(|row| row.cell.state == BREAK_EVEN && row.candidate != row.reference);
    for (operation, of_it) in groups(break_even_rows, |row: &Row| row.cell.operation.clone()) {
        let mut dirty: Vec<(usize, String)> = Vec::new();
        let mut paying: Vec<(String, String)> = Vec::new();
        for (candidate, curve) in by_candidate(&of_it) {
            if !candidate.contains(", ") && !candidate.ends_with(BARE) {
                continue;
            }
            let point =
                |row: &&Row| Some((row.cell.size as usize, row.ratio?.median, says(row.ratio?)));
            let mut points: Vec<_> = curve.iter().filter_map(point).collect();
            points.sort_by_key(|point| point.0);
            let Some((at, found)) = break_even(&points) else { continue };
            paying.push((found.clone(), candidate.clone()));
            if candidate.ends_with(Held::Dirty.name()) {
                let who = if at == usize::MAX { "any of them" } else { candidate.as_str() };
                dirty.push((at, format!("{operation} {found} ({who})")));
            }
        }
        let alike = groups(paying.iter(), |(found, _)| found).into_iter().map(|(found, of_it)| {
            let names: Vec<&str> = of_it.iter().map(|(_, name)| name.as_str()).collect();
            format!("{found}: {}", names.join(" | "))
        });
        if !paying.is_empty() {
            details.push(format!("{operation} pays {}", joined(alike, "; ")));
        }
        headline.extend(dirty.into_iter().min_by_key(|(at, _)| *at).map(|(_, text)| text));
    }
    let headline = if headline.is_empty() {
        "From how many bytes on a vector kernel pays for saving registers: cannot tell, no such kernel was measured".to_owned()
    } else {
        format!(
            "A vector kernel that has to save dirty registers and restore them pays: {}",
            headline.join("; ")
        )
    };
    std::iter::once(headline).chain(after(rows)).chain(costs(rows)).chain(details).collect()
}

/// A ratio below is no lower clock: those are lowered by 100 MHz at least.
const CLOCK: f64 = 1.01;

/// Whether what runs after a kernel is slower than after integers.
fn after(rows: &[Row]) -> Vec<String> {
    let of = |row: &&Row| row.cell.state == WORK_AFTER && row.candidate != row.reference;
    let sentence = |row: &Row| {
        let ratio = row.ratio?;
        let reference = &row.reference;
        let says = if ratio.low > CLOCK {
            let longer = percent(ratio.median);
            format!(
                "takes {longer} longer than after {reference}, which no time of the kernel itself shows"
            )
        } else if ratio.high > CLOCK {
            format!("is not shown to be slower than after {reference}")
        } else {
            format!("is as fast as after {reference}")
        };
        let (low, high) = (ratio.low, ratio.high);
        Some(format!("Integer work after {} {says} ({low:.3} .. {high:.3})", row.candidate))
    };
    rows.iter().filter(of).filter_map(sentence).collect()
}

/// What saving and restoring costs, for the largest set of components, and whether a clean state is
/// cheaper.
fn costs(rows: &[Row]) -> Vec<String> {
    let saving: Vec<&Row> = rows.iter().filter(|row| row.cell.operation == SAVE_RESTORE).collect();
    let largest = saving.iter().map(|row| axis(row, COMPONENTS)).fold(0.0, f64::max);
    let all = saving.into_iter().filter(|row| axis(row, COMPONENTS) == largest);
    let sentence = |(candidate, of_one): (&String, Vec<&Row>)| {
        let part = |row: &&Row| {
            let state = row.cell.state.trim_start_matches(REGISTERS);
            Some(format!("{state} {:.1} ns", row.figure(NET_NS)?))
        };
        let parts: Vec<String> = of_one.iter().filter_map(part).collect();
        let of = |held: Held| {
            let state = format!("{REGISTERS}{}", held.name());
            of_one.iter().find(|row| row.cell.state == state.as_str())
        };
        let clean =
            of(Held::Clean).zip(of(Held::Unmodified)).map_or(String::new(), |(clean, kept)| {
                let more = "; clean is {} more expensive than unmodified";
                let none = "; no measurable difference between clean and unmodified";
                told(versus(clean, kept), ["; clean is {} cheaper than unmodified", more, none])
            });
        (!parts.is_empty())
            .then(|| format!("{candidate} of all components: {}{clean}", parts.join(", ")))
    };
    groups(all, |row| &row.candidate).into_iter().filter_map(sentence).collect()
}
