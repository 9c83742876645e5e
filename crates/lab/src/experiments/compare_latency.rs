//! `compare-latency` (004): how long a comparison takes by length and by where the first difference
//! is, and whether looking at the first bytes in integer registers pays.
//!
//! Three parts. A sweep of lengths and first differences on warm buffers. The workload of seed 004, made
//! from this machine's files: pages compared as ksmd compares them, whole passes in turns. And single
//! calls of that workload as distributions, cut at 1000 and at 5000 ns, in three launches.

use super::support::{
    at_least_one, axis, field, figure, groups, is_plain, key, percent, versus, widest,
};
use super::vector_state::break_even;
use super::{Experiment, Finish, Setting, short_bytes};
use crate::LabError;
use crate::bench::{Contest, Entrant, MARGIN, Spot};
use crate::routines::{LIBC, Routine};
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE, RegisterClass, find};
use cachewise_measure::{
    Contents, Figure, FigureKind, Histogram, PagePolicy, PairedRatio, Place, Row, Verdict, stats,
};
use launch::{Order, Outcome};
use pages::{Differences, PageSet, ROOTS};
use std::path::Path;

pub mod launch;
mod pages;

/// Axis: offset of the first difference; the length where there is none.
pub const FIRST_DIFFERENCE: &str = "first_difference";
/// Axis: which launch.
pub const LAUNCH: &str = "launch";
/// Row figures of the workload: part of the mismatches that differ within so many bytes.
pub const WITHIN: [&str; 3] = ["within_16", "within_32", "within_64"];
/// Row figure: part of the single calls that took less than 100 ns.
pub const BELOW_100: &str = "below_100_ns";
/// Row figure: part of the comparisons whose pages are equal.
pub const EQUAL: &str = "equal";

/// Seed 004.6: mismatches that differ by byte 16, 32, 64.
const SEED_WITHIN: [f64; 3] = [0.76, 0.83, 0.84];
/// Seed 004.7: where the histograms are cut, and how many bins of 10 ns make one.
const CUTS: [(f64, usize); 2] = [(1000.0, 1), (5000.0, 5)];
/// Seed 004.7: three runs.
const LAUNCHES: usize = 3;

pub(super) fn figures() -> Vec<Figure> {
    vec![
        figure(
            "Time by the first difference",
            FigureKind::Curve,
            FIRST_DIFFERENCE,
            "ns",
            &["size"],
            "sweep",
        ),
        figure("Time per comparison of pages", FigureKind::Bars, "candidate", "ns", &[], "pages"),
        figure(
            "Single calls up to 1000 ns",
            FigureKind::Histogram,
            "candidate",
            "ns",
            &[LAUNCH],
            "calls to 1000 ns",
        ),
        figure(
            "Single calls up to 5000 ns",
            FigureKind::Histogram,
            "candidate",
            "ns",
            &[LAUNCH],
            "calls to 5000 ns",
        ),
    ]
}

/// How much of everything.
struct Scale {
    sizes: Vec<usize>,
    pages: usize,
    comparisons: usize,
    passes: usize,
}

impl Scale {
    fn of(setting: &Setting<'_>) -> Scale {
        let options = setting.options;
        let sizes: &[usize] = match (options.quick, options.classic) {
            (true, _) => &[64, 256, PAGE_SIZE],
            (_, true) => &[PAGE_SIZE],
            _ => &[16, 32, 64, 128, 256, 1024, PAGE_SIZE, 65536],
        };
        let sizes = if options.sizes.is_empty() { sizes.to_vec() } else { options.sizes.clone() };
        // Pages that no cache holds, within an eighth of the budget; ksmd's are mostly cold.
        let room = cachewise_measure::MemoryBudget::process().limit() / 8 / PAGE_SIZE;
        let wanted = if options.quick { 8192 } else { 32768 };
        let (comparisons, passes) = if options.quick { (20_000, 4) } else { (100_000, 10) };
        Scale { sizes, pages: wanted.min(room), comparisons, passes }
    }
}

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    if !setting.options.placements.is_empty() {
        return Err(LabError::OptionRefused {
            option: "--residency",
            experiment: experiment.name,
            why: "lengths are swept on warm buffers, and pages lie where the tree leaves them",
        });
    }
    let roots = ROOTS.map(Path::new);
    let scale = Scale::of(setting);
    measure(experiment, setting, &scale, &roots)
}

fn measure(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    scale: &Scale,
    roots: &[&Path],
) -> Result<Finish, LabError> {
    let (quick, classic) = (setting.options.quick, setting.options.classic);
    let vector = widest(setting.bench.features);
    let wanted = |kernel: &Kernel| {
        let technique = kernel.technique();
        let checked_first = technique.contains(".pre");
        if kernel.registers == RegisterClass::Gpr {
            return technique == "gpr64";
        }
        if classic {
            return kernel.registers == vector
                && (is_plain(kernel) || technique.ends_with(".pre64"));
        }
        (is_plain(kernel) || checked_first)
            && (!quick || kernel.registers == vector || is_plain(kernel))
    };
    let mut fields = vec![field(setting, Operation::Compare, wanted)?];
    if !quick && !classic || setting.options.kernels.is_some() {
        fields.push(field(setting, Operation::Equal, wanted)?);
    }
    at_least_one(&fields.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let compares = fields[0].clone();
    fields.retain(|routines| routines.len() > 1);
    let cells: Vec<(usize, usize)> = scale
        .sizes
        .iter()
        .flat_map(|&size| positions(size, quick).into_iter().map(move |at| (size, at)))
        .collect();
    let has_pages = compares.len() > 1;
    // A launch takes about as long as twenty cells, the passes over pages about as long as ten.
    let total = (cells.len() * fields.len()) as f64
        + if has_pages { 10.0 + 20.0 * LAUNCHES as f64 } else { 0.0 };
    setting.observer.begin(experiment.name, total);
    let mut work = Work { experiment, setting, rows: Vec::new() };
    let mut finish = work.sweep(&fields, &cells)?;
    let mut timer = None;
    if finish == Finish::Complete && has_pages {
        finish = work.workload(&compares, scale, roots)?;
        if finish == Finish::Complete {
            finish = work.launches(&compares, scale, roots, &mut timer)?;
        }
    }
    let Work { rows, setting, .. } = work;
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    timer.into_iter().for_each(&mut *setting.verdicts);
    Ok(finish)
}

/// First differences worth looking at in `size` bytes; `size` itself stands for none.
fn positions(size: usize, quick: bool) -> Vec<usize> {
    let own: &[usize] = if quick {
        &[0, 16, 32, 64, 128, 512]
    } else {
        &[0, 7, 8, 15, 16, 31, 32, 63, 64, 128, 256, 512, 1024, 2048]
    };
    let mut positions: Vec<usize> = own.iter().copied().filter(|at| *at < size).collect();
    positions.extend([size - 1, size]);
    positions.dedup();
    positions
}

struct Work<'w, 's> {
    experiment: &'w Experiment,
    setting: &'w mut Setting<'s>,
    rows: Vec<Row>,
}

impl Work<'_, '_> {
    fn keep(&mut self, row: Row) -> Result<(), LabError> {
        (self.setting.rows)(&row)?;
        self.rows.push(row);
        Ok(())
    }

    fn sweep(
        &mut self,
        fields: &[Vec<Routine>],
        cells: &[(usize, usize)],
    ) -> Result<Finish, LabError> {
        for &(size, position) in cells {
            for routines in fields {
                let operation = routines[0].function.operation();
                let mut entrants: Vec<Entrant<'_>> = routines.iter().map(Entrant::plain).collect();
                let contest = Contest {
                    size,
                    destination: Spot { level: None, offset: 0 },
                    source: Some(Spot { level: None, offset: 512 }),
                    distance: 0,
                    pages: PagePolicy::Huge,
                    contents: if position == size {
                        Contents::Equal
                    } else {
                        Contents::DiffersAt(position)
                    },
                    plan: self.setting.plan(false),
                    write_source: None,
                    entrants: &mut entrants,
                };
                let found = self.setting.bench.hold(contest, self.setting.observer)?;
                if found.interrupted() {
                    return Ok(Finish::Interrupted);
                }
                for index in 0..routines.len() {
                    let axes = [(FIRST_DIFFERENCE, position as f64)];
                    let cell = key(operation.name(), size, (None, None), "sweep", &axes);
                    self.keep(found.row(self.experiment.name, cell, index, 0))?;
                }
                let text = format!("{operation} {}, difference at {position}", short_bytes(size));
                self.setting.observer.advance(&text, 1.0);
            }
        }
        Ok(Finish::Complete)
    }

    /// Whole passes over the comparisons of pages, in turns.
    fn workload(
        &mut self,
        compares: &[Routine],
        scale: &Scale,
        roots: &[&Path],
    ) -> Result<Finish, LabError> {
        let seed = self.setting.bench.seed;
        let set = PageSet::gather(roots, scale.pages, seed)?;
        let trace = set.descend(scale.comparisons, seed);
        let Differences { different, equal, within } = set.differences(&trace);
        (self.setting.notes)(format!(
            "pages: {} of 4096 bytes from {} files, a third of them twice; {} comparisons, {equal} of equal pages",
            set.pages,
            set.files,
            trace.len()
        ))?;
        if set.pages < scale.pages {
            (self.setting.notes)(format!(
                "found {} pages of {} wanted: fewer files here than that",
                set.pages, scale.pages
            ))?;
        }
        for routine in compares {
            launch::check(routine, &set, &trace)?;
        }
        let (set, trace) = (&set, &trace);
        let mut entrants: Vec<Entrant<'_>> = compares
            .iter()
            .map(|routine| {
                let function = routine.function;
                Entrant::new(routine.name.clone(), move |places: &[Place]| {
                    let Function::Compare(compare) = function else { return };
                    for comparison in places.iter().flat_map(|_| trace) {
                        let (a, b) = (set.page(comparison.candidate), set.page(comparison.node));
                        // SAFETY: pages of the set, readable for a page; the CPU runs the kernel.
                        std::hint::black_box(unsafe { compare(a, b, PAGE_SIZE) });
                    }
                })
            })
            .collect();
        let contest = Contest {
            size: PAGE_SIZE,
            // The places are not used: the pages are the set's.
            destination: Spot { level: None, offset: 0 },
            source: None,
            distance: 0,
            pages: PagePolicy::Huge,
            contents: Contents::Kept,
            plan: self.setting.plan(false),
            write_source: None,
            entrants: &mut entrants,
        };
        let found = self.setting.bench.hold(contest, self.setting.observer)?;
        if found.interrupted() {
            return Ok(Finish::Interrupted);
        }
        for index in 0..compares.len() {
            let cell = key("compare", PAGE_SIZE, (None, None), "pages", &[]);
            let mut row = found.row(self.experiment.name, cell, index, 0);
            // One call of the contest is all comparisons.
            row.operation_ns.iter_mut().for_each(|ns| *ns /= trace.len() as f64);
            row.calls = row.calls.saturating_mul(u32::try_from(trace.len()).unwrap_or(u32::MAX));
            for (name, part) in WITHIN.iter().zip(within) {
                row.extra.insert((*name).to_owned(), part);
            }
            row.extra.insert(EQUAL.into(), equal as f64 / (equal + different).max(1) as f64);
            self.keep(row)?;
        }
        self.setting.observer.advance("pages", 10.0);
        Ok(Finish::Complete)
    }

    /// Single calls, three launches.
    fn launches(
        &mut self,
        compares: &[Routine],
        scale: &Scale,
        roots: &[&Path],
        timer: &mut Option<String>,
    ) -> Result<Finish, LabError> {
        let fresh = self.setting.options.launcher;
        for launch in 1..=LAUNCHES {
            let order = Order {
                roots: roots.iter().map(|root| root.display().to_string()).collect(),
                pages: scale.pages,
                comparisons: scale.comparisons,
                passes: scale.passes,
                kernels: compares.iter().map(|routine| routine.name.clone()).collect(),
                seed: self.setting.bench.seed,
            };
            let outcome = match fresh {
                Some(start) => start(&order, &|| self.setting.observer.cancelled())?,
                None => launch::run(&order, &|| self.setting.observer.cancelled())?,
            };
            let Some(outcome) = outcome else { return Ok(Finish::Interrupted) };
            for row in launch_rows(self.experiment.name, launch, &outcome) {
                self.keep(row)?;
            }
            *timer = Some(format!(
                "Single calls ({LAUNCHES} launches, {}): reading the clock cost {:.1} ns, subtracted from each; its smallest step is {:.2} ns, so that no single call is known better than that",
                if fresh.is_some() { "each a process of its own" } else { "all in this process" },
                outcome.cost_ns,
                outcome.resolution_ns
            ));
            self.setting.observer.advance(&format!("launch {launch}"), 20.0);
        }
        Ok(Finish::Complete)
    }
}

/// A launch's rows: every kernel at every cut.
fn launch_rows(experiment: &str, launch: usize, outcome: &Outcome) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(reference) = outcome.kernels.first() else { return rows };
    for (cut, join) in CUTS {
        for timed in &outcome.kernels {
            let axes = [(LAUNCH, launch as f64)];
            let ratio = PairedRatio::new(&timed.mean_ns, &reference.mean_ns, launch as u64);
            rows.push(Row {
                experiment: experiment.to_owned(),
                cell: key(
                    "compare",
                    PAGE_SIZE,
                    (None, None),
                    &format!("calls to {cut:.0} ns"),
                    &axes,
                ),
                candidate: timed.name.clone(),
                reference: reference.name.clone(),
                calls: u32::try_from(timed.times.calls()).unwrap_or(u32::MAX),
                operation_ns: timed.mean_ns.clone(),
                reader_ns: Vec::new(),
                bystander_ns: Vec::new(),
                ratio: Some(ratio),
                verdict: Some(ratio.verdict(MARGIN)),
                total_ratio: None,
                proofs: Vec::new(),
                drift: None,
                dropped: false,
                extra: [(BELOW_100.to_owned(), timed.times.share_below(100.0))].into(),
                histogram: Some(timed.times.histogram(cut, join)),
            });
        }
    }
    rows
}

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let of = |state: &str| rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let pages = of("pages");
    let mut sentences = vec![pre_check(&pages)];
    sentences.extend(distribution(&pages));
    sentences.extend(by_position(&of("sweep")));
    sentences.extend(below_100(&of("calls to 1000 ns")));
    sentences.extend(spikes(&of("calls to 1000 ns")));
    sentences
}

/// The family and the bytes it looks at in integer registers first.
fn family(name: &str) -> Option<(&str, usize)> {
    match name.split_once(".pre") {
        Some((stem, bytes)) => Some((stem, bytes.parse().ok()?)),
        None => {
            find(name).filter(|kernel| kernel.registers != RegisterClass::Gpr).map(|_| (name, 0))
        }
    }
}

/// The best pre-check length on pages.
fn pre_check(pages: &[&Row]) -> String {
    let time = |row: &Row| stats::median(&row.operation_ns);
    let Some(fastest) = pages.iter().min_by(|a, b| time(a).total_cmp(&time(b))) else {
        return "Pages compared as ksmd does: cannot tell, nothing was measured on them".to_owned();
    };
    let mut text = format!(
        "Pages compared as ksmd does: {} is fastest with {:.1} ns a comparison",
        fastest.candidate,
        time(fastest)
    );
    for other in ["compare.gpr64", LIBC] {
        if let Some(row) =
            pages.iter().find(|row| row.candidate == other && row.candidate != fastest.candidate)
        {
            let ratio = versus(row, fastest);
            text.push_str(&match ratio.verdict(MARGIN) {
                Verdict::Slower => format!(", {other} takes {} longer", percent(ratio.median)),
                _ => format!(", {other} is no different"),
            });
        }
    }
    let with_family = pages
        .iter()
        .filter_map(|row| family(&row.candidate).map(|(stem, pre)| (stem.to_owned(), pre, *row)));
    let members: Vec<(String, usize, &Row)> = with_family.collect();
    for (stem, of_it) in groups(&members, |member| member.0.clone()) {
        let Some(best) = of_it.iter().min_by(|a, b| time(a.2).total_cmp(&time(b.2))) else {
            continue;
        };
        if of_it.len() < 2 {
            continue;
        }
        let told: Vec<String> = of_it
            .iter()
            .filter(|member| {
                member.1 != best.1 && versus(member.2, best.2).verdict(MARGIN) == Verdict::Slower
            })
            .map(|member| {
                format!("{} B takes {} longer", member.1, percent(versus(member.2, best.2).median))
            })
            .collect();
        text.push_str(&if told.is_empty() {
            format!("; {stem}: looking at the first bytes in integer registers makes no difference that can be told")
        } else {
            format!("; {stem}: best pre-check {} B ({})", best.1, told.join(", "))
        });
    }
    text
}

fn distribution(pages: &[&Row]) -> Option<String> {
    let row = pages.first()?;
    let found = |name: &str| row.extra.get(name).copied();
    let [a, b, c] = WITHIN.map(found);
    Some(format!(
        "Pages that differ do so within 16, 32, 64 bytes in {:.0}, {:.0}, {:.0} % of the cases here; seed 004.6 counted {:.0}, {:.0}, {:.0} %",
        a? * 100.0,
        b? * 100.0,
        c? * 100.0,
        SEED_WITHIN[0] * 100.0,
        SEED_WITHIN[1] * 100.0,
        SEED_WITHIN[2] * 100.0
    ))
}

/// From which first difference on the widest vector beats integers, and whether a pre-check costs a
/// long comparison anything (004.8's "no downside").
fn by_position(sweep: &[&Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    let cells =
        groups(sweep.iter().copied(), |row: &Row| (row.cell.operation.clone(), row.cell.size));
    for ((operation, size), of_size) in cells {
        let integer = format!("{operation}.gpr64");
        let named = |name: &str| {
            of_size.iter().copied().filter(|row| row.candidate == name).collect::<Vec<_>>()
        };
        let integers = named(&integer);
        let plain: Vec<&str> = of_size
            .iter()
            .map(|row| row.candidate.as_str())
            .filter(|name| family(name).is_some_and(|(_, pre)| pre == 0))
            .collect();
        let Some(vector) =
            plain.iter().max_by_key(|name| find(name).map_or(0, |kernel| kernel.registers.bytes()))
        else {
            continue;
        };
        let at = |rows: &[&Row], position: f64| {
            rows.iter().find(|row| axis(row, FIRST_DIFFERENCE) == position).copied().cloned()
        };
        let mut points: Vec<(usize, f64, Verdict)> = named(vector)
            .iter()
            .filter_map(|row| {
                let position = axis(row, FIRST_DIFFERENCE);
                let ratio = versus(row, &at(&integers, position)?);
                // Position 0 counts as byte 1: the scale between is logarithmic.
                Some(((position as usize).max(1), ratio.median, ratio.verdict(MARGIN)))
            })
            .collect();
        points.sort_by_key(|point| point.0);
        if let Some(found) = break_even(&points) {
            sentences.push(format!(
                "{operation} of {size} B: {vector} beats {integer} {found} of equal beginning"
            ));
        }
        let whole = size as f64;
        let first = format!("{vector}.pre64");
        if let (Some(with), Some(without)) = (at(&named(&first), whole), at(&named(vector), whole))
        {
            let ratio = versus(&with, &without);
            sentences.push(match ratio.verdict(MARGIN) {
                Verdict::Slower => format!("{operation} of {size} equal B: looking at 64 bytes first costs {} (seed 004.8 saw no downside)", percent(ratio.median)),
                Verdict::Faster => format!("{operation} of {size} equal B: looking at 64 bytes first saves {}", percent(ratio.median)),
                Verdict::CannotTell => format!("{operation} of {size} equal B: looking at 64 bytes first costs nothing that can be told (seed 004.8: still true)"),
            });
        }
    }
    sentences
}

/// Seed 004.8: more calls under 100 ns with vectors behind a pre-check than with integers.
fn below_100(calls: &[&Row]) -> Option<String> {
    let shares = |name: &str| -> Vec<f64> {
        calls
            .iter()
            .filter(|row| row.candidate == name)
            .filter_map(|row| row.extra.get(BELOW_100).copied())
            .collect()
    };
    let names = groups(calls.iter().copied(), |row: &Row| row.candidate.clone());
    let checked = names.iter().map(|(name, _)| name).rfind(|name| name.ends_with(".pre64"))?;
    let (integers, vectors) = (shares("compare.gpr64"), shares(checked));
    if integers.is_empty() {
        return None;
    }
    let span = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    };
    let ((a, b), (c, d)) = (span(&integers), span(&vectors));
    let claim = if c > b {
        "more with vectors, in every launch: still true"
    } else if d < a {
        "fewer with vectors, in every launch: no longer true here"
    } else {
        "the launches overlap: cannot tell"
    };
    Some(format!(
        "Calls under 100 ns: compare.gpr64 {:.1} .. {:.1} %, {checked} {:.1} .. {:.1} % over the launches; seed 004.8 claimed more with vectors: {claim}",
        a * 100.0,
        b * 100.0,
        c * 100.0,
        d * 100.0
    ))
}

/// Where a histogram has a spike between 500 and 700 ns: a bin with three times what both
/// neighbourhoods (200 ns on either side of that range) have in their median bins, and 1 in 1000 of
/// all calls at least. Pure.
pub(super) fn spike(histogram: &Histogram) -> Option<f64> {
    let total = histogram.counts.iter().sum::<u64>() + histogram.above;
    let within = |from: f64, to: f64| {
        histogram
            .edges_ns
            .iter()
            .zip(&histogram.counts)
            .filter(move |(edge, _)| (from..to).contains(*edge))
            .map(|(edge, count)| (*edge, *count as f64))
    };
    let usual =
        |from, to| stats::median(&within(from, to).map(|(_, count)| count).collect::<Vec<_>>());
    let (before, after) = (usual(300.0, 500.0), usual(700.0, 900.0));
    let (edge, count) = within(500.0, 700.0).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let stands_out = count > 3.0 * before.max(after).max(1.0) && count >= total as f64 / 1000.0;
    stands_out.then_some(edge)
}

/// Seed 004.9: an unexplained spike around 600 ns in one of two runs.
fn spikes(calls: &[&Row]) -> Option<String> {
    if calls.is_empty() {
        return None;
    }
    let found: Vec<String> = calls
        .iter()
        .filter_map(|row| {
            let at = spike(row.histogram.as_ref()?)?;
            Some(format!("{} at {at:.0} ns in launch {:.0}", row.candidate, axis(row, LAUNCH)))
        })
        .collect();
    Some(if found.is_empty() {
        "The spike near 600 ns that seed 004 could not explain: not here, in any launch of any kernel".to_owned()
    } else {
        format!(
            "The spike near 600 ns that seed 004 could not explain: here too: {}",
            found.join("; ")
        )
    })
}

#[cfg(test)]
#[path = "compare_latency/tests.rs"]
mod tests;
