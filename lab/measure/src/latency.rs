//! Times of a dependent load at each level of this machine: the yardstick of the residency
//! proofs.
//!
//! Lines are visited in random order by loads of which each needs the one before it, so that no
//! prefetcher helps and no two overlap. The proofs use the same chase, therefore whatever it
//! adds to the bare latency (address translation included) is on both sides of their comparison.

use crate::level::Level;
use crate::units::bytes as human;
use crate::{Arena, Caches, Clock, LINE, MeasureError, MemoryBudget, PagePolicy};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::OnceLock;

/// Nanoseconds per dependent load that finds its line at each level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// In the level 1 data cache.
    #[serde(with = "crate::rounded")]
    pub l1: f64,
    /// In the level 2 cache.
    #[serde(with = "crate::rounded")]
    pub l2: f64,
    /// In the last-level cache of this core complex.
    #[serde(with = "crate::rounded")]
    pub llc: f64,
    #[serde(with = "crate::rounded")]
    pub dram: f64,
    /// The footprint in bytes that `llc` holds for: half of the LLC, or less where half of it
    /// already answers like memory.
    #[serde(default)]
    pub llc_bytes: usize,
}

/// Lines timed per level at most; more would only cost time.
const MOST_LINES: usize = 16_384;

/// The buffer for memory is never larger than this, so that calibration stays under a second.
const MOST_BYTES: usize = 512 << 20;

/// Two levels whose latencies differ by less than this factor cannot be told apart.
pub(crate) const BLURRED: f64 = 1.2;

impl Caches {
    /// Has operands that are meant for the LLC made for so much of it, whatever was found. All of it is the most.
    pub fn count_on(&mut self, usable: usize) {
        self.llc_usable = (usable < self.llc.bytes).then_some(usable);
    }

    /// Takes note of how much of the LLC answers like one, as its [latency](Latencies::llc_bytes)
    /// shows, so that operands meant for it are made no larger.
    pub fn note_usable(&mut self, latencies: &Latencies) {
        let usable = latencies.llc_bytes;
        if self.has_l3() && usable > 0 && usable < self.llc.bytes / 2 {
            self.llc_usable = Some(usable);
            self.notes.push(format!(
                "of an LLC of {} only about {} answer faster than memory: the rest is not ours",
                human(self.llc.bytes as u64),
                human(usable as u64)
            ));
        }
    }
}

impl Latencies {
    /// The latencies of this process. The first call calibrates them, in well under a second: it chases
    /// through 3/4 of L1, half of L2, half of the LLC (or less of it, see
    /// [`llc_bytes`](Latencies::llc_bytes)) and a buffer of [`Caches::dram_bytes`] (at most 512 MiB and
    /// what the process's memory budget leaves).
    ///
    /// # Errors
    /// [`MeasureError::OverBudget`] when not even the caches' buffers fit, and
    /// [`MeasureError::Map`].
    pub fn shared(clock: &Clock, caches: &Caches) -> Result<Latencies, MeasureError> {
        static SHARED: OnceLock<Latencies> = OnceLock::new();
        if let Some(latencies) = SHARED.get() {
            return Ok(*latencies);
        }
        let latencies = Latencies::calibrate(clock, caches)?;
        Ok(*SHARED.get_or_init(|| latencies))
    }

    fn calibrate(clock: &Clock, caches: &Caches) -> Result<Latencies, MeasureError> {
        let budget = MemoryBudget::process();
        let wanted = caches.dram_bytes().min(MOST_BYTES);
        let bytes =
            if wanted > budget.left() { (budget.left() / 2).max(caches.llc.bytes) } else { wanted };
        let arena = Arena::within(&budget, bytes, PagePolicy::Huge, 0x1A7E)?;
        let mut random = fastrand::Rng::with_seed(0x1A7E);
        let dram = memory(clock, &arena, &mut random);
        // Twice, some ten milliseconds apart, and the better of the two: whatever disturbs the
        // caches (a neighbour, a core that is still slow) makes them look slower and smaller.
        let (mut l1, mut l2) = (f64::INFINITY, f64::INFINITY);
        let (mut llc, mut llc_bytes) = (f64::INFINITY, 0);
        for _ in 0..2 {
            l1 = l1.min(cached(clock, &arena, caches.l1d.bytes / 4 * 3, &mut random));
            l2 = l2.min(cached(clock, &arena, caches.l2.bytes / 2, &mut random));
            let (found, bytes) = last_level(clock, &arena, caches, dram, &mut random);
            if bytes > llc_bytes || (bytes == llc_bytes && found < llc) {
                (llc, llc_bytes) = (found, bytes);
            }
        }
        Ok(Latencies { l1, l2, llc, dram, llc_bytes })
    }

    pub fn at(&self, level: Level) -> f64 {
        match level {
            Level::L1 => self.l1,
            Level::L2 => self.l2,
            Level::Llc => self.llc,
            Level::Dram => self.dram,
        }
    }

    /// The levels before and behind `level`, and that itself. `has_l3` is false where the last level
    /// is the L2 itself.
    fn around(level: Level, has_l3: bool) -> (Option<Level>, Level, Option<Level>) {
        let levels = Level::ALL.into_iter().filter(|level| has_l3 || *level != Level::Llc);
        let level = if !has_l3 && level == Level::Llc { Level::L2 } else { level };
        (levels.clone().rfind(|near| *near < level), level, levels.clone().find(|far| *far > level))
    }

    /// The range in which a probe counts as having found its lines at `level`: bounded by the
    /// geometric means with the neighbouring levels, by 0 below L1 and by ten times the latency
    /// above memory.
    pub(crate) fn expected(&self, level: Level, has_l3: bool) -> (f64, f64) {
        let (near, level, far) = Latencies::around(level, has_l3);
        let own = self.at(level);
        let between = |other| (own * self.at(other)).sqrt();
        (near.map_or(0.0, between), far.map_or(own * 10.0, between))
    }

    /// The neighbour whose latency is within 20 % of `level`'s (or even on its wrong side), if
    /// there is one: the two cannot be told apart, and no probe proves anything.
    pub(crate) fn blurred_with(&self, level: Level, has_l3: bool) -> Option<Level> {
        let (near, level, far) = Latencies::around(level, has_l3);
        let apart = |near: Level, far: Level| self.at(far) >= self.at(near) * BLURRED;
        let too_near = near.filter(|near| !apart(*near, level));
        too_near.or(far.filter(|far| !apart(level, *far)))
    }
}

/// The latency of the LLC and the footprint it holds for: from half of the LLC, halved (down to
/// twice the L2) until the latency is nearer to what the smallest footprint shows than to memory.
fn last_level(
    clock: &Clock,
    arena: &Arena,
    caches: &Caches,
    dram: f64,
    random: &mut fastrand::Rng,
) -> (f64, usize) {
    let half = caches.llc.bytes / 2;
    if !caches.has_l3() {
        return (cached(clock, arena, half, random), half);
    }
    let least = (2 * caches.l2.bytes).min(half);
    let near = cached(clock, arena, least, random);
    let mut bytes = half;
    while bytes > least {
        let found = cached(clock, arena, bytes, random);
        if found * found <= near * dram {
            return (found, bytes);
        }
        bytes = (bytes / 2).max(least);
    }
    (near, least)
}

/// The lower quartile over passes of the latency in the first `bytes` of the arena, which earlier
/// passes have brought as near as they fit.
fn cached(clock: &Clock, arena: &Arena, bytes: usize, random: &mut fastrand::Rng) -> f64 {
    let bytes = bytes.min(arena.len());
    let mut lines = line_numbers(bytes);
    random.shuffle(&mut lines);
    let lines_timed = lines.len().min(MOST_LINES);
    let passes = if lines.len() > MOST_LINES { 2 } else { 64 };
    let mut times = Vec::with_capacity(passes);
    // Warmed in visiting order: of least recently used lines the first timed one is the oldest,
    // hence as far out as this footprint gets.
    read(arena.as_mut_ptr(), &lines);
    for _ in 0..passes {
        read(arena.as_mut_ptr(), &lines[lines_timed..]);
        times.push(chase(clock, arena.as_mut_ptr(), &lines[..lines_timed]));
    }
    crate::stats::quantile(&times, 0.25)
}

/// Walks the whole arena and then times lines of its first half, which the walk over the rest has
/// driven out.
fn memory(clock: &Clock, arena: &Arena, random: &mut fastrand::Rng) -> f64 {
    let mut lines = line_numbers(arena.len() / 2);
    random.shuffle(&mut lines);
    lines.truncate(MOST_LINES);
    crate::bystander::read_lines(arena.as_mut_ptr(), arena.len());
    crate::bystander::read_lines(arena.as_mut_ptr().wrapping_add(arena.len() / 2), arena.len() / 2);
    let eighths: Vec<f64> = lines
        .chunks(lines.len().div_ceil(8).max(1))
        .map(|part| chase(clock, arena.as_mut_ptr(), part))
        .collect();
    crate::stats::median(&eighths)
}

fn line_numbers(bytes: usize) -> Vec<u32> {
    (0..(bytes / LINE).max(1) as u32).collect()
}

/// Loads from each of `lines` in turn, none of which waits for another: they leave the caches as a [`chase`] does, in
/// a tenth of its time.
fn read(base: *const u8, lines: &[u32]) {
    for line in lines {
        // SAFETY: a line of the arena, mapped and initialised, whose start is aligned for a word.
        unsafe { base.wrapping_add(*line as usize * LINE).cast::<usize>().read_volatile() };
    }
}

/// Nanoseconds per load of a chain of dependent loads from each of `lines` in turn, counted from
/// `base`; 0 for none.
///
/// The next address is the next line's plus the loaded value masked with a zero that the compiler
/// cannot see: a dependence without having to store pointers in the lines.
pub(crate) fn chase(clock: &Clock, base: *const u8, lines: &[u32]) -> f64 {
    if lines.is_empty() {
        return 0.0;
    }
    let nothing = black_box(0_usize);
    let mut carried = 0_usize;
    let from = clock.now();
    for line in lines {
        let address = base.wrapping_add(*line as usize * LINE).wrapping_add(carried & nothing);
        // SAFETY: the mask is zero, so this is a line of the arena, mapped and initialised, and
        // a line's start is aligned for a word.
        carried = unsafe { address.cast::<usize>().read_volatile() };
    }
    let to = clock.now();
    black_box(carried);
    clock.nanoseconds(from, to) / lines.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_UP: Latencies =
        Latencies { l1: 1.0, l2: 4.0, llc: 16.0, dram: 100.0, llc_bytes: 8 << 20 };

    #[test]
    fn ranges_meet_at_the_geometric_mean() {
        assert_eq!(MADE_UP.expected(Level::L1, true), (0.0, 2.0));
        assert_eq!(MADE_UP.expected(Level::L2, true), (2.0, 8.0));
        assert_eq!(MADE_UP.expected(Level::Llc, true), (8.0, 40.0));
        assert_eq!(MADE_UP.expected(Level::Dram, true), (40.0, 1000.0));
        assert_eq!(MADE_UP.expected(Level::Llc, false), (2.0, 20.0));
        assert_eq!(MADE_UP.expected(Level::Dram, false), (20.0, 1000.0));
    }

    #[test]
    fn neighbours_too_close_are_blurred() {
        assert_eq!(MADE_UP.blurred_with(Level::L2, true), None);
        let flat = Latencies { dram: 18.0, ..MADE_UP };
        assert_eq!(flat.blurred_with(Level::Dram, true), Some(Level::Llc));
        assert_eq!(flat.blurred_with(Level::Llc, true), Some(Level::Dram));
        assert_eq!(flat.blurred_with(Level::L2, true), None);
        let inverted = Latencies { llc: 3.0, ..MADE_UP };
        assert_eq!(inverted.blurred_with(Level::L2, true), Some(Level::Llc));
        assert_eq!(inverted.blurred_with(Level::Llc, false), None);
    }

    #[test]
    fn calibration_works_within_its_limits() {
        let clock = Clock::calibrate();
        let caches = crate::Machine::describe().caches;
        // CPU time of this thread: other programs' time does not count.
        let used = || crate::children::usage(libc::RUSAGE_THREAD).ru_utime.tv_sec;
        let begun = used();
        let latencies = Latencies::calibrate(&clock, &caches).expect("latencies");
        assert!(used() - begun < 20, "calibration never ends");
        for level in Level::ALL {
            let ns = latencies.at(level);
            assert!(ns.is_finite() && ns > 0.0, "{level}: {ns}");
        }
        assert!(latencies.dram > latencies.l1, "{latencies:?}");
    }
}
