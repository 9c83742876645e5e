//! What the rows of `aliasing` amount to. Pure.

use super::measure::{ALIASED, PAGES};
use crate::words::*;

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
    let copies: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key(ALIAS_RATIO)).collect();
    let offset = |row: &Row| axis(row, OFFSET);
    let mut sentences = vec![match worst(&copies) {
        _ if copies.is_empty() => "4 KiB aliasing: cannot tell, no copy was measured".to_owned(),
        None => "4 KiB aliasing: no offset is shown to cost 5 % or more here".to_owned(),
        Some(row) => {
            let (cost, who, offset, place) = (cost(row), &row.candidate, offset(row), place(row));
            format!(
                "4 KiB aliasing costs up to {cost:.2}x here: {who} with the destination {offset} B above \
                 the source modulo 4 KiB, {place}"
            )
        }
    }];
    for (candidate, of_it) in by_candidate(&copies) {
        let mut slow = distinct(of_it.iter().copied().filter(is_slower).map(offset));
        slow.sort_by(f64::total_cmp);
        let many = joined(slow, ", ");
        sentences.push(match worst(&of_it) {
            None => format!(
                "{candidate}: no offset is shown to cost 5 % or more over the one half a page further"
            ),
            Some(row) => format!(
                "{candidate}: slower at offsets {many}; at worst {:.2}x ({}, offset {})",
                cost(row),
                place(row),
                offset(row)
            ),
        });
    }
    let movsb = copies.iter().copied().filter(|row| row.candidate == "copy.rep.movsb");
    let movsb: Vec<&Row> = movsb.filter(|row| (1.0..64.0).contains(&offset(row))).collect();
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

/// Where the operands are, and how far from each other or on which pages.
fn place(row: &Row) -> String {
    let further = match (row.axis(DISTANCE), row.axis(PAGE_BYTES)) {
        (Some(distance), _) => format!(", destination {} above", bytes(distance as u64)),
        (None, Some(pages)) => format!(" on {} pages", bytes(pages as u64)),
        (None, None) => String::new(),
    };
    where_is(&row.cell) + &further
}

/// 2 MiB against 4 KiB pages. Measured one after the other, which is said.
fn page_verdicts(rows: &[Row]) -> Vec<String> {
    let comparable = rows.iter().filter(|row| {
        row.cell.state == PAGES
            || (row.cell.state == ALIASED && axis(row, OFFSET) == (PAGE_SIZE / 2) as f64)
    });
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.destination, row.cell.size);
    let sentence = |((operation, level, size), of_cell): (
        (String, Option<Residency>, u64),
        Vec<&Row>,
    )| {
        let compare = |(candidate, pair): (String, Vec<&Row>)| {
            let on = |bytes: usize| pair.iter().find(|row| axis(row, PAGE_BYTES) == bytes as f64);
            Some((candidate, versus(on(PAGE_SIZE)?, on(2 << 20)?)))
        };
        let compared: Vec<_> = by_candidate(&of_cell).into_iter().filter_map(compare).collect();
        let told = compared.iter().filter(|(_, pair)| says(*pair).is_different());
        let beyond = |pair: &PairedRatio| (pair.median - 1.0).abs();
        let largest = told.max_by(|a, b| beyond(&a.1).total_cmp(&beyond(&b.1)));
        let said = match largest {
            None => "no measurable difference between 4 KiB and 2 MiB pages (measured one after the other)".to_owned(),
            Some((candidate, pair)) => format!(
                "4 KiB pages take {} {} than 2 MiB pages at most ({candidate}; measured one after the other)",
                percent(pair.median),
                if pair.median > 1.0 { "longer" } else { "less" },
            ),
        };
        let level = level.map_or("", Residency::name);
        (!compared.is_empty()).then(|| format!("{operation} of {}, {level}: {said}", bytes(size)))
    };
    groups(comparable, key).into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::keeps;

    #[test]
    fn each_outcome_has_its_sentences() {
        keeps("aliasing", |case| match case.name.contains("pages") {
            true => page_verdicts(&case.rows),
            false => verdicts(&case.rows),
        });
    }
}
