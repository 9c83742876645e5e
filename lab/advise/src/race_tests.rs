use super::*;
use crate::candidates::{Acts, Kind};
use cachewise_measure::whole::Verdict;
use std::convert::Infallible;

/// A program whose candidates take a known part of its time, with noise.
struct Simulated {
    seconds: f64,
    noise: f64,
    /// By name: part of the plain time, and what is wrong from which of its runs on.
    parts: Vec<(Candidate, f64)>,
    wrong: Option<(usize, &'static str)>,
    stop_at: f64,
    clock: f64,
    random: fastrand::Rng,
    said: Vec<(Stage, f64, f64)>,
    slow_spell: bool,
}

fn candidate(name: &str, kind: Kind) -> Candidate {
    let variables = vec![("X".to_owned(), name.to_owned())];
    Candidate { name: name.to_owned(), kind, acts: Acts::Faults, variables, words: vec![] }
}

fn simulated(seconds: f64, noise: f64, parts: &[(&str, Kind, f64)], seed: u64) -> Simulated {
    Simulated {
        seconds,
        noise,
        parts: parts.iter().map(|(name, kind, part)| (candidate(name, *kind), *part)).collect(),
        wrong: None,
        stop_at: f64::MAX,
        clock: 0.0,
        random: fastrand::Rng::with_seed(seed),
        said: Vec::new(),
        slow_spell: false,
    }
}

impl Simulated {
    fn race(&mut self, budget: f64) -> Outcome {
        let candidates: Vec<Candidate> = self.parts.iter().map(|(one, _)| one.clone()).collect();
        let Ok(outcome) = race(self, &candidates, self.seconds, budget, None, 7);
        outcome
    }

    fn name(&self, outcome: &Outcome) -> Option<&str> {
        let faster = outcome.speed().is_some_and(|speed| Verdict::of(&speed) == Verdict::Faster);
        outcome.winner.filter(|_| faster).map(|at| self.parts[at].0.name.as_str())
    }
}

impl Program for Simulated {
    type Error = Infallible;

    fn run(&mut self, by: Option<&Candidate>) -> Result<Ran, Infallible> {
        if self.clock > self.stop_at {
            return Ok(Ran::Stopped);
        }
        let at = by.and_then(|by| self.parts.iter().position(|(one, _)| one == by));
        if let (Some(at), Some((wrong, why))) = (at, self.wrong)
            && at == wrong
        {
            return Ok(Ran::Wrong(why.to_owned()));
        }
        // Near a normal: the sum of twelve uniform ones. Now and then a neighbour takes half of the CPU.
        let normal = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        let spell = if self.slow_spell && self.random.f64() < 0.05 { 1.5 } else { 1.0 };
        let cost = self.seconds
            * at.map_or(1.0, |at| self.parts[at].1)
            * spell
            * (self.noise * normal).exp();
        self.clock += cost;
        Ok(Ran::Well(Sample { cost, cpu: cost, peak: 1e6, faults: 1e3 }))
    }

    fn now(&self) -> f64 {
        self.clock
    }

    fn progress(&mut self, stage: Stage, left: f64) {
        self.said.push((stage, self.clock, left));
    }
}

const MANY: [(&str, Kind, f64); 12] = [
    ("keep", Kind::Variables, 0.41),
    ("padded", Kind::Variables, 0.40),
    ("huge", Kind::Variables, 0.8),
    ("thresholds", Kind::Variables, 1.0),
    ("jemalloc", Kind::Allocator, 0.6),
    ("jemalloc kept", Kind::Allocator, 0.42),
    ("mimalloc", Kind::Allocator, 0.7),
    ("mimalloc kept", Kind::Allocator, 0.7),
    ("tcmalloc", Kind::Allocator, 1.1),
    ("tcmalloc kept", Kind::Allocator, 1.0),
    ("profile", Kind::Preload, 0.97),
    ("never", Kind::Preload, 0.98),
];

#[test]
fn the_simplest_of_the_best_is_recommended_within_the_budget() {
    for seed in 0..40 {
        for seconds in [0.005, 0.3, 2.0] {
            let mut program = simulated(seconds, 0.03, &MANY, seed);
            let outcome = program.race(180.0);
            let name = program.name(&outcome).map(str::to_owned);
            assert!(
                matches!(name.as_deref(), Some("keep" | "padded")),
                "{seed} {seconds} {name:?}"
            );
            assert!(program.clock < 1.1 * 180.0, "{seed} {seconds}: {}", program.clock);
            let speed = outcome.speed().expect("refereed");
            assert!(speed.low > 2.2 && speed.high < 2.8, "{speed}");
        }
    }
}

/// Few rounds scatter little by chance now and then, which is no knowledge.
#[test]
fn the_best_is_seldom_out_by_chance() {
    let parts = [0.9, 0.94, 0.94, 0.95, 0.95, 0.96, 0.97, 1.0];
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let near: Vec<_> =
        names.into_iter().zip(parts).map(|(name, part)| (name, Kind::Variables, part)).collect();
    let is_out = |seed: &u64| {
        let outcome = simulated(0.1, 0.06, &near, *seed).race(60.0);
        outcome.fates[0] != Fate::Live
    };
    let out = (0..200).filter(is_out).count();
    assert!(out <= 10, "{out} of 200");
}

#[test]
fn no_gain_is_seldom_recommended_whatever_the_noise() {
    let none = MANY.map(|(name, kind, _)| (name, kind, 1.0));
    let mut wrong = 0;
    for seed in 0..200 {
        let mut program = simulated(0.2, [0.01, 0.05, 0.2][seed as usize % 3], &none, seed);
        program.slow_spell = true;
        let outcome = program.race(60.0);
        wrong += usize::from(program.name(&outcome).is_some());
    }
    // A referee's interval begins above 1.02 by chance alone in 2.5 % at most.
    assert!(wrong <= 5, "{wrong} of 200");
}

#[test]
fn two_races_agree_or_one_cannot_tell() {
    let close = [
        ("a", Kind::Variables, 0.80),
        ("b", Kind::Allocator, 0.79),
        ("c", Kind::Preload, 0.78),
        ("d", Kind::Variables, 0.99),
    ];
    let mut disagree = 0;
    for seed in 0..60 {
        let found = [seed, seed + 1000].map(|seed| {
            let mut program = simulated(0.5, 0.03, &close, seed);
            let outcome = program.race(120.0);
            program.name(&outcome).map(str::to_owned)
        });
        disagree += usize::from(found[0].is_some() && found[1].is_some() && found[0] != found[1]);
    }
    assert!(disagree <= 3, "{disagree} of 60");
}

#[test]
fn what_prints_something_else_is_disqualified_and_the_next_best_wins() {
    let mut program = simulated(0.5, 0.02, &[MANY[1], MANY[5], MANY[3]], 3);
    program.wrong = Some((0, "another output"));
    let outcome = program.race(60.0);
    assert_eq!(outcome.fates[0], Fate::Disqualified("another output".to_owned()));
    assert_eq!(program.name(&outcome), Some("jemalloc kept"));
}

#[test]
fn a_budget_without_room_says_so_and_a_stop_keeps_what_is_known() {
    let mut program = simulated(60.0, 0.02, &MANY, 3);
    let outcome = program.race(120.0);
    assert!(outcome.too_short && program.clock == 0.0 && outcome.winner.is_none());
    let mut program = simulated(1.0, 0.02, &MANY, 3);
    program.stop_at = 30.0;
    let outcome = program.race(180.0);
    assert!(outcome.stopped && outcome.runs[0].rounds() >= 1, "{outcome:?}");
}

#[test]
fn a_program_of_a_minute_is_judged_within_a_long_budget() {
    let mut program = simulated(60.0, 0.02, &MANY, 5);
    let outcome = program.race(3600.0);
    let name = program.name(&outcome).map(str::to_owned);
    assert!(matches!(name.as_deref(), Some("keep" | "padded")), "{name:?}");
    assert!(program.clock < 1.1 * 3600.0, "{}", program.clock);
    assert!(outcome.fates.contains(&Fate::Halved) || outcome.fates.contains(&Fate::Slower));
}

#[test]
fn the_time_left_is_right_within_a_fifth_once_it_is_known() {
    let mut program = simulated(0.8, 0.03, &MANY, 11);
    program.race(120.0);
    let end = program.clock;
    let late =
        program.said.iter().filter(|(stage, now, _)| *stage == Stage::Referee && end - now > 5.0);
    for (_, now, left) in late.clone() {
        assert!((left / (end - now) - 1.0).abs() < 0.2, "at {now} of {end}: {left}");
    }
    assert!(late.count() > 3);
}

#[test]
fn with_rounds_everybody_has_them_all() {
    let mut program = simulated(0.1, 0.02, &MANY, 3);
    let candidates: Vec<Candidate> = program.parts.iter().map(|(one, _)| one.clone()).collect();
    let Ok(outcome) = race(&mut program, &candidates, 0.1, 1.0, Some(30), 7);
    assert!(outcome.runs.iter().all(|runs| runs.rounds() == 30));
    assert!(outcome.fates.iter().all(|fate| *fate == Fate::Live));
}
