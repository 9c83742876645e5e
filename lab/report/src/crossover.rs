//! Crossovers: per operation and state, ranges of size with the candidate that wins
//! there, and whether it can be told from the reference at all.

use crate::Table;
use crate::plot::{Quantity, Spread};
use crate::units::{bytes, gain};
use cachewise_judge::margin::ROW;
use cachewise_measure::record::groups;
use cachewise_measure::{CellKey, Record, Row};

/// A table of ranges, or nothing where no operation was measured at three sizes in the same state.
/// Candidates that were measured at fewer than half of the sizes do not take part.
pub fn table(record: &Record) -> Option<Table> {
    let of_main = |row: &&Row| record.experiment().is_none_or(|name| row.experiment == name);
    let mut rows: Vec<&Row> = record.rows.iter().filter(of_main).collect();
    if rows.is_empty() {
        rows = record.rows.iter().collect();
    }
    let mut table = Table::new(
        "Fastest by size",
        &["what", ">from", ">to", "fastest", ">against the reference", ">95 % interval", "verdict"],
    );
    let kept = rows.into_iter().filter(|row| !row.dropped);
    for (name, rows) in groups(kept, |row| group_name(&row.cell)) {
        table.rows.extend(ranges(&name, &rows));
    }
    if table.rows.is_empty() {
        return None;
    }
    table.remark(
        "speed at the range's middle size, of the whole cost where reader or bystander were there: \
         +100 % is twice as fast; sizes are those measured, so the fastest changes somewhere \
         between one range's `to` and the next one's `from`",
    );
    Some(table)
}

fn group_name(cell: &CellKey) -> String {
    let plain = CellKey { size: 0, bystander: cell.bystander.map(|_| 0), ..cell.clone() };
    let text = crate::plot::cell_caption(&plain);
    text.replacen(", 0 B", "", 1).replace(", beside a working set of 0 B", ", beside a working set")
}

fn ranges(name: &str, rows: &[&Row]) -> Vec<Vec<String>> {
    let mut sizes = crate::rows::sorted(rows.iter().map(|row| row.cell.size));
    // Sizes at which a few were measured again, between others, cannot be compared with those.
    let count = |size: u64| rows.iter().filter(|row| row.cell.size == size).count();
    let most = sizes.iter().map(|size| count(*size)).max().unwrap_or(0);
    sizes.retain(|size| 2 * count(*size) >= most);
    if sizes.len() < 3 {
        return Vec::new();
    }
    let present = |candidate: &str| {
        let at = sizes.iter().filter(|size| {
            rows.iter().any(|row| row.cell.size == **size && row.candidate == candidate)
        });
        2 * at.count() >= sizes.len()
    };
    let fastest = |size: &u64| {
        let here = rows.iter().copied().filter(|row| row.cell.size == *size);
        let candidates =
            groups(here, |row| (row.candidate.as_str(), row.candidate == row.reference));
        let taking_part =
            candidates.into_iter().filter(|((name, reference), _)| *reference || present(name));
        let pooled = taking_part.filter_map(|((name, reference), rows)| {
            let ratios = rows.into_iter().filter_map(|row| Quantity::TotalRatio.of(row));
            Some((*size, name, reference, Spread::pooled(&ratios.collect::<Vec<_>>())?))
        });
        pooled.min_by(|a, b| a.3.mid.total_cmp(&b.3.mid))
    };
    let best: Vec<(u64, &str, bool, Spread)> = sizes.iter().filter_map(fastest).collect();
    let mut lines = Vec::new();
    for run in best.chunk_by(|a, b| a.1 == b.1) {
        let (from, to) = (run[0].0, run[run.len() - 1].0);
        let (_, fastest, is_reference, ratio) = run[run.len() / 2];
        let has_interval = ratio.low < ratio.high;
        let is_faster = has_interval && ratio.high < 1.0 && ratio.mid < 1.0 - ROW;
        let told = if is_reference {
            [String::new(), String::new(), "reference".to_owned()]
        } else {
            let verdict = if is_faster { "faster" } else { "cannot tell" };
            let interval = match has_interval {
                true => format!("{} .. {}", gain(ratio.high), gain(ratio.low)),
                false => String::new(),
            };
            [gain(ratio.mid), interval, verdict.to_owned()]
        };
        let title = if lines.is_empty() { name.to_owned() } else { String::new() };
        let line = [title, bytes(from), bytes(to), fastest.to_owned()];
        lines.push(line.into_iter().chain(told).collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{record, row};
    use cachewise_measure::PairedRatio;

    #[test]
    fn ranges_name_who_wins_and_whether_that_can_be_told() {
        let mut rows = Vec::new();
        for (size, low, high) in [
            (256, 0.9, 0.95),
            (512, 0.9, 0.95),
            (1024, 0.9, 1.05),
            (2048, 1.1, 1.2),
            (4096, 1.1, 1.2),
        ] {
            rows.push(row("copy", size, "warm", "libc"));
            for (name, factor) in [("copy.a", 1.0), ("copy.b", if size < 512 { 0.5 } else { 1.3 })]
            {
                let [low, median, high] = [low, (low + high) / 2.0, high].map(|end| end * factor);
                let ratio = PairedRatio { median, low, high, rounds: 15 };
                rows.push(row("copy", size, "warm", name).with_ratio(ratio));
            }
        }
        let two = vec![row("copy", 256, "warm", "libc"), row("copy", 512, "warm", "libc")];
        assert_eq!(table(&record(two)), None, "two sizes are no range");
        insta::assert_snapshot!(table(&record(rows)).expect("a table").terminal(None), @r"
        Fastest by size
        what         from     to  fastest  against the reference     95 % interval  verdict
        copy, warm  256 B  256 B  copy.b                  +116 %  +111 % .. +122 %  faster
                    512 B  1 KiB  copy.a                    +3 %     -5 % .. +11 %  cannot tell
                    2 KiB  4 KiB  libc                                              reference
          speed at the range's middle size, of the whole cost where reader or bystander were there: +100 % is twice as fast; sizes are those measured, so the fastest changes somewhere between one range's `to` and the next one's `from`
        ");
    }
}
