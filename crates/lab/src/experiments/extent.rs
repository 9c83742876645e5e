//! `extent`: zeroing and copying as one call over a large extent against page by page.
//!
//! Seed 003: "zeroing large consecutive areas of memory is more efficient than zeroing page size
//! chunks". Two causes are told apart: what each call costs (pages in ascending order), and what a
//! free list's order costs (the same pages shuffled). All four ways of one kernel take turns on the
//! same extent and are compared with its one call.

use super::support::{
    at_least_one, axis, bytes, field, figure, gbps, groups, is_plain, key, percent, versus, widest,
};
use super::{Experiment, Finish, Setting, short_bytes};
use crate::LabError;
use crate::bench::{Contest, Entrant, MARGIN, Spot};
use crate::routines::Routine;
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE, RegisterClass};
use cachewise_measure::arena::HUGE_PAGE;
use cachewise_measure::{
    Contents, Figure, FigureKind, MemoryBudget, PagePolicy, Place, Row, Verdict,
};

/// Axis: bytes per call.
pub const CHUNK: &str = "chunk";
/// Axis: 1 where the pieces come in random order.
pub const SHUFFLED: &str = "shuffled";

pub(super) fn figures() -> Vec<Figure> {
    vec![figure(
        "Speed by the bytes of one call",
        FigureKind::Curve,
        CHUNK,
        "gbps",
        &[SHUFFLED, "size"],
        "",
    )]
}

/// A way to cover an extent.
#[derive(Clone, Copy, PartialEq)]
struct Way {
    chunk: usize,
    shuffled: bool,
}

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let vector = widest(setting.bench.features);
    let quick = setting.options.quick;
    let wanted = |kernel: &Kernel| {
        let modern = is_plain(kernel) && kernel.registers == vector;
        let integer = matches!(kernel.technique(), "rep.stosb" | "rep.movsb" | "clzero");
        let period = !quick
            && (matches!(kernel.technique(), "gpr64" | "gpr64.nt")
                || (is_plain(kernel) && kernel.registers == RegisterClass::Xmm));
        modern || integer || period
    };
    let fields = [Operation::Zero, Operation::Copy]
        .map(|operation| field(setting, operation, wanted).map(|field| (operation, field)));
    let mut chosen = Vec::new();
    for field in fields {
        let (operation, routines) = field?;
        // A pattern that names kernels of one operation means that one.
        if setting.options.kernels.is_none() || routines.len() > 1 {
            chosen.push((operation, routines));
        }
    }
    at_least_one(&chosen.iter().map(|(_, routines)| routines.as_slice()).collect::<Vec<_>>())?;
    if !setting.options.placements.is_empty() {
        return Err(LabError::OptionRefused {
            option: "--residency",
            experiment: experiment.name,
            why: "an extent lies where its own last pass left it",
        });
    }
    setting.observer.begin(experiment.name, chosen.len() as f64);
    let mut rows = Vec::new();
    let mut finish = Finish::Complete;
    'all: for (operation, routines) in &chosen {
        for size in sizes(setting, *operation)? {
            match cover(experiment, setting, *operation, routines, size, &mut rows)? {
                Finish::Complete => {}
                Finish::Interrupted => {
                    finish = Finish::Interrupted;
                    break 'all;
                }
            }
        }
        setting.observer.advance(operation.name(), 1.0);
    }
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(finish)
}

/// 1 GiB per call, or what the budget has for as many operands; less when quick, though always what
/// no cache holds. What was cut is said.
fn sizes(setting: &mut Setting<'_>, operation: Operation) -> Result<Vec<usize>, LabError> {
    let operands = if operation == Operation::Copy { 2 } else { 1 };
    // Each operand is rounded up to whole huge pages.
    let most =
        (MemoryBudget::process().limit() / operands).saturating_sub(HUGE_PAGE) & !(HUGE_PAGE - 1);
    if !setting.options.sizes.is_empty() {
        if let Some(&found) = setting
            .options
            .sizes
            .iter()
            .find(|size| !size.is_multiple_of(PAGE_SIZE) || **size < 2 * PAGE_SIZE)
        {
            return Err(LabError::Nothing {
                why: format!(
                    "an extent of {found} bytes; accepted: two 4096-byte pages or more, whole ones"
                ),
            });
        }
        return Ok(setting.options.sizes.clone());
    }
    let dram = setting.bench.machine.caches.dram_bytes().max(64 << 20);
    // Quick: what all operands together need to leave every cache behind.
    let wanted = if setting.options.quick { dram / operands } else { 1 << 30 };
    let size = wanted.min(most);
    if size < wanted {
        (setting.notes)(format!(
            "{operation} covers {size} bytes instead of {wanted}: the memory budget has no more (--memory raises it up to a quarter of RAM)"
        ))?;
    }
    Ok(vec![size])
}

fn cover(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    operation: Operation,
    routines: &[Routine],
    size: usize,
    rows: &mut Vec<Row>,
) -> Result<Finish, LabError> {
    let mut ways = vec![Way { chunk: size, shuffled: false }];
    for chunk in [HUGE_PAGE, PAGE_SIZE] {
        if chunk < size && size.is_multiple_of(chunk) {
            ways.push(Way { chunk, shuffled: false });
        }
    }
    ways.push(Way { chunk: PAGE_SIZE, shuffled: true });
    let mut order: Vec<u32> = (0..(size / PAGE_SIZE) as u32).collect();
    fastrand::Rng::with_seed(setting.bench.seed).shuffle(&mut order);
    let order = &order;
    let mut entrants: Vec<Entrant<'_>> = routines
        .iter()
        .flat_map(|routine| ways.iter().map(move |way| entrant(routine, *way, order)))
        .collect();
    let contest = Contest {
        size,
        destination: Spot { level: None, offset: 0 },
        source: (operation == Operation::Copy).then_some(Spot { level: None, offset: 512 }),
        distance: 0,
        pages: PagePolicy::Huge,
        contents: Contents::Overwritten,
        plan: setting.plan(false),
        write_source: None,
        entrants: &mut entrants,
    };
    let found = setting.bench.hold(contest, setting.observer)?;
    if found.interrupted() {
        return Ok(Finish::Interrupted);
    }
    for (nth, routine) in routines.iter().enumerate() {
        for (which, way) in ways.iter().enumerate() {
            let axes = [(CHUNK, way.chunk as f64), (SHUFFLED, f64::from(u8::from(way.shuffled)))];
            let cell = key(operation.name(), size, (None, None), "extent", &axes);
            let first = nth * ways.len();
            let mut row = found.row(experiment.name, cell, first + which, first);
            row.candidate.clone_from(&routine.name);
            row.reference = if which == 0 {
                routine.name.clone()
            } else {
                format!("{}, one call", routine.name)
            };
            (setting.rows)(&row)?;
            rows.push(row);
        }
    }
    Ok(Finish::Complete)
}

fn entrant<'o>(routine: &Routine, way: Way, order: &'o [u32]) -> Entrant<'o> {
    let name = format!("{} by {}", routine.name, short_bytes(way.chunk));
    let entrant = match routine.function {
        Function::Zero(f) => Entrant::new(name, move |places: &[Place]| {
            for place in places {
                pieces(place.n, way, order, |at, n| {
                    // SAFETY: pieces lie within the place's n bytes; the CPU runs the kernel.
                    unsafe { f(place.dst.wrapping_add(at), n) };
                });
            }
        }),
        Function::Copy(f) => Entrant::new(name, move |places: &[Place]| {
            for place in places {
                pieces(place.n, way, order, |at, n| {
                    // SAFETY: as above, and the operands do not overlap.
                    unsafe { f(place.dst.wrapping_add(at), place.src.wrapping_add(at), n) };
                });
            }
        }),
        // Not reached: fields are of these two operations.
        other => Entrant::plain(&Routine { name, function: other }),
    };
    let copies = matches!(routine.function, Function::Copy(_));
    entrant.judged(move |place| {
        // SAFETY: n initialised bytes that nobody writes meanwhile.
        let ours = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
        // SAFETY: as above.
        let source = unsafe { std::slice::from_raw_parts(place.src, place.n) };
        let is_zero = || ours.chunks(PAGE_SIZE).all(|part| *part == [0; PAGE_SIZE][..part.len()]);
        let wrong = if copies { ours != source } else { !is_zero() };
        if wrong { Err(format!("not all {} bytes are right", place.n)) } else { Ok(()) }
    })
}

/// Calls with offset and length of every piece.
#[inline(always)]
fn pieces(size: usize, way: Way, order: &[u32], mut call: impl FnMut(usize, usize)) {
    if way.shuffled {
        for &page in order {
            call(page as usize * way.chunk, way.chunk);
        }
    } else {
        for at in (0..size).step_by(way.chunk) {
            call(at, way.chunk);
        }
    }
}

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut headline = Vec::new();
    for ((operation, size), of_it) in
        groups(rows, |row: &Row| (row.cell.operation.clone(), row.cell.size))
    {
        let whole = |row: &&&Row| axis(row, CHUNK) == size as f64;
        let Some(best) = of_it.iter().filter(whole).max_by(|a, b| gbps(a).total_cmp(&gbps(b)))
        else {
            continue;
        };
        for (candidate, ways) in groups(of_it.iter().copied(), |row: &Row| row.candidate.clone()) {
            let Some(one) = ways.iter().find(|row| axis(row, CHUNK) == size as f64) else {
                continue;
            };
            let parts: Vec<String> = ways
                .iter()
                .filter(|row| axis(row, CHUNK) != size as f64)
                .map(|row| {
                    let pieces = bytes(axis(row, CHUNK) as usize);
                    let order = if axis(row, SHUFFLED) == 1.0 { " shuffled" } else { "" };
                    let ratio = versus(row, one);
                    match ratio.verdict(MARGIN) {
                        Verdict::Slower => {
                            format!("{pieces}{order} takes {} longer", percent(ratio.median))
                        }
                        Verdict::Faster => {
                            format!("{pieces}{order} takes {} less", percent(ratio.median))
                        }
                        Verdict::CannotTell => format!("{pieces}{order} no different"),
                    }
                })
                .collect();
            let sentence = format!(
                "{operation} with {candidate}: one call of {} {:.3} GB/s; by {}",
                bytes(size as usize),
                gbps(one),
                parts.join(", by ")
            );
            if candidate == best.candidate {
                let pages: Vec<_> =
                    ways.iter().filter(|row| axis(row, CHUNK) == PAGE_SIZE as f64).collect();
                let slower =
                    pages.iter().any(|row| versus(row, one).verdict(MARGIN) == Verdict::Slower);
                let answer = if slower {
                    "one contiguous call pays"
                } else {
                    "one contiguous call brings no benefit that can be told"
                };
                headline.push(format!("{operation}: {answer} (fastest: {sentence})"));
            }
            sentences.push(sentence);
        }
    }
    if headline.is_empty() {
        return vec!["One call or page by page: cannot tell, nothing was measured".to_owned()];
    }
    headline.extend(sentences);
    headline
}

#[cfg(test)]
mod tests {
    use super::super::support::made_up;
    use super::*;

    fn rows(page: f64, shuffled: f64) -> Vec<Row> {
        [(8192.0, 0.0, 100.0), (4096.0, 0.0, page), (4096.0, 1.0, shuffled)]
            .map(|(chunk, order, ns)| {
                let axes = [(CHUNK, chunk), (SHUFFLED, order)];
                made_up::row(key("zero", 8192, (None, None), "extent", &axes), "zero.avx", "x", ns)
            })
            .to_vec()
    }

    #[test]
    fn contiguity_pays_or_does_not() {
        let said = verdicts(&rows(120.0, 200.0));
        assert!(said[0].starts_with("zero: one contiguous call pays"), "{said:?}");
        assert!(
            said[1].contains("4 KiB takes 20 % longer, by 4 KiB shuffled takes 100 % longer"),
            "{said:?}"
        );
        let said = verdicts(&rows(100.02, 100.03));
        assert!(said[0].contains("no benefit that can be told"), "{said:?}");
        assert!(verdicts(&[])[0].contains("cannot tell"));
    }

    #[test]
    fn pieces_cover_every_byte_once() {
        for way in [
            Way { chunk: 4 * PAGE_SIZE, shuffled: false },
            Way { chunk: PAGE_SIZE, shuffled: false },
            Way { chunk: PAGE_SIZE, shuffled: true },
        ] {
            let mut seen = vec![0u8; 4 * PAGE_SIZE];
            pieces(seen.len(), way, &[2, 0, 3, 1], |at, n| {
                seen[at..at + n].iter_mut().for_each(|count| *count += 1);
            });
            assert!(seen.iter().all(|count| *count == 1));
        }
    }
}
