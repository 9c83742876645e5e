//! `page-fault` in seed 003's columns (003.12), with what the seed left out: the scrubber's CPU, the
//! later use, the CPU in all.

use super::*;

/// One table per repetitions and threads, one of faults without zeroing, and one of latencies.
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
    row.figure(name).unwrap_or(f64::NAN)
}

fn faulted(reps: u64, threads: u64, rows: &[&Row]) -> Table {
    let heads = "who | >Gb | >Rep | >Threads | >CLine | >User | >System | >Wall | >flt/cpu/s | \
         >fault/wsec | >Scrub | >later ns | >CPU ns | >time over kernel 4k";
    let caption = format!("{reps} repetitions, {threads} threads: pages taken and touched");
    let mut table = Table::of(caption, heads);
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
    table.remark(
        "Gb: decimal, all repetitions; User + System is exact, their proportion the tick's (no \
         tick seen: all in User); flt/cpu/s: pages over User + System; fault/wsec: pages over \
         Wall; Scrub: the scrubber's CPU for these pages, before or meanwhile; later: reading \
         every line once; CPU: taking, touching, giving back and zeroing, per page; ~: cannot tell",
    );
    table
}

/// What prezeroing inside the fault could give, and what leaving the fault out gives (003.14).
fn without_zeroing(rows: &[Row]) -> Option<Table> {
    let heads = ">CLine | >Threads | >zeroing fault, ns | >ready fault, ns | >rate | >fault-around, ns \
         | >rate | >no fault, ns | >rate";
    let mut table = Table::of("Faults that zero nothing, and no fault", heads);
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
    table.remark(
        "start: the order of a free block that wakes the scrubber; stop: the lowest order it \
         zeroes then; load: the load average above which it rests; time: over the first line's. \
         Half of the pool is in pieces of at most 15 pages",
    );
    (!table.rows.is_empty()).then_some(table)
}

/// A rate from a ratio of times.
fn times(ratio: PairedRatio) -> String {
    format!("{:.2} ({:.2} .. {:.2})", 1.0 / ratio.median, 1.0 / ratio.high, 1.0 / ratio.low)
}

fn latencies(rows: &[&Row]) -> Table {
    let heads = "who | >p50 | >p99 | >p99.9 | >worst | >found zeroed | >scrubbed MiB";
    let mut table = Table::of("Latency of a zeroed page at hand-out", heads);
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
