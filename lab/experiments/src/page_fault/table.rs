//! `page-fault` in seed 003's columns (003.12), with what the seed left out: the scrubber's CPU, the
//! later use, the CPU in all.

use crate::prelude::*;

/// One table per repetitions and threads, one of faults without zeroing, and one of latencies.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let faults = rows.iter().filter(|row| row.cell.state == FAULT);
    let cells = groups(faults, |row: &Row| (axis(row, REPS), axis(row, THREADS)));
    let mut tables: Vec<Table> = cells.into_iter().map(faulted).collect();
    tables.extend(without_zeroing(rows));
    let single: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key("p999_ns")).collect();
    if !single.is_empty() {
        tables.push(Table::listing("Latency of a zeroed page at hand-out", &LATENCY, single));
    }
    tables.extend(settings(rows));
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

/// The gain that prezeroing inside the fault could give, and that of leaving the fault out (003.14).
fn without_zeroing(rows: &[Row]) -> Option<Table> {
    let heads = ">CLine | >Threads | >zeroing fault, ns | >ready fault, ns | >rate | >fault-around, ns \
         | >rate | >no fault, ns | >rate";
    let mut table = Table::of("Faults that zero nothing, and no fault", heads);
    let once = rows.iter().filter(|row| axis(row, REPS) == 1.0);
    for ((threads, lines), of_cell) in
        groups(once, |row: &Row| (axis(row, THREADS), axis(row, LINES)))
    {
        let named = |name: &str| of_cell.iter().find(|row| row.candidate == name);
        let (Some(kernel), Some(_)) = (named(KERNEL_FAULT), named(READY_FAULT)) else { continue };
        let mut line =
            vec![lines.to_string(), threads.to_string(), significant(kernel.median_ns())];
        for row in [READY_FAULT, READY_AROUND, PREZEROED].map(named) {
            line.push(or_dash(row, |row| significant(row.median_ns())));
            // A rate is the inverse of a ratio of times.
            line.push(or_dash(
                row.and_then(|row| row.ratio),
                |PairedRatio { median, low, high, .. }| {
                    format!("{:.2} ({:.2} .. {:.2})", 1.0 / median, 1.0 / high, 1.0 / low)
                },
            ));
        }
        table.push(line);
    }
    table.remark(
        "per page. Ready: shared memory that is resident and zero, so that a fault only maps its \
         page, and what prezeroing inside the fault could give at most; fault-around: pages are \
         read first, and a fault maps its neighbours; no fault: prezeroed pages of the pool. Rate: \
         over the zeroing fault's",
    );
    (!table.rows.is_empty()).then_some(table)
}

/// The scrubber's settings, with what they cost whom.
fn settings(rows: &[Row]) -> Option<Table> {
    let heads = "setting | >program, ns a page | >time | >bystander, ns a line | >time | \
                 >found zeroed | >scrub CPU ns";
    let mut table = Table::of("The scrubber's settings, beside a bystander", heads);
    for row in rows.iter().filter(|row| row.cell.state == "scrubber's settings") {
        let mut walks = rows.iter().filter(|row| row.cell.state == "bystander beside the scrubber");
        let mut line = vec![row.candidate.clone()];
        for row in [Some(row), walks.find(|walk| walk.candidate == row.candidate)] {
            line.push(or_dash(row, |row| significant(row.median_ns())));
            line.push(or_dash(row.and_then(|row| row.ratio), |ratio| format!("{ratio:.2}")));
        }
        line.push(format!("{:.1} %", 100.0 * figure(row, HIT_SHARE)));
        line.push(significant(figure(row, "scrub_cpu_ns")));
        table.push(line);
    }
    table.remark(
        "start: the order of a free block that wakes the scrubber; stop: the lowest order it \
         zeroes then; load: the load average above which it rests; time: over the first line's. \
         Half of the pool is in pieces of at most 15 pages",
    );
    (!table.rows.is_empty()).then_some(table)
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
