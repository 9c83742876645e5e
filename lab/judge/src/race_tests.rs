//! Programs and machines whose truth is known: the answers are right in at least 95 of 100 cases.

use super::*;
use crate::margin::SETTING;
use crate::verdict::Verdict;
use std::convert::Infallible;

/// A program whose contestants take a known part of its time, in the order of their simplicity.
struct Simulated {
    seconds: f64,
    noise: f64,
    parts: Vec<f64>,
    /// A neighbour takes half of the CPU in one of twenty runs.
    neighbour: bool,
    /// The number that fails, and from which of its runs on.
    wrong: Option<(usize, usize)>,
    stop_at: f64,
    clock: f64,
    runs: Vec<usize>,
    random: fastrand::Rng,
    said: Vec<(Stage, f64, f64)>,
}

fn simulated(seconds: f64, noise: f64, parts: &[f64], seed: u64) -> Simulated {
    Simulated {
        seconds,
        noise,
        parts: parts.to_vec(),
        neighbour: true,
        wrong: None,
        stop_at: f64::MAX,
        clock: 0.0,
        runs: vec![0; parts.len() + 1],
        random: fastrand::Rng::with_seed(seed),
        said: Vec::new(),
    }
}

impl Simulated {
    fn race(&mut self, budget: f64, rounds: Option<usize>) -> RaceOutcome<f64> {
        let (contestants, expected) = (self.parts.len(), self.seconds);
        let seed = self.random.u64(..);
        let question = Question {
            contestants,
            expected,
            budget,
            rounds,
            margin: SETTING,
            allowed: None,
            seed,
        };
        let Ok(outcome) = race(self, question);
        outcome
    }

    /// The answer: the number of the contestant that is shown to gain; 0 where none is.
    fn answer(&mut self, budget: f64) -> usize {
        let outcome = self.race(budget, None);
        assert!(self.clock <= 1.3 * budget, "{} of {budget}", self.clock);
        shown(&outcome)
    }
}

fn shown(outcome: &RaceOutcome<f64>) -> usize {
    let ratio = outcome.fresh_ratio(|cost| *cost);
    let faster = ratio.is_some_and(|ratio| Verdict::of_change(&ratio, SETTING) == Verdict::Faster);
    outcome.winner.filter(|_| faster).unwrap_or(0)
}

impl Runner for Simulated {
    type Sample = f64;
    type Error = Infallible;

    fn run(&mut self, who: usize) -> Result<Ran<f64>, Infallible> {
        if self.clock > self.stop_at {
            return Ok(Ran::Stopped);
        }
        self.runs[who] += 1;
        // Near a normal: the sum of twelve uniform ones.
        let normal = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        let taken = if self.neighbour && self.random.u32(..20) == 0 { 1.5 } else { 1.0 };
        let part = if who == 0 { 1.0 } else { self.parts[who - 1] };
        let cost = self.seconds * part * taken * (self.noise * normal).exp();
        self.clock += cost;
        let is_wrong =
            self.wrong.is_some_and(|(wrong, from)| wrong == who && self.runs[who] >= from);
        Ok(if is_wrong { Ran::Wrong("another output".to_owned()) } else { Ran::Well(cost) })
    }

    fn cost(sample: &f64) -> f64 {
        *sample
    }

    fn now(&self) -> f64 {
        self.clock
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        self.said.push((stage, self.clock, left));
    }
}

/// Twelve settings, of which the first and some others are as good.
const MANY: [f64; 12] = [0.41, 0.40, 0.8, 1.0, 0.6, 0.42, 0.7, 0.7, 1.1, 1.0, 0.97, 0.98];

#[test]
fn the_same_program_gets_the_same_simplest_answer() {
    let all = |seed: u64| [(0.005, 0.03), (0.3, 0.05), (1.0, 0.02)].map(move |of| (seed, of));
    let cases: Vec<_> = (0..40).flat_map(all).collect();
    let wrong = cases.iter().filter(|(seed, (seconds, noise))| {
        simulated(*seconds, *noise, &MANY, *seed).answer(180.0) != 1
    });
    let wrong = wrong.count();
    assert!(20 * wrong <= cases.len(), "{wrong} of {}", cases.len());
}

/// One noisy round decided which half went on.
#[test]
fn nobody_leaves_on_fewer_rounds_than_carry_an_interval() {
    for (seed, seconds) in (0..60).zip([0.1, 2.0, 7.0].into_iter().cycle()) {
        let outcome = simulated(seconds, 0.2, &MANY, seed).race(180.0, None);
        for (fate, runs) in outcome.fates.iter().zip(&outcome.runs[1..]) {
            let left = matches!(fate, Fate::NoGain | Fate::Slower | Fate::Simpler);
            assert!(!left || runs.rounds() >= LEAST_ROUNDS, "{fate:?} of {} rounds", runs.rounds());
            assert!(*fate != Fate::NotReached || runs.rounds() == 0);
        }
    }
}

#[test]
fn the_best_is_out_by_chance_in_5_of_100_races_at_most() {
    for noise in [0.01, 0.05, 0.15] {
        let out = (0..200).filter(|seed| {
            let outcome =
                simulated(0.1, noise, &[1.0, 0.98, 0.85, 0.97, 1.05], *seed).race(60.0, None);
            outcome.fates[2] != Fate::Live
        });
        let out = out.count();
        assert!(out <= 10, "{noise}: {out} of 200");
    }
}

#[test]
fn no_gain_is_recommended_in_25_of_1000_races_at_most() {
    let wrong = (0..300).filter(|seed| {
        let noise = [0.01, 0.05, 0.2][*seed as usize % 3];
        simulated(0.2, noise, &[1.0; 12], *seed).answer(60.0) != 0
    });
    let wrong = wrong.count();
    assert!(wrong <= 8, "{wrong} of 300");
}

#[test]
fn what_replaces_a_simpler_one_is_better_by_more_than_simplicity_is_worth() {
    let answers = |parts: &[f64]| {
        let mut counts = vec![0; parts.len() + 1];
        for seed in 0..100 {
            counts[simulated(0.05, 0.03, parts, seed).answer(60.0)] += 1;
        }
        counts
    };
    // The second adds nothing, little, much.
    for (second, number) in [(0.8, 1), (0.78, 1), (0.7, 2)] {
        let counts = answers(&[0.8, second]);
        assert!(counts[number] >= 95, "{second}: {counts:?}");
    }
    // A simple one without gain keeps none out.
    let counts = answers(&[0.99, 0.96]);
    assert!(counts[1] == 0, "{counts:?}");
}

#[test]
fn a_long_program_is_compared_with_its_simplest_setting() {
    for (budget, pairs) in [(8.1, 4), (6.5, 4), (13.0, 6)] {
        let mut program = simulated(1.0, 0.005, &[0.5, 0.4], 5);
        program.neighbour = false;
        let outcome = program.race(budget, None);
        assert_eq!(outcome.winner, Some(1), "{outcome:?}");
        let ratio = outcome.fresh_ratio(|cost| *cost).expect("fresh runs");
        assert!(ratio.rounds >= pairs && ratio.high < 0.6, "{budget}: {ratio:?}");
        assert_eq!(outcome.fates[1], Fate::NotReached);
        assert!(program.clock <= 1.3 * budget, "{}", program.clock);
    }
    let none = simulated(1.0, 0.005, &[0.5], 5).race(5.0, None);
    assert!(none.winner.is_none() && none.needs == Some(8.0), "{none:?}");
}

#[test]
fn four_pairs_show_no_gain_where_there_is_none() {
    let wrong = (0..400).filter(|seed| {
        let outcome = simulated(1.0, 0.05, &[1.0], *seed).race(8.1, None);
        outcome.fresh_ratio(|cost| *cost).is_some_and(|ratio| ratio.high < 1.0 / (1.0 + SETTING))
    });
    let wrong = wrong.count();
    assert!(wrong <= 20, "{wrong} of 400");
}

#[test]
fn a_program_that_fails_when_run_again_ends_everything() {
    let mut program = simulated(0.1, 0.02, &MANY, 3);
    program.wrong = Some((0, 2));
    let outcome = program.race(60.0, None);
    assert_eq!(outcome.unrepeatable.as_deref(), Some("another output"));
    assert!(outcome.fresh.is_none() && program.clock < 3.0, "{}", program.clock);
    // If all fail, the reference runs first.
    let mut program = simulated(0.1, 0.02, &[0.5], 3);
    program.wrong = Some((0, 1));
    let outcome = program.race(60.0, None);
    assert!(outcome.unrepeatable.is_some() && program.runs == [1, 0], "{:?}", program.runs);
}

#[test]
fn what_fails_is_disqualified_and_the_next_best_wins() {
    let (mut first, mut fresh) =
        (simulated(0.1, 0.02, &[0.5, 0.6], 3), simulated(0.1, 0.02, &[0.5, 0.6], 3));
    first.wrong = Some((1, 1));
    // It fails for the first time before the fresh runs.
    fresh.wrong = Some((1, 8));
    for program in [&mut first, &mut fresh] {
        let outcome = program.race(60.0, None);
        assert_eq!(outcome.fates[0], Fate::Disqualified("another output".to_owned()));
        assert_eq!(outcome.winner.filter(|_| outcome.fresh.is_some()).unwrap_or(2), 2);
    }
    // A long program's next simplest setting has its turn.
    let mut long = simulated(1.0, 0.01, &[0.5, 0.6], 3);
    long.wrong = Some((1, 1));
    assert_eq!(long.race(10.0, None).winner, Some(2));
}

#[test]
fn a_stop_keeps_what_is_known() {
    let mut program = simulated(1.0, 0.02, &MANY, 3);
    program.stop_at = 30.0;
    let outcome = program.race(180.0, None);
    assert!(outcome.stopped && outcome.runs[0].rounds() >= 1, "{outcome:?}");
}

#[test]
fn the_time_left_is_right_within_a_fifth_once_fresh_runs_begin() {
    let mut program = simulated(0.8, 0.03, &MANY, 11);
    program.race(120.0, None);
    let end = program.clock;
    let late =
        program.said.iter().filter(|(stage, now, _)| *stage == Stage::Fresh && end - now > 8.0);
    assert!(late.clone().count() > 3);
    for (_, now, left) in late {
        // Both sides' runs are as long as the mean of all runs was.
        assert!((left / (end - now)).ln().abs() < 0.3, "at {now} of {end}: {left}");
    }
}

#[test]
fn with_rounds_everybody_has_them_all() {
    let outcome = simulated(0.1, 0.02, &MANY, 3).race(1.0, Some(30));
    assert!(outcome.runs.iter().all(|runs| runs.rounds() == 30));
    assert_eq!((outcome.winner, shown(&outcome)), (Some(1), 1));
}

#[test]
fn time_that_is_left_is_used_and_the_time_for_all_is_known() {
    let (mut idle, mut short) = (0, 0);
    for seed in 0..100 {
        let mut few = simulated(1.0, 0.02, &[1.0; 12], seed);
        let outcome = few.race(40.0, None);
        let waiting = outcome.fates.iter().filter(|fate| **fate == Fate::NotReached).count();
        let for_all = outcome.for_all;
        assert_eq!(waiting > 0, for_all.is_some(), "{seed}");
        let Some(for_all) = for_all else { continue };
        // Eight runs would be four pairs of another one.
        idle += usize::from(few.clock < 40.0 - 9.0 * 1.5);
        let mut all = simulated(1.0, 0.02, &[1.0; 12], seed);
        let outcome = all.race(for_all, None);
        short += usize::from(outcome.fates.contains(&Fate::NotReached));
    }
    assert!(idle <= 5 && short <= 5, "{idle} idle, {short} short");
}
