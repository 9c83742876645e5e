//! What the rows of `page-fault` amount to. Pure.

use crate::words::*;

/// Lines of a page.
const PAGE_LINES: usize = PAGE_SIZE / 64;

/// One candidate's row of so many lines, threads and repetitions.
type Find<'f, 'r> = &'f dyn Fn(&str, usize, usize, usize) -> Option<&'r Row>;

/// What the largest page's fault takes that finds it zero.
fn by_size(rows: &[Row]) -> Option<String> {
    let of_state = || rows.iter().filter(|row| row.cell.state == FAULT_BY_SIZE);
    let largest = of_state().map(|row| row.cell.size).max()?;
    let of = |name: &str| of_state().find(|row| row.cell.size == largest && row.candidate == name);
    let (ready, fresh, anonymous) = (of(SHARED_READY)?, of(SHARED_FRESH)?, of(ANONYMOUS)?);
    Some(format!(
        "A fault of {} that finds its page zero takes {} as one that zeroes it, {} as an anonymous one",
        bytes(largest),
        times(versus(ready, fresh)),
        times(versus(ready, anonymous))
    ))
}

/// The sentences, the headline first.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let find = |name: &str, lines: usize, threads: usize, reps: usize| {
        let wanted = [(LINES, lines), (THREADS, threads), (REPS, reps)];
        rows.iter().find(|row| {
            row.cell.state == FAULT
                && row.candidate == name
                && wanted.iter().all(|(name, value)| axis(row, name) == *value as f64)
        })
    };
    let compared = |name, lines, reps| {
        let row: &Row = find(name, lines, 1, reps)?;
        Some((row, rate(row.ratio?)))
    };
    let many = many(rows);
    let mut texts = Vec::new();
    if let Some((row, rate_of_it)) = compared(PREZEROED, 1, 1) {
        let over = |name, whose| {
            let pair = find(name, 1, 1, 1).map(|other| versus(row, other));
            pair.map_or(String::new(), |pair| format!(", {} {whose}", rate(pair)))
        };
        let thp = over("kernel THP", "THP's");
        let calloc = over("calloc", "calloc's");
        let hot = over("pool hot-zero", "that of zeroing at hand-out");
        texts.push(format!(
            "A prezeroed page is taken and touched in one line at {rate_of_it} the rate of the kernel's \
             4 KiB fault{thp}{calloc}{hot} (one thread)"
        ));
    }
    texts.extend(by_size(rows));
    texts.extend(inside_the_fault(&find, many));
    texts.extend(break_even(rows));
    for (name, lines, reps) in
        [(PREZEROED, PAGE_LINES, 1), ("pool draining", 1, 10), ("pool hot-zero", 1, 1)]
    {
        texts.extend(compared(name, lines, reps).map(|(row, of_it)| {
            let cpu = cpu(row, find(KERNEL_FAULT, lines, 1, reps));
            let beside = [("calloc", "calloc's"), ("kernel THP", "THP's")].map(|(name, whose)| {
                let pair = find(name, lines, 1, reps).map(|other| versus(row, other));
                pair.map_or(String::new(), |pair| format!(", {} {whose}", rate(pair)))
            });
            format!(
                "{name}, {lines} of {PAGE_LINES} lines, {reps} x: {of_it} the kernel's rate{}{cpu}",
                beside.concat()
            )
        }));
    }
    if many > 1
        && let (Some(one), Some(all)) = (find(PREZEROED, 1, 1, 1), find(PREZEROED, 1, many, 1))
    {
        let times = rate(versus(all, one));
        texts.push(format!("pool prezeroed: {many} threads take pages at {times} the rate of one"));
    }
    if let Some(row) = rows.iter().find(|row| row.candidate == SCRUBBING) {
        let figures = ["scrubbed_mib", "p50_ns", "p99_ns", "p999_ns", "worst_ns"];
        let [mib, p50, p99, p999, worst] = figures.map(|name| row.figure(name).unwrap_or(f64::NAN));
        texts.push(format!(
            "A zeroed page while the scrubber works ({mib:.0} MiB meanwhile): p50 {p50:.0} ns, \
             p99 {p99:.0} ns, p99.9 {p999:.0} ns, worst {worst:.0} ns"
        ));
    }
    texts.extend(settings(rows));
    texts
}

/// What the scrubber's settings change: who found zeroed pages, at what CPU, and what the bystander
/// lost.
fn settings(rows: &[Row]) -> Vec<String> {
    let of = |state: &'static str| rows.iter().filter(move |row| row.cell.state == state);
    let share = |row: &Row| {
        let (share, cpu) = (row.figure(HIT_SHARE)?, row.figure(SCRUB_CPU)?);
        Some(format!("{}: {:.0} %, {cpu:.0} ns", row.candidate, 100.0 * share))
    };
    let shares: Vec<String> = of(SCRUB_SETTINGS).filter_map(share).collect();
    if shares.is_empty() {
        return Vec::new();
    }
    let mut texts = vec![format!(
        "Part of the pages found zeroed, and the scrubber's CPU a page, by setting: {}",
        shares.join("; ")
    )];
    let through = |state| {
        let ratio = of(state).find(|row| row.candidate == SCRUB_THROUGH)?.ratio?;
        Some(format!("{ratio:.2}, {}", says(ratio)))
    };
    if let (Some(program), Some(bystander)) = (through(SCRUB_SETTINGS), through(BYSTANDER_WALK)) {
        texts.push(format!(
            "Scrubbing with temporal stores, time over scrubbing with non-temporal ones: the program's \
             {program}; the bystander's {bystander}"
        ));
    }
    texts
}

/// The most threads that any row has.
fn many(rows: &[Row]) -> usize {
    rows.iter().map(|row| axis(row, THREADS)).filter(|n| n.is_finite()).fold(1.0, f64::max) as usize
}

/// Two questions of 003.14, kept apart: what a fault without zeroing would give, and what no fault does.
fn inside_the_fault(find: Find<'_, '_>, many: usize) -> Option<String> {
    let of = |name: &str, lines, threads| find(name, lines, threads, 1)?.ratio;
    let ready = of(READY_FAULT, 1, 1)?;
    let beside = |lines, threads, what: String| {
        let ratio = of(READY_FAULT, lines, threads);
        ratio.map_or(String::new(), |ratio| format!(", {what} {}", rate(ratio)))
    };
    let all = beside(PAGE_LINES, 1, format!("{PAGE_LINES} lines"));
    let threads =
        if many == 1 { String::new() } else { beside(1, many, format!("{many} threads")) };
    let most = told(
        ready,
        [
            "prezeroing inside the fault gives at most that",
            "prezeroing inside the fault gives nothing here",
            "cannot tell whether prezeroing inside the fault gives anything",
        ],
    );
    let out = of(PREZEROED, 1, 1).map_or(String::new(), |ratio| {
        format!("; a page from the pool, without a fault, gives {}", rate(ratio))
    });
    Some(format!(
        "A fault that finds its page there and zeroes nothing has {} the rate of one that zeroes (one \
         line{all}{threads}): {most}{out}",
        rate(ready)
    ))
}

/// Twice the rate is half the time.
fn rate(time: PairedRatio) -> String {
    if !time.is_sound() {
        return "an unknown multiple of".to_owned();
    }
    let rate = PairedRatio {
        median: 1.0 / time.median,
        low: 1.0 / time.high,
        high: 1.0 / time.low,
        ..time
    };
    format!("{rate:.2} times")
}

/// Objection of 003.15: it only moves the work. The CPU in all says how much of it.
fn cpu(row: &Row, reference: Option<&Row>) -> String {
    let both = row.figure(TOTAL_CPU).zip(reference.and_then(|row| row.figure(TOTAL_CPU)));
    both.map_or(String::new(), |(ours, theirs)| {
        format!("; CPU in all, the scrubber's included, {ours:.0} ns a page against {theirs:.0}")
    })
}

/// From how many lines on taking, touching and then reading all of a prezeroed page is no gain over
/// huge pages: what the pool has to beat.
fn break_even(rows: &[Row]) -> Option<String> {
    const READ: &str = "With all of the page read afterwards";
    let compared = |(_, of_cell): (&CellKey, Vec<&Row>)| {
        let row = named(&of_cell, PREZEROED).filter(|row| axis(row, THREADS) == 1.0)?;
        Some((axis(row, LINES) as usize, between(&of_cell, PREZEROED, "kernel THP")?))
    };
    let mut cells: Vec<_> = by_cell(rows).into_iter().filter_map(compared).collect();
    cells.sort_unstable_by_key(|(lines, _)| *lines);
    let faster = |(_, ratio): &(usize, PairedRatio)| says(*ratio) == Verdict::Faster;
    let last = cells.last()?;
    let least = cells.iter().rposition(faster).map_or(0, |at| at + 1);
    let ahead = cells[..least].iter().filter(|cell| faster(cell)).count();
    if ahead < least {
        let all = cells.len();
        let found = format!("is shown to beat THP at {ahead} of {all} fractions tried");
        return Some(format!("{READ}, prezeroed {found}"));
    }
    let (lines, ratio) = cells.get(least).unwrap_or(last);
    let (rate, at) = (rate(*ratio), format!("{lines} of {PAGE_LINES} lines"));
    let found = if least == cells.len() {
        format!("beats THP at every fraction tried ({at}: {rate} the rate)")
    } else {
        format!("is not shown to beat THP from {at} touched on ({rate} the rate)")
    };
    Some(format!("{READ}, prezeroed {found}"))
}
