//! What `tune` and `explain` print: ranges with their gains, regrets, the figures behind a decision.

use crate::Table;
use crate::units::{bytes, gain};
use cachewise_measure::PairedRatio;

/// A decision with what it gains.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeLine {
    /// The operation's name.
    pub operation: String,
    /// The hint's name.
    pub reuse: String,
    /// First size.
    pub from: u64,
    /// Last size; `None` is without end.
    pub to: Option<u64>,
    /// The kernel.
    pub kernel: String,
    /// Time over libc's of the operation alone, warm buffers, all rounds of all sizes in the range.
    pub operation_ratio: Option<PairedRatio>,
    /// The same of operation and reader.
    pub read_ratio: Option<PairedRatio>,
    /// The same of operation and bystander.
    pub beside_ratio: Option<PairedRatio>,
}

fn with_interval(ratio: Option<PairedRatio>) -> String {
    ratio.and_then(crate::cost::sane).map_or("-".to_owned(), |ratio| {
        let bare = |ratio: f64| gain(ratio).trim_end_matches(" %").to_owned();
        format!("{} ({} .. {})", gain(ratio.median), bare(ratio.high), bare(ratio.low))
    })
}

/// The table of ranges.
#[must_use]
pub fn ranges(lines: &[RangeLine], reference: &str) -> Table {
    let mut table = Table::new(
        format!("Decisions, and their speed against {reference}"),
        &[
            "operation",
            "reuse",
            ">from",
            ">to",
            "kernel",
            ">operation",
            ">with reader",
            ">with bystander",
        ],
    );
    let mut before = ("", "");
    for line in lines {
        let here = (line.operation.as_str(), line.reuse.as_str());
        let operation = if here.0 == before.0 { "" } else { here.0 };
        let reuse = if here == before { "" } else { here.1 };
        before = here;
        table.push(vec![
            operation.to_owned(),
            reuse.to_owned(),
            bytes(line.from),
            line.to.map_or("and up".to_owned(), |to| bytes(to + 1)),
            line.kernel.clone(),
            with_interval(line.operation_ratio),
            with_interval(line.read_ratio),
            with_interval(line.beside_ratio),
        ]);
    }
    table.remarks.push(
        "speed: +100 % is twice as fast; in brackets the 95 % interval; each range ends below `to`"
            .to_owned(),
    );
    table.remarks.push(
        "calls of up to 256 bytes without a hint take the library's own paths, whatever the profile"
            .to_owned(),
    );
    table
}

/// One kernel's costs at one size, for `explain`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceLine {
    /// The kernel.
    pub kernel: String,
    /// Whether the profile names it here.
    pub chosen: bool,
    /// Ratio to libc per state, in the order of the table's columns.
    pub ratios: Vec<Option<PairedRatio>>,
    /// The weighed cost under the hint.
    pub cost: Option<f64>,
}

/// The figures behind a decision.
#[must_use]
pub fn evidence(size: u64, states: &[&str], lines: &[EvidenceLine]) -> Table {
    let mut columns = vec!["".to_owned(), "kernel".to_owned()];
    columns.extend(states.iter().map(|state| format!(">{state}")));
    columns.push(">cost".to_owned());
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(format!("Time over libc's at {}, by state", bytes(size)), &columns);
    for line in lines {
        let mut row = vec![if line.chosen { "->" } else { "" }.to_owned(), line.kernel.clone()];
        row.extend(line.ratios.iter().map(|ratio| {
            ratio.map_or("-".to_owned(), |r| {
                format!("{:.3} ({:.3} .. {:.3})", r.median, r.low, r.high)
            })
        }));
        row.push(line.cost.map_or("-".to_owned(), |cost| format!("{cost:.3}")));
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_a_person_would_say_them() {
        let ratio = PairedRatio { median: 0.5, low: 0.4, high: 0.8, rounds: 15 };
        let line = |reuse: &str, from, to| RangeLine {
            operation: "copy".into(),
            reuse: reuse.into(),
            from,
            to,
            kernel: "copy.avx".into(),
            operation_ratio: Some(ratio),
            read_ratio: None,
            beside_ratio: None,
        };
        let lines = [
            line("unknown", 256, Some(4095)),
            line("unknown", 4096, None),
            line("soon", 256, None),
        ];
        insta::assert_snapshot!(ranges(&lines, "libc").terminal(None), @r"
        Decisions, and their speed against libc
        operation  reuse     from      to  kernel               operation  with reader  with bystander
        copy       unknown  256 B   4 KiB  copy.avx  +100 % (+25 .. +150)            -               -
                            4 KiB  and up  copy.avx  +100 % (+25 .. +150)            -               -
                   soon     256 B  and up  copy.avx  +100 % (+25 .. +150)            -               -
          speed: +100 % is twice as fast; in brackets the 95 % interval; each range ends below `to`
          calls of up to 256 bytes without a hint take the library's own paths, whatever the profile
        ");
    }
}
