//! The answer, its reasons, and what it costs, in sentences.

use crate::bound::{Bound, WORTH};
use crate::candidates::Candidate;
use crate::sample::{Sample, TimeOutcome};
use cachewise_judge::margin::SETTING;
use cachewise_judge::race::Fate;
use cachewise_judge::{Ratio, Verdict, verdict};
use cachewise_measure::units::bytes;

/// Rounds beyond which a quieter machine helps more than further ones.
const MOST_ASKED: f64 = 300.0;

/// The answer to "is there something to set?".
#[derive(Clone, Debug, PartialEq)]
pub enum TimeAnswer {
    /// This candidate, by its place in the list, gains so much: above 1 is faster.
    Set(usize, Ratio),
    /// It was shown that nothing is worth a setting.
    Nothing(String),
    /// Neither.
    CannotTell(String),
}

impl TimeAnswer {
    /// The answer by the bound alone; `None` where a race is due.
    pub fn of_bound(bound: &Bound) -> Option<TimeAnswer> {
        bound
            .is_nothing()
            .then(|| TimeAnswer::Nothing(format!("{} of a run", at_most(bound.total()))))
    }

    /// The answer of a race.
    pub fn of(outcome: &TimeOutcome) -> TimeAnswer {
        let cannot = |why: &str| TimeAnswer::CannotTell(why.to_owned());
        if let Some(why) = &outcome.unrepeatable {
            return cannot(&format!(
                "the program without a setting failed when it was run again: {why}"
            ));
        }
        if outcome.stopped {
            return cannot("it was stopped before its end");
        }
        let worth = percent(WORTH);
        let (tried, waiting) = tried(&outcome.fates);
        let open = |said: &str| TimeAnswer::CannotTell(format!("{said}; {}", untried(waiting)));
        let all = |wanted: fn(&Fate) -> bool| outcome.fates.iter().all(wanted);
        if let Some(Fate::Disqualified(why)) = outcome.fates.first()
            && all(|fate| matches!(fate, Fate::Disqualified(_)))
        {
            return cannot(&format!(
                "with each of the settings the program does something else: {why}"
            ));
        }
        let ratio = outcome.fresh_ratio(|sample| sample.cost);
        match outcome.winner.zip(ratio) {
            Some((winner, ratio)) => match TimeAnswer::of_fresh(winner - 1, &ratio) {
                TimeAnswer::Nothing(said) if waiting > 0 => open(&said),
                answer => answer,
            },
            None if all(|fate| {
                use Fate::{Disqualified, NoGain, NotReached, Slower};
                matches!(fate, NoGain | Slower | Disqualified(_) | NotReached)
            }) =>
            {
                let said = none_of(tried, "gain", &worth);
                if waiting > 0 { open(&said) } else { TimeAnswer::Nothing(said) }
            }
            None => cannot("no setting was left to be compared on fresh runs"),
        }
    }

    /// The answer of fresh runs of a candidate: a ratio of times.
    fn of_fresh(candidate: usize, ratio: &Ratio) -> TimeAnswer {
        let speed = ratio.inverse();
        match Verdict::of_setting(ratio) {
            Verdict::Faster => TimeAnswer::Set(candidate, speed),
            Verdict::Same | Verdict::Slower => {
                let most = ((speed.high - 1.0) * 100.0).round().max(0.0);
                TimeAnswer::Nothing(format!(
                    "nothing worth a setting: at most {most:.0} %, by fresh runs of the best"
                ))
            }
            Verdict::Unknown => {
                TimeAnswer::CannotTell(format!("{}; {}", verdict::open(&speed), would_tell(&speed)))
            }
        }
    }
}

/// The numbers of settings that had a turn, and that had none.
pub(crate) fn tried(fates: &[Fate]) -> (usize, usize) {
    let waiting = fates.iter().filter(|fate| **fate == Fate::NotReached).count();
    (fates.len() - waiting, waiting)
}

/// Settings of which none does what was asked, in words: "none of 3 settings gains 2.0 %".
pub(crate) fn none_of(tried: usize, does: &str, what: &str) -> String {
    match tried {
        1 => format!("the one setting that was tried does not {does} {what}"),
        _ => format!("none of {tried} settings {does}s {what}"),
    }
}

/// Settings without a turn, in words.
pub(crate) fn untried(waiting: usize) -> String {
    match waiting {
        1 => "1 setting was not tried for lack of time".to_owned(),
        _ => format!("{waiting} settings were not tried for lack of time"),
    }
}

/// The option that gives all settings their turn.
///
/// ```
/// use cachewise_advise::verdict::budget;
/// assert_eq!(budget(61.2), "--budget 62s");
/// assert_eq!(budget(200.0), "--budget 4min");
/// ```
#[must_use]
pub fn budget(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("--budget {:.0}s", seconds.ceil()),
        _ => format!("--budget {:.0}min", (seconds / 60.0).ceil()),
    }
}

/// The option that would tell, by how an interval narrows: with the root of the rounds.
fn would_tell(speed: &Ratio) -> String {
    let quieter = "a quieter machine would tell".to_owned();
    let distance = (speed.median - 1.0 - SETTING).abs();
    let half = (speed.high - speed.low) / 2.0;
    let needed = speed.rounds as f64 * (1.3 * half / distance.max(1e-3)).powi(2);
    match needed {
        _ if !needed.is_finite() || needed > MOST_ASKED => quieter,
        _ => format!("--rounds {:.0} would tell", ((needed / 10.0).ceil() * 10.0).max(20.0)),
    }
}

/// A bound as people write it.
fn at_most(part: f64) -> String {
    let part = percent(part);
    if part.starts_with("less") { part } else { format!("at most {part}") }
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

/// The bound in a sentence; where a gain was measured that exceeds it, that is said.
pub fn of_bound(bound: &Bound, gained: Option<&Ratio>) -> String {
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
    let gained = gained.map(|speed| 1.0 - 1.0 / speed.low).filter(|part| *part > bound.total());
    let (part, end) = match gained {
        Some(_) => {
            (format!("estimated beforehand: {}", percent(bound.total())), ": fresh runs show more")
        }
        // More than a part of a run excludes nothing.
        None if bound.total() > 0.99 => {
            return format!(
                "no useful bound: up to all of a run can be gained ({}{missing})",
                parts.join(", ")
            );
        }
        None => (at_most(bound.total()), ""),
    };
    format!("{part} of a run can be gained ({}{missing}){end}", parts.join(", "))
}

/// The reason why a setting is not the answer, for a table.
pub fn fate(fate: &Fate) -> &'static str {
    match fate {
        Fate::Live => "",
        Fate::Slower => "slower",
        Fate::Simpler => "a simpler one does as much",
        Fate::NoGain => "no gain",
        Fate::TooDear => "loses too much",
        Fate::NotReached => "no time",
        Fate::Disqualified(_) => "disqualified",
    }
}

/// The costs of the answer beside its gain, and where the gain comes from, in sentences.
pub fn why(outcome: &TimeOutcome, candidate: &Candidate) -> Vec<String> {
    let Some([plain, own]) = &outcome.fresh else { return Vec::new() };
    let medians = |figure: fn(&Sample) -> f64| {
        Some([plain, own].map(|runs| runs.median(figure)))
            .filter(|both| both.iter().all(|one| one.is_finite()))
    };
    let mut said = Vec::new();
    if let Some([before, after]) = medians(|sample| sample.peak) {
        let [before, after] = [before, after].map(|peak| bytes(peak as u64 >> 20 << 20));
        said.push(format!("it costs: memory of the largest process {after}, plain {before}"));
    }
    if let Some([before, after]) = medians(|sample| sample.threads)
        && after > before
    {
        said.push(format!("it costs: {after:.0} threads, plain {before:.0}"));
    }
    if candidate.variables.iter().any(|(name, _)| name == "LD_PRELOAD") {
        said.push(
            "it costs: a library that is loaded into every process that the program starts"
                .to_owned(),
        );
    }
    if let Some([before, after]) = medians(|sample| sample.faults) {
        said.push(format!("page faults: {after:.0} where the plain program has {before:.0}"));
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

    fn ratio(low: f64, high: f64, rounds: usize) -> Ratio {
        Ratio { median: (low * high).sqrt(), low, high, rounds }
    }

    #[test]
    fn a_bound_names_its_parts_and_what_is_missing() {
        let bound = Bound { faults: 0.0041, copies: Some(0.0003), blocks: None };
        assert_eq!(
            of_bound(&bound, None),
            "at most 0.4 % of a run can be gained (page faults 0.4 %, copies and fills less than 0.1 %; \
             not counted: the allocator's calls)"
        );
        assert_eq!(TimeAnswer::of_bound(&bound), None);
        let all = Bound { blocks: Some(0.001), ..bound };
        assert_eq!(
            TimeAnswer::of_bound(&all),
            Some(TimeAnswer::Nothing("at most 0.5 % of a run".to_owned()))
        );
        // "At most" is never contradicted by what follows it.
        let speed = ratio(0.5, 0.6, 9).inverse();
        assert!(of_bound(&all, Some(&speed)).starts_with("estimated beforehand: 0.5 %"));
        let whole = of_bound(&Bound { faults: 1.0, ..all }, None);
        assert!(whole.starts_with("no useful bound: up to all of a run can be gained"), "{whole}");
        let large = Bound { faults: 0.7, ..all };
        assert!(of_bound(&large, Some(&speed)).starts_with("at most 70 %"));
    }

    #[test]
    fn what_is_open_is_said_with_the_option_that_would_tell() {
        let TimeAnswer::CannotTell(why) =
            TimeAnswer::of_fresh(0, &ratio(1.0 / 1.12, 1.0 / 1.01, 30))
        else {
            panic!("cannot tell")
        };
        assert!(why.starts_with("probably 1 to 12 % faster; --rounds "), "{why}");
        let TimeAnswer::Nothing(why) = TimeAnswer::of_fresh(0, &ratio(1.0 / 1.05, 1.0 / 0.96, 30))
        else {
            panic!("nothing")
        };
        assert!(why.starts_with("nothing worth a setting: at most 5 %"), "{why}");
        let wide = TimeAnswer::of_fresh(0, &ratio(1.0 / 1.3, 1.0 / 0.9, 30));
        assert!(
            matches!(&wide, TimeAnswer::CannotTell(why) if why.starts_with("between 10 % slower and 30 % faster"))
        );
        assert!(matches!(TimeAnswer::of_fresh(3, &ratio(0.7, 0.9, 30)), TimeAnswer::Set(3, _)));
        assert!(
            matches!(TimeAnswer::of_fresh(3, &ratio(0.6, 0.7, 4)), TimeAnswer::Set(3, _)),
            "four pairs"
        );
        assert!(matches!(
            TimeAnswer::of_fresh(3, &ratio(0.97, 1.03, 4)),
            TimeAnswer::CannotTell(_)
        ));
    }

    #[test]
    fn an_answer_needs_the_plain_program_and_fresh_runs() {
        let of = |fates: &[Fate]| {
            TimeAnswer::of(&TimeOutcome { fates: fates.to_vec(), ..TimeOutcome::default() })
        };
        let disqualified = || Fate::Disqualified("exit status: 3".to_owned());
        assert!(matches!(
            of(&[Fate::NoGain, Fate::NoGain, disqualified()]),
            TimeAnswer::Nothing(_)
        ));
        let all_differ = of(&[disqualified(), disqualified()]);
        assert!(
            matches!(&all_differ, TimeAnswer::CannotTell(why) if why.ends_with("exit status: 3"))
        );
        // Settings without a turn may gain.
        let some = of(&[Fate::NoGain, Fate::NotReached, Fate::NotReached]);
        assert!(
            matches!(&some, TimeAnswer::CannotTell(why) if why == "the one setting that was tried does not gain 2.0 %; 2 settings were not tried for lack of time"),
            "{some:?}"
        );
        let nothing = TimeOutcome { fates: vec![Fate::NoGain; 3], ..TimeOutcome::default() };
        let stopped = TimeOutcome { stopped: true, ..nothing.clone() };
        assert!(matches!(TimeAnswer::of(&stopped), TimeAnswer::CannotTell(_)));
        let once = TimeOutcome { unrepeatable: Some("exit status: 1".to_owned()), ..nothing };
        let said = TimeAnswer::of(&once);
        assert!(
            matches!(&said, TimeAnswer::CannotTell(why) if why.contains("failed when it was run again"))
        );
    }
}
