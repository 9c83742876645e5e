//! `peers`: the library against other libraries, as a program sees them: C calls through a function
//! pointer, at fixed sizes and with the sizes and alignments that programs call with.
//!
//! The library is there twice: linked into this program, as a Rust program has it, and as a shared library. A call into another library's code takes longer on some CPUs, as one into libc does; to compare a library that is near
//! with one that is far is to compare distances (`docs/decisions/entry-stubs.md`).
//!
//! The *envelope* is the best of the peers in each cell, libc among them. No library leads
//! everywhere; the envelope is what the best choice per size would give. Even rounds are compared with
//! the peer that was best in the odd ones, and the other way round.

use crate::callee::WIDTHS_STORED;
use crate::elsewhere::ElsewhereLibc;
use crate::helper::Helper;
use crate::other_libc::OtherLibc;
use crate::prelude::*;
use crate::script::{self, Script};
use cachewise_measure::distributions::Distribution;

pub(super) const NAME: &str = "peers";

/// Operations that other libraries have as well.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation::Copy,
    Operation::Move,
    Operation::Fill,
    Operation::Zero,
    Operation::Compare,
    Operation::Equal,
];

/// 1 byte to 256 MiB: the small ones that programs call with, then powers of two.
const SIZES: [usize; 37] = [
    1, 4, 8, 15, 16, 24, 32, 48, 64, 96, 128, 200, 256, 384, 512, 1024, 1500, 2048, 2304, 3072,
    4096, 6144, 8192, 12288, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152,
    4194304, 8388608, 16777216, 67108864, 268435456,
];

const QUICK_SIZES: [usize; 11] = [1, 8, 16, 64, 128, 256, 1024, 4096, 16384, 262144, 4194304];

/// Sizes at which the operands are also misaligned, and a little above a power of two apart.
const MISALIGNED: [usize; 7] = [100, 300, 1500, 4096, 16 << 10, 256 << 10, 4 << 20];

const QUICK_MISALIGNED: [usize; 2] = [300, 16 << 10];

/// Small sizes whose neighbours are states as well: a part of the result is loaded at once, also with a source that has just been
/// stored, by stores of which width.
const AT_ONCE: [usize; 9] = [4, 8, 15, 16, 24, 32, 48, 64, 128];

const QUICK_AT_ONCE: [usize; 4] = [8, 15, 32, 64];

/// Offset of the first difference of comparisons that find one.
const EARLY: usize = 20;

/// Spans of the scripts: inside L1, and far outside every cache.
const SPANS: [usize; 2] = [16 << 10, 64 << 20];

const fn c_function(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy | Operation::CopyPages => "memcpy",
        Operation::Move => "memmove",
        Operation::Fill | Operation::Zero | Operation::ZeroPages => "memset",
        Operation::Compare => "memcmp",
        Operation::Equal => "bcmp",
    }
}

pub(super) fn figures() -> Vec<Figure> {
    let curve = |title, value| Figure::curve(title, "size", value);
    vec![
        curve("Speed by size, warm buffers", "gbps").of("warm"),
        curve("Time over libc's, warm buffers", "ratio").of("warm"),
        curve("Time over libc's, misaligned buffers", "ratio").of("misaligned"),
    ]
}

fn cells(operation: Operation, sizes: &[usize], misaligned: &[usize]) -> Vec<(usize, Cell)> {
    let mut cells: Vec<(usize, Cell)> = sizes.iter().map(|&size| (size, Cell::warm())).collect();
    if operation != Operation::Move {
        cells.extend(misaligned.iter().map(|&size| (size, Cell::misaligned())));
    }
    if matches!(operation, Operation::Copy | Operation::Move) {
        cells.extend(misaligned.iter().map(|&size| (size, Cell::above_power(size))));
    }
    if matches!(operation, Operation::Compare | Operation::Equal) {
        // Most comparisons of a program find a difference early (84 % of KSM's within 64 bytes, 004.6).
        let early = sizes.iter().filter(|size| **size > EARLY).map(|&size| {
            let contents = Some(Contents::DiffersAt(EARLY));
            (size, Cell { label: "differs early".into(), contents, ..Cell::warm() })
        });
        cells.extend(early);
    }
    cells
}

/// Cells of small sizes with their neighbours, and the width of the stores before the call.
fn at_once(operation: Operation, sizes: &[usize]) -> Vec<(usize, Cell, Option<usize>)> {
    let is_stored = !matches!(operation, Operation::Fill | Operation::Zero);
    let read = script::at_once(operation);
    let wide = Features::detect().contains(Features::AVX);
    let mut cells = Vec::new();
    for &size in sizes {
        cells.push((size, Cell { label: read.into(), ..Cell::warm() }, None));
        let widths = WIDTHS_STORED.iter().copied().filter(|width| is_stored && *width <= size);
        for width in widths.filter(|width| wide || *width < 32) {
            let label = format!("just stored by {width}, {read}");
            cells.push((size, Cell { label: label.as_str().into(), ..Cell::warm() }, Some(width)));
        }
    }
    cells
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let quick = setting.options.quick;
    let own: &[usize] = if quick { &QUICK_SIZES } else { &SIZES };
    let chosen = setting.sizes_or(own.iter().copied());
    let most = setting.bench.largest_size();
    let sizes: Vec<usize> = chosen.iter().copied().filter(|size| *size <= most).collect();
    if sizes.len() < chosen.len() {
        let note = format!("sizes above {} left out: --memory allows no more", bytes(most));
        setting.out.note(note)?;
    }
    let given = setting.options.sizes.is_empty();
    let misaligned: &[usize] = match (given, quick) {
        (false, _) => &[],
        (true, true) => &QUICK_MISALIGNED,
        (true, false) => &MISALIGNED,
    };
    let small: &[usize] = match (given, quick) {
        (false, _) => &[],
        (true, true) => &QUICK_AT_ONCE,
        (true, false) => &AT_ONCE,
    };
    let asked = setting.options.operations.clone();
    let operations = if asked.is_empty() { OPERATIONS.to_vec() } else { asked };
    let file = setting.options.distribution.as_deref();
    let from_file = file.map(Distribution::read).transpose()?;
    // All of them before anything is measured.
    let peers = peers(&operations, setting)?;
    // With a distribution and no sizes asked for, only the distribution is measured.
    let fixed = from_file.is_none() || !setting.options.sizes.is_empty();
    let fixed_cells = |operation| {
        if fixed { cells(operation, &sizes, misaligned) } else { Vec::new() }
    };
    let spans: &[usize] = if given || from_file.is_some() { &SPANS } else { &[] };
    let neighbours = |operation| if fixed { at_once(operation, small) } else { Vec::new() };
    let work = operations.iter().map(|operation| {
        fixed_cells(*operation).len() + neighbours(*operation).len() + 2 * spans.len()
    });
    setting.begin(work.sum::<usize>() as f64);

    for operation in operations {
        let routines = candidates(operation, &peers, setting)?;
        let mut others = other_libcs(operation, setting)?;
        for (size, cell) in fixed_cells(operation) {
            let text = format!("{operation} {} {}", bytes(size), cell.label);
            let plan = Plan { drop_ratio: 8.0, ..setting.plan(true) };
            let task = Task { operation, size, cell, plan };
            let mut calls = Call::of_all(&routines, true);
            let mut candidates = each(&mut calls);
            candidates.extend(others.iter_mut().map(|it| it as &mut dyn Candidate));
            let Some(found) = setting.measure(&task, &mut candidates)? else { continue };
            let mut rows = found.rows();
            let mut left = Vec::new();
            for mut other in others {
                if let Some(error) = other.helper.take_failure() {
                    rows.retain(|row| row.candidate != other.name());
                    setting.out.note(format!("{operation}: {} left out: {error}", other.name()))?;
                } else {
                    as_beside_the_library(&mut rows, &mut other);
                    left.push(other);
                }
            }
            others = left;
            relate(&mut rows);
            setting.out.rows(rows)?;
            setting.out.advance(&text, 1.0);
        }
        for (size, cell, stored) in neighbours(operation) {
            let text = format!("{operation} {} {}", bytes(size), cell.label);
            let task = Task { operation, size, cell, plan: setting.plan(true) };
            let seed = setting.bench.seed;
            let calls = routines.iter().map(|routine| Call::at_once(routine, stored, seed));
            let mut calls: Vec<Call<'_>> = calls.collect();
            let Some(found) = setting.measure(&task, &mut each(&mut calls))? else { continue };
            let mut rows = found.rows();
            relate(&mut rows);
            setting.out.rows(rows)?;
            setting.out.advance(&text, 1.0);
        }
        let distribution =
            from_file.clone().or_else(|| Distribution::built_in(c_function(operation)));
        let Some(distribution) = distribution else { continue };
        for (&span, read_at_once) in spans.iter().flat_map(|span| [(span, false), (span, true)]) {
            let plan = setting.plan(true);
            let stop = || setting.out.stopped();
            let script = Script { operation, distribution: &distribution, span, read_at_once };
            let found = setting.bench.script(&script, &routines, plan, &stop);
            let mut rows = found?;
            relate(&mut rows);
            setting.out.rows(rows)?;
            setting.out.advance(&format!("{operation} as {} calls it", distribution.name), 1.0);
        }
    }
    Ok(())
}

/// The libraries of the options, loaded.
fn peers(operations: &[Operation], setting: &mut Setting) -> Result<Vec<(Operation, Routine)>> {
    let options = setting.options;
    let mut loaded = Vec::new();
    for peer in &options.peers {
        loaded.push((peer.operation, peer.load()?));
        if !operations.contains(&peer.operation) {
            setting.out.note(format!("--peer {}: not called: no {}", peer.name, peer.operation))?;
        }
    }
    Ok(loaded)
}

fn candidates(
    operation: Operation,
    peers: &[(Operation, Routine)],
    setting: &mut Setting,
) -> Result<Vec<Routine>> {
    let mut routines = vec![libc_reference(operation), library(operation)];
    if let Some(library) = &setting.options.shared {
        routines.extend(crate::libraries::shared(library, operation)?);
    }
    routines.extend(crate::libraries::built_in(operation));
    let those = peers.iter().filter(|(of, _)| *of == operation);
    routines.extend(those.map(|(_, routine)| routine.clone()));
    Ok(routines)
}

/// C libraries in other processes: those of the options' folders. They have fixed sizes alone: scripts of a thousand
/// sizes and places would have to be told to them first.
fn other_libcs(operation: Operation, setting: &mut Setting) -> Result<Vec<ElsewhereLibc>> {
    let options = setting.options;
    let Some(program) = &options.helper else { return Ok(Vec::new()) };
    let mut started = Vec::new();
    for OtherLibc { name, loader } in &options.libcs {
        let helper = Helper::start_by(loader, program);
        match helper.and_then(|helper| ElsewhereLibc::start(name, helper, operation)) {
            Ok(other) => started.push(other),
            Err(error) => setting.out.note(format!("{operation}: {name} left out: {error}"))?,
        }
    }
    Ok(started)
}

/// Name of the extra figure of another libc: the median of its times in its own process.
pub const IN_ITS_PROCESS: &str = "in_its_process_ns";

/// Replaces the times of another libc, which come from a process with other buffers, by those
/// that its ratio to the library there implies here.
fn as_beside_the_library(rows: &mut [Row], tuned: &mut ElsewhereLibc) {
    let times = |name: &str| {
        rows.iter().find(|row| row.candidate == name).map(|row| row.operation_ns.clone())
    };
    let (Some(library), Some(libc)) = (times(LIBRARY), times(LIBC)) else { return };
    let Some(row) = rows.iter_mut().find(|row| row.candidate == tuned.name()) else { return };
    let rounds = row.operation_ns.len().min(library.len());
    row.extra.insert(IN_ITS_PROCESS.to_owned(), stats::median(&row.operation_ns));
    row.operation_ns = tuned.beside_the_library(&library[..rounds]);
    let ratio = PairedRatio::paired(&row.operation_ns, &libc);
    *row = std::mem::take(row).with_ratio(ratio);
}

/// Relates rows of `peers`, those of a cell together, to the best peer's of their cell; others it leaves alone.
pub fn of_envelope(rows: &mut [Row]) {
    let is_one = |a: &Row, b: &Row| (&a.experiment, &a.cell) == (&b.experiment, &b.cell);
    let of_peers = |rows: &&mut [Row]| rows[0].experiment == NAME;
    rows.chunk_by_mut(is_one).filter(of_peers).for_each(relate);
}

/// Relates every row to the best peer's.
fn relate(rows: &mut [Row]) {
    let is_peer = |row: &&Row| ![LIBRARY, SHARED].contains(&row.candidate.as_str()) && !row.dropped;
    let peers: Vec<_> = rows.iter().filter(is_peer).map(|row| row.operation_ns.clone()).collect();
    let Some(envelope) = envelope(&peers) else { return };
    for row in rows.iter_mut() {
        let PairedRatio { median, low, high, .. } =
            PairedRatio::paired(&row.operation_ns, &envelope);
        let figures = [("of_envelope_low", low), ("of_envelope_high", high)];
        *row = std::mem::take(row).with(&[(OF_ENVELOPE, median)]).with(&figures);
    }
}

/// The time of the best peer by round. Which one is best for the even rounds the odd ones say, and the
/// other way round: the least of several medians is too low by their noise, so who is chosen must not be
/// compared by the samples that chose.
fn envelope(peers: &[Vec<f64>]) -> Option<Vec<f64>> {
    let best = |parity: usize| {
        let median = |times: &Vec<f64>| {
            stats::median(&times.iter().skip(parity).step_by(2).copied().collect::<Vec<_>>())
        };
        peers.iter().min_by(|a, b| median(a).total_cmp(&median(b)))
    };
    let (by_even, by_odd) = (best(0)?, best(1)?);
    let rounds = by_even.len().min(by_odd.len());
    let times =
        (0..rounds).map(|round| if round % 2 == 0 { by_odd[round] } else { by_even[round] });
    Some(times.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_best_is_not_judged_by_the_rounds_that_chose() {
        let steady = vec![10.0; 8];
        // The same in the mean, but by chance faster in the even rounds: chosen by them, and judged
        // by the odd ones.
        let lucky: Vec<f64> = (0..8).map(|round| if round % 2 == 0 { 8.0 } else { 12.0 }).collect();
        let times = envelope(&[steady.clone(), lucky]).expect("peers");
        assert_eq!(times, [10.0, 12.0, 10.0, 12.0, 10.0, 12.0, 10.0, 12.0]);
        assert_eq!(envelope(&[steady, vec![5.0; 8]]), Some(vec![5.0; 8]));
        assert_eq!(envelope(&[]), None);
    }

    #[test]
    fn comparisons_are_of_unequal_operands_too() {
        for operation in [Operation::Compare, Operation::Equal] {
            let cells = cells(operation, &[16, 64, 4096], &[]);
            let early = cells.iter().filter(|(_, cell)| cell.label == "differs early");
            assert_eq!(early.map(|(size, _)| *size).collect::<Vec<_>>(), [64, 4096]);
        }
        assert!(
            cells(Operation::Fill, &[64], &[64]).iter().all(|(_, cell)| cell.contents.is_none())
        );
    }
}
