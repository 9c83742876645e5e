//! `page-fault` in seed 003's columns (003.12), with what the seed left out: the scrubber's CPU, the
//! later use, the CPU in all.

use super::pivot::axis;
use crate::Table;
use crate::rows::groups;
use crate::units::{significant, time};
use cachewise_measure::record::names::{
    BYSTANDER_WALK, HIT_SHARE, KERNEL_FAULT, PREZEROED, READY_AROUND, READY_FAULT, SCRUB_CPU,
    SCRUB_SETTINGS,
};
use cachewise_measure::{PairedRatio, Row, Verdict, stats};

/// One table per repetitions and threads, one of faults without zeroing, and one of latencies.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let faults = rows.iter().filter(|row| row.cell.axes.contains_key("cline"));
    let mut tables: Vec<Table> =
        groups(faults, |row: &Row| (axis(row, "rep") as u64, axis(row, "threads") as u64))
            .into_iter()
            .map(|((reps, threads), rows)| faulted(reps, threads, &rows))
            .collect();
    tables.extend(without_zeroing(rows));
    let single: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key("p999_ns")).collect();
    if !single.is_empty() {
        tables.push(latencies(&single));
    }
    tables.extend(settings(rows));
    tables
}

fn figure(row: &Row, name: &str) -> f64 {
    row.extra.get(name).copied().unwrap_or(f64::NAN)
}

fn faulted(reps: u64, threads: u64, rows: &[&Row]) -> Table {
    let heads = [
        "who",
        ">Gb",
        ">Rep",
        ">Threads",
        ">CLine",
        ">User",
        ">System",
        ">Wall",
        ">flt/cpu/s",
        ">fault/wsec",
        ">Scrub",
        ">later ns",
        ">CPU ns",
        ">time over kernel 4k",
    ];
    let caption = format!("{reps} repetitions, {threads} threads: pages taken and touched");
    let mut table = Table::new(caption, &heads);
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| axis(a, "cline").total_cmp(&axis(b, "cline")));
    for row in rows {
        let seconds = |name: &str| format!("{:.3}s", figure(row, name));
        let ratio = row.ratio.map_or("-".to_owned(), |ratio| {
            let doubt = if row.verdict == Some(Verdict::CannotTell) { "~" } else { "" };
            format!("{:.3} ({:.3} .. {:.3}){doubt}", ratio.median, ratio.low, ratio.high)
        });
        table.push(vec![
            row.candidate.clone(),
            format!("{:.3}", figure(row, "gb")),
            reps.to_string(),
            threads.to_string(),
            format!("{:.0}", axis(row, "cline")),
            seconds("user_s"),
            seconds("system_s"),
            seconds("wall_s"),
            format!("{:.0}", figure(row, "flt_per_cpu_s")),
            format!("{:.0}", figure(row, "fault_per_wall_s")),
            seconds("scrub_s"),
            significant(stats::median(&row.reader_ns)),
            significant(figure(row, "total_cpu_ns")),
            ratio,
        ]);
    }
    table.remarks.push(
        "Gb: decimal, all repetitions; User + System is exact, their proportion the \
         tick's (no tick seen: all in User); flt/cpu/s: pages over User + System; fault/wsec: pages over \
         Wall; Scrub: the scrubber's CPU for these pages, before or meanwhile; later: reading every \
         line once; CPU: taking, touching, giving back and zeroing, per page; ~: cannot tell"
            .to_owned(),
    );
    table
}

/// What prezeroing inside the fault could give, and what leaving the fault out gives (003.14).
fn without_zeroing(rows: &[Row]) -> Option<Table> {
    let heads = [
        ">CLine",
        ">Threads",
        ">zeroing fault, ns",
        ">ready fault, ns",
        ">rate",
        ">fault-around, ns",
        ">rate",
        ">no fault, ns",
        ">rate",
    ];
    let mut table = Table::new("Faults that zero nothing, and no fault", &heads);
    let once = rows.iter().filter(|row| axis(row, "rep") == 1.0);
    let cells = groups(once, |row: &Row| (axis(row, "threads") as u64, axis(row, "cline") as u64));
    for ((threads, lines), of_cell) in cells {
        let named = |name: &str| of_cell.iter().find(|row| row.candidate == name);
        let (Some(kernel), Some(_)) = (named(KERNEL_FAULT), named(READY_FAULT)) else { continue };
        let mut line =
            vec![lines.to_string(), threads.to_string(), significant(kernel.median_ns())];
        for name in [READY_FAULT, READY_AROUND, PREZEROED] {
            let row = named(name);
            line.push(row.map_or("-".to_owned(), |row| significant(row.median_ns())));
            line.push(row.and_then(|row| row.ratio).map_or("-".to_owned(), times));
        }
        table.push(line);
    }
    table.remarks.push(
        "per page. Ready: shared memory that is resident and zero, so that a fault only maps its page, and \
         what prezeroing inside the fault could give at most; fault-around: pages are read first, and a \
         fault maps its neighbours; no fault: prezeroed pages of the pool. Rate: over the zeroing fault's"
            .to_owned(),
    );
    (!table.rows.is_empty()).then_some(table)
}

/// The scrubber's settings, with what they cost whom.
fn settings(rows: &[Row]) -> Option<Table> {
    let heads = [
        ">program, ns a page",
        ">time",
        ">bystander, ns a line",
        ">time",
        ">found zeroed",
        ">scrub CPU ns",
    ];
    let mut table = Table::new("The scrubber's settings, beside a bystander", &["setting"]);
    table.columns.extend(Table::new("", &heads).columns);
    for row in rows.iter().filter(|row| row.cell.state == SCRUB_SETTINGS) {
        let walks = rows.iter().filter(|row| row.cell.state == BYSTANDER_WALK);
        let walk = walks.into_iter().find(|walk| walk.candidate == row.candidate);
        let mut line = vec![row.candidate.clone()];
        for row in [Some(row), walk] {
            line.push(row.map_or("-".to_owned(), |row| significant(row.median_ns())));
            line.push(row.and_then(|row| row.ratio).map_or("-".to_owned(), |ratio| {
                format!("{:.2} ({:.2} .. {:.2})", ratio.median, ratio.low, ratio.high)
            }));
        }
        line.push(format!("{:.1} %", 100.0 * figure(row, HIT_SHARE)));
        line.push(significant(figure(row, SCRUB_CPU)));
        table.push(line);
    }
    table.remarks.push(
        "start: the order of a free block that wakes the scrubber; stop: the lowest order it zeroes then; \
         load: the load average above which it rests; time: over the first line's. Half of the pool is in \
         pieces of at most 15 pages"
            .to_owned(),
    );
    (!table.rows.is_empty()).then_some(table)
}

/// A rate from a ratio of times.
fn times(ratio: PairedRatio) -> String {
    format!("{:.2} ({:.2} .. {:.2})", 1.0 / ratio.median, 1.0 / ratio.high, 1.0 / ratio.low)
}

fn latencies(rows: &[&Row]) -> Table {
    let heads = ["who", ">p50", ">p99", ">p99.9", ">worst", ">found zeroed", ">scrubbed MiB"];
    let mut table = Table::new("Latency of a zeroed page at hand-out", &heads);
    for row in rows {
        let mut line = vec![row.candidate.clone()];
        line.extend(
            ["p50_ns", "p99_ns", "p999_ns", "worst_ns"].map(|name| time(figure(row, name))),
        );
        line.push(format!("{:.1} %", 100.0 * figure(row, "hit_share")));
        line.push(format!("{:.0}", figure(row, "scrubbed_mib")));
        table.push(line);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{cell, row};
    use super::*;

    #[test]
    fn the_seeds_columns_come_out() {
        let mut key = cell("zero", 4096, "fault");
        for (name, value) in [("cline", 1.0), ("threads", 1.0), ("rep", 1.0)] {
            key.axes.insert(name.to_owned(), value);
        }
        let line = |name: &str, ns: f64| {
            let mut row = row(&key, name, "kernel 4k", ns);
            row.reader_ns = vec![40.0; row.operation_ns.len()];
            let pages = 65536.0;
            let wall = ns * pages / 1e9;
            row.extra.extend(
                [
                    ("gb", pages * 4096.0 / 1e9),
                    ("user_s", wall * 0.25),
                    ("system_s", wall * 0.5),
                    ("wall_s", wall),
                    ("scrub_s", 0.0),
                    ("flt_per_cpu_s", pages / (wall * 0.75)),
                    ("fault_per_wall_s", pages / wall),
                    ("total_cpu_ns", ns),
                ]
                .map(|(name, value)| (name.to_owned(), value)),
            );
            row
        };
        let mut latency = row(&cell("zero", 4096, "hand-out"), "zalloc, scrubbing", "x", 20.0);
        latency.extra.extend(
            [
                ("p50_ns", 20.0),
                ("p99_ns", 60.0),
                ("p999_ns", 900.0),
                ("worst_ns", 12_345.0),
                ("hit_share", 0.5),
                ("scrubbed_mib", 77.0),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let rows = [line("kernel 4k", 1000.0), line("pool prezeroed", 20.0), latency];
        assert!(without_zeroing(&rows).is_none(), "no row of it, no table");
        let [faults, latencies] = &tables(&rows)[..] else { panic!("two tables") };
        let text = faults.terminal(None);
        // 1000 ns a page are a million pages a second of the wall, of which 0.75 were the CPU's.
        for expected in ["0.268", "0.066s", "1000000", "1333333", "50000000"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(latencies.terminal(None).contains("50.0 %"), "{}", latencies.terminal(None));
    }

    #[test]
    fn faults_without_zeroing_stand_beside_those_that_zero() {
        let mut key = cell("zero", 4096, "fault");
        for (name, value) in [("cline", 8.0), ("threads", 2.0), ("rep", 1.0)] {
            key.axes.insert(name.to_owned(), value);
        }
        let timed = |name: &str, ns: f64| row(&key, name, KERNEL_FAULT, ns);
        let mut rows =
            [timed(KERNEL_FAULT, 1000.0), timed(READY_FAULT, 500.0), timed(PREZEROED, 20.0)];
        for at in [1, 2] {
            rows[at].ratio =
                Some(PairedRatio::new(&rows[at].operation_ns, &rows[0].operation_ns, 1));
        }
        let table = without_zeroing(&rows).expect("a table");
        let [line] = &table.rows[..] else { panic!("one line: {:?}", table.rows) };
        assert_eq!(line[..2], ["8", "2"]);
        let rate = |at: usize| line[at].split(' ').next().and_then(|rate| rate.parse::<f64>().ok());
        let (ready, none) = (rate(4).expect("a rate"), rate(8).expect("a rate"));
        assert!((ready - 2.0).abs() < 0.1 && (none - 50.0).abs() < 2.0, "{line:?}");
        assert_eq!(line[5..7], ["-", "-"]);
    }

    #[test]
    fn settings_have_a_line_each() {
        let of = |state: &str, ns| row(&cell("zero", 4096, state), "start 0", "start 0", ns);
        let mut rows = [of(SCRUB_SETTINGS, 100.0), of(BYSTANDER_WALK, 10.0)];
        rows[0].extra.insert(HIT_SHARE.to_owned(), 0.625);
        rows[0].extra.insert(SCRUB_CPU.to_owned(), 40.0);
        let table = settings(&rows).expect("a table");
        let text = table.terminal(None);
        assert!(text.contains("62.5 %") && text.contains("start 0"), "{text}");
        assert!(settings(&[]).is_none());
    }
}
