//! The answer of a race: one type for time, memory, any figure and two versions of a program; and the one place that decides
//! what *no* may be said over.

use crate::program::{Figure, Sample};
use crate::settings::Candidate;
use cachewise_judge::margin::{NOT_WORTH, SETTING};
use cachewise_judge::race::{Ended, Fate, Outcome};
use cachewise_judge::{Ratio, Verdict};
use cachewise_measure::units::counted;

/// Seconds beyond which a quieter machine helps more than further rounds.
const LONGEST: f64 = 3600.0;

/// The answer to "is there something to set", or "is new slower than old".
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// `Faster`: yes. `Same`, `Slower`: no. `Unknown`: cannot tell.
    pub verdict: Verdict,
    /// The setting that it is about, from 0 on.
    pub setting: Option<usize>,
    /// Its cost over the plain program's.
    pub ratio: Option<Ratio>,
    /// Further changes: figures over the plain program's.
    pub costs: Vec<(Figure, Ratio)>,
    /// The reason, in a sentence.
    pub why: String,
    /// The next step.
    pub next: String,
}

impl Answer {
    /// An answer without a race.
    #[must_use]
    pub fn of(verdict: Verdict, why: impl Into<String>, next: impl Into<String>) -> Answer {
        let (why, next) = (why.into(), next.into());
        Answer { verdict, setting: None, ratio: None, costs: Vec::new(), why, next }
    }

    /// Cannot tell, for that reason.
    #[must_use]
    pub fn unknown(why: impl Into<String>, next: impl Into<String>) -> Answer {
        Answer::of(Verdict::Unknown, why, next)
    }
}

/// Terms of the question, for the words of an answer.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// The settings, in the race's order.
    pub settings: &'a [Candidate],
    /// The figure that is to be small.
    pub cost: Figure,
    /// The figure of which only this part may be lost.
    pub loss: Option<(Figure, f64)>,
    /// Further figures that an answer names.
    pub beside: Vec<Figure>,
    /// Seconds that one run takes.
    pub one: f64,
    /// Seconds that were to be had.
    pub budget: f64,
    /// Rounds that each was to have.
    pub rounds: Option<usize>,
    /// The program's words.
    pub words: &'a [String],
    /// Remark on a program that waits.
    pub waits: Option<String>,
}

/// The settings of a race by what it showed of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Shown to gain too little, to lose too much, or less than another; counters that say so.
    pub no: usize,
    /// Raced, and open.
    pub open: Vec<usize>,
    /// Without a turn, or with a look alone.
    pub waiting: Vec<usize>,
    /// Disqualified: says nothing about a gain.
    pub disqualified: Vec<(usize, String)>,
    /// Lose more than is allowed.
    pub dear: usize,
}

impl Decided {
    /// Sorts the settings of a race. A gain of at most [`NOT_WORTH`] is none.
    #[must_use]
    pub fn of(outcome: &Outcome<Sample>, cost: &Figure) -> Decided {
        let mut decided = Decided::default();
        for (at, fate) in outcome.fates.iter().enumerate() {
            let is_small = || {
                let ratio = outcome.ratio(at + 1, |sample| cost.of(sample));
                ratio.low > 1.0 / (1.0 + NOT_WORTH) && ratio.high > 1.0 / (1.0 + SETTING)
            };
            match fate {
                Fate::NoGain | Fate::Small | Fate::NoPromise | Fate::Slower | Fate::Simpler => {
                    decided.no += 1;
                }
                Fate::TooDear => (decided.no, decided.dear) = (decided.no + 1, decided.dear + 1),
                Fate::Live if is_small() => decided.no += 1,
                Fate::Live => decided.open.push(at),
                Fate::Waiting | Fate::NotReached => decided.waiting.push(at),
                Fate::Disqualified(why) => decided.disqualified.push((at, why.clone())),
            }
        }
        decided
    }

    /// Returns whether *no* may be said: something was decided, and nothing that ran or was to run is open.
    #[must_use]
    pub fn is_no(&self) -> bool {
        self.no > 0 && self.open.is_empty() && self.waiting.is_empty()
    }
}

/// A figure's ratio in words: "1.34 (1.30 .. 1.38) times the speed", "memory at the end 0.39 (0.39 .. 0.40)".
#[must_use]
pub fn said(figure: &Figure, ratio: &Ratio) -> String {
    match figure.is_time() {
        true => {
            let by = if *figure == Figure::Cpu { " by CPU time" } else { "" };
            format!("{} times the speed{by}", between(&ratio.inverse()))
        }
        false => format!("{} {}", figure.name(), between(ratio)),
    }
}

/// A ratio with its interval, where it has one.
#[must_use]
pub fn between(ratio: &Ratio) -> String {
    match ratio.low.is_finite() {
        true => format!("{:.2} ({:.2} .. {:.2})", ratio.median, ratio.low, ratio.high),
        false => format!("{:.2}", ratio.median),
    }
}

/// A part as people write it.
#[must_use]
pub fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    match percent {
        0.0..0.095 => "less than 0.1 %".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Seconds as the option takes them: `62s`, `4min`.
#[must_use]
pub fn budget(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("--budget {:.0}s", seconds.ceil()),
        _ => format!("--budget {:.0}min", (seconds / 60.0).ceil()),
    }
}

/// The answer of a race of settings.
#[must_use]
pub fn answer(outcome: &Outcome<Sample>, terms: &Terms<'_>) -> Answer {
    match &outcome.ended {
        Ended::Stopped => {
            return Answer::unknown("it was stopped before its end", "the same again, to its end");
        }
        Ended::Unrepeatable(why) => {
            let next = match why.contains("memory limit") {
                true => "a larger limit, or --goal memory within it",
                false => {
                    "a command that can be run twice (--prepare COMMAND sets up what each run needs)"
                }
            };
            let why = format!("the plain program failed when it was run again: {why}");
            return Answer::unknown(why, next);
        }
        Ended::Settled | Ended::Time => {}
    }
    let decided = Decided::of(outcome, &terms.cost);
    // Where all that are open seem to lose too much, the race picks none: the reader is told of the one that saves most.
    let cost = |at: &usize| outcome.ratio(at + 1, |sample| terms.cost.of(sample)).median;
    let open = decided.open.iter().filter(|at| cost(at).is_finite());
    let most = open.min_by(|a, b| cost(a).total_cmp(&cost(b))).map(|at| at + 1);
    let best = outcome.best.or(most.filter(|_| terms.loss.is_some()));
    let answer = best.and_then(|best| of_best(outcome, terms, best));
    let mut answer = answer.unwrap_or_else(|| without(outcome, terms, &decided, best));
    if answer.verdict != Verdict::Faster
        && let Some(waits) = &terms.waits
    {
        answer = Answer { why: format!("{}; {waits}", answer.why), ..answer };
    }
    answer
}

/// The answer that the best is shown to gain; `None` where it is not.
fn of_best(outcome: &Outcome<Sample>, terms: &Terms<'_>, best: usize) -> Option<Answer> {
    let over = |figure: &Figure| outcome.ratio(best, |sample| figure.of(sample));
    let ratio = over(&terms.cost);
    if ratio.high.is_nan() || ratio.high >= 1.0 / (1.0 + SETTING) {
        return None;
    }
    let lost = terms.loss.as_ref().map(|(figure, allowed)| (over(figure), *allowed));
    let loss = terms.loss.iter().map(|(figure, _)| figure);
    let costs = changes(outcome, best, loss.chain(&terms.beside));
    let setting = &terms.settings[best - 1];
    let mut why = format!("{}: {}", setting.name, said(&terms.cost, &ratio));
    let verdict = match lost {
        Some((lost, allowed)) if lost.high.is_nan() || lost.high > 1.0 + allowed => {
            why = format!(
                "{why}, {}: whether it loses more than {} of it is open",
                cost_said(&costs[0]),
                percent(allowed)
            );
            Verdict::Unknown
        }
        Some(_) => {
            why = format!("{why}, {}", cost_said(&costs[0]));
            Verdict::Faster
        }
        None => Verdict::Faster,
    };
    let next = match (verdict, lost) {
        (Verdict::Unknown, Some((lost, _))) if lost.high.is_finite() => {
            format!("the same again with --at-most {:.0}%", (100.0 * (lost.high - 1.0)).ceil())
        }
        (Verdict::Unknown, _) => "the same again with a larger --budget".to_owned(),
        _ => setting.line(terms.words),
    };
    Some(Answer { verdict, setting: Some(best - 1), ratio: Some(ratio), costs, why, next })
}

/// Further changes by a setting, where they were measured.
pub(crate) fn changes<'a>(
    outcome: &Outcome<Sample>,
    who: usize,
    figures: impl Iterator<Item = &'a Figure>,
) -> Vec<(Figure, Ratio)> {
    let over = |figure: &Figure| (figure.clone(), outcome.ratio(who, |sample| figure.of(sample)));
    figures.map(over).filter(|(_, ratio)| ratio.median.is_finite()).collect()
}

/// A figure that is lost or gained beside: "time 0.98 (0.95 .. 1.02)".
#[must_use]
pub fn cost_said((figure, ratio): &(Figure, Ratio)) -> String {
    format!("{} {}", figure.name(), between(ratio))
}

/// The answer where no gain is shown.
fn without(
    outcome: &Outcome<Sample>,
    terms: &Terms<'_>,
    decided: &Decided,
    best: Option<usize>,
) -> Answer {
    let all = outcome.fates.len();
    let mut parts = Vec::new();
    let does = format!("{} of {}", percent(SETTING), terms.cost.name());
    if decided.no > 0 {
        parts.push(match (decided.no, all) {
            (1, 1) => format!("the one setting does not gain {does}"),
            (no, all) if no == all => format!("none of {all} settings gains {does}"),
            (no, all) => format!("{no} of {all} settings do not gain {does}"),
        });
    }
    if let (Some((figure, allowed)), 1..) = (&terms.loss, decided.dear) {
        let (dear, lose) = (decided.dear, if decided.dear == 1 { "loses" } else { "lose" });
        parts.push(format!("{dear} {lose} more than {} of {}", percent(*allowed), figure.name()));
    }
    let open = best.filter(|best| decided.open.contains(&(best - 1)));
    if let Some(best) = open {
        let ratio = outcome.ratio(best, |sample| terms.cost.of(sample));
        parts.push(format!("{}: {}", terms.settings[best - 1].name, said(&terms.cost, &ratio)));
    }
    if let Some((at, why)) = decided.disqualified.first() {
        let more = match decided.disqualified.len() {
            1 => String::new(),
            all => format!(", and {} more", all - 1),
        };
        parts.push(format!("{} disqualified{more}: {why}", terms.settings[*at].name));
    }
    if open.is_none() && !decided.open.is_empty() {
        let undecided = counted(decided.open.len(), "setting");
        parts.push(format!("{undecided} ran too few times to be compared"));
    }
    if !decided.waiting.is_empty() {
        parts.push(format!("{} had no turn", counted(decided.waiting.len(), "setting")));
    }
    let why = parts.join("; ");
    if decided.is_no() {
        let next = dearer(outcome, terms)
            .unwrap_or_else(|| "nothing: leave the program as it is".to_owned());
        return Answer { ratio: None, ..Answer::of(Verdict::Same, why, next) };
    }
    let next = match open {
        _ if decided.no == 0 && decided.open.is_empty() && decided.waiting.is_empty() => {
            "a setting that reaches the program and keeps its output (--also, --compare)".to_owned()
        }
        Some(best) => would_tell(outcome, terms, best, decided),
        None => with_all(outcome, terms, decided),
    };
    Answer {
        setting: open.map(|best| best - 1),
        ratio: open.map(|best| outcome.ratio(best, |sample| terms.cost.of(sample))),
        ..Answer::unknown(why, next)
    }
}

/// The next step where settings had no turn, or too few: the budget in which all have their rounds.
fn with_all(outcome: &Outcome<Sample>, terms: &Terms<'_>, decided: &Decided) -> String {
    let waiting = (decided.waiting.len() + decided.open.len()) as f64;
    let seconds = terms.budget + terms.one * waiting * (5.0 + 5.0 / 3.0);
    match outcome.fates.len() {
        0 => "nothing: there is no setting".to_owned(),
        _ => format!("the same again with {}: time for all settings", budget(seconds)),
    }
}

/// The next step where an interval is too wide: it narrows with the root of the rounds.
fn would_tell(
    outcome: &Outcome<Sample>,
    terms: &Terms<'_>,
    best: usize,
    decided: &Decided,
) -> String {
    let ratio = outcome.ratio(best, |sample| terms.cost.of(sample));
    let distance = (ratio.median * (1.0 + SETTING)).ln().abs().max(0.01);
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let rounds =
        if half.is_finite() { ratio.rounds as f64 * (1.3 * half / distance).powi(2) } else { 8.0 };
    let more = (rounds - ratio.rounds as f64).max(2.0);
    let beside = decided.open.len().min(cachewise_judge::race::KEEP) as f64 + 1.0;
    let seconds = terms.budget + more * beside * terms.one;
    match terms.rounds {
        _ if seconds > LONGEST.max(2.0 * terms.budget) => "a quieter machine would tell".to_owned(),
        Some(_) => {
            format!("the same again with --rounds {:.0}", (rounds / 10.0).ceil() * 10.0)
        }
        None => format!("the same again with {}", budget(seconds)),
    }
}

/// The next step of those who would give more of what may be lost: the setting that saves most for the least.
fn dearer(outcome: &Outcome<Sample>, terms: &Terms<'_>) -> Option<String> {
    let (figure, _) = terms.loss.as_ref()?;
    let of = |who: usize, figure: &Figure| outcome.ratio(who, |sample| figure.of(sample));
    let dear = (1..=outcome.fates.len()).filter(|who| outcome.fates[who - 1] == Fate::TooDear);
    let saving = dear.filter(|who| of(*who, &terms.cost).high < 1.0 / (1.0 + SETTING));
    // What saves half as much for less is the better offer.
    let saving: Vec<usize> = saving.collect();
    let saved = |who: &usize| 1.0 - of(*who, &terms.cost).median;
    let most = saving.iter().map(saved).fold(0.0, f64::max);
    let enough = saving.into_iter().filter(|who| saved(who) >= most / 2.0);
    let best = enough.min_by(|a, b| of(*a, figure).median.total_cmp(&of(*b, figure).median))?;
    let (cost, lost) = (of(best, &terms.cost), of(best, figure));
    Some(format!(
        "nothing, or the same again with --at-most {:.0}%: {}: {}, {}",
        (100.0 * (lost.high - 1.0)).ceil(),
        terms.settings[best - 1].name,
        said(&terms.cost, &cost),
        cost_said(&(figure.clone(), lost))
    ))
}

/// The reason why a setting is not the answer, for a table.
#[must_use]
pub fn fate(fate: &Fate) -> &'static str {
    match fate {
        Fate::Live => "",
        Fate::Slower => "slower than another",
        Fate::Simpler => "a simpler one does as much",
        Fate::NoGain => "no gain",
        Fate::Small => "at most 5 %",
        Fate::NoPromise => "moves no counter",
        Fate::TooDear => "loses too much",
        Fate::Waiting => "others promise more",
        Fate::NotReached => "no time",
        Fate::Disqualified(_) => "disqualified",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Acts, Kind};
    use cachewise_judge::race::Runs;

    /// A race whose runs scatter by some per cent: of each its part of memory, of time, and its fate.
    fn outcome(parts: &[(f64, f64, Fate)], scatter: f64) -> Outcome<Sample> {
        let runs = |memory: f64, time: f64, shift: usize| -> Runs<Sample> {
            let run = |at: usize| {
                let noisy = 1.0 + scatter * (((at * 7 + shift * 3) % 5) as f64 - 2.0);
                Some(Sample {
                    level: memory * 1e6 * noisy,
                    wall: time * noisy,
                    ..Sample::default()
                })
            };
            (0..12).map(run).collect()
        };
        let own =
            parts.iter().enumerate().map(|(at, (memory, time, _))| runs(*memory, *time, at + 1));
        Outcome {
            runs: std::iter::once(runs(1.0, 1.0, 0)).chain(own).collect(),
            fates: parts.iter().map(|(.., fate)| fate.clone()).collect(),
            best: parts.iter().position(|(.., fate)| *fate == Fate::Live).map(|at| at + 1),
            ended: Ended::Time,
        }
    }

    fn found(parts: &[(f64, f64, Fate)], scatter: f64, allowed: Option<f64>) -> Answer {
        of(&outcome(parts, scatter), allowed)
    }

    fn of(outcome: &Outcome<Sample>, allowed: Option<f64>) -> Answer {
        let one = Candidate::new("x", Kind::Variables, Acts::Anything, &[("A", "1")]);
        let settings = vec![one; outcome.fates.len()];
        let terms = Terms {
            settings: &settings,
            cost: if allowed.is_some() { Figure::Level } else { Figure::Wall },
            loss: allowed.map(|allowed| (Figure::Wall, allowed)),
            beside: Vec::new(),
            one: 1.0,
            budget: 60.0,
            rounds: None,
            words: &["p".to_owned()],
            waits: None,
        };
        answer(outcome, &terms)
    }

    #[test]
    fn no_is_said_over_what_was_decided_alone() {
        let out = || Fate::Disqualified("another output".to_owned());
        use Fate::{Live, NoGain, NoPromise, NotReached, Waiting};
        for (fates, verdict) in [
            (vec![NoGain, NoPromise], Verdict::Same),
            (vec![NoGain, out()], Verdict::Same),
            // Nothing was decided.
            (vec![out(), out()], Verdict::Unknown),
            (vec![out()], Verdict::Unknown),
            // Something had no turn.
            (vec![NoGain, NotReached], Verdict::Unknown),
            (vec![NoPromise, Waiting], Verdict::Unknown),
            // Undecided, but a gain of 5.5 % is excluded.
            (vec![Live], Verdict::Same),
        ] {
            let parts: Vec<_> = fates.iter().map(|fate| (1.0, 1.0, fate.clone())).collect();
            assert_eq!(found(&parts, 0.001, None).verdict, verdict, "{fates:?}");
        }
        let wide = found(&[(1.0, 1.0, Live)], 0.05, None);
        assert_eq!((wide.verdict, wide.setting), (Verdict::Unknown, Some(0)));
        // Nothing promises most, or nothing was raced: there is a reason, too.
        let none = Outcome { best: None, ..outcome(&[(1.0, 1.0, Live)], 0.05) };
        assert!(!of(&none, None).why.is_empty());
        // All that are open seem to lose too much.
        let dear = Outcome { best: None, ..outcome(&[(0.4, 1.1, Live)], 0.05) };
        let dear = of(&dear, Some(0.02));
        assert_eq!((dear.verdict, dear.setting), (Verdict::Unknown, Some(0)));
        assert!(dear.next.contains("--at-most "), "{}", dear.next);
    }

    #[test]
    fn an_answer_has_its_ratio_its_costs_and_keeps_to_what_may_be_lost() {
        use Fate::{Live, TooDear};
        for (memory, time, allowed, verdict) in [
            (0.4, 1.0, 0.02, Verdict::Faster),
            (0.4, 1.1, 0.15, Verdict::Faster),
            (0.4, 1.02, 0.02, Verdict::Unknown),
            (1.0, 0.9, 0.02, Verdict::Same),
        ] {
            let found = found(&[(memory, time, Live)], 0.001, Some(allowed));
            assert_eq!(found.verdict, verdict, "{memory} {time}: {}", found.why);
            if verdict == Verdict::Faster {
                let ratio = found.ratio.expect("a ratio");
                assert!((ratio.median / memory - 1.0).abs() < 0.01 && found.next == "A=1 p");
                assert!((found.costs[0].1.median / time - 1.0).abs() < 0.01, "{:?}", found.costs);
            }
        }
        // What saves half as much for less time is offered; what saves nothing is not.
        let dear =
            [(0.3, 1.4, TooDear), (0.4, 1.3, TooDear), (0.9, 1.1, TooDear), (1.2, 1.2, TooDear)];
        let found = found(&dear, 0.001, Some(0.02));
        assert!(
            found.verdict == Verdict::Same && found.next.contains("--at-most 3"),
            "{}",
            found.next
        );
    }

    #[test]
    fn the_next_step_fits_the_reason() {
        use Fate::{Live, NoGain, Waiting};
        let next = |outcome: &Outcome<Sample>| {
            let one = Candidate::new("x", Kind::Variables, Acts::Anything, &[("A", "1")]);
            let settings = vec![one; outcome.fates.len()];
            let terms = Terms {
                settings: &settings,
                cost: Figure::Wall,
                loss: None,
                beside: Vec::new(),
                one: 10.0,
                budget: 60.0,
                rounds: None,
                words: &[],
                waits: None,
            };
            answer(outcome, &terms).next
        };
        let open = outcome(&[(1.0, 0.93, Live)], 0.03);
        assert!(next(&open).contains("--budget"), "{}", next(&open));
        let far = outcome(&[(1.0, 0.98, Live)], 0.3);
        assert!(next(&far).contains("quieter"), "{}", next(&far));
        let short = outcome(&[(1.0, 1.0, NoGain), (1.0, 1.0, Waiting)], 0.01);
        let few = Outcome { best: None, ..outcome(&[(1.0, 1.0, NoGain), (1.0, 0.5, Live)], 0.01) };
        for short in [short, few] {
            assert!(next(&short).contains("--budget 3min"), "{}", next(&short));
        }
        let ended = |ended| Outcome { ended, ..open.clone() };
        let limit = "killed at the memory limit of its control group, 80 MiB".to_owned();
        assert!(next(&ended(Ended::Unrepeatable(limit))).contains("larger limit"));
        assert!(
            next(&ended(Ended::Unrepeatable("exit status: 9".to_owned()))).contains("--prepare")
        );
        assert!(next(&ended(Ended::Stopped)).contains("to its end"));
        assert_eq!(
            (budget(61.2), budget(200.0)),
            ("--budget 62s".to_owned(), "--budget 4min".to_owned())
        );
    }
}
