//! What the rows of `read-batch` amount to. Pure.

use crate::words::*;

/// The numbers with which a family is fastest and slowest in one cell, and the time of the slowest over
/// that of the fastest; none where no two members can be told apart.
fn extreme_members(members: &[&Row]) -> Option<([String; 2], PairedRatio)> {
    let best = fastest(members.iter().copied())?;
    let others = members.iter().map(|row| (*row, versus(row, best)));
    let slower = others.filter(|(_, ratio)| says(*ratio) == Verdict::Slower).collect::<Vec<_>>();
    let [_, (worst, cost)] = ends(&slower)?;
    Some(([best, worst].map(|row| bytes(axis(row, READ_BYTES) as u64)), *cost))
}

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let with_axis = rows.iter().filter(|row| row.cell.axes.contains_key(READ_BYTES));
    let mut headline = Vec::new();
    let mut details = Vec::new();
    let key = |row: &Row| (where_is(&row.cell), row.cell.size);
    for ((where_, size), of_cell) in groups(with_axis, key) {
        let what = format!("{where_}, {}", bytes(size));
        let fastest = fastest(of_cell.iter().copied());
        for (family, members) in by_candidate(&of_cell) {
            if members.len() < 2 {
                continue;
            }
            let (short, long) = match extreme_members(&members) {
                Some(([best, worst], cost)) => {
                    let [more, low, high] = [cost.median, cost.low, cost.high].map(percent);
                    (
                        format!(
                            "{what}: read {best} ({family}; the worst number takes {more} longer)"
                        ),
                        format!(
                            "{what}: {family} is fastest reading {best} before writing; reading {worst} \
                             instead takes {more} longer ({low} .. {high})"
                        ),
                    )
                }
                None => (
                    format!("{what}: no measurable difference ({family})"),
                    format!(
                        "{what}: {family}: how many bytes are read before writing makes no measurable \
                         difference"
                    ),
                ),
            };
            if fastest.is_some_and(|row| row.candidate == family) {
                headline.push(short);
            }
            details.push(long);
        }
        details.extend(movdqa(&what, &of_cell));
    }
    if details.is_empty() {
        return vec!["How much to read before writing: cannot tell; no family has two members among the kernels measured".to_owned()];
    }
    let summary = if headline.is_empty() {
        "the fastest kernels here have no number to vary; see below".to_owned()
    } else {
        headline.join("; ")
    };
    let mut sentences = vec![format!("How many bytes to read before writing: {summary}")];
    sentences.extend(details);
    sentences
}

/// Seed 002.4: eight movdqa loads before eight stores helped in L2 (4.37 to 4.77 GB/s) and hurt in
/// L1 (13.7 to 9.2).
fn movdqa(what: &str, of_cell: &[&Row]) -> Option<String> {
    let form = |bytes: f64| {
        of_cell
            .iter()
            .find(|row| row.candidate == "copy.sse2.movdqa.g*" && axis(row, READ_BYTES) == bytes)
    };
    let ratio = versus(form(128.0)?, form(16.0)?);
    let none = "is not measurably different from";
    let now = told(ratio, ["takes {} less than", "takes {} longer than", none]);
    let claimed = match what {
        place if place.starts_with("L1 to L1") => Some((Verdict::Slower, "slower")),
        place if place.starts_with("L2 to L2") => Some((Verdict::Faster, "faster")),
        _ => None,
    };
    let judgement = claimed.map_or(String::new(), |(verdict, word)| {
        format!("; Evans 2007 (002.4) found it {word}: {}", claim(verdict, ratio))
    });
    Some(format!("{what}: movdqa, 8 loads before 8 stores, {now} one by one{judgement}"))
}
