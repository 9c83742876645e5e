//! `receive` (001.7, .8): a table per cell, policies down; speed, and what of a core it takes at
//! 10 Gb/s.

use crate::prelude::*;

/// One table per cell, in the order they were measured; rows of TCP with fewer copies, which older records have, as a
/// matrix.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let is_policy = |row: &Row| [RECEIVE, SEND].iter().any(|state| row.cell.state == *state);
    let (policies, others): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(is_policy);
    let policies = by_cell(&policies).into_iter().map(table);
    policies.chain(cachewise_report::matrix::tables(&others)).collect()
}

fn caption(key: &CellKey) -> String {
    let is = |name, yes, no| if key.axis(name).is_some_and(|set| set > 0.0) { yes } else { no };
    let size = bytes(key.size);
    if key.state == SEND {
        return format!(
            "send: copyin of {size} from a warm buffer to a ring that the CPU never reads"
        );
    }
    format!(
        "receive: copyout of {size} from a ring {} to a user's buffer that is {} and {}",
        is(OTHER_CORE, "written by another core", "in memory"),
        is(USER_REUSED, "reused", "streamed through"),
        is(READ, "read", "not read"),
    )
}

fn table((key, rows): (&CellKey, Vec<&Row>)) -> Table {
    let mut table = Table::of(
        caption(key),
        "policy | >Gb/s | >core at 10 Gb/s | >of it operation | >copy | >reader | >bystander | \
         >sum | >ratio | >95 % interval | verdict",
    );
    for row in &rows {
        let share = |part: Option<f64>| or_dash(part, |part| format!("{:.1} %", part * 100.0));
        // A whole that is not measurable has no rate.
        let of_whole = |name: &str| row.figure(name).filter(|_| row.is_measurable());
        let mut cells = vec![row.candidate.clone(), or_dash(of_whole(GBIT), significant)];
        cells.extend([of_whole(CPU_SHARE), row.figure(COPY_SHARE)].map(share));
        cells.extend(cost::parts(row));
        cells.extend(comparison(row));
        table.push(cells);
    }
    table.remark(
        "policies that make the same choice in a cell differ by noise alone; Gb/s and ratio are of \
         the sum",
    );
    if rows.iter().any(|row| row.candidate == TCP) {
        table.remark(
            "tcp loopback: times are by the clock and include waiting for the sender, shares are \
             the receiver's own CPU time",
        );
    }
    table.remarks.extend(residency(rows.into_iter()));
    table
}
