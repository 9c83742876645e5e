//! `cached-target` (001.2 to .4, 002.9): one table per size and source, a column per state of the
//! target; and one of `prefetchnta`, a column per level.

use super::pivot::residency;
use crate::Table;
use crate::cost::{comparison, median, sane};
use crate::rows::{by_cell, groups};
use crate::units::{bytes, gigabytes_per_second};
use cachewise_kernels::find;
use cachewise_measure::Row;

/// Targets first, then prefetching.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let of = |prefetching: bool| {
        rows.iter().filter(move |row| (row.cell.state == "prefetchnta") == prefetching)
    };
    let mut tables: Vec<Table> = Vec::new();
    let key =
        |row: &Row| (row.cell.size, row.axis("source_cached").is_some_and(|cached| cached > 0.0));
    for ((size, cached), of_grid) in groups(of(false), key) {
        let source = if cached { "source cached" } else { "source in memory" };
        let caption = format!("repeated to the same {}, {source}", bytes(size));
        tables.push(grid(&caption, &of_grid, |row| row.cell.state.to_string()));
    }
    let prefetching: Vec<Row> = of(true).cloned().collect();
    if !prefetching.is_empty() {
        let all: Vec<&Row> = prefetching.iter().collect();
        let level = |row: &Row| {
            let level = row.cell.source.as_deref().unwrap_or("-");
            format!("{level}, {}", bytes(row.cell.size))
        };
        let mut table = grid("prefetchnta by residency", &all, level);
        for (_, of_cell) in by_cell(&prefetching) {
            table.remarks.extend(residency(of_cell.into_iter()));
        }
        tables.push(table);
    }
    tables
}

/// Candidates down, states across; speed and ratio to the reference of the same cell.
fn grid(caption: &str, rows: &[&Row], state: impl Fn(&Row) -> String) -> Table {
    let (mut states, mut names) = (Vec::new(), Vec::new());
    for row in rows {
        let state = state(row);
        if !states.contains(&state) {
            states.push(state);
        }
        if !names.contains(&row.candidate) {
            names.push(row.candidate.clone());
        }
    }
    let mut heads = vec!["name".to_owned(), "alias".to_owned()];
    for state in &states {
        heads.extend([format!(">{state}, GB/s"), ">ratio".to_owned()]);
    }
    let mut table = Table::new(caption, &heads);
    for name in names {
        let alias = find(&name).map_or(String::new(), |kernel| kernel.aliases.join(" "));
        let mut cells = vec![name.clone(), alias];
        for wanted in &states {
            let found = rows.iter().find(|row| row.candidate == name && state(row) == *wanted);
            match found.map(|row| (row, median(&row.operation_ns))) {
                Some((row, time)) => cells.extend([
                    gigabytes_per_second(row.cell.size, time),
                    // Of the operation alone: reading the target is a state here, not a cost.
                    row.ratio
                        .and_then(sane)
                        .map_or(comparison(row)[0].clone(), |r| format!("{:.2}", r.median)),
                ]),
                None => cells.extend([String::new(), String::new()]),
            }
        }
        table.push(cells);
    }
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    table.remarks.push(format!("ratio: time of the copy alone over {reference}'s in that state"));
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{cell, row};
    use super::*;

    #[test]
    fn states_stand_side_by_side() {
        let mut rows = Vec::new();
        for (state, cached, non_temporal) in [
            ("target pre-read", 1.0, 9000.0),
            ("target not read", 1.0, 8000.0),
            ("target far", 1.0, 8500.0),
            ("target pre-read", 0.0, 4000.0),
        ] {
            let mut key = cell("copy", 8192, state);
            key.axes.insert("source_cached".to_owned(), cached);
            rows.push(row(&key, "libc", "libc", 1000.0));
            rows.push(row(&key, "copy.mmx.nt", "libc", non_temporal));
        }
        for level in ["L2", "DRAM"] {
            let mut key = cell("copy", 65536, "prefetchnta");
            key.source = Some(level.to_owned());
            rows.push(row(&key, "copy.mmx", "libc", 1000.0));
            rows.push(row(&key, "copy.mmx.pf320", "libc", 1500.0));
        }
        let text: Vec<String> = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text.join("\n"));
        assert!(tables(&[]).is_empty());
    }
}
