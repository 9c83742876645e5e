//! `values` (002.12): does it matter what is stored, and what was there before?
//!
//! Evans: "ps is slow if there are denormals in the data, but don't remember if benchmarks support
//! this". So copies by movntps and others of zeros, ones, random bytes and denormals take turns on one
//! set of buffers. And since some CPUs write lines of zeros faster, or elide a store of what is there
//! already, fills of zeros and ones over the same and over other bytes do, too.
//!
//! In memory and in the LLC the prior contents are written anew before every sample. In L1 and L2 a
//! sample passes over its buffers many times, so that "over others" is two values in turn, and its
//! time the mean of the two.

use super::{STUDY, Step, measured, sizes_at};
use crate::bench::CellOutcome;
use crate::prelude::*;
use std::cell::Cell as Shared;
use std::rc::Rc;

/// Axis: which value, an index of [`VALUES`]; for fills only 0 and 1.
const VALUE: &str = "value";
const VALUES: [&str; 4] = ["zeros", "ones", "random", "denormals"];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "values",
    about: "does the value that is copied or stored matter: zeros, ones, random bytes, denormals?",
    seeds: &["002.12"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    tables: |rows| VALUES_STORED.tables(rows),
    figures,
    run: Some(run),
    ..STUDY
};

/// Kernels, here and in `page-colour`'s records, against what is stored, in GB/s, copies and fills separately.
pub(crate) const VALUES_STORED: Grid = Grid {
    caption: |row| {
        let (part, place) = (part_of(row), row.cell.levels().unwrap_or_default());
        sized(row, format!("{part}, {}, {place}: GB/s", bytes(row.cell.size)))
    },
    column: |row| {
        let head = row.cell.state.trim_start_matches(part_of(row)).trim_start();
        Some((0.0, head.to_owned()))
    },
    legend: "in turn: the value and 0xA5 alternate over the same bytes; the mean of the two",
    asks: |row| row.cell.state.ends_with(IN_TURN),
    proofs: true,
    ..Grid::PLAIN
};

fn part_of(row: &Row) -> &str {
    row.cell.state.split(' ').next().unwrap_or_default()
}

/// States begin so: copies of a value, and fills with one.
const COPYING: &str = "copying";
const STORING: &str = "storing";
/// States end so: the value and others alternate over the same bytes.
const IN_TURN: &str = "others in turn";

fn figures() -> Vec<Figure> {
    let bars = |title| Figure::bars(title, "gbps").by(&["destination", "state"]);
    vec![
        bars("Copies by what is copied").of(COPYING),
        bars("Fills by what is stored over what").of(STORING),
    ]
}

/// Writes a value over a quarter of a slot.
fn write_value(value: usize, bytes: &mut [u8]) {
    let mut random = fastrand::Rng::with_seed(0xD05E);
    for (index, word) in bytes.chunks_mut(4).enumerate() {
        let new = match value {
            0 => 0,
            1 => u32::MAX,
            2 => random.u32(..),
            // Single-precision denormals of both signs: exponent zero, mantissa not.
            _ => (random.u32(1..0x80_0000)) | ((index as u32 & 1) << 31),
        };
        word.copy_from_slice(&new.to_le_bytes()[..word.len()]);
    }
}

fn run(setting: &mut Setting) -> Result {
    let vector = widest_class(setting.bench.features);
    let wanted = |kernel: &Kernel| {
        matches!(kernel.technique(), "sse.nt" | "rep.movsb" | "rep.stosb" | "clzero")
            || (is_plain(kernel) && kernel.registers == vector)
    };
    let copies = field(setting, Operation::Copy, wanted)?;
    let mut fills = field(setting, Operation::Fill, wanted)?;
    // Only those zero kernels that no fill stands for.
    let only_zero = |kernel: &Kernel| kernel.technique() == "clzero";
    let zeros = field(setting, Operation::Zero, only_zero)?;
    fills.extend(zeros.into_iter().skip(1));
    at_least_one([&copies, &fills])?;
    let own: &[Level] =
        if setting.options.quick { &[Level::L1, Level::L2, Level::Dram] } else { &Level::ALL };
    let mut steps = Vec::new();
    for levels in setting.placements_or(own.iter().copied()) {
        for size in sizes_at(setting, levels, 4) {
            steps.extend((copies.len() > 1).then(|| copied(setting, &copies, size, levels)));
            steps.extend((fills.len() > 1).then(|| stored(setting, &fills, size, levels.1)));
        }
    }
    measured(setting, steps)
}

/// Copies of every value: a slot holds the four side by side, and a candidate copies its own quarter.
fn copied(
    setting: &Setting,
    routines: &[Routine],
    size: usize,
    (source, destination): (Level, Level),
) -> Step {
    let mut calls = Vec::new();
    for (routine, first) in routines.iter().zip((0..).step_by(VALUES.len())) {
        for (value, name) in VALUES.iter().enumerate() {
            let at = value * size;
            let quarter = move |Place { dst, src, .. }: &Place| Place {
                dst: dst.wrapping_add(at),
                src: src.wrapping_add(at),
                n: size,
            };
            let what = format!("{} of {name}", routine.name);
            let call = Call::on(what, routine.function, move |place| [quarter(place)])
                .checked(move |place| holds(value, &quarter(place)));
            calls.push(call.variant(routine, first + 2, " of random bytes").in_cell(move |cell| {
                CellKey {
                    size: size as u64,
                    state: format!("{COPYING} {name}"),
                    ..cell.with(&[(VALUE, value as f64)])
                }
            }));
        }
    }
    let written = |slot: &mut [u8]| {
        let quarters = slot.chunks_mut(slot.len() / VALUES.len());
        quarters.enumerate().for_each(|(value, quarter)| write_value(value, quarter));
    };
    let cell = Cell { written: Some(written), ..Cell::placed(source, destination) };
    Step::new(setting.task(Operation::Copy, VALUES.len() * size, cell), calls)
}

/// Checks that the source holds that value and the destination the source's bytes.
fn holds(value: usize, place: &Place) -> Result<(), String> {
    // SAFETY: within the slot, initialised, unwritten meanwhile.
    let source = unsafe { std::slice::from_raw_parts(place.src, place.n) };
    let mut expected = vec![0; place.n];
    write_value(value, &mut expected);
    if source != expected {
        return Err(format!("the source does not hold {}", VALUES[value]));
    }
    is_copied(place)
}

/// Fills of zeros and ones over the same and over other bytes.
fn stored(setting: &Setting, routines: &[Routine], size: usize, level: Level) -> Step {
    let near = level <= Level::L2;
    // The routine, the bytes it stores, and whether it stores over other bytes.
    let mut ways = Vec::new();
    for (nth, routine) in routines.iter().enumerate() {
        for (over_others, value) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            // clzero has one value, hence no other to take turns with.
            let zeroes = matches!(routine.function, Function::Zero(_));
            if !(zeroes && (value != 0 || (near && over_others))) {
                ways.push((nth, value, over_others));
            }
        }
    }
    let mut calls = Vec::new();
    for (index, &(nth, value, over_others)) in ways.iter().enumerate() {
        // Compared with the same value over others: elision, if there is any, is a ratio below 1.
        let reference = ways.iter().position(|way| *way == (nth, value, true)).unwrap_or(index);
        let prior = match (over_others, near) {
            (false, _) => VALUES[value],
            (true, false) => "others",
            (true, true) => IN_TURN,
        };
        let routine = &routines[nth];
        let call = filler(routine, (value, over_others), level);
        let call = call.variant(routine, reference, " over others");
        let operation = routine.function.operation();
        calls.push(call.in_cell(move |cell| CellKey {
            operation: operation.name().to_owned(),
            state: format!("{STORING} {} over {prior}", VALUES[value]),
            ..cell.with(&[(VALUE, value as f64), ("over_others", flag(over_others))])
        }));
    }
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::placed(level, level) };
    let task = setting.task(Operation::Fill, 4 * size, cell);
    if near {
        return Step::new(task, calls);
    }
    let remark = |_: &Task, found: &CellOutcome| {
        let visits = found.result.visits_per_slot;
        (visits > 1.0).then(|| {
            format!(
                "{STORING}: a sample passed over its buffers {visits:.1} times, so that later \
                 calls met what earlier ones stored"
            )
        })
    };
    Step { remark, ..Step::new(task, calls) }
}

/// Fills, with the destination's contents set up before each sample.
fn filler<'c>(routine: &Routine, (value, over_others): (usize, bool), level: Level) -> Call<'c> {
    let byte = if value == 0 { 0 } else { 0xFF };
    let prior = if over_others { FILL_BYTE } else { byte };
    // Slots are visited in turn, so a pass is over when the first comes again: how many a pass has, and
    // how many there were.
    let turn = Rc::new((Shared::new(usize::MAX), Shared::new(0_usize)));
    let begun = Rc::clone(&turn);
    let (function, callee) = (routine.function, Callee::new(routine.function));
    let in_turn = over_others && level <= Level::L2;
    let calls = move |places: &[Place]| {
        let (pass, visits) = &*turn;
        match function {
            Function::Fill(f) if in_turn => {
                for place in places {
                    let visit = visits.replace(visits.get() + 1);
                    let value = if (visit / pass.get()) & 1 == 0 { byte } else { FILL_BYTE };
                    // SAFETY: a slot of n bytes; this CPU runs the kernel.
                    std::hint::black_box(unsafe { f(place.dst, i32::from(value), place.n) });
                }
            }
            Function::Fill(f) => {
                for place in places {
                    // SAFETY: a slot of n bytes; this CPU runs the kernel.
                    std::hint::black_box(unsafe { f(place.dst, i32::from(byte), place.n) });
                }
            }
            _ => callee.run(places),
        }
    };
    let setup = move |places: &[Place]| {
        let Some(first) = places.first() else { return };
        let again = places.iter().skip(1).position(|place| std::ptr::eq(place.dst, first.dst));
        let count = again.map_or(places.len(), |at| at + 1);
        begun.0.set(count);
        begun.1.set(0);
        places[..count].iter().for_each(|place| put(place, prior, level));
    };
    let text = if over_others { "others" } else { "the same" };
    Call::new(format!("{} of {} over {text}", routine.name, VALUES[value]), calls)
        .set_up(setup)
        .checked(move |place| is_filled(place, byte))
}

/// Writes the prior contents; non-temporally where the destination is in memory.
fn put(place: &Place, byte: u8, level: Level) {
    let non_temporal = find("fill.sse2.nt").filter(|_| level == Level::Dram);
    if let Some(Function::Fill(fill)) = non_temporal.map(|kernel| kernel.function) {
        // SAFETY: a slot of n bytes; every CPU with that row in its table has SSE2.
        unsafe { fill(place.dst, i32::from(byte), place.n) };
    } else {
        // SAFETY: a slot of n bytes.
        unsafe { std::ptr::write_bytes(place.dst, byte, place.n) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denormals_are_denormal_and_the_rest_what_it_says() {
        let mut bytes = [7; 64];
        write_value(3, &mut bytes);
        let words =
            || bytes.chunks(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        assert!(words().all(f32::is_subnormal));
        write_value(0, &mut bytes);
        assert_eq!(bytes, [0; 64]);
        write_value(1, &mut bytes[..63]);
        assert_eq!((bytes[62], bytes[63]), (0xFF, 0));
    }
}
