//! What the rows of `parallel` amount to. Pure.

use crate::words::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let pay = |ThreadDecision { operation, supply, threads, from }| {
        let where_they_pay = match (from, faster_at(rows, &operation, &supply, threads)) {
            (Some(from), _) => format!("from {} on", bytes(from)),
            (None, sizes) if sizes.is_empty() => "at no size tried".to_owned(),
            (None, sizes) => {
                let sizes = joined(sizes.into_iter().map(bytes), ", ");
                format!("at {sizes} but not at every larger size")
            }
        };
        format!("{operation}: {threads} {supply} threads pay {where_they_pay}")
    };
    let mut sentences: Vec<String> = paying(rows).into_iter().map(pay).collect();
    for (operation, of_it) in groups(rows, |row: &Row| row.cell.operation.clone()) {
        let largest = of_it.iter().map(|row| row.cell.size).max().unwrap_or(0);
        let best = |state: &str| {
            let of_state = |row: &&Row| row.cell.size == largest && row.cell.state == state;
            fastest(of_it.iter().copied().filter(of_state))
        };
        if let (Some(alone), Some(pooled), Some(ceiling)) =
            (best(ALONE), best("pooled"), best(CEILING))
        {
            let (time, part) = (versus(pooled, alone).median, pooled.gbps() / ceiling.gbps());
            let told =
                |row: &Row, comma: &str| format!("{}{comma} {:.3} GB/s", row.candidate, row.gbps());
            sentences.push(format!(
                "{operation} of {}: {}, {time:.2} of one thread's time; {part:.2} of the best kernel on \
                 equal parts ({})",
                bytes(largest),
                told(pooled, ""),
                told(ceiling, ",")
            ));
        }
    }
    sentences
}

/// The sizes at which so many threads are shown to be faster than one.
fn faster_at(rows: &[Row], operation: &str, supply: &str, threads: u32) -> Vec<u64> {
    let of_it = || rows.iter().filter(|row| row.cell.operation == operation);
    let alone = |size: u64| of_it().find(|row| row.cell.size == size && row.cell.state == ALONE);
    let mine = of_it().filter(|row| {
        row.cell.state == supply && row.axis(THREADS).is_some_and(|n| n == f64::from(threads))
    });
    let faster = mine.filter(|row| {
        alone(row.cell.size).is_some_and(|alone| says(versus(row, alone)) == Verdict::Faster)
    });
    faster.map(|row| row.cell.size).collect()
}
