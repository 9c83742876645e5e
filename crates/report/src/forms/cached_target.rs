//! `cached-target` (001.2 to .4, 002.9): one table per size and source, a column per state of the
//! target; and one of `prefetchnta`, a column per level.

use super::*;

/// Targets first, then prefetching.
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
    let prefetching: Vec<&Row> = of(true).collect();
    if !prefetching.is_empty() {
        let level = |row: &Row| {
            let level = row.cell.source.as_deref().unwrap_or("-");
            format!("{level}, {}", bytes(row.cell.size))
        };
        let mut table = grid("prefetchnta by residency", &prefetching, level);
        for (_, of_cell) in by_cell(prefetching) {
            table.remarks.extend(residency(of_cell.into_iter()));
        }
        tables.push(table);
    }
    tables
}

/// Candidates down, states across; speed and ratio to the reference of the same cell.
fn grid(caption: &str, rows: &[&Row], state: impl Fn(&Row) -> String) -> Table {
    let states = groups(rows.iter().copied(), &state);
    let mut heads = vec!["name".to_owned(), "alias".to_owned()];
    for (state, _) in &states {
        heads.extend([format!(">{state}, GB/s"), ">ratio".to_owned()]);
    }
    let mut table = Table::new(caption, &heads);
    for (name, of_name) in groups(rows.iter().copied(), |row| row.candidate.clone()) {
        let alias = find(&name).map_or(String::new(), |kernel| kernel.aliases.join(" "));
        let mut cells = vec![name.clone(), alias];
        for (wanted, _) in &states {
            let found = of_name.iter().find(|row| state(row) == *wanted);
            match found.map(|row| (row, median(&row.operation_ns))) {
                Some((row, time)) => cells.extend([
                    gigabytes_per_second(row.cell.size, time),
                    // Of the operation alone: reading the target is a state here, not a cost.
                    row.ratio
                        .and_then(cost::sane)
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
