//! `page-copy`: what a fork copies, by whom (seed 000.8 to .12).
//!
//! One loop zeroes 3 pages, copies 8 and touches some 100 bytes of these (000.10), copies every
//! page of a buffer when its byte 0 is written, as copy-on-write does, and reads every 32nd byte of
//! the buffer. It is one interval, as in the seed. The kernel's own fork and touch stand beside it
//! as a row, and so does copying at the grain of 2 MiB pages.

use super::common::{self, Measured, says, times};
use super::page_clear::{COPIED, LOOPS, ZEROED, beside_libc};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::{Question, Scene, State};
use crate::forking::{FORK, Forker};
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Function, Operation, PAGE_SIZE, find};
use cachewise_measure::{
    Caches, Candidate, Figure, FigureKind, Level, Place, Reader, Row, Verdict,
};

/// Row figure: page faults per loop of the kernel's row.
pub const FAULTS: &str = "faults_per_loop";

/// Pages that one fork zeroes, and pages it copies, beside the buffer's (000.10).
const ZEROED_PAGES: usize = 3;
const COPIED_PAGES: usize = 8;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Buffers of the seed, with the loops of each of its five runs. It has seven.
const BUFFERS: &[(usize, usize)] = &[
    (256 << 10, 5_000),
    (128 << 10, 5_000),
    (64 << 10, 10_000),
    (32 << 10, 20_000),
    (28 << 10, 20_000),
    (20 << 10, 20_000),
    (4 << 10, 40_000),
];

/// Rows: name, kernel that zeroes, kernel that copies. The mixed ones stand at every size, also at
/// the two where the seed left them out.
const ROWS: &[(&str, &str, &str)] = &[
    ("slow", "zero.rep.stosl", "copy.rep.movsl"),
    ("mmx_APn", "zero.mmx", "copy.mmx.pf320.vlasenko"),
    ("mmx_APN", "zero.mmx.nt", "copy.mmx.nt.pf320.vlasenko"),
    ("mmx_APn/APN", "zero.mmx", "copy.mmx.nt.pf320.vlasenko"),
    ("sse_APn", "zero.sse", "copy.sse.pf320.vlasenko"),
    ("sse_APN", "zero.sse.nt", "copy.sse.nt.pf320.vlasenko"),
    ("sse_APn/APN", "zero.sse", "copy.sse.nt.pf320.vlasenko"),
    ("rep", "zero.rep.stosb", "copy.rep.movsb"),
    ("avx", "zero.avx", "copy.avx"),
    ("avx.nt", "zero.avx.nt", "copy.avx.nt"),
    ("avx/avx.nt", "zero.avx", "copy.avx.nt"),
    ("avx512", "zero.avx512", "copy.avx512"),
    ("avx512.nt", "zero.avx512.nt", "copy.avx512.nt"),
    ("avx512/avx512.nt", "zero.avx512", "copy.avx512.nt"),
];

/// What a row with 2 MiB pages has before its kernel's name.
const HUGE_PREFIX: &str = "2M ";

/// Drawn: time over libc's by buffer, and times per buffer.
pub(super) fn figures() -> Vec<Figure> {
    let whole = Figure {
        title: "A fork's worth of pages and its buffer: time over libc's".to_owned(),
        kind: FigureKind::Curve,
        x: "size".to_owned(),
        y: None,
        value: "ratio".to_owned(),
        panels: Vec::new(),
        candidates: ROWS.iter().map(|(name, _, _)| (*name).to_owned()).collect(),
        states: String::new(),
    };
    let beside = Figure {
        title: "Beside the kernel's own fork: time per loop".to_owned(),
        kind: FigureKind::Bars,
        x: "candidate".to_owned(),
        value: "ns".to_owned(),
        panels: vec!["size".to_owned()],
        candidates: Vec::new(),
        ..whole.clone()
    };
    vec![whole, beside]
}

/// A zeroing and a copying routine under one name.
struct Pair {
    name: String,
    zero: Routine,
    copy: Routine,
    /// Bytes that are copied when one page of the buffer is written first.
    grain: usize,
}

/// One loop of the seed with a pair's routines.
struct Copier<'p> {
    pair: &'p Pair,
    buffer: usize,
    calls: u64,
    zeroed: u64,
    copied: u64,
}

impl Copier<'_> {
    fn zero(&mut self, at: *mut u8) {
        let Function::Zero(zero) = self.pair.zero.function else { return };
        // SAFETY: callers pass pages of the place, and the routine runs here.
        unsafe { zero(at, PAGE_SIZE) };
        self.zeroed += 1;
    }

    fn copy(&mut self, place: &Place, at: usize, bytes: usize) {
        let Function::Copy(copy) = self.pair.copy.function else { return };
        // SAFETY: callers stay within the place, whose source and destination are apart.
        unsafe { copy(place.dst.wrapping_add(at), place.src.wrapping_add(at), bytes) };
        self.copied += (bytes / PAGE_SIZE) as u64;
    }
}

impl Candidate for Copier<'_> {
    fn name(&self) -> &str {
        &self.pair.name
    }

    fn call(&mut self, place: &Place) {
        let extra = ZEROED_PAGES + COPIED_PAGES;
        for page in 0..ZEROED_PAGES {
            self.zero(place.dst.wrapping_add(page * PAGE_SIZE));
        }
        for page in ZEROED_PAGES..extra {
            self.copy(place, page * PAGE_SIZE, PAGE_SIZE);
        }
        // 9 bytes here and there in each of the 11 pages: the "some 100 bytes" of 000.10.
        for page in 0..extra {
            let page = place.dst.wrapping_add(page * PAGE_SIZE);
            // SAFETY: a page of the place.
            unsafe { Reader::every(page, PAGE_SIZE, PAGE_SIZE / 9 + 1) };
        }
        let buffer = extra * PAGE_SIZE;
        for page in 0..self.buffer / PAGE_SIZE {
            let at = page * PAGE_SIZE;
            if at.is_multiple_of(self.pair.grain) {
                self.copy(place, buffer + at, self.pair.grain);
            }
            // SAFETY: byte 0 of a page of the buffer.
            unsafe { place.dst.wrapping_add(buffer + at).write_volatile(1) };
        }
        // SAFETY: the buffer's part of the place.
        unsafe { Reader::every(place.dst.wrapping_add(buffer), self.buffer, 32) };
        self.calls += 1;
    }

    fn function(&self) -> Option<Function> {
        Some(self.pair.copy.function)
    }

    fn companion(&self) -> Option<Function> {
        Some(self.pair.zero.function)
    }

    fn stays(&self) -> bool {
        self.pair.name == LIBC
    }
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    common::refuse_placements(setting, "the loop leaves its pages where it leaves them")?;
    common::whole_pages(&setting.options.sizes)?;
    let pairs = pairs(setting)?;
    let buffers = buffers(setting);
    let weight = |setting: &Setting<'_>, buffer: usize, loops: usize| {
        // A fork of some hundred microseconds, and what grows with the buffer.
        calls(setting, buffer, loops) as f64 * (3e5 + buffer as f64)
    };
    let total = buffers.iter().map(|&(buffer, loops)| weight(setting, buffer, loops)).sum();
    setting.observer.begin(experiment.name, total);
    let mut rows = Vec::new();
    let mut finish = Finish::Complete;
    for (buffer, loops) in buffers {
        let Some(measured) = one_buffer(experiment, setting, &pairs, buffer, loops)? else {
            finish = Finish::Interrupted;
            break;
        };
        for row in measured {
            (setting.rows)(&row)?;
            rows.push(row);
        }
        let done = weight(setting, buffer, loops);
        setting.observer.advance(&super::short_bytes(buffer), done);
    }
    for verdict in verdicts(&rows) {
        (setting.verdicts)(verdict);
    }
    Ok(finish)
}

/// Everybody at one buffer; nothing when the user stopped it.
fn one_buffer(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    pairs: &[Pair],
    buffer: usize,
    loops: usize,
) -> Result<Option<Vec<Row>>, LabError> {
    let mut plan = setting.plan(false);
    plan.max_sample_ns = 5e7;
    plan.calls = Some(calls(setting, buffer, loops));
    let question = Question {
        experiment: experiment.name,
        operation: Operation::Copy,
        size: (ZEROED_PAGES + COPIED_PAGES) * PAGE_SIZE + buffer.next_multiple_of(HUGE),
        state: State::Scene(Scene {
            page_aligned: true,
            ..Scene::reused(regime(buffer, &setting.bench.machine.caches))
        }),
        routines: &[],
        plan,
        verify: true,
    };
    let mut forker = forker(setting, buffer)?;
    let mut copiers: Vec<Copier<'_>> =
        pairs.iter().map(|pair| Copier { pair, buffer, calls: 0, zeroed: 0, copied: 0 }).collect();
    let mut candidates: Vec<&mut dyn Candidate> =
        copiers.iter_mut().map(|copier| copier as &mut dyn Candidate).collect();
    candidates.extend(forker.iter_mut().map(|forker| forker as &mut dyn Candidate));
    let mut measured = match common::measure(setting, &question, &mut candidates)? {
        Measured::Interrupted => return Ok(None),
        Measured::Skipped => return Ok(Some(Vec::new())),
        Measured::Rows(rows) => rows,
    };
    if let Some(error) = forker.as_mut().and_then(Forker::take_failure) {
        return Err(LabError::Child { what: format!("fork-loop: {error}") });
    }
    for (row, copier) in measured.iter_mut().zip(&copiers) {
        let calls = copier.calls as f64;
        row.extra.insert(ZEROED.into(), copier.zeroed as f64 / calls);
        row.extra.insert(COPIED.into(), copier.copied as f64 / calls);
    }
    let faults = forker.as_ref().and_then(Forker::faults_per_loop);
    for row in &mut measured {
        // The seed names the buffer, not what its fork copies beside it.
        row.cell.size = buffer as u64;
        row.extra.insert(LOOPS.into(), loops as f64);
        if row.candidate == FORK {
            row.extra.extend(faults.map(|faults| (FAULTS.to_owned(), faults)));
        }
    }
    Ok(Some(measured))
}

/// Loops per run: the seed's own, or what hides the 20 us that a request to the forking process
/// costs beside 50 us and more of each fork.
fn calls(setting: &Setting<'_>, buffer: usize, loops: usize) -> usize {
    if setting.options.classic {
        return loops;
    }
    let affordable = if setting.options.quick { 50 } else { 200 };
    affordable.min((64 << 20) / buffer).max(1)
}

fn forker(setting: &mut Setting<'_>, buffer: usize) -> Result<Option<Forker>, LabError> {
    let Some(helper) = setting.options.helper.clone() else {
        (setting.notes)(format!(
            "skipped {FORK} at {}: no program to fork was given",
            super::short_bytes(buffer)
        ))?;
        return Ok(None);
    };
    match Forker::start(&helper, buffer) {
        Ok(forker) => Ok(Some(forker)),
        Err(error) => {
            (setting.notes)(format!("skipped {FORK}: {error}"))?;
            Ok(None)
        }
    }
}

/// Where the seed's footprint, the buffer and 44k, fits (000.13).
fn regime(buffer: usize, caches: &Caches) -> &'static str {
    let footprint = buffer + (ZEROED_PAGES + COPIED_PAGES) * PAGE_SIZE;
    let fits = |level| footprint <= caches.bytes(level);
    match () {
        () if fits(Level::L1) => "buffer + 44k fits L1",
        () if fits(Level::L2) => "buffer + 44k fits L2",
        () if fits(Level::Llc) => "buffer + 44k fits LLC",
        () => "buffer + 44k fits no cache",
    }
}

/// The seed's seven buffers, and one that this machine's L2 does not hold.
fn buffers(setting: &Setting<'_>) -> Vec<(usize, usize)> {
    let loops = |size: usize| {
        let known = BUFFERS.iter().find(|(buffer, _)| *buffer == size);
        known.map_or(5_000, |(_, loops)| *loops)
    };
    if !setting.options.sizes.is_empty() {
        return setting.options.sizes.iter().map(|&size| (size, loops(size))).collect();
    }
    let mut buffers = BUFFERS.to_vec();
    if !setting.options.classic {
        let beyond = (2 * setting.bench.machine.caches.l2.bytes).next_multiple_of(PAGE_SIZE);
        // Last, since it takes longest: whoever stops early keeps the seed's.
        buffers.push((beyond, loops(beyond)));
    }
    buffers
}

/// Who competes. Kernels that are asked for stand in the rows that copy by them; those in none get
/// one with libc for the other half.
fn pairs(setting: &mut Setting<'_>) -> Result<Vec<Pair>, LabError> {
    let pattern = setting.options.kernels.clone();
    let both = [Operation::Copy, Operation::Zero];
    let chosen = match pattern.as_deref() {
        Some(pattern) => select::kernels(&both, Some(pattern))?,
        None => {
            let zeroes: Vec<&str> = ROWS.iter().map(|(_, zero, _)| *zero).collect();
            let copies: Vec<&str> = ROWS.iter().map(|(_, _, copy)| *copy).collect();
            let mut kernels = common::listed(&zeroes, Operation::Zero);
            kernels.extend(common::listed(&copies, Operation::Copy));
            kernels.sort_unstable_by_key(|kernel| kernel.name);
            kernels.dedup_by_key(|kernel| kernel.name);
            kernels
        }
    };
    let here = common::present(setting, chosen)?;
    let is_here = |name: &str| here.iter().any(|kernel| kernel.name == name);
    let libc = |operation| libc_reference(operation);
    let mut pairs = vec![Pair {
        name: LIBC.to_owned(),
        zero: libc(Operation::Zero),
        copy: libc(Operation::Copy),
        grain: PAGE_SIZE,
    }];
    let features = setting.bench.features;
    let mut used: Vec<&str> = Vec::new();
    for (name, zero, copy) in ROWS {
        let (Some(zero), Some(copy)) = (find(zero), find(copy)) else { continue };
        if !is_here(copy.name) || !zero.runs_on(features) {
            continue;
        }
        used.extend([zero.name, copy.name]);
        pairs.push(Pair {
            name: (*name).to_owned(),
            zero: zero.into(),
            copy: copy.into(),
            grain: PAGE_SIZE,
        });
    }
    for kernel in here.iter().filter(|kernel| !used.contains(&kernel.name)) {
        let name = kernel.name.to_owned();
        let grain = PAGE_SIZE;
        pairs.push(if kernel.operation() == Operation::Copy {
            Pair { name, zero: libc(Operation::Zero), copy: (*kernel).into(), grain }
        } else {
            Pair { name, zero: (*kernel).into(), copy: libc(Operation::Copy), grain }
        });
    }
    if setting.options.classic {
        return Ok(pairs);
    }
    // At the grain of huge pages: what is widest here, through and around the cache.
    for pair in [&["avx512", "avx"][..], &["avx512.nt", "avx.nt"][..]] {
        let widest = pair.iter().find_map(|name| pairs.iter().position(|row| row.name == *name));
        if let Some(at) = widest {
            let (zero, copy) = (pairs[at].zero.clone(), pairs[at].copy.clone());
            let name = format!("{HUGE_PREFIX}{}", pairs[at].name);
            pairs.push(Pair { name, zero, copy, grain: HUGE });
        }
    }
    Ok(pairs)
}

/// What the rows say about the seed's findings (000.12), the fork beside them, and today. Pure.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let cells = common::cells(rows);
    if cells.is_empty() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    texts.push(match tally(&cells, "mmx_APN", "mmx_APn") {
        None => {
            "Seed 000.12 (copying around the cache wins everywhere tried) was not tested: that \
                 takes mmx_APn and mmx_APN"
                .to_owned()
        }
        Some(tally) => {
            let answer = match (tally.faster, tally.slower) {
                (faster, _) if faster == tally.cells => "still true",
                (_, 0) => "cannot tell everywhere here",
                _ => "no longer true here",
            };
            format!(
                "Seed 000.12, mmx_APN against mmx_APn: copying around the cache wins at every \
                 buffer; {answer}: {tally}"
            )
        }
    });
    if let Some(tally) = tally(&cells, "mmx_APN", "mmx_APn/APN") {
        let answer = if tally.slower > 0 {
            "no longer true here, zeroing through the cache pays"
        } else if tally.faster > 0 {
            "still true, and zeroing around it gains"
        } else {
            "still true, no difference found"
        };
        texts.push(format!(
            "Seed 000.12, mmx_APN against mmx_APn/APN: zeroing through the cache adds nothing to \
             copying around it; {answer}: {tally}"
        ));
    }
    for (nt, temporal) in [("avx512.nt", "avx512"), ("avx.nt", "avx")] {
        if let Some(tally) = tally(&cells, nt, temporal) {
            texts.push(format!("Today {nt} against {temporal}: {tally}"));
            break;
        }
    }
    for (huge, base) in [("2M avx512", "avx512"), ("2M avx", "avx")] {
        let found = cells
            .iter()
            .find_map(|(key, of_cell)| Some((key.size, common::versus(of_cell, huge, base)?)));
        if let Some((size, pair)) = found {
            texts.push(format!(
                "Copying a whole 2 MiB page for a buffer of {} takes {} as page by page",
                super::short_bytes(size as usize),
                times(pair)
            ));
            break;
        }
    }
    if let Some(text) = beside_fork(&cells) {
        texts.push(text);
    }
    texts.push(beside_libc(&cells));
    texts
}

/// How a candidate fared against another over all cells.
struct Tally {
    cells: usize,
    faster: usize,
    slower: usize,
    worst: (u64, cachewise_measure::PairedRatio),
    best: (u64, cachewise_measure::PairedRatio),
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let open = self.cells - self.faster - self.slower;
        write!(
            f,
            "faster at {} of {} buffers, slower at {}, cannot tell at {open}; from {} at {} to {} \
             at {}",
            self.faster,
            self.cells,
            self.slower,
            times(self.best.1),
            super::short_bytes(self.best.0 as usize),
            times(self.worst.1),
            super::short_bytes(self.worst.0 as usize),
        )
    }
}

fn tally(
    cells: &[(&cachewise_measure::CellKey, Vec<&Row>)],
    ours: &str,
    theirs: &str,
) -> Option<Tally> {
    let pairs: Vec<_> = cells
        .iter()
        .filter_map(|(key, of_cell)| Some((key.size, common::versus(of_cell, ours, theirs)?)))
        .collect();
    let count = |wanted| pairs.iter().filter(|(_, pair)| says(*pair) == wanted).count();
    let by_median = |a: &&(u64, cachewise_measure::PairedRatio),
                     b: &&(u64, cachewise_measure::PairedRatio)| {
        a.1.median.total_cmp(&b.1.median)
    };
    Some(Tally {
        cells: pairs.len(),
        faster: count(Verdict::Faster),
        slower: count(Verdict::Slower),
        worst: *pairs.iter().max_by(by_median)?,
        best: *pairs.iter().min_by(by_median)?,
    })
}

/// What part of a real fork the copying is, from the smallest buffer to the largest.
fn beside_fork(cells: &[(&cachewise_measure::CellKey, Vec<&Row>)]) -> Option<String> {
    let mut shares: Vec<(u64, f64)> = cells
        .iter()
        .filter_map(|(key, of_cell)| Some((key.size, common::versus(of_cell, LIBC, FORK)?.median)))
        .collect();
    shares.sort_unstable_by_key(|(size, _)| *size);
    let (first, last) = (shares.first()?, shares.last()?);
    let text = |(size, share): &(u64, f64)| {
        format!("{:.1} % at {}", share * 100.0, super::short_bytes(*size as usize))
    };
    Some(format!(
        "Of the kernel's own fork, child and wait, such a loop by libc is {}{}: the rest is not copying",
        text(first),
        if shares.len() > 1 { format!(" and {}", text(last)) } else { String::new() }
    ))
}

#[cfg(test)]
mod tests {
    use super::common::made_up::{cell, row};
    use super::*;

    fn at(size: u64, temporal: f64, nt: f64, mixed: f64) -> Vec<Row> {
        let cell = cell("copy", size, "made up");
        vec![
            row(&cell, LIBC, 100.0),
            row(&cell, "mmx_APn", temporal),
            row(&cell, "mmx_APN", nt),
            row(&cell, "mmx_APn/APN", mixed),
            row(&cell, "avx", 100.0),
            row(&cell, "2M avx", 5000.0),
            row(&cell, FORK, 400.0),
        ]
    }

    #[test]
    fn each_outcome_has_its_sentence() {
        let texts =
            verdicts(&[at(4096, 200.0, 150.0, 150.0), at(8192, 200.0, 120.0, 120.0)].concat());
        assert!(texts[0].contains("still true: faster at 2 of 2 buffers"), "{texts:?}");
        assert!(texts[1].contains("still true, no difference found"), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("whole 2 MiB page")), "{texts:?}");
        let fork = texts.iter().find(|text| text.contains("own fork")).expect("the fork");
        assert!(fork.contains("25.0 % at 4K and 25.0 % at 8K"), "{fork}");
        assert!(texts.last().is_some_and(|text| text.starts_with("No benefit")), "{texts:?}");

        let texts = verdicts(&[at(4096, 100.0, 150.0, 120.0), at(8192, 90.0, 60.0, 60.0)].concat());
        assert!(texts[0].contains("no longer true here"), "{texts:?}");
        assert!(texts[1].contains("zeroing through the cache pays"), "{texts:?}");
        assert!(texts.last().is_some_and(|text| text.contains("mmx_APN at 8K (0.60")), "{texts:?}");

        let texts = verdicts(&at(4096, 100.0, 100.0, 110.0));
        assert!(texts[0].contains("cannot tell everywhere here"), "{texts:?}");
        assert!(texts[1].contains("zeroing around it gains"), "{texts:?}");

        let key = cell("copy", 4096, "made up");
        assert!(verdicts(&[row(&key, LIBC, 1.0)])[0].contains("was not tested"));
    }

    #[test]
    fn the_footprint_decides_the_regime() {
        let mut caches = cachewise_measure::Machine::describe().caches;
        caches.l1d.bytes = 64 << 10;
        assert_eq!(regime(20 << 10, &caches), "buffer + 44k fits L1");
        assert_ne!(regime(24 << 10, &caches), "buffer + 44k fits L1");
    }

    #[test]
    fn every_row_has_its_kernels() {
        if cfg!(target_arch = "x86_64") {
            for (name, zero, copy) in ROWS {
                let of = |name| find(name).map(|kernel| kernel.operation());
                assert_eq!(
                    (of(zero), of(copy)),
                    (Some(Operation::Zero), Some(Operation::Copy)),
                    "{name}"
                );
            }
            for (alias, zero, copy) in ROWS.iter().filter(|(name, _, _)| name.contains("_AP")) {
                let alias = cachewise_kernels::resolve_pair(alias).map(|(z, c)| (z.name, c.name));
                assert_eq!(alias, Some((*zero, *copy)));
            }
        }
    }
}
