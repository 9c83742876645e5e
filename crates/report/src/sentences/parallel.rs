//! What the rows of `parallel` amount to. Pure.

use super::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    for ThreadDecision { operation, supply, threads, from } in paying(rows) {
        let where_they_pay = match (from, faster_at(rows, &operation, &supply, threads).as_slice())
        {
            (Some(from), _) => format!("from {} on", bytes(from)),
            (None, []) => "at no size tried".to_owned(),
            (None, sizes) => {
                let sizes: Vec<String> = sizes.iter().map(|size| bytes(*size)).collect();
                format!("at {} but not at every larger size", sizes.join(", "))
            }
        };
        sentences.push(format!("{operation}: {threads} {supply} threads pay {where_they_pay}"));
    }
    for (operation, of_it) in groups(rows, |row: &Row| row.cell.operation.clone()) {
        let largest = of_it.iter().map(|row| row.cell.size).max().unwrap_or(0);
        let best = |state: &str| {
            of_it
                .iter()
                .filter(|row| row.cell.size == largest && row.cell.state == state)
                .max_by(|a, b| a.gbps().total_cmp(&b.gbps()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size: usize, state: &str, threads: f64, ns: f64) -> Row {
        let cell = key("copy", size, (None, None), state, &[(THREADS, threads)]);
        made_up::row(cell, &format!("{threads} {state}"), "1 thread", ns)
    }

    #[test]
    fn threads_pay_from_where_they_are_faster_and_stay_so() {
        let mut rows = Vec::new();
        for (size, spawned, four) in [(1, 2.0, 9.0), (2, 0.9, 1.1), (4, 0.6, 0.7), (8, 0.5, 0.3)] {
            rows.push(row(size << 20, ALONE, 1.0, 1000.0));
            rows.push(row(size << 20, "spawned", 2.0, 1000.0 * spawned));
            rows.push(row(size << 20, "spawned", 4.0, 1000.0 * four));
            rows.push(row(size << 20, "pooled", 2.0, 1001.0));
        }
        let found: Vec<_> =
            paying(&rows).into_iter().map(|p| (p.supply, p.threads, p.from)).collect();
        assert_eq!(
            found,
            [
                ("spawned".to_owned(), 2, Some(2 << 20)),
                ("spawned".to_owned(), 4, Some(8 << 20)),
                ("pooled".to_owned(), 2, None),
            ]
        );
        let said = verdicts(&rows);
        assert_eq!(said[0], "copy: 2 spawned threads pay from 2 MiB on");
        assert_eq!(said[2], "copy: 2 pooled threads pay at no size tried");
    }

    #[test]
    fn sizes_at_which_threads_pay_are_told_where_they_do_not_at_larger_ones() {
        let rows: Vec<Row> = [(4, 600.0), (16, 800.0), (64, 1100.0)]
            .into_iter()
            .flat_map(|(mib, ns)| {
                [row(mib << 20, ALONE, 1.0, 1000.0), row(mib << 20, "pooled", 2.0, ns)]
            })
            .collect();
        let said = verdicts(&rows);
        let told = "copy: 2 pooled threads pay at 4 MiB, 16 MiB but not at every larger size";
        assert_eq!(said[0], told);
    }
}
