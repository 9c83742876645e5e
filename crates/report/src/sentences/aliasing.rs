//! What the rows of `aliasing` amount to. Pure.

use super::*;

/// A slow case rather than a cost: this many times slower.
const SLOW_CASE: f64 = 1.5;

/// Costs below this are not named: of hundreds of offsets and kernels one in forty would be told from
/// 1 by chance, so what is named has its whole interval above 5 %.
const NOTICED: f64 = 1.05;

/// Time over the twin's.
fn cost(row: &Row) -> f64 {
    row.figure(ALIAS_RATIO).unwrap_or(1.0)
}

fn is_slower(row: &&Row) -> bool {
    row.ratio.is_some_and(|ratio| says(ratio) == Verdict::Slower && ratio.low > NOTICED)
}

/// The slowest of those that are slower.
fn worst<'r>(rows: &[&'r Row]) -> Option<&'r Row> {
    let slower = rows.iter().copied().filter(is_slower);
    slower.max_by(|a, b| cost(a).total_cmp(&cost(b)))
}

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    let copies: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key(ALIAS_RATIO)).collect();
    sentences.push(match worst(&copies) {
        _ if copies.is_empty() => "4 KiB aliasing: cannot tell, no copy was measured".to_owned(),
        None => "4 KiB aliasing: no offset is shown to cost 5 % or more here".to_owned(),
        Some(row) => {
            let (cost, who, place) = (cost(row), &row.candidate, where_is(&row.cell) + &page_text(row));
            format!(
                "4 KiB aliasing costs up to {cost:.2}x here: {who} with the destination {} B above the \
                 source modulo 4 KiB, {place}",
                axis(row, OFFSET)
            )
        }
    });
    for (candidate, of_it) in by_candidate(&copies) {
        sentences.push(match worst(&of_it) {
            None => format!(
                "{candidate}: no offset is shown to cost 5 % or more over the one half a page further"
            ),
            Some(row) => {
                let slow = of_it.iter().copied().filter(is_slower);
                let mut many = distinct(slow.map(|row| axis(row, OFFSET)));
                many.sort_by(f64::total_cmp);
                let many: Vec<String> = many.iter().map(f64::to_string).collect();
                let (many, cost, offset) = (many.join(", "), cost(row), axis(row, OFFSET));
                let place = where_is(&row.cell) + &page_text(row);
                format!(
                    "{candidate}: slower at offsets {many}; at worst {cost:.2}x ({place}, offset {offset})"
                )
            }
        });
    }
    let movsb = copies.iter().copied().filter(|row| row.candidate == "copy.rep.movsb");
    let movsb: Vec<&Row> = movsb.filter(|row| (1.0..64.0).contains(&axis(row, OFFSET))).collect();
    if !movsb.is_empty() {
        let slow = movsb.into_iter().filter(is_slower).map(cost).filter(|cost| *cost > SLOW_CASE);
        let found = slow.reduce(f64::max).map_or(
            format!("not here, no offset is shown to take {SLOW_CASE} times as long"),
            |most| format!("here, up to {most:.2}x"),
        );
        sentences.push(format!("rep movsb with the destination less than a line above the source modulo 4 KiB (AMD's slow case): {found}"));
    }
    sentences.extend(page_verdicts(rows));
    sentences
}

fn page_text(row: &Row) -> String {
    let distance = axis(row, DISTANCE);
    if !distance.is_nan() {
        return format!(", destination {} above", bytes(distance as u64));
    }
    let pages = axis(row, PAGE_BYTES);
    if pages.is_nan() { String::new() } else { format!(" on {} pages", bytes(pages as u64)) }
}

/// 2 MiB against 4 KiB pages. Measured one after the other, which is said.
fn page_verdicts(rows: &[Row]) -> Vec<String> {
    let comparable = rows.iter().filter(|row| {
        row.cell.state == "pages"
            || (row.cell.state == "aliased" && axis(row, OFFSET) == (PAGE_SIZE / 2) as f64)
    });
    let mut sentences = Vec::new();
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.destination.clone(), row.cell.size);
    for ((operation, level, _), of_cell) in groups(comparable, key) {
        let mut largest: Option<(String, f64, Verdict)> = None;
        let mut compared = false;
        for (candidate, pair) in by_candidate(&of_cell) {
            let on = |bytes: usize| pair.iter().find(|row| axis(row, PAGE_BYTES) == bytes as f64);
            let (Some(small), Some(huge)) = (on(PAGE_SIZE), on(2 << 20)) else { continue };
            compared = true;
            let ratio = versus(small, huge);
            let verdict = says(ratio);
            let beyond = (ratio.median - 1.0).abs();
            if verdict != Verdict::CannotTell
                && largest.as_ref().is_none_or(|known| beyond > (known.1 - 1.0).abs())
            {
                largest = Some((candidate, ratio.median, verdict));
            }
        }
        if !compared {
            continue;
        }
        let level = level.unwrap_or_default();
        sentences.push(match largest {
            None => format!("{operation}, {level}: no measurable difference between 4 KiB and 2 MiB pages (measured one after the other)"),
            Some((candidate, ratio, verdict)) => format!(
                "{operation}, {level}: 4 KiB pages take {} {} than 2 MiB pages at most ({candidate}; measured one after the other)",
                percent(ratio),
                if verdict == Verdict::Slower { "longer" } else { "less" },
            ),
        });
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliased(candidate: &str, offset: f64, ratio: f64) -> Row {
        let axes = [(OFFSET, offset), (PAGE_BYTES, 4096.0)];
        let cell = key("copy", 4096, (Some(Level::L1), Some(Level::L1)), "aliased", &axes);
        let mut row = made_up::row(cell, candidate, "twin", 100.0 * ratio);
        let theirs = made_up::row(row.cell.clone(), "twin", "twin", 100.0);
        row.ratio = Some(versus(&row, &theirs));
        row.with(&[(ALIAS_RATIO, ratio)])
    }

    fn pages(small: f64, huge: f64) -> [Row; 2] {
        [(4096.0, small), (2097152.0, huge)].map(|(bytes, ns)| {
            let cell =
                key("zero", 4096, (None, Some(Level::Dram)), "pages", &[(PAGE_BYTES, bytes)]);
            made_up::row(cell, LIBC, LIBC, ns)
        })
    }

    #[test]
    fn each_outcome_has_its_sentences() {
        let slow = [aliased("copy.rep.movsb", 16.0, 3.0), aliased("copy.avx", 16.0, 1.0)];
        let cases = [
            ("the slow case, of one of two", verdicts(&slow)),
            ("no slow case", verdicts(&[aliased("copy.rep.movsb", 16.0, 1.0)])),
            ("slower, by less than is named", verdicts(&[aliased("copy.avx", 16.0, 1.03)])),
            ("4 KiB pages are slower", page_verdicts(&pages(130.0, 100.0))),
            ("pages do not differ", page_verdicts(&pages(100.0, 100.01))),
            ("nothing", verdicts(&[])),
        ];
        kept("aliasing", &cases);
    }
}
