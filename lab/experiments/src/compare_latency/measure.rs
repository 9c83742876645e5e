//! `compare-latency` (004): how long a comparison takes by length and by where the first difference
//! is, and whether looking at the first bytes in integer registers pays.
//!
//! Three parts. A sweep of lengths and first differences on warm buffers. The workload of seed 004, made
//! from this machine's files: pages compared as ksmd compares them, whole passes in turns. And single
//! calls of that workload as distributions, cut at 1000 and at 5000 ns, in three launches.

use super::launch::{self, Order};
use crate::pages::{self, PageSet, ROOTS};
use crate::prelude::*;

/// State: comparisons by the first difference.
pub(super) const SWEEP: &str = "sweep";
/// State: pages compared as ksmd does.
pub(super) const PAGES: &str = "pages";
/// Seed 004.7: states of single calls, where their histograms are cut in nanoseconds, and how many bins of
/// 10 ns make one.
pub(super) const CUTS: [(&str, f64, usize); 2] =
    [("calls to 1000 ns", 1000.0, 1), ("calls to 5000 ns", 5000.0, 5)];

/// Seed 004.7: three runs.
const LAUNCHES: usize = 3;

pub(super) fn figures() -> Vec<Figure> {
    let sweep = Figure::curve("Time by the first difference", FIRST_DIFFERENCE, "ns");
    vec![
        sweep.by(&["size"]).of(SWEEP),
        Figure::bars("Time per comparison of pages", "ns").of(PAGES),
    ]
}

fn sizes(setting: &Setting) -> Vec<usize> {
    let sizes: &[usize] = match (setting.options.quick, setting.options.classic) {
        (true, _) => &[64, 256, PAGE_SIZE],
        (_, true) => &[PAGE_SIZE],
        _ => &[16, 32, 64, 128, 256, 1024, PAGE_SIZE, 65536],
    };
    setting.sizes_or(sizes.iter().copied())
}

/// Numbers of comparisons and of pages.
fn order(setting: &Setting, compares: &[Routine]) -> Order {
    let (wanted, comparisons, passes) =
        if setting.options.quick { (8192, 20_000, 4) } else { (32768, 100_000, 10) };
    // Pages that no cache holds, within an eighth of the budget; ksmd's are mostly cold.
    let pages = wanted.min(MemoryBudget::process().limit() / 8 / PAGE_SIZE);
    let kernels = compares.iter().map(|routine| routine.name.clone()).collect();
    Order { pages, comparisons, passes, kernels, seed: setting.bench.seed }
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let (quick, classic) = (setting.options.quick, setting.options.classic);
    let vector = widest_class(setting.bench.features);
    let wanted = |kernel: &Kernel| {
        let (technique, is_widest) = (kernel.technique(), kernel.registers == vector);
        match kernel.registers {
            RegisterClass::Gpr => technique == "gpr64",
            _ if classic => is_widest && (is_plain(kernel) || technique.ends_with(".pre64")),
            _ => is_plain(kernel) || technique.contains(".pre") && (!quick || is_widest),
        }
    };
    let mut fields = vec![field(setting, Operation::Compare, wanted)?];
    if !quick && !classic || setting.options.kernels.is_some() {
        fields.push(field(setting, Operation::Equal, wanted)?);
    }
    at_least_one(&fields)?;
    let compares = fields[0].clone();
    fields.retain(|routines| routines.len() > 1);
    let cells: Vec<(usize, usize)> = sizes(setting)
        .into_iter()
        .flat_map(|size| positions(size, quick).into_iter().map(move |at| (size, at)))
        .collect();
    let has_pages = compares.len() > 1;
    // A launch takes about as long as twenty cells, the passes over pages about as long as ten.
    let total = (cells.len() * fields.len()) as f64
        + if has_pages { 10.0 + 20.0 * LAUNCHES as f64 } else { 0.0 };
    setting.begin(total);
    for (size, position) in cells {
        for routines in &fields {
            let operation = routines[0].function.operation();
            let contents = (position < size).then_some(Contents::DiffersAt(position));
            let task = setting.task(operation, size, Cell { contents, ..Cell::reused(SWEEP) });
            setting.record(&task, routines, &[(FIRST_DIFFERENCE, position as f64)])?;
            let text = format!("{operation} {}, difference at {position}", bytes(size));
            setting.out.advance(&text, 1.0);
        }
    }
    if has_pages {
        let order = order(setting, &compares);
        workload(setting, &compares, &order)?;
        launches(setting, &order)?;
    }
    Ok(())
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

/// Whole passes over the comparisons of pages, in turns.
fn workload(setting: &mut Setting, compares: &[Routine], order: &Order) -> Result {
    let mut set = PageSet::gather(&ROOTS, order.pages, order.seed)?;
    set.descend(order.comparisons, order.seed);
    let (pages, files, made) = (set.pages, set.files, set.pairs.len());
    let equal = made - set.first_differences().len();
    setting.out.note(format!(
        "pages: {pages} of 4096 bytes from {files} files, a third of them twice; {made} comparisons, {equal} of equal pages",
    ))?;
    let wanted = order.pages;
    if pages < wanted {
        let note = format!("found {pages} pages of {wanted} wanted: fewer files here than that");
        setting.out.note(note)?;
    }
    compares.iter().try_for_each(|routine| set.check(routine))?;
    let calls = compares.iter().map(|routine| set.call(routine)).collect();
    pages::measured(setting, PAGES, calls, &set)?;
    setting.out.advance("pages", 10.0);
    Ok(())
}

fn launches(setting: &mut Setting, order: &Order) -> Result {
    for launch in 1..=LAUNCHES {
        let stop = || setting.out.stopped();
        let outcome = match &setting.options.helper {
            Some(program) => launch::in_process_of_its_own(program, order, &stop)?,
            None => launch::run(order, &stop)?,
        };
        setting.out.rows(launch_rows(setting, launch, &outcome))?;
        setting.out.advance(&format!("launch {launch}"), 20.0);
    }
    Ok(())
}

/// A launch's rows: every kernel at every cut.
fn launch_rows(setting: &Setting, launch: usize, outcome: &launch::LaunchOutcome) -> Vec<Row> {
    let mut rows = Vec::new();
    let own = setting.options.helper.is_some();
    for (state, cut, join) in CUTS {
        let cell = CellKey::new("compare", PAGE_SIZE, state);
        let cell = cell.with(&[(LAUNCH, launch as f64)]);
        let named = |nth: usize| {
            let timed = &outcome.kernels[nth];
            (timed.name.as_str(), timed.mean_ns.as_slice())
        };
        for (nth, timed) in outcome.kernels.iter().enumerate() {
            let row = setting.compared(cell.clone(), named(nth), named(0));
            let calls = u32::try_from(timed.times.calls()).unwrap_or(u32::MAX);
            let histogram = Some(timed.times.histogram(cut, join));
            let figures = [
                ("below_100_ns", timed.times.share_below(100.0)),
                ("clock_cost_ns", outcome.cost_ns),
                ("clock_step_ns", outcome.resolution_ns),
                ("own_process", flag(own)),
            ];
            rows.push(Row { calls, histogram, ..row.with(&figures) });
        }
    }
    rows
}
