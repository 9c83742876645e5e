//! What the rows of `tcp-copies` amount to. Pure.

use crate::words::*;

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
