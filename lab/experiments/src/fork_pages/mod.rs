//! `page-clear` and `page-copy` in seed 000's form (000.9): five sorted times of so many loops, then
//! the pages zeroed and copied in all five.

mod counted;
pub(crate) mod forking;
pub(crate) mod page_clear;
pub(crate) mod page_copy;

use crate::prelude::*;

const RUNS: usize = 5;

/// The words of an experiment's tables.
pub struct Words {
    /// The caption's word for the work.
    pub work: &'static str,
    pub last: &'static str,
    /// That column's text for a candidate.
    pub of: fn(&str) -> String,
}

/// One table per buffer, rows in the order they were given.
pub fn tables(rows: &[Row], words: &Words) -> Vec<Table> {
    by_cell(rows).into_iter().map(|(key, rows)| table(key, &rows, words)).collect()
}

fn table(key: &CellKey, rows: &[&Row], words: &Words) -> Table {
    let loops = rows.iter().find_map(|row| row.figure("loops")).unwrap_or(1.0);
    let size = bytes(key.size);
    let caption = format!("{size} {}, {RUNS}x{loops:.0} loops ({})", words.work, key.state);
    let columns =
        ["name", ">", ">", ">five times", ">", ">", ">zeroed/copied", ">ratio", ">95 % interval"];
    let mut table = Table::new(caption, &[&columns[..], &["verdict", words.last][..]].concat());
    for row in rows {
        let mut cells = vec![row.candidate.clone()];
        cells.extend(five(&row.total_ns()).map(|time| minutes(time * loops)));
        cells.push(counters(row, loops));
        cells.extend(comparison(row));
        cells.push((words.of)(&row.candidate));
        table.push(cells);
    }
    let Some(first) = rows.first() else { return table };
    let rounds = first.operation_ns.len();
    let scaled = if (f64::from(first.calls) - loops).abs() < 0.5 {
        String::new()
    } else {
        format!(" of {} loops each, scaled", first.calls)
    };
    table.remark(format!(
        "times: fastest, quartiles and slowest of {rounds} runs{scaled}; ratio: time over {}'s in \
         the same rounds",
        first.reference
    ));
    if let Some((fork, faults)) =
        rows.iter().find_map(|row| Some((row, row.figure("faults_per_loop")?)))
    {
        let pages = fork.figure("zeroed_per_loop").zip(fork.figure("copied_per_loop"));
        let pages = pages.map_or(String::new(), |(zeroed, copied)| {
            format!("; one more zeroed {zeroed} pages, page tables among them, and copied {copied}")
        });
        table.remark(format!(
            "fork: the kernel's own fork, a child that uses the buffer and ends, and the wait; {faults:.1} \
             page faults a loop{pages}"
        ));
    }
    table
}

/// The fastest, the quartiles and the slowest: what five sorted runs are a sample of.
fn five(times: &[f64]) -> [f64; RUNS] {
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    std::array::from_fn(|at| match sorted.len() {
        0 => f64::NAN,
        n => sorted[(at * (n - 1) + 2) / 4],
    })
}

/// Minutes and seconds in the form of `time`: `0m9.584`.
fn minutes(nanoseconds: f64) -> String {
    if !nanoseconds.is_finite() {
        return "-".to_owned();
    }
    let milliseconds = (nanoseconds / 1e6).round() as u64;
    let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    format!("{minutes}m{}.{:03}", rest / 1000, rest % 1000)
}

/// Pages of all five runs; nothing where nobody counted.
fn counters(row: &Row, loops: f64) -> String {
    let pages = |name| row.figure(name).map(|pages| (RUNS as f64 * loops * pages).round());
    match (pages("zeroed_per_loop"), pages("copied_per_loop")) {
        (Some(zeroed), Some(copied)) => format!("{zeroed:.0}/{copied:.0}"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_seed_wrote_them() {
        assert_eq!(minutes(9.584e9), "0m9.584");
        assert_eq!(minutes(61.5e9), "1m1.500");
        assert_eq!(minutes(f64::NAN), "-");
        assert_eq!(five(&[5.0, 1.0, 4.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(five(&[])[0].is_nan());
    }
}
