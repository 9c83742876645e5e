//! What the rows of `reuse-map` amount to. Pure.

use super::*;

/// Among a hundred cells some interval excludes 1 by chance alone: "yes" needs one that begins
/// above this.
const CERTAIN: f64 = 1.05;

/// The answer to 000.14, and where the break-even lies. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut texts = Vec::new();
    for operation in ["copy", "zero"] {
        let cells = by_cell(rows);
        let mut found: Vec<Found<'_>> = Vec::new();
        for (key, of_cell) in cells.iter().filter(|(key, _)| key.operation == operation) {
            let is_own = |row: &&&Row| row.candidate != row.reference && row.candidate != LIBC;
            found.extend(of_cell.iter().filter(is_own).filter_map(|row| {
                Some((*key, *row, between(of_cell, &row.candidate, &row.reference)?))
            }));
        }
        if found.is_empty() {
            continue;
        }
        let Tally { all, faster, slower, open } = Tally::of(found.iter().map(|(_, _, pair)| *pair));
        let extreme = |wanted: Verdict, most: bool| {
            let of_it = found.iter().filter(|(_, _, pair)| says(*pair) == wanted);
            let by_median = |a: &&Found<'_>, b: &&Found<'_>| a.2.median.total_cmp(&b.2.median);
            if most { of_it.max_by(by_median) } else { of_it.min_by(by_median) }
        };
        let counts = format!(
            "non-temporal wins in {faster} of {all} cells, loses in {slower}, cannot tell in {open}"
        );
        let question = if operation == "copy" {
            "Is there ANY workload which will be faster on non-NT copy_page() than on NT one? \
             (000.14)"
        } else {
            "The same question for zeroing"
        };
        let takes = |row: &Row, pair: &PairedRatio| {
            format!("{} takes {} as {}", row.candidate, times(*pair), row.reference)
        };
        texts.push(match extreme(Verdict::Slower, true) {
            Some((key, row, pair)) if pair.low > CERTAIN => {
                format!("{question} Yes: {}, {}; {counts}", place(key), takes(row, pair))
            }
            None if open == 0 => format!("{question} No: {counts}"),
            _ => format!("{question} Cannot tell here: {counts}"),
        });
        if let Some((key, row, pair)) = extreme(Verdict::Faster, false) {
            let (place, takes) = (place(key), takes(row, pair));
            texts.push(format!("Non-temporal gains most in {operation} {place}: {takes}"));
        } else {
            texts.push(format!(
                "No benefit: non-temporal is not shown to gain in any cell of {operation}"
            ));
        }
        texts.push(format!("{operation}, read at once against deferred: {}", deferring(&found)));
    }
    texts
}

type Found<'r> = (&'r CellKey, &'r Row, PairedRatio);

/// The share of won cells among those read at once and those read after most traffic: what the
/// seed's author found in 2005.
fn deferring(found: &[Found<'_>]) -> String {
    let delay = |key: &CellKey| key.axes.get(DELAY_BYTES).copied();
    let most = found.iter().filter_map(|(key, _, _)| delay(key)).fold(0.0, f64::max);
    let won = |wanted: f64| {
        let of_it: Vec<_> = found.iter().filter(|(key, _, _)| delay(key) == Some(wanted)).collect();
        let won = of_it.iter().filter(|(_, _, pair)| says(*pair) == Verdict::Faster).count();
        format!("wins {won} of {}", of_it.len())
    };
    if most == 0.0 {
        return format!("{} at once, nothing was deferred", won(0.0));
    }
    format!("{} at once, {} after {} of other traffic", won(0.0), won(most), bytes(most as u64))
}

/// A cell in words.
fn place(key: &CellKey) -> String {
    let read = key.reader.unwrap_or(0.0) * 100.0;
    let when = match (key.axes.get(DELAY_BYTES), key.axes.get(DELAY_NS)) {
        (Some(traffic), _) if *traffic > 0.0 => {
            format!("after {} of other traffic", bytes(*traffic as u64))
        }
        (_, Some(time)) => format!("after {time:.0} ns"),
        _ => "at once".to_owned(),
    };
    let from = key.destination.as_deref().map_or(String::new(), |level| format!(" in {level}"));
    format!("with {}{from}, {read:.1} % read {when}", bytes(key.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::steady::{cell, noisy, row};

    fn point(delay: f64, temporal: f64, nt: f64, noise: f64) -> [Row; 3] {
        let mut key = cell("copy", 4096, "read after traffic");
        key.reader = Some(1.0);
        key.destination = Some("DRAM".to_owned());
        key.axes.insert(DELAY_BYTES.to_owned(), delay);
        let nt = noisy(&key, "copy.avx.nt", nt, noise);
        [row(&key, "copy.avx", temporal), row(&key, LIBC, temporal), nt]
            .map(|row| Row { reference: "copy.avx".to_owned(), ..row })
    }

    #[test]
    fn the_question_is_answered_by_the_rows() {
        let both = [point(0.0, 100.0, 180.0, 0.001), point(65536.0, 100.0, 60.0, 0.001)];
        let cases = [
            ("each wins somewhere", verdicts(&both.concat())),
            ("non-temporal wins everywhere", verdicts(&point(0.0, 100.0, 60.0, 0.001))),
            ("it loses by 3 %", verdicts(&point(0.0, 100.0, 103.0, 0.001))),
            ("noise", verdicts(&point(0.0, 100.0, 100.0, 0.5))),
            ("nothing", verdicts(&[])),
        ];
        kept("reuse-map", &cases);
    }
}
