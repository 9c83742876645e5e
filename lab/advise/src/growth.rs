//! Growth that is the program's own: its memory rises under every setting alike, so that no allocator gives it back. From
//! outside a leak looks like data that the program keeps.
//!
//! A run's growth is that of the last half of its load, in `PARTS` parts of equal time, by their medians: from the first
//! part's to the last's. A setting grows if its runs do: the judge's interval of last over first is above 1 by what is
//! worth a setting. All of the following have to hold, of the plain program and of every setting that raced:
//!
//! - the setting grows;
//! - the growth goes on: in most runs each part adds `STEADY` of an even share or more. A step, a cache that fills up
//!   and a memory that swings do not;
//! - it is still there after the load: at least half of it;
//! - it is at least `ALIKE` of the plain program's: fragments grow at another speed under each allocator.

use crate::bound::WORTH;
use crate::goal::{GoalOutcome, Runs};
use cachewise_judge::interval;
use cachewise_judge::race::Fate;
use cachewise_judge::ratio::of_rounds;
use cachewise_measure::held::{Held, Reading};
use cachewise_measure::stats::median;
use cachewise_measure::units::bytes;

/// Parts of the last half of the load.
const PARTS: usize = 4;
/// Readings that a part has at least.
const LEAST_READINGS: usize = 2;
/// Seconds that the last half of the load has at least: a shorter program is starting.
const LEAST_SECONDS: f64 = 1.0;
/// Bytes of growth at least: less is a few stacks and tables of pages.
const LEAST_BYTES: f64 = 1048576.0;
/// The part of an even share that each part has to add. Of 100 simulated races (below) a leak is found in all of them. A cache
/// that fills with a third of the load as its time constant is taken for growth in 0 to 2, and at 0.5 in 30 to 97; at 0.7 a
/// slow leak is found in 42 at most, and here in 78 to 99.
const STEADY: f64 = 0.6;
/// The part of the plain program's growth that every setting has at least.
const ALIKE: f64 = 0.5;
/// Settings that raced, at least.
const LEAST_SETTINGS: usize = 3;

/// Growth under every setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Bytes a second: the least of all settings.
    pub rate: f64,
    /// The number of settings that raced.
    pub settings: usize,
}

/// Growth of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: f64,
    last: f64,
    rate: f64,
    is_steady: bool,
}

impl Growth {
    /// Finds growth under every setting in a race whose runs have `settle` seconds after their load.
    pub fn of(outcome: &GoalOutcome, settle: f64) -> Option<Growth> {
        let (plain, settings) = outcome.runs.split_first()?;
        let raced = |fate: &Fate| !matches!(fate, Fate::NotReached | Fate::Disqualified(_));
        let raced: Vec<&Runs> =
            settings.iter().zip(&outcome.fates).filter(|(_, f)| raced(f)).map(|(r, _)| r).collect();
        if raced.len() < LEAST_SETTINGS {
            return None;
        }
        let own = rate(plain, settle)?;
        let rates: Option<Vec<f64>> = raced.iter().map(|runs| rate(runs, settle)).collect();
        let least = rates?.into_iter().fold(own, f64::min);
        (least >= ALIKE * own).then_some(Growth { rate: least, settings: raced.len() })
    }

    /// The sentence.
    pub fn sentence(&self) -> String {
        let Growth { rate, settings } = self;
        let rate = bytes((rate * 60.0) as u64 >> 16 << 16);
        format!(
            "this program's own memory grows: {rate} a minute or more, plain and under every one of {settings} settings; no \
             setting of the allocator brings it back (a leak, or data that it keeps)"
        )
    }
}

/// Bytes a second that the runs of a setting grow by; none if they are not shown to. A run with too few readings, as
/// another program on the CPU leaves it, counts as one that does not grow steadily.
fn rate(runs: &Runs, settle: f64) -> Option<f64> {
    let all = runs.rounds();
    let runs: Vec<Run> =
        runs.samples().filter_map(|sample| Run::of(&sample.held, settle)).collect();
    let of = |figure: fn(&Run) -> f64| runs.iter().map(figure).collect::<Vec<f64>>();
    let grown = interval::anytime(&of_rounds(&of(|run| run.last), &of(|run| run.first)));
    let steady = runs.iter().filter(|run| run.is_steady).count();
    let rate = median(&of(|run| run.rate));
    (grown.low > 1.0 + WORTH && 4 * steady >= 3 * all).then_some(rate)
}

impl Run {
    /// Growth over the last half of the load; none from too few readings.
    fn of(held: &Held, settle: f64) -> Option<Run> {
        let end = held.readings.last()?.at - settle;
        let begin = end / 2.0;
        let long = (end - begin) / PARTS as f64;
        if end - begin < LEAST_SECONDS {
            return None;
        }
        let mut medians = [0.0; PARTS];
        for (at, middle) in medians.iter_mut().enumerate() {
            let from = begin + at as f64 * long;
            let is_in = |reading: &&Reading| (from..=from + long).contains(&reading.at);
            let part: Vec<f64> = held.readings.iter().filter(is_in).map(|r| r.bytes).collect();
            if part.len() < LEAST_READINGS {
                return None;
            }
            *middle = median(&part);
        }
        let (first, last) = (medians[0], medians[PARTS - 1]);
        let share = (last - first) / (PARTS - 1) as f64;
        let adds = medians.windows(2).all(|pair| pair[1] - pair[0] >= STEADY * share);
        let is_kept = held.level >= last - 0.5 * (last - first);
        let is_steady = last - first >= LEAST_BYTES && adds && is_kept;
        Some(Run { first, last, rate: share / long, is_steady })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Sample;

    const MIB: f64 = 1048576.0;
    const SECONDS: f64 = 10.0;

    /// Memory at a part of the load, from 0 to 1, in MiB; `phase` is drawn anew for each run.
    type Shape = fn(at: f64, phase: f64, setting: usize) -> f64;

    /// A race of the plain program and four settings with so many runs each; 2 % of noise of a run, 1 % of a reading.
    fn race(shape: Shape, runs: usize, settle: f64, after: f64, seed: u64) -> GoalOutcome {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = move || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut phases = fastrand::Rng::with_seed(!seed);
        let mut run = |setting: usize| {
            let (level, phase) = ((0.02 * normal()).exp(), phases.f64());
            let mut readings = Vec::new();
            let loaded = |at: f64| shape(at, phase, setting) * level * MIB;
            let all = ((SECONDS + settle) * 20.0) as usize;
            for at in (1..=all).map(|at| at as f64 / 20.0) {
                let bytes = if at <= SECONDS { loaded(at / SECONDS) } else { after * loaded(1.0) };
                readings.push(Reading { at, bytes: bytes * (0.01 * normal()).exp() });
            }
            let level = readings[readings.len() - 5].bytes;
            let held = Held { level, readings, ..Held::default() };
            Some(Sample { memory: held.level, time: SECONDS, held, ..Sample::default() })
        };
        let mut of = |setting: usize| (0..runs).map(|_| run(setting)).collect::<Runs>();
        GoalOutcome {
            runs: (0..5).map(&mut of).collect(),
            fates: vec![Fate::NoGain; 4],
            ..GoalOutcome::default()
        }
    }

    /// The number of 100 races in which growth is found.
    fn found(shape: Shape, runs: usize) -> usize {
        (0..100)
            .filter(|seed| Growth::of(&race(shape, runs, 0.0, 1.0, *seed), 0.0).is_some())
            .count()
    }

    fn swing(at: f64, phase: f64, cycles: f64) -> f64 {
        (at * cycles + phase).fract()
    }

    /// A tenth of the memory in use swings twenty times; each setting has its own level.
    fn leak(at: f64, phase: f64, setting: usize) -> f64 {
        (50.0 + 10.0 * setting as f64) + 60.0 * at + 10.0 * swing(at, phase, 20.0)
    }

    #[test]
    fn a_leak_is_found_with_its_rate() {
        assert!(found(leak, 6) >= 95, "{}", found(leak, 6));
        assert!(found(leak, 20) >= 98, "{}", found(leak, 20));
        let growth = Growth::of(&race(leak, 6, 0.0, 1.0, 1), 0.0).expect("growth");
        let rate = growth.rate / MIB;
        assert!((5.0..6.6).contains(&rate), "{rate}");
        assert_eq!(growth.settings, 4);
        let said = Growth { rate: 6.0 * MIB, settings: 4 }.sentence();
        assert!(
            said.contains(
                "grows: 360 MiB a minute or more, plain and under every one of 4 settings"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_slow_leak_is_found_where_it_is_more_than_the_noise() {
        let slow: Shape = |at, phase, _| 100.0 + 16.0 * at + swing(at, phase, 20.0);
        assert!(found(slow, 6) >= 65, "{}", found(slow, 6));
        let hardly: Shape = |at, _, _| 100.0 + 2.0 * at;
        assert!(found(hardly, 20) <= 1, "{}", found(hardly, 20));
    }

    #[test]
    fn memory_that_does_not_grow_by_itself_is_none() {
        let shapes: [(&str, Shape); 8] = [
            ("level", |_, _, _| 100.0),
            ("swings often", |at, phase, _| 100.0 + 50.0 * swing(at, phase, 20.0)),
            ("swings three times", |at, phase, _| 100.0 + 50.0 * swing(at, phase, 3.0)),
            ("a cache fills", |at, _, _| 50.0 + 100.0 * (1.0 - (-6.0 * at).exp())),
            ("a slower cache fills", |at, _, _| 50.0 + 100.0 * (1.0 - (-3.0 * at).exp())),
            ("a step", |at, _, _| if at < 0.7 { 100.0 } else { 160.0 }),
            ("two steps", |at, _, _| 100.0 + (at * 3.0).floor() * 30.0),
            ("fragments", |at, phase, setting| {
                let speed = [60.0, 50.0, 40.0, 10.0, 60.0][setting];
                50.0 + speed * at + swing(at, phase, 20.0)
            }),
        ];
        for (name, shape) in shapes {
            for runs in [3, 6, 20] {
                assert!(found(shape, runs) <= 3, "{name}, {runs} runs: {}", found(shape, runs));
            }
        }
    }

    #[test]
    fn the_end_of_a_load_is_not_the_end_of_its_growth_unless_memory_comes_back() {
        let kept = |seed: &u64| Growth::of(&race(leak, 6, 2.0, 1.0, *seed), 2.0).is_some();
        let given_back = |seed: &u64| Growth::of(&race(leak, 6, 2.0, 0.4, *seed), 2.0).is_some();
        assert!((0..100).filter(kept).count() >= 95);
        assert_eq!((0..100).filter(given_back).count(), 0);
    }

    /// Another program held the CPU of the readings in one run of each setting.
    #[test]
    fn a_run_with_few_readings_hides_no_leak() {
        let thinned = |runs: &Runs| {
            let thin = |(at, sample): (usize, &Sample)| {
                let mut sample = sample.clone();
                sample.held.readings.retain(|reading| at != 2 || !(6.3..7.4).contains(&reading.at));
                Some(sample)
            };
            runs.samples().enumerate().map(thin).collect::<Runs>()
        };
        let mut few = race(leak, 6, 0.0, 1.0, 1);
        few.runs = few.runs.iter().map(thinned).collect();
        assert!(Growth::of(&few, 0.0).is_some());
    }

    #[test]
    fn too_few_settings_too_short_a_run_and_settings_that_never_raced_say_nothing() {
        let mut few = race(leak, 6, 0.0, 1.0, 1);
        few.fates[0] = Fate::NotReached;
        few.fates[1] = Fate::Disqualified("another output".to_owned());
        assert_eq!(Growth::of(&few, 0.0), None);
        let mut short = race(leak, 6, 0.0, 1.0, 1);
        short.runs = short
            .runs
            .iter()
            .map(|runs| {
                runs.samples()
                    .map(|sample| {
                        let mut sample = sample.clone();
                        for reading in &mut sample.held.readings {
                            reading.at /= 10.0;
                        }
                        Some(sample)
                    })
                    .collect()
            })
            .collect();
        assert_eq!(Growth::of(&short, 0.0), None);
        assert_eq!(Growth::of(&GoalOutcome::default(), 0.0), None);
    }
}
