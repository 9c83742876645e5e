//! What the rows of `parallel` amount to. Pure.

use super::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    for ThreadDecision { operation, supply, threads, from } in paying(rows) {
        let from =
            from.map_or("at no size tried".to_owned(), |at| format!("from {} on", bytes(at)));
        sentences.push(format!("{operation}: {threads} {supply} threads pay {from}"));
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
}
