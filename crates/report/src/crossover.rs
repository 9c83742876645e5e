//! Where the fastest changes: per operation and state, ranges of size with the candidate that wins
//! there, and whether it can be told from the reference at all.

use crate::Table;
use crate::plot::{Quantity, Spread};
use crate::units::{bytes, gain};
use cachewise_measure::record::groups;
use cachewise_measure::{CellKey, Record, Row};

/// One candidate's result at one size.
struct Entry<'r> {
    name: &'r str,
    ratio: Spread,
    reference: bool,
}

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
        for line in ranges(&name, &rows) {
            table.push(line);
        }
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
    let mut sizes = crate::sorted(rows.iter().map(|row| row.cell.size));
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
    let mut best: Vec<(u64, Entry<'_>)> = Vec::new();
    for &size in &sizes {
        let mut entries: Vec<(&str, bool, Vec<Spread>)> = Vec::new();
        for row in rows.iter().filter(|row| row.cell.size == size) {
            let Some(ratio) = Quantity::TotalRatio.of(row) else { continue };
            match entries.iter_mut().find(|(known, ..)| *known == row.candidate) {
                Some((.., ratios)) => ratios.push(ratio),
                None => entries.push((&row.candidate, row.candidate == row.reference, vec![ratio])),
            }
        }
        entries.retain(|(name, reference, _)| *reference || present(name));
        let entries = entries.into_iter().filter_map(|(name, reference, ratios)| {
            Some(Entry { name, reference, ratio: Spread::pooled(&ratios)? })
        });
        let winner = entries.min_by(|a, b| a.ratio.mid.total_cmp(&b.ratio.mid));
        best.extend(winner.map(|winner| (size, winner)));
    }
    let mut lines = Vec::new();
    for run in best.chunk_by(|a, b| a.1.name == b.1.name) {
        let (from, to) = (run[0].0, run[run.len() - 1].0);
        let middle = &run[run.len() / 2].1;
        let ratio = middle.ratio;
        let interval = format!("{} .. {}", gain(ratio.high), gain(ratio.low));
        let is_faster = ratio.high < 1.0 && ratio.mid < 0.99;
        let verdict = if is_faster { "faster" } else { "cannot tell" };
        let told = match middle.reference {
            true => [String::new(), String::new(), "reference".to_owned()],
            false => [gain(ratio.mid), interval, verdict.to_owned()],
        };
        let title = if lines.is_empty() { name.to_owned() } else { String::new() };
        let mut line = vec![title, bytes(from), bytes(to), middle.name.to_owned()];
        line.extend(told);
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{record, row};

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
                let mut other = row("copy", size, "warm", name);
                let ratio = other.ratio.as_mut().expect("a ratio");
                (ratio.low, ratio.median, ratio.high) =
                    (low * factor, (low + high) / 2.0 * factor, high * factor);
                rows.push(other);
            }
        }
        insta::assert_snapshot!(table(&record(rows)).expect("a table").terminal(None), @r"
        Fastest by size
        what         from     to  fastest  against the reference     95 % interval  verdict
        copy, warm  256 B  256 B  copy.b                  +116 %  +111 % .. +122 %  faster
                    512 B  1 KiB  copy.a                    +3 %     -5 % .. +11 %  cannot tell
                    2 KiB  4 KiB  libc                                              reference
          speed at the range's middle size, of the whole cost where reader or bystander were there: +100 % is twice as fast; sizes are those measured, so the fastest changes somewhere between one range's `to` and the next one's `from`
        ");
    }

    #[test]
    fn two_sizes_make_no_crossover() {
        let rows = vec![row("copy", 256, "warm", "libc"), row("copy", 512, "warm", "libc")];
        assert_eq!(table(&record(rows)), None);
    }
}
