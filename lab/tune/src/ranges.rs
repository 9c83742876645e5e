//! From costs to ranges of sizes: pure.

use super::plan::weights;
pub(super) use cachewise_judge::margin::SWITCH;

/// Position of libc among the arms.
pub(super) const LIBC: usize = 0;

/// Ranges that an operation under `unknown` may have.
pub(super) const MOST_RANGES: usize = 6;

/// Ranges of a grid above which comes one range more, unless its last arm goes on.
pub(super) fn most_ranges(extends: bool) -> usize {
    MOST_RANGES - usize::from(!extends)
}

/// A non-temporal arm, and the first size that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct From {
    pub size: usize,
    pub arm: usize,
}

/// The arm per size with the least sum of cost times octaves and [`SWITCH`] per change, in at most `most`
/// ranges, by dynamic programming. `cost[arm][size]` is a logarithm over libc's; `None` where the arm
/// is not admissible; libc always is. From `below_libc`, which a decision for libc comes to at small sizes,
/// to libc the change is there anyway: it costs nothing to make it elsewhere.
pub(super) fn choose(
    cost: &[Vec<Option<f64>>],
    below_libc: Option<usize>,
    sizes: &[usize],
    most: usize,
) -> Vec<usize> {
    let weights = weights(sizes);
    let arms = cost.len();
    let here = |arm: usize, size: usize| {
        cost[arm][size].map_or(f64::INFINITY, |cost| cost * weights[size])
    };
    // best[ranges][arm]: the least cost up to this size; back: where that came from.
    let mut best = vec![vec![f64::INFINITY; arms]; most];
    best[0] = (0..arms).map(|arm| here(arm, 0)).collect();
    let mut back: Vec<Vec<Vec<(usize, usize)>>> = Vec::with_capacity(sizes.len());
    for size in 1..sizes.len() {
        let mut next = best.clone();
        let mut from = vec![vec![(0, 0); arms]; most];
        for ranges in 0..most {
            let changed = (ranges > 0).then(|| {
                let before = &best[ranges - 1];
                let arm = (0..arms).min_by(|a, b| before[*a].total_cmp(&before[*b])).unwrap_or(0);
                (arm, before[arm] + SWITCH)
            });
            for arm in 0..arms {
                let stay = best[ranges][arm];
                let free = below_libc.filter(|_| arm == LIBC && ranges > 0);
                let free = free.map(|below| (below, best[ranges - 1][below]));
                let changed = changed.into_iter().chain(free).min_by(|a, b| a.1.total_cmp(&b.1));
                (next[ranges][arm], from[ranges][arm]) = match changed {
                    Some((other, cost)) if cost < stay => (cost, (ranges - 1, other)),
                    _ => (stay, (ranges, arm)),
                };
                next[ranges][arm] += here(arm, size);
            }
        }
        best = next;
        back.push(from);
    }
    let ends = (0..most).flat_map(|ranges| (0..arms).map(move |arm| (ranges, arm)));
    let mut at = ends.min_by(|a, b| best[a.0][a.1].total_cmp(&best[b.0][b.1])).unwrap_or((0, 0));
    let mut chosen = vec![at.1];
    for from in back.iter().rev() {
        at = from[at.0][at.1];
        chosen.push(at.1);
    }
    chosen.reverse();
    settle(&mut chosen);
    chosen
}

/// Leaves to libc what is no range: a kernel at one size with libc on both sides was shown there and
/// nowhere near.
pub(super) fn settle(chosen: &mut [usize]) {
    for at in 0..chosen.len() {
        let libc = |other: Option<usize>| other.is_none_or(|other| chosen[other] == LIBC);
        let above = (at + 1 < chosen.len()).then_some(at + 1);
        if libc(at.checked_sub(1)) && libc(above) {
            chosen[at] = LIBC;
        }
    }
}

/// A run of sizes with one arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub from: u64,
    /// The last size, inclusive.
    pub to: u64,
    pub arm: usize,
}

/// Border between two kernels, between two sizes of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Border {
    /// In their middle.
    #[default]
    Middle,
    /// Behind the lower size: the lower kernel lost between them.
    Lower,
    /// At the upper size: the upper kernel lost between them.
    Upper,
}

impl Border {
    /// The first size of the upper kernel.
    pub(super) fn start(self, low: usize, high: usize) -> u64 {
        let class = |size: usize| cachewise::size_class(size as u64);
        match self {
            Border::Lower => *class(low).end() + 1,
            Border::Middle => *class((low as f64 * high as f64).sqrt() as usize).start(),
            Border::Upper => *class(high).start(),
        }
    }
}

/// The ranges that an arm per size of the grid stands for. Between a kernel and libc is libc: what lies
/// between a size where it was shown better and one where it was not is not shown. Between two
/// kernels is their border, in the order of the sizes; the middle where none is given. Above the grid the last
/// arm goes on where that `extends`, else libc.
pub(super) fn ranges(
    sizes: &[usize],
    chosen: &[usize],
    borders: &[Border],
    extends: bool,
) -> Vec<Range> {
    let mut ranges = vec![Range { from: sizes[0] as u64, to: u64::MAX, arm: chosen[0] }];
    let mut cut = |from: u64, arm: usize| {
        if let Some(open) = ranges.last_mut().filter(|open| open.arm != arm) {
            open.to = from - 1;
            ranges.push(Range { from, to: u64::MAX, arm });
        }
    };
    for (at, (size, arm)) in sizes.windows(2).zip(chosen.windows(2)).enumerate() {
        let border = match (arm[0], arm[1]) {
            (LIBC, _) => Border::Upper,
            (_, LIBC) => Border::Lower,
            _ => borders.get(at).copied().unwrap_or_default(),
        };
        cut(border.start(size[0], size[1]), arm[1]);
    }
    if !extends && let Some(last) = sizes.last() {
        cut(*cachewise::size_class(*last as u64).end() + 1, LIBC);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 5] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14];

    #[test]
    fn a_switch_has_to_pay_and_inadmissible_arms_are_not_taken() {
        let level = vec![Some(0.0); 5];
        let cost = |a: f64| vec![Some(a); 5];
        assert_eq!(choose(&[level.clone(), cost(-0.2)], None, &SIZES, 6), [1; 5]);
        // A tenth of a switch's price in all.
        let mut once = vec![Some(0.05); 5];
        once[2] = Some(-0.01);
        assert_eq!(choose(&[level.clone(), once], None, &SIZES, 6), [0; 5]);
        let mut holed = cost(-0.2);
        holed[2] = None;
        assert_eq!(choose(&[level.clone(), holed.clone()], None, &SIZES, 6), [1, 1, 0, 1, 1]);
        // Three ranges are one too many.
        let two = choose(&[level, holed], None, &SIZES, 2);
        assert!(two == [1, 1, 0, 0, 0] || two == [0, 0, 0, 1, 1], "{two:?}");
    }

    #[test]
    fn a_change_that_is_there_anyway_may_be_elsewhere() {
        let libc = vec![Some(0.0), Some(0.0), Some(0.03), Some(0.02), Some(0.0)];
        let kernel = vec![Some(0.0), Some(0.0), Some(0.0), Some(0.01), Some(0.05)];
        assert_eq!(choose(&[libc.clone(), kernel.clone()], None, &SIZES, 6), [0; 5]);
        assert_eq!(choose(&[libc, kernel], Some(1), &SIZES, 6), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_single_size_is_no_range() {
        let settled = |mut chosen: Vec<usize>| {
            settle(&mut chosen);
            chosen
        };
        assert_eq!(settled(vec![1, 0, 1, 0, 2]), [0; 5]);
        assert_eq!(settled(vec![0, 1, 2, 0, 0]), [0, 1, 2, 0, 0]);
        assert_eq!(settled(vec![1, 1, 0, 0, 0]), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn between_a_kernel_and_libc_is_libc() {
        let found = ranges(&SIZES, &[0, 1, 1, 2, 0], &[], true);
        let range = |from, to, arm| Range { from, to, arm };
        assert_eq!(
            found,
            [
                range(1024, 2047, 0),
                range(2048, 5631, 1),
                range(5632, 9215, 2),
                range(9216, u64::MAX, 0)
            ]
        );
        // Above what was measured only where nothing changes any more.
        assert_eq!(ranges(&SIZES, &[1; 5], &[], true).len(), 1);
        assert_eq!(ranges(&SIZES, &[1; 5], &[], false)[1], range(18432, u64::MAX, 0));
    }

    #[test]
    fn a_border_between_two_kernels_may_lie_at_either_size() {
        for (border, second) in
            [(Border::Lower, 4608), (Border::Middle, 5632), (Border::Upper, 8192)]
        {
            let borders = [border; 4];
            let found = ranges(&SIZES, &[0, 1, 1, 2, 0], &borders, true);
            let starts: Vec<u64> = found.iter().map(|range| range.from).collect();
            assert_eq!(starts, [1024, 2048, second, 9216], "beside libc there is no choice");
        }
    }
}
