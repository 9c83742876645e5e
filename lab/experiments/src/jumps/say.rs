//! Sentences about the rows of `jumps`. Pure.

use super::measure::BEHIND;
use crate::tables::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let [none, .., most] = BEHIND;
    let cells = by_cell(rows);
    let jumps = (BEHIND.len() - 1) as f64;
    let one = |of_cell: &Vec<&Row>| {
        let named = |name: &str| of_cell.iter().copied().find(|row| row.candidate == name);
        let (row, other) = (named(most)?, named(none)?);
        let shown = row.over(other).verdict(cachewise_judge::margin::ROW) == Verdict::Slower;
        Some((shown, (row.median_ns() - other.median_ns()) / jumps))
    };
    let found: Vec<(bool, f64)> = cells.iter().filter_map(|(_, of_cell)| one(of_cell)).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let (shown, all) = (found.iter().filter(|(shown, _)| *shown).count(), found.len());
    let mut costs: Vec<f64> = found.iter().map(|(_, cost)| *cost).collect();
    costs.sort_by(f64::total_cmp);
    let places = if all == 1 { "1 place".to_owned() } else { format!("{all} places") };
    if shown == 0 {
        return vec![format!(
            "a taken jump costs a call of 32 bytes nothing that can be told, at {places} in a line"
        )];
    }
    vec![format!(
        "a taken jump costs a call of 32 bytes {:.2} ns, the median of {places} in a line ({:.2} to {:.2}); it is shown at {shown}",
        stats::median(&costs),
        costs[0],
        costs[all - 1],
    )]
}
