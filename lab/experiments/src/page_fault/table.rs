//! `page-fault` in seed 003's columns (003.12), with what the seed left out: the scrubber's CPU, the
//! later use, the CPU in all.

use crate::prelude::*;

/// One table per repetitions and threads, one of faults without zeroing, and one of latencies.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let faults = rows.iter().filter(|row| row.cell.state == FAULT);
    let cells = groups(faults, |row: &Row| (axis(row, REPS), axis(row, THREADS)));
    let mut tables: Vec<Table> = cells.into_iter().map(faulted).collect();
    let single: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key("p999_ns")).collect();
    if !single.is_empty() {
        tables.push(Table::listing("Latency of a zeroed page at hand-out", &LATENCY, single));
    }
    for (state, what) in
        [("scrubber's settings", "a program"), ("bystander beside the scrubber", "a bystander")]
    {
        let caption = format!("The scrubber's settings: {what}");
        tables.extend(compared(rows, state, &caption, |_| Some((0.0, "time".to_owned()))));
    }
    tables.extend(compared(rows, FAULT_BY_SIZE, "One fault, by the size of its page", |row| {
        Some((row.cell.size as f64, bytes(row.cell.size)))
    }));
    tables.extend(compared(
        rows,
        HOT_PAGES,
        "A page just used against one zeroed long ago",
        |row| {
            let lines = row.axis(LINES)?;
            Some((lines, counted(lines as usize, "line")))
        },
    ));
    tables.extend(PREFAULT.tables(rows));
    tables
}

/// Memory made resident ahead, by threads.
const PREFAULT: Grid = Grid {
    of: |row| super::PREFAULTED.iter().any(|state| row.cell.state == *state),
    caption: |row| (format!("{} made resident ahead: GB/s", bytes(row.cell.size)), None),
    lines: ("memory, pages", |row| {
        format!("{}, {}", row.cell.state, bytes(axis(row, PAGE_BYTES) as u64))
    }),
    column: |row| row.axis(THREADS).map(|count| (count, counted(count as usize, "thread"))),
    ..Grid::PLAIN
};

/// The rows of a state: a line a candidate, its time and that over the first candidate's.
fn compared(
    rows: &[Row],
    state: &str,
    caption: &str,
    column: impl Fn(&Row) -> Option<(f64, String)>,
) -> Option<Table> {
    let of_state: Vec<&Row> = rows.iter().filter(|row| row.cell.state == *state).collect();
    let cell = |row: &Row| format!("{} ({})", time(row.median_ns()), ratio_or_none(row));
    let name = |row: &Row| row.candidate.clone();
    let many = !of_state.is_empty();
    many.then(|| grid(caption.to_owned(), "candidate", &of_state, name, column, cell))
}

fn figure(row: &Row, name: &str) -> f64 {
    row.figure(name).unwrap_or(f64::NAN)
}

fn seconds(row: &Row, name: &str) -> String {
    match figure(row, name) {
        0.0 => "0".to_owned(),
        seconds => time(seconds * 1e9),
    }
}

const FAULTED: [Column<Row>; 14] = [
    ("who", |row| row.candidate.clone()),
    (">Gb", |row| format!("{:.3}", figure(row, "gb"))),
    (">Rep", |row| axis(row, REPS).to_string()),
    (">Threads", |row| axis(row, THREADS).to_string()),
    (">CLine", |row| format!("{:.0}", axis(row, LINES))),
    (">User", |row| seconds(row, USER)),
    (">System", |row| seconds(row, "system_s")),
    (">Wall", |row| seconds(row, "wall_s")),
    (">flt/cpu/s", |row| format!("{:.0}", figure(row, "flt_per_cpu_s"))),
    (">fault/wsec", |row| format!("{:.0}", figure(row, "fault_per_wall_s"))),
    (">Scrub", |row| seconds(row, "scrub_s")),
    (">later ns", |row| significant(stats::median(&row.reader_ns))),
    (">CPU ns", |row| significant(figure(row, TOTAL_CPU))),
    (">time over kernel 4k", |row| {
        row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio}{}", doubt(row)))
    }),
];

fn faulted(((reps, threads), mut rows): ((f64, f64), Vec<&Row>)) -> Table {
    rows.sort_by(|a, b| axis(a, LINES).total_cmp(&axis(b, LINES)));
    let of = |number: f64, what| counted(number as usize, what);
    let (reps, threads) = (of(reps, "repetition"), of(threads, "thread"));
    let caption = format!("{reps}, {threads}: pages taken and touched");
    let mut table = Table::listing(caption, &FAULTED, rows);
    table.remark(
        "Gb: decimal, all repetitions; User + System is exact, their proportion the tick's (no \
         tick seen: all in User); flt/cpu/s: pages over User + System; fault/wsec: pages over \
         Wall; Scrub: the scrubber's CPU for these pages, before or meanwhile; later: reading \
         every line once; CPU: taking, touching, giving back and zeroing, per page; ~: cannot tell",
    );
    table
}

const LATENCY: [Column<Row>; 7] = [
    ("who", |row| row.candidate.clone()),
    (">p50", |row| time(figure(row, "p50_ns"))),
    (">p99", |row| time(figure(row, "p99_ns"))),
    (">p99.9", |row| time(figure(row, "p999_ns"))),
    (">worst", |row| time(figure(row, "worst_ns"))),
    (">found zeroed", |row| format!("{:.1} %", 100.0 * figure(row, HIT_SHARE))),
    (">scrubbed MiB", |row| format!("{:.0}", figure(row, "scrubbed_mib"))),
];
