//! Experiments whose tables have one quantity: candidates down, one coordinate across.

use super::support::*;

/// How rows become grids.
pub struct Grid {
    /// The rows that take part.
    of: fn(&Row) -> bool,
    /// The caption: rows of the same caption, and of the same size where it is given, share a table.
    caption: fn(&Row) -> (String, Option<u64>),
    /// What the lines are, and a row's line.
    lines: (&'static str, fn(&Row) -> String),
    /// A row's place among the columns, and its column's head.
    column: fn(&Row) -> Option<(f64, String)>,
    cell: fn(&Row) -> String,
    /// What is remarked where some row asks for it.
    legend: &'static str,
    asks: fn(&Row) -> bool,
    /// Whether rows without a column are remarked.
    others: bool,
    /// Whether proofs of residency are remarked.
    proofs: bool,
}

/// What most grids are.
const GRID: Grid = Grid {
    of: |_| true,
    caption: |row| (what(row), None),
    lines: ("kernel", candidate),
    column: |_| None,
    cell: gbps,
    legend: "",
    asks: |_| true,
    others: false,
    proofs: false,
};

impl Grid {
    /// A table per caption, in the order of their first appearance.
    pub fn tables(&self, rows: &[Row]) -> Vec<Table> {
        let table = |((caption, _), rows): (_, Vec<&Row>)| {
            let (first, line) = self.lines;
            let mut table = grid(caption, first, &rows, line, self.column, self.cell);
            for row in rows.iter().filter(|row| self.others && (self.column)(row).is_none()) {
                table.remark(format!("{}: {} GB/s", row.candidate, gbps(row)));
            }
            if !self.legend.is_empty() && rows.iter().any(|row| (self.asks)(row)) {
                table.remark(self.legend);
            }
            table.remarks.extend(unproved(&rows).into_iter().filter(|_| self.proofs));
            table
        };
        let of_it = rows.iter().filter(|row| (self.of)(row));
        groups(of_it, self.caption).into_iter().map(table).collect()
    }
}

fn candidate(row: &Row) -> String {
    row.candidate.clone()
}

fn what(row: &Row) -> String {
    format!("{}, {}", row.cell.operation, bytes(row.cell.size))
}

fn sized(row: &Row, caption: String) -> (String, Option<u64>) {
    (caption, Some(row.cell.size))
}

/// `aliasing`: kernels against offsets, as time over the twin half a page further on.
pub const OFFSETS: Grid =
    Grid {
        of: |row| row.cell.axes.contains_key(OFFSET),
        caption: |row| {
            let mut caption = what(row);
            caption.extend(row.cell.levels().map(|levels| format!(", {levels}")));
            caption.extend(row.axis(PAGE_BYTES).map(|page| format!(", {} pages", size_text(page))));
            caption.extend(row.axis(DISTANCE).map(|distance| {
                format!(", destination {} above the source and", size_text(distance))
            }));
            sized(row, caption + ": time over the same alignment half a page away, by offset")
        },
        column: |row| {
            // From half a page to a line further are the twins the others are compared with.
            let offset = row.axis(OFFSET).filter(|offset| !(2048.0..2112.0).contains(offset))?;
            Some((offset, format!("+{offset}")))
        },
        cell: ratio_or_none,
        legend: "offset: destination minus source modulo 4 KiB; ~: cannot tell it from 1",
        proofs: true,
        ..GRID
    };

/// `aliasing`: zeroing by pages of either size.
pub const PAGES: Grid = Grid {
    of: |row| row.cell.state == "pages",
    caption: |row| {
        let place = row.cell.destination.as_deref().unwrap_or_default();
        sized(row, format!("{}, {place}: GB/s by page", what(row)))
    },
    column: |row| row.axis(PAGE_BYTES).map(|page| (page, size_text(page))),
    legend: "pages of one size after the other, not in turns",
    ..GRID
};

/// `compare-latency`: time by the first difference.
pub const FIRST_DIFFERENCES: Grid = Grid {
    of: |row| row.cell.state == "sweep",
    caption: |row| sized(row, what(row) + ": ns by the offset of the first difference"),
    column: |row| {
        let at = row.axis(FIRST_DIFFERENCE)?;
        let equal = at as u64 == row.cell.size;
        Some((at, if equal { "none".to_owned() } else { at.to_string() }))
    },
    cell: |row| significant(row.median_ns()),
    ..GRID
};

/// `extent`: kernels against the way an extent is covered, in GB/s and over one call.
pub const EXTENTS: Grid = Grid {
    caption: |row| sized(row, what(row) + ": GB/s (time over one call)"),
    column: |row| {
        let chunk = axis(row, CHUNK) as u64;
        let head = match axis(row, SHUFFLED) == 1.0 {
            _ if chunk == row.cell.size => "one call".to_owned(),
            true => format!("by {} shuffled", bytes(chunk)),
            false => format!("by {}", bytes(chunk)),
        };
        Some((0.0, head))
    },
    cell: |row| if axis(row, CHUNK) as u64 == row.cell.size { gbps(row) } else { speed(row) },
    legend: "~: cannot tell it from 1; shuffled: every page once, in random order",
    ..GRID
};

/// `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.
pub const THREADS_TOGETHER: Grid = Grid {
    caption: |row| {
        let operation = &row.cell.operation;
        (format!("{operation} by several threads: GB/s (time over one thread's)"), None)
    },
    lines: (">bytes", |row| bytes(row.cell.size)),
    column: |row| Some((0.0, row.candidate.clone())),
    cell: |row| if row.candidate == row.reference { gbps(row) } else { speed(row) },
    legend: "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1",
    ..GRID
};

/// `read-batch`: families against the bytes they read before writing, in GB/s.
pub const READ_BATCHES: Grid = Grid {
    caption: |row| {
        let place = crate::matrix::caption(&row.cell);
        sized(row, format!("{place}: GB/s by the bytes read before writing"))
    },
    lines: ("family", candidate),
    column: |row| row.axis(READ_BYTES).map(|read| (read, size_text(read))),
    legend: "g*: registers loaded before the first store; block*: bytes touched before they are copied",
    others: true,
    proofs: true,
    ..GRID
};

/// `sticky`: routines and who wrote before against the calls in a row, in GB/s.
pub const CALLS: Grid = Grid {
    caption: |row| sized(row, format!("{}, {}: GB/s by call in a row", what(row), row.cell.state)),
    lines: ("routine", candidate),
    column: |row| row.axis(CALL).map(|call| (call, call.to_string())),
    cell: |row| gbps(row) + if is_slower(row) { "*" } else { "" },
    legend: "*: slower than the same call after temporal stores",
    asks: is_slower,
    ..GRID
};

fn is_slower(row: &Row) -> bool {
    row.verdict == Some(Verdict::Slower)
}

/// `values` and `page-colour`: kernels against what is stored, in GB/s, copies and fills apart.
pub const VALUES_STORED: Grid = Grid {
    caption: |row| {
        let (part, place) = (part_of(row), row.cell.levels().unwrap_or_default());
        sized(row, format!("{part}, {}, {place}: GB/s", bytes(row.cell.size)))
    },
    column: |row| {
        let head = row.cell.state.trim_start_matches(part_of(row)).trim_start();
        Some((0.0, head.to_owned()))
    },
    legend: "in turn: the value and 0xA5 alternate over the same bytes; the mean of the two",
    asks: |row| row.cell.state.ends_with("in turn"),
    proofs: true,
    ..GRID
};

/// Copying or storing.
fn part_of(row: &Row) -> &str {
    row.cell.state.split(' ').next().unwrap_or_default()
}

/// `vector-state`: integer work after a kernel.
pub const AFTER: Grid = Grid {
    of: |row| row.cell.state == "what runs after",
    caption: |_| ("Integer work after a kernel: time over that after integers".to_owned(), None),
    lines: ("kernel", |row| row.candidate.split_once('.').map_or("", |(_, of)| of).to_owned()),
    column: |row| {
        let place = ["copy", "zero", "compare"].iter().position(|of| row.cell.operation == *of)?;
        Some((place as f64, row.cell.operation.clone()))
    },
    cell: |row| ratio_or_none(row),
    legend: "each after 3 ms without the kernel and 1 ms of it; ~: cannot tell it from 1",
    ..GRID
};

/// `vector-state`: kernels against sizes, with the faster integer kernel as 1.
pub const BREAK_EVEN: Grid = Grid {
    of: |row| row.cell.state == "break-even",
    caption: |row| {
        let operation = &row.cell.operation;
        (format!("{operation}: time over the faster integer kernel's, by size"), None)
    },
    column: |row| Some((row.cell.size as f64, bytes(row.cell.size))),
    cell: |row| match row.median_ns() {
        ns if row.candidate == row.reference => format!("1 ({} ns)", significant(ns)),
        _ => ratio_or_none(row),
    },
    legend: "+: between saving and restoring the registers the kernel uses, which hold something (dirty) \
         or nothing (clean); ~: cannot tell it from 1",
    ..GRID
};
