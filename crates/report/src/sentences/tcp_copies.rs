//! What the rows of `tcp-copies` amount to. Pure.

use super::*;

/// The sentences that rows amount to: each way over what its rows are compared with.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let others = rows.iter().filter(|row| row.candidate != row.reference);
    groups(others, |row: &Row| (row.candidate.clone(), row.reference.clone()))
        .into_iter()
        .filter_map(|((name, reference), of_way)| way(&of_way, &name, &reference))
        .collect()
}

/// One way against its reference, over all sizes.
fn way(of_way: &[&Row], name: &str, reference: &str) -> Option<String> {
    let mut pairs: Vec<(&Row, PairedRatio)> =
        of_way.iter().filter_map(|row| Some((*row, row.ratio?))).collect();
    pairs.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let ((least, low), (most, high)) = (pairs.first()?, pairs.last()?);
    let of_plain = reference == TCP;
    let reference = match reference {
        TCP => "write and read",
        pinned if pinned == TCP_WAYS[1] => "read, both from a sender with MSG_ZEROCOPY",
        other => other,
    };
    let head = format!(
        "{name} over {reference}, CPU time of both ends: {:.2} times at {} to {:.2} at {}",
        low.median,
        bytes(least.cell.size),
        high.median,
        bytes(most.cell.size)
    );
    let parts = |figure: &str| -> Vec<f64> {
        pairs.iter().filter_map(|(row, _)| row.figure(figure)).collect()
    };
    let mapped = parts(BYTES_MAPPED).into_iter().reduce(f64::min);
    let copied = parts(SENDS_COPIED).into_iter().reduce(f64::max).filter(|part| *part > 0.0);
    let withheld = match (mapped, copied) {
        (Some(part), _) if part < 1.0 => Some(format!(
            "only {:.0} % of the bytes were mapped at one size, the rest was copied",
            part * 100.0
        )),
        (_, Some(part)) if of_plain => Some(format!(
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
            let Tally { all, faster, slower, open } =
                Tally::of(pairs.iter().map(|(_, pair)| *pair));
            let sizes = counted(all, "size");
            format!("less in {faster} of {sizes}, more in {slower}, cannot tell in {open}")
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
        let cell = CellKey::new("copy", size, TCP_MESSAGE);
        over(100.0, row(cell, TCP_WAYS[nth], TCP, ns).with(extra))
    }

    /// With the ratio to a reference of that time.
    fn over(reference_ns: f64, mut row: Row) -> Row {
        let reference = vec![reference_ns; row.operation_ns.len()];
        row.ratio = Some(PairedRatio::new(&row.operation_ns, &reference, 0));
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
        assert!(said[0].contains("1.20 times at 16 KiB to 2.00 at 1 MiB"), "{said:?}");
        holds(&said[0], "no verdict, the kernel says that it copied in 100 %");
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
    fn mapping_is_compared_with_what_its_rows_are_compared_with() {
        // Both have the same sender, which copies; that is not what is compared.
        let at = |mapped: f64| {
            let cell = CellKey::new("copy", 1 << 20, TCP_PINNED_MESSAGE);
            let row = row(cell, TCP_WAYS[2], TCP_WAYS[1], 50.0)
                .with(&[(BYTES_MAPPED, mapped), (SENDS_COPIED, 1.0)]);
            let sender = message(1 << 20, 1, 100.0, &[(SENDS_COPIED, 1.0)]);
            verdicts(&[sender, over(100.0, row)]).remove(1)
        };
        let (all, some) = (at(1.0), at(0.25));
        assert!(
            all.starts_with("TCP_ZEROCOPY_RECEIVE over read, both from a sender with MSG_ZEROCOPY"),
            "{all}"
        );
        assert!(all.contains("0.50 times at 1 MiB"), "{all}");
        assert!(
            all.contains("less in 1 of 1 size") && all.contains("every byte was mapped"),
            "{all}"
        );
        assert!(some.contains("no verdict, only 25 % of the bytes were mapped"), "{some}");
        // Old records have it beside write and read, whose sender does not pin.
        let old = message(1 << 20, 2, 150.0, &[(BYTES_MAPPED, 1.0), (SENDS_COPIED, 1.0)]);
        let old = verdicts(&[old]).remove(0);
        assert!(old.starts_with("TCP_ZEROCOPY_RECEIVE over write and read"), "{old}");
        assert!(old.contains("no verdict, the kernel says that it copied"), "{old}");
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
