//! From costs to decisions: pure functions, no measuring.
//!
//! The input is, for each size of the grid, what each kernel costs relative to this machine's libc
//! under one hint. The output is the cheapest sequence of kernels over the sizes, where every
//! change of kernel has to earn its keep ([`SWITCH_COST`]), so that two tunings of a quiet machine
//! do not differ by a coin toss.

/// What a change of kernel between neighbouring sizes has to gain, as a logarithm of the cost
/// summed over the sizes it applies to: 3 %, the resolution a quick tuning can honestly claim.
pub const SWITCH_COST: f64 = 0.03;

/// A kernel that loses by more than this to libc in any one of the states that were weighed is not
/// chosen while another does not: the sum must not hide a loss that some caller will meet.
pub const GUARD: f64 = 1.05;

/// Under a hint that knows nothing, a kernel may lose this much where the destination is read at
/// once; more counts as outside [`GUARD`].
pub const READ_GUARD: f64 = 1.25;

/// One kernel at one size: cost over libc's cost, below 1 is faster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Canonical kernel name.
    pub kernel: String,
    /// The weighed cost ratio that the hint implies.
    pub ratio: f64,
    /// The worst ratio among the states that were weighed.
    pub worst: f64,
}

/// Every kernel measured at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct AtSize {
    /// Bytes of the operation.
    pub size: usize,
    /// One entry per kernel that was measured to the end.
    pub costs: Vec<Cost>,
}

impl AtSize {
    fn of(&self, kernel: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.kernel == kernel)
    }

    /// The cheapest kernel here.
    #[must_use]
    pub fn best(&self) -> Option<&Cost> {
        self.costs.iter().min_by(|a, b| penalised(a, self).total_cmp(&penalised(b, self)))
    }
}

/// Log cost, with kernels outside the guard behind all that are inside it.
fn penalised(cost: &Cost, at: &AtSize) -> f64 {
    let someone_is_safe = at.costs.iter().any(|other| other.worst <= GUARD);
    let outside = someone_is_safe && cost.worst > GUARD;
    cost.ratio.max(f64::MIN_POSITIVE).ln() + if outside { cost.worst.ln() + 1.0 } else { 0.0 }
}

/// The kernel for each size of the grid: the sequence with the least total of log cost and
/// [`SWITCH_COST`] per change (dynamic programming over sizes x kernels). Sizes without any cost
/// take their left neighbour's kernel; the result is empty when no size has one.
#[must_use]
pub fn sequence(grid: &[AtSize]) -> Vec<(usize, String)> {
    let mut kernels: Vec<&str> =
        grid.iter().flat_map(|at| at.costs.iter().map(|cost| cost.kernel.as_str())).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let measured: Vec<&AtSize> = grid.iter().filter(|at| !at.costs.is_empty()).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    // A kernel that was dropped in screening at a size was far off there.
    const ABSENT: f64 = 10.0;
    let here = |at: &AtSize, kernel: &str| at.of(kernel).map_or(ABSENT, |cost| penalised(cost, at));
    let mut total: Vec<f64> = kernels.iter().map(|kernel| here(measured[0], kernel)).collect();
    let mut back: Vec<Vec<usize>> = Vec::new();
    for at in &measured[1..] {
        let cheapest =
            (0..kernels.len()).min_by(|&a, &b| total[a].total_cmp(&total[b])).unwrap_or_default();
        let from: Vec<usize> = (0..kernels.len())
            .map(|k| if total[k] <= total[cheapest] + SWITCH_COST { k } else { cheapest })
            .collect();
        total = (0..kernels.len())
            .map(|k| {
                let switch = if from[k] == k { 0.0 } else { SWITCH_COST };
                total[from[k]] + switch + here(at, kernels[k])
            })
            .collect();
        back.push(from);
    }
    let mut at =
        (0..kernels.len()).min_by(|&a, &b| total[a].total_cmp(&total[b])).unwrap_or_default();
    let mut reversed = vec![(measured[measured.len() - 1].size, kernels[at].to_owned())];
    for (position, from) in back.iter().enumerate().rev() {
        at = from[at];
        reversed.push((measured[position].size, kernels[at].to_owned()));
    }
    reversed.reverse();
    reversed
}

/// A run of sizes with one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First size, inclusive.
    pub from: usize,
    /// Last size, inclusive; `None` is without end.
    pub to: Option<usize>,
    /// Canonical kernel name.
    pub kernel: String,
}

/// Neighbouring sizes with different kernels, between which a crossover lies.
#[must_use]
pub fn crossovers(choices: &[(usize, String)]) -> Vec<(usize, usize)> {
    choices
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| (pair[0].0, pair[1].0))
        .collect()
}

/// The ranges that a sequence of choices stands for. Each crossover lies at `boundary(below,
/// above)`, the first size of the upper kernel; the first range starts at `first`.
pub fn ranges(
    choices: &[(usize, String)],
    first: usize,
    mut boundary: impl FnMut(usize, usize) -> usize,
) -> Vec<Range> {
    let Some((_, kernel)) = choices.first() else { return Vec::new() };
    let mut ranges = vec![Range { from: first, to: None, kernel: kernel.clone() }];
    for pair in choices.windows(2) {
        if pair[0].1 != pair[1].1 {
            let start = boundary(pair[0].0, pair[1].0);
            if let Some(open) = ranges.last_mut() {
                open.to = Some(start - 1);
            }
            ranges.push(Range { from: start, to: None, kernel: pair[1].1.clone() });
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(size: usize, costs: &[(&str, f64)]) -> AtSize {
        AtSize {
            size,
            costs: costs
                .iter()
                .map(|&(kernel, ratio)| Cost { kernel: kernel.into(), ratio, worst: ratio })
                .collect(),
        }
    }

    fn names(choices: &[(usize, String)]) -> Vec<&str> {
        choices.iter().map(|(_, kernel)| kernel.as_str()).collect()
    }

    #[test]
    fn the_cheaper_kernel_wins_each_side_of_a_crossover() {
        let grid = [
            at(1 << 20, &[("a", 0.8), ("b", 1.2)]),
            at(1 << 22, &[("a", 0.9), ("b", 1.0)]),
            at(1 << 24, &[("a", 1.3), ("b", 0.7)]),
        ];
        let choices = sequence(&grid);
        assert_eq!(names(&choices), ["a", "a", "b"]);
        assert_eq!(crossovers(&choices), [(1 << 22, 1 << 24)]);
        assert_eq!(
            ranges(&choices, 256, |low, high| (low + high) / 2),
            [
                Range { from: 256, to: Some((1 << 21) + (1 << 23) - 1), kernel: "a".into() },
                Range { from: (1 << 21) + (1 << 23), to: None, kernel: "b".into() },
            ]
        );
    }

    #[test]
    fn a_difference_below_the_switch_cost_does_not_switch() {
        let grid = [
            at(1, &[("a", 0.80), ("b", 0.81)]),
            at(2, &[("a", 0.81), ("b", 0.80)]),
            at(3, &[("a", 0.80), ("b", 0.81)]),
        ];
        assert_eq!(names(&sequence(&grid)), ["a", "a", "a"]);
    }

    #[test]
    fn many_small_gains_pay_for_one_switch() {
        let mut grid = vec![at(1, &[("a", 0.5), ("b", 0.9)])];
        grid.extend((2..8).map(|size| at(size, &[("a", 0.81), ("b", 0.80)])));
        let choices = sequence(&grid);
        assert_eq!(names(&choices)[0], "a");
        assert_eq!(names(&choices)[6], "b");
    }

    #[test]
    fn a_loss_in_one_state_disqualifies_while_another_is_safe() {
        let risky = Cost { kernel: "risky".into(), ratio: 0.7, worst: 1.4 };
        let safe = Cost { kernel: "safe".into(), ratio: 0.95, worst: 1.01 };
        let both = AtSize { size: 1, costs: vec![risky.clone(), safe] };
        assert_eq!(both.best().expect("two").kernel, "safe");
        let alone = AtSize { size: 1, costs: vec![risky] };
        assert_eq!(names(&sequence(&[alone])), ["risky"]);
    }

    #[test]
    fn a_kernel_dropped_at_a_size_is_not_chosen_there() {
        let grid = [at(1, &[("a", 0.9), ("b", 0.91)]), at(2, &[("b", 1.0)])];
        assert_eq!(names(&sequence(&grid)), ["b", "b"]);
        assert!(sequence(&[]).is_empty());
    }
}
