//! What the rows of `page-fault` amount to. Pure.

use super::*;

/// Lines of a page.
const PAGE_LINES: usize = PAGE_SIZE / 64;

/// The sentences, the headline first.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let find = |name: &str, lines: usize, threads: usize, reps: usize| {
        rows.iter().find(|row| {
            row.cell.state == FAULT
                && row.candidate == name
                && axis(row, LINES) == lines as f64
                && axis(row, THREADS) == threads as f64
                && axis(row, REPS) == reps as f64
        })
    };
    let mut texts = Vec::new();
    if let Some(row) = find("pool prezeroed", 1, 1, 1) {
        let thp = find("kernel THP", 1, 1, 1)
            .map_or(String::new(), |thp| format!(", {} THP's", rate(Some(versus(row, thp)))));
        let hot = find("pool hot-zero", 1, 1, 1).map_or(String::new(), |hot| {
            format!(", {} that of zeroing at hand-out", rate(Some(versus(row, hot))))
        });
        texts.push(format!(
            "A prezeroed page is taken and touched in one line at {} the rate of the kernel's 4 KiB \
             fault{thp}{hot} (one thread)",
            rate(row.ratio)
        ));
    }
    texts.extend(break_even(rows));
    for (name, lines, reps) in
        [("pool prezeroed", PAGE_LINES, 1), ("pool draining", 1, 10), ("pool hot-zero", 1, 1)]
    {
        if let Some(row) = find(name, lines, 1, reps) {
            texts.push(format!(
                "{name}, {lines} of {PAGE_LINES} lines, {reps} x: {} the kernel's rate{}",
                rate(row.ratio),
                cpu(row, find(KERNEL_FAULT, lines, 1, reps))
            ));
        }
    }
    let many =
        rows.iter().map(|row| axis(row, THREADS)).filter(|n| n.is_finite()).fold(1.0, f64::max);
    if many > 1.0
        && let (Some(one), Some(all)) =
            (find("pool prezeroed", 1, 1, 1), find("pool prezeroed", 1, many as usize, 1))
    {
        let times = rate(Some(versus(all, one)));
        texts.push(format!("pool prezeroed: {many} threads take pages at {times} the rate of one"));
    }
    if let Some(row) = rows.iter().find(|row| row.candidate == SCRUBBING) {
        let figure = |name: &str| row.extra.get(name).copied().unwrap_or(f64::NAN);
        texts.push(format!(
            "A zeroed page while the scrubber works ({:.0} MiB meanwhile): p50 {:.0} ns, p99 {:.0} ns, \
             p99.9 {:.0} ns, worst {:.0} ns",
            figure("scrubbed_mib"),
            figure("p50_ns"),
            figure("p99_ns"),
            figure("p999_ns"),
            figure("worst_ns")
        ));
    }
    texts
}

/// Twice the rate is half the time.
fn rate(time: Option<PairedRatio>) -> String {
    match time {
        Some(time) if time.is_sound() => {
            let (low, high) = (1.0 / time.high, 1.0 / time.low);
            format!("{:.2} ({low:.2} .. {high:.2}) times", 1.0 / time.median)
        }
        _ => "an unknown multiple of".to_owned(),
    }
}

/// Objection of 003.15: it only moves the work. The CPU in all says how much of it.
fn cpu(row: &Row, reference: Option<&Row>) -> String {
    let of = |row: &Row| row.extra.get(TOTAL_CPU).copied();
    match (of(row), reference.and_then(of)) {
        (Some(ours), Some(theirs)) => format!(
            "; CPU in all, the scrubber's included, {ours:.0} ns a page against {theirs:.0}"
        ),
        _ => String::new(),
    }
}

/// From how many lines on taking, touching and then reading all of a prezeroed page is no gain over
/// huge pages: what the pool has to beat.
fn break_even(rows: &[Row]) -> Option<String> {
    let (ours, theirs) = ("pool prezeroed", "kernel THP");
    let mut cells: Vec<(usize, PairedRatio)> = by_cell(rows)
        .into_iter()
        .filter_map(|(_, of_cell)| {
            let row = named(&of_cell, ours)?;
            if axis(row, THREADS) != 1.0 {
                return None;
            }
            Some((axis(row, LINES) as usize, between(&of_cell, ours, theirs)?))
        })
        .collect();
    cells.sort_unstable_by_key(|(lines, _)| *lines);
    let without = cells.iter().find(|(_, ratio)| says(*ratio) != Verdict::Faster);
    let last = cells.last()?;
    Some(match without {
        None => format!(
            "With all of the page read afterwards, prezeroed beats THP at every fraction tried ({} of \
             {PAGE_LINES} lines: {} the rate)",
            last.0,
            rate(Some(last.1))
        ),
        Some((lines, ratio)) => format!(
            "With all of the page read afterwards, prezeroed gains nothing over THP from {lines} of \
             {PAGE_LINES} lines touched on ({} the rate)",
            rate(Some(*ratio))
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::steady::{cell, row};

    fn fault(name: &str, lines: usize, ns: f64) -> Row {
        let mut key = cell("zero", 4096, FAULT);
        for (axis, value) in [(LINES, lines as f64), (THREADS, 1.0), (REPS, 1.0)] {
            key.axes.insert(axis.to_owned(), value);
        }
        row(&key, name, ns)
    }

    #[test]
    fn the_headline_is_a_rate_and_break_even_is_found() {
        let mut rows = Vec::new();
        for (lines, pool, thp) in [(1, 20.0, 200.0), (64, 210.0, 205.0)] {
            rows.extend([
                fault(KERNEL_FAULT, lines, 1000.0),
                fault("kernel THP", lines, thp),
                fault("pool prezeroed", lines, pool),
            ]);
        }
        let ratio = between(&[&rows[2], &rows[0]], "pool prezeroed", KERNEL_FAULT);
        rows[2].ratio = ratio;
        let texts = verdicts(&rows);
        assert!(texts[0].contains("at 50.0") || texts[0].contains("at 49.9"), "{texts:?}");
        assert!(texts[1].contains("gains nothing over THP from 64 of 64 lines"), "{texts:?}");
        rows.truncate(3);
        assert!(verdicts(&rows)[1].contains("at every fraction tried"), "{:?}", verdicts(&rows));
        assert!(verdicts(&[]).is_empty());
    }
}
