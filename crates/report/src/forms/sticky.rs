//! `sticky`: routines and who wrote before against the calls in a row, in GB/s.

use super::*;

/// One table per operation, size and state.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.size, row.cell.state.to_string());
    let table = |((operation, size, state), of_it): ((String, u64, String), Vec<&Row>)| {
        let caption = format!("{operation}, {}, {state}: GB/s by call in a row", bytes(size));
        let is_slower = |row: &Row| row.verdict == Some(Verdict::Slower);
        let cell = |row: &Row| gbps(row) + if is_slower(row) { "*" } else { "" };
        let call = |row: &Row| axis(row, CALL);
        let mut table = pivot(caption, "routine", &of_it, call, |call| call.to_string(), cell);
        if of_it.iter().any(|row| is_slower(row)) {
            table.remark("*: slower than the same call after temporal stores");
        }
        table
    };
    groups(rows, key).into_iter().map(table).collect()
}
