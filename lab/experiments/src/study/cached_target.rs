//! `cached-target`: non-temporal stores to a small target that is cached (001.2 to .5), and
//! `prefetchnta` by where the source is (002.9). Says which of the documents' CPUs this one is like.
//!
//! *Pre-read*: the target is read, every line, between the calls, and the calls alone are timed.
//! *Not read*: calls back to back, so that each meets what the last one left. *Far*: every call
//! finds its target in memory, which is what "memory speed" means here.

use super::{STUDY, Step, measured};
use crate::prelude::*;

/// State: the target is read, every line, between the calls, and the calls alone are timed.
const TARGET_READ: &str = "target pre-read";
/// State: a source at each level, with `prefetchnta` and without.
const PREFETCHNTA: &str = "prefetchnta";
/// Axis: 1 where the source is cached.
const SOURCE_CACHED: &str = "source_cached";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "cached-target",
    about: "non-temporal stores to a small target that is cached; prefetchnta by residency",
    seeds: &["001.2-5", "002.9"],
    operations: &[Operation::Copy],
    takes: &["--kernels", "--size"],
    classic: "the documents' instructions only: movntq, movntps, movnti, movntdq",
    tables: |rows| [TARGETS.tables(rows), PREFETCHING_BY_LEVEL.tables(rows)].concat(),
    figures,
    run: Some(run),
    ..STUDY
};

/// States of the target, for each size and source.
const TARGETS: Grid = Grid {
    of: |row| row.cell.state != PREFETCHNTA,
    caption: |row| {
        let is_cached = row.axis(SOURCE_CACHED).is_some_and(|is| is > 0.0);
        let source = if is_cached { "cached" } else { "in memory" };
        let size = bytes(row.cell.size);
        sized(row, format!("repeated to the same {size}, source {source}: GB/s (time over libc's)"))
    },
    column: |row| Some((0.0, row.cell.state.to_string())),
    cell: speed,
    legend: "of the copy alone; ~: cannot tell it from 1",
    ..Grid::PLAIN
};

/// `prefetchnta` by level.
const PREFETCHING_BY_LEVEL: Grid = Grid {
    of: |row| row.cell.state == PREFETCHNTA,
    caption: |_| ("prefetchnta by residency: GB/s (time over libc's)".to_owned(), None),
    column: |row| {
        let level = row.cell.source.map_or("-", Residency::name);
        Some((0.0, format!("{level}, {}", bytes(row.cell.size))))
    },
    proofs: true,
    ..TARGETS
};

/// Non-temporal stores by instruction: movntq, movntps, movnti, movntdq, and today's.
const AROUND: &str =
    "copy.mmx.nt copy.sse.nt copy.gpr64.nt copy.sse2.nt copy.avx.nt copy.avx512.nt";

/// Temporal stores: what "cached speed" means is the fastest of these and libc.
const THROUGH: &str =
    "copy.rep.movsq copy.gpr64 copy.mmx copy.sse2.movdqa copy.sse2 copy.avx copy.avx512";

/// Kernels of each list, from the first on, that the documents had.
const PERIOD: usize = 4;

/// Copies of seed 002 with `prefetchnta` (copyR, copyL, copyU, copyO); each is compared with its twin without.
const PREFETCHING: &str =
    "copy.sse2.movdqa.pf320 copy.mmx.pf320 copy.gpr64.pf320 copy.mmx.nt.pf320";

fn figures() -> Vec<Figure> {
    let bars = |title| Figure::bars(title, "gbps");
    vec![
        bars("Repeated to a small target").of("target").by(&["state", SOURCE_CACHED, "size"]),
        bars("prefetchnta by where the source is").of(PREFETCHNTA).by(&["source", "size"]),
    ]
}

fn run(setting: &mut Setting) -> Result {
    let [non_temporal, temporal, prefetching] = chosen(setting)?;
    let libc = || vec![libc_reference(Operation::Copy)];
    let mut steps = Vec::new();
    let mut step = |size, cell: Cell, routines: &[Routine]| {
        let axes = [
            ("target_pre_read", flag(cell.label == TARGET_READ)),
            (SOURCE_CACHED, flag(cell.source.level.is_none())),
        ];
        let axes = if cell.label == PREFETCHNTA { Vec::new() } else { axes.to_vec() };
        let mut task = setting.task(Operation::Copy, size, cell);
        task.plan.max_sample_ns = 5e7;
        let calls = Call::of_all(routines, true).into_iter().map(|call| {
            let axes = axes.clone();
            call.told(move |row| at(row, &axes))
        });
        steps.push(Step::new(task, calls.collect()));
    };
    if !non_temporal.is_empty() {
        let routines = [libc(), temporal, non_temporal].concat();
        let caches = &setting.bench.machine.caches;
        // A quarter of L1, so that source and target both stay; and a quarter of L2.
        let (l1, l2) = (caches.l1d.bytes / 4, caches.l2.bytes / 4);
        let own = if setting.options.quick { vec![l1] } else { vec![PAGE_SIZE, l1, l2] };
        for size in setting.sizes_or(own) {
            for source in [Placement::reused(512), Placement::at(Level::Dram, 512)] {
                let cell = |label: &str| Cell { source, ..Cell::reused(label) };
                let far = Placement::at(Level::Dram, 0);
                step(size, cell(TARGET_READ).read_after(Delay::None, 1.0), &routines);
                step(size, cell("target not read"), &routines);
                step(size, Cell { destination: far, ..cell("target far") }, &routines);
            }
        }
    }
    if !prefetching.is_empty() {
        let routines = [libc(), prefetching].concat();
        for level in Level::ALL {
            let size = default_sizes(level, true, &setting.bench.machine.caches)[0];
            let cell = Cell { label: PREFETCHNTA.into(), ..Cell::placed(level, level) };
            step(size, cell, &routines);
        }
    }
    measured(setting, steps)
}

/// The lists above, the documents' part of them with `--classic`, or what was asked for:
/// non-temporal ones compete, temporal ones set cached speed, prefetching ones bring their twin, each after it.
fn chosen(setting: &mut Setting) -> Result<[Vec<Routine>; 3]> {
    type Kernels = Vec<&'static Kernel>;
    let features = setting.bench.features;
    let most = if setting.options.classic { PERIOD } else { usize::MAX };
    let own = || {
        let lists = [AROUND, THROUGH, PREFETCHING];
        lists.into_iter().flat_map(|names| names.split(' ').take(most)).filter_map(find).collect()
    };
    let here = asked_or(setting, &[Operation::Copy], own)?;
    let (prefetching, straight): (Kernels, Kernels) =
        here.into_iter().partition(|kernel| matches!(kernel.prefetch, Prefetch::Nta(_)));
    let (non_temporal, mut temporal): (Kernels, Kernels) =
        straight.into_iter().partition(|kernel| kernel.is_non_temporal());
    if non_temporal.is_empty() && prefetching.is_empty() {
        return nothing(
            "none of the kernels chosen stores non-temporally or prefetches by prefetchnta, and \
             this experiment is about these",
        );
    }
    // Cached speed needs somebody to set it, beside libc.
    if temporal.is_empty() && !non_temporal.is_empty() {
        temporal.extend(widest(Operation::Copy, features).map(|(widest, _)| widest));
    }
    let twin = |with| Some([without_prefetch(with).filter(|twin| twin.runs_on(features))?, with]);
    let prefetching = prefetching.into_iter().filter_map(twin).flatten().collect();
    let routines = |kernels: Kernels| kernels.into_iter().map(Routine::from).collect();
    Ok([non_temporal, temporal, prefetching].map(routines))
}

/// Twin of a kernel without its `prefetchnta`: `copy.mmx` for `copy.mmx.pf320`.
fn without_prefetch(kernel: &Kernel) -> Option<&'static Kernel> {
    let parts: Vec<&str> = kernel.name.split('.').filter(|part| !part.starts_with("pf")).collect();
    find(&parts.join(".")).filter(|twin| twin.name != kernel.name)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_listed_kernel_exists_with_its_twin() {
        for name in AROUND.split(' ').chain(THROUGH.split(' ')) {
            assert!(find(name).is_some(), "{name}");
        }
        for name in PREFETCHING.split(' ') {
            let twin = find(name).and_then(without_prefetch).map(|kernel| kernel.name);
            assert_eq!(twin, name.strip_suffix(".pf320"));
        }
    }
}
