//! `sticky`: routines and who wrote before against the calls in a row, in GB/s.

use super::pivot::{axis, gbps, pivot};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::record::names::CALL;
use cachewise_measure::{Row, Verdict};

/// One table per operation, size and state.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.size, row.cell.state.to_string());
    let table = |((operation, size, state), of_it): ((String, u64, String), Vec<&Row>)| {
        let caption = format!("{operation}, {}, {state}: GB/s by call in a row", bytes(size));
        let mut table = pivot(
            caption,
            "routine",
            &of_it,
            |row| axis(row, CALL),
            |call| format!("{call}"),
            |row| {
                let slower = row.verdict == Some(Verdict::Slower);
                format!("{}{}", significant(gbps(row)), if slower { "*" } else { "" })
            },
        );
        if of_it.iter().any(|row| row.verdict == Some(Verdict::Slower)) {
            table.remarks.push("*: slower than the same call after temporal stores".to_owned());
        }
        table
    };
    groups(rows, key).into_iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;
    use cachewise_measure::record::names::AFTER;

    #[test]
    fn calls_stand_in_columns() {
        let at = |after: usize, call: f64, ns: f64, ratio: f64, verdict| {
            let cell = ("copy", 65536, AFTER[after]);
            with_ratio(row(cell, (None, None), &[(CALL, call)], "libc", ns), ratio, verdict)
        };
        let rows = [
            at(0, 1.0, 2000.0, 1.0, Verdict::CannotTell),
            at(0, 2.0, 2000.0, 1.0, Verdict::CannotTell),
            at(1, 1.0, 10000.0, 5.0, Verdict::Slower),
            at(1, 2.0, 2010.0, 1.0, Verdict::CannotTell),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
