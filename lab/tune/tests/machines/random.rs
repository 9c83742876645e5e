//! Machines that nobody designed: facts, weather and curves of cost drawn from a seed, within what is sold.
//!
//! `MACHINES=0..300` in the environment checks those three hundred, each with two seeds, and prints what breaks.

use crate::check::{TuningOutcome, check};
use crate::simulated::Kind;
use crate::table::{Costs, FIRST, STEP, STEPS, Table};
use crate::{NOISY, PROMISE, broken, cascade_lake, plain, zen3, zen5};
use cachewise_kernels::Operation;
use cachewise_tune::seam::{Class, Facts, Layout};
use fastrand::Rng;

/// From here on, in the noise or in what is stolen, a machine is held to [`NOISY`].
const LOUD: f64 = 1.5;

/// Logarithms of L1, L2 and usable LLC of the tables' own machines.
const TABLES: [f64; 3] = [15.0, 20.0, 22.0];

fn between(random: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * random.f64()
}

fn log_between(random: &mut Rng, low: f64, high: f64) -> f64 {
    between(random, low.ln(), high.ln()).exp()
}

fn chance(random: &mut Rng, part: f64) -> bool {
    random.f64() < part
}

/// Nearly normal, and never far out.
fn around(random: &mut Rng, sd: f64) -> f64 {
    sd * ((0..4).map(|_| random.f64()).sum::<f64>() - 2.0) * 3f64.sqrt()
}

fn log2_of(step: usize) -> f64 {
    FIRST + step as f64 * STEP
}

/// From 0 to 1 around a size, over so many octaves.
fn rise(log2: f64, at: f64, octaves: f64) -> f64 {
    ((log2 - at) / octaves + 0.5).clamp(0.0, 1.0)
}

/// A curve over the table's steps: knots so many octaves apart, smooth in between.
fn bend(random: &mut Rng, sd: f64, octaves: f64) -> Vec<f64> {
    let last = (STEPS as f64 * STEP / octaves) as usize + 1;
    let knots: Vec<f64> = (0..=last).map(|_| around(random, sd)).collect();
    let at = |step: usize| {
        let at = step as f64 * STEP / octaves;
        let part = at.fract();
        let part = part * part * (3.0 - 2.0 * part);
        knots[at as usize] * (1.0 - part) + knots[at as usize + 1] * part
    };
    (0..STEPS).map(at).collect()
}

fn facts(random: &mut Rng) -> Facts {
    let l1 = [32, 32, 48, 64, 128, 192][random.usize(..6)] << 10;
    let l2 = (l1 * 4).max([256, 512, 1024, 2048, 4096][random.usize(..5)] << 10);
    let llc = (2 * l2).max(1 << random.u32(22..=30));
    let dram_ns = between(random, 70.0, 250.0);
    Facts {
        l1,
        l2,
        llc,
        llc_usable: (llc as f64 * log_between(random, 0.05, 1.0)) as usize,
        near_ns: dram_ns * between(random, 0.15, 0.8),
        dram_ns,
        cpus: [1, 2, 4, 8, 64][random.usize(..5)],
        largest: 1 << [22, 24, 26, 28, 30, 30, 30, 30][random.usize(..8)],
        below_libc: [None; 6],
        entries: [None; 6],
        never: [None; 6],
        hosts: 1,
    }
}

/// Place in the table that corresponds to this machine's size: caches of other sizes, as a logarithm.
fn place(log2: f64, caches: &[f64; 3]) -> f64 {
    let (mut below, mut at) = (FIRST, FIRST);
    for (here, there) in caches.iter().zip(TABLES) {
        if log2 < *here {
            return at + (log2 - below) / (here - below) * (there - at);
        }
        (below, at) = (*here, there);
    }
    at + log2 - below
}

/// Every size as the table has it elsewhere. Beyond the table a byte costs the same.
fn warp(costs: &mut Costs, place: impl Fn(f64) -> f64) {
    let Costs { total, reader, .. } = costs.clone();
    for (state, (total, reader)) in total.iter().zip(&reader).enumerate() {
        for step in 0..STEPS {
            let at = (place(log2_of(step)) - FIRST) / STEP;
            let at = at.clamp(0.0, (STEPS - 1) as f64);
            let low = (at as usize).min(STEPS - 2);
            let part = at - low as f64;
            let between = |of: &[f64]| of[low] * (1.0 - part) + of[low + 1] * part;
            costs.total[state][step] = between(total) + (step as f64 - at) * STEP * 2f64.ln();
            costs.reader[state][step] = between(reader);
        }
    }
}

/// Adds to an arm's logarithm of time, by state and size.
fn add(costs: &mut Costs, by: impl Fn(usize, usize) -> f64) {
    for (state, totals) in costs.total.iter_mut().enumerate() {
        for (step, total) in totals.iter_mut().enumerate() {
            *total += by(state, step);
        }
    }
}

/// How much of what is a state's own is left at a size: nothing of *evicted* beyond twice the cache, where
/// nothing stays, and of *repeated* beyond L2.
fn own(state: usize, log2: f64, caches: &[f64; 3]) -> f64 {
    let end = match state {
        1 => caches[2] + 1.0,
        2 => caches[1],
        _ => return 1.0,
    };
    1.0 - rise(log2, end - 0.5, 1.0)
}

/// Disturbs one kernel: a start-up, a cliff, a state or a band in which it loses.
fn bend_arm(random: &mut Rng, costs: &mut Costs, rough: f64, caches: &[f64; 3]) {
    let shift = around(random, 0.2);
    warp(costs, |log2| log2 + shift);
    let (smooth, fine) = (bend(random, 0.05, 2.0), bend(random, rough, 0.5));
    // Beside what is cached the other states have their own.
    let others = [0; 2].map(|_| bend(random, 0.04, 2.0));
    add(costs, |state, step| {
        let other = if state > 0 { others[state - 1][step] } else { 0.0 };
        smooth[step] + fine[step] + own(state, log2_of(step), caches) * other
    });
    if costs.arm.class == Class::Rep && chance(random, 0.5) {
        let start = log_between(random, 3.0, 100.0);
        costs.total.iter_mut().flatten().for_each(|total| *total = (total.exp() + start).ln());
    }
    if chance(random, 0.3) {
        let (at, octaves) = (between(random, 9.0, 25.0), log_between(random, 0.06, 2.0));
        let (below, above) = (between(random, -0.2, 0.0), log_between(random, 0.03, 0.7));
        let turned = chance(random, 0.3);
        add(costs, |_, step| {
            let there = rise(log2_of(step), at, octaves);
            let there = if turned { 1.0 - there } else { there };
            below + (above - below) * there
        });
    }
    if costs.arm.class != Class::Libc && chance(random, 0.25) {
        let (lost, in_state) = (log_between(random, 0.02, 0.4), random.usize(..3));
        let (from, octaves) = (between(random, 7.0, 20.0), between(random, 2.0, 12.0));
        add(costs, |state, step| {
            let log2 = log2_of(step);
            let here = rise(log2, from, 1.0) - rise(log2, from + octaves, 1.0);
            if state == in_state { lost * here * own(state, log2, caches) } else { 0.0 }
        });
    }
}

fn table(random: &mut Rng, facts: &Facts) -> Table {
    let mut table = [cascade_lake, zen3, zen5][random.usize(..3)]();
    // The knee that was measured is half an octave off.
    let usable = (facts.cache() as f64).log2() + between(random, -0.5, 0.5);
    let [l1, l2] = [facts.l1, facts.l2].map(|bytes| (bytes as f64).log2());
    let caches = [l1, l2, usable.max(l2 + 0.5)];
    let rough = log_between(random, 0.002, 0.02);
    for costs in table.values_mut() {
        let mut nth = 0..;
        costs.retain(|_| nth.next() < Some(2) || chance(random, 0.8));
        // libc is better or worse than on the table's machine.
        let better = around(random, 0.1);
        for arm in 0..costs.len() {
            let (before, here) = costs.split_at_mut(arm);
            let here = &mut here[0];
            warp(here, |log2| place(log2, &caches));
            // The table's own states end where this machine's do.
            let [cached, evicted, _] = &mut here.total;
            for (step, evicted) in evicted.iter_mut().enumerate() {
                *evicted =
                    cached[step] + (*evicted - cached[step]) * own(1, log2_of(step), &caches);
            }
            bend_arm(random, here, rough, &caches);
            if arm > 0 {
                add(here, |_, _| better);
            }
            // As good as equal to the one before, over some of the sizes.
            if arm > 1 && chance(random, 0.15) {
                let (one, other) = (random.usize(..STEPS), random.usize(..STEPS));
                let sizes = one.min(other)..one.max(other);
                let before = &before[arm - 1];
                let totals = here.total.iter_mut().zip(&before.total);
                for (here, before) in totals.chain(here.reader.iter_mut().zip(&before.reader)) {
                    here[sizes.clone()].copy_from_slice(&before[sizes.clone()]);
                }
            }
        }
    }
    table
}

/// The machine of a seed.
pub fn machine(seed: u64) -> Kind {
    let mut random = Rng::with_seed(seed);
    let r = &mut random;
    let facts = facts(r);
    let table = table(r, &facts);
    let mut lying = std::collections::BTreeMap::new();
    for (operation, costs) in &table {
        let layouts: &[Layout] = match operation {
            Operation::Copy => &[Layout::Misaligned, Layout::Aliased],
            Operation::Move => &[Layout::Misaligned, Layout::OverlapUp, Layout::OverlapDown],
            _ => &[Layout::Misaligned],
        };
        for arm in 1..costs.len() {
            if chance(r, 0.2) {
                let layout = layouts[r.usize(..layouts.len())];
                lying.insert((*operation, arm, layout), around(r, 0.1));
            }
        }
    }
    Kind {
        facts,
        lying,
        bandwidth: log_between(r, 2.0, 40.0),
        noise: log_between(r, 0.5, 3.0),
        quota: if chance(r, 0.2) { between(r, 0.2, 1.0) } else { 1.0 },
        neighbour: chance(r, 0.2),
        drift: if chance(r, 0.3) { between(r, -0.3, 0.3) } else { 0.0 },
        steal: log_between(r, 0.5, 2.0),
        misaligned: between(r, 0.9, 1.15),
        reads_on: if chance(r, 0.3) { between(r, 1.0, 2.0) } else { 1.0 },
        entries: match chance(r, 0.3) {
            true => ["sse2", "avx2", "avx512vl"]
                .map(|name| (name, between(r, 0.7, 1.2), between(r, 0.8, 1.1)))
                .to_vec(),
            false => Vec::new(),
        },
        second_cpu_late: chance(r, 0.2),
        memory_taken: if chance(r, 0.1) { between(r, 3.0, 60.0) } else { f64::INFINITY },
        ..plain(table)
    }
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn random_machines_keep_the_promise() {
    let wanted = std::env::var("MACHINES").unwrap_or_else(|_| "0..3".to_owned());
    let (from, to) = wanted.split_once("..").expect("two numbers");
    let [from, to] = [from, to].map(|number| number.parse::<u64>().expect("a number"));
    let mut failed = Vec::new();
    println!("{}", TuningOutcome::HEADER);
    for seed in from..to {
        let kind = machine(seed);
        let loud = kind.noise >= LOUD || kind.steal >= LOUD;
        let found = check(&kind, 2);
        let broken = broken(&found, if loud { &NOISY } else { &PROMISE });
        println!(
            "{} {broken:?}",
            found.line(&format!("{seed}{}", if loud { " loud" } else { "" }))
        );
        if !broken.is_empty() {
            failed.push((seed, broken));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
