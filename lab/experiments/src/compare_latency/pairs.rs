//! Pairs of pages: seed 004 end to end. What comparing two pages costs a kernel that does not own the
//! vector registers: integers alone; vectors between saving and restoring them; and the first 64 bytes
//! by integers, then saving, vectors and restoring only where those are equal.
//!
//! Pairs of pages lie in memory, as ksmd meets most, and then in the L2; each with a first difference
//! drawn from a distribution: that of KSM (004.6), or that of `--distribution FILE`, one line of
//! `position:probability` with 4096 for equal pages. The C library and this library's own entry stand
//! beside them as what a program would call.

use crate::pages::{self, PageSet};
use crate::prelude::*;
use cachewise_measure::distributions::{draw, read_list};

/// KSM's (004.6, from a later commit on the documents' routine): of the pages that differ, 76, 83 and 84 % do so within 16, 32 and 64 bytes; the rest
/// anywhere behind. It says nothing of equal pages.
const SEED: [(usize, f64); 7] =
    [(4, 0.38), (12, 0.38), (24, 0.07), (48, 0.01), (320, 0.0533), (1024, 0.0533), (2560, 0.0534)];

pub(super) fn figures() -> Vec<Figure> {
    let title = "Time of a comparison, the vector registers' owner spared";
    vec![Figure::bars(title, "ns").by(&["state"]).of("pairs")]
}

pub(super) fn run(setting: &mut Setting) -> Result {
    let accepted = "position:probability,.. with positions up to 4096, which is equal pages";
    let positions = match &setting.options.distribution {
        Some(file) => read_list(file, accepted, PAGE_SIZE)?,
        None => SEED.to_vec(),
    };
    let caches = &setting.bench.machine.caches;
    let in_memory = caches.dram_bytes() / if setting.options.quick { 2 } else { 1 };
    let cells = PAIRS.into_iter().zip([in_memory, caches.l2.bytes / 2]).collect();
    setting.through(cells, alike, |setting, (state, wanted)| {
        let set = pairs(setting.bench.seed, wanted, &positions)?;
        let kib = (set.pages * PAGE_SIZE) >> 10;
        setting.out.note(format!("{state}: {}, {kib} KiB", set.pairs.len()))?;
        compared(setting, &set, state)?;
        Ok(state.to_owned())
    })
}

/// Everybody on the same pairs, in turns.
fn compared(setting: &mut Setting, set: &PageSet, state: &str) -> Result {
    let features = setting.bench.features;
    let class = widest_class(features);
    let of_class = |kernel: &&Kernel| {
        kernel.operation() == Operation::Compare
            && kernel.registers == class
            && is_plain(kernel)
            && kernel.runs_on(features)
    };
    let integers = find("compare.gpr64").map(Routine::from);
    let vectors = TABLE.iter().find(of_class).map(Routine::from);
    let mut arms = vec![libc_reference(Operation::Compare), library(Operation::Compare)];
    arms.extend(integers.iter().chain(&vectors).cloned());
    arms.iter().try_for_each(|arm| set.check(arm))?;
    let mut calls: Vec<Call<'_>> = arms.iter().map(|arm| set.call(arm)).collect();
    if let (Some(integers), Some(vectors)) = (&integers, &vectors) {
        calls.extend(saved(setting, set, integers, vectors)?);
    }
    pages::measured(setting, state, calls, set)
}

/// Pairs of pages beside each other in memory, each with a first difference drawn from those positions,
/// in the order in which they are compared.
fn pairs(seed: u64, wanted: usize, positions: &[(usize, f64)]) -> Result<PageSet> {
    let room = MemoryBudget::process().left() / 2;
    let count = wanted.min(room) / (2 * PAGE_SIZE);
    let mut set = PageSet::new(2 * count, PagePolicy::Default, seed)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut page = vec![0; PAGE_SIZE];
    for first in (0..2 * count as u32).step_by(2) {
        random.fill(&mut page);
        set.push(&page);
        if let Some(byte) = page.get_mut(draw(positions, &mut random)) {
            *byte ^= 0x80;
        }
        set.push(&page);
        set.pairs.push((first, first + 1));
    }
    random.shuffle(&mut set.pairs);
    Ok(set)
}

/// The vector kernel between saving and restoring, always and behind the first 64 bytes.
#[cfg(target_arch = "x86_64")]
fn saved<'p>(
    setting: &mut Setting,
    set: &'p PageSet,
    integers: &Routine,
    vectors: &Routine,
) -> Result<Vec<Call<'p>>> {
    use crate::xstate::{self, Area, Support};
    /// Bytes that integers look at first (004.5).
    const FIRST: usize = 64;
    let Function::Compare(integer) = integers.function else { return Ok(Vec::new()) };
    let vector = vectors.function;
    let Some(support) = Support::detect() else {
        setting.out.note("skipped saving registers: this CPU or system has no XSAVE")?;
        return Ok(Vec::new());
    };
    let (save, components) = (support.honest(), support.components);
    let owned = move |area: &mut Area, place: &Place| {
        // SAFETY: the instruction exists, the components are enabled.
        unsafe { area.save(save, components) };
        once(vector, place);
        // SAFETY: the components are enabled, and just saved.
        unsafe { area.restore(components) };
    };
    // The interrupted program's registers are in use.
    // SAFETY: the components are enabled.
    let interrupted = move || unsafe { xstate::modify(components) };
    let (mut area, mut other) = (Area::new(&support), Area::new(&support));
    let always = move |places: &[Place]| {
        interrupted();
        places.iter().flat_map(|_| set.places()).for_each(|place| owned(&mut area, &place));
    };
    let behind = move |places: &[Place]| {
        interrupted();
        for place in places.iter().flat_map(|_| set.places()) {
            // SAFETY: the beginnings of two pages, and every CPU runs integer kernels.
            if unsafe { integer(place.dst, place.src, FIRST) } == 0 {
                owned(&mut other, &place);
            }
        }
    };
    let name = &vectors.name;
    Ok(vec![
        Call::new(format!("{name}, saved"), always),
        Call::new(format!("{name}, saved behind {FIRST} B"), behind),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn saved<'p>(
    setting: &mut Setting,
    _: &'p PageSet,
    _: &Routine,
    _: &Routine,
) -> Result<Vec<Call<'p>>> {
    setting.out.note("skipped saving registers: XSAVE exists on x86-64 only")?;
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_seeds_distribution_is_the_seeds() {
        let within = |length| -> f64 {
            SEED.iter().filter(|(at, _)| *at < length).map(|(_, part)| part).sum()
        };
        for (length, part) in [(16, 0.76), (32, 0.83), (64, 0.84), (PAGE_SIZE, 1.0)] {
            assert!((within(length) - part).abs() < 1e-9, "{length}");
        }
    }
}
