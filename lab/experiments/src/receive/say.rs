//! What the rows of `receive` amount to. Pure.

use crate::words::*;

/// Which policy costs least over everything, and what 001.8 recommends. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = by_cell(rows);
    if cells.is_empty() {
        return Vec::new();
    }
    let (means, compared) = means(&cells);
    let mut texts = Vec::new();
    if let [(best, _), (second, _), ..] = means[..] {
        let head = if says(over_cells(&cells, best, second)) == Verdict::Faster {
            format!("\"{best}\" costs least")
        } else {
            format!("Cannot tell \"{best}\" from \"{second}\", which cost least")
        };
        let (policies, cells) = (means.len(), counted(compared, "cell"));
        texts.push(format!(
            "{head} of {policies} policies of receiving and sending, over {cells} (001.8)"
        ));
        texts.push(format!(
            "Whole cost over \"never NT\", geometric mean: {}",
            joined(means.iter().map(|(name, mean)| format!("{name} {mean:.2}")), ", ")
        ));
    } else {
        texts.push("Policies (001.8): cannot tell, no cell has two of them".to_owned());
    }
    texts.extend(recommended(&cells));
    for (state, what) in [(RECEIVE, "Receiving"), (SEND, "Sending, for a device to fetch (001.8)")]
    {
        let of_state = pairs(&cells, "always NT", "never NT").into_iter();
        let of_state = of_state.filter(|(key, _)| key.state == state).map(|(_, pair)| pair);
        let Tally { all, faster, slower, open } = Tally::of(of_state);
        let lost = match cells.iter().filter(|(key, _)| key.state == state).count() - all {
            0 => String::new(),
            lost => format!(", not measurable in {lost} more"),
        };
        if all > 0 {
            texts.push(format!(
                "{what}: non-temporal costs less in {faster} of {all} cells, more in {slower}, \
                 cannot tell in {open}{lost}"
            ));
        }
    }
    texts.extend([from_128(&cells), beside_tcp(&cells), both_ends(rows)].into_iter().flatten());
    texts
}

/// SunOS's policy, where its size alone decides: "this seems too small" (002.14).
fn from_128(cells: &Cells<'_>) -> Option<String> {
    let frames = pairs(cells, "NT from 128", "never NT").into_iter();
    let frames = frames.filter(|(key, _)| (128..64 << 10).contains(&key.size));
    let Tally { all, faster, slower, .. } = Tally::of(frames.map(|(_, pair)| pair));
    let answer = match (faster, slower) {
        (0, 0) => "cannot tell here",
        (faster, slower) if slower > faster => "still true",
        _ => "no longer true here",
    };
    (all > 0).then(|| {
        format!(
            "Non-temporal from 128 bytes on is too small a limit (002.14): {answer}; below 64 KiB it \
             costs more in {slower} of {all} cells and less in {faster}"
        )
    })
}

/// What a real transfer takes of a core at both ends, over all cells.
fn both_ends(rows: &[Row]) -> Option<String> {
    let shares = || rows.iter().filter_map(|row| row.figure(BOTH_ENDS));
    let (least, most) = extremes(shares().map(|share| share * 100.0))?;
    let cells = counted(shares().count(), "cell");
    Some(format!(
        "A real TCP transfer over loopback at 10 Gb/s, both ends and the kernel: {least:.0} to \
         {most:.0} % of a core in {cells}"
    ))
}

/// Each policy's whole cost over "never NT", the geometric mean, cheapest first, over the cells in which
/// all of them can be measured; and how many these are.
fn means(cells: &Cells<'_>) -> (Vec<(&'static str, f64)>, usize) {
    let measured = |name: &&str| cells.iter().any(|(_, of_cell)| named(of_cell, name).is_some());
    let there: Vec<&'static str> = POLICIES.into_iter().filter(measured).collect();
    let ratios: Vec<Vec<f64>> = cells
        .iter()
        .filter_map(|(_, of_cell)| {
            let ratio = |name: &&str| Some(between(of_cell, name, "never NT")?.median);
            there.iter().map(ratio).collect()
        })
        .collect();
    if ratios.is_empty() {
        return (Vec::new(), 0);
    }
    let of = |at: usize| ratios.iter().map(|cell| cell[at]).collect::<Vec<f64>>();
    let mean = |(at, name): (usize, &'static str)| (name, stats::geometric_mean(&of(at)));
    let mut means: Vec<_> = there.into_iter().enumerate().map(mean).collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    (means, ratios.len())
}

/// The cost of one policy over another's, cell by cell.
fn over_cells(cells: &Cells<'_>, one: &str, other: &str) -> PairedRatio {
    let (ones, others): (Vec<f64>, Vec<f64>) = cells
        .iter()
        .filter_map(|(_, of_cell)| {
            let cost = |name| Some(between(of_cell, name, "never NT")?.median);
            Some((cost(one)?, cost(other)?))
        })
        .unzip();
    PairedRatio::paired(&ones, &others)
}

/// Is "only when known non-temporal" (Evans's advice) better than what size alone can decide?
fn recommended(cells: &Cells<'_>) -> Option<String> {
    let by_size = ["NT from 128", "NT from 64K", "NT above L2"];
    let (all, _) = means(cells);
    let best = all.iter().find(|(name, _)| by_size.contains(name))?.0;
    let pair = Some(over_cells(cells, "NT when known", best)).filter(PairedRatio::is_sound)?;
    let no_longer = "no longer true here: the size decides better";
    let answer = told(pair, ["still true: the hint costs less", no_longer, "cannot tell here"]);
    // A cell is a round here.
    let takes = match pair.has_interval() {
        true => times(pair),
        false => format!("{:.2} times as long", pair.median),
    };
    Some(format!(
        "A caller's hint decides what size cannot (001.8); {answer}: \"NT when known\" takes {takes} as \
         \"{best}\", cell by cell"
    ))
}

/// What part of a real receive the copy is (001.7), over all cells that have both.
fn beside_tcp(cells: &Cells<'_>) -> Option<String> {
    let share = |(key, of_cell): &(&CellKey, Vec<&Row>)| {
        let share = |name| named(of_cell, name)?.figure(COPY_SHARE);
        let of_receive = share("never NT")? / share(TCP)?;
        (of_receive.is_finite() && of_receive > 0.0).then_some((key.size, of_receive))
    };
    let mut shares: Vec<(u64, f64)> = cells.iter().filter_map(share).collect();
    shares.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (least, most) = (shares.first()?, shares.last()?);
    let text = |(size, share): &(u64, f64)| format!("{:.0} % at {}", share * 100.0, bytes(*size));
    let ([least, most], cells) = ([least, most].map(text), counted(shares.len(), "cell"));
    Some(format!(
        "One copy in user space takes as much CPU as {least} to {most} of a real TCP receive over \
         loopback, in {cells} (001.7 saw copying take up to 70 % of a receive; the kernel's own copy was \
         not timed)"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tcp_copies;
    use super::*;
    use crate::made_up::{self, cell, kept, row};

    fn point(state: &str, size: usize, read: bool, never: f64, always: f64) -> Vec<Row> {
        let key = cell("copy", size, state).with(&[(READ, f64::from(u8::from(read)))]);
        let by_size = [size >= 128, size >= 64 << 10, size > 512 << 10];
        let non_temporal = [false, true, by_size[0], by_size[1], by_size[2], !read, state == SEND];
        let policy = |(name, non_temporal): (&&str, bool)| {
            row(&key, name, if non_temporal { always } else { never })
        };
        let libc = row(&key, LIBC, never);
        std::iter::once(libc).chain(POLICIES.iter().zip(non_temporal).map(policy)).collect()
    }

    /// A copy's share of a core, and that of a receive over TCP.
    fn shares(size: usize, copy: f64, tcp: f64) -> [Row; 2] {
        let key = cell("copy", size, RECEIVE);
        [("never NT", copy), (TCP, tcp)]
            .map(|(name, share)| row(&key, name, 100.0).with(&[(COPY_SHARE, share)]))
    }

    #[test]
    fn each_outcome_has_its_sentences() {
        // Non-temporal stores lose where it is read and win where it is not, whatever the size.
        let hinted = [
            point(RECEIVE, 4096, true, 100.0, 200.0),
            point(RECEIVE, 4096, false, 100.0, 60.0),
            point(RECEIVE, 1 << 20, true, 100.0, 200.0),
            point(RECEIVE, 1 << 20, false, 100.0, 60.0),
            point(RECEIVE, 2 << 20, true, 100.0, 200.0),
            point(SEND, 4096, false, 100.0, 60.0),
        ];
        let one = point(RECEIVE, 4096, true, 100.0, 120.0);
        let without = |missing: &[&str]| -> Vec<Row> {
            let is_there = |row: &&Row| !missing.contains(&row.candidate.as_str());
            one.iter().filter(is_there).cloned().collect()
        };
        let mut lost = point(RECEIVE, 8192, true, 100.0, 120.0);
        let always = lost.iter_mut().filter(|row| row.candidate == "always NT");
        always.for_each(|row| row.operation_ns.iter_mut().for_each(|ns| *ns = -*ns));
        let of_tcp =
            [shares(16 << 10, 0.05, 1.0), shares(2 << 20, 0.38, 0.5), shares(4096, 0.02, 0.2)];
        let ends = [0.5, 0.3]
            .map(|share| row(&cell("copy", 4096, RECEIVE), TCP, 1.0).with(&[(BOTH_ENDS, share)]));
        let libc = row(&cell("copy", 4096, RECEIVE), LIBC, 1.0);
        // The hint needs enough cells to be judged.
        let sizes = || (0..8).map(|shift| 4096 << shift);
        let helped = sizes().flat_map(|size| {
            let unread = point(RECEIVE, size, false, 100.0, 50.0);
            [unread, point(RECEIVE, size, true, 100.0, 300.0)].concat()
        });
        // Better in most cells, and in none worse.
        let seldom_read = sizes().flat_map(|size| {
            let unread = [1, 2, 3].map(|more| point(RECEIVE, size + more, false, 100.0, 50.0));
            [unread.concat(), point(RECEIVE, size, true, 100.0, 1e4)].concat()
        });
        let misled = sizes().flat_map(|size| point(RECEIVE, size << 8, false, 50.0, 100.0));
        let cases = [
            ("the hint decides", verdicts(&hinted.concat())),
            ("nothing matters", verdicts(&point(RECEIVE, 4096, true, 100.0, 100.0))),
            ("a policy that was not measured", verdicts(&without(&["always NT"]))),
            ("one policy", verdicts(&without(&POLICIES[1..]))),
            ("a cell that cannot be measured", verdicts(&[one, lost].concat())),
            ("copies and real receives", verdicts(&of_tcp.concat())),
            ("both ends of a transfer", verdicts(&ends)),
            ("libc alone", verdicts(&[libc])),
            ("nothing", verdicts(&[])),
            ("the hint helps", verdicts(&helped.collect::<Vec<_>>())),
            ("the hint helps more often", verdicts(&seldom_read.collect::<Vec<_>>())),
            ("the hint misleads", verdicts(&misled.collect::<Vec<_>>())),
        ];
        let over_tcp = made_up::cases("receive");
        let over_tcp =
            over_tcp.iter().map(|case| (case.name.as_str(), tcp_copies::verdicts(&case.rows)));
        kept("receive", &cases.into_iter().chain(over_tcp).collect::<Vec<_>>());
    }
}
