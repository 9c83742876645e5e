//! Four words for a comparison, and the sentences that the commands print.

use crate::ratio::Ratio;
use serde::{Deserialize, Serialize};

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Takes less time than the reference: the interval excludes 1, and the estimate is beyond the margin.
    Faster,
    /// Takes more time than the reference, likewise.
    Slower,
    /// Differs by no more than the margin: the whole interval lies within it.
    Same,
    /// Neither was shown, or rounds are too few for an interval.
    #[default]
    #[serde(rename = "cannot-tell")]
    Unknown,
}

impl Verdict {
    /// The word for a ratio of times, by a margin of [`crate::margin`].
    #[must_use]
    pub fn of(ratio: &Ratio, margin: f64) -> Verdict {
        if !ratio.has_interval() {
            Verdict::Unknown
        } else if ratio.high < 1.0 && ratio.median < 1.0 - margin {
            Verdict::Faster
        } else if ratio.low > 1.0 && ratio.median > 1.0 + margin {
            Verdict::Slower
        } else if ratio.low >= 1.0 - margin && ratio.high <= 1.0 + margin {
            Verdict::Same
        } else {
            Verdict::Unknown
        }
    }

    /// The word for a ratio of a race, whose interval holds at every look and has no ends before it does.
    #[must_use]
    pub fn at_any_look(ratio: &Ratio, margin: f64) -> Verdict {
        let Ratio { median, low, high, .. } = *ratio;
        let most = 1.0 + margin;
        match () {
            () if high < 1.0 && median < 1.0 / most => Verdict::Faster,
            () if low > 1.0 && median > most => Verdict::Slower,
            () if low >= 1.0 / most && high <= most => Verdict::Same,
            () => Verdict::Unknown,
        }
    }

    /// The word: `faster`, `slower`, `same` or `cannot tell`.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Unknown => "cannot tell",
        }
    }

    /// Returns whether a difference was shown.
    pub const fn is_different(self) -> bool {
        matches!(self, Verdict::Faster | Verdict::Slower)
    }
}

impl Ratio {
    /// The word for it, by a margin of [`crate::margin`].
    pub fn verdict(&self, margin: f64) -> Verdict {
        Verdict::of(self, margin)
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A change in percent of speed, rounded away from claims: `1.063` is `6`.
fn percent(speed: f64) -> f64 {
    ((speed - 1.0) * 100.0).round()
}

/// Range that an undecided comparison leaves open, of a speed (above 1 is faster): `probably 1 to 12 % faster`, or
/// `between 4 % slower and 5 % faster`.
#[must_use]
pub fn open(speed: &Ratio) -> String {
    let [low, high] = [speed.low, speed.high].map(percent);
    if !speed.is_sound() {
        return "nothing was shown".to_owned();
    }
    match () {
        () if speed.low > 1.0 => format!("probably {low:.0} to {high:.0} % faster"),
        () if speed.high < 1.0 => format!("probably {:.0} to {:.0} % slower", -high, -low),
        () => format!("between {:.0} % slower and {high:.0} % faster", -low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(median: f64, low: f64, high: f64) -> Ratio {
        Ratio { median, low, high, rounds: 15 }
    }

    #[test]
    fn a_word_needs_interval_and_margin() {
        for (median, low, high, margin, word) in [
            (0.8, 0.7, 0.9, 0.02, Verdict::Faster),
            (1.2, 1.1, 1.3, 0.02, Verdict::Slower),
            (0.8, 0.7, 1.01, 0.02, Verdict::Unknown),
            (0.99, 0.985, 0.995, 0.02, Verdict::Same),
            (0.99, 0.97, 0.995, 0.02, Verdict::Unknown),
            (0.99, 0.985, 0.995, 0.0, Verdict::Faster),
            (1.0, 0.985, 1.019, 0.02, Verdict::Same),
            (f64::NAN, f64::NAN, f64::NAN, 0.02, Verdict::Unknown),
        ] {
            assert_eq!(Verdict::of(&ratio(median, low, high), margin), word, "{median}");
        }
        let few = Ratio { rounds: 5, ..ratio(0.5, 0.4, 0.6) };
        assert_eq!(few.verdict(0.0), Verdict::Unknown);
    }

    #[test]
    fn what_is_open_is_said_in_percent() {
        assert_eq!(open(&ratio(1.06, 1.01, 1.12)), "probably 1 to 12 % faster");
        assert_eq!(open(&ratio(1.01, 0.96, 1.05)), "between 4 % slower and 5 % faster");
        assert_eq!(open(&ratio(0.95, 0.9, 0.98)), "probably 2 to 10 % slower");
        assert_eq!(open(&ratio(f64::NAN, f64::NAN, f64::NAN)), "nothing was shown");
    }
}
