//! `cached-target`: stores around the cache to a small target that is cached (001.2 to .5), and
//! `prefetchnta` by where the source is (002.9). Says which of the documents' CPUs this one is like.
//!
//! *Pre-read*: the target is read, every line, between the calls, and the calls alone are timed.
//! *Not read*: calls back to back, so that each meets what the last one left. *Far*: every call
//! finds its target in memory, which is what "memory speed" means here.

use super::common::{self, Measured, named};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::{Question, Scene, State};
use crate::routines::{Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Kernel, Operation, PAGE_SIZE, Prefetch, find};
use cachewise_measure::{Delay, Figure, FigureKind, Level, PairedRatio, Row, Verdict, stats};

/// Axis: 1 where the target is read between the calls.
pub const PRE_READ: &str = "target_pre_read";
/// Axis: 1 where the source is cached.
pub const SOURCE_CACHED: &str = "source_cached";

const READ: &str = "target pre-read";
const UNREAD: &str = "target not read";
const FAR: &str = "target far";
const PREFETCH: &str = "prefetchnta";

/// Stores around the cache by instruction: movntq, movntps, movnti, movntdq, and today's.
const AROUND: &[&str] = &[
    "copy.mmx.nt",
    "copy.sse.nt",
    "copy.gpr64.nt",
    "copy.sse2.nt",
    "copy.avx.nt",
    "copy.avx512.nt",
];

/// Through the cache: what "cached speed" means is the fastest of these and libc.
const THROUGH: &[&str] = &[
    "copy.rep.movsq",
    "copy.gpr64",
    "copy.mmx",
    "copy.sse2.movdqa",
    "copy.sse2",
    "copy.avx",
    "copy.avx512",
];

/// Kernels that the documents had.
const PERIOD: usize = 4;

/// With `prefetchnta` and without: the copies of seed 002 (copyR and copyQ, copyL and copyK,
/// copyU and copyT, copyO and copyN).
const PREFETCHING: &[(&str, &str)] = &[
    ("copy.sse2.movdqa.pf320", "copy.sse2.movdqa"),
    ("copy.mmx.pf320", "copy.mmx"),
    ("copy.gpr64.pf320", "copy.gpr64"),
    ("copy.mmx.nt.pf320", "copy.mmx.nt"),
];

/// Within this of cached speed counts as cached speed (001.4's 10 %).
const NEAR: f64 = 1.10;

/// What `prefetchnta` changes by less than this is nothing; on A64 it was a third.
const MATTERS: f64 = 0.03;

/// Drawn: speeds by state, and what prefetching changes by level.
pub(super) fn figures() -> Vec<Figure> {
    let bars = |title: &str, state: &str, panels: &[&str]| Figure {
        title: title.to_owned(),
        kind: FigureKind::Bars,
        x: "candidate".to_owned(),
        y: None,
        value: "gbps".to_owned(),
        panels: panels.iter().map(|panel| (*panel).to_owned()).collect(),
        candidates: Vec::new(),
        states: state.to_owned(),
    };
    vec![
        bars("Repeated to a small target", "target", &["state", SOURCE_CACHED, "size"]),
        bars("prefetchnta by where the source is", PREFETCH, &["source", "size"]),
    ]
}

/// Whose rows a run wants.
struct Chosen {
    around: Vec<Routine>,
    through: Vec<Routine>,
    /// Prefetching, then not.
    prefetching: Vec<(Routine, Routine)>,
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    common::refuse_placements(setting, "it goes through its own states")?;
    let chosen = chosen(setting)?;
    let sizes = sizes(setting);
    let mut states = Vec::new();
    if !chosen.around.is_empty() {
        for &size in &sizes {
            for source in [None, Some(Level::Dram)] {
                let scene = |label| Scene { source, ..Scene::reused(label) };
                let pre_read = scene(READ).read_after(Delay::None, 1.0);
                let far = Scene { destination: Some(Level::Dram), ..scene(FAR) };
                states.extend([pre_read, scene(UNREAD), far].map(|scene| (size, scene)));
            }
        }
    }
    let levels = if chosen.prefetching.is_empty() { &[][..] } else { &Level::ALL[..] };
    setting.observer.begin(experiment.name, (states.len() + levels.len()) as f64);
    let mut rows = Vec::new();
    let mut routines = vec![libc_reference(Operation::Copy)];
    routines.extend(chosen.through.iter().chain(&chosen.around).cloned());
    for (size, scene) in states {
        if !ask(experiment, setting, &routines, (size, scene), &mut rows)? {
            say(setting, &rows);
            return Ok(Finish::Interrupted);
        }
    }
    let mut routines = vec![libc_reference(Operation::Copy)];
    for (with, without) in &chosen.prefetching {
        routines.extend([without.clone(), with.clone()]);
    }
    for &level in levels {
        let size = prefetch_size(level, setting);
        let scene =
            Scene { source: Some(level), destination: Some(level), ..Scene::reused(PREFETCH) };
        if !ask(experiment, setting, &routines, (size, scene), &mut rows)? {
            say(setting, &rows);
            return Ok(Finish::Interrupted);
        }
    }
    say(setting, &rows);
    Ok(Finish::Complete)
}

fn say(setting: &mut Setting<'_>, rows: &[Row]) {
    for verdict in verdicts(rows) {
        (setting.verdicts)(verdict);
    }
}

/// Measures one state into the rows; false when the user stopped it.
fn ask(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    routines: &[Routine],
    (size, scene): (usize, Scene),
    rows: &mut Vec<Row>,
) -> Result<bool, LabError> {
    let mut plan = setting.plan(false);
    plan.max_sample_ns = 5e7;
    let question = Question {
        experiment: experiment.name,
        operation: Operation::Copy,
        size,
        state: State::Scene(scene),
        routines,
        plan,
        verify: true,
    };
    match common::measure_routines(setting, &question)? {
        Measured::Interrupted => return Ok(false),
        Measured::Skipped => {}
        Measured::Rows(measured) => {
            for mut row in measured {
                if scene.label != PREFETCH {
                    let flag = |set: bool| f64::from(u8::from(set));
                    row.cell.axes.insert(PRE_READ.to_owned(), flag(scene.label == READ));
                    row.cell.axes.insert(SOURCE_CACHED.to_owned(), flag(scene.source.is_none()));
                }
                (setting.rows)(&row)?;
                rows.push(row);
            }
        }
    }
    setting.observer.advance(&format!("{} {}", super::short_bytes(size), scene.label), 1.0);
    Ok(true)
}

/// The lists above, the documents' part of them with `--classic`, or what was asked for: those
/// around the cache compete, ordinary ones set cached speed, prefetching ones bring their twin.
fn chosen(setting: &mut Setting<'_>) -> Result<Chosen, LabError> {
    let features = setting.bench.features;
    let pattern = setting.options.kernels.clone();
    let listed = |names: &[&str], period: usize| -> Vec<&'static Kernel> {
        let most = if setting.options.classic { period } else { names.len() };
        names[..most].iter().filter_map(|name| find(name)).collect()
    };
    let (around, through, prefetching): (Vec<_>, Vec<_>, Vec<&'static Kernel>) = match pattern
        .as_deref()
    {
        None => {
            let prefetching = PREFETCHING.iter().map(|(with, _)| *with).collect::<Vec<_>>();
            let prefetching = prefetching.into_iter().filter_map(find).collect();
            (listed(AROUND, PERIOD), listed(THROUGH, PERIOD), prefetching)
        }
        Some(pattern) => {
            let asked = select::kernels(&[Operation::Copy], Some(pattern))?;
            type Kernels = Vec<&'static Kernel>;
            let (ahead, straight): (Kernels, Kernels) =
                asked.into_iter().partition(|kernel| matches!(kernel.prefetch, Prefetch::Nta(_)));
            let (around, through): (Kernels, Kernels) =
                straight.into_iter().partition(|kernel| kernel.is_non_temporal());
            // Cached speed needs somebody to set it, beside libc.
            let through = match common::widest(Operation::Copy, features) {
                Some((temporal, _)) if through.is_empty() && !around.is_empty() => vec![temporal],
                _ => through,
            };
            (around, through, ahead)
        }
    };
    let all: Vec<_> = around.iter().chain(&through).chain(&prefetching).copied().collect();
    let here = common::present(setting, all)?;
    let routines = |kernels: Vec<&'static Kernel>| {
        kernels
            .into_iter()
            .filter(|kernel| here.iter().any(|other| other.name == kernel.name))
            .map(Routine::from)
            .collect::<Vec<_>>()
    };
    let twins = prefetching
        .iter()
        .filter_map(|with| {
            let without = without_prefetch(with)?;
            (with.runs_on(features) && without.runs_on(features))
                .then(|| (Routine::from(*with), Routine::from(without)))
        })
        .collect::<Vec<_>>();
    let chosen =
        Chosen { around: routines(around), through: routines(through), prefetching: twins };
    if chosen.around.is_empty() && chosen.prefetching.is_empty() {
        return Err(LabError::Nothing {
            why:
                "none of the kernels chosen stores around the cache or prefetches by prefetchnta, \
                  and this experiment is about these"
                    .to_owned(),
        });
    }
    Ok(chosen)
}

/// The same kernel without its `prefetchnta`: `copy.mmx` for `copy.mmx.pf320`.
fn without_prefetch(kernel: &Kernel) -> Option<&'static Kernel> {
    let parts: Vec<&str> = kernel.name.split('.').filter(|part| !part.starts_with("pf")).collect();
    find(&parts.join(".")).filter(|twin| twin.name != kernel.name)
}

/// A quarter of L1, so that source and target both stay; and a quarter of L2.
fn sizes(setting: &Setting<'_>) -> Vec<usize> {
    let caches = &setting.bench.machine.caches;
    match setting.options {
        options if !options.sizes.is_empty() => options.sizes.clone(),
        options if options.quick => vec![caches.l1d.bytes / 4],
        _ => vec![PAGE_SIZE, caches.l1d.bytes / 4, caches.l2.bytes / 4],
    }
}

/// A size of which a level holds two operands of several slots.
fn prefetch_size(level: Level, setting: &Setting<'_>) -> usize {
    super::default_sizes(level, true, &setting.bench.machine.caches)[0]
}

/// Which of the documents' CPUs this one is like. Pure.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut texts = targets(rows);
    texts.extend(prefetching(rows));
    texts
}

/// One cell's time per operation, without what comes after it.
fn operation(of_cell: &[&Row], name: &str) -> Option<f64> {
    named(of_cell, name).map(|row| stats::median(&row.operation_ns))
}

/// A kind of CPU by how it stores around the cache to a cached target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKind {
    /// Within 10 % of cached speed (AXP, 001.4).
    Cached,
    /// No faster than to a target in memory (A64, Opteron, 001.4).
    Memory,
    /// Neither.
    Between,
    /// The interval spans a border.
    Open,
}

/// By the paired ratio to the fastest ordinary store, and the time over that to a far target.
fn target_kind(over_cached: PairedRatio, over_far: f64) -> TargetKind {
    if over_cached.rounds < stats::LEAST_ROUNDS {
        TargetKind::Open
    } else if over_cached.high <= NEAR {
        TargetKind::Cached
    } else if over_cached.low <= NEAR {
        TargetKind::Open
    } else if over_far >= 1.0 / NEAR {
        TargetKind::Memory
    } else {
        TargetKind::Between
    }
}

fn targets(rows: &[Row]) -> Vec<String> {
    let cells = common::cells(rows);
    let cell = |size: u64, state: &str, cached: f64| {
        cells.iter().find(|(key, _)| {
            key.size == size
                && key.state == state
                && key.axes.get(SOURCE_CACHED).copied() == Some(cached)
        })
    };
    let mut texts = Vec::new();
    let mut sizes: Vec<u64> =
        cells.iter().filter(|(key, _)| key.state == READ).map(|(key, _)| key.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let (Some((_, read)), Some((_, far))) = (cell(size, READ, 1.0), cell(size, FAR, 1.0))
        else {
            continue;
        };
        let Some(fastest) = fastest_through(read) else { continue };
        let mut by_kind: Vec<(TargetKind, Vec<String>)> = Vec::new();
        for row in read.iter().filter(|row| is_around(row)) {
            let (Some(ours), Some(at_memory)) =
                (operation(read, &row.candidate), operation(far, &row.candidate))
            else {
                continue;
            };
            let over_cached = PairedRatio::new(&row.operation_ns, &fastest.operation_ns, 0);
            let kind = target_kind(over_cached, ours / at_memory);
            let text = format!("{} {:.2}", row.candidate, over_cached.median);
            match by_kind.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, names)) => names.push(text),
                None => by_kind.push((kind, vec![text])),
            }
        }
        if by_kind.is_empty() {
            continue;
        }
        let kinds: Vec<String> = by_kind
            .iter()
            .map(|(kind, names)| {
                let kind = match kind {
                    TargetKind::Cached => "within 10 % of cached speed, as Athlon XP",
                    TargetKind::Memory => "always at memory speed, as Athlon 64 and Opteron",
                    TargetKind::Between => {
                        "neither at cached nor at memory speed, as none of the documents' CPUs"
                    }
                    TargetKind::Open => "cannot tell",
                };
                format!("{kind}: {}", names.join(", "))
            })
            .collect();
        texts.push(format!(
            "NT to a cached target of {} (001.4; time over the fastest through the cache, {}): {}",
            super::short_bytes(size as usize),
            fastest.candidate,
            kinds.join("; ")
        ));
        texts.extend(pre_reading(size, read, cell(size, UNREAD, 1.0).map(|(_, rows)| rows)));
        texts.extend(uncached_source(size, cell(size, READ, 0.0).map(|(_, rows)| rows)));
    }
    texts
}

fn is_around(row: &Row) -> bool {
    find(&row.candidate).is_some_and(Kernel::is_non_temporal)
}

/// The fastest of those that store through the cache.
fn fastest_through<'r>(of_cell: &[&'r Row]) -> Option<&'r Row> {
    let time = |row: &Row| stats::median(&row.operation_ns);
    of_cell.iter().copied().filter(|row| !is_around(row)).min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// What reading the target first changes for stores around the cache (001.2).
fn pre_reading(size: u64, read: &[&Row], unread: Option<&Vec<&Row>>) -> Option<String> {
    let unread = unread?;
    let changes: Vec<String> = read
        .iter()
        .filter(|row| is_around(row))
        .filter_map(|row| {
            let change = operation(read, &row.candidate)? / operation(unread, &row.candidate)?;
            Some(format!("{} {change:.2}", row.candidate))
        })
        .collect();
    (!changes.is_empty()).then(|| {
        format!(
            "Target of {} pre-read, time over not read (001.2; different cells, so no interval): {}",
            super::short_bytes(size as usize),
            changes.join(", ")
        )
    })
}

/// Who wins when the source is not cached (001.3).
fn uncached_source(size: u64, of_cell: Option<&Vec<&Row>>) -> Option<String> {
    let of_cell = of_cell?;
    let time = |row: &Row| stats::median(&row.operation_ns);
    let best =
        of_cell.iter().filter(|row| is_around(row)).min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let through = fastest_through(of_cell)?;
    let pair = PairedRatio::new(&best.operation_ns, &through.operation_ns, 0);
    Some(format!(
        "With the source of {} in memory (001.3), before anybody reads the target: {} against {} is \
         {}, {}",
        super::short_bytes(size as usize),
        best.candidate,
        through.candidate,
        common::says(pair),
        common::times(pair)
    ))
}

/// Which kind of CPU `prefetchnta` makes this (002.9).
fn prefetching(rows: &[Row]) -> Vec<String> {
    let cells = common::cells(rows);
    let mut by_pair: Vec<(String, Vec<(String, PairedRatio)>)> = Vec::new();
    for (key, of_cell) in cells.iter().filter(|(key, _)| key.state == PREFETCH) {
        for row in of_cell {
            let without = find(&row.candidate).and_then(without_prefetch);
            let pair =
                without.and_then(|without| common::versus(of_cell, &row.candidate, without.name));
            let (Some(pair), Some(level)) = (pair, key.source.clone()) else { continue };
            match by_pair.iter_mut().find(|(name, _)| *name == row.candidate) {
                Some((_, levels)) => levels.push((level, pair)),
                None => by_pair.push((row.candidate.clone(), vec![(level, pair)])),
            }
        }
    }
    by_pair
        .into_iter()
        .map(|(name, levels)| {
            let says = |wanted: &str| {
                let found = levels.iter().find(|(level, _)| level == wanted);
                found.map(|(_, pair)| pair.verdict(MATTERS))
            };
            let kind = prefetch_kind(says("L2"), says("DRAM"));
            let figures: Vec<String> = levels
                .iter()
                .map(|(level, pair)| {
                    format!("{level} {:.2} ({})", pair.median, pair.verdict(MATTERS))
                })
                .collect();
            format!(
                "prefetchnta in {name} (002.9) {kind}; time over without: {}",
                figures.join(", ")
            )
        })
        .collect()
}

/// By what it does to a source in L2 and in memory.
fn prefetch_kind(in_l2: Option<Verdict>, in_memory: Option<Verdict>) -> &'static str {
    match (in_l2, in_memory) {
        (Some(Verdict::Slower), Some(Verdict::Faster)) => "helps uncached and hurts in L2, as A64",
        (Some(Verdict::CannotTell), Some(Verdict::CannotTell)) => "does nothing, as AXP and P4",
        (Some(Verdict::CannotTell), Some(Verdict::Faster)) => {
            "helps uncached and costs nothing in L2"
        }
        (Some(Verdict::Slower), Some(_)) => "hurts in L2 and does not help uncached",
        (Some(Verdict::Faster), Some(_)) => "helps in L2",
        (Some(_), Some(Verdict::Slower)) => "hurts uncached",
        _ => "cannot be placed: L2 or memory was not measured",
    }
}

#[cfg(test)]
mod tests {
    use super::common::made_up::{cell, noisy, row};
    use super::*;
    use crate::routines::LIBC;

    fn target(state: &str, cached: f64, through: f64, around: f64, noise: f64) -> Vec<Row> {
        let mut key = cell("copy", 8192, state);
        key.axes.insert(SOURCE_CACHED.to_owned(), cached);
        vec![
            row(&key, LIBC, through * 1.2),
            row(&key, "copy.avx", through),
            noisy(&key, "copy.avx.nt", around, noise),
        ]
    }

    fn headline(around: f64, far: f64, noise: f64) -> String {
        let rows = [
            target(READ, 1.0, 100.0, around, noise),
            target(FAR, 1.0, 100.0, far, 0.001),
            target(UNREAD, 1.0, 90.0, around * 2.0, 0.001),
            target(READ, 0.0, 300.0, 150.0, 0.001),
        ]
        .concat();
        let texts = verdicts(&rows);
        assert!(texts[1].contains("copy.avx.nt 0.50"), "pre-read halves it: {texts:?}");
        assert!(texts[2].contains("copy.avx.nt against copy.avx is faster"), "{texts:?}");
        texts[0].clone()
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_kind_of_target_has_its_sentence() {
        assert!(headline(105.0, 900.0, 0.001).contains("within 10 % of cached speed"));
        assert!(headline(900.0, 900.0, 0.001).contains("always at memory speed"));
        assert!(headline(300.0, 900.0, 0.001).contains("neither at cached nor at memory"));
        let open = headline(110.0, 900.0, 0.02);
        assert!(open.contains("cannot tell") || open.contains("neither"), "{open}");
        assert!(verdicts(&[]).is_empty());
    }

    #[test]
    fn borders_of_the_kinds() {
        let pair = |median: f64, low: f64, high: f64| PairedRatio { median, low, high, rounds: 15 };
        assert_eq!(target_kind(pair(1.05, 1.0, 1.1), 0.1), TargetKind::Cached);
        assert_eq!(target_kind(pair(1.1, 1.05, 1.2), 0.1), TargetKind::Open);
        assert_eq!(target_kind(pair(9.0, 8.9, 9.1), 0.95), TargetKind::Memory);
        assert_eq!(target_kind(pair(3.0, 2.9, 3.1), 0.3), TargetKind::Between);
        assert_eq!(
            target_kind(PairedRatio { rounds: 2, ..pair(1.0, 1.0, 1.0) }, 1.0),
            TargetKind::Open
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_kind_of_prefetch_has_its_sentence() {
        let at = |level: &str, with: f64| {
            let mut key = cell("copy", 65536, PREFETCH);
            key.source = Some(level.to_owned());
            vec![row(&key, "copy.mmx", 100.0), row(&key, "copy.mmx.pf320", with)]
        };
        let text =
            |l2: f64, memory: f64| verdicts(&[at("L2", l2), at("DRAM", memory)].concat()).concat();
        assert!(text(150.0, 60.0).contains("helps uncached and hurts in L2, as A64"));
        assert!(text(100.0, 100.0).contains("does nothing, as AXP and P4"));
        assert!(text(100.0, 60.0).contains("helps uncached and costs nothing in L2"));
        assert!(text(150.0, 100.0).contains("hurts in L2 and does not help uncached"));
        assert!(text(50.0, 100.0).contains("helps in L2"));
        assert!(text(100.0, 150.0).contains("hurts uncached"));
        assert!(verdicts(&at("L1", 90.0)).concat().contains("cannot be placed"));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_listed_kernel_exists_with_its_twin() {
        for name in AROUND.iter().chain(THROUGH) {
            assert!(find(name).is_some(), "{name}");
        }
        for (with, without) in PREFETCHING {
            let twin = find(with).and_then(without_prefetch).map(|kernel| kernel.name);
            assert_eq!(twin, Some(*without));
        }
    }
}
