//! What a program's times say. Pure.

use cachewise_measure::stats::{LEAST_ROUNDS, PairedRatio};

/// Below this speed a program is slower with the library: what is promised is that none is.
pub(super) const SLOWER: f64 = 0.98;
/// Above this one it is faster: the same margin the other way.
pub(super) const FASTER: f64 = 1.02;

/// Who runs in a round: with the library, without, and without once more. What the last two differ
/// by is the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    With,
    Without,
    Again,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::With, Way::Without, Way::Again];
}

/// Seconds that a run took: by the clock on the wall, and of CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Took {
    pub wall: f64,
    pub cpu: f64,
}

/// Seconds of the rounds that all three were run in.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub with: Vec<f64>,
    pub without: Vec<f64>,
    pub again: Vec<f64>,
    /// CPU seconds of the same runs, by [`Way`].
    pub cpu: [Vec<f64>; 3],
}

impl Times {
    /// One more round, by [`Way`].
    pub fn push(&mut self, round: [Took; 3]) {
        for (all, took) in
            [&mut self.with, &mut self.without, &mut self.again].into_iter().zip(round)
        {
            all.push(took.wall);
        }
        for (all, took) in self.cpu.iter_mut().zip(round) {
            all.push(took.cpu);
        }
    }

    pub fn rounds(&self) -> usize {
        self.with.len()
    }

    /// Above 1: faster with the library. Of the two runs without only one: the mean of two is less
    /// noisy than the one with, and then a ratio is not as likely as its inverse where noise is skew.
    pub fn speed(&self) -> PairedRatio {
        PairedRatio::in_turns(&self.without, &self.with)
    }

    /// CPU time with the library over that without: below 1 it takes less. Where neighbours take the
    /// CPU away it is the steadier of the two, and no verdict is made of it: waiting counts for
    /// nothing in it.
    pub fn cpu_ratio(&self) -> PairedRatio {
        let [with, without, _] = &self.cpu;
        PairedRatio::in_turns(with, without)
    }

    /// The same program against itself: how far from 1 the noise alone gets.
    pub fn control(&self) -> PairedRatio {
        PairedRatio::in_turns(&self.without, &self.again)
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
    /// As many rounds as were settled on.
    Rounds,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// A run failed, or its output was another.
    Failed,
}

impl Stopped {
    pub fn name(self) -> &'static str {
        match self {
            Stopped::Rounds => "all rounds",
            Stopped::Interrupted => "interrupted",
            Stopped::Failed => "failed",
        }
    }
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

    #[test]
    fn speed_is_above_one_where_the_library_helps_and_control_leaves_it_out() {
        let took = |wall, cpu| Took { wall, cpu };
        let mut times = Times::default();
        for _ in 0..6 {
            times.push([took(1.0, 3.0), took(2.0, 1.0), took(8.0, 4.0)]);
        }
        assert!((times.speed().median - 2.0).abs() < 1e-9);
        assert!((times.control().median - 0.25).abs() < 1e-9);
        assert!((times.cpu_ratio().median - 3.0).abs() < 1e-9);
        assert_eq!((times.rounds(), times.cpu_ratio().rounds), (6, 6));
    }
}
