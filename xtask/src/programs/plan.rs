//! When a program has been run often enough, and what its times say. Pure.

use cachewise_measure::stats::{LEAST_ROUNDS, PairedRatio};
use std::time::Duration;

/// Below this speed a program is slower with the library: what is promised is that none is.
pub(super) const SLOWER: f64 = 0.98;
/// Above this one it is faster: the same margin the other way.
pub(super) const FASTER: f64 = 1.02;
/// An interval this narrow to each side decides; more rounds tell nothing of interest.
const TIGHT: f64 = 0.01;

/// Who runs in a round: with the library, without, and without once more. What the last two differ
/// by is the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    With,
    Without,
    Again,
}

/// All six orders: after six rounds each has been first, second and last equally often.
const ORDERS: [[Way; 3]; 6] = {
    use Way::{Again, With, Without};
    [
        [With, Without, Again],
        [Without, Again, With],
        [Again, With, Without],
        [Again, Without, With],
        [With, Again, Without],
        [Without, With, Again],
    ]
};

/// The order of a round, the first of which is 0.
pub(super) fn order(round: usize) -> [Way; 3] {
    ORDERS[round % ORDERS.len()]
}

/// Seconds of the rounds that all three were run in.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub with: Vec<f64>,
    pub without: Vec<f64>,
    pub again: Vec<f64>,
}

impl Times {
    pub fn rounds(&self) -> usize {
        self.with.len()
    }

    /// Above 1: faster with the library. The two runs without count as one by their geometric mean.
    pub fn speed(&self) -> PairedRatio {
        let without: Vec<f64> =
            self.without.iter().zip(&self.again).map(|(one, two)| (one * two).sqrt()).collect();
        PairedRatio::new(&without, &self.with, 1)
    }

    /// The same program against itself: how far from 1 the noise alone gets.
    pub fn control(&self) -> PairedRatio {
        PairedRatio::new(&self.without, &self.again, 1)
    }

    pub fn verdict(&self) -> Verdict {
        verdict(&self.speed(), &self.control())
    }
}

/// Four outcomes, by where the whole interval lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Below [`SLOWER`].
    Slower,
    /// At or above [`SLOWER`].
    NotSlower,
    /// Above [`FASTER`].
    Faster,
    /// Across a border, too few rounds, or a control that says the same program differs from itself.
    CannotTell,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::NotSlower => "not slower than 0.98",
            Verdict::Faster => "faster",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

fn verdict(speed: &PairedRatio, control: &PairedRatio) -> Verdict {
    let disturbed = control.low > FASTER || control.high < SLOWER;
    if speed.rounds < LEAST_ROUNDS || control.rounds < LEAST_ROUNDS || disturbed {
        Verdict::CannotTell
    } else if speed.high < SLOWER {
        Verdict::Slower
    } else if speed.low > FASTER {
        Verdict::Faster
    } else if speed.low >= SLOWER {
        Verdict::NotSlower
    } else {
        Verdict::CannotTell
    }
}

/// Why a program is run no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The interval is narrow.
    Tight,
    /// As many rounds as were asked for.
    Rounds,
    /// Its share of the time is spent.
    Time,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// A run failed, or its output was another.
    Failed,
}

impl Stopped {
    pub fn name(self) -> &'static str {
        match self {
            Stopped::Tight => "interval narrow",
            Stopped::Rounds => "all rounds",
            Stopped::Time => "time spent",
            Stopped::Interrupted => "interrupted",
            Stopped::Failed => "failed",
        }
    }
}

/// What bounds the rounds of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub rounds: usize,
    /// Its share of the time, and how much of it is spent.
    pub share: Duration,
    pub spent: Duration,
    /// How long one more round will take.
    pub round: Duration,
}

/// Whether to stop, and why. It looks at the interval's width and not at its place, so that stopping
/// favours no verdict. Below [`LEAST_ROUNDS`] there is no interval, and the time is overdrawn.
pub(super) fn enough(times: &Times, bounds: &Bounds) -> Option<Stopped> {
    if times.rounds() < LEAST_ROUNDS {
        return None;
    }
    let speed = times.speed();
    if (speed.high - speed.low) / 2.0 < TIGHT {
        Some(Stopped::Tight)
    } else if times.rounds() >= bounds.rounds {
        Some(Stopped::Rounds)
    } else if bounds.spent + bounds.round > bounds.share {
        Some(Stopped::Time)
    } else {
        None
    }
}

/// What is left of the time, divided among the programs that are left: what one does not need is
/// the others'.
pub(super) fn share(left: Duration, programs: usize) -> Duration {
    left / u32::try_from(programs.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64, rounds: usize) -> PairedRatio {
        PairedRatio { median: f64::midpoint(low, high), low, high, rounds }
    }

    #[test]
    fn a_verdict_is_where_the_whole_interval_lies() {
        let quiet = ratio(0.995, 1.005, 8);
        for (low, high, expected) in [
            (0.90, 0.979, Verdict::Slower),
            (0.90, 0.98, Verdict::CannotTell),
            (0.979, 1.10, Verdict::CannotTell),
            (0.98, 1.00, Verdict::NotSlower),
            (1.01, 1.05, Verdict::NotSlower),
            (1.021, 1.05, Verdict::Faster),
            (f64::NAN, f64::NAN, Verdict::CannotTell),
        ] {
            assert_eq!(verdict(&ratio(low, high, 8), &quiet), expected, "[{low}, {high}]");
        }
        assert_eq!(verdict(&ratio(0.5, 0.6, 5), &quiet), Verdict::CannotTell);
        assert_eq!(verdict(&ratio(0.5, 0.6, 8), &ratio(1.0, 1.0, 5)), Verdict::CannotTell);
    }

    #[test]
    fn a_program_that_differs_from_itself_decides_nothing() {
        for control in [ratio(1.03, 1.05, 8), ratio(0.9, 0.97, 8)] {
            assert_eq!(verdict(&ratio(0.5, 0.6, 8), &control), Verdict::CannotTell);
            assert_eq!(verdict(&ratio(1.5, 1.6, 8), &control), Verdict::CannotTell);
        }
        // A wide control is no contradiction: it includes 1.
        assert_eq!(verdict(&ratio(0.5, 0.6, 8), &ratio(0.8, 1.2, 8)), Verdict::Slower);
    }

    fn times(with: &[f64]) -> Times {
        Times { with: with.to_vec(), without: vec![1.0; with.len()], again: vec![1.0; with.len()] }
    }

    #[test]
    fn rounds_end_by_width_number_or_time_and_never_below_six() {
        let second = Duration::from_secs(1);
        let roomy = Bounds { rounds: 10, share: 100 * second, spent: second, round: second };
        let spent = Bounds { share: second, spent: 100 * second, ..roomy };
        let wide = |n| times(&[1.0, 1.3, 0.8, 1.2, 0.9, 1.1].repeat(2)[..n]);
        for bounds in [roomy, spent, Bounds { rounds: 1, ..roomy }] {
            assert_eq!(enough(&times(&[1.0; 5]), &bounds), None);
            assert_eq!(enough(&wide(5), &bounds), None);
            assert_eq!(enough(&times(&[1.0; 6]), &bounds), Some(Stopped::Tight));
            // Narrow is narrow wherever it lies.
            assert_eq!(enough(&times(&[2.0; 6]), &bounds), Some(Stopped::Tight));
        }
        assert_eq!(enough(&wide(6), &roomy), None);
        assert_eq!(enough(&wide(9), &roomy), None);
        assert_eq!(enough(&wide(10), &roomy), Some(Stopped::Rounds));
        assert_eq!(enough(&wide(6), &spent), Some(Stopped::Time));
        let last = Bounds { share: 10 * second, spent: 9 * second, ..roomy };
        assert_eq!(enough(&wide(6), &last), None, "one more round fits exactly");
        let late = Bounds { spent: last.spent + Duration::from_millis(1), ..last };
        assert_eq!(enough(&wide(6), &late), Some(Stopped::Time));
    }

    #[test]
    fn each_way_is_at_each_place_equally_often_in_six_rounds() {
        for place in 0..3 {
            for way in [Way::With, Way::Without, Way::Again] {
                let times = (0..6).filter(|round| order(*round)[place] == way).count();
                assert_eq!(times, 2, "{way:?} at {place}");
            }
        }
    }

    #[test]
    fn what_one_program_saves_is_the_others() {
        let minute = Duration::from_secs(60);
        assert_eq!(share(20 * minute, 10), 2 * minute);
        assert_eq!(share(19 * minute, 1), 19 * minute);
        assert_eq!(share(Duration::ZERO, 3), Duration::ZERO);
    }

    #[test]
    fn speed_is_above_one_where_the_library_helps_and_control_leaves_it_out() {
        let times = Times { with: vec![1.0; 6], without: vec![2.0; 6], again: vec![8.0; 6] };
        assert!((times.speed().median - 4.0).abs() < 1e-9);
        assert!((times.control().median - 0.25).abs() < 1e-9);
    }
}
