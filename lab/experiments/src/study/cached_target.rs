//! `cached-target`: non-temporal stores to a small target that is cached (001.2 to .5), and
//! `prefetchnta` by where the source is (002.9). Says which of the documents' CPUs this one is like.
//!
//! *Pre-read*: the target is read, every line, between the calls, and the calls alone are timed.
//! *Not read*: calls back to back, so that each meets what the last one left. *Far*: every call
//! finds its target in memory, which is what "memory speed" means here.

use crate::prelude::*;
use cachewise_kernels::find;

/// Non-temporal stores by instruction: movntq, movntps, movnti, movntdq, and today's.
const AROUND: &str =
    "copy.mmx.nt copy.sse.nt copy.gpr64.nt copy.sse2.nt copy.avx.nt copy.avx512.nt";

/// Temporal stores: what "cached speed" means is the fastest of these and libc.
const THROUGH: &str =
    "copy.rep.movsq copy.gpr64 copy.mmx copy.sse2.movdqa copy.sse2 copy.avx copy.avx512";

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

pub(super) fn figures() -> Vec<Figure> {
    let bars = |title| Figure::bars(title, "gbps");
    vec![
        bars("Repeated to a small target").of("target").by(&["state", SOURCE_CACHED, "size"]),
        bars("prefetchnta by where the source is").of(PREFETCHNTA).by(&["source", "size"]),
    ]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let [non_temporal, temporal, prefetching] = chosen(setting)?;
    let mut cells = Vec::new();
    if !non_temporal.is_empty() {
        for size in sizes(setting) {
            for source in [Placement::reused(512), Placement::at(Level::Dram, 512)] {
                let cell = |label: &str| Cell { source, ..Cell::reused(label) };
                let far = Placement::at(Level::Dram, 0);
                cells.extend([
                    (size, cell(TARGET_READ).read_after(Delay::None, 1.0)),
                    (size, cell(TARGET_UNREAD)),
                    (size, Cell { destination: far, ..cell(TARGET_FAR) }),
                ]);
            }
        }
    }
    if !prefetching.is_empty() {
        for level in Level::ALL {
            let size = default_sizes(level, true, &setting.bench.machine.caches)[0];
            cells.push((size, Cell { label: PREFETCHNTA.into(), ..Cell::placed(level, level) }));
        }
    }
    let libc = || vec![libc_reference(Operation::Copy)];
    let straight = [libc(), temporal, non_temporal].concat();
    let prefetching = [libc(), prefetching].concat();
    setting.through(cells, alike, |setting, (size, cell)| {
        let text = format!("{} {}", bytes(size), cell.label);
        let cached = cell.source.level.is_none();
        let axes = [(PRE_READ, flag(cell.label == TARGET_READ)), (SOURCE_CACHED, flag(cached))];
        let (routines, axes) = match cell.label == PREFETCHNTA {
            true => (&prefetching, &[][..]),
            false => (&straight, &axes[..]),
        };
        let mut task = setting.task(Operation::Copy, size, cell);
        task.plan.max_sample_ns = 5e7;
        setting.record(&task, routines, axes)?;
        Ok(text)
    })
}

/// The lists above, the documents' part of them with `--classic`, or what was asked for:
/// non-temporal ones compete, temporal ones set cached speed, prefetching ones bring their twin, each after it.
fn chosen(setting: &mut Setting) -> Result<[Vec<Routine>; 3]> {
    type Kernels = Vec<&'static Kernel>;
    let features = setting.bench.features;
    let most = if setting.options.classic { PERIOD } else { usize::MAX };
    let own = || {
        let straight = [AROUND, THROUGH].into_iter().flat_map(|names| names.split(' ').take(most));
        straight.chain(PREFETCHING.iter().map(|(with, _)| *with)).filter_map(find).collect()
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

/// The same kernel without its `prefetchnta`: `copy.mmx` for `copy.mmx.pf320`.
pub(super) fn without_prefetch(kernel: &Kernel) -> Option<&'static Kernel> {
    let parts: Vec<&str> = kernel.name.split('.').filter(|part| !part.starts_with("pf")).collect();
    find(&parts.join(".")).filter(|twin| twin.name != kernel.name)
}

/// A quarter of L1, so that source and target both stay; and a quarter of L2.
fn sizes(setting: &Setting) -> Vec<usize> {
    let caches = &setting.bench.machine.caches;
    let (l1, l2) = (caches.l1d.bytes / 4, caches.l2.bytes / 4);
    setting.sizes_or(if setting.options.quick { vec![l1] } else { vec![PAGE_SIZE, l1, l2] })
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_listed_kernel_exists_with_its_twin() {
        use super::*;
        for name in AROUND.split(' ').chain(THROUGH.split(' ')) {
            assert!(find(name).is_some(), "{name}");
        }
        for (with, without) in PREFETCHING {
            let twin = find(with).and_then(without_prefetch).map(|kernel| kernel.name);
            assert_eq!(twin, Some(*without));
        }
    }
}
