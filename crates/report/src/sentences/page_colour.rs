//! What the rows of `page-colour` amount to. Pure.

use super::*;

/// What 002.11 claims of bad colours: 30 % of the bandwidth.
const CLAIMED: f64 = 1.3;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let of_one = rows.iter().filter(|row| row.cell.state == PAGES_OF[0]);
    let compared: Vec<(&Row, PairedRatio)> =
        of_one.filter_map(|row| Some((row, row.ratio?))).collect();
    if compared.is_empty() {
        return Vec::new();
    }
    let slower = compared.iter().filter(|(_, pair)| says(*pair) == Verdict::Slower);
    let most = slower.max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let may_be = compared.iter().any(|(_, pair)| pair.high >= CLAIMED);
    let mut said = vec![match most {
        None if may_be => "002.11, colour costs 30 %: cannot tell here".to_owned(),
        None => {
            "002.11, colour costs 30 %: no longer true here, pages of one colour are not shown to be \
                 slower than pages of every colour"
                .to_owned()
        }
        Some((row, pair)) => format!(
            "002.11, colour costs 30 %: {}; at most {} ({}, pages of one colour of the {})",
            if pair.median >= CLAIMED { "still true" } else { "less here" },
            times(*pair),
            row.candidate,
            where_is(&row.cell)
        ),
    }];
    for (row, pair) in compared {
        let given = rows.iter().find(|other| {
            other.cell.state == PAGES_OF[2]
                && other.candidate == row.candidate
                && other.cell.destination == row.cell.destination
        });
        let usual = given.and_then(|row| row.ratio).map_or(String::new(), |usual| {
            format!("; pages as the system gives them {:.2} times", usual.median)
        });
        said.push(format!(
            "{}, {} in the {}: pages of one colour take {} as pages of every colour{usual}",
            row.candidate,
            bytes(row.cell.size),
            where_is(&row.cell),
            times(pair)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(one: f64, given: f64) -> Vec<Row> {
        let at = |of: &str| key("zero", 524_288, (None, Some(Level::L2)), of, &[]);
        let every = made_up::row(at(PAGES_OF[1]), "libc", "every", 100.0);
        let other = |of, ratio: f64| {
            let row = made_up::row(at(of), "libc", "every", 100.0 * ratio);
            let pair = versus(&row, &every);
            row.with_ratio(pair)
        };
        vec![other(PAGES_OF[0], one), every.clone(), other(PAGES_OF[2], given)]
    }

    #[test]
    fn colour_costs_or_does_not() {
        let mut noise = rows(1.0, 1.0);
        noise[0].ratio = Some(PairedRatio { median: 1.0, low: 0.5, high: 2.0, rounds: 15 });
        let cases = [
            ("as claimed", verdicts(&rows(1.8, 1.1))),
            ("less", verdicts(&rows(1.1, 1.0))),
            ("nothing to see", verdicts(&rows(1.0, 1.0))),
            ("noise", verdicts(&noise)),
        ];
        kept("page-colour", &cases);
    }
}
