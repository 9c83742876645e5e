//! The rule that makes a word of ratios. Pure: a claim's bound and the ratios of its cells, launch by launch, are
//! all that it knows.
//!
//! A cell's ratios are tested against the bound and against both ends of [`LEAST`] and of [`SAME`] around 1. All tests
//! of a record's cells are corrected together ([`discoveries`]), and a test that does not stand decides nothing. Cells
//! that decide too little alone are pooled: the geometric mean of all cells in each launch is one more series of ratios,
//! and these are corrected together.

use cachewise_judge::family::{discoveries, p_around};
use cachewise_judge::margin;
use cachewise_measure::stats;
use std::cmp::Ordering;

/// The least difference from 1 that counts.
pub const LEAST: f64 = margin::ROW;

/// Two times are the same, or a difference is not noticeable, within this.
pub const SAME: f64 = margin::NOTICEABLE;

/// The ratios that confirm a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expect {
    /// At most this. Below 1 it claims a gain, from 1 on the absence of a loss.
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
}

impl Expect {
    /// Tells whether a difference is claimed, and not the absence of one.
    pub fn is_of_an_effect(self) -> bool {
        match self {
            Expect::AtMost(bound) => bound < 1.0,
            Expect::AtLeast(bound) => bound > 1.0,
            Expect::Within(..) => false,
        }
    }
}

/// The share of its cells, and of the CPUs, that a claim speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Most cells: what is usual.
    #[default]
    Most,
    /// "Never", "nothing", "no downside": one cell refutes it.
    Every,
    /// "Is there any": one cell confirms it.
    Any,
}

/// The answer of one cell, of one CPU or of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    Confirmed,
    /// Certain in that direction; its size beside the bound is not.
    Some,
    /// Certain in that direction, and less than claimed.
    Weaker,
    /// A difference was claimed, and there is none beyond [`SAME`].
    Same,
    Refuted,
    /// Cells or CPUs contradict each other.
    Depends,
    CannotTell,
}

impl Word {
    /// All words, in the order in which they are counted.
    pub const ALL: [Word; 7] = [
        Word::Confirmed,
        Word::Some,
        Word::Weaker,
        Word::Same,
        Word::Refuted,
        Word::Depends,
        Word::CannotTell,
    ];

    /// The word of one CPU.
    pub const fn mark(self) -> &'static str {
        match self {
            Word::Confirmed => "yes",
            Word::Some => "some",
            Word::Weaker => "less",
            Word::Same => "same",
            Word::Refuted => "no",
            Word::Depends => "mixed",
            Word::CannotTell => "?",
        }
    }

    /// The word of all CPUs.
    pub const fn name(self) -> &'static str {
        match self {
            Word::Confirmed => "confirmed",
            Word::Some => "some effect",
            Word::Weaker => "weaker",
            Word::Same => "no difference",
            Word::Refuted => "refuted",
            Word::Depends => "depends",
            Word::CannotTell => "cannot tell",
        }
    }
}

/// The ratios of one cell, by launch or, of one process, by round.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios(pub Vec<f64>);

impl Ratios {
    /// The median: the only figure that is printed.
    pub fn median(&self) -> f64 {
        stats::median(&self.0)
    }

    /// The side of a bound on which both the median and the mean of the logarithms are; none where they differ.
    fn side(&self, bound: f64) -> Option<Ordering> {
        let mean = self.0.iter().map(|ratio| (ratio / bound).ln()).sum::<f64>();
        let side = self.median().partial_cmp(&bound)?;
        (mean.partial_cmp(&0.0)? == side).then_some(side)
    }
}

/// The bounds that a series is tested against.
fn bounds(expect: Expect) -> Vec<f64> {
    match expect {
        Expect::AtMost(bound) | Expect::AtLeast(bound) => {
            vec![bound, 1.0 - LEAST, 1.0 + LEAST, 1.0 - SAME, 1.0 + SAME]
        }
        Expect::Within(low, high) => vec![low, high],
    }
}

/// One series and on which side of each bound it certainly is.
struct Tested {
    sides: Vec<(f64, Option<Ordering>)>,
}

impl Tested {
    fn is(&self, bound: f64, side: Ordering) -> bool {
        self.sides.iter().any(|(at, found)| *at == bound && *found == Some(side))
    }

    fn word(&self, expect: Expect) -> Word {
        use Ordering::{Greater, Less};
        let (bound, claimed) = match expect {
            Expect::AtMost(bound) => (bound, Less),
            Expect::AtLeast(bound) => (bound, Greater),
            Expect::Within(low, high) => {
                return match () {
                    () if self.is(low, Less) || self.is(high, Greater) => Word::Refuted,
                    () if self.is(low, Greater) && self.is(high, Less) => Word::Confirmed,
                    () => Word::CannotTell,
                };
            }
        };
        // A difference from 1 that counts, on the claimed side.
        let gain = if claimed == Less { 1.0 - LEAST } else { 1.0 + LEAST };
        let is_same = || self.is(1.0 - SAME, Greater) && self.is(1.0 + SAME, Less);
        let is_beyond = self.is(bound, claimed.reverse());
        match () {
            () if self.is(bound, claimed) => Word::Confirmed,
            () if !expect.is_of_an_effect() => match is_beyond {
                true => Word::Refuted,
                // An absence is claimed: something is there, and it may be as little as was said.
                false if self.is(2.0 - gain, claimed.reverse()) => Word::Some,
                false => Word::CannotTell,
            },
            // A bound within SAME: a small difference is claimed, and there is one.
            () if self.is(gain, claimed) && !is_beyond => Word::Some,
            () if is_same() => Word::Same,
            () if self.is(gain, claimed) => Word::Weaker,
            () if is_beyond => Word::Refuted,
            () => Word::CannotTell,
        }
    }
}

/// One claim's cells on one CPU.
pub struct Asked<'r> {
    pub expect: Expect,
    /// The number of cells that it speaks of.
    pub over: Over,
    /// The ratios of each cell.
    pub cells: &'r [Ratios],
}

/// The verdict of one claim's cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The word of each cell.
    pub words: Vec<Word>,
    /// The word of all of them.
    pub word: Option<Word>,
    /// Their mean, where the word rests on it.
    pub pooled: Option<f64>,
}

impl Judged {
    /// The words of counts, which have no noise: one more or less is as many.
    pub fn counted<'r>(count: f64, cells: impl Iterator<Item = &'r Ratios>) -> Judged {
        let is_it = |cell: &Ratios| (cell.median() - count).abs() <= 1.0;
        let words: Vec<Word> =
            cells.map(|cell| if is_it(cell) { Word::Confirmed } else { Word::Refuted }).collect();
        let word = joined(&words, Over::Most, Expect::Within(count - 1.0, count + 1.0));
        Judged { words, word: Some(word), pooled: None }
    }
}

/// The words of several claims that were measured together, corrected for how many comparisons they are: all cells
/// together, and all means together, since a record has one mean a claim and many cells.
pub fn judge(claims: &[Asked<'_>]) -> Vec<Judged> {
    let means: Vec<Option<Ratios>> = claims
        .iter()
        .map(|asked| (asked.over == Over::Most).then(|| pooled(asked.cells)).flatten())
        .collect();
    let cells = claims.iter().flat_map(|asked| asked.cells.iter().map(|one| (one, asked.expect)));
    let expects = claims.iter().map(|asked| asked.expect);
    let pooled =
        means.iter().zip(expects).filter_map(|(mean, expect)| Some((mean.as_ref()?, expect)));
    let mut of_each = words(cells.collect()).into_iter();
    let mut of_means = words(pooled.collect()).into_iter();
    let judged = claims.iter().zip(&means).map(|(asked, mean)| {
        let words = of_each.by_ref().take(asked.cells.len()).collect();
        let of_mean = mean.as_ref().and_then(|mean| Some((of_means.next()?, mean.median())));
        of_cells(asked, words, of_mean)
    });
    judged.collect()
}

/// The word of each series beside its bound, corrected together.
fn words(series: Vec<(&Ratios, Expect)>) -> Vec<Word> {
    let tests = |(one, expect): &(&Ratios, Expect)| -> Vec<f64> {
        bounds(*expect).iter().map(|bound| p_around(&one.0, *bound)).collect()
    };
    let p: Vec<f64> = series.iter().flat_map(tests).collect();
    let mut stand = discoveries(&p).into_iter();
    let word = |(one, expect): (&Ratios, Expect)| {
        let sides = bounds(expect).into_iter().zip(stand.by_ref());
        let sides = sides.map(|(bound, stands)| (bound, one.side(bound).filter(|_| stands)));
        Tested { sides: sides.collect() }.word(expect)
    };
    series.into_iter().map(word).collect()
}

/// The word over a CPU's cells: where these leave it open, that of their mean.
fn of_cells(asked: &Asked<'_>, words: Vec<Word>, of_mean: Option<(Word, f64)>) -> Judged {
    let alone = joined(&words, asked.over, asked.expect);
    let told = of_mean.filter(|(word, _)| {
        matches!(alone, Word::CannotTell | Word::Some)
            && *word != Word::CannotTell
            && *word != alone
    });
    let (word, pooled) = told.map_or((alone, None), |(word, mean)| (word, Some(mean)));
    Judged { words, word: Some(word), pooled }
}

/// The geometric mean over the cells in each launch; none of one cell, or of cells without ratios in common.
fn pooled(cells: &[Ratios]) -> Option<Ratios> {
    let many = cells.iter().map(|cell| cell.0.len()).min().filter(|_| cells.len() > 1)?;
    let mean = |at: usize| {
        let of_launch: Vec<f64> = cells.iter().map(|cell| cell.0[at]).collect();
        stats::geometric_mean(&of_launch)
    };
    Some(Ratios((0..many).map(mean).collect()))
}

/// The word over cells, or over CPUs. At least half of them have to decide; none may contradict. Smaller effects
/// than claimed beside none at all contradict nothing but the claim. Where an absence is claimed, a certain difference
/// of uncertain size contradicts neither yes nor no.
pub fn joined(words: &[Word], over: Over, expect: Expect) -> Word {
    let count = |wanted: Word| words.iter().filter(|word| **word == wanted).count();
    let has = |wanted: Word| words.contains(&wanted);
    let half = |many: usize| 2 * many >= words.len();
    let is_refuted = has(Word::Refuted) || has(Word::Same);
    let told = words.len() - count(Word::CannotTell);
    match () {
        () if over == Over::Any && has(Word::Confirmed) => Word::Confirmed,
        () if over == Over::Every && is_refuted => Word::Refuted,
        () if has(Word::Depends) => Word::Depends,
        () if is_refuted && has(Word::Confirmed) => Word::Depends,
        () if is_refuted && has(Word::Some) && expect.is_of_an_effect() => Word::Depends,
        () if has(Word::Confirmed) && has(Word::Weaker) => Word::Depends,
        () if told == 0 || !half(told) => Word::CannotTell,
        () if has(Word::Some) && has(Word::Refuted) && !half(count(Word::Refuted)) => Word::Some,
        () if has(Word::Refuted) || has(Word::Same) && has(Word::Weaker) => Word::Refuted,
        () if has(Word::Same) => Word::Same,
        () if half(count(Word::Confirmed)) && has(Word::Confirmed) => Word::Confirmed,
        () if half(count(Word::Weaker)) && has(Word::Weaker) => Word::Weaker,
        () => Word::Some,
    }
}

#[cfg(test)]
mod tests {
    use super::{Word::*, *};

    #[test]
    fn cells_that_cannot_tell_contradict_nothing() {
        for (words, over, expected) in [
            (&[][..], Over::Most, CannotTell),
            (&[Confirmed], Over::Most, Confirmed),
            (&[Refuted, CannotTell, Refuted], Over::Most, Refuted),
            (&[Weaker, CannotTell], Over::Most, Weaker),
            (&[Confirmed, CannotTell, CannotTell], Over::Most, CannotTell),
            (&[CannotTell; 3], Over::Most, CannotTell),
            (&[Confirmed, Weaker], Over::Most, Depends),
            (&[Confirmed, Refuted, CannotTell, CannotTell, CannotTell], Over::Most, Depends),
            (&[Depends, CannotTell], Over::Most, Depends),
            (&[Confirmed, Depends], Over::Most, Depends),
            // Less than claimed, and nothing: the claim holds nowhere.
            (&[Weaker, Refuted], Over::Most, Refuted),
            (&[Weaker, Same, CannotTell], Over::Most, Refuted),
            (&[Same, Same, CannotTell], Over::Most, Same),
            (&[Same, Refuted], Over::Most, Refuted),
            // A certain effect of uncertain size agrees with more and with less, not with none.
            (&[Some, Some, CannotTell], Over::Most, Some),
            (&[Some, Confirmed, Confirmed], Over::Most, Confirmed),
            (&[Some, Some, Confirmed], Over::Most, Some),
            (&[Some, Some, Some, Refuted], Over::Most, Depends),
            (&[Some, Same], Over::Most, Depends),
            // One cell refutes "never", one confirms "any".
            (&[Confirmed, Confirmed, Refuted], Over::Every, Refuted),
            (&[Confirmed, Confirmed, CannotTell], Over::Every, Confirmed),
            (&[Confirmed, CannotTell, CannotTell], Over::Every, CannotTell),
            (&[Confirmed, Depends, Refuted], Over::Every, Refuted),
            (&[Refuted, Refuted, Confirmed], Over::Any, Confirmed),
            (&[Refuted, CannotTell], Over::Any, Refuted),
            (&[Refuted, CannotTell, CannotTell], Over::Any, CannotTell),
        ] {
            assert_eq!(joined(words, over, Expect::AtMost(0.9)), expected, "{words:?} {over:?}");
        }
    }

    #[test]
    fn an_absence_that_is_claimed_has_a_bound_of_its_own() {
        let joined = |words| joined(words, Over::Most, Expect::AtMost(1.05));
        for (words, expected) in [
            (&[Some, Some, Refuted][..], Some),
            (&[Some, Refuted, Refuted], Refuted),
            (&[Some, Confirmed], Confirmed),
            (&[Some, Confirmed, Refuted], Depends),
        ] {
            assert_eq!(joined(words), expected, "{words:?}");
        }
    }

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// One simulated CPU: so many cells around these true ratios, launches and their scatter.
    struct Simulated {
        truth: &'static [f64],
        launches: usize,
        scatter: f64,
    }

    impl Simulated {
        fn cells(&self, random: &mut fastrand::Rng) -> Vec<Ratios> {
            let one = |truth: &f64| {
                Ratios(
                    (0..self.launches)
                        .map(|_| truth * (self.scatter * normal(random)).exp())
                        .collect(),
                )
            };
            self.truth.iter().map(one).collect()
        }
    }

    /// Simulated records of each case: a rate is known to 1 of 100 or better.
    const RECORDS: usize = 500;

    /// Percentage of the simulated records.
    fn percent(many: usize) -> f64 {
        many as f64 / RECORDS as f64 * 100.0
    }

    /// The words of simulated records, each with some other claims beside it, as records have.
    fn words(of: &Simulated, expect: Expect, over: Over) -> Vec<Word> {
        let mut random = fastrand::Rng::with_seed(7);
        let beside = [
            (0.7, Expect::AtMost(0.9)),
            (1.0, Expect::Within(0.95, 1.05)),
            (1.0, Expect::AtMost(0.9)),
        ];
        let one = |_| {
            let cells = of.cells(&mut random);
            let others: Vec<(Vec<Ratios>, Expect)> = beside
                .iter()
                .map(|(truth, expect)| {
                    let other =
                        (0..of.launches).map(|_| truth * (0.02 * normal(&mut random)).exp());
                    (vec![Ratios(other.collect())], *expect)
                })
                .collect();
            let others = others.iter().map(|(cells, expect)| Asked {
                expect: *expect,
                over: Over::Most,
                cells,
            });
            let claims: Vec<Asked<'_>> =
                [Asked { expect, over, cells: &cells }].into_iter().chain(others).collect();
            judge(&claims)[0].word.expect("a word")
        };
        (0..RECORDS).map(one).collect()
    }

    /// Records whose truth is known: the word is right in at least 95 of 100.
    #[test]
    fn words_of_simulated_records_are_right() {
        let (gain, loss, any) = (Expect::AtMost(0.9), Expect::AtLeast(1.25), Expect::AtLeast(1.05));
        let (same, no_loss) = (Expect::Within(0.95, 1.05), Expect::AtMost(1.05));
        let (small, no_gain) = (Expect::AtMost(0.97), Expect::AtLeast(0.99));
        let of = |truth: &'static [f64], scatter, expect, over, right: &'static [Word]| {
            (Simulated { truth, launches: 6, scatter }, expect, over, right)
        };
        let most = |truth, scatter, expect, right| of(truth, scatter, expect, Over::Most, right);
        let rounds = Simulated { truth: &[0.8], launches: 15, scatter: 0.05 };
        for (simulated, expect, over, right) in [
            (rounds, gain, Over::Most, &[Confirmed][..]),
            most(&[0.8], 0.02, gain, &[Confirmed]),
            most(&[0.93], 0.01, gain, &[Weaker]),
            // As large as its bound: certain in its direction, or as claimed, too. So is a small one.
            most(&[0.9], 0.02, gain, &[Some, Confirmed]),
            most(&[0.97], 0.005, small, &[Some, Confirmed]),
            most(&[1.3], 0.02, gain, &[Refuted]),
            // A tie is called a tie where a difference is claimed, and confirms where a tie is.
            most(&[1.0], 0.01, gain, &[Same]),
            most(&[1.003], 0.01, gain, &[Same]),
            most(&[0.997], 0.01, gain, &[Same]),
            most(&[0.997], 0.01, loss, &[Same]),
            most(&[1.0], 0.015, same, &[Confirmed]),
            most(&[1.0], 0.015, no_loss, &[Confirmed]),
            most(&[1.2], 0.02, no_loss, &[Refuted]),
            // No cell alone decides; their mean does.
            most(&[0.8; 16], 0.2, gain, &[Confirmed]),
            most(&[1.0; 12], 0.05, loss, &[Same, Refuted]),
            most(&[0.7, 0.7, 1.4], 0.03, gain, &[Depends]),
            most(&[0.93, 1.0], 0.008, gain, &[Refuted]),
            of(&[1.1, 1.2, 0.8], 0.03, no_gain, Over::Every, &[Refuted]),
            of(&[1.1, 1.2, 1.1], 0.02, no_gain, Over::Every, &[Confirmed]),
            of(&[0.5, 0.6, 1.4], 0.05, any, Over::Any, &[Confirmed]),
            of(&[0.5, 0.6, 0.8], 0.05, any, Over::Any, &[Refuted]),
        ] {
            let words = words(&simulated, expect, over);
            let hits = percent(words.iter().filter(|word| right.contains(word)).count());
            let Simulated { truth, scatter, .. } = simulated;
            assert!(hits >= 95.0, "{truth:?}, {scatter}, {expect:?}: {hits} of 100: {words:?}");
        }
    }

    /// Whatever the scatter, a word that is certain is seldom wrong.
    #[test]
    fn a_certain_word_is_seldom_wrong() {
        for scatter in [0.005, 0.02, 0.1, 0.5] {
            for (truth, wrong) in [
                (&[0.8][..], &[Weaker, Same, Refuted, Depends][..]),
                // Weaker, where that much is certain, and refuted, where only the bound is excluded.
                (&[0.94], &[Confirmed, Same, Depends]),
                (&[1.0], &[Confirmed, Some, Weaker, Depends]),
                (&[1.2], &[Confirmed, Some, Weaker, Same, Depends]),
                (&[1.0; 8], &[Confirmed, Some, Weaker]),
            ] {
                let simulated = Simulated { truth, launches: 6, scatter };
                let words = words(&simulated, Expect::AtMost(0.9), Over::Most);
                let errors = words.iter().filter(|word| wrong.contains(word)).count();
                let errors = percent(errors);
                assert!(errors <= 5.0, "{truth:?}, {scatter}: {errors} of 100: {words:?}");
            }
        }
    }
}
