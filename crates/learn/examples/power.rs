//! What a trial can decide, at how many calls: sites whose intervals differ by so much between the
//! two ways, and otherwise at random by so much.
//!
//! ```text
//! cargo run --release -p cachewise-learn --example power
//! ```
//!
//! Each cell is the median number of calls until a decision over the seeds, of those within 20 000
//! calls, and how many of the seeds that was. A wrong decision ends the program with an error. The
//! last column is a burst: one interval in seven is ten times as long, as where a program flushes.

use cachewise_learn::Way;
use cachewise_learn::trial::{Budget, Call, Clock, Outcome, Trial};
use std::process::ExitCode;

const DIFFERENCES: [f64; 7] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const NOISES: [(&str, f64, bool); 5] = [
    ("3 %", 0.03, false),
    ("10 %", 0.1, false),
    ("30 %", 0.3, false),
    ("100 %", 1.0, false),
    ("3 %, bursts", 0.03, true),
];
const SEEDS: u64 = 40;
const MOST: u64 = 20_000;

/// One interval's length: normal to a good approximation, and not below a tenth.
fn interval(random: &mut fastrand::Rng, dearer: f64, noise: f64, bursts: bool) -> f64 {
    let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let burst = if bursts && random.u32(..7) == 0 { 9.0 } else { 0.0 };
    1e6 * (1.0 + dearer + noise * normal + burst).max(0.1)
}

/// After how many calls it was decided, and for which way.
fn decided(
    budget: &Budget,
    difference: f64,
    noise: f64,
    bursts: bool,
    seed: u64,
) -> Option<(u64, Way)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trial = Trial::new(Way::Temporal, seed * 7919);
    let (mut clock, mut now) = (Clock::STOPPED, 0.0);
    for call in 1..=MOST {
        let of = Call { n: 1 << 20, before: call << 20 };
        let way = trial.call(budget, &mut clock, &of, || now as u64).unwrap_or(Way::Temporal);
        let dearer = if way == Way::Temporal { difference } else { 0.0 };
        now += interval(&mut random, dearer, noise, bursts);
        if let Outcome::Decided(way) = trial.left().outcome {
            return Some((call, way));
        }
    }
    None
}

fn main() -> ExitCode {
    let mut wrong = 0;
    for (name, budget) in [
        ("a run that is there to learn", Budget::TRIAL_RUN),
        ("in service", Budget::IN_SERVICE),
        // Calls are of 1 MiB: 32 of them until it has settled.
        ("a run that is there to learn, beside 32 MiB", Budget::TRIAL_RUN.with_cache(32 << 20)),
    ] {
        println!("{name}\n");
        print!("| difference |");
        NOISES.iter().for_each(|(noise, ..)| print!(" {noise} |"));
        println!("\n|---:|{}", "---:|".repeat(NOISES.len()));
        for difference in DIFFERENCES {
            print!("| {:.0} % |", 100.0 * difference);
            for (_, noise, bursts) in NOISES {
                let found: Vec<_> = (1..=SEEDS)
                    .filter_map(|seed| decided(&budget, difference, noise, bursts, seed))
                    .collect();
                // Non-temporal is the cheaper way, or neither.
                wrong += found.iter().filter(|(_, way)| *way == Way::Temporal).count();
                let mut calls: Vec<_> = found.iter().map(|(calls, _)| *calls).collect();
                calls.sort_unstable();
                match calls.get(calls.len() / 2) {
                    None => print!(" - |"),
                    Some(median) => print!(" {median} ({} of {SEEDS}) |", calls.len()),
                }
            }
            println!();
        }
        println!();
    }
    if wrong > 0 {
        eprintln!("{wrong} decisions for the dearer way");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
