//! `cached-target` (001.2 to .4, 002.9): one table per size and source, a column per state of the
//! target; and one of `prefetchnta`, a column per level.

use crate::tables::*;

/// Targets first, then prefetching.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let (prefetching, targets): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.cell.state == PREFETCHNTA);
    let key = |row: &Row| (row.cell.size, row.axis(SOURCE_CACHED).is_some_and(|is| is > 0.0));
    let table = |((size, cached), of_grid): ((u64, bool), Vec<&Row>)| {
        let source = if cached { "source cached" } else { "source in memory" };
        let caption = format!("repeated to the same {}, {source}", bytes(size));
        beside_each_other(&caption, &of_grid, |row| row.cell.state.to_string())
    };
    let mut tables: Vec<Table> = groups(targets, key).into_iter().map(table).collect();
    if !prefetching.is_empty() {
        let level = |row: &Row| {
            let level = row.cell.source.map_or("-", Residency::name);
            format!("{level}, {}", bytes(row.cell.size))
        };
        let mut table = beside_each_other("prefetchnta by residency", &prefetching, level);
        let cells = by_cell(prefetching).into_iter();
        table.remarks.extend(cells.filter_map(|(_, of_cell)| residency(of_cell.into_iter())));
        tables.push(table);
    }
    tables
}

/// Candidates down, states across; speed and ratio to the reference of the same cell.
fn beside_each_other(caption: &str, rows: &[&Row], state: impl Fn(&Row) -> String) -> Table {
    let states = distinct(rows.iter().map(|row| state(row)));
    let mut heads = vec!["name".to_owned(), "alias".to_owned()];
    for state in &states {
        heads.extend([format!(">{state}, GB/s"), ">ratio".to_owned()]);
    }
    let mut table = Table::new(caption, &heads);
    for (name, of_name) in groups(rows.iter().copied(), |row| row.candidate.as_str()) {
        let mut cells = vec![name.to_owned(), aliases(name)];
        for wanted in &states {
            cells.extend(match of_name.iter().find(|row| state(row) == *wanted) {
                Some(row) => [
                    gigabytes_per_second(row.cell.size, median(&row.operation_ns)),
                    // The operation alone: reading the target is a state here, not a cost.
                    row.ratio
                        .and_then(cost::sane)
                        .map_or(comparison(row)[0].clone(), |r| format!("{:.2}", r.median)),
                ],
                None => [String::new(), String::new()],
            });
        }
        table.push(cells);
    }
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    table.remark(format!("ratio: time of the copy alone over {reference}'s in that state"));
    table
}
