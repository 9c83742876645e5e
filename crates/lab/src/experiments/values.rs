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

use super::support::{
    at_least_one, axis, field, figure, gbps, groups, is_plain, key, percent, place, versus, widest,
};
use super::{Experiment, Finish, Setting, default_sizes, short_bytes};
use crate::LabError;
use crate::bench::{Contest, Entrant, MARGIN, Spot};
use crate::routines::{FILL_BYTE, Routine};
use cachewise_kernels::{Function, Kernel, Operation, find};
use cachewise_measure::{
    Contents, Figure, FigureKind, Level, MeasureError, PagePolicy, Place, Row, Verdict,
};
use std::cell::Cell;
use std::rc::Rc;

/// Axis: which value, an index of [`VALUES`]; for fills only 0 and 1.
pub const VALUE: &str = "value";
/// Axis: 1 where the destination held other bytes before.
pub const OVER_OTHERS: &str = "over_others";

/// What is stored.
pub const VALUES: [&str; 4] = ["zeros", "ones", "random", "denormals"];

pub(super) fn figures() -> Vec<Figure> {
    vec![
        figure(
            "Copies by what is copied",
            FigureKind::Bars,
            "candidate",
            "gbps",
            &["destination", "state"],
            "copying",
        ),
        figure(
            "Fills by what is stored over what",
            FigureKind::Bars,
            "candidate",
            "gbps",
            &["destination", "state"],
            "storing",
        ),
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

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let vector = widest(setting.bench.features);
    let wanted = |kernel: &Kernel| {
        matches!(kernel.technique(), "sse.nt" | "rep.movsb" | "rep.stosb" | "clzero")
            || (is_plain(kernel) && kernel.registers == vector)
    };
    let copies = field(setting, Operation::Copy, wanted)?;
    let mut fills = field(setting, Operation::Fill, wanted)?;
    // Of the zero kernels only those that no fill stands for.
    let only_zero = |kernel: &Kernel| kernel.technique() == "clzero";
    let zeros = field(setting, Operation::Zero, only_zero)?;
    fills.extend(zeros.into_iter().skip(1));
    at_least_one(&[&copies, &fills])?;
    let mut levels = setting.options.placements.clone();
    if levels.is_empty() {
        let own: &[Level] =
            if setting.options.quick { &[Level::L1, Level::L2, Level::Dram] } else { &Level::ALL };
        levels = own.iter().map(|&level| (level, level)).collect();
    }
    setting.observer.begin(experiment.name, 2.0 * levels.len() as f64);
    let mut rows = Vec::new();
    let mut finish = Finish::Complete;
    'all: for (source, destination) in levels {
        let usual = default_sizes(source.min(destination), true, &setting.bench.machine.caches)[0];
        let sizes = if setting.options.sizes.is_empty() {
            vec![usual / 4]
        } else {
            setting.options.sizes.clone()
        };
        for size in sizes {
            for (what, routines) in [("copying", &copies), ("storing", &fills)] {
                if routines.len() < 2 {
                    continue;
                }
                let outcome = if what == "copying" {
                    copied(experiment, setting, routines, size, (source, destination), &mut rows)
                } else {
                    stored(experiment, setting, routines, size, destination, &mut rows)
                };
                match outcome {
                    Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                        (setting.notes)(format!("skipped {what}: {error}"))?;
                    }
                    Ok(Finish::Interrupted) => {
                        finish = Finish::Interrupted;
                        break 'all;
                    }
                    other => {
                        other?;
                    }
                }
                setting
                    .observer
                    .advance(&format!("{what} {} {source}:{destination}", short_bytes(size)), 1.0);
            }
        }
    }
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(finish)
}

/// Copies of every value: a slot holds the four side by side, and an entrant copies its own quarter.
fn copied(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    routines: &[Routine],
    size: usize,
    (source, destination): (Level, Level),
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    let mut entrants: Vec<Entrant<'_>> = routines
        .iter()
        .flat_map(|routine| (0..VALUES.len()).map(move |value| copier(routine, value, size)))
        .collect();
    let write = |slot: *mut u8, bytes: usize| {
        // SAFETY: a slot of that many initialised bytes that nobody else uses.
        let slot = unsafe { std::slice::from_raw_parts_mut(slot, bytes) };
        for (value, quarter) in slot.chunks_mut(size).enumerate() {
            write_value(value, quarter);
        }
    };
    let contest = Contest {
        size: VALUES.len() * size,
        destination: Spot { level: Some(destination), offset: 0 },
        source: Some(Spot { level: Some(source), offset: 512 }),
        distance: 0,
        pages: PagePolicy::Huge,
        contents: Contents::Overwritten,
        plan: setting.plan(false),
        write_source: Some(&write),
        entrants: &mut entrants,
    };
    let found = setting.bench.hold(contest, setting.observer)?;
    if found.interrupted() {
        return Ok(Finish::Interrupted);
    }
    for (nth, routine) in routines.iter().enumerate() {
        let random = nth * VALUES.len() + 2;
        for (value, name) in VALUES.iter().enumerate() {
            let cell = key(
                "copy",
                size,
                (Some(source), Some(destination)),
                &format!("copying {name}"),
                &[(VALUE, value as f64)],
            );
            let mut row = found.row(experiment.name, cell, nth * VALUES.len() + value, random);
            row.candidate.clone_from(&routine.name);
            row.reference = if value == 2 {
                routine.name.clone()
            } else {
                format!("{} of random bytes", routine.name)
            };
            (setting.rows)(&row)?;
            rows.push(row);
        }
    }
    Ok(Finish::Complete)
}

fn copier<'e>(routine: &Routine, value: usize, size: usize) -> Entrant<'e> {
    let Function::Copy(f) = routine.function else { return Entrant::plain(routine) };
    let at = value * size;
    Entrant::new(format!("{} of {}", routine.name, VALUES[value]), move |places: &[Place]| {
        for place in places {
            // SAFETY: a quarter of slots that are valid and apart.
            std::hint::black_box(unsafe {
                f(place.dst.wrapping_add(at), place.src.wrapping_add(at), size)
            });
        }
    })
    .judged(move |place| {
        // SAFETY: within the slot, initialised, unwritten meanwhile.
        let ours = unsafe { std::slice::from_raw_parts(place.dst.wrapping_add(at), size) };
        // SAFETY: as above.
        let theirs = unsafe { std::slice::from_raw_parts(place.src.wrapping_add(at), size) };
        let mut expected = vec![0; size];
        write_value(value, &mut expected);
        if theirs != expected {
            return Err(format!("the source does not hold {}", VALUES[value]));
        }
        if ours == theirs {
            Ok(())
        } else {
            Err(format!("{size} bytes of {} were not copied", VALUES[value]))
        }
    })
}

/// One way to fill: what, over what.
#[derive(Clone, Copy)]
struct Storing {
    value: usize,
    over_others: bool,
}

/// Fills of zeros and ones over the same and over other bytes.
fn stored(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    routines: &[Routine],
    size: usize,
    level: Level,
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    let near = level <= Level::L2;
    let mut ways: Vec<(usize, Storing)> = Vec::new();
    for (nth, routine) in routines.iter().enumerate() {
        for over_others in [false, true] {
            for value in 0..2 {
                // clzero has one value, hence no other to take turns with.
                let zeroes = matches!(routine.function, Function::Zero(_));
                if !(zeroes && (value != 0 || (near && over_others))) {
                    ways.push((nth, Storing { value, over_others }));
                }
            }
        }
    }
    let size = 4 * size;
    let mut entrants: Vec<Entrant<'_>> =
        ways.iter().map(|&(nth, storing)| filler(&routines[nth], storing, level)).collect();
    let contest = Contest {
        size,
        destination: Spot { level: Some(level), offset: 0 },
        source: None,
        distance: 0,
        pages: PagePolicy::Huge,
        contents: Contents::Kept,
        plan: setting.plan(false),
        write_source: None,
        entrants: &mut entrants,
    };
    let found = setting.bench.hold(contest, setting.observer)?;
    setting.bench.forget_contents();
    if found.interrupted() {
        return Ok(Finish::Interrupted);
    }
    if !near && found.result.visits_per_slot > 1.0 {
        (setting.notes)(format!(
            "storing at {level}: a sample passed over its buffers {:.1} times, so that later calls met what earlier ones stored",
            found.result.visits_per_slot
        ))?;
    }
    for (index, &(nth, storing)) in ways.iter().enumerate() {
        // Compared with the same value over others: elision, if there is any, is a ratio below 1.
        let reference = ways
            .iter()
            .position(|&(other, way)| other == nth && way.value == storing.value && way.over_others)
            .unwrap_or(index);
        let prior = match (storing.over_others, near) {
            (false, _) => VALUES[storing.value],
            (true, false) => "others",
            (true, true) => "others in turn",
        };
        let state = format!("storing {} over {prior}", VALUES[storing.value]);
        let axes = [
            (VALUE, storing.value as f64),
            (OVER_OTHERS, f64::from(u8::from(storing.over_others))),
        ];
        let name = &routines[nth].name;
        let operation =
            if matches!(routines[nth].function, Function::Zero(_)) { "zero" } else { "fill" };
        let mut row = found.row(
            experiment.name,
            key(operation, size, (None, Some(level)), &state, &axes),
            index,
            reference,
        );
        row.candidate.clone_from(name);
        row.reference =
            if reference == index { name.clone() } else { format!("{name} over others") };
        (setting.rows)(&row)?;
        rows.push(row);
    }
    Ok(Finish::Complete)
}

/// Fills, with the destination's contents arranged before each sample.
fn filler<'e>(routine: &Routine, storing: Storing, level: Level) -> Entrant<'e> {
    let byte = if storing.value == 0 { 0 } else { 0xFF };
    let prior = if storing.over_others { FILL_BYTE } else { byte };
    // Slots are visited in turn, so a pass is over when the first comes again.
    let pass = Rc::new(Cell::new(usize::MAX));
    let seen = Rc::clone(&pass);
    let function = routine.function;
    let in_turn = storing.over_others && level <= Level::L2;
    let mut visits = 0_usize;
    let begun = Rc::new(Cell::new(false));
    let begin = Rc::clone(&begun);
    let calls = move |places: &[Place]| {
        if begun.replace(false) {
            visits = 0;
        }
        match function {
            Function::Fill(f) if in_turn => {
                for place in places {
                    let value = if (visits / pass.get()) & 1 == 0 { byte } else { FILL_BYTE };
                    visits += 1;
                    // SAFETY: a slot of n bytes; this CPU runs the kernel.
                    std::hint::black_box(unsafe { f(place.dst, i32::from(value), place.n) });
                }
            }
            Function::Fill(f) => {
                for place in places {
                    // SAFETY: as above.
                    std::hint::black_box(unsafe { f(place.dst, i32::from(byte), place.n) });
                }
            }
            other => crate::bench::run_all(other, places),
        }
    };
    let arrange = move |places: &[Place]| {
        let Some(first) = places.first() else { return };
        let again = places.iter().skip(1).position(|place| std::ptr::eq(place.dst, first.dst));
        let count = again.map_or(places.len(), |at| at + 1);
        seen.set(count);
        begin.set(true);
        places[..count].iter().for_each(|place| put(place, prior, level));
    };
    let text = if storing.over_others { "others" } else { "the same" };
    Entrant::new(format!("{} of {} over {text}", routine.name, VALUES[storing.value]), calls)
        .arranged(arrange)
        .judged(move |place| {
            // SAFETY: n initialised bytes, unwritten meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
            match bytes.iter().position(|found| *found != byte) {
                None => Ok(()),
                Some(at) => {
                    Err(format!("byte {at} of {} is {}, expected {byte}", place.n, bytes[at]))
                }
            }
        })
}

/// Writes the prior contents: through the cache, or around it where the destination is in memory.
fn put(place: &Place, byte: u8, level: Level) {
    let around = find("fill.sse2.nt").filter(|_| level == Level::Dram);
    match around.map(|kernel| kernel.function) {
        Some(Function::Fill(fill)) => {
            // SAFETY: a slot of n bytes; every CPU with that row in its table has SSE2.
            unsafe { fill(place.dst, i32::from(byte), place.n) };
        }
        _ => {
            // SAFETY: a slot of n bytes.
            unsafe { std::ptr::write_bytes(place.dst, byte, place.n) };
        }
    }
}

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = vec![denormals(rows)];
    let key = |row: &Row| (row.cell.operation.clone(), place(row), row.cell.size);
    let by_state = |state: &str| {
        rows.iter().filter(move |row| row.cell.state.starts_with(state)).collect::<Vec<_>>()
    };
    for ((_, where_, _), of_cell) in groups(by_state("copying"), |row: &Row| key(row)) {
        sentences.push(copy_sentence(&where_, &of_cell));
    }
    for (where_, of_level) in groups(by_state("storing"), |row: &Row| place(row)) {
        for (candidate, of_one) in
            groups(of_level.iter().copied(), |row: &Row| row.candidate.clone())
        {
            sentences.extend(store_sentence(&where_, &candidate, &of_one));
        }
    }
    sentences
}

/// The open question of 002.12, for movntps.
fn denormals(rows: &[Row]) -> String {
    let of = |row: &&Row| row.candidate == "copy.sse.nt" && row.cell.operation == "copy";
    let mut told = Vec::new();
    let cells = groups(rows.iter().filter(of), |row: &Row| (place(row), row.cell.size));
    for ((where_, _), of_cell) in &cells {
        let by = |value: f64| of_cell.iter().find(|row| axis(row, VALUE) == value);
        let (Some(denormal), Some(random)) = (by(3.0), by(2.0)) else { continue };
        let ratio = versus(denormal, random);
        told.push(match ratio.verdict(MARGIN) {
            Verdict::Slower => format!("{where_}: {} slower", percent(ratio.median)),
            Verdict::Faster => format!("{where_}: {} faster", percent(ratio.median)),
            Verdict::CannotTell => format!("{where_}: no different"),
        });
    }
    if told.is_empty() {
        return "Denormals through movntps: cannot tell, it was not measured".to_owned();
    }
    let slow = told.iter().any(|text| text.ends_with("slower"));
    format!(
        "Denormals through movntps {} against random bytes: {}",
        if slow { "are slow" } else { "are not slow" },
        told.join("; ")
    )
}

fn copy_sentence(where_: &str, of_cell: &[&Row]) -> String {
    let mut differing = Vec::new();
    for (candidate, values) in groups(of_cell.iter().copied(), |row: &Row| row.candidate.clone()) {
        let Some(random) = values.iter().find(|row| axis(row, VALUE) == 2.0) else { continue };
        for row in values.iter().filter(|row| axis(row, VALUE) != 2.0) {
            let ratio = versus(row, random);
            let name = VALUES.get(axis(row, VALUE) as usize).unwrap_or(&"?");
            match ratio.verdict(MARGIN) {
                Verdict::CannotTell => {}
                Verdict::Faster => {
                    differing.push(format!("{candidate} {name} {} faster", percent(ratio.median)))
                }
                Verdict::Slower => {
                    differing.push(format!("{candidate} {name} {} slower", percent(ratio.median)))
                }
            }
        }
    }
    if differing.is_empty() {
        format!("copy, {where_}: the value copied makes no difference that can be told")
    } else {
        format!("copy, {where_}, against random bytes: {}", differing.join("; "))
    }
}

fn store_sentence(where_: &str, candidate: &str, of_one: &[&Row]) -> Option<String> {
    let of = |value: f64, others: f64| {
        of_one.iter().find(|row| axis(row, VALUE) == value && axis(row, OVER_OTHERS) == others)
    };
    let mut parts = Vec::new();
    let mut compare = |label: &str, ours: Option<&&Row>, theirs: Option<&&Row>| {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            let ratio = versus(ours, theirs);
            parts.push(match ratio.verdict(MARGIN) {
                Verdict::Faster => format!(
                    "{label} {} faster ({:.3} against {:.3} GB/s)",
                    percent(1.0 / ratio.median),
                    gbps(ours),
                    gbps(theirs)
                ),
                Verdict::Slower => format!("{label} {} slower", percent(ratio.median)),
                Verdict::CannotTell => format!("{label} no different"),
            });
        }
    };
    compare("zeros over others than ones over others", of(0.0, 1.0), of(1.0, 1.0));
    compare("zeros over zeros than zeros over others", of(0.0, 0.0), of(0.0, 1.0));
    compare("ones over ones than ones over others", of(1.0, 0.0), of(1.0, 1.0));
    (!parts.is_empty()).then(|| format!("{candidate}, {where_}: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::super::support::made_up;
    use super::*;

    fn copy(candidate: &str, value: f64, ns: f64) -> Row {
        let levels = (Some(Level::Dram), Some(Level::Dram));
        made_up::row(key("copy", 4096, levels, "copying x", &[(VALUE, value)]), candidate, "r", ns)
    }

    fn store(value: f64, others: f64, ns: f64) -> Row {
        let axes = [(VALUE, value), (OVER_OTHERS, others)];
        made_up::row(
            key("fill", 4096, (None, Some(Level::Dram)), "storing x", &axes),
            "fill.avx.nt",
            "r",
            ns,
        )
    }

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

    #[test]
    fn the_open_question_is_answered_either_way() {
        let said = verdicts(&[copy("copy.sse.nt", 2.0, 100.0), copy("copy.sse.nt", 3.0, 100.05)]);
        assert!(said[0].contains("are not slow") && said[0].contains("no different"), "{said:?}");
        assert!(said[1].contains("no difference that can be told"), "{said:?}");
        let said = verdicts(&[copy("copy.sse.nt", 2.0, 100.0), copy("copy.sse.nt", 3.0, 180.0)]);
        assert!(said[0].contains("are slow") && said[0].contains("80 % slower"), "{said:?}");
        assert!(verdicts(&[copy("copy.avx", 2.0, 1.0)])[0].contains("cannot tell"));
    }

    #[test]
    fn zeros_and_elision_are_told() {
        let said = verdicts(&[
            store(0.0, 1.0, 50.0),
            store(1.0, 1.0, 100.0),
            store(0.0, 0.0, 50.01),
            store(1.0, 0.0, 120.0),
        ]);
        let text = said.last().expect("a sentence");
        assert!(text.contains("zeros over others than ones over others 100 % faster"), "{text}");
        assert!(text.contains("zeros over zeros than zeros over others no different"), "{text}");
        assert!(text.contains("ones over ones than ones over others 20 % slower"), "{text}");
    }
}
