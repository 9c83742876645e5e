//! Plan of the measurement: sizes, states and numbers of samples. Pure functions of the machine's facts.

use super::seam::{After, Contents, Destination, Facts, Layout, TuningCell};
use cachewise::profile::FIRST_SIZE;
use cachewise_judge::estimate::{Estimate, Sure};
use cachewise_kernels::Operation;

#[cfg(test)]
mod tests;

/// The largest size of a minute's tuning: what is promised is about sizes up to this.
pub(super) const TOP: usize = 64 << 20;

/// The budget that [`TOP`] belongs to, in seconds.
pub(super) const MINUTE: f64 = 60.0;

/// From here on sizes are whole octaves. All octaves up to some size take as long as that size does, and half
/// octaves three quarters of it: up to an eighth of the largest size they add less than a tenth to an epoch.
pub(super) fn half_octaves_to(top: usize) -> usize {
    top.max(TOP) / 8
}

/// Borders of small and of large sizes for a grid up to `top`: three bands of three octaves and more, so
/// that a visit in one takes at least eight times as long as in the one below.
pub(super) fn bands(top: usize) -> [usize; 2] {
    [half_octaves_to(top) / 8, half_octaves_to(top)]
}

/// Below this many bytes no non-temporal kernel is a candidate: what so few lines
/// evict cannot be told from noise, and a fence costs as much as the whole operation.
pub(super) const NON_TEMPORAL_FROM: usize = 4096;

/// One state in which an operation is weighed.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub destination: Destination,
    pub layout: Layout,
    pub contents: Contents,
    /// Its part in the mean; the guard holds in every view.
    pub weight: f64,
    /// True if an arm must be shown to keep the guard here; else it may not be shown to break it.
    pub proven: bool,
    /// Sizes for which it is a state of its own.
    from: usize,
    to: usize,
    /// Above this many bytes no cell is visited for it. On the same operands again and again a call takes
    /// what a cached one takes, without its reader: they are beyond L2 either way.
    visited_to: usize,
}

impl View {
    /// Estimate that is held against the guard here: where nothing need be proven, the other end of the interval.
    pub(super) fn judged(&self, seen: Estimate) -> Estimate {
        if self.proven { seen } else { seen.from_the_other_end(Sure::Likely) }
    }

    pub(super) fn covers(&self, size: usize) -> bool {
        (self.from..=self.to).contains(&size)
    }

    pub(super) fn is_visited(&self, size: usize) -> bool {
        self.covers(size) && size <= self.visited_to
    }

    /// Returns whether the referee looks at a size. In a view that needs no proof these include the sizes that no visit of the race is spent on, too:
    /// a difference at an early place costs what a small size does.
    pub(super) fn is_refereed(&self, size: usize) -> bool {
        self.is_visited(size) || !self.proven && self.covers(size)
    }

    /// Returns whether a cell of this view's operation, without what comes after it, is what this view has there.
    pub(super) fn is_call_of(&self, cell: &TuningCell) -> bool {
        let cached = View { destination: Destination::Cached, ..*self };
        self.destination == Destination::Repeated
            && cell.size > self.visited_to
            && cached.holds(cell)
    }

    /// Its cell at a size. Operands that lie apart do so on lines' starts in every other round, and
    /// anywhere in the rest.
    pub(super) fn cell(&self, operation: Operation, size: usize, odd: bool) -> TuningCell {
        let layout = match self.layout {
            Layout::Aligned if odd => Layout::Misaligned,
            layout => layout,
        };
        let after = match self.destination {
            Destination::Repeated => After::Nothing,
            _ => after(operation),
        };
        let contents = self.contents;
        TuningCell { layout, after, contents, ..TuningCell::new(operation, size, self.destination) }
    }

    /// Returns whether a cell is this view's.
    pub(super) fn holds(&self, cell: &TuningCell) -> bool {
        let layout = if cell.layout == Layout::Misaligned { Layout::Aligned } else { cell.layout };
        (self.destination, self.layout, self.contents) == (cell.destination, layout, cell.contents)
    }
}

/// Operations that store have a reader.
pub(super) fn after(operation: Operation) -> After {
    if stores(operation) { After::Reader } else { After::Nothing }
}

pub(super) fn stores(operation: Operation) -> bool {
    !matches!(operation, Operation::Compare | Operation::Equal)
}

/// Operands of a call.
pub(super) fn operands(operation: Operation) -> usize {
    if matches!(operation, Operation::Fill | Operation::Zero) { 1 } else { 2 }
}

/// The views of an operation.
pub(super) fn views(operation: Operation, facts: &Facts) -> Vec<View> {
    let view = |destination, layout, weight, from, to| View {
        destination,
        layout,
        contents: Contents::Equal,
        weight,
        proven: true,
        from,
        to,
        visited_to: if destination == Destination::Repeated { facts.l2 } else { usize::MAX },
    };
    // Beyond twice the cache nothing stays in it, whatever ran before.
    let both_to = 2 * facts.llc_usable.max(facts.l2);
    let mut views = vec![
        view(Destination::Cached, Layout::Aligned, 1.0, 0, usize::MAX),
        view(Destination::Evicted, Layout::Aligned, 1.0, 0, both_to),
        // For what it shows to lose: a program that calls on nothing else in between is rare.
        view(Destination::Repeated, Layout::Aligned, 0.0, 0, usize::MAX),
    ];
    match operation {
        // A page and more, while loads come soon enough to meet the stores before them.
        Operation::Copy => {
            views.push(view(Destination::Cached, Layout::Aliased, 0.2, 4096, 1 << 20));
        }
        Operation::Move => {
            views.push(view(Destination::Cached, Layout::OverlapUp, 0.5, 0, usize::MAX));
            // Upwards through memory is as between operands that lie apart.
            views.push(view(Destination::Cached, Layout::OverlapDown, 0.5, 0, both_to));
        }
        Operation::Compare | Operation::Equal => {
            let unequal = View {
                contents: Contents::Unequal,
                ..view(Destination::Cached, Layout::Aligned, 1.0, 0, usize::MAX)
            };
            // A kernel that reads several vectors before it tests the first waits for lines that libc does
            // not read: twice its time, at any size. Smaller differences are lost in memory's noise.
            views.push(View {
                destination: Destination::Evicted,
                weight: 0.0,
                proven: false,
                visited_to: 4096,
                ..unequal
            });
            views.push(unequal);
        }
        _ => {}
    }
    views
}

/// The sizes that are decided from: half octaves, then octaves, up to `top`.
pub(super) fn grid(top: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut octave = FIRST_SIZE as usize;
    let half_octaves_to = half_octaves_to(top);
    while octave <= top {
        sizes.push(octave);
        let half = octave + octave / 2;
        if octave < half_octaves_to && half <= top {
            sizes.push(half);
        }
        octave *= 2;
    }
    sizes
}

/// The largest size worth measuring: with the destination alone beyond such a cache. An epoch takes as long again
/// for every octave more, so that beyond [`TOP`] the largest size grows with the budget and not faster: as many
/// rounds as in a minute are left.
pub(super) fn largest(cache: usize, budget: f64) -> usize {
    let afforded = TOP as f64 * budget / MINUTE;
    (2 * cache).min(afforded as usize).max(TOP)
}

/// The largest size measured.
pub(super) fn top(facts: &Facts, budget: f64) -> usize {
    largest(facts.cache(), budget).min(facts.largest).max(FIRST_SIZE as usize)
}

/// Returns whether what was decided at the largest size holds for every larger one: memory did not limit what was measured,
/// and the destination alone was more than all caches, of others too. libc changes its ways at parts of the
/// LLC that the CPU says it has.
pub(super) fn extends(facts: &Facts, sizes: &[usize]) -> bool {
    let top = sizes.last().copied().unwrap_or(0);
    top >= TOP && top as f64 >= 1.25 * facts.llc.max(facts.cache()) as f64
}

/// Returns whether a non-temporal arm competes while the destination may be read again: the
/// operands do not fit into the LLC even if its other users are quiet. Those come and go within
/// minutes, a decision stays.
pub(super) fn beyond_llc(operation: Operation, size: usize, facts: &Facts) -> bool {
    size.saturating_mul(operands(operation)) > facts.llc.max(facts.cache())
}

/// Samples of one visit. Of calls on the same operands each is the mean of many.
pub(super) fn samples(cell: &TuningCell, first: bool) -> usize {
    match (cell.size, first || cell.destination == Destination::Repeated) {
        (..0x1_0000, true) => 3,
        (..0x10_0000, true) => 2,
        (_, true) => 1,
        (..0x1_0000, false) => 7,
        (..0x10_0000, false) => 5,
        (..0x100_0000, false) => 2,
        _ => 1,
    }
}

/// Octaves that each size of a grid stands for.
pub(super) fn weights(sizes: &[usize]) -> Vec<f64> {
    let at = |index: usize| (sizes[index] as f64).log2();
    let last = sizes.len() - 1;
    (0..sizes.len())
        .map(|index| match (index, index == last) {
            (0, true) => 1.0,
            (0, false) => at(1) - at(0),
            (_, true) => at(last) - at(last - 1),
            _ => (at(index + 1) - at(index - 1)) / 2.0,
        })
        .collect()
}
