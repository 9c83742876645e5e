//! What the rows of `tcp-copies` amount to. Pure.

use super::*;

/// The sentences that rows amount to. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    TCP_WAYS[1..].iter().filter_map(|name| way(rows, name)).collect()
}

/// One way against its reference, over all sizes.
fn way(rows: &[Row], name: &str) -> Option<String> {
    // A mapped message has the sender of a pinned one: beside it the receiver alone differs.
    let reference = if name == TCP_WAYS[2] { TCP_WAYS[1] } else { TCP };
    let mut pairs: Vec<(&Row, PairedRatio)> = by_cell(rows)
        .into_iter()
        .filter_map(|(_, of_cell)| {
            let row = named(&of_cell, name)?;
            Some((row, versus(row, named(&of_cell, reference)?)))
        })
        .collect();
    pairs.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let ((least, low), (most, high)) = (pairs.first()?, pairs.last()?);
    let reference = if reference == TCP { "write and read" } else { reference };
    let head = format!(
        "{name} over {reference}, CPU time of both ends: {:.2} times at {} to {:.2} at {}",
        low.median,
        bytes(least.cell.size),
        high.median,
        bytes(most.cell.size)
    );
    let parts = |figure: &str| -> Vec<f64> {
        pairs.iter().filter_map(|(row, _)| row.extra.get(figure).copied()).collect()
    };
    let mapped = parts(BYTES_MAPPED).into_iter().reduce(f64::min);
    let copied = parts(SENDS_COPIED).into_iter().reduce(f64::max).filter(|part| *part > 0.0);
    let withheld = match (mapped, copied) {
        (Some(part), _) if part < 1.0 => Some(format!(
            "only {:.0} % of the bytes were mapped at one size, the rest was copied",
            part * 100.0
        )),
        (None, Some(part)) => Some(format!(
            "the kernel says that it copied in {:.0} % of the sends, as it does on the loopback device. \
             This is what pinned pages and completions cost beside the copy; it says nothing of a \
             network card",
            part * 100.0
        )),
        _ => None,
    };
    let answer = match withheld {
        Some(why) => format!("no verdict, {why}"),
        None => {
            let count = |wanted| pairs.iter().filter(|(_, pair)| says(*pair) == wanted).count();
            format!(
                "less in {} of {}, more in {}, cannot tell in {}",
                count(Verdict::Faster),
                counted(pairs.len(), "size"),
                count(Verdict::Slower),
                count(Verdict::CannotTell)
            )
        }
    };
    let caveat = match mapped {
        Some(part) if part >= 1.0 => {
            "; every byte was mapped and none was read by the program, which read has already copied \
             to its buffer"
        }
        _ => "",
    };
    Some(format!("{head}; {answer}{caveat}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::row;

    fn message(size: usize, nth: usize, ns: f64, extra: &[(&str, f64)]) -> Row {
        let mut row = row(CellKey::new("copy", size, TCP_MESSAGE), TCP_WAYS[nth], TCP, ns);
        row.extra.extend(extra.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        row
    }

    #[test]
    fn a_send_that_was_copied_has_no_verdict() {
        let said = verdicts(&[
            message(16 << 10, 0, 100.0, &[]),
            message(16 << 10, 1, 120.0, &[(SENDS_COPIED, 1.0)]),
            message(1 << 20, 0, 100.0, &[]),
            message(1 << 20, 1, 200.0, &[(SENDS_COPIED, 0.5)]),
        ]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("MSG_ZEROCOPY over write and read, CPU time"), "{said:?}");
        assert!(said[0].contains("at 16 KiB to") && said[0].contains("at 1 MiB"), "{said:?}");
        assert!(
            said[0].contains("no verdict, the kernel says that it copied in 100 %"),
            "{said:?}"
        );
        let spared = verdicts(&[
            message(4096, 0, 100.0, &[]),
            message(4096, 1, 50.0, &[(SENDS_COPIED, 0.0)]),
        ]);
        assert!(
            spared[0].ends_with("less in 1 of 1 size, more in 0, cannot tell in 0"),
            "{spared:?}"
        );
    }

    #[test]
    fn only_what_was_mapped_is_a_mapping() {
        // Its sender is copied too; that is its reference's affair.
        let at = |mapped: f64| {
            let sender = message(1 << 20, 1, 100.0, &[(SENDS_COPIED, 1.0)]);
            let row = message(1 << 20, 2, 50.0, &[(BYTES_MAPPED, mapped), (SENDS_COPIED, 1.0)]);
            verdicts(&[sender, row]).remove(0)
        };
        let (all, some) = (at(1.0), at(0.25));
        assert!(all.starts_with("TCP_ZEROCOPY_RECEIVE over MSG_ZEROCOPY"), "{all}");
        assert!(
            all.contains("less in 1 of 1 size") && all.contains("every byte was mapped"),
            "{all}"
        );
        assert!(some.contains("no verdict, only 25 % of the bytes were mapped"), "{some}");
    }

    #[test]
    fn a_ring_is_faster_slower_or_neither() {
        let said = verdicts(&[
            message(4096, 0, 100.0, &[]),
            message(4096, 3, 150.0, &[]),
            message(8192, 0, 100.0, &[]),
            message(8192, 3, 100.0, &[]),
        ]);
        assert_eq!(said.len(), 1, "the plain way has no sentence: {said:?}");
        assert!(said[0].ends_with("less in 0 of 2 sizes, more in 1, cannot tell in 1"), "{said:?}");
    }
}
