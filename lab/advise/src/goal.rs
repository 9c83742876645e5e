//! The goal: the quantity to make small, the allowed loss of time, and an answer with both sides.

use crate::bound::WORTH;
use crate::verdict::{none_of, percent, tried, untried};
use cachewise_judge::Ratio;
use cachewise_judge::race::{self, Fate};
use cachewise_measure::held::Held;
use cachewise_measure::units::bytes;

/// The figure that is to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Time, or a figure that the program prints.
    #[default]
    Time,
    /// Memory after the load.
    Memory,
    /// The most memory at a time.
    Peak,
}

impl Goal {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Memory => "memory",
            Goal::Peak => "peak",
        }
    }

    /// Name in a sentence.
    pub fn what(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Memory => "memory after the load",
            Goal::Peak => "peak memory",
        }
    }
}

/// One run, with its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bytes of memory of the goal.
    pub memory: f64,
    /// Seconds, or the figure that the program prints; CPU seconds on a busy machine.
    pub time: f64,
    /// Page faults.
    pub faults: f64,
    /// Memory over time.
    pub held: Held,
}

/// The runs of one setting.
pub type Runs = race::Runs<Sample>;
/// A race of settings. Settings are numbered from 1; 0 is the plain program.
pub type GoalOutcome = race::RaceOutcome<Sample>;

/// The slope that is one: this part of the level in the time that was looked at.
const SLOPED: f64 = 0.05;
/// Memory of the plain program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    /// Memory over time.
    pub held: Held,
}

impl Plain {
    /// Memory that it holds, as a sentence.
    pub fn sentence(&self) -> String {
        let Held { level, peak, slope, processes, .. } = self.held;
        let mut said = format!("{} after the load, {} at most", mib(level), mib(peak));
        if self.grows() {
            said.push_str(&format!(
                ", growing by {} a minute: a leak, a cache that fills, or memory that is kept (--blame memory says where it comes from)",
                mib(slope * 60.0)
            ));
        }
        if processes > 1 {
            said.push_str(&format!(", in {processes} processes"));
        }
        said
    }

    /// True if memory grew by more than chance over the last half of the run.
    pub fn grows(&self) -> bool {
        Plain::rises(&self.held)
    }

    /// True if memory grew by more than chance over the last half of the run.
    fn rises(held: &Held) -> bool {
        let Some((first, last)) = held.readings.first().zip(held.readings.last()) else {
            return false;
        };
        held.slope * 0.5 * (last.at - first.at) > SLOPED * held.level
    }
}

/// A size as a sentence has it.
fn mib(size: f64) -> String {
    bytes(size.max(0.0) as u64 >> 16 << 16)
}

/// Is there something to set?
#[derive(Clone, Debug, PartialEq)]
pub enum GoalAnswer {
    /// This setting, from 0 on: memory and time over the plain program's.
    Set(usize, [Ratio; 2]),
    /// It was shown that nothing is worth it.
    Nothing(String),
    /// Neither.
    CannotTell(String),
}

/// Memory and time over the plain program's, by fresh runs alone.
pub fn trade(outcome: &GoalOutcome) -> Option<[Ratio; 2]> {
    Some([outcome.fresh_ratio(|sample| sample.memory)?, outcome.fresh_ratio(|sample| sample.time)?])
}

/// The part of the largest saving that a setting has to reach to be named for losing less time.
const ENOUGH: f64 = 0.5;

/// The setting to ask for by a larger `--at-most`: memory and time over the plain program's. It is the one with fresh runs if that
/// loses more than is allowed. Else, of those left out for their time that were shown to save, by the race, it loses the
/// least time of all that save at least half of the most.
pub fn dearer(outcome: &GoalOutcome, allowed: f64) -> Option<(usize, [Ratio; 2])> {
    if let (Some(winner), Some(ratios)) = (outcome.winner, trade(outcome))
        && ratios[0].high < 1.0 - WORTH
        && ratios[1].low > 1.0 + allowed
    {
        return Some((winner - 1, ratios));
    }
    let plain = outcome.runs.first()?;
    let left_out = outcome.fates.iter().zip(&outcome.runs[1..]).enumerate();
    let ratios =
        left_out.filter(|(_, (fate, _))| **fate == Fate::TooDear).map(|(at, (_, runs))| {
            let memory = runs.over(plain, |sample| sample.memory);
            (at, [memory, runs.over(plain, |sample| sample.time)])
        });
    // It has to save more than the setting that costs no time.
    let fresh = outcome.fresh_ratio(|sample| sample.memory);
    let least = fresh.map_or(1.0 - WORTH, |own| own.low.min(1.0 - WORTH));
    let saving: Vec<_> = ratios.filter(|(_, [memory, _])| memory.high < least).collect();
    let saved = |(_, [memory, _]): &(usize, [Ratio; 2])| 1.0 - memory.median;
    let least = ENOUGH * saving.iter().map(saved).fold(0.0, f64::max);
    let enough = saving.into_iter().filter(|one| saved(one) >= least);
    enough.min_by(|(_, [_, one]), (_, [_, other])| one.median.total_cmp(&other.median))
}

/// Both sides in words.
pub fn both(goal: Goal, [memory, time]: &[Ratio; 2]) -> String {
    if goal == Goal::Time {
        return format!("time {}", interval(memory));
    }
    format!("{} {}, time {}", goal.what(), interval(memory), interval(time))
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.2} ({:.2} .. {:.2})", ratio.median, ratio.low, ratio.high)
}

impl GoalAnswer {
    /// Answer of a race in which so much time may be lost.
    pub fn of(outcome: &GoalOutcome, goal: Goal, allowed: f64) -> GoalAnswer {
        let cannot = |why: &str| GoalAnswer::CannotTell(why.to_owned());
        if outcome.stopped {
            return cannot("it was stopped before its end");
        }
        if let Some(why) = &outcome.unrepeatable {
            return GoalAnswer::CannotTell(format!(
                "the plain program failed when it was run again: {why}"
            ));
        }
        if let Some(seconds) = outcome.needs {
            let seconds = seconds.ceil();
            return GoalAnswer::CannotTell(format!(
                "the budget has no room for a comparison; --budget {seconds:.0}s has"
            ));
        }
        let worth = percent(WORTH);
        let (tried, waiting) = tried(&outcome.fates);
        // Settings without a turn may save.
        let nothing = |said: String| match waiting {
            0 => GoalAnswer::Nothing(said),
            _ => GoalAnswer::CannotTell(format!("{said}; {}", untried(waiting))),
        };
        let left = |fate: &Fate| {
            use Fate::{Disqualified, NoGain, NotReached, TooDear};
            matches!(fate, NoGain | TooDear | Disqualified(_) | NotReached)
        };
        if outcome.winner.is_none() && outcome.fates.iter().all(left) {
            let dear = outcome.fates.iter().filter(|fate| **fate == Fate::TooDear).count();
            let dear = match dear {
                0 => String::new(),
                _ => format!(", {dear} of them lose more than {} of time", percent(allowed)),
            };
            let saved = format!("{worth} of {}{dear}", goal.what());
            return nothing(none_of(tried, "save", &saved));
        }
        let (Some(winner), Some(ratios)) = (outcome.winner, trade(outcome)) else {
            return cannot("no setting was left to be compared on fresh runs");
        };
        let [memory, time] = &ratios;
        let said = both(goal, &ratios);
        let pairs = format!("on {} fresh pairs of runs", memory.rounds);
        let (saves, fits) = (memory.high < 1.0 - WORTH, time.high <= 1.0 + allowed);
        match () {
            () if saves && fits => GoalAnswer::Set(winner - 1, ratios),
            () if memory.low > 1.0 - WORTH => {
                nothing(format!("the best of {tried} settings: {said} {pairs}"))
            }
            () if saves && time.low > 1.0 + allowed => nothing(format!(
                "the best of {tried} settings loses more than {} of time: {said} {pairs}",
                percent(allowed)
            )),
            () if saves => GoalAnswer::CannotTell(format!(
                "{said} {pairs}: whether it loses more than {} of time is open; --at-most or --rounds 60 would tell",
                percent(allowed)
            )),
            () => GoalAnswer::CannotTell(format!("{said} {pairs}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::held::Reading;

    fn held(level: f64, slope: f64) -> Held {
        let readings = (0..=20).map(|at| Reading { at: f64::from(at), bytes: level });
        Held {
            level,
            slope,
            peak: level,
            processes: 1,
            readings: readings.collect(),
            ..Held::default()
        }
    }

    fn outcome(memory: f64, time: f64, noise: f64) -> GoalOutcome {
        let side = |memory: f64, time: f64| -> Runs {
            let run = |at: i32| {
                let noisy = 1.0 + noise * f64::from(at % 5 - 2);
                Some(Sample { memory: memory * 1e6, time: time * noisy, ..Sample::default() })
            };
            (0..20).map(run).collect()
        };
        GoalOutcome {
            fates: vec![Fate::Live],
            winner: Some(1),
            fresh: Some([side(1.0, 1.0), side(memory, time)]),
            ..GoalOutcome::default()
        }
    }

    #[test]
    fn an_answer_has_both_sides_and_keeps_to_what_may_be_lost() {
        let answer = |memory, time, allowed| {
            GoalAnswer::of(&outcome(memory, time, 0.0), Goal::Memory, allowed)
        };
        assert!(matches!(answer(0.4, 1.0, 0.02), GoalAnswer::Set(0, _)));
        assert!(
            matches!(answer(0.4, 1.1, 0.02), GoalAnswer::Nothing(why) if why.contains("loses more than 2.0 %"))
        );
        assert!(matches!(answer(0.4, 1.1, 0.15), GoalAnswer::Set(0, _)));
        assert!(matches!(answer(1.0, 0.9, 0.02), GoalAnswer::Nothing(_)));
        let GoalAnswer::Set(_, ratios) = answer(0.37, 0.98, 0.02) else { panic!("a setting") };
        assert_eq!(
            both(Goal::Memory, &ratios),
            "memory after the load 0.37 (0.37 .. 0.37), time 0.98 (0.98 .. 0.98)"
        );
        // An interval of time that reaches beyond what may be lost is open.
        let mut open = outcome(0.4, 1.01, 0.0);
        let sides = open.fresh.as_mut().expect("two");
        sides[1] = (0..20)
            .map(|at| {
                let time = if at % 2 == 0 { 0.97 } else { 1.06 };
                Some(Sample { memory: 4e5, time, ..Sample::default() })
            })
            .collect();
        let found = GoalAnswer::of(&open, Goal::Memory, 0.02);
        assert!(
            matches!(&found, GoalAnswer::CannotTell(why) if why.contains("is open")),
            "{found:?}"
        );
    }

    #[test]
    fn nothing_is_said_where_all_left_for_a_reason() {
        let fates = vec![Fate::NoGain, Fate::TooDear, Fate::Disqualified("x".to_owned())];
        let all = GoalOutcome { fates, ..GoalOutcome::default() };
        let found = GoalAnswer::of(&all, Goal::Memory, 0.02);
        assert!(
            matches!(&found, GoalAnswer::Nothing(why) if why.contains("1 of them lose")),
            "{found:?}"
        );
    }

    #[test]
    fn a_setting_that_is_too_dear_is_named_by_what_it_saves_and_costs() {
        let runs = |memory: f64, time: f64| -> Runs {
            (0..8).map(|_| Some(Sample { memory, time, ..Sample::default() })).collect()
        };
        let sides = [(1.0, 1.0), (0.3, 1.4), (0.4, 1.3), (0.9, 1.1), (0.2, 1.01), (1.2, 1.2)];
        let dear = |fate: Fate| GoalOutcome {
            runs: sides.iter().map(|&(memory, time)| runs(memory, time)).collect(),
            fates: vec![Fate::TooDear, Fate::TooDear, Fate::TooDear, fate, Fate::TooDear],
            ..GoalOutcome::default()
        };
        let found = |fate| {
            dearer(&dear(fate), 0.02).map(|(at, [memory, time])| (at, memory.median, time.median))
        };
        // 0.9 saves less than half of what 0.3 does; 1.2 saves nothing.
        assert_eq!(found(Fate::NoGain), Some((1, 0.4, 1.3)));
        assert_eq!(found(Fate::TooDear), Some((3, 0.2, 1.01)));
        let beside = |memory| GoalOutcome {
            fresh: Some([runs(1.0, 1.0), runs(memory, 1.0)]),
            ..dear(Fate::NoGain)
        };
        assert_eq!(dearer(&beside(0.8), 0.02).map(|(at, _)| at), Some(1));
        assert!(dearer(&beside(0.02), 0.02).is_none(), "less memory without more time");
        assert!(dearer(&GoalOutcome::default(), 0.02).is_none());
        // The one that had fresh runs.
        assert_eq!(dearer(&outcome(0.4, 1.1, 0.0), 0.02).map(|(at, _)| at), Some(0));
        assert!(dearer(&outcome(0.4, 1.1, 0.0), 0.15).is_none());
    }

    #[test]
    fn memory_that_grows_is_said_to() {
        let grows = Plain { held: held(100e6, 5e6) };
        assert!(
            grows.sentence().contains("growing by 286.06 MiB a minute"),
            "{}",
            grows.sentence()
        );
        let level = Plain { held: held(100e6, 1e3) };
        assert_eq!(level.sentence(), "95.31 MiB after the load, 95.31 MiB at most");
    }

    /// A program whose settings take known parts of its memory and of its time.
    struct Simulated {
        parts: Vec<(f64, f64)>,
        noise: f64,
        clock: f64,
        random: fastrand::Rng,
    }

    impl race::Runner for Simulated {
        type Sample = Sample;
        type Error = std::convert::Infallible;

        fn run(&mut self, who: usize) -> Result<race::Ran<Sample>, Self::Error> {
            let (memory, time) = if who == 0 { (1.0, 1.0) } else { self.parts[who - 1] };
            let mut noisy = |part: f64, noise: f64| {
                let normal = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
                part * (noise * normal).exp()
            };
            let (memory, time) = (noisy(memory, 0.01), noisy(time, self.noise));
            self.clock += time;
            Ok(race::Ran::Well(Sample { memory, time, ..Sample::default() }))
        }

        fn cost(sample: &Sample) -> f64 {
            sample.memory
        }

        fn loss(sample: &Sample) -> Option<f64> {
            Some(sample.time)
        }

        fn now(&self) -> f64 {
            self.clock
        }

        fn progress(&mut self, _: race::Stage, _: f64) {}
    }

    fn answered(parts: &[(f64, f64)], noise: f64, seed: u64) -> GoalAnswer {
        let random = fastrand::Rng::with_seed(seed);
        let mut program = Simulated { parts: parts.to_vec(), noise, clock: 0.0, random };
        let question = race::Question {
            contestants: parts.len(),
            expected: 1.0,
            budget: 600.0,
            rounds: None,
            margin: WORTH,
            allowed: Some(0.05),
            seed,
        };
        let Ok(outcome) = race::race(&mut program, question);
        GoalAnswer::of(&outcome, Goal::Memory, 0.05)
    }

    /// The least memory is too slow, the second is the answer, the fast one saves nothing.
    #[test]
    fn the_least_memory_among_those_that_are_fast_enough_is_the_answer() {
        let parts = [(1.0, 0.7), (0.8, 1.0), (0.5, 0.99), (0.2, 1.5)];
        let right = (0..100)
            .filter(|seed| matches!(answered(&parts, 0.02, *seed), GoalAnswer::Set(2, _)))
            .count();
        assert!(right >= 95, "{right} of 100");
    }

    #[test]
    fn no_setting_is_named_where_none_saves_or_each_is_too_slow() {
        for parts in [[(1.0, 1.0), (1.0, 0.6), (1.01, 1.0)], [(0.5, 1.3), (0.4, 1.5), (0.3, 2.0)]] {
            let wrong = (0..100)
                .filter(|seed| matches!(answered(&parts, 0.02, *seed), GoalAnswer::Set(..)))
                .count();
            assert!(wrong <= 2, "{wrong} of 100 for {parts:?}");
        }
    }
}
