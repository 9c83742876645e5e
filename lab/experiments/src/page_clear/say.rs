//! What the rows of `page-clear` amount to. Pure.

use crate::page_loops::beside_libc;
use crate::words::*;

/// The pair that the document compared.
const PERIOD: (&str, &str) = ("zero.mmx.nt", "zero.mmx");

/// Pairs of today, the widest first.
const TODAY: [(&str, &str); 4] = [
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
    let tested = |(size, claimed): (u64, Verdict)| {
        let (_, of_cell) = cells.iter().find(|(key, _)| key.size == size)?;
        let found = between(of_cell, PERIOD.0, PERIOD.1)?;
        Some(format!("at {} {}: {}", bytes(size), claim(claimed, found), times(found)))
    };
    let claims = [(32 << 10, Verdict::Slower), (320 << 10, Verdict::Faster)];
    let claims: Vec<String> = claims.into_iter().filter_map(tested).collect();
    let mut texts = vec![if claims.is_empty() {
        "In 2004 non-temporal zeroing lost at 32 KiB and won at 320 KiB (000.12); not tested, as mmx_APn and mmx_APN were not measured at these sizes"
            .to_owned()
    } else {
        format!(
            "In 2004 non-temporal zeroing lost at 32 KiB and won at 320 KiB (000.12, mmx_APN against mmx_APn); {}",
            claims.join("; ")
        )
    }];
    texts.extend(TODAY.iter().find_map(|pair| today(&cells, *pair)));
    texts.extend(beside_libc(&cells));
    texts
}

/// At which sizes one of a pair beats the other. None where they were not compared.
fn today(cells: &Cells<'_>, (nt, temporal): (&str, &str)) -> Option<String> {
    let mut found = pairs(cells, nt, temporal);
    found.sort_unstable_by_key(|(key, _)| key.size);
    let [faster, slower, open] =
        [Verdict::Faster, Verdict::Slower, Verdict::Unknown].map(|wanted| {
            let open = wanted == Verdict::Unknown;
            let sizes = found.iter().filter(|(_, pair)| match says(*pair) {
                Verdict::Same => open,
                other => other == wanted,
            });
            let sizes = joined(sizes.map(|(key, _)| bytes(key.size)), ", ");
            if sizes.is_empty() { "no size".to_owned() } else { sizes }
        });
    (!found.is_empty()).then(|| {
        format!(
            "Today {nt} against {temporal}, reading included: faster at {faster}, slower at {slower}, \
             cannot tell at {open}"
        )
    })
}
