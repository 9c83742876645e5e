//! `aliasing` (002.11): what it costs when destination and source agree, or nearly agree, in their
//! low twelve bits, and on which pages.
//!
//! A load whose low twelve address bits match a store shortly before it may wait for that store
//! (Intel Optimization Reference Manual, "4-KByte aliasing"); AMD's `rep movsb` has a slow case of
//! its own, a destination less than a line above the source modulo a page. An offset also changes
//! alignment, so the row of an offset is compared with the same kernel half a page further on, where
//! it is aligned alike and far from any alias; both take turns in one contest.

use super::support::{
    at_least_one, axis, bytes, field, figure, groups, is_plain, key, percent, place, versus, widest,
};
use super::{Experiment, Finish, Setting, default_sizes, short_bytes};
use crate::LabError;
use crate::bench::{Contest, Entrant, MARGIN, Spot};
use crate::routines::Routine;
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE};
use cachewise_measure::arena::HUGE_PAGE;
use cachewise_measure::{
    Contents, Figure, FigureKind, Level, MeasureError, PagePolicy, Place, Row, Verdict,
};

/// Axis: destination minus source, modulo a page.
pub const OFFSET: &str = "offset";
/// Axis: bytes of the pages the operands lie on.
pub const PAGE_BYTES: &str = "page_bytes";
/// Axis: the power of two by which the destination lies above the source, beside the offset.
pub const DISTANCE: &str = "distance";
/// Row figure: time over the same kernel's at the same alignment, half a page further on.
pub const ALIAS_RATIO: &str = "alias_ratio";

/// Half a page: no kernel here has a load within two KiB of a store that went before.
const FAR: usize = PAGE_SIZE / 2;

pub(super) fn figures() -> Vec<Figure> {
    vec![
        figure(
            "Time over the same alignment half a page further on, by destination minus source modulo 4 KiB",
            FigureKind::Curve,
            OFFSET,
            ALIAS_RATIO,
            &["destination", PAGE_BYTES],
            "aliased",
        ),
        figure(
            "The same with the destination a power of two above the source",
            FigureKind::Curve,
            OFFSET,
            ALIAS_RATIO,
            &[DISTANCE],
            "power",
        ),
        figure(
            "Zeroing on 4 KiB and on 2 MiB pages",
            FigureKind::Bars,
            "candidate",
            "gbps",
            &["destination", PAGE_BYTES],
            "pages",
        ),
    ]
}

fn offsets(quick: bool) -> &'static [usize] {
    if quick {
        &[0, 1, 16, 32, 64, 256, 1024]
    } else {
        &[0, 1, 4, 8, 16, 32, 48, 63, 64, 96, 128, 192, 256, 512, 1024, 4032]
    }
}

/// Where an offset is aligned alike and far from its alias.
const fn twin(offset: usize) -> usize {
    FAR + offset % 64
}

/// Offsets and their twins, each once.
fn shifts(quick: bool) -> Vec<usize> {
    let mut shifts = offsets(quick).to_vec();
    shifts.extend(offsets(quick).iter().map(|offset| twin(*offset)));
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

const POLICIES: [(PagePolicy, usize); 2] =
    [(PagePolicy::Huge, HUGE_PAGE), (PagePolicy::Small, PAGE_SIZE)];

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let vector = widest(setting.bench.features);
    let quick = setting.options.quick;
    let copies = field(setting, Operation::Copy, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.movsb" | "rep.movsb.aligned" | "gpr64" | "sse2")
            || (is_plain(kernel) && kernel.registers == vector)
    })?;
    let zeros = field(setting, Operation::Zero, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.stosb" | "clzero")
            || (is_plain(kernel) && kernel.registers == vector)
    })?;
    at_least_one(&[&copies, &zeros])?;
    let mut levels: Vec<(Level, Level)> = setting.options.placements.clone();
    if levels.is_empty() {
        levels = Level::ALL.map(|level| (level, level)).to_vec();
    }
    let powers: Vec<usize> = match (setting.options.placements.is_empty(), quick) {
        (false, _) => Vec::new(),
        (true, true) => vec![14, 16, 20],
        (true, false) => (14..=24).step_by(2).collect(),
    };
    setting.observer.begin(experiment.name, (2 * levels.len()) as f64 + powers.len() as f64);
    let mut rows = Vec::new();
    for (pages, page_bytes) in POLICIES {
        for &(source, destination) in &levels {
            let sizes = sizes(setting, source.min(destination));
            for &size in &sizes {
                let mut work = Work { experiment, setting, rows: &mut rows };
                let axes = [(PAGE_BYTES, page_bytes as f64)];
                let cell = Aliased {
                    size,
                    levels: Some((source, destination)),
                    distance: 0,
                    pages,
                    axes: &axes,
                    quick,
                };
                if work.aliased(&copies, &cell)? == Finish::Interrupted
                    || work.zeroed(&zeros, size, destination, pages, &axes)? == Finish::Interrupted
                {
                    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
                    return Ok(Finish::Interrupted);
                }
            }
            setting.observer.advance(
                &format!("{source}:{destination}, {} pages", short_bytes(page_bytes)),
                1.0,
            );
        }
    }
    for power in powers {
        let axes = [(DISTANCE, (1_u64 << power) as f64)];
        // Both operands and the largest shift lie within the smallest distance.
        let size = (1 << 14) - 2 * PAGE_SIZE;
        let cell = Aliased {
            size,
            levels: None,
            distance: 1 << power,
            pages: PagePolicy::Huge,
            axes: &axes,
            quick,
        };
        let mut work = Work { experiment, setting, rows: &mut rows };
        if work.aliased(&copies, &cell)? == Finish::Interrupted {
            verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
            return Ok(Finish::Interrupted);
        }
        setting.observer.advance(&format!("destination 2^{power} above"), 1.0);
    }
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(Finish::Complete)
}

/// The user's sizes, or one per level: whole pages, so that the operands' distance holds.
fn sizes(setting: &Setting<'_>, level: Level) -> Vec<usize> {
    if !setting.options.sizes.is_empty() {
        return setting.options.sizes.clone();
    }
    let usual = default_sizes(level, true, &setting.bench.machine.caches)[0];
    vec![usual.min(1 << 20)]
}

/// One contest of copies.
struct Aliased<'a> {
    size: usize,
    levels: Option<(Level, Level)>,
    distance: usize,
    pages: PagePolicy,
    axes: &'a [(&'a str, f64)],
    quick: bool,
}

struct Work<'w, 's> {
    experiment: &'w Experiment,
    setting: &'w mut Setting<'s>,
    rows: &'w mut Vec<Row>,
}

impl Work<'_, '_> {
    fn aliased(&mut self, copies: &[Routine], cell: &Aliased<'_>) -> Result<Finish, LabError> {
        if copies.len() == 1 && self.setting.options.kernels.is_some() {
            return Ok(Finish::Complete);
        }
        let shifts = shifts(cell.quick);
        let size = cell.size;
        let mut entrants: Vec<Entrant<'_>> = copies
            .iter()
            .flat_map(|routine| shifts.iter().map(move |&shift| shifted(routine, shift, size)))
            .collect();
        let spot = |level: Option<Level>| Spot { level, offset: 0 };
        let contest = Contest {
            // Room for the largest shift.
            size: size + PAGE_SIZE,
            destination: spot(cell.levels.map(|levels| levels.1)),
            source: Some(spot(cell.levels.map(|levels| levels.0))),
            distance: cell.distance,
            pages: cell.pages,
            contents: Contents::Overwritten,
            plan: self.setting.plan(false),
            write_source: None,
            entrants: &mut entrants,
        };
        let found = match self.setting.bench.hold(contest, self.setting.observer) {
            Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                (self.setting.notes)(format!("skipped copying: {error}"))?;
                return Ok(Finish::Complete);
            }
            other => other?,
        };
        if found.interrupted() {
            return Ok(Finish::Interrupted);
        }
        self.check_pages(cell.pages, found.huge)?;
        let at = |shift: usize| shifts.iter().position(|known| *known == shift).unwrap_or(0);
        for (nth, routine) in copies.iter().enumerate() {
            for &shift in &shifts {
                let is_twin = (FAR..FAR + 64).contains(&shift);
                let reference = if is_twin { at(shift) } else { at(twin(shift)) };
                let mut axes = cell.axes.to_vec();
                axes.push((OFFSET, shift as f64));
                let (levels, state) = match cell.levels {
                    Some((source, destination)) => ((Some(source), Some(destination)), "aliased"),
                    None => ((None, None), "power of two"),
                };
                let first = nth * shifts.len();
                let mut row = found.row(
                    self.experiment.name,
                    key("copy", size, levels, state, &axes),
                    first + at(shift),
                    first + reference,
                );
                row.candidate.clone_from(&routine.name);
                row.reference = if is_twin {
                    routine.name.clone()
                } else {
                    format!("{}, offset {}", routine.name, twin(shift))
                };
                if let Some(ratio) = row.ratio {
                    row.extra.insert(ALIAS_RATIO.into(), ratio.median);
                }
                (self.setting.rows)(&row)?;
                self.rows.push(row);
            }
        }
        Ok(Finish::Complete)
    }

    /// Zeroing at the same place, which has no source to alias with: the pages alone.
    fn zeroed(
        &mut self,
        zeros: &[Routine],
        size: usize,
        level: Level,
        pages: PagePolicy,
        axes: &[(&str, f64)],
    ) -> Result<Finish, LabError> {
        if zeros.len() == 1 && self.setting.options.kernels.is_some() {
            return Ok(Finish::Complete);
        }
        let mut entrants: Vec<Entrant<'_>> = zeros.iter().map(Entrant::plain).collect();
        let contest = Contest {
            size,
            destination: Spot { level: Some(level), offset: 0 },
            source: None,
            distance: 0,
            pages,
            contents: Contents::Overwritten,
            plan: self.setting.plan(false),
            write_source: None,
            entrants: &mut entrants,
        };
        let found = match self.setting.bench.hold(contest, self.setting.observer) {
            Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                (self.setting.notes)(format!("skipped zeroing: {error}"))?;
                return Ok(Finish::Complete);
            }
            other => other?,
        };
        if found.interrupted() {
            return Ok(Finish::Interrupted);
        }
        for nth in 0..zeros.len() {
            let cell = key("zero", size, (None, Some(level)), "pages", axes);
            let row = found.row(self.experiment.name, cell, nth, 0);
            (self.setting.rows)(&row)?;
            self.rows.push(row);
        }
        Ok(Finish::Complete)
    }

    fn check_pages(&mut self, asked: PagePolicy, huge: Option<f64>) -> Result<(), LabError> {
        let text = match (asked, huge) {
            (PagePolicy::Huge, Some(part)) if part < 0.9 => format!(
                "huge pages were asked for and back {:.0} % of the operands: rows of 2 MiB pages are not what they say (cause: /sys/kernel/mm/transparent_hugepage/enabled, or no free huge pages)",
                part * 100.0
            ),
            (PagePolicy::Small, Some(part)) if part > 0.1 => {
                format!("small pages were asked for, but {:.0} % are huge", part * 100.0)
            }
            _ => return Ok(()),
        };
        (self.setting.notes)(text)
    }
}

fn shifted<'e>(routine: &Routine, shift: usize, size: usize) -> Entrant<'e> {
    let name = format!("{}+{shift}", routine.name);
    let Function::Copy(f) = routine.function else { return Entrant::plain(routine) };
    Entrant::new(name, move |places: &[Place]| {
        for place in places {
            // SAFETY: the slots are a page longer than size, and the shift is below a page; the
            // operands are apart.
            std::hint::black_box(unsafe { f(place.dst.wrapping_add(shift), place.src, size) });
        }
    })
    .judged(move |place| {
        // SAFETY: within the slot, initialised, unwritten meanwhile.
        let ours = unsafe { std::slice::from_raw_parts(place.dst.wrapping_add(shift), size) };
        // SAFETY: as above.
        let theirs = unsafe { std::slice::from_raw_parts(place.src, size) };
        match ours.iter().zip(theirs).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => Err(format!(
                "byte {at} of {size} at offset {shift} is {}, expected {}",
                ours[at], theirs[at]
            )),
        }
    })
}

/// A slow case rather than a cost: this many times slower.
const SLOW_CASE: f64 = 1.5;

/// Costs below this are not named: of hundreds of offsets and kernels one in forty would be told from
/// 1 by chance, so what is named has its whole interval above 5 %.
const NOTICED: f64 = 1.05;

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let slower = |row: &&Row| {
        row.extra.contains_key(ALIAS_RATIO)
            && row.ratio.is_some_and(|ratio| {
                ratio.verdict(MARGIN) == Verdict::Slower && ratio.low > NOTICED
            })
    };
    let mut sentences = Vec::new();
    let copies: Vec<&Row> = rows.iter().filter(|row| row.extra.contains_key(ALIAS_RATIO)).collect();
    let cost = |row: &&Row| row.extra.get(ALIAS_RATIO).copied().unwrap_or(1.0);
    let worst = copies.iter().copied().filter(slower).max_by(|a, b| cost(a).total_cmp(&cost(b)));
    sentences.push(match worst {
        _ if copies.is_empty() => "4 KiB aliasing: cannot tell, no copy was measured".to_owned(),
        None => "4 KiB aliasing: no offset costs 5 % or more here, as far as can be told".to_owned(),
        Some(row) => format!(
            "4 KiB aliasing costs up to {:.2}x here: {} with the destination {} B above the source modulo 4 KiB, {}{}",
            cost(&row),
            row.candidate,
            axis(row, OFFSET),
            place(row),
            page_text(row),
        ),
    });
    for (candidate, of_it) in groups(copies.iter().copied(), |row: &Row| row.candidate.clone()) {
        let worst = of_it.iter().copied().filter(slower).max_by(|a, b| cost(a).total_cmp(&cost(b)));
        sentences.push(match worst {
            None => format!("{candidate}: no offset is told from its twin half a page further on"),
            Some(row) => {
                let mut many: Vec<f64> =
                    of_it.iter().copied().filter(slower).map(|row| axis(row, OFFSET)).collect();
                many.sort_by(f64::total_cmp);
                many.dedup();
                let many: Vec<String> = many.iter().map(f64::to_string).collect();
                format!(
                    "{candidate}: slower at offsets {}; at worst {:.2}x ({}{}, offset {})",
                    many.join(", "),
                    cost(&row),
                    place(row),
                    page_text(row),
                    axis(row, OFFSET)
                )
            }
        });
    }
    let movsb: Vec<&Row> = copies
        .iter()
        .copied()
        .filter(|row| row.candidate == "copy.rep.movsb" && (1.0..64.0).contains(&axis(row, OFFSET)))
        .collect();
    if !movsb.is_empty() {
        let slow: Vec<&Row> =
            movsb.iter().copied().filter(slower).filter(|row| cost(row) > SLOW_CASE).collect();
        sentences.push(if slow.is_empty() {
            "rep movsb with the destination less than a line above the source modulo 4 KiB (AMD's slow case): not here".to_owned()
        } else {
            let most = slow.iter().map(cost).fold(0.0, f64::max);
            format!("rep movsb with the destination less than a line above the source modulo 4 KiB (AMD's slow case): here, up to {most:.2}x")
        });
    }
    sentences.extend(page_verdicts(rows));
    sentences
}

fn page_text(row: &Row) -> String {
    let distance = axis(row, DISTANCE);
    if !distance.is_nan() {
        return format!(", destination {} above", bytes(distance as usize));
    }
    let pages = axis(row, PAGE_BYTES);
    if pages.is_nan() { String::new() } else { format!(" on {} pages", bytes(pages as usize)) }
}

/// 2 MiB against 4 KiB pages. Measured one after the other, which is said.
fn page_verdicts(rows: &[Row]) -> Vec<String> {
    let comparable = rows.iter().filter(|row| {
        row.cell.state == "pages"
            || (row.cell.state == "aliased" && axis(row, OFFSET) == FAR as f64)
    });
    let mut sentences = Vec::new();
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.destination.clone(), row.cell.size);
    for ((operation, level, _), of_cell) in groups(comparable, key) {
        let mut largest: Option<(String, f64, Verdict)> = None;
        for (candidate, pair) in groups(of_cell.iter().copied(), |row: &Row| row.candidate.clone())
        {
            let on = |bytes: usize| pair.iter().find(|row| axis(row, PAGE_BYTES) == bytes as f64);
            let (Some(small), Some(huge)) = (on(PAGE_SIZE), on(HUGE_PAGE)) else { continue };
            let ratio = versus(small, huge);
            let verdict = ratio.verdict(MARGIN);
            let beyond = (ratio.median - 1.0).abs();
            if verdict != Verdict::CannotTell
                && largest.as_ref().is_none_or(|known| beyond > (known.1 - 1.0).abs())
            {
                largest = Some((candidate, ratio.median, verdict));
            }
        }
        let level = level.unwrap_or_default();
        sentences.push(match largest {
            None => format!("{operation}, {level}: 4 KiB and 2 MiB pages cannot be told apart (measured one after the other)"),
            Some((candidate, ratio, verdict)) => format!(
                "{operation}, {level}: 4 KiB pages take {} {} than 2 MiB pages at most ({candidate}; measured one after the other)",
                percent(ratio),
                if verdict == Verdict::Slower { "longer" } else { "less" },
            ),
        });
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::support::made_up;
    use super::*;
    use crate::routines::LIBC;

    fn aliased(candidate: &str, offset: f64, ratio: f64) -> Row {
        let axes = [(OFFSET, offset), (PAGE_BYTES, 4096.0)];
        let cell = key("copy", 4096, (Some(Level::L1), Some(Level::L1)), "aliased", &axes);
        let mut row = made_up::row(cell, candidate, "twin", 100.0 * ratio);
        let theirs = made_up::row(row.cell.clone(), "twin", "twin", 100.0);
        row.ratio = Some(versus(&row, &theirs));
        row.extra.insert(ALIAS_RATIO.into(), ratio);
        row
    }

    #[test]
    fn twins_are_aligned_alike_and_far() {
        for offset in offsets(false) {
            assert_eq!(twin(*offset) % 64, offset % 64);
            assert!(twin(*offset) >= FAR && twin(*offset) < FAR + 64);
            assert!(shifts(false).contains(&twin(*offset)));
        }
        assert!(shifts(false).iter().all(|shift| *shift < PAGE_SIZE));
    }

    #[test]
    fn the_slow_case_is_found_or_denied() {
        let said =
            verdicts(&[aliased("copy.rep.movsb", 16.0, 3.0), aliased("copy.avx", 16.0, 1.0)]);
        assert!(
            said[0].contains("up to 3.00x here: copy.rep.movsb with the destination 16 B"),
            "{said:?}"
        );
        assert!(
            said.iter().any(|text| text.contains("AMD's slow case): here, up to 3.00x")),
            "{said:?}"
        );
        assert!(said.iter().any(|text| text.starts_with("copy.avx: no offset")), "{said:?}");
        let said = verdicts(&[aliased("copy.rep.movsb", 16.0, 1.0)]);
        assert!(said[0].contains("no offset costs 5 %"), "{said:?}");
        assert!(said.iter().any(|text| text.ends_with("not here")), "{said:?}");
        assert!(verdicts(&[])[0].contains("cannot tell"));
    }

    #[test]
    fn pages_are_compared() {
        let of = |bytes: f64, ns| {
            let cell =
                key("zero", 4096, (None, Some(Level::Dram)), "pages", &[(PAGE_BYTES, bytes)]);
            made_up::row(cell, LIBC, LIBC, ns)
        };
        let said = page_verdicts(&[of(4096.0, 130.0), of(2097152.0, 100.0)]);
        assert_eq!(
            said[0],
            "zero, DRAM: 4 KiB pages take 30 % longer than 2 MiB pages at most (libc; measured one after the other)"
        );
        let said = page_verdicts(&[of(4096.0, 100.0), of(2097152.0, 100.01)]);
        assert!(said[0].contains("cannot be told apart"), "{said:?}");
    }
}
