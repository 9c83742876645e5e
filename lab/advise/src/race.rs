//! Candidates beside the plain program in random order, within a budget; then a referee.
//!
//! A candidate is out when it is shown to be slower than the best one, or shown to gain less than is worth
//! a setting. The intervals hold at every round at once, so that looking after each round does not make
//! them wrong. Where the budget has no room for [`LEAST_ROUNDS`] rounds of all, the better half goes on
//! (sequential halving: Karnin, Koren and Somekh 2013). What is left is refereed on fresh runs, whose number
//! is settled before the first.

use crate::bound::WORTH;
use crate::candidates::Candidate;
use cachewise_measure::agreement::LogRatio;
use cachewise_measure::stats::{LEAST_ROUNDS, PairedRatio, median};
use cachewise_measure::turns;

/// Rounds after which a race has shown what it can.
const MOST_ROUNDS: usize = 60;
/// Rounds of the referee.
const MOST_REFEREED: usize = 30;
/// The referee's part of the time, where it does not need less.
const REFEREED: f64 = 0.4;
/// A setting is not preferred for its simplicity where it is estimated to take longer than the best by more.
const SIMPLER: f64 = 0.05;

/// One run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// What is to be small: seconds, or another figure.
    pub cost: f64,
    /// Seconds of CPU.
    pub cpu: f64,
    /// Bytes of memory that the largest process held at most.
    pub peak: f64,
    /// Page faults.
    pub faults: f64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// As the plain program's.
    Well(Sample),
    /// Otherwise: other bytes, another status, too long. The candidate is disqualified.
    Wrong(String),
    /// The user wants to stop.
    Stopped,
}

/// Where a race is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All against each other.
    Race,
    /// The winner alone against the plain program.
    Referee,
}

/// Runs the program; real, or simulated.
pub trait Program {
    /// Why a run could not be made at all.
    type Error;
    /// Runs it by a candidate, or plain.
    ///
    /// # Errors
    /// What ends everything.
    fn run(&mut self, by: Option<&Candidate>) -> Result<Ran, Self::Error>;
    /// Seconds since the beginning.
    fn now(&self) -> f64;
    /// Is told how long the rest takes.
    fn progress(&mut self, stage: Stage, left: f64);
}

/// What the runs of one candidate have shown; NaN where it had no turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs(Vec<Sample>);

impl Runs {
    const NONE: Sample = Sample { cost: f64::NAN, cpu: f64::NAN, peak: f64::NAN, faults: f64::NAN };

    /// One figure of all rounds.
    pub fn of(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.0.iter().map(figure).collect()
    }

    /// Costs by round.
    pub fn costs(&self) -> Vec<f64> {
        self.of(|sample| sample.cost)
    }

    /// The median of a figure over the rounds with a turn.
    pub fn median(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        let values: Vec<f64> =
            self.of(figure).into_iter().filter(|value| value.is_finite()).collect();
        median(&values)
    }

    /// Rounds with a turn.
    pub fn rounds(&self) -> usize {
        self.0.iter().filter(|sample| sample.cost.is_finite()).count()
    }

    /// A figure over another's of the same rounds.
    pub fn over(&self, other: &Runs, figure: impl Fn(&Sample) -> f64 + Copy) -> PairedRatio {
        PairedRatio::in_turns(&self.of(figure), &other.of(figure))
    }
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In the race to its end.
    Live,
    /// Shown to be slower than another one.
    Slower,
    /// Shown to gain less than is worth a setting.
    NoGain,
    /// Given up for those that did better, for want of time.
    Halved,
    /// Another output, another status, too long.
    Disqualified(String),
}

/// A race and what came of it. Index 0 is the plain program.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By candidate, the plain program first.
    pub runs: Vec<Runs>,
    /// By candidate, without the plain program.
    pub fates: Vec<Fate>,
    /// The candidate that was refereed.
    pub winner: Option<usize>,
    /// The referee's runs: plain, and the winner's.
    pub refereed: Option<[Runs; 2]>,
    /// Whether the user stopped it.
    pub stopped: bool,
    /// Whether the budget had no room for a race and a referee.
    pub too_short: bool,
}

impl Outcome {
    /// The winner's speed by the referee: above 1 is faster.
    pub fn speed(&self) -> Option<PairedRatio> {
        let [plain, own] = self.refereed.as_ref()?;
        Some(plain.over(own, |sample| sample.cost))
    }

    fn live(&self) -> Vec<usize> {
        (0..self.fates.len()).filter(|at| self.fates[*at] == Fate::Live).collect()
    }

    /// A candidate's cost over another's, in logarithms; `None` stands for the plain program.
    fn log(&self, of: usize, over: Option<usize>) -> Option<LogRatio> {
        let other = over.map_or(0, |other| other + 1);
        LogRatio::of_rounds(&self.runs[of + 1].costs(), &self.runs[other].costs())
    }

    /// The candidate with the least cost over the plain program, of those.
    fn best(&self, of: &[usize]) -> Option<usize> {
        let estimate = |at: &usize| Some((self.log(*at, None)?.log, *at));
        let all = of.iter().filter_map(estimate);
        all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
    }
}

/// How wide an interval is, in standard errors, that holds at every moment of a growing number of rounds at
/// once (a normal mixture's confidence sequence at 5 %: Robbins 1970).
fn always(rounds: usize) -> f64 {
    let n = rounds.max(1) as f64;
    // The error is an estimate too: Student's t of n - 1 degrees over the normal's, at 5 % (2.2 of 3 rounds, 1.15 of 10).
    let student = 1.0 + 1.2 / (n - 2.0).max(1.0);
    student * (2.0 * (1.0 + 1.0 / n) * ((n + 1.0).sqrt() / 0.05).ln()).sqrt()
}

/// Has so many seconds from now on; each run takes about `expected`. With `rounds`, nobody is out early and each has
/// so many rounds.
///
/// # Errors
/// Those of the program.
pub fn race<P: Program>(
    program: &mut P,
    candidates: &[Candidate],
    expected: f64,
    budget: f64,
    rounds: Option<usize>,
    seed: u64,
) -> Result<Outcome, P::Error> {
    let mut outcome = Outcome {
        runs: vec![Runs::default(); candidates.len() + 1],
        fates: vec![Fate::Live; candidates.len()],
        ..Outcome::default()
    };
    let begun = program.now();
    let pair = 2.0 * expected.max(1e-4);
    let fit = (REFEREED * budget / pair) as usize;
    let mut refereed = fit.clamp(LEAST_ROUNDS, MOST_REFEREED);
    let end = begun + budget - refereed as f64 * pair;
    // Two rounds of two are the least that is a race.
    if rounds.is_none() && end - begun < 2.0 * pair {
        outcome.too_short = true;
        return Ok(outcome);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let most = rounds.unwrap_or(MOST_ROUNDS);
    for round in 0..most {
        let live = outcome.live();
        if live.is_empty() || rounds.is_none() && is_settled(&outcome, &live) {
            break;
        }
        let took = (program.now() - begun)
            / outcome.runs.iter().map(Runs::rounds).sum::<usize>().max(1) as f64;
        let one = if round == 0 { expected } else { took };
        let next = one * (live.len() + 1) as f64;
        let after = refereed as f64 * 2.0 * one;
        let all = next * (most - round) as f64;
        let left = if rounds.is_some() { all } else { all.min(end - program.now()).max(0.0) };
        program.progress(Stage::Race, left + after);
        if rounds.is_none() && round > 0 && program.now() + next > end {
            break;
        }
        let mut order: Vec<Option<usize>> = live.iter().copied().map(Some).chain([None]).collect();
        random.shuffle(&mut order);
        let mut samples = vec![Runs::NONE; candidates.len() + 1];
        for by in order {
            match program.run(by.map(|at| &candidates[at]))? {
                Ran::Well(sample) => samples[by.map_or(0, |at| at + 1)] = sample,
                Ran::Stopped => {
                    outcome.stopped = true;
                    return Ok(outcome);
                }
                Ran::Wrong(why) => match by {
                    Some(at) => outcome.fates[at] = Fate::Disqualified(why),
                    // The plain program differs from itself: no verdict on others follows from that.
                    None => samples[0] = Runs::NONE,
                },
            }
            let late = program.now() > end + refereed as f64 * pair;
            if late && rounds.is_none() {
                break;
            }
        }
        for (runs, sample) in outcome.runs.iter_mut().zip(samples) {
            runs.0.push(sample);
        }
        if rounds.is_none() {
            eliminate(&mut outcome, candidates, round + 1);
            let next = |live: usize| one * (live + 1) as f64 * LEAST_ROUNDS as f64;
            let room = end - program.now();
            halve(&mut outcome, |live| {
                next(live) * (1.0 - round as f64 / LEAST_ROUNDS as f64) <= room
            });
        }
    }
    let live = outcome.live();
    outcome.winner = outcome.best(&live).map(|best| simplest(&outcome, candidates, &live, best));
    let Some(winner) = outcome.winner else { return Ok(outcome) };
    let runs = outcome.runs.iter().map(Runs::rounds).sum::<usize>().max(1);
    let one = (program.now() - begun) / runs as f64;
    // Settled before the first of them; rounds that the race did not need are the referee's.
    let left = budget - (program.now() - begun);
    refereed = turns_of(left, 2.0 * one).max(rounds.map_or(0, |rounds| rounds.min(MOST_REFEREED)));
    let mut both = [Runs::default(), Runs::default()];
    for (round, order) in turns::orders(2, refereed, seed ^ 1).into_iter().enumerate() {
        program.progress(Stage::Referee, (refereed - round) as f64 * 2.0 * one);
        let mut samples = [Runs::NONE; 2];
        for at in order {
            match program.run((at == 1).then(|| &candidates[winner]))? {
                Ran::Well(sample) => samples[at] = sample,
                Ran::Stopped => {
                    outcome.stopped = true;
                    outcome.refereed = Some(both);
                    return Ok(outcome);
                }
                Ran::Wrong(why) if at == 1 => {
                    outcome.fates[winner] = Fate::Disqualified(why);
                    outcome.winner = None;
                    return Ok(outcome);
                }
                Ran::Wrong(_) => {}
            }
        }
        for (runs, sample) in both.iter_mut().zip(samples) {
            runs.0.push(sample);
        }
    }
    outcome.refereed = Some(both);
    Ok(outcome)
}

/// Rounds of a referee in so many seconds.
fn turns_of(left: f64, pair: f64) -> usize {
    ((left / pair.max(1e-6)) as usize).clamp(LEAST_ROUNDS, MOST_REFEREED)
}

/// Whether further rounds would not change who is refereed: few enough are left, and each is as known as it
/// will be.
fn is_settled(outcome: &Outcome, live: &[usize]) -> bool {
    // What scatter is left after so many rounds is below the floor of an error.
    const ENOUGH: usize = 8;
    let known = |at: &usize| {
        outcome.runs[at + 1].rounds() >= ENOUGH
            && outcome.log(*at, None).is_some_and(|of| of.error <= 0.008)
    };
    live.iter().all(known)
}

/// Takes those out that are shown to be.
fn eliminate(outcome: &mut Outcome, candidates: &[Candidate], round: usize) {
    let live = outcome.live();
    let Some(best) = outcome.best(&live) else { return };
    let width = always(round);
    for at in live {
        let Some(plain) = outcome.log(at, None) else { continue };
        // It gains less than is worth a setting, whatever the rest is.
        if plain.log - width * plain.error > -WORTH.ln_1p() {
            outcome.fates[at] = Fate::NoGain;
            continue;
        }
        let Some(behind) = outcome.log(at, Some(best)).filter(|_| at != best) else { continue };
        // A simpler one has the benefit of its simplicity.
        let simpler = candidates[at].simplicity() < candidates[best].simplicity();
        let allowed = if simpler { SIMPLER.ln_1p() } else { 0.0 };
        if behind.log - width * behind.error > allowed {
            outcome.fates[at] = Fate::Slower;
        }
    }
}

/// Gives up the worse half while there is no room for the rest.
fn halve(outcome: &mut Outcome, has_room: impl Fn(usize) -> bool) {
    loop {
        let live = outcome.live();
        if live.len() < 2 || has_room(live.len()) {
            return;
        }
        let mut ranked: Vec<(f64, usize)> = live
            .iter()
            .map(|at| (outcome.log(*at, None).map_or(f64::MAX, |log| log.log), *at))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, at) in ranked.drain(live.len().div_ceil(2)..) {
            outcome.fates[at] = Fate::Halved;
        }
    }
}

/// The simplest among those that are not told apart from the best.
fn simplest(outcome: &Outcome, candidates: &[Candidate], live: &[usize], best: usize) -> usize {
    let level = |at: &usize| {
        let behind = outcome.log(*at, Some(best));
        *at == best || behind.is_some_and(|of| of.may_lose_nothing() && of.log <= SIMPLER.ln_1p())
    };
    let cost = |at: usize| outcome.log(at, None).map_or(f64::MAX, |of| of.log);
    let order = |a: &usize, b: &usize| {
        let simple = |at: usize| candidates[at].simplicity();
        // Of two that are equally simple, the better one, where that is more than chance.
        simple(*a).cmp(&simple(*b)).then(cost(*a).total_cmp(&cost(*b)))
    };
    live.iter().copied().filter(level).min_by(order).unwrap_or(best)
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
