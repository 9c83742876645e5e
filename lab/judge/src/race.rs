//! Search for the best of several contestants: one look at all, then rounds of the best beside the reference.
//!
//! Contestants are numbered from 1: the user's own first, then in the order of their simplicity; 0 is the reference.
//!
//! 1. **Look.** Whom to run again needs no proof. Each has a run; [`Question::promise`] says what it makes of the cost, by
//!    what scatters least. At most [`KEEP`] stay, the simplest of those that promise the same.
//! 2. **Show.** The answer needs one. Rounds of the reference and these, in random order. Intervals hold at every look and
//!    for all contestants at once ([`Pooled`]), and no run is thrown away: those of the look count. A contestant leaves as
//!    soon as it is settled, and the next best takes its place.
//! 3. **A contestant replaces a simpler one that gains only where it is shown to be better by [`SIMPLER`].**

use crate::interval::Pooled;
use crate::margin::{LEAST_LOOKED, NOT_WORTH, SIMPLER};
use crate::order::median;
use crate::ratio::{Ratio, of_rounds};
use crate::turns;

/// Contestants that run beside the reference at a time.
pub const KEEP: usize = 3;
/// Rounds after which a race has shown what it can.
const MOST_ROUNDS: usize = 60;
/// Rounds after which it is not worth more of them that a small gain is still possible.
const ENOUGH_ROUNDS: usize = 20;
/// Two single runs of which the one takes so many times as long may differ by chance.
const NEAR: f64 = 1.2;
/// The part of the time that looks may take beyond the first, and the most of them.
const LOOKS: f64 = 0.1;
const MOST_LOOKS: usize = 3;

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran<S> {
    /// Success: what it showed.
    Well(S),
    /// Otherwise, and why. A contestant is disqualified; with the reference everything ends.
    Wrong(String),
    /// The user wants to stop.
    Stopped,
}

/// The stage of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Each once.
    Look,
    /// The best, against the reference.
    Show,
}

/// Runs the reference and the contestants; real, or simulated.
pub trait Runner {
    /// The figures of one run.
    type Sample: Clone;
    /// The reason why a run could not be made at all.
    type Error;
    /// Runs a contestant once; 0 is the reference.
    ///
    /// # Errors
    /// The failure that ends everything.
    fn run(&mut self, who: usize) -> Result<Ran<Self::Sample>, Self::Error>;
    /// Seconds since the beginning.
    fn now(&self) -> f64;
    /// Shows the stage and how many seconds the rest takes.
    fn progress(&mut self, stage: Stage, left: f64);
}

/// The runs of one contestant, by round; `None` where it had no turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs<S>(Vec<Option<S>>);

impl<S> Default for Runs<S> {
    fn default() -> Runs<S> {
        Runs(Vec::new())
    }
}

impl<S> FromIterator<Option<S>> for Runs<S> {
    fn from_iter<I: IntoIterator<Item = Option<S>>>(rounds: I) -> Runs<S> {
        Runs(rounds.into_iter().collect())
    }
}

impl<S> Runs<S> {
    /// One figure of all rounds; NaN where it had no turn.
    pub fn of(&self, figure: impl Fn(&S) -> f64) -> Vec<f64> {
        self.0.iter().map(|sample| sample.as_ref().map_or(f64::NAN, &figure)).collect()
    }

    /// The rounds with a turn.
    pub fn samples(&self) -> impl Iterator<Item = &S> {
        self.0.iter().flatten()
    }

    /// The median of a figure over the rounds with a turn.
    pub fn median(&self, figure: impl Fn(&S) -> f64) -> f64 {
        let values = self.samples().map(figure).filter(|value| value.is_finite());
        median(&values.collect::<Vec<f64>>())
    }

    /// The number of rounds with a turn.
    pub fn rounds(&self) -> usize {
        self.samples().count()
    }
}

/// Expectation from one run of a contestant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// Its cost over another's.
    pub ratio: f64,
    /// True if counters that hardly scatter say so: then no gain is promised where there is none.
    pub is_counted: bool,
}

/// A figure of a run, and the part of it that may be lost.
pub type Bounded<'q, S> = (&'q dyn Fn(&S) -> f64, f64);

/// Returns whether an outcome answers what was asked.
pub type IsKnown<'q, S> = &'q dyn Fn(&Outcome<S>) -> bool;

/// The question that a race is asked.
#[derive(Clone, Copy)]
pub struct Question<'q, S> {
    /// The number of contestants, without the reference.
    pub contestants: usize,
    /// The first so many are the user's own: they race, whatever they promise.
    pub own: usize,
    /// Seconds that a run is expected to take.
    pub expected: f64,
    /// The moment ([`Runner::now`]) after which no run is begun.
    pub end: f64,
    /// Rounds that each has, if that is settled: then nobody leaves early.
    pub rounds: Option<usize>,
    /// A gain of less is none (of [`crate::margin`]).
    pub margin: f64,
    /// The figure that is to be small.
    pub cost: &'q dyn Fn(&S) -> f64,
    /// A figure of which only this part may be lost; none where nothing is bounded.
    pub loss: Option<Bounded<'q, S>>,
    /// Expectation from the second run, over the first.
    pub promise: &'q dyn Fn(&S, &S) -> Promise,
    /// Two versions of a program are compared, of which a loss is an answer, too: whether that is known.
    pub is_known: Option<IsKnown<'q, S>>,
    /// The origin of all random orders.
    pub seed: u64,
}

/// The reason why a contestant left, or that it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In the race to its end.
    Live,
    /// Shown to be worse than another by more than simplicity is worth.
    Slower,
    /// A simpler one does as much.
    Simpler,
    /// Shown to gain less than the margin.
    NoGain,
    /// Shown to gain less than [`NOT_WORTH`], and many rounds have shown no gain.
    Small,
    /// Counters of its run say that it changes nothing of what is judged.
    NoPromise,
    /// Shown to lose more than is allowed.
    TooDear,
    /// Looked at, but others promise more, and the time was theirs.
    Waiting,
    /// Never run: the time was over.
    NotReached,
    /// Other output, another status, too long.
    Disqualified(String),
}

/// The fate of a contestant by its cost and its loss, both over the reference's at any moment of a race: it costs more
/// than is `worth` racing on, or loses more than is `allowed`. `None` while neither is shown.
#[must_use]
pub fn leaves(
    cost: Option<&Ratio>,
    worth: f64,
    loss: Option<&Ratio>,
    allowed: f64,
) -> Option<Fate> {
    if loss.is_some_and(|loss| loss.low > allowed) {
        return Some(Fate::TooDear);
    }
    cost.filter(|cost| cost.low > worth).map(|_| Fate::NoGain)
}

/// The way in which a race ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// Its question was settled.
    Settled,
    /// The time was over.
    #[default]
    Time,
    /// The user stopped it.
    Stopped,
    /// The reference failed when it was run again: how.
    Unrepeatable(String),
}

/// The outcome of a race.
#[derive(Clone, Debug)]
pub struct Outcome<S> {
    /// Runs by number: the reference first.
    pub runs: Vec<Runs<S>>,
    /// Fates of the contestants; the first is number 1's.
    pub fates: Vec<Fate>,
    /// The contestant that the answer is about: the simplest of those that are not shown to be worse than the best.
    pub best: Option<usize>,
    /// The way in which it ended.
    pub ended: Ended,
}

impl<S> Outcome<S> {
    /// A race that has not begun.
    #[must_use]
    pub fn new(contestants: usize) -> Outcome<S> {
        Outcome {
            runs: (0..=contestants).map(|_| Runs::default()).collect(),
            fates: vec![Fate::Live; contestants],
            best: None,
            ended: Ended::default(),
        }
    }

    /// A contestant's figure over another's, of the rounds that both had a turn in. The interval holds at every look, for
    /// all contestants at once; it has no ends below [`LEAST_LOOKED`] rounds.
    pub fn over(&self, who: usize, other: usize, figure: impl Fn(&S) -> f64) -> Ratio {
        let figures: Vec<Vec<f64>> = self.runs.iter().map(|runs| runs.of(&figure)).collect();
        let ratios: Vec<Vec<f64>> =
            figures[1..].iter().map(|own| of_rounds(own, &figures[0])).collect();
        let all: Vec<&[f64]> = ratios.iter().map(Vec::as_slice).collect();
        let of_these = of_rounds(&figures[who], &figures[other]);
        Pooled::of(&all).ratio(&of_these, self.fates.len())
    }

    /// A contestant's figure over the reference's: see [`Outcome::over`].
    pub fn ratio(&self, who: usize, figure: impl Fn(&S) -> f64) -> Ratio {
        self.over(who, 0, figure)
    }

    /// Rounds in which both the reference and the first contestant had a turn, where it is the only one.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.runs.iter().map(Runs::rounds).min().unwrap_or(0)
    }

    /// The contestants in the race.
    fn live(&self) -> Vec<usize> {
        (1..=self.fates.len()).filter(|who| self.fates[who - 1] == Fate::Live).collect()
    }
}

/// The least part that is gained where so many rounds show a gain beyond `margin` as often as not; `scatter` is the standard
/// deviation of the logarithm of one run.
#[must_use]
pub fn visible(contestants: usize, rounds: usize, scatter: f64, margin: f64) -> f64 {
    let beside = contestants.clamp(1, KEEP);
    let half =
        Pooled::known(scatter * std::f64::consts::SQRT_2, rounds, beside).half(rounds, contestants);
    1.0 - (-half).exp() / (1.0 + margin)
}

/// A race that is going on.
struct Racing<'r, 'q, R: Runner> {
    runner: &'r mut R,
    question: &'r Question<'q, R::Sample>,
    outcome: Outcome<R::Sample>,
    /// Contestants that wait, the largest promise first.
    waiting: Vec<usize>,
    /// Orders of places that are drawn and not used.
    orders: Vec<Vec<usize>>,
    random: fastrand::Rng,
    begun: f64,
    ran: usize,
}

/// Looks at all contestants, then shows what the best of them gain.
///
/// # Errors
/// Returns the first error of [`Runner::run`].
pub fn race<R: Runner>(
    runner: &mut R,
    question: &Question<'_, R::Sample>,
) -> Result<Outcome<R::Sample>, R::Error> {
    let begun = runner.now();
    let mut racing = Racing {
        question,
        outcome: Outcome::new(question.contestants),
        waiting: Vec::new(),
        orders: Vec::new(),
        random: fastrand::Rng::with_seed(question.seed),
        begun,
        ran: 0,
        runner,
    };
    if question.contestants > 0 {
        racing.all()?;
    }
    Ok(racing.outcome)
}

impl<R: Runner> Racing<'_, '_, R> {
    fn all(&mut self) -> Result<(), R::Error> {
        let all: Vec<usize> = (1..=self.question.contestants).collect();
        if let Some(rounds) = self.question.rounds {
            while self.outcome.runs[0].rounds() < rounds && self.round(&all, Stage::Show, rounds)? {
            }
            self.eliminate();
            self.outcome.best = self.pick();
            return Ok(());
        }
        if all.len() > 1 && !self.look(&all)? {
            return Ok(());
        }
        self.show()
    }

    /// Runs each once, some times where they are short; then the best stay. False where the race is over.
    fn look(&mut self, all: &[usize]) -> Result<bool, R::Error> {
        let time = LOOKS * (self.question.end - self.begun);
        for look in 1.. {
            if !self.round(all, Stage::Look, 1)? {
                break;
            }
            let one = (self.runner.now() - self.begun) / f64::from(look);
            if look as usize >= MOST_LOOKS || one * f64::from(look + 1) > time {
                break;
            }
        }
        if matches!(self.outcome.ended, Ended::Stopped | Ended::Unrepeatable(_)) {
            return Ok(false);
        }
        self.rank();
        Ok(true)
    }

    /// Promise of a contestant over another, by the middle of its looks.
    fn promise(&self, who: usize, other: usize) -> Option<Promise> {
        let both = self.outcome.runs[other].0.iter().zip(&self.outcome.runs[who].0);
        let all: Vec<Promise> = both
            .filter_map(|(other, own)| {
                Some((self.question.promise)(other.as_ref()?, own.as_ref()?))
            })
            .collect();
        let ratios: Vec<f64> = all.iter().map(|one| one.ratio).collect();
        let is_counted = all.iter().all(|one| one.is_counted);
        (!all.is_empty()).then(|| Promise { ratio: median(&ratios), is_counted })
    }

    /// Apparent loss of a contestant, over the reference's; 1 where nothing is bounded.
    fn seems_to_lose(&self, who: usize) -> f64 {
        let Some((figure, _)) = self.question.loss else { return 1.0 };
        let of = |who: usize| self.outcome.runs[who].median(figure);
        let lost = of(who) / of(0);
        if lost.is_finite() { lost } else { 1.0 }
    }

    /// Puts the contestants in the order of what they promise; what promises nothing, or the same as a simpler one, leaves.
    fn rank(&mut self) {
        let worth = 1.0 / (1.0 + self.question.margin);
        let own = |who: usize| who <= self.question.own;
        let mut ranked: Vec<(usize, Promise)> = Vec::new();
        for who in self.outcome.live() {
            match self.promise(who, 0) {
                None => self.outcome.fates[who - 1] = Fate::NotReached,
                Some(promise) if promise.is_counted && promise.ratio > worth && !own(who) => {
                    self.outcome.fates[who - 1] = Fate::NoPromise;
                }
                Some(promise) => ranked.push((who, promise)),
            }
        }
        // Simplest first, so that of equal ones the later is no better.
        for at in (0..ranked.len()).rev() {
            let who = ranked[at].0;
            let is_as_simple = |&(simple, _): &(usize, Promise)| {
                self.promise(who, simple)
                    .is_some_and(|over| over.is_counted && over.ratio.ln().abs() < SIMPLER.ln_1p())
                    && self.seems_to_lose(simple) < NEAR * self.seems_to_lose(who)
            };
            if !own(who) && ranked[..at].iter().any(is_as_simple) {
                self.outcome.fates[who - 1] = Fate::Simpler;
                ranked.remove(at);
            }
        }
        // What loses far more than is allowed has its turn last.
        let most = self.question.loss.map_or(f64::INFINITY, |(_, allowed)| NEAR * (1.0 + allowed));
        let is_dear = |who: usize| self.seems_to_lose(who) > most;
        ranked.sort_by(|(a, one), (b, other)| {
            let first = own(*b).cmp(&own(*a)).then(is_dear(*a).cmp(&is_dear(*b)));
            first.then(one.ratio.total_cmp(&other.ratio))
        });
        for (who, _) in &ranked {
            self.outcome.fates[who - 1] = Fate::Waiting;
        }
        self.waiting = ranked.into_iter().map(|(who, _)| who).collect();
    }

    /// Rounds of the best, until the question is settled or the time is over.
    fn show(&mut self) -> Result<(), R::Error> {
        loop {
            self.eliminate();
            self.outcome.best = self.pick();
            while self.outcome.live().len() < KEEP && !self.waiting.is_empty() && !self.is_shown() {
                let next = self.waiting.remove(0);
                self.outcome.fates[next - 1] = Fate::Live;
            }
            if self.is_settled() {
                self.outcome.ended = Ended::Settled;
                return Ok(());
            }
            let live = self.outcome.live();
            if !self.round(&live, Stage::Show, 0)? {
                self.eliminate();
                self.outcome.best = self.pick();
                return Ok(());
            }
        }
    }

    /// Seconds that a run takes, as far as is known.
    fn one(&self) -> f64 {
        match self.ran {
            0 => self.question.expected.max(1e-4),
            runs => (self.runner.now() - self.begun) / runs as f64,
        }
    }

    /// One run of the reference and of each of these. False where the race is over: nothing is begun that would not end in
    /// time, and of a round that takes longer than expected the rest is not begun.
    fn round(&mut self, who: &[usize], stage: Stage, of: usize) -> Result<bool, R::Error> {
        let runs = (who.len() + 1) as f64;
        let (now, end) = (self.runner.now(), self.question.end);
        let is_timed = self.question.rounds.is_none();
        // A look has those that there is time for.
        let least = if stage == Stage::Look { 2.0 } else { runs };
        if is_timed && now + least * self.one() > end {
            return Ok(false);
        }
        let left = match is_timed {
            true => end - now,
            false => self.one() * runs * (of - self.outcome.runs[0].rounds()) as f64,
        };
        self.runner.progress(stage, left.max(0.0));
        let order = self.order(who, stage);
        let mut samples: Vec<Option<R::Sample>> = vec![None; self.outcome.runs.len()];
        let mut is_whole = true;
        for who in order {
            if is_timed
                && self.runner.now() + if self.ran > 0 { 0.5 * self.one() } else { 0.0 } > end
            {
                is_whole = false;
                break;
            }
            self.ran += 1;
            match self.runner.run(who)? {
                Ran::Well(sample) => samples[who] = Some(sample),
                Ran::Stopped => self.outcome.ended = Ended::Stopped,
                Ran::Wrong(why) if who == 0 => self.outcome.ended = Ended::Unrepeatable(why),
                Ran::Wrong(why) => self.disqualify(who, why),
            }
            if self.outcome.ended != Ended::Time {
                is_whole = false;
                break;
            }
        }
        for (runs, sample) in self.outcome.runs.iter_mut().zip(samples) {
            runs.0.push(sample);
        }
        Ok(is_whole)
    }

    /// A contestant leaves; others that promised the same as a simpler one wait for a turn again.
    fn disqualify(&mut self, who: usize, why: String) {
        self.outcome.fates[who - 1] = Fate::Disqualified(why);
        for (at, fate) in self.outcome.fates.iter_mut().enumerate() {
            if *fate == Fate::Simpler {
                *fate = Fate::Waiting;
                self.waiting.push(at + 1);
            }
        }
    }

    /// The order of a round: drawn, with places balanced; that of a look and of the first round begins with the reference,
    /// and then the user's own.
    fn order(&mut self, who: &[usize], stage: Stage) -> Vec<usize> {
        let all: Vec<usize> = std::iter::once(0).chain(who.iter().copied()).collect();
        if stage == Stage::Look || self.ran == 0 {
            return all;
        }
        if self.orders.first().is_none_or(|order| order.len() != all.len()) {
            self.orders = turns::orders(all.len(), all.len(), self.random.u64(..));
        }
        self.orders.remove(0).into_iter().map(|place| all[place]).collect()
    }

    /// A contestant's cost over another's, once it has an interval.
    fn over(&self, who: usize, other: usize) -> Option<Ratio> {
        let found = self.outcome.over(who, other, self.question.cost);
        (found.rounds >= LEAST_LOOKED && found.low.is_finite()).then_some(found)
    }

    /// The loss of a contestant, and the most that is allowed; none where nothing is bounded.
    fn lost(&self, who: usize) -> Option<(Ratio, f64)> {
        let (figure, allowed) = self.question.loss?;
        Some((self.outcome.ratio(who, figure), 1.0 + allowed))
    }

    /// Returns true if a contestant seems to lose no more than is allowed.
    fn is_affordable(&self, who: usize) -> bool {
        self.lost(who).is_none_or(|(lost, most)| lost.rounds == 0 || lost.median <= most)
    }

    /// Returns whether a contestant is shown to gain, at a price that is allowed as far as it seems.
    fn gains(&self, who: usize) -> bool {
        self.is_affordable(who)
            && self.over(who, 0).is_some_and(|over| over.high < 1.0 / (1.0 + self.question.margin))
    }

    /// Marks those that are shown to gain nothing, and one of each two that are told apart.
    fn eliminate(&mut self) {
        if self.question.is_known.is_some() {
            return;
        }
        let worth = 1.0 / (1.0 + self.question.margin);
        let better = 1.0 / (1.0 + SIMPLER);
        for who in self.outcome.live() {
            let lost = self.lost(who).filter(|(lost, _)| lost.low.is_finite());
            let most = lost.map_or(f64::INFINITY, |(_, most)| most);
            let cost = self.over(who, 0);
            let left = leaves(cost.as_ref(), worth, lost.as_ref().map(|(lost, _)| lost), most);
            let is_small = |over: &Ratio| {
                over.rounds >= ENOUGH_ROUNDS
                    && over.high >= worth
                    && over.low > 1.0 / (1.0 + NOT_WORTH)
            };
            let small = cost.filter(is_small).map(|_| Fate::Small);
            self.outcome.fates[who - 1] = left.or(small).unwrap_or(Fate::Live);
        }
        let live = self.outcome.live();
        let gaining: Vec<usize> = live.iter().copied().filter(|who| self.gains(*who)).collect();
        for (simple, other) in live.iter().flat_map(|a| live.iter().map(move |b| (*a, *b))) {
            let both = [simple, other].iter().all(|who| self.outcome.fates[who - 1] == Fate::Live);
            let Some(over) = self.over(other, simple).filter(|_| simple < other && both) else {
                continue;
            };
            if over.low > better && gaining.contains(&simple) {
                self.outcome.fates[other - 1] = Fate::Simpler;
            } else if over.high < better && gaining.contains(&other) {
                self.outcome.fates[simple - 1] = Fate::Slower;
            }
        }
    }

    /// The contestant that the answer is about: of those that are shown to gain the simplest that is not shown to be worse
    /// than the best of them by more than simplicity is worth; where none is, the one that seems best.
    fn pick(&self) -> Option<usize> {
        let estimate = |who: usize| {
            let found = self.outcome.ratio(who, self.question.cost).median;
            if found.is_nan() { f64::INFINITY } else { found }
        };
        let least = |all: &[usize]| {
            all.iter().copied().min_by(|a, b| estimate(*a).total_cmp(&estimate(*b)))
        };
        let live = self.outcome.live();
        let shown: Vec<usize> = live.iter().copied().filter(|who| self.gains(*who)).collect();
        if let Some(best) = least(&shown) {
            let as_good = |who: &usize| {
                *who == best || self.over(*who, best).is_none_or(|over| over.low <= 1.0 + SIMPLER)
            };
            return shown.iter().copied().find(as_good);
        }
        let affordable: Vec<usize> =
            live.iter().copied().filter(|who| self.is_affordable(*who)).collect();
        least(&affordable).filter(|who| estimate(*who).is_finite())
    }

    /// Returns whether a gain is shown, at a price that is shown to be allowed.
    fn is_shown(&self) -> bool {
        self.outcome.best.is_some_and(|best| {
            self.gains(best) && self.lost(best).is_none_or(|(lost, most)| lost.high <= most)
        })
    }

    /// Returns whether further rounds would not change the answer.
    fn is_settled(&self) -> bool {
        let live = self.outcome.live();
        let is_long = |who: &usize| self.outcome.runs[*who].rounds() >= MOST_ROUNDS;
        if live.is_empty() {
            return true;
        }
        if let Some(is_known) = self.question.is_known {
            return is_known(&self.outcome);
        }
        if live.iter().all(is_long) {
            return true;
        }
        if self.is_shown() {
            let best = self.outcome.best.unwrap_or(live[0]);
            // Another one may be better, or simpler and as good.
            let is_beaten = |who: &usize| {
                *who == best
                    || self.over(*who, best).is_some_and(|over| over.low >= 1.0 / (1.0 + SIMPLER))
            };
            return live.iter().all(is_beaten);
        }
        false
    }
}
