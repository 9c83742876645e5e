//! What the rows of `reuse-map` amount to. Pure.

use crate::words::*;

/// Among a hundred cells some interval excludes 1 by chance alone: "yes" needs one that begins
/// above this.
const CERTAIN: f64 = 1.05;

/// The answer to 000.14, and where the break-even lies. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = by_cell(rows);
    ["copy", "zero"].into_iter().flat_map(|operation| of_operation(&cells, operation)).collect()
}

fn of_operation(cells: &Cells<'_>, operation: &str) -> Vec<String> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for (key, of_cell) in cells.iter().filter(|(key, _)| key.operation == operation) {
        let own =
            of_cell.iter().filter(|row| row.candidate != row.reference && row.candidate != LIBC);
        found.extend(own.filter_map(|row| {
            Some(((*key, *row), between(of_cell, &row.candidate, &row.reference)?))
        }));
    }
    if found.is_empty() {
        return Vec::new();
    }
    let Tally { all, faster, slower, open } = Tally::of(found.iter().map(|(_, pair)| *pair));
    let those = |wanted| {
        let of_it = found.iter().filter(|(_, pair)| says(*pair) == wanted);
        of_it.copied().collect::<Vec<_>>()
    };
    let counts = format!(
        "non-temporal wins in {faster} of {all} cells, loses in {slower}, cannot tell in {open}"
    );
    let question = if operation == "copy" {
        "Is there ANY workload which will be faster on non-NT copy_page() than on NT one? (000.14)"
    } else {
        "And for zeroing?"
    };
    let takes = |((_, row), pair): &Found<'_>| {
        format!("{} takes {} as {}", row.candidate, times(*pair), row.reference)
    };
    let answer = match ends(&those(Verdict::Slower)) {
        Some([_, most]) if most.1.low > CERTAIN => {
            format!("Yes: {}, {}; {counts}", place(most.0.0), takes(most))
        }
        None if open == 0 => format!("No: {counts}"),
        _ => format!("Cannot tell here: {counts}"),
    };
    let gain = match ends(&those(Verdict::Faster)) {
        Some([most, _]) => {
            let (place, takes) = (place(most.0.0), takes(most));
            format!("Non-temporal gains most in {operation} {place}: {takes}")
        }
        None => format!("No benefit: non-temporal is not shown to gain in any cell of {operation}"),
    };
    let deferring = deferring(&found);
    vec![
        format!("{question} {answer}"),
        gain,
        format!("{operation}, read at once against deferred: {deferring}"),
    ]
}

type Found<'r> = ((&'r CellKey, &'r Row), PairedRatio);

/// The share of won cells among those read at once and those read after most traffic: what the
/// seed's author found in 2005.
fn deferring(found: &[Found<'_>]) -> String {
    let delay = |((key, _), _): &Found<'_>| key.axis(DELAY_BYTES);
    let most = found.iter().filter_map(delay).fold(0.0, f64::max);
    let won = |wanted: f64| {
        let of_it = found.iter().filter(|found| delay(found) == Some(wanted));
        let Tally { all, faster, .. } = Tally::of(of_it.map(|(_, pair)| *pair));
        format!("wins {faster} of {all}")
    };
    if most == 0.0 {
        return format!("{} at once, nothing was deferred", won(0.0));
    }
    format!("{} at once, {} after {} of other traffic", won(0.0), won(most), bytes(most as u64))
}

/// A cell in words.
fn place(key: &CellKey) -> String {
    let read = key.reader.unwrap_or(0.0) * 100.0;
    let when = match (key.axis(DELAY_BYTES), key.axis(DELAY_NS)) {
        (Some(traffic), _) if traffic > 0.0 => {
            format!("after {} of other traffic", bytes(traffic as u64))
        }
        (_, Some(time)) => format!("after {time:.0} ns"),
        _ => "at once".to_owned(),
    };
    let from = key.destination.map_or(String::new(), |level| format!(" in {level}"));
    format!("with {}{from}, {read:.1} % read {when}", bytes(key.size))
}
