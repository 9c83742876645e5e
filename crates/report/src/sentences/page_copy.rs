//! What the rows of `page-copy` amount to. Pure.

use super::page_clear::beside_libc;
use super::*;

/// Pairs of today, the widest first.
const TODAY: [(&str, &str); 2] = [("avx512.nt", "avx512"), ("avx.nt", "avx")];

/// What the rows say about the seed's findings (000.12), the fork beside them, and today. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let (cold, cells): (Vec<_>, Vec<_>) =
        by_cell(rows).into_iter().partition(|(key, _)| key.state == COLD_DESTINATION);
    if cells.is_empty() {
        return cold_destination(&cold).into_iter().collect();
    }
    let mut texts = vec![match buffers(&cells, "mmx_APN", "mmx_APn") {
        None => {
            "Vlasenko 2004 (000.12), non-temporal copying wins at every buffer: not tested, as \
                 mmx_APn and mmx_APN were not measured"
                .to_owned()
        }
        Some(told) => {
            let Buffers { tally, .. } = &told;
            let answer = match (tally.faster, tally.slower) {
                (faster, _) if faster == tally.all => "still true",
                (0, 0) => "cannot tell here",
                (_, 0) => "cannot tell at some buffers here",
                _ => "no longer true here",
            };
            format!(
                "Vlasenko 2004 (000.12), mmx_APN against mmx_APn: non-temporal copying wins at every \
                 buffer; {answer}: {told}"
            )
        }
    }];
    if let Some(told) = buffers(&cells, "mmx_APN", "mmx_APn/APN") {
        let answer = if told.tally.slower > 0 {
            "no longer true here, zeroing by temporal stores pays"
        } else if told.tally.faster > 0 {
            "still true, and non-temporal zeroing gains"
        } else {
            "nothing was found against it"
        };
        texts.push(format!(
            "Vlasenko 2004 (000.12), mmx_APN against mmx_APn/APN: zeroing by temporal stores adds nothing to \
             non-temporal copying; {answer}: {told}"
        ));
    }
    let today = TODAY.iter().find_map(|pair| against(&cells, *pair));
    texts.extend(today.map(|told| format!("Today {told}")));
    let whole_pages =
        [("2M avx512", "avx512"), ("2M avx", "avx")].iter().find_map(|(huge, base)| {
            cells.iter().find_map(|(key, of_cell)| Some((key.size, between(of_cell, huge, base)?)))
        });
    texts.extend(whole_pages.map(|(size, pair)| {
        let (size, times) = (bytes(size), times(pair));
        format!("Copying a whole 2 MiB page for a buffer of {size} takes {times} as page by page")
    }));
    texts.extend(cold_destination(&cold));
    texts.extend(beside_fork(&cells));
    texts.extend(beside_libc(&cells));
    texts
}

/// The seed's claim where the destination is in memory: the documents' stores, then today's widest.
fn cold_destination(cells: &[(&CellKey, Vec<&Row>)]) -> Option<String> {
    let pairs = [("mmx_APN", "mmx_APn")].into_iter().chain(TODAY);
    let parts: Vec<String> = pairs.filter_map(|pair| against(cells, pair)).collect();
    (!parts.is_empty()).then(|| format!("Destinations in memory: {}", parts.join(". ")))
}

/// One of a pair against the other, in words.
fn against(cells: &[(&CellKey, Vec<&Row>)], (nt, temporal): (&str, &str)) -> Option<String> {
    Some(format!("{nt} against {temporal}: {}", buffers(cells, nt, temporal)?))
}

/// How a candidate fared against another over all buffers.
struct Buffers {
    tally: Tally,
    worst: (u64, PairedRatio),
    best: (u64, PairedRatio),
}

impl std::fmt::Display for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { all, faster, slower, open } = self.tally;
        write!(
            f,
            "faster at {faster} of {all} buffers, slower at {slower}, cannot tell at {open}; from \
             {} at {} to {} at {}",
            times(self.best.1),
            bytes(self.best.0),
            times(self.worst.1),
            bytes(self.worst.0),
        )
    }
}

fn buffers(cells: &[(&CellKey, Vec<&Row>)], ours: &str, theirs: &str) -> Option<Buffers> {
    let pairs: Vec<_> = cells
        .iter()
        .filter_map(|(key, of_cell)| Some((key.size, between(of_cell, ours, theirs)?)))
        .collect();
    let by_median =
        |a: &&(u64, PairedRatio), b: &&(u64, PairedRatio)| a.1.median.total_cmp(&b.1.median);
    Some(Buffers {
        tally: Tally::of(pairs.iter().map(|(_, pair)| *pair)),
        worst: *pairs.iter().max_by(by_median)?,
        best: *pairs.iter().min_by(by_median)?,
    })
}

/// What part of a real fork the copying is, from the smallest buffer to the largest.
fn beside_fork(cells: &[(&CellKey, Vec<&Row>)]) -> Option<String> {
    let mut shares: Vec<(u64, f64)> = cells
        .iter()
        .filter_map(|(key, of_cell)| Some((key.size, between(of_cell, LIBC, FORK)?.median)))
        .collect();
    shares.sort_unstable_by_key(|(size, _)| *size);
    let (first, last) = (shares.first()?, shares.last()?);
    let text = |(size, share): &(u64, f64)| format!("{:.1} % at {}", share * 100.0, bytes(*size));
    Some(format!(
        "Of the kernel's own fork, child and wait, such a loop by libc is {}{}{}",
        text(first),
        if shares.len() > 1 { format!(" and {}", text(last)) } else { String::new() },
        if shares.iter().all(|(_, share)| *share < 1.0) { ": the rest is not copying" } else { "" }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::steady::{cell, row};

    fn at(size: usize, temporal: f64, nt: f64, mixed: f64) -> Vec<Row> {
        let cell = cell("copy", size, "made up");
        vec![
            row(&cell, LIBC, 100.0),
            row(&cell, "mmx_APn", temporal),
            row(&cell, "mmx_APN", nt),
            row(&cell, "mmx_APn/APN", mixed),
            row(&cell, "avx", 100.0),
            row(&cell, "2M avx", 5000.0),
            row(&cell, FORK, 400.0),
        ]
    }

    #[test]
    fn each_outcome_has_its_sentences() {
        let mut cold = at(4096, 100.0, 60.0, 60.0);
        cold.iter_mut().for_each(|row| row.cell.state = COLD_DESTINATION.into());
        let (small, large) = (at(4096, 100.0, 150.0, 120.0), at(8192, 90.0, 60.0, 62.0));
        let wins = [at(4096, 200.0, 150.0, 150.0), at(8192, 200.0, 120.0, 120.0)];
        let libc = row(&cell("copy", 4096, "made up"), LIBC, 1.0);
        let cases = [
            ("non-temporal wins everywhere", verdicts(&wins.concat())),
            ("at some buffers", verdicts(&[small.clone(), large].concat())),
            ("no difference", verdicts(&at(4096, 100.0, 100.0, 110.0))),
            ("other destinations in memory", verdicts(&[small, cold].concat())),
            ("libc alone", verdicts(&[libc])),
        ];
        kept("page-copy", &cases);
    }
}
