//! What the rows of `page-colour` amount to. Pure.

use crate::words::*;

/// What 002.11 claims of bad colours: 30 % of the bandwidth.
const CLAIMED: f64 = 1.3;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let of_one = rows.iter().filter(|row| row.cell.state == PAGES_OF[0]);
    let compared: Vec<(&Row, PairedRatio)> =
        of_one.filter_map(|row| Some((row, row.ratio?))).collect();
    if compared.is_empty() {
        return Vec::new();
    }
    let slower = compared.iter().filter(|(_, pair)| says(*pair) == Verdict::Slower).copied();
    let may_be = compared.iter().any(|(_, pair)| pair.high >= CLAIMED);
    let answer = match ends(&slower.collect::<Vec<_>>()) {
        None if may_be => "cannot tell here".to_owned(),
        None => {
            "no longer true here, pages of one colour are not shown to be slower than pages of \
                 every colour"
                .to_owned()
        }
        Some([_, (row, pair)]) => format!(
            "{}; at most {} ({}, pages of one colour of the {})",
            if pair.median >= CLAIMED { "still true" } else { "less here" },
            times(*pair),
            row.candidate,
            where_is(&row.cell)
        ),
    };
    let each = compared.iter().map(|(row, pair)| {
        let given = rows.iter().find(|other| {
            other.cell.state == PAGES_OF[2]
                && other.candidate == row.candidate
                && other.cell.destination == row.cell.destination
        });
        let usual = given.and_then(|row| row.ratio).map_or(String::new(), |usual| {
            format!("; pages as the system gives them {:.2} times", usual.median)
        });
        format!(
            "{}, {} in the {}: pages of one colour take {} as pages of every colour{usual}",
            row.candidate,
            bytes(row.cell.size),
            where_is(&row.cell),
            times(*pair)
        )
    });
    let headline = format!("002.11, colour costs 30 %: {answer}");
    std::iter::once(headline).chain(each).collect()
}
