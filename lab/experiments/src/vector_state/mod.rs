//! `vector-state` (002.17, 004.3): what it costs to own the vector registers, and from how many bytes
//! on a vector kernel pays for it.
//!
//! A kernel that wants vector registers has to save whatever they hold and restore it afterwards;
//! integer kernels need not. First the cost of XSAVE, XSAVEC and XSAVEOPT with XRSTOR is measured by
//! component and by what the registers hold: *dirty* (modified since the last restore), *unmodified*
//! (as the last restore left them) and *clean* (in their initial state, after `vzeroupper` and the
//! like). Then copy, zero and compare by each register class, bare and between save and restore, take
//! turns with the integer kernels. At last integer work is timed after a kernel of each register class: some
//! CPUs lower their clock for a while after vectors of 64 bytes.

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::prelude::*;
#[cfg(target_arch = "x86_64")]
use x86::run;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vector-state",
    about: "what saving vector registers costs; from how many bytes on a vector kernel gains more",
    seeds: &["002.17", "004.3", "004.4"],
    operations: &[Operation::Copy, Operation::Zero, Operation::Compare],
    takes: &["--kernels", "--size"],
    tables,
    figures,
    run: Some(run),
    ..PLAIN
};

/// State: kernels bare, and between saving and restoring.
const BREAK_EVEN: &str = "break-even";
/// State: integer work after a kernel.
const WORK_AFTER: &str = "what runs after";
/// Operation and beginning of the states of the rows about saving alone.
const SAVE_RESTORE: &str = "save-restore";
const REGISTERS: &str = "registers ";
/// Suffix of a kernel's name where nothing is saved.
const BARE: &str = ", bare";

/// The registers' contents when they are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Dirty,
    Unmodified,
    Clean,
}

impl Held {
    const ALL: [Held; 3] = [Held::Dirty, Held::Unmodified, Held::Clean];

    const fn name(self) -> &'static str {
        match self {
            Held::Dirty => "dirty",
            Held::Unmodified => "unmodified",
            Held::Clean => "clean",
        }
    }
}

fn figures() -> Vec<Figure> {
    let save = "Saving and restoring registers, by component";
    let even = "Time over the faster integer kernel's, save and restore included";
    vec![
        Figure::bars(save, NET_NS).by(&[COMPONENTS, "state"]).of("registers"),
        Figure::curve(even, "size", "ratio").of(BREAK_EVEN),
        Figure::bars("Integer work after a kernel, time over that after integers", "ratio")
            .of(WORK_AFTER),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_: &mut Setting) -> Result {
    nothing(
        "vector-state: not here; XSAVE exists on x86-64 only, and docs/power-and-arm.md says what a \
         kernel has to measure instead",
    )
}

/// `vector-state`: kernels against sizes, with the faster integer kernel as 1.
const EVEN: Grid = Grid {
    of: |row| row.cell.state == BREAK_EVEN,
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
    ..Grid::PLAIN
};

/// `vector-state`: integer work after a kernel.
const AFTER: Grid = Grid {
    of: |row| row.cell.state == WORK_AFTER,
    caption: |_| ("Integer work after a kernel: time over that after integers".to_owned(), None),
    lines: ("kernel", |row| row.candidate.split_once('.').map_or("", |(_, of)| of).to_owned()),
    column: |row| {
        let place = ["copy", "zero", "compare"].iter().position(|of| row.cell.operation == *of)?;
        Some((place as f64, row.cell.operation.clone()))
    },
    cell: |row| ratio_or_none(row),
    legend: "each after 3 ms without the kernel and 1 ms of it; ~: cannot tell it from 1",
    ..Grid::PLAIN
};

/// The costs, then one table per operation.
fn tables(rows: &[Row]) -> Vec<Table> {
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.axes.contains_key(COMPONENTS)).collect();
    let costs = (!saving.is_empty()).then(|| costs(&saving));
    let tables = EVEN.tables(rows).into_iter().chain(AFTER.tables(rows));
    costs.into_iter().chain(tables).collect()
}

fn costs(rows: &[&Row]) -> Table {
    let mut table = Table::of(
        "Saving and restoring registers, ns",
        "components | >bytes | instructions | >dirty | >unmodified | >clean | held when clean",
    );
    let key = |row: &Row| (axis(row, COMPONENTS) as u64, row.cell.size, row.candidate.clone());
    for ((components, size, candidate), of_one) in groups(rows.iter().copied(), key) {
        let figure = |held: Held, name: &str| {
            let state = format!("{REGISTERS}{}", held.name());
            of_one.iter().find(|row| row.cell.state == state.as_str())?.figure(name)
        };
        let net = |held| or_dash(figure(held, NET_NS), significant);
        let mut line = vec![component_names(components), size.to_string(), candidate];
        line.extend(Held::ALL.map(net));
        line.push(or_dash(figure(Held::Clean, HELD), |held| component_names(held as u64)));
        table.push(line);
    }
    table.remark(
        "dirty: every register modified before each save, which is subtracted; unmodified: as the \
         last restore left them; clean: in their initial state",
    );
    table.remark("bytes: written at most; held: what the CPU still counted as in use (XSTATE_BV)");
    table
}
