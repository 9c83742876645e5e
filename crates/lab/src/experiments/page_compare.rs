//! `page-compare`: seed 004 end to end. What comparing two pages costs a kernel that does not own the
//! vector registers: integers alone; vectors between saving and restoring them; and the first 64 bytes
//! by integers, then saving, vectors and restoring only where those are equal.
//!
//! Pairs of pages lie in memory, as ksmd meets most, and then in the L2; each with a first difference
//! drawn from a distribution: the seed's (004.6), or that of `--distribution FILE`, one line of
//! `position:probability` with 4096 for equal pages. The C library and this library's own entry stand
//! beside them as what a program would call.

use super::*;
use crate::distributions::{draw, read_list};
use cachewise_kernels::find;

/// Seed 004.6: of the pages that differ, 76, 83 and 84 % do so within 16, 32 and 64 bytes; the rest
/// anywhere behind. It says nothing of equal pages.
const SEED: [(usize, f64); 7] =
    [(4, 0.38), (12, 0.38), (24, 0.07), (48, 0.01), (320, 0.0533), (1024, 0.0533), (2560, 0.0534)];

/// Bytes that integers look at first (004.5).
const FIRST: usize = 64;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Time of a comparison, the vector registers' owner spared";
    vec![Figure::bars(title, "ns").by(&["state"])]
}

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_, '_>) -> Result<(), LabError> {
    setting.refuse_placements("pages are too many for any cache")?;
    setting.refuse_sizes("pages of 4096 bytes")?;
    let accepted = "position:probability,.. with positions up to 4096, which is equal pages";
    let positions = match &setting.options.distribution {
        Some(file) => read_list(file, accepted, PAGE_SIZE)?,
        None => SEED.to_vec(),
    };
    setting.out.begin(experiment.name, PAIRS.len() as f64);
    let caches = &setting.bench.machine.caches;
    let in_memory = caches.dram_bytes() / if setting.options.quick { 2 } else { 1 };
    for (state, wanted) in PAIRS.into_iter().zip([in_memory, caches.l2.bytes / 2]) {
        let pairs = Pairs::new(setting.bench.seed, wanted, &positions)?;
        let note = format!("{state}: {}, {} KiB", pairs.firsts.len(), pairs.bytes() >> 10);
        setting.out.note(note)?;
        compared(setting, &pairs, state)?;
        setting.out.advance(state, 1.0);
    }
    Ok(())
}

/// Everybody on the same pairs, in turns.
fn compared(setting: &mut Setting<'_, '_>, pairs: &Pairs, state: &str) -> Result<(), LabError> {
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
    for arm in &arms {
        pairs.check(arm)?;
    }
    let mut calls: Vec<Call<'_>> = arms.iter().map(|arm| bare(pairs, arm)).collect();
    if let (Some(integers), Some(vectors)) = (&integers, &vectors) {
        calls.extend(saved(setting, pairs, integers, vectors)?);
    }
    // The places are not used: the pages are the pairs'.
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::reused(state) };
    let task = setting.task(Operation::Compare, PAGE_SIZE, cell);
    let Some(found) = setting.measure(&task, &mut each(&mut calls))? else { return Ok(()) };
    let made = pairs.firsts.len();
    let within = [16, 32, 64].map(|most| pairs.within(most));
    of_pages(setting, &found, made, within, pairs.equal())
}

/// Pairs of pages beside each other in memory, in the order in which they are compared.
struct Pairs {
    arena: Arena,
    /// Where each pair's first difference is; a page's bytes where it has none.
    firsts: Vec<usize>,
    /// Which pair comes when.
    order: Vec<usize>,
}

impl Pairs {
    fn new(seed: u64, wanted: usize, positions: &[(usize, f64)]) -> Result<Pairs, LabError> {
        let room = MemoryBudget::process().left() / 2;
        let count = wanted.min(room) / (2 * PAGE_SIZE);
        let arena = Arena::new(count * 2 * PAGE_SIZE, PagePolicy::Default, seed)?;
        let mut random = fastrand::Rng::with_seed(seed);
        let firsts: Vec<usize> = (0..count).map(|_| draw(positions, &mut random)).collect();
        let mut order: Vec<usize> = (0..count).collect();
        random.shuffle(&mut order);
        let pairs = Pairs { arena, firsts, order };
        for (pair, &first) in pairs.firsts.iter().enumerate() {
            let (a, b) = pairs.pages(pair);
            // SAFETY: two pages of the arena, apart, used by nobody else.
            unsafe { b.copy_from_nonoverlapping(a, PAGE_SIZE) };
            if first < PAGE_SIZE {
                let at = b.wrapping_add(first);
                // SAFETY: a byte of the second page.
                let byte = unsafe { at.read() };
                // SAFETY: the same byte.
                unsafe { at.write(byte ^ 0x80) };
            }
        }
        Ok(pairs)
    }

    fn pages(&self, pair: usize) -> (*mut u8, *mut u8) {
        let first = self.arena.as_mut_ptr().wrapping_add(pair * 2 * PAGE_SIZE);
        (first, first.wrapping_add(PAGE_SIZE))
    }

    fn bytes(&self) -> usize {
        self.firsts.len() * 2 * PAGE_SIZE
    }

    /// Every pair once, in order.
    #[inline(always)]
    fn each(&self, mut compare: impl FnMut(*mut u8, *mut u8) -> i32) {
        for &pair in &self.order {
            let (a, b) = self.pages(pair);
            std::hint::black_box(compare(a, b));
        }
    }

    /// Part of the pairs that differ which do so within so many bytes.
    fn within(&self, bytes: usize) -> f64 {
        let different = self.firsts.iter().filter(|first| **first < PAGE_SIZE).count();
        let near = self.firsts.iter().filter(|first| **first < bytes).count();
        near as f64 / different.max(1) as f64
    }

    fn equal(&self) -> f64 {
        let equal = self.firsts.iter().filter(|first| **first >= PAGE_SIZE).count();
        equal as f64 / self.firsts.len().max(1) as f64
    }

    /// A routine has to answer by each pair's first difference.
    fn check(&self, routine: &Routine) -> Result<(), LabError> {
        let Function::Compare(compare) = routine.function else { return Ok(()) };
        for (pair, &first) in self.firsts.iter().enumerate() {
            let (a, b) = self.pages(pair);
            // SAFETY: two pages of the arena, and the CPU runs the routine.
            let found = unsafe { compare(a, b, PAGE_SIZE) };
            let expected = if first < PAGE_SIZE {
                // SAFETY: a byte of the first page.
                let x = unsafe { a.wrapping_add(first).read() };
                // SAFETY: a byte of the second page.
                let y = unsafe { b.wrapping_add(first).read() };
                i32::from(x) - i32::from(y)
            } else {
                0
            };
            if found.signum() != expected.signum() {
                return Err(LabError::WrongBytes(format!(
                    "{}: pages that differ at byte {first} first compare as {found}, expected \
                         the sign of {expected}",
                    routine.name
                )));
            }
        }
        Ok(())
    }
}

/// A routine on every pair.
fn bare<'p>(pairs: &'p Pairs, routine: &Routine) -> Call<'p> {
    let function = routine.function;
    Call::new(routine.name.clone(), move |places: &[Place]| {
        let Function::Compare(compare) = function else { return };
        for _ in places {
            // SAFETY: two pages, and the CPU runs the routine.
            pairs.each(|a, b| unsafe { compare(a, b, PAGE_SIZE) });
        }
    })
}

/// The vector kernel between saving and restoring, always and behind the first 64 bytes.
#[cfg(target_arch = "x86_64")]
fn saved<'p>(
    setting: &mut Setting<'_, '_>,
    pairs: &'p Pairs,
    integers: &Routine,
    vectors: &Routine,
) -> Result<Vec<Call<'p>>, LabError> {
    use crate::xstate::{self, Area, Support};
    let (Function::Compare(integer), Function::Compare(vector)) =
        (integers.function, vectors.function)
    else {
        return Ok(Vec::new());
    };
    let Some(support) = Support::detect() else {
        setting.out.note("skipped saving registers: this CPU or system has no XSAVE")?;
        return Ok(Vec::new());
    };
    let (save, components) = (support.honest(), support.components);
    let owned = move |area: &mut Area, a: *mut u8, b: *mut u8, compare: CompareFn| {
        // SAFETY: the instruction exists, the components are enabled.
        unsafe { area.save(save, components) };
        // SAFETY: two pages, and the CPU runs the kernel.
        let found = unsafe { compare(a, b, PAGE_SIZE) };
        // SAFETY: the components are enabled, and just saved.
        unsafe { area.restore(components) };
        found
    };
    let always = {
        let mut area = Area::new(&support);
        Call::new(format!("{}, saved", vectors.name), move |places: &[Place]| {
            // The interrupted program's registers are in use.
            // SAFETY: the components are enabled.
            unsafe { xstate::modify(components) };
            places.iter().for_each(|_| pairs.each(|a, b| owned(&mut area, a, b, vector)));
        })
    };
    let behind = {
        let mut area = Area::new(&support);
        Call::new(format!("{}, saved behind {FIRST} B", vectors.name), move |places: &[Place]| {
            // SAFETY: the components are enabled.
            unsafe { xstate::modify(components) };
            for _ in places {
                pairs.each(|a, b| {
                    // SAFETY: the beginnings of two pages, and every CPU runs integer kernels.
                    match unsafe { integer(a, b, FIRST) } {
                        0 => owned(&mut area, a, b, vector),
                        found => found,
                    }
                });
            }
        })
    };
    Ok(vec![always, behind])
}

#[cfg(not(target_arch = "x86_64"))]
fn saved<'p>(
    setting: &mut Setting<'_, '_>,
    _: &'p Pairs,
    _: &Routine,
    _: &Routine,
) -> Result<Vec<Call<'p>>, LabError> {
    setting.out.note("skipped saving registers: XSAVE exists on x86-64 only")?;
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_distribution_is_the_seeds() {
        let within = |bytes| -> f64 {
            SEED.iter().filter(|(at, _)| *at < bytes).map(|(_, part)| part).sum()
        };
        for (bytes, part) in [(16, 0.76), (32, 0.83), (64, 0.84), (PAGE_SIZE, 1.0)] {
            assert!((within(bytes) - part).abs() < 1e-9, "{bytes}");
        }
    }
}
