//! Rows, and what they imply: costs, choices, regrets, gains. Pure; `tune.rs` measures.

use crate::decide::{self, AtSize, Cost, Range};
use crate::routines::LIBC;
use crate::tune::EXPERIMENT;
use cachewise::Reuse;
use cachewise_kernels::{Kernel, Operation};
use cachewise_measure::{Caches, PairedRatio, Row, State};
use std::collections::BTreeMap;

/// The label of [`State::Beside`], whatever its bystander.
const BESIDE: &str = "beside";

/// The weight of what an interval shows; the rest is the median's.
const SHOWN: f64 = 0.9;

/// Ratios count as at least this. What a bystander loses is a difference of two walks, and where their
/// noise is larger than all the rest, the sum can come out at nothing or below.
const LEAST: f64 = 0.05;

/// Where between 1 and the median a ratio counts: see [`Evidence::shown`].
fn shown(pair: &PairedRatio) -> f64 {
    // An interval that is none shows nothing.
    let nearest = match (pair.low, pair.high) {
        (low, high) if low > 1.0 && high >= low => low,
        (low, high) if high < 1.0 && high >= low => high,
        _ => 1.0,
    };
    let counted = |ratio: f64| ratio.max(LEAST).ln();
    (SHOWN * counted(nearest) + (1.0 - SHOWN) * counted(pair.median)).exp()
}

/// A decision: one operation, one hint, one range of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What is done.
    pub operation: Operation,
    /// The caller's hint.
    pub reuse: Reuse,
    /// Sizes and kernel.
    pub range: Range,
}

impl Decided {
    pub(crate) fn covers(&self, operation: Operation, reuse: Reuse, size: usize) -> bool {
        self.operation == operation
            && self.reuse == reuse
            && self.range.from <= size
            && self.range.to.is_none_or(|to| size <= to)
    }
}

/// Rows, and what they imply.
pub struct Evidence {
    /// (operation, size, state) -> kernel -> ratio to libc of the state's sum, one per launch.
    ratios: BTreeMap<(String, u64, String), BTreeMap<String, Vec<PairedRatio>>>,
    /// Bytes of the last level that answered like cache, and bytes that it has, where others used
    /// the rest.
    lent: Option<(usize, usize)>,
}

impl Evidence {
    /// From the rows of one or several launches; rows of dropped candidates do not count.
    #[must_use]
    pub fn new(rows: &[Row]) -> Evidence {
        let mut evidence = Evidence { ratios: BTreeMap::new(), lent: None };
        for row in rows.iter().filter(|row| !row.dropped) {
            let Some(ratio) = row.total_ratio.or(row.ratio) else { continue };
            if !ratio.median.is_finite() {
                continue;
            }
            let key = (row.cell.operation.clone(), row.cell.size, row.cell.state.to_string());
            evidence
                .ratios
                .entry(key)
                .or_default()
                .entry(row.candidate.clone())
                .or_default()
                .push(ratio);
        }
        evidence
    }

    /// The same rows, taken on a machine with these caches.
    #[must_use]
    pub fn on(mut self, caches: &Caches) -> Evidence {
        self.lent = caches.llc_usable.map(|usable| (usable, caches.llc.bytes));
        self
    }

    /// Whether the buffers of a call did not fit into what the last level had left for us, but would
    /// if its other users were quiet. They come and go within minutes; a decision stays. Such a call
    /// goes through the cache, unless nobody is to read what it writes.
    #[must_use]
    pub fn may_fit_again(&self, operation: Operation, reuse: Reuse, size: usize) -> bool {
        let buffers = match operation {
            Operation::Copy | Operation::Move | Operation::CopyPages => 2,
            Operation::Compare | Operation::Equal => 2,
            Operation::Fill | Operation::Zero | Operation::ZeroPages => 1,
        };
        let bytes = size.saturating_mul(buffers);
        reuse != Reuse::Never
            && self.lent.is_some_and(|(usable, all)| usable < bytes && bytes <= all)
    }

    fn launches(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<&[PairedRatio]> {
        let key = (operation.name().to_owned(), size as u64, state.to_owned());
        self.ratios.get(&key)?.get(kernel).map(Vec::as_slice)
    }

    /// A kernel's ratio to libc in one state, the median over launches.
    #[must_use]
    pub fn ratio(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<f64> {
        let medians = self.launches(operation, size, state, kernel)?.iter().map(|pair| pair.median);
        Some(cachewise_measure::stats::median(&medians.collect::<Vec<_>>()))
    }

    /// The same as it counts in a decision: as far from 1 as its interval shows, and a tenth of the
    /// way that it does not. What lies within the noise then hardly moves anything, but
    /// still breaks ties.
    #[must_use]
    pub fn shown(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<f64> {
        let shown = self.launches(operation, size, state, kernel)?.iter().map(shown);
        Some(cachewise_measure::stats::median(&shown.collect::<Vec<_>>()))
    }

    /// Its ratio with its interval, of the last launch.
    #[must_use]
    pub fn pair(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<PairedRatio> {
        self.launches(operation, size, state, kernel)?.last().copied()
    }

    /// Largest over smallest ratio of the same kernel in the same cell between launches: median
    /// over cells, and the worst. `None` for one launch.
    #[must_use]
    pub fn spread_between_launches(&self) -> Option<(f64, f64)> {
        let spreads: Vec<f64> = self
            .ratios
            .values()
            .flat_map(BTreeMap::values)
            .filter(|ratios| ratios.len() > 1)
            .map(|ratios| {
                let most = ratios.iter().map(|pair| pair.median).fold(f64::MIN, f64::max);
                let least = ratios.iter().map(|pair| pair.median).fold(f64::MAX, f64::min);
                most / least - 1.0
            })
            .collect();
        let worst = spreads.iter().copied().reduce(f64::max)?;
        Some((cachewise_measure::stats::median(&spreads), worst))
    }

    /// Sizes at which an operation was measured warm.
    #[must_use]
    pub fn sizes(&self, operation: Operation) -> Vec<usize> {
        self.ratios
            .keys()
            .filter(|(name, _, state)| name == operation.name() && state == State::Warm.as_str())
            .map(|(_, size, _)| *size as usize)
            .collect()
    }

    /// Every kernel's cost at a size under a hint, as METHODOLOGY.md weighs it; kernels that were
    /// not measured in every state that counts have none.
    fn as_measured(&self, operation: Operation, reuse: Reuse, size: usize) -> AtSize {
        let mut kernels: Vec<&String> = self
            .ratios
            .iter()
            .filter(|((name, bytes, _), _)| name == operation.name() && *bytes == size as u64)
            .flat_map(|(_, ratios)| ratios.keys())
            .filter(|kernel| kernel.as_str() != LIBC)
            .collect();
        kernels.sort_unstable();
        kernels.dedup();
        let costs: Vec<Cost> = kernels
            .into_iter()
            .filter_map(|kernel| self.cost(operation, reuse, size, kernel))
            .collect();
        AtSize { size, costs }
    }

    /// The same without kernels around the cache where the buffers [may fit
    /// again](Evidence::may_fit_again).
    #[must_use]
    pub fn at(&self, operation: Operation, reuse: Reuse, size: usize) -> AtSize {
        let AtSize { size, mut costs } = self.as_measured(operation, reuse, size);
        let through = |cost: &Cost| {
            cachewise_kernels::find(&cost.kernel).is_some_and(|kernel| !kernel.is_non_temporal())
        };
        if self.may_fit_again(operation, reuse, size) && costs.iter().any(through) {
            costs.retain(through);
        }
        AtSize { size, costs }
    }

    fn cost(&self, operation: Operation, reuse: Reuse, size: usize, kernel: &str) -> Option<Cost> {
        // A move apart is the same loop as the copy of its technique, so reader and bystander are
        // measured behind the copy.
        let (behind, twin) = if operation == Operation::Move {
            (Operation::Copy, kernel.replacen("move.", "copy.", 1))
        } else {
            (operation, kernel.to_owned())
        };
        let measured = |operation: Operation, state: &str| {
            let key = (operation.name().to_owned(), size as u64, state.to_owned());
            self.ratios.contains_key(&key)
        };
        // Both as they count: the cost, and what the guard looks at. A kernel around the cache has to be
        // shown harmless, one through it harmful: what the first does to a reader nobody can undo.
        let around = cachewise_kernels::find(kernel).is_some_and(Kernel::is_non_temporal);
        let weigh = |operation: Operation, state: &str, kernel: &str| {
            let shown = self.shown(operation, size, state, kernel)?;
            let guarded = if around { self.ratio(operation, size, state, kernel)? } else { shown };
            Some((shown, guarded))
        };
        // Plain states; `None` when one was measured without this kernel.
        let plain = || -> Option<(f64, f64)> {
            let mut ratios = vec![weigh(operation, State::Warm.as_str(), kernel)?];
            for state in [State::Misaligned, State::Overlap] {
                if measured(operation, state.as_str()) {
                    ratios.push(weigh(operation, state.as_str(), kernel)?);
                }
            }
            if measured(behind, State::Aliased.as_str()) {
                ratios.push(weigh(behind, State::Aliased.as_str(), &twin)?);
            }
            if measured(behind, State::Fresh.as_str()) {
                // Through the cache it is measured for libc alone.
                let (ratio, worst) = weigh(behind, State::Fresh.as_str(), &twin)
                    .filter(|_| around)
                    .unwrap_or((1.0, 1.0));
                ratios.push((ratio, worst * (decide::GUARD / decide::READ_GUARD)));
            }
            let mean =
                ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
            Some((mean.exp(), ratios.iter().map(|(_, worst)| *worst).fold(f64::MIN, f64::max)))
        };
        // Reader and bystander are measured with buffers apart in their low bits. Half of the callers
        // are taken to have theirs alike; what the kernel loses to libc by that it loses under every
        // hint. What it is ahead apart, and not alike, is no loss.
        let alike = || -> Option<f64> {
            let behind_libc = |state: State| {
                self.shown(behind, size, state.as_str(), &twin).map(|ratio| ratio.max(1.0))
            };
            Some((behind_libc(State::Aliased)? / behind_libc(State::Warm)?).max(1.0).sqrt())
        };
        let alike = alike().unwrap_or(1.0);
        let by_layout = |(ratio, worst)| Some((ratio * alike, worst));
        let read = || weigh(behind, State::Read.as_str(), &twin).and_then(by_layout);
        let beside = || weigh(behind, BESIDE, &twin).and_then(by_layout);
        let followed = measured(behind, State::Read.as_str()) && measured(behind, BESIDE);
        let (ratio, worst) = match reuse {
            Reuse::Soon if followed => read()?,
            Reuse::Never if followed => beside()?,
            Reuse::Unknown if followed => {
                let ((plain, worst), read, (beside, _)) = (plain()?, read()?, beside()?);
                let worst = worst.max(read.1 * (decide::GUARD / decide::READ_GUARD));
                (plain.powf(0.5) * read.0.powf(0.25) * beside.powf(0.25), worst)
            }
            _ => plain()?,
        };
        Some(Cost { kernel: kernel.to_owned(), ratio, worst })
    }

    /// The kernel per size under a hint. Where not even the largest size measured is too large for a
    /// last level that others use, one more size follows, the first power of two that is: there the
    /// costs are those of the largest, which did not fit into what was left.
    #[must_use]
    pub fn choices(&self, operation: Operation, reuse: Reuse) -> Vec<(usize, String)> {
        let sizes = self.sizes(operation);
        let mut grid: Vec<AtSize> =
            sizes.iter().map(|&size| self.at(operation, reuse, size)).collect();
        if let Some(&largest) = sizes.last()
            && self.may_fit_again(operation, reuse, largest)
            && !self.may_fit_again(operation, reuse, 2 * largest)
        {
            let beyond = self.as_measured(operation, reuse, largest);
            grid.push(AtSize { size: 2 * largest, ..beyond });
        }
        decide::sequence(&grid)
    }
}

/// Time over libc's of a decision's kernel in one state, over all rounds of all grid sizes in its
/// range; `None` where that was not measured.
#[must_use]
pub fn gains(rows: &[Row], decision: &Decided, state: &str) -> Option<PairedRatio> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut reference: Option<&Row> = None;
    for row in rows.iter().filter(|row| row.experiment == EXPERIMENT && row.cell.state == state) {
        let size = usize::try_from(row.cell.size).ok()?;
        if row.cell.operation != decision.operation.name()
            || !decision.covers(decision.operation, decision.reuse, size)
        {
            continue;
        }
        if row.candidate == LIBC {
            reference = Some(row);
        } else if row.candidate == decision.range.kernel
            && !row.dropped
            && let Some(libc) = reference.filter(|libc| libc.cell == row.cell)
        {
            let rounds = row.operation_ns.len().min(libc.operation_ns.len());
            ours.extend(row.total_ns().into_iter().take(rounds));
            theirs.extend(libc.total_ns().into_iter().take(rounds));
        }
    }
    (!ours.is_empty()).then(|| PairedRatio::new(&ours, &theirs, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::{CacheLevel, CellKey};

    fn row(operation: &str, size: u64, kernel: &str, ratio: f64) -> Row {
        Row {
            experiment: EXPERIMENT.into(),
            cell: CellKey {
                operation: operation.into(),
                size,
                source: None,
                destination: None,
                state: State::Warm.as_str().into(),
                reader: None,
                bystander: None,
                axes: BTreeMap::new(),
            },
            candidate: kernel.into(),
            reference: LIBC.into(),
            calls: 1,
            operation_ns: vec![ratio; 8],
            reader_ns: Vec::new(),
            bystander_ns: Vec::new(),
            ratio: Some(PairedRatio::new(&[ratio; 8], &[1.0; 8], 0)),
            verdict: None,
            total_ratio: None,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: BTreeMap::new(),
            histogram: None,
        }
    }

    fn caches(llc_usable: Option<usize>) -> Caches {
        let level = |bytes| CacheLevel { bytes, shared_by: 1, source: "assumed".into() };
        Caches {
            l1d: level(32 << 10),
            l2: level(512 << 10),
            llc: level(32 << 20),
            llc_usable,
            notes: Vec::new(),
        }
    }

    fn noisy(
        operation: &str,
        size: u64,
        kernel: &str,
        (low, median, high): (f64, f64, f64),
    ) -> Row {
        let ratio = PairedRatio { median, low, high, rounds: 15 };
        Row { ratio: Some(ratio), ..row(operation, size, kernel, median) }
    }

    #[test]
    fn noise_changes_no_kernel() {
        let mut rows = Vec::new();
        for octave in 10..=20 {
            rows.push(noisy("fill", 1 << octave, "fill.avx", (0.94, 0.95, 0.96)));
            // Better in the middle of its interval, which reaches from half to one and a third.
            let wide = if octave == 15 { (0.52, 0.80, 1.33) } else { (1.0, 1.01, 1.02) };
            rows.push(noisy("fill", 1 << octave, "fill.rep.stosb", wide));
        }
        let choices = Evidence::new(&rows).choices(Operation::Fill, Reuse::Unknown);
        assert!(choices.iter().all(|(_, kernel)| kernel == "fill.avx"), "{choices:?}");
        // Shown, the same difference does.
        rows.retain(|row| row.cell.size != 1 << 15);
        rows.push(noisy("fill", 1 << 15, "fill.avx", (0.94, 0.95, 0.96)));
        rows.push(noisy("fill", 1 << 15, "fill.rep.stosb", (0.79, 0.80, 0.81)));
        let choices = Evidence::new(&rows).choices(Operation::Fill, Reuse::Unknown);
        let there =
            choices.iter().find(|(size, _)| *size == 1 << 15).map(|(_, name)| name.as_str());
        assert_eq!(there, Some("fill.rep.stosb"));
    }

    #[test]
    fn around_the_cache_has_to_be_shown_harmless() {
        // The same wide interval: no reason against the way through the cache, one against the other.
        let interval = (0.9, 1.2, 1.4);
        let at = |kernel: &str| {
            let evidence = Evidence::new(&[noisy("copy", 1 << 20, kernel, interval)]);
            evidence.at(Operation::Copy, Reuse::Unknown, 1 << 20).costs[0].clone()
        };
        let (through, around) = (at("copy.sse2"), at("copy.sse2.nt"));
        assert!((through.ratio - around.ratio).abs() < 1e-12);
        assert!(through.worst < decide::GUARD, "{through:?}");
        assert!(around.worst > decide::GUARD, "{around:?}");
    }

    #[test]
    fn what_a_layout_costs_counts_under_every_hint() {
        let mut rows = Vec::new();
        let mut state = |kernel: &str, state: &str, ratio: f64| {
            let mut row = row("copy", 1 << 20, kernel, ratio);
            row.cell.state = state.into();
            rows.push(row);
        };
        for kernel in ["copy.sse2.nt", "copy.avx.nt.pages4"] {
            state(kernel, "warm", 1.0);
            state(kernel, "read", 1.0);
        }
        // A little better for the bystander, five times slower where the low bits are alike.
        state("copy.sse2.nt", "beside", 0.62);
        state("copy.avx.nt.pages4", "beside", 0.60);
        state("copy.sse2.nt", "alike", 1.0);
        state("copy.avx.nt.pages4", "alike", 5.0);
        let evidence = Evidence::new(&rows);
        for reuse in [Reuse::Never, Reuse::Unknown, Reuse::Soon] {
            let at = evidence.at(Operation::Copy, reuse, 1 << 20);
            assert_eq!(
                at.best().map(|cost| cost.kernel.as_str()),
                Some("copy.sse2.nt"),
                "{reuse:?}"
            );
        }
    }

    #[test]
    fn a_kernel_ahead_in_every_state_is_ahead() {
        let mut rows = Vec::new();
        let states = ["warm", "alike", "read", "beside"];
        // Between buffers alike it loses most of its lead, and nothing to libc.
        for (kernel, ratios) in
            [("copy.avx", [0.78, 0.97, 0.87, 1.0]), ("copy.rep.movsb", [0.95, 1.0, 0.95, 1.0])]
        {
            for (state, ratio) in states.into_iter().zip(ratios) {
                let mut row = row("copy", 4096, kernel, ratio);
                row.cell.state = state.into();
                rows.push(row);
            }
        }
        for reuse in [Reuse::Soon, Reuse::Unknown] {
            let at = Evidence::new(&rows).at(Operation::Copy, reuse, 4096);
            assert_eq!(at.best().map(|cost| cost.kernel.as_str()), Some("copy.avx"), "{reuse:?}");
        }
    }

    #[test]
    fn onto_fresh_pages_only_the_ways_around_are_compared() {
        let mut rows = vec![row("fill", 8 << 20, "fill.sse2", 0.9)];
        rows.push(row("fill", 8 << 20, "fill.avx.nt", 0.9));
        for (kernel, ratio) in [("fill.avx.nt", 1.2), ("libc", 1.0)] {
            let mut fresh = row("fill", 8 << 20, kernel, ratio);
            fresh.cell.state = State::Fresh.as_str().into();
            rows.push(fresh);
        }
        let at = Evidence::new(&rows).at(Operation::Fill, Reuse::Unknown, 8 << 20);
        let cost = |kernel: &str| at.costs.iter().find(|cost| cost.kernel == kernel).expect(kernel);
        assert!((cost("fill.sse2").ratio - 0.9_f64.sqrt()).abs() < 1e-12);
        assert!((cost("fill.avx.nt").ratio - (0.9_f64 * 1.2).sqrt()).abs() < 1e-12);
        // A fifth lost there is inside the guard, which leaves a reader as much.
        assert!(cost("fill.avx.nt").worst < decide::GUARD);
    }

    #[test]
    fn a_ratio_counts_as_far_as_it_is_shown() {
        let pair = |low, median, high| PairedRatio { median, low, high, rounds: 15 };
        assert!((shown(&pair(0.5, 0.8, 1.3)) - 0.8_f64.powf(1.0 - SHOWN)).abs() < 1e-12);
        assert!((shown(&pair(1.2, 1.2, 1.2)) - 1.2).abs() < 1e-12);
        let proved = shown(&pair(0.7, 0.8, 0.9));
        assert!((0.88..0.9).contains(&proved), "{proved}");
        // Noise larger than what was measured, and no interval at all.
        assert!((shown(&pair(-0.4, -0.2, -0.1)) - LEAST).abs() < 1e-12);
        let none = shown(&pair(f64::NAN, 0.8, f64::NAN));
        assert!((none - 0.8_f64.powf(1.0 - SHOWN)).abs() < 1e-12);
    }

    #[test]
    fn beyond_the_whole_last_level_what_was_measured_decides() {
        // The largest size measured would still fit into the whole cache.
        let mut rows = Vec::new();
        for octave in 20..=25 {
            rows.push(row("zero", 1 << octave, "zero.sse2.nt", 0.5));
            rows.push(row("zero", 1 << octave, "zero.sse2", 1.0));
        }
        let crowded = Evidence::new(&rows).on(&caches(Some(1 << 20)));
        let choices = crowded.choices(Operation::Zero, Reuse::Unknown);
        let last: Vec<(usize, &str)> =
            choices.iter().rev().take(2).map(|(size, name)| (*size, name.as_str())).collect();
        assert_eq!(last, [(64 << 20, "zero.sse2.nt"), (32 << 20, "zero.sse2")]);
        // All of it ours, or far from its size: nothing is added.
        assert_eq!(Evidence::new(&rows).choices(Operation::Zero, Reuse::Unknown).len(), 6);
        rows.retain(|row| row.cell.size < 8 << 20);
        let small = Evidence::new(&rows).on(&caches(Some(1 << 20)));
        assert_eq!(small.choices(Operation::Zero, Reuse::Unknown).len(), 3);
    }

    /// From 1 MiB on the way around the cache is twice as fast, as where the LLC is somebody else's.
    fn evidence(operation: &str, around: &str, through: &str) -> Evidence {
        let mut rows = Vec::new();
        for octave in 20..=26 {
            rows.push(row(operation, 1 << octave, around, 0.5));
            rows.push(row(operation, 1 << octave, through, 1.0));
        }
        Evidence::new(&rows)
    }

    fn first_around(evidence: &Evidence, operation: Operation, reuse: Reuse) -> Option<usize> {
        let choices = evidence.choices(operation, reuse);
        let around =
            |kernel: &str| cachewise_kernels::find(kernel).expect(kernel).is_non_temporal();
        choices.into_iter().find(|(_, kernel)| around(kernel)).map(|(size, _)| size)
    }

    #[test]
    fn a_cache_that_others_use_now_is_not_written_off() {
        let copies = || evidence("copy", "copy.sse2.nt", "copy.sse2");
        let first =
            |usable, reuse| first_around(&copies().on(&caches(usable)), Operation::Copy, reuse);
        // All of it is ours: what was measured is what there is.
        assert_eq!(first(None, Reuse::Unknown), Some(1 << 20));
        // Two buffers of 16 MiB would fit into the 32 MiB that the CPU has.
        assert_eq!(first(Some(1 << 20), Reuse::Unknown), Some(32 << 20));
        assert_eq!(first(Some(1 << 20), Reuse::Soon), Some(32 << 20));
        assert_eq!(first(Some(1 << 20), Reuse::Never), Some(1 << 20));
        // A single buffer of 32 MiB does.
        let zeros = evidence("zero", "zero.sse2.nt", "zero.sse2").on(&caches(Some(1 << 20)));
        assert_eq!(first_around(&zeros, Operation::Zero, Reuse::Unknown), Some(1 << 20));
        assert!(!zeros.may_fit_again(Operation::Zero, Reuse::Unknown, 1 << 20));
        assert!(zeros.may_fit_again(Operation::Zero, Reuse::Unknown, 32 << 20));
        assert!(!zeros.may_fit_again(Operation::Zero, Reuse::Unknown, (32 << 20) + 1));
    }

    #[test]
    fn a_way_around_is_taken_where_there_is_no_other() {
        let rows = [row("copy", 4 << 20, "copy.sse2.nt", 0.5)];
        let alone = Evidence::new(&rows).on(&caches(Some(1 << 20)));
        assert_eq!(alone.at(Operation::Copy, Reuse::Unknown, 4 << 20).costs.len(), 1);
    }
}
