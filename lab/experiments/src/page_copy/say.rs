//! What the rows of `page-copy` amount to. Pure.

use crate::page_loops::beside_libc;
use crate::words::*;

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
            "In 2004 non-temporal copying won at every buffer (000.12); not tested, as mmx_APn and \
             mmx_APN were not measured"
                .to_owned()
        }
        Some((tally, told)) => {
            let answer = match (tally.faster, tally.slower) {
                (faster, _) if faster == tally.all => "still true",
                (0, 0) => "cannot tell here",
                (_, 0) => "cannot tell at some buffers here",
                _ => "no longer true here",
            };
            format!(
                "In 2004 non-temporal copying won at every buffer (000.12, mmx_APN against mmx_APn); \
                 {answer}: {told}"
            )
        }
    }];
    if let Some((tally, told)) = buffers(&cells, "mmx_APN", "mmx_APn/APN") {
        let answer = if tally.slower > 0 {
            "no longer true here, zeroing by temporal stores pays"
        } else if tally.faster > 0 {
            "still true, and non-temporal zeroing gains"
        } else {
            "nothing was found against it"
        };
        texts.push(format!(
            "In 2004 zeroing by temporal stores added nothing to non-temporal copying (000.12, mmx_APN against \
             mmx_APn/APN); {answer}: {told}"
        ));
    }
    let today = TODAY.iter().find_map(|pair| against(&cells, *pair));
    texts.extend(today.map(|told| format!("Today {told}")));
    let whole_pages = [("2M avx512", "avx512"), ("2M avx", "avx")]
        .iter()
        .find_map(|(huge, base)| pairs(&cells, huge, base).into_iter().next());
    texts.extend(whole_pages.map(|(key, pair)| {
        let (size, times) = (bytes(key.size), times(pair));
        format!("Copying a whole 2 MiB page for a buffer of {size} takes {times} as page by page")
    }));
    texts.extend(cold_destination(&cold));
    texts.extend(beside_fork(&cells));
    texts.extend(beside_libc(&cells));
    texts
}

/// The seed's claim where the destination is in memory: the documents' stores, then today's widest.
fn cold_destination(cells: &Cells<'_>) -> Option<String> {
    let pairs = [("mmx_APN", "mmx_APn")].into_iter().chain(TODAY);
    let parts: Vec<String> = pairs.filter_map(|pair| against(cells, pair)).collect();
    (!parts.is_empty()).then(|| format!("Destinations in memory: {}", parts.join(". ")))
}

/// One of a pair against the other, in words.
fn against(cells: &Cells<'_>, (nt, temporal): (&str, &str)) -> Option<String> {
    Some(format!("{nt} against {temporal}: {}", buffers(cells, nt, temporal)?.1))
}

/// How a candidate fared against another over all buffers, and that in words.
fn buffers(cells: &Cells<'_>, ours: &str, theirs: &str) -> Option<(Tally, String)> {
    let pairs = pairs(cells, ours, theirs);
    let [best, worst] =
        ends(&pairs)?.map(|(key, pair)| format!("{} at {}", times(*pair), bytes(key.size)));
    let tally = Tally::of(pairs.iter().map(|(_, pair)| *pair));
    let Tally { all, faster, slower, open } = tally;
    let told = format!(
        "faster at {faster} of {all} buffers, slower at {slower}, cannot tell at {open}; from {best} to \
         {worst}"
    );
    Some((tally, told))
}

/// What part of a real fork the copying is, from the smallest buffer to the largest.
fn beside_fork(cells: &Cells<'_>) -> Option<String> {
    let mut shares = pairs(cells, LIBC, FORK);
    shares.sort_unstable_by_key(|(key, _)| key.size);
    let (first, last) = (shares.first()?, shares.last()?);
    let text = |(key, share): &(&CellKey, PairedRatio)| {
        format!("{:.1} % at {}", share.median * 100.0, bytes(key.size))
    };
    Some(format!(
        "Of the kernel's own fork, child and wait, such a loop by libc is {}{}{}",
        text(first),
        if shares.len() > 1 { format!(" and {}", text(last)) } else { String::new() },
        if shares.iter().all(|(_, share)| share.median < 1.0) {
            ": the rest is not copying"
        } else {
            ""
        }
    ))
}
