//! `page-clear`: pages cleared, touched and read again (seed 000.7, .11, .13).
//!
//! One loop clears every page of a buffer and touches its byte 0 (the operation), then reads every
//! 32nd byte of the buffer (the reader). The seed's buffers of 32k and 320k were half of its CPU's
//! L1 and two and a half times all its caches, so each level of this machine gets the same two.

use super::common::{self, Measured, claim, says, times};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::{Question, State};
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Function, Operation, PAGE_SIZE};
use cachewise_measure::{
    Caches, Candidate, Figure, FigureKind, Level, Place, Reader, Row, Verdict,
};

/// Row figure: loops that one of the seed's five runs has.
pub const LOOPS: &str = "loops";
/// Row figure: pages zeroed per loop, as the candidate counted.
pub const ZEROED: &str = "zeroed_per_loop";
/// Row figure: pages copied per loop, as the candidate counted.
pub const COPIED: &str = "copied_per_loop";

/// Pages that a run of the seed zeroes, whatever its buffer: 200,000 loops of 32k, 20,000 of 320k.
const PAGES_PER_RUN: usize = 1_600_000;

/// The period's kernels, then today's (seed 000.15).
const KERNELS: &[&str] = &[
    "zero.rep.stosl",
    "zero.mmx",
    "zero.mmx.nt",
    "zero.sse",
    "zero.sse.nt",
    "zero.rep.stosb",
    "zero.clzero",
    "zero.avx",
    "zero.avx.nt",
    "zero.avx512",
    "zero.avx512.nt",
];

/// The pair that the seed compared.
const PERIOD: (&str, &str) = ("zero.mmx.nt", "zero.mmx");

/// Pairs of today, the widest first.
const TODAY: &[(&str, &str)] = &[
    ("zero.avx512.nt", "zero.avx512"),
    ("zero.avx.nt", "zero.avx"),
    ("zero.sse2.nt", "zero.sse2"),
    ("zero.sse.nt", "zero.sse"),
];

/// Drawn: the whole cost over libc's by buffer, and its parts.
pub(super) fn figures() -> Vec<Figure> {
    let whole = Figure {
        title: "Clear, touch and read again: time over libc's".to_owned(),
        kind: FigureKind::Curve,
        x: "size".to_owned(),
        y: None,
        value: "total_ratio".to_owned(),
        panels: Vec::new(),
        candidates: Vec::new(),
        states: String::new(),
    };
    let parts = Figure {
        title: "Clearing and touching, and reading afterwards".to_owned(),
        kind: FigureKind::Bars,
        x: "candidate".to_owned(),
        value: "cost".to_owned(),
        panels: vec!["size".to_owned()],
        ..whole.clone()
    };
    vec![whole, parts]
}

/// Clears page by page.
struct Clearer<'r> {
    routine: &'r Routine,
    reference: bool,
    calls: u64,
    zeroed: u64,
}

impl Candidate for Clearer<'_> {
    fn name(&self) -> &str {
        &self.routine.name
    }

    fn call(&mut self, place: &Place) {
        let Function::Zero(zero) = self.routine.function else { return };
        let pages = place.n / PAGE_SIZE;
        for page in 0..pages {
            let page = place.dst.wrapping_add(page * PAGE_SIZE);
            // SAFETY: the place is writable for n bytes, whole pages, and the routine runs here.
            unsafe { zero(page, PAGE_SIZE) };
            // SAFETY: as above.
            unsafe { page.write_volatile(1) };
        }
        self.calls += 1;
        self.zeroed += pages as u64;
    }

    fn read(&mut self, place: &Place) -> bool {
        // SAFETY: the place that was just cleared.
        unsafe { Reader::every(place.dst, place.n, 32) };
        true
    }

    fn function(&self) -> Option<Function> {
        Some(self.routine.function)
    }

    fn stays(&self) -> bool {
        self.reference
    }
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    common::refuse_placements(setting, "the loop leaves its buffer where it leaves it")?;
    common::whole_pages(&setting.options.sizes)?;
    let routines = routines(setting)?;
    let sizes = sizes(setting);
    let weight = |size: usize| size.max(1 << 20) as f64;
    setting.observer.begin(experiment.name, sizes.iter().map(|&(size, _)| weight(size)).sum());
    let mut rows = Vec::new();
    let mut finish = Finish::Complete;
    for (size, relation) in sizes {
        let loops = (PAGES_PER_RUN / (size / PAGE_SIZE)).max(1);
        let mut plan = setting.plan(false);
        plan.max_sample_ns = 5e7;
        plan.calls = setting.options.classic.then_some(loops);
        let question = Question {
            experiment: experiment.name,
            operation: Operation::Zero,
            size,
            state: State::Read,
            routines: &[],
            plan,
            verify: true,
        };
        let mut clearers: Vec<Clearer<'_>> = routines
            .iter()
            .enumerate()
            .map(|(at, routine)| Clearer { routine, reference: at == 0, calls: 0, zeroed: 0 })
            .collect();
        let mut candidates: Vec<&mut dyn Candidate> =
            clearers.iter_mut().map(|clearer| clearer as &mut dyn Candidate).collect();
        match common::measure(setting, &question, &mut candidates)? {
            Measured::Interrupted => {
                finish = Finish::Interrupted;
                break;
            }
            Measured::Skipped => {}
            Measured::Rows(measured) => {
                for (mut row, clearer) in measured.into_iter().zip(&clearers) {
                    row.cell.state = relation.as_str().into();
                    row.extra.insert(LOOPS.into(), loops as f64);
                    row.extra.insert(ZEROED.into(), clearer.zeroed as f64 / clearer.calls as f64);
                    row.extra.insert(COPIED.into(), 0.0);
                    (setting.rows)(&row)?;
                    rows.push(row);
                }
            }
        }
        setting.observer.advance(&format!("{} {relation}", super::short_bytes(size)), weight(size));
    }
    for verdict in verdicts(&rows) {
        (setting.verdicts)(verdict);
    }
    Ok(finish)
}

/// libc, then the kernels: the list above, or those asked for.
fn routines(setting: &mut Setting<'_>) -> Result<Vec<Routine>, LabError> {
    let kernels = match setting.options.kernels.as_deref() {
        Some(pattern) => select::kernels(&[Operation::Zero], Some(pattern))?,
        None => common::listed(KERNELS, Operation::Zero),
    };
    let here = common::present(setting, kernels)?;
    let mut routines = vec![libc_reference(Operation::Zero)];
    routines.extend(here.into_iter().map(Routine::from));
    Ok(routines)
}

/// Buffers with their relation to the seed's CPU or to this one's caches.
fn sizes(setting: &Setting<'_>) -> Vec<(usize, String)> {
    let caches = &setting.bench.machine.caches;
    if !setting.options.sizes.is_empty() {
        return setting.options.sizes.iter().map(|&size| (size, relation(size, caches))).collect();
    }
    let mut sizes = vec![(32 << 10, "seed 32k".to_owned()), (320 << 10, "seed 320k".to_owned())];
    if setting.options.classic {
        return sizes;
    }
    for level in [Level::L1, Level::L2, Level::Llc] {
        if level == Level::Llc && !caches.has_l3() {
            continue;
        }
        let whole = caches.bytes(level);
        let half = whole / 2;
        for (size, text) in
            [(half, format!("half of {level}")), (5 * half, format!("2.5 x {level}"))]
        {
            let size = size.next_multiple_of(PAGE_SIZE);
            if !sizes.iter().any(|(known, _)| *known == size) {
                sizes.push((size, text));
            }
        }
    }
    if setting.options.quick {
        // The seed's own buffers stand in for those of L1.
        sizes.retain(|(_, text)| !text.ends_with("L1") && text != "half of LLC");
    }
    sizes
}

/// Where a buffer that the user chose fits.
fn relation(size: usize, caches: &Caches) -> String {
    let fits = |level: &Level| size <= caches.bytes(*level);
    match [Level::L1, Level::L2, Level::Llc].iter().find(|level| fits(level)) {
        Some(level) => format!("fits {level}"),
        None => "fits no cache".to_owned(),
    }
}

/// What the rows say about the seed's findings (000.12) and about today. Pure.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = common::cells(rows);
    if cells.is_empty() {
        return Vec::new();
    }
    let size_of = |bytes: u64| super::short_bytes(bytes as usize);
    let mut texts = Vec::new();
    let claims: Vec<String> = [(32 << 10, Verdict::Slower), (320 << 10, Verdict::Faster)]
        .into_iter()
        .filter_map(|(size, claimed)| {
            let (_, of_cell) = cells.iter().find(|(key, _)| key.size == size)?;
            let found = common::versus(of_cell, PERIOD.0, PERIOD.1)?;
            Some(format!("at {} {}: {}", size_of(size), claim(claimed, found), times(found)))
        })
        .collect();
    if claims.is_empty() {
        texts.push(
            "Seed 000.12 (clearing around the cache loses at 32K and wins at 320K) was not tested: \
             that takes mmx_APn and mmx_APN at these sizes"
                .to_owned(),
        );
    } else {
        texts.push(format!(
            "Seed 000.12, mmx_APN against mmx_APn: clearing around the cache loses at 32K and wins \
             at 320K; {}",
            claims.join("; ")
        ));
    }
    let has = |(nt, temporal): &&(&str, &str)| {
        cells.iter().any(|(_, of_cell)| common::versus(of_cell, nt, temporal).is_some())
    };
    if let Some((nt, temporal)) = TODAY.iter().find(has) {
        let by = |wanted: Verdict| {
            let mut sizes: Vec<u64> = cells
                .iter()
                .filter(|(_, of_cell)| {
                    common::versus(of_cell, nt, temporal).is_some_and(|pair| says(pair) == wanted)
                })
                .map(|(key, _)| key.size)
                .collect();
            sizes.sort_unstable();
            let names: Vec<String> = sizes.into_iter().map(size_of).collect();
            if names.is_empty() { "no size".to_owned() } else { names.join(", ") }
        };
        texts.push(format!(
            "Today {nt} against {temporal}, reading included: faster at {}, slower at {}, cannot \
             tell at {}",
            by(Verdict::Faster),
            by(Verdict::Slower),
            by(Verdict::CannotTell)
        ));
    }
    texts.push(beside_libc(&cells));
    texts
}

/// The best of a dozen is a little faster than libc by luck alone; this much is no luck.
const CLEARLY: f64 = 0.03;

/// At how many sizes anybody beats libc, and who.
pub(super) fn beside_libc(cells: &[(&cachewise_measure::CellKey, Vec<&Row>)]) -> String {
    let mut better = Vec::new();
    for (key, of_cell) in cells {
        let best = of_cell
            .iter()
            .filter(|row| row.candidate != LIBC && row.candidate != crate::forking::FORK)
            .filter_map(|row| {
                Some((row.candidate.as_str(), common::versus(of_cell, &row.candidate, LIBC)?))
            })
            .filter(|(_, pair)| pair.verdict(CLEARLY) == Verdict::Faster)
            .min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        if let Some((name, pair)) = best {
            better.push(format!(
                "{name} at {} ({:.2} of libc's time)",
                super::short_bytes(key.size as usize),
                pair.median
            ));
        }
    }
    let margin = CLEARLY * 100.0;
    if better.is_empty() {
        let sizes = cells.len();
        format!("No benefit: at none of {sizes} sizes is anything {margin:.0} % faster than libc")
    } else {
        format!("More than {margin:.0} % faster than libc: {}", better.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::common::made_up::{cell, noisy, row};
    use super::*;

    fn at(size: u64, temporal: f64, nt: f64) -> Vec<Row> {
        let cell = cell("zero", size, "made up");
        vec![
            row(&cell, LIBC, 100.0),
            row(&cell, "zero.mmx", temporal),
            row(&cell, "zero.mmx.nt", nt),
            row(&cell, "zero.avx", temporal / 2.0),
            row(&cell, "zero.avx.nt", nt / 2.0),
        ]
    }

    #[test]
    fn each_outcome_has_its_sentence() {
        let as_claimed = [at(32 << 10, 100.0, 150.0), at(320 << 10, 100.0, 60.0)].concat();
        let texts = verdicts(&as_claimed);
        assert!(texts[0].contains("at 32K still true: 1.50 ("), "{texts:?}");
        assert!(texts[0].contains("at 320K still true: 0.60 ("), "{texts:?}");
        assert!(texts[1].contains("zero.avx.nt against zero.avx"), "{texts:?}");
        assert!(texts[1].contains("faster at 320K, slower at 32K"), "{texts:?}");
        assert!(texts[2].contains("zero.avx at 32K (0.50"), "{texts:?}");

        let otherwise = [at(32 << 10, 200.0, 100.0), at(320 << 10, 210.0, 400.0)].concat();
        let text = verdicts(&otherwise)[0].clone();
        assert_eq!(text.matches("no longer true here").count(), 2, "{text}");

        let key = cell("zero", 32 << 10, "made up");
        let unclear = [
            row(&key, LIBC, 50.0),
            noisy(&key, "zero.mmx", 100.0, 0.4),
            row(&key, "zero.mmx.nt", 100.0),
        ];
        let texts = verdicts(&unclear);
        assert!(texts[0].contains("at 32K cannot tell here"), "{texts:?}");
        assert!(texts.last().is_some_and(|text| text.starts_with("No benefit")), "{texts:?}");

        let key = cell("zero", 4096, "made up");
        let untested = [row(&key, LIBC, 50.0), row(&key, "zero.avx", 60.0)];
        assert!(verdicts(&untested)[0].contains("was not tested"));
        assert!(verdicts(&[]).is_empty());
    }

    #[test]
    fn buffers_relate_to_the_caches() {
        let caches = cachewise_measure::Machine::describe().caches;
        assert_eq!(relation(4096, &caches), "fits L1");
        assert_eq!(relation(caches.llc.bytes * 2, &caches), "fits no cache");
    }
}
