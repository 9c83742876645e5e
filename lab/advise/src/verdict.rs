//! What is said in the end: the answer, why, and what it costs.

use crate::bound::{Bound, WORTH};
use crate::race::{Fate, Outcome};
use cachewise_measure::stats::PairedRatio;
use cachewise_measure::units::bytes;
use cachewise_measure::whole::Verdict;

/// Is there something to set?
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This candidate, by its number, gains so much: above 1 is faster.
    Set(usize, PairedRatio),
    /// It was shown that nothing is worth it.
    Nothing(String),
    /// Neither.
    CannotTell(String),
}

impl Answer {
    /// By the bound alone; `None` where a race is due.
    pub fn of_bound(bound: &Bound) -> Option<Answer> {
        bound
            .is_nothing()
            .then(|| Answer::Nothing(format!("at most {} of a run", percent(bound.total()))))
    }

    /// Of a race.
    pub fn of(outcome: &Outcome) -> Answer {
        let cannot = |why: &str| Answer::CannotTell(why.to_owned());
        if outcome.stopped {
            return cannot("it was stopped before its end");
        }
        if outcome.too_short {
            return cannot("the budget has no room for a comparison");
        }
        let worth = percent(WORTH);
        if outcome.fates.iter().all(|fate| matches!(fate, Fate::NoGain | Fate::Disqualified(_))) {
            let tried = outcome.fates.len();
            return Answer::Nothing(format!("none of {tried} settings gains {worth}"));
        }
        let (Some(winner), Some(speed)) = (outcome.winner, outcome.speed()) else {
            return cannot("no setting was left to be compared on fresh runs");
        };
        match Verdict::of(&speed) {
            Verdict::Faster => Answer::Set(winner, speed),
            Verdict::Same => {
                Answer::Nothing(format!("the best of them gains less than {worth} on fresh runs"))
            }
            Verdict::Slower => cannot("the best of the race is slower on fresh runs"),
            Verdict::NotSlower | Verdict::CannotTell => Answer::CannotTell(format!(
                "the best of them has speed {speed:.2} on {} fresh pairs of runs",
                speed.rounds
            )),
        }
    }
}

/// A part as people write it.
pub fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent {
        0.0..0.095 => "less than 0.1 %".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// The bound in a sentence.
pub fn of_bound(bound: &Bound) -> String {
    let mut parts = vec![format!("page faults {}", percent(bound.faults))];
    let counted = [("copies and fills", bound.copies), ("the allocator's calls", bound.blocks)];
    parts.extend(
        counted.iter().filter_map(|(name, part)| Some(format!("{name} {}", percent((*part)?)))),
    );
    let missing: Vec<&str> =
        counted.iter().filter(|(_, part)| part.is_none()).map(|(name, _)| *name).collect();
    let missing = match missing[..] {
        [] => String::new(),
        _ => format!("; not counted: {}", missing.join(", ")),
    };
    format!(
        "at most {} of a run can be gained ({}{missing})",
        percent(bound.total()),
        parts.join(", ")
    )
}

/// What the winner costs and where its gain comes from, in sentences.
pub fn why(outcome: &Outcome) -> Vec<String> {
    let (Some([plain, own]), Some(_)) = (&outcome.refereed, outcome.winner) else {
        return Vec::new();
    };
    let mut said = Vec::new();
    let [before, after] = [plain, own].map(|runs| runs.median(|sample| sample.faults));
    if before.is_finite() && after.is_finite() {
        said.push(format!("page faults: {after:.0} where the plain program has {before:.0}"));
    }
    let [before, after] = [plain, own].map(|runs| runs.median(|sample| sample.peak));
    if before.is_finite() && after.is_finite() {
        let [before, after] = [before, after].map(|peak| bytes(peak as u64 >> 20 << 20));
        said.push(format!("memory at most: {after}, plain {before}"));
    }
    let cpu = own.over(plain, |sample| sample.cpu);
    if cpu.median.is_finite() {
        said.push(format!("CPU time over the plain program's: {cpu:.2}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_names_its_parts_and_what_is_missing() {
        let bound = Bound { faults: 0.0041, copies: Some(0.0003), blocks: None };
        assert_eq!(
            of_bound(&bound),
            "at most 0.4 % of a run can be gained (page faults 0.4 %, copies and fills less than 0.1 %; \
             not counted: the allocator's calls)"
        );
        assert_eq!(Answer::of_bound(&bound), None);
        let all = Bound { blocks: Some(0.001), ..bound };
        assert_eq!(
            Answer::of_bound(&all),
            Some(Answer::Nothing("at most 0.5 % of a run".to_owned()))
        );
    }

    #[test]
    fn nobody_left_with_a_gain_is_nothing_and_a_stop_is_not() {
        let nothing = Outcome { fates: vec![Fate::NoGain; 3], ..Outcome::default() };
        assert!(matches!(Answer::of(&nothing), Answer::Nothing(_)));
        let stopped = Outcome { stopped: true, ..nothing.clone() };
        assert!(matches!(Answer::of(&stopped), Answer::CannotTell(_)));
        let too_short = Outcome { too_short: true, ..nothing };
        assert!(matches!(Answer::of(&too_short), Answer::CannotTell(_)));
    }
}
