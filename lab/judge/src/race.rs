//! Which of several contestants is best: elimination beside the reference, then fresh runs of the winner.
//!
//! Contestants are numbered from 1 in the order of their simplicity; 0 is the reference. The race keeps three rules, so
//! that the same question gets the same answer:
//!
//! 1. **Nobody leaves on fewer rounds than carry an interval** ([`LEAST_ROUNDS`]). Where the time has no room for so many
//!    rounds of all, the simplest take part, and the others are [`Fate::NotReached`].
//! 2. **A contestant replaces a simpler one that gains only where it is shown to be better by [`SIMPLER`].** What is shown not
//!    to be leaves, and so does the simpler one where it is. What stays undecided goes to the simpler.
//! 3. **The answer rests on fresh runs**: pairs whose number is settled before the first.
//!
//! Intervals of the race hold at every round at once ([`interval::anytime`]).

use crate::interval;
use crate::margin::{LEAST_PAIRS, LEAST_ROUNDS, SIMPLER};
use crate::order::median;
use crate::ratio::{Ratio, of_rounds};
use crate::turns;

/// Rounds after which a race has shown what it can.
const MOST_ROUNDS: usize = 60;
/// Pairs of fresh runs at most.
const MOST_PAIRS: usize = 30;
/// The fresh runs' part of the time, where they do not need less.
const FRESH: f64 = 0.4;
/// The part of a heat's time for its first rounds; the rest tells those apart that are near.
const FIRST_ROUNDS: f64 = 0.6;
/// A budget is exceeded by this part at most, for the fewest pairs.
const OVERDRAWN: f64 = 0.25;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran<S> {
    /// As it should: what it showed.
    Well(S),
    /// Otherwise, and why. A contestant is disqualified; with the reference everything ends.
    Wrong(String),
    /// The user wants to stop.
    Stopped,
}

/// The stage of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All against each other.
    Race,
    /// The winner alone against the reference.
    Fresh,
}

/// Runs the reference and the contestants; real, or simulated.
pub trait Runner {
    /// The figures of one run.
    type Sample: Clone;
    /// The reason why a run could not be made at all.
    type Error;
    /// Runs a contestant once; 0 is the reference.
    ///
    /// # Errors
    /// The failure that ends everything.
    fn run(&mut self, who: usize) -> Result<Ran<Self::Sample>, Self::Error>;
    /// The figure of a run that is to be small.
    fn cost(sample: &Self::Sample) -> f64;
    /// The figure of a run of which only so much may be lost ([`Question::allowed`]); none where nothing is bounded.
    fn loss(_sample: &Self::Sample) -> Option<f64> {
        None
    }
    /// Seconds since the beginning.
    fn now(&self) -> f64;
    /// Shows the stage and how many seconds the rest takes.
    fn progress(&mut self, stage: Stage, left: f64);
}

/// The runs of one contestant, by round; `None` where it had no turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs<S>(Vec<Option<S>>);

impl<S> Default for Runs<S> {
    fn default() -> Runs<S> {
        Runs(Vec::new())
    }
}

impl<S> FromIterator<Option<S>> for Runs<S> {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(rounds: I) -> Runs<S> {
        Runs(rounds.into_iter().collect())
    }
}

impl<S> Runs<S> {
    /// One figure of all rounds; NaN where it had no turn.
    pub fn of(&self, figure: impl Fn(&S) -> f64) -> Vec<f64> {
        self.0.iter().map(|sample| sample.as_ref().map_or(f64::NAN, &figure)).collect()
    }

    /// The rounds with a turn.
    pub fn samples(&self) -> impl Iterator<Item = &S> {
        self.0.iter().flatten()
    }

    /// The median of a figure over the rounds with a turn.
    pub fn median(&self, figure: impl Fn(&S) -> f64) -> f64 {
        let values = self.samples().map(figure).filter(|value| value.is_finite());
        median(&values.collect::<Vec<f64>>())
    }

    /// The number of rounds with a turn.
    pub fn rounds(&self) -> usize {
        self.samples().count()
    }

    /// A figure over another's of the same rounds.
    pub fn over(&self, other: &Runs<S>, figure: impl Fn(&S) -> f64 + Copy) -> Ratio {
        Ratio::paired(&self.of(figure), &other.of(figure))
    }
}

/// The reason why a contestant left, or that it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In the race to its end.
    Live,
    /// Shown to be slower than another by more than simplicity is worth.
    Slower,
    /// Shown not to be better than a simpler one by so much that it would replace it.
    Simpler,
    /// Shown to gain less than the margin.
    NoGain,
    /// Shown to lose more than is allowed.
    TooDear,
    /// Never raced: the time had no room for enough rounds of it.
    NotReached,
    /// Other output, another status, too long.
    Disqualified(String),
}

/// The fate of a contestant by its cost and its loss, both over the reference's at any moment of a race: it costs more
/// than is `worth` racing on, or loses more than is `allowed`. `None` while neither is shown.
#[must_use]
pub fn leaves(
    cost: Option<&Ratio>,
    worth: f64,
    loss: Option<&Ratio>,
    allowed: f64,
) -> Option<Fate> {
    if loss.is_some_and(|loss| loss.low > allowed) {
        return Some(Fate::TooDear);
    }
    cost.filter(|cost| cost.low > worth).map(|_| Fate::NoGain)
}

/// The question that a race is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The number of contestants, without the reference.
    pub contestants: usize,
    /// Seconds that a run is expected to take.
    pub expected: f64,
    /// Seconds for all runs.
    pub budget: f64,
    /// Rounds that each has, if that is settled: then nobody leaves early.
    pub rounds: Option<usize>,
    /// A gain of less is none (of [`crate::margin`]).
    pub margin: f64,
    /// The part of [`Runner::loss`] that a contestant may lose; none where nothing is bounded.
    pub allowed: Option<f64>,
    /// The origin of all random orders.
    pub seed: u64,
}

/// The outcome of a race.
#[derive(Clone, Debug)]
pub struct RaceOutcome<S> {
    /// Runs by number: the reference first.
    pub runs: Vec<Runs<S>>,
    /// Fates of the contestants; the first is number 1's.
    pub fates: Vec<Fate>,
    /// The number of the contestant that had fresh runs.
    pub winner: Option<usize>,
    /// Fresh runs: the reference's, and the winner's.
    pub fresh: Option<[Runs<S>; 2]>,
    /// Set where the user stopped it.
    pub stopped: bool,
    /// The seconds that would have been enough, where the budget had no room for anything.
    pub needs: Option<f64>,
    /// The seconds that would have been enough for all, where some contestants had no turn.
    pub for_all: Option<f64>,
    /// The way in which the reference failed when it was run again.
    pub unrepeatable: Option<String>,
}

impl<S> Default for RaceOutcome<S> {
    fn default() -> RaceOutcome<S> {
        RaceOutcome {
            runs: Vec::new(),
            fates: Vec::new(),
            winner: None,
            fresh: None,
            stopped: false,
            needs: None,
            for_all: None,
            unrepeatable: None,
        }
    }
}

impl<S> RaceOutcome<S> {
    /// The winner's figure over the reference's, by fresh runs alone. Of fewer pairs than a signed-rank interval takes, the
    /// interval is that of [`interval::anytime`], which any number has.
    pub fn fresh_ratio(&self, figure: impl Fn(&S) -> f64) -> Option<Ratio> {
        let [reference, own] = self.fresh.as_ref()?;
        let ratios = of_rounds(&own.of(&figure), &reference.of(&figure));
        Some(match ratios.len() {
            ..LEAST_ROUNDS => interval::anytime(&ratios),
            _ => interval::paired(&ratios),
        })
    }

    fn live(&self) -> Vec<usize> {
        (1..=self.fates.len()).filter(|who| self.fates[who - 1] == Fate::Live).collect()
    }
}

/// A race that is going on.
struct Racing<'r, R: Runner> {
    runner: &'r mut R,
    question: Question,
    outcome: RaceOutcome<R::Sample>,
    random: fastrand::Rng,
    begun: f64,
}

/// Races all contestants, then compares the winner with the reference on fresh runs.
///
/// # Errors
/// Those of the runner.
pub fn race<R: Runner>(
    runner: &mut R,
    question: Question,
) -> Result<RaceOutcome<R::Sample>, R::Error> {
    let outcome = RaceOutcome {
        runs: (0..=question.contestants).map(|_| Runs::default()).collect(),
        fates: vec![Fate::Live; question.contestants],
        ..RaceOutcome::default()
    };
    let (random, begun) = (fastrand::Rng::with_seed(question.seed), runner.now());
    let mut racing = Racing { runner, question, outcome, random, begun };
    racing.all()?;
    Ok(racing.outcome)
}

/// Pairs of runs: the reference's side, and the contestant's.
#[derive(Clone, Debug)]
pub struct Pairs<S> {
    /// The reference's runs, and the contestant's.
    pub sides: [Runs<S>; 2],
    /// The reason why there are not as many as were asked for.
    pub cut: Option<Cut>,
}

/// The reason why pairs ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The user stopped it.
    Stopped,
    /// The reference failed.
    Reference(String),
    /// The contestant failed.
    Contestant(String),
}

/// Runs a contestant and the reference in so many pairs, with places balanced; `before` is called with each pair's number.
///
/// # Errors
/// Those of the runner.
pub fn pairs<R: Runner>(
    runner: &mut R,
    who: usize,
    count: usize,
    seed: u64,
    mut before: impl FnMut(&mut R, usize),
) -> Result<Pairs<R::Sample>, R::Error> {
    let mut pairs = Pairs { sides: [Runs::default(), Runs::default()], cut: None };
    for (pair, order) in turns::orders(2, count, seed).into_iter().enumerate() {
        before(runner, pair);
        let mut samples = [None, None];
        for side in order {
            let is_own = side == 1;
            match runner.run(if is_own { who } else { 0 })? {
                Ran::Well(sample) => samples[side] = Some(sample),
                Ran::Stopped => pairs.cut = Some(Cut::Stopped),
                Ran::Wrong(why) if is_own => pairs.cut = Some(Cut::Contestant(why)),
                Ran::Wrong(why) => pairs.cut = Some(Cut::Reference(why)),
            }
            if pairs.cut.is_some() {
                return Ok(pairs);
            }
        }
        for (runs, sample) in pairs.sides.iter_mut().zip(samples) {
            runs.0.push(sample);
        }
    }
    Ok(pairs)
}

impl<R: Runner> Racing<'_, R> {
    /// The race, then fresh runs: again where they disqualify the winner.
    fn all(&mut self) -> Result<(), R::Error> {
        let Question { contestants, expected, budget, rounds, .. } = self.question;
        if contestants == 0 {
            return Ok(());
        }
        let pair = 2.0 * expected.max(1e-4);
        let most = (budget * (1.0 + OVERDRAWN) / pair) as usize;
        if rounds.is_none() && most < LEAST_PAIRS {
            self.outcome.needs = Some(LEAST_PAIRS as f64 * pair);
            return Ok(());
        }
        match rounds {
            Some(rounds) => {
                let all: Vec<usize> = (1..=contestants).collect();
                self.rounds(&all, rounds, f64::INFINITY, false)?;
                self.eliminate(&all);
            }
            None => self.heats()?,
        }
        while !self.is_over() {
            let Some(winner) = self.pick().or_else(|| self.reach_another()) else { break };
            self.outcome.winner = Some(winner);
            if self.run_afresh(winner)? {
                break;
            }
            self.outcome.winner = None;
        }
        self.outcome.for_all = self.for_all();
        Ok(())
    }

    /// Gives the simplest of those without a turn one, where none is left that raced and time for the fewest pairs is.
    fn reach_another(&mut self) -> Option<usize> {
        let spent = self.runner.now() - self.begun;
        let pairs = 2.0 * LEAST_PAIRS as f64 * self.one();
        if spent + pairs > self.question.budget {
            return None;
        }
        let at = self.outcome.fates.iter().position(|fate| *fate == Fate::NotReached)?;
        self.outcome.fates[at] = Fate::Live;
        Some(at + 1)
    }

    /// Seconds in which those without a turn would have had theirs, too.
    fn for_all(&self) -> Option<f64> {
        let waiting = self.outcome.fates.iter().filter(|fate| **fate == Fate::NotReached).count();
        let rounds = (waiting * LEAST_ROUNDS) as f64 / (FIRST_ROUNDS * (1.0 - FRESH));
        (waiting > 0).then(|| self.question.budget + rounds * self.one())
    }

    fn is_over(&self) -> bool {
        self.outcome.stopped || self.outcome.unrepeatable.is_some()
    }

    /// Seconds that a run takes, as far as is known.
    fn one(&self) -> f64 {
        let costs = self.outcome.runs.iter().map(Runs::rounds).sum::<usize>();
        match costs {
            0 => self.question.expected.max(1e-4),
            runs => (self.runner.now() - self.begun) / runs as f64,
        }
    }

    /// The moment at which the race has to end, so that fresh runs have their part.
    fn end(&self) -> f64 {
        let fresh = (FRESH * self.question.budget).max(2.0 * LEAST_ROUNDS as f64 * self.one());
        let most = 2.0 * MOST_PAIRS as f64 * self.one();
        self.begun + self.question.budget - fresh.min(most)
    }

    /// Heats of as many as the time carries, the simplest first.
    fn heats(&mut self) -> Result<(), R::Error> {
        let mut next = 1;
        while next <= self.question.contestants && !self.is_over() {
            let left = self.end() - self.runner.now();
            let waiting = self.question.contestants + 1 - next;
            let of_one = LEAST_ROUNDS as f64 * self.one();
            // The reference takes part, and the best of those before.
            let incumbent = self.pick().filter(|who| *who < next);
            let beside = 1 + usize::from(incumbent.is_some());
            let fits = |time: f64| ((time / of_one) as usize).saturating_sub(beside);
            let room = match fits(left) {
                all if all <= 1 => all,
                _ => fits(FIRST_ROUNDS * left).max(1),
            };
            let heat: Vec<usize> =
                incumbent.into_iter().chain(next..next + room.min(waiting)).collect();
            if room == 0 {
                break;
            }
            next += room.min(waiting);
            for other in (1..next).filter(|who| !heat.contains(who)) {
                // Undecided against a simpler one that goes on.
                if self.outcome.fates[other - 1] == Fate::Live {
                    self.outcome.fates[other - 1] = Fate::Simpler;
                }
            }
            let end = self.end();
            self.rounds(&heat, MOST_ROUNDS, end, true)?;
        }
        let reached = if next == 1 { 1 } else { next - 1 };
        for fate in &mut self.outcome.fates[reached..] {
            *fate = Fate::NotReached;
        }
        Ok(())
    }

    /// Rounds of these beside the reference, until so many, until that moment, or until all is decided.
    fn rounds(
        &mut self,
        heat: &[usize],
        most: usize,
        end: f64,
        early: bool,
    ) -> Result<(), R::Error> {
        for round in 0..most {
            let live: Vec<usize> = self.outcome.live();
            let turn: Vec<usize> = heat.iter().copied().filter(|who| live.contains(who)).collect();
            if turn.is_empty() || early && round >= LEAST_ROUNDS && self.is_decided(&turn) {
                return Ok(());
            }
            let next = self.one() * (turn.len() + 1) as f64;
            let now = self.runner.now();
            let last = self.question.budget + self.begun;
            if early && now + next > if round < LEAST_ROUNDS { last } else { end } {
                return Ok(());
            }
            let after = last - end;
            let left =
                if early { (end - now).max(0.0) + after } else { next * (most - round) as f64 };
            self.runner.progress(Stage::Race, left);
            let mut order: Vec<usize> = turn.iter().copied().chain([0]).collect();
            self.random.shuffle(&mut order);
            if self.outcome.runs[0].rounds() == 0 {
                // The reference runs again before a contestant is blamed.
                order.retain(|who| *who != 0);
                order.insert(0, 0);
            }
            let mut samples: Vec<Option<R::Sample>> = vec![None; self.outcome.runs.len()];
            for who in order {
                match self.runner.run(who)? {
                    Ran::Well(sample) => samples[who] = Some(sample),
                    Ran::Stopped => self.outcome.stopped = true,
                    Ran::Wrong(why) if who == 0 => self.outcome.unrepeatable = Some(why),
                    Ran::Wrong(why) => self.outcome.fates[who - 1] = Fate::Disqualified(why),
                }
                if self.is_over() {
                    return Ok(());
                }
            }
            for (runs, sample) in self.outcome.runs.iter_mut().zip(samples) {
                runs.0.push(sample);
            }
            if early {
                self.eliminate(&turn);
            }
        }
        Ok(())
    }

    /// A contestant's figure over another's at any moment of the race; `None` below [`LEAST_ROUNDS`].
    fn over(&self, who: usize, other: usize) -> Option<Ratio> {
        let costs = |who: usize| self.outcome.runs[who].of(R::cost);
        let found = interval::anytime(&of_rounds(&costs(who), &costs(other)));
        (found.rounds >= LEAST_ROUNDS).then_some(found)
    }

    /// The loss of a contestant over the reference's at any moment of the race; none where nothing is bounded.
    fn lost(&self, who: usize) -> Option<Ratio> {
        self.question.allowed?;
        let losses =
            |who: usize| self.outcome.runs[who].of(|sample| R::loss(sample).unwrap_or(f64::NAN));
        Some(interval::anytime(&of_rounds(&losses(who), &losses(0)))).filter(|lost| lost.rounds > 0)
    }

    /// Returns true if a contestant seems to lose no more than is allowed.
    fn is_affordable(&self, who: usize) -> bool {
        let most = 1.0 + self.question.allowed.unwrap_or(f64::INFINITY);
        self.lost(who).is_none_or(|lost| lost.median <= most)
    }

    /// Returns whether a contestant is shown to gain, at a price that is allowed as far as it seems.
    fn gains(&self, who: usize) -> bool {
        self.is_affordable(who)
            && self.over(who, 0).is_some_and(|over| over.high < 1.0 / (1.0 + self.question.margin))
    }

    /// Marks those that are shown to gain nothing, and one of each two that are told apart.
    fn eliminate(&mut self, heat: &[usize]) {
        let worth = 1.0 / (1.0 + self.question.margin);
        let better = 1.0 / (1.0 + SIMPLER);
        let most = 1.0 + self.question.allowed.unwrap_or(f64::INFINITY);
        for who in heat {
            let lost = self.lost(*who).filter(Ratio::has_interval);
            let leaves = leaves(self.over(*who, 0).as_ref(), worth, lost.as_ref(), most);
            let fate = &mut self.outcome.fates[who - 1];
            if *fate == Fate::Live {
                *fate = leaves.unwrap_or(Fate::Live);
            }
        }
        let live = self.outcome.live();
        let gaining: Vec<usize> = live.iter().copied().filter(|who| self.gains(*who)).collect();
        for (simple, other) in live.iter().flat_map(|a| live.iter().map(move |b| (*a, *b))) {
            let both = [simple, other].iter().all(|who| self.outcome.fates[who - 1] == Fate::Live);
            let Some(over) = self.over(other, simple).filter(|_| simple < other && both) else {
                continue;
            };
            if over.low > better && gaining.contains(&simple) {
                self.outcome.fates[other - 1] = Fate::Simpler;
            } else if over.high < better {
                self.outcome.fates[simple - 1] = Fate::Slower;
            }
        }
    }

    /// Returns whether further rounds would not change the winner: one is left, and shown to gain.
    fn is_decided(&self, heat: &[usize]) -> bool {
        match heat {
            [] => true,
            [only] => self.gains(*only),
            _ => false,
        }
    }

    /// The contestant that has fresh runs: the simplest of those that are shown to gain; where none is, the simplest whose
    /// estimate does, and else the best one.
    fn pick(&self) -> Option<usize> {
        let live = self.outcome.live();
        let estimate = |who: usize| {
            let costs = |who: usize| self.outcome.runs[who].of(R::cost);
            let found = interval::anytime(&of_rounds(&costs(who), &costs(0))).median;
            if found.is_nan() { f64::INFINITY } else { found }
        };
        let worth = 1.0 / (1.0 + self.question.margin);
        let shown = || live.iter().copied().find(|who| self.gains(*who));
        let affordable = || live.iter().copied().filter(|who| self.is_affordable(*who));
        let seems = || affordable().find(|who| estimate(*who) < worth);
        let best = || affordable().min_by(|a, b| estimate(*a).total_cmp(&estimate(*b)));
        shown().or_else(seems).or_else(best)
    }

    /// Compares the winner with the reference on fresh runs; whether that is the answer: not where the winner is disqualified.
    fn run_afresh(&mut self, winner: usize) -> Result<bool, R::Error> {
        let one = self.one();
        let left = self.begun + self.question.budget - self.runner.now();
        let fit = (left / (2.0 * one)) as usize;
        let raced = self.outcome.runs[winner].rounds() > 0;
        // Settled before the first of them; rounds that the race did not need are theirs.
        let count = match self.question.rounds {
            Some(rounds) => rounds.min(MOST_PAIRS),
            None if raced => fit.clamp(LEAST_ROUNDS, MOST_PAIRS),
            None => fit.clamp(LEAST_PAIRS, MOST_PAIRS),
        };
        let progress = |runner: &mut R, pair: usize| {
            runner.progress(Stage::Fresh, (count - pair) as f64 * 2.0 * one);
        };
        let found = pairs(self.runner, winner, count, self.question.seed ^ 1, progress)?;
        match found.cut {
            None => {}
            Some(Cut::Stopped) => self.outcome.stopped = true,
            Some(Cut::Reference(why)) => self.outcome.unrepeatable = Some(why),
            Some(Cut::Contestant(why)) => {
                self.outcome.fates[winner - 1] = Fate::Disqualified(why);
                return Ok(false);
            }
        }
        self.outcome.fresh = Some(found.sides);
        Ok(true)
    }
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
