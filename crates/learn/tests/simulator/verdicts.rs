//! Right or "cannot tell" in all, never wrong; what learning costs; what comes after.

use crate::programs;
use crate::world::{Chooser, LOUD, Program, run};
use cachewise_learn::Way;
use cachewise_learn::trial::{Budget, Outcome, Why};

const SEEDS: u64 = 12;

fn total(tenths: [u64; 10]) -> f64 {
    tenths.iter().sum::<u64>() as f64
}

/// The better way, and how much dearer the other one is.
fn truth(program: &Program<'_>, rounds: usize, seed: u64) -> (Way, f64) {
    let [temporal, non_temporal] =
        Way::ALL.map(|way| total(run(program, rounds, seed, &mut Chooser::Always(way))));
    if temporal < non_temporal {
        (Way::Temporal, non_temporal / temporal - 1.0)
    } else {
        (Way::NonTemporal, temporal / non_temporal - 1.0)
    }
}

#[test]
fn every_program_gets_the_right_answer_or_none() {
    let (mut told, mut asked) = (0, 0);
    for (name, mut program) in programs::single() {
        for noise in [program.noise, LOUD] {
            program.noise = noise;
            let (better, worth) = truth(&program, 3000, 1);
            let mut right = 0;
            for seed in 1..=SEEDS {
                let mut chooser = Chooser::learner(1, Way::Temporal, Budget::TRIAL_RUN, seed);
                run(&program, 3000, seed, &mut chooser);
                asked += 1;
                match chooser.left(0).outcome {
                    Outcome::Decided(way) if way == better => right += 1,
                    Outcome::Decided(_) => {
                        panic!("{name}, seed {seed}: not {better:?}, which is better by {worth}");
                    }
                    Outcome::CannotTell(_) => {}
                }
            }
            told += right;
            println!("{name} ({noise:?}): {better:?} by {worth:.3}: {right} of {SEEDS}");
            // Short blocks see eight copies and hardly a reader, and long ones have to refute them:
            // that one may stay open.
            let clear = worth > 0.1 && !name.starts_with("eight");
            let expected = if clear { SEEDS * 2 / 3 } else { 0 };
            assert!(right >= expected, "{name}: {right} of {SEEDS}, worth {worth}");
        }
    }
    assert!(told * 5 > asked * 4, "{told} of {asked}");
}

/// A difference of 5 %, wherever it comes from: each program with so much work added to each call
/// that its own difference is no more of the whole, and twice as many calls to find it.
#[test]
fn a_twentieth_is_found_with_more_calls() {
    const WORTH: f64 = 0.05;
    const CALLS: usize = 6000;
    let mut asked = 0;
    for (name, program) in programs::single() {
        let [temporal, non_temporal] =
            Way::ALL.map(|way| total(run(&program, 3000, 1, &mut Chooser::Always(way))) / 3000.0);
        let (least, most) = (temporal.min(non_temporal), temporal.max(non_temporal));
        let work = (most - least) / WORTH - least;
        // Some have less of a difference to begin with; and the work of two comes in bursts, which
        // are noise of several times the difference.
        if work < 0.0 || name.starts_with("eight") || name.starts_with("a period of seven") {
            continue;
        }
        let program = programs::beside_work(program, work as u64);
        let (better, worth) = truth(&program, CALLS, 1);
        assert!((worth - WORTH).abs() < 0.01, "{name}: {worth}");
        asked += 1;
        let mut right = 0;
        for seed in 1..=SEEDS {
            let mut chooser = Chooser::learner(1, better.other(), Budget::TRIAL_RUN, seed);
            run(&program, CALLS, seed, &mut chooser);
            match chooser.left(0).outcome {
                Outcome::Decided(way) => {
                    assert_eq!(way, better, "{name}, seed {seed}, worth {worth}");
                    right += 1;
                }
                Outcome::CannotTell(_) => {}
            }
        }
        println!("{name}: {better:?} by {worth:.3}: {right} of {SEEDS}");
        assert!(right >= SEEDS / 2, "{name}: {right} of {SEEDS}, worth {worth}");
    }
    assert!(asked >= 10, "{asked} programs");
}

#[test]
fn what_makes_no_difference_is_not_decided() {
    for noise in [programs::indifferent().noise, LOUD] {
        let mut program = programs::indifferent();
        program.noise = noise;
        let mut decided = 0;
        for seed in 1..=200 {
            let mut chooser = Chooser::learner(1, Way::Temporal, Budget::TRIAL_RUN, seed);
            run(&program, 6000, seed, &mut chooser);
            let left = chooser.left(0);
            match left.outcome {
                Outcome::CannotTell(why) => assert_eq!(why, Why::NoDifference, "seed {seed}"),
                Outcome::Decided(_) => decided += 1,
            }
        }
        assert_eq!(decided, 0, "{noise:?}");
    }
}

#[test]
fn a_site_called_seldom_is_left_alone_and_says_why() {
    let (_, program) = programs::single().swap_remove(0);
    let mut chooser = Chooser::learner(1, Way::Temporal, Budget::TRIAL_RUN, 5);
    run(&program, 40, 1, &mut chooser);
    assert_eq!(chooser.left(0).outcome, Outcome::CannotTell(Why::TooFew));
}

#[test]
fn after_the_trial_the_cost_is_the_better_ways() {
    for (name, program) in programs::single() {
        let (better, _) = truth(&program, 6000, 3);
        let mut chooser = Chooser::learner(1, better.other(), Budget::TRIAL_RUN, 3);
        let learned = run(&program, 6000, 3, &mut chooser);
        let best = run(&program, 6000, 3, &mut Chooser::Always(better));
        if !matches!(chooser.left(0).outcome, Outcome::Decided(_)) {
            continue;
        }
        let ratio = learned[9] as f64 / best[9] as f64;
        assert!(ratio < 1.03, "{name}: {ratio}, {:?}", chooser.left(0));
    }
}

#[test]
fn in_service_exploring_costs_at_most_two_percent_at_every_tenth() {
    for (name, program) in programs::single() {
        for usual in [Way::Temporal, Way::NonTemporal] {
            for rounds in [300, 1000, 20_000] {
                let mut chooser = Chooser::learner(1, usual, Budget::IN_SERVICE, 7);
                let learned = run(&program, rounds, 7, &mut chooser);
                let plain = run(&program, rounds, 7, &mut Chooser::Always(usual));
                let ratio = total(learned) / total(plain);
                // Half a percent for noise that fell differently.
                assert!(ratio < 1.025, "{name}, usual {usual:?}, {rounds} rounds: {ratio}");
            }
        }
    }
}

/// The intervals of all sites of a loop are the loop, and each of their trials has its share of it
/// only; and the intervals of many threads are no more time than one's.
#[test]
fn in_service_all_sites_and_threads_together_cost_at_most_two_percent() {
    for (threads, sites) in [(1, 1), (1, 8), (1, 40), (1, 300), (4, 1), (32, 1), (4, 40)] {
        let program = programs::many(threads, sites);
        for usual in [Way::Temporal, Way::NonTemporal] {
            for rounds in [300, 3000] {
                let mut chooser = Chooser::learner(sites, usual, Budget::IN_SERVICE, 7);
                let learned = run(&program, rounds, 7, &mut chooser);
                let plain = run(&program, rounds, 7, &mut Chooser::Always(usual));
                let ratio = total(learned) / total(plain);
                println!("{threads} threads, {sites} sites, {usual:?}, {rounds} rounds: {ratio}");
                assert!(ratio < 1.025, "{threads} threads, {sites} sites: {ratio}");
            }
        }
    }
}

#[test]
fn in_service_it_learns_too() {
    let (name, program) = programs::single().swap_remove(1);
    let mut chooser = Chooser::learner(1, Way::Temporal, Budget::IN_SERVICE, 7);
    run(&program, 40_000, 7, &mut chooser);
    assert_eq!(chooser.left(0).outcome, Outcome::Decided(Way::NonTemporal), "{name}");
}

#[test]
fn a_program_that_changes_is_noticed() {
    for seed in 1..=SEEDS {
        let program = programs::two_phases(10_000);
        let mut chooser = Chooser::learner(1, Way::NonTemporal, Budget::TRIAL_RUN, seed);
        run(&program, 9000, seed, &mut chooser);
        assert_eq!(chooser.left(0).outcome, Outcome::Decided(Way::Temporal), "seed {seed}");
        let mut chooser = Chooser::learner(1, Way::NonTemporal, Budget::TRIAL_RUN, seed);
        run(&program, 40_000, seed, &mut chooser);
        let left = chooser.left(0);
        assert!(left.reopened >= 1, "seed {seed}: {left:?}");
        assert_eq!(left.outcome, Outcome::Decided(Way::NonTemporal), "seed {seed}: {left:?}");
    }
}

/// Blocks of eight calls say that non-temporal stores are cheaper; where one way goes on it is not.
#[test]
fn a_cache_that_settles_late_is_waited_for() {
    let program = programs::settles_late();
    let (better, worth) = truth(&program, 6000, 1);
    assert!(better == Way::Temporal && worth > 0.3, "{better:?} by {worth}");
    let mut deceived = 0;
    for seed in 1..=SEEDS {
        for usual in Way::ALL {
            let cache = programs::CACHE_BYTES;
            let mut chooser = Chooser::learner(1, usual, Budget::TRIAL_RUN.with_cache(cache), seed);
            run(&program, 6000, seed, &mut chooser);
            let left = chooser.left(0);
            assert_eq!(left.outcome, Outcome::Decided(Way::Temporal), "seed {seed}: {left:?}");
            let mut chooser = Chooser::learner(1, usual, Budget::TRIAL_RUN, seed);
            run(&program, 6000, seed, &mut chooser);
            let wrong = Outcome::Decided(Way::NonTemporal);
            deceived += u32::from(chooser.left(0).outcome == wrong);
        }
    }
    println!("with blocks of eight calls: {deceived} wrong");
    assert!(deceived > 0, "this program deceives nobody");
}

#[test]
fn threads_that_share_a_site_share_its_answer() {
    for reading in [true, false] {
        let program = programs::two_threads(reading);
        let (better, worth) = truth(&program, 4000, 1);
        for seed in 1..=SEEDS {
            let mut chooser = Chooser::learner(1, better.other(), Budget::TRIAL_RUN, seed);
            run(&program, 4000, seed, &mut chooser);
            let outcome = chooser.left(0).outcome;
            assert_eq!(outcome, Outcome::Decided(better), "worth {worth}, seed {seed}");
        }
    }
}

#[test]
fn each_site_of_a_loop_gets_its_own_answer() {
    let program = programs::two_sites();
    for seed in 1..=SEEDS {
        let mut chooser = Chooser::learner(2, Way::Temporal, Budget::TRIAL_RUN, seed);
        run(&program, 4000, seed, &mut chooser);
        assert_eq!(chooser.left(0).outcome, Outcome::Decided(Way::Temporal), "seed {seed}");
        assert_eq!(chooser.left(1).outcome, Outcome::Decided(Way::NonTemporal), "seed {seed}");
    }
}

#[test]
fn the_next_run_goes_on_where_the_last_one_ended() {
    let (_, program) = programs::single().swap_remove(0);
    let mut chooser = Chooser::learner(1, Way::NonTemporal, Budget::TRIAL_RUN, 9);
    let mut runs = 0;
    while matches!(chooser.left(0).outcome, Outcome::CannotTell(_)) {
        runs += 1;
        assert!(runs < 60, "{:?}", chooser.left(0));
        let left = chooser.left(0);
        chooser = chooser.resumed(&[left], runs);
        run(&program, 150, runs, &mut chooser);
    }
    assert!(runs > 1, "150 calls cannot have been enough");
    assert_eq!(chooser.left(0).outcome, Outcome::Decided(Way::Temporal));
}

#[test]
fn in_service_the_sites_of_a_loop_are_learned_in_time() {
    const SITES: usize = 8;
    let program = programs::many(1, SITES);
    let mut chooser = Chooser::learner(SITES, Way::NonTemporal, Budget::IN_SERVICE, 7);
    run(&program, 60_000, 7, &mut chooser);
    for site in 0..SITES {
        assert_eq!(chooser.left(site).outcome, Outcome::Decided(Way::Temporal), "site {site}");
    }
}
