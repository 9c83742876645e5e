//! The table of 2007 (document 002) beside today's: the same routines, the same operation, the same state.

use super::answers::{CPUS, Shelf};
use super::claim::{between, is_misplaced};
use cachewise_kernels::{Kernel, Operation, TABLE};
use cachewise_measure::record::by_cell;
use cachewise_measure::units::significant;
use std::fmt::Write as _;
use std::path::Path;

/// The document's figures in GB/s, where it gives them: Athlon XP cached; Athlon 64 in the L1, in the L2,
/// uncached.
const ROUTINES: [(&str, [&str; 4]); 18] = [
    ("copy0", ["5.28", "16.9", "4.38", "0.83"]),
    ("copyD", ["6.30", "-", "-", "-"]),
    ("copyH", ["4.34", "-", "-", "-"]),
    ("copyK", ["8.75", "-", "-", "-"]),
    ("copyN", ["3.03", "-", "3.43", "-"]),
    ("copyO", ["-", "-", "1.78", "-"]),
    ("copyP", ["-", "-", "3.28", "-"]),
    ("copyQ", ["5.49", "13.7", "4.37", "0.84"]),
    ("copyR", ["-", "-", "2.79", "0.91"]),
    ("copyS", ["-", "-", "4.55", "0.92"]),
    ("copyT", ["-", "16.5", "4.40", "0.83"]),
    ("copyU", ["-", "-", "2.82", "0.91"]),
    ("copyV", ["-", "-", "4.52", "0.91"]),
    ("copyW", ["-", "-", "3.43", "1.35"]),
    ("copyX", ["-", "-", "1.78", "1.66"]),
    ("copyY", ["-", "-", "3.14", "1.61"]),
    ("copy.sse2.dillon", ["-"; 4]),
    ("libc", ["-"; 4]),
];

/// The operands' levels, in the order of the figures.
const LEVELS: [&str; 3] = ["L1", "L2", "DRAM"];

/// The table as Markdown.
///
/// # Errors
/// As [`Answers::of`](super::Answers::of).
pub fn table(folder: &Path) -> Result<String, String> {
    let shelf = Shelf::new(folder)?;
    let records = CPUS.map(|(_, cpu)| shelf.newest("copy-matrix", cpu));
    let mut text = String::from("|routine|");
    CPUS.iter().for_each(|(name, _)| _ = write!(text, "{name}|"));
    let columns = "---:|".repeat(CPUS.len() + 2);
    _ = writeln!(text, "Athlon XP, L1|Athlon 64|\n|---|{columns}");
    for (name, [xp, theirs @ ..]) in ROUTINES {
        let called =
            |kernel: &&Kernel| kernel.operation() == Operation::Copy && kernel.answers_to(name);
        let kernel = TABLE.iter().find(called).map_or(name, |kernel| kernel.name);
        let both = if kernel == name {
            name.to_owned()
        } else {
            format!("{name} (`{}`)", kernel.trim_start_matches("copy."))
        };
        _ = write!(text, "|{both}|");
        for record in &records {
            let Some(record) = record else {
                text.push_str("-|");
                continue;
            };
            let cells = by_cell(&record.rows);
            let at = |level: &&str| {
                let mut of_level = cells.iter().filter(|(cell, _)| between(cell, "copy", level));
                let (_, rows) = of_level.next()?;
                let row = rows.iter().find(|row| row.candidate == kernel)?;
                let is_proved = !rows.iter().any(|row| is_misplaced(row));
                is_proved.then(|| significant(row.gbps()))
            };
            let speeds = LEVELS.iter().map(|level| at(level).unwrap_or_else(|| "-".to_owned()));
            _ = write!(text, "{}|", speeds.collect::<Vec<_>>().join("/"));
        }
        _ = writeln!(text, "{xp}|{}|", theirs.join("/"));
    }
    Ok(text)
}
