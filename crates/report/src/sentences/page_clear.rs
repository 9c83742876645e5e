//! What the rows of `page-clear` amount to. Pure.

use super::*;

/// The pair that the document compared.
const PERIOD: (&str, &str) = ("zero.mmx.nt", "zero.mmx");

/// Pairs of today, the widest first.
const TODAY: &[(&str, &str)] = &[
    ("zero.avx512.nt", "zero.avx512"),
    ("zero.avx.nt", "zero.avx"),
    ("zero.sse2.nt", "zero.sse2"),
    ("zero.sse.nt", "zero.sse"),
];

/// What the rows say about the seed's findings (000.12) and about today. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = by_cell(rows);
    if cells.is_empty() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    let claims: Vec<String> = [(32 << 10, Verdict::Slower), (320 << 10, Verdict::Faster)]
        .into_iter()
        .filter_map(|(size, claimed)| {
            let (_, of_cell) = cells.iter().find(|(key, _)| key.size == size)?;
            let found = between(of_cell, PERIOD.0, PERIOD.1)?;
            Some(format!("at {} {}: {}", bytes(size), claim(claimed, found), times(found)))
        })
        .collect();
    if claims.is_empty() {
        texts.push(
            "Vlasenko 2004 (000.12), non-temporal zeroing loses at 32 KiB and wins at 320 KiB: not \
             tested, as mmx_APn and mmx_APN were not measured at these sizes"
                .to_owned(),
        );
    } else {
        texts.push(format!(
            "Vlasenko 2004 (000.12), mmx_APN against mmx_APn: non-temporal zeroing loses at 32 KiB and \
             wins at 320 KiB; {}",
            claims.join("; ")
        ));
    }
    let has = |(nt, temporal): &&(&str, &str)| {
        cells.iter().any(|(_, of_cell)| between(of_cell, nt, temporal).is_some())
    };
    if let Some((nt, temporal)) = TODAY.iter().find(has) {
        let by = |wanted: Verdict| {
            let is_it = |pair| says(pair) == wanted;
            let of_it = |(_, of_cell): &&(&CellKey, Vec<&Row>)| {
                between(of_cell, nt, temporal).is_some_and(is_it)
            };
            let mut sizes: Vec<u64> = cells.iter().filter(of_it).map(|(key, _)| key.size).collect();
            sizes.sort_unstable();
            let names: Vec<String> = sizes.into_iter().map(bytes).collect();
            if names.is_empty() { "no size".to_owned() } else { names.join(", ") }
        };
        let [faster, slower, open] =
            [Verdict::Faster, Verdict::Slower, Verdict::CannotTell].map(by);
        texts.push(format!(
            "Today {nt} against {temporal}, reading included: faster at {faster}, slower at {slower}, \
             cannot tell at {open}"
        ));
    }
    texts.extend(beside_libc(&cells));
    texts
}

/// The best of a dozen is a little faster than libc by luck alone; this much is no luck.
const CLEARLY: f64 = 0.03;

/// At how many sizes anybody beats libc, and who. None where nobody was compared with libc.
pub(super) fn beside_libc(cells: &[(&CellKey, Vec<&Row>)]) -> Option<String> {
    let mut better = Vec::new();
    let mut compared = 0;
    for (key, of_cell) in cells {
        let names = of_cell.iter().map(|row| row.candidate.as_str());
        let names = names.filter(|name| *name != LIBC && *name != FORK);
        let others: Vec<_> =
            names.filter_map(|name| Some((name, between(of_cell, name, LIBC)?))).collect();
        compared += usize::from(!others.is_empty());
        let best = others
            .into_iter()
            .filter(|(_, pair)| pair.verdict(CLEARLY) == Verdict::Faster)
            .min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        if let Some((name, pair)) = best {
            let size = bytes(key.size);
            better.push(format!("{name} at {size} ({:.2} of libc's time)", pair.median));
        }
    }
    let margin = CLEARLY * 100.0;
    (compared > 0).then(|| {
        if better.is_empty() {
            let sizes = counted(compared, "size");
            format!("No benefit: at none of {sizes} is anything shown to be {margin:.0} % faster than libc")
        } else {
            format!("More than {margin:.0} % faster than libc: {}", better.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::steady::{cell, noisy, row};

    fn at(size: usize, temporal: f64, nt: f64) -> Vec<Row> {
        let cell = cell("zero", size, "made up");
        vec![
            row(&cell, LIBC, 100.0),
            row(&cell, "zero.mmx", temporal),
            row(&cell, "zero.mmx.nt", nt),
            row(&cell, "zero.avx", temporal / 2.0),
            row(&cell, "zero.avx.nt", nt / 2.0),
        ]
    }

    #[test]
    fn each_outcome_has_its_sentences() {
        let key = cell("zero", 32 << 10, "made up");
        let unclear = [
            row(&key, LIBC, 50.0),
            noisy(&key, "zero.mmx", 100.0, 0.4),
            row(&key, "zero.mmx.nt", 100.0),
        ];
        let small = cell("zero", 4096, "made up");
        let untested = [row(&small, LIBC, 50.0), row(&small, "zero.avx", 60.0)];
        let both = |small: (f64, f64), large: (f64, f64)| {
            verdicts(&[at(32 << 10, small.0, small.1), at(320 << 10, large.0, large.1)].concat())
        };
        let cases = [
            ("as claimed", both((100.0, 150.0), (100.0, 60.0))),
            ("otherwise", both((200.0, 100.0), (210.0, 400.0))),
            ("noise", verdicts(&unclear)),
            ("the document's kernels are missing", verdicts(&untested)),
            ("libc alone", verdicts(&[row(&small, LIBC, 50.0)])),
            ("a kernel alone", verdicts(&[row(&small, "zero.avx", 50.0)])),
            ("nothing", verdicts(&[])),
        ];
        kept("page-clear", &cases);
    }
}
