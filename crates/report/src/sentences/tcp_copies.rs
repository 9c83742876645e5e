//! What the rows of `tcp-copies` amount to. Pure.

use super::support::*;

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
    let pairs: Vec<(&Row, PairedRatio)> =
        of_way.iter().filter_map(|row| Some((*row, row.ratio?))).collect();
    let [low, high] = ends(&pairs)?.map(|(row, pair)| (pair.median, bytes(row.cell.size)));
    let of_plain = reference == TCP;
    let reference = match reference {
        TCP => "write and read",
        pinned if pinned == TCP_WAYS[1] => "read, both from a sender with MSG_ZEROCOPY",
        other => other,
    };
    let head = format!(
        "{name} over {reference}, CPU time of both ends: {:.2} times at {} to {:.2} at {}",
        low.0, low.1, high.0, high.1
    );
    let parts = |figure: &str| extremes(pairs.iter().filter_map(|(row, _)| row.figure(figure)));
    let mapped = parts(BYTES_MAPPED).map(|(least, _)| least);
    let copied = parts(SENDS_COPIED).map(|(_, most)| most).filter(|part| *part > 0.0);
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
    let answer = withheld.map_or_else(
        || {
            let Tally { all, faster, slower, open } =
                Tally::of(pairs.iter().map(|(_, pair)| *pair));
            let sizes = counted(all, "size");
            format!("less in {faster} of {sizes}, more in {slower}, cannot tell in {open}")
        },
        |why| format!("no verdict, {why}"),
    );
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

    fn message(size: usize, nth: usize, ns: f64, extra: &[(&str, f64)]) -> Row {
        let row = over(100.0, row(&cell("copy", size, TCP_MESSAGE), TCP_WAYS[nth], ns).with(extra));
        Row { reference: TCP.to_owned(), ..row }
    }

    /// Mapping beside reading, from a sender that pins, which copies; that is not what is compared.
    fn mapping(mapped: f64) -> Vec<String> {
        let cell = cell("copy", 1 << 20, TCP_PINNED_MESSAGE);
        let figures = [(BYTES_MAPPED, mapped), (SENDS_COPIED, 1.0)];
        let row = over(100.0, row(&cell, TCP_WAYS[2], 50.0).with(&figures));
        let row = Row { reference: TCP_WAYS[1].to_owned(), ..row };
        verdicts(&[message(1 << 20, 1, 100.0, &[(SENDS_COPIED, 1.0)]), row])
    }

    #[test]
    fn each_outcome_has_its_sentences() {
        let plain = |size| message(size, 0, 100.0, &[]);
        let copied = [
            plain(16 << 10),
            message(16 << 10, 1, 120.0, &[(SENDS_COPIED, 1.0)]),
            plain(1 << 20),
            message(1 << 20, 1, 200.0, &[(SENDS_COPIED, 0.5)]),
        ];
        let spared = [plain(4096), message(4096, 1, 50.0, &[(SENDS_COPIED, 0.0)])];
        let old = message(1 << 20, 2, 150.0, &[(BYTES_MAPPED, 1.0), (SENDS_COPIED, 1.0)]);
        let ring =
            [plain(4096), message(4096, 3, 150.0, &[]), plain(8192), message(8192, 3, 100.0, &[])];
        let cases = [
            ("sends that were copied", verdicts(&copied)),
            ("sends that were not", verdicts(&spared)),
            ("every byte was mapped", mapping(1.0)),
            ("some bytes were mapped", mapping(0.25)),
            ("old records have it beside write and read", verdicts(&[old])),
            ("a ring, slower at one of two sizes", verdicts(&ring)),
        ];
        kept("tcp-copies", &cases);
    }
}
