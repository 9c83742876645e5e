//! Visits to the machine: what they are expected to take before they are bought, and rounds made of
//! them. The clock is looked at before every visit.

use super::rounds::{Evidence, Purpose};
use super::seam::{After, Arm, Ask, Destination, Machine, Sample, TuningCell};
use cachewise_kernels::Operation;
use cachewise_measure::LabError;
use cachewise_measure::stats::median;
use fastrand::Rng;
use std::collections::BTreeMap;

/// One who takes part in a round.
pub(super) type Candidate = (TuningCell, Arm);

/// One round: the reference before and after, the others in between.
pub(super) struct Round {
    pub reference: Sample,
    /// In the order given; `None` for those that were disturbed or came too late.
    pub others: Vec<Option<Sample>>,
}

/// Visits, what they cost, and what was seen.
pub(super) struct Visits<'m> {
    pub machine: &'m mut dyn Machine,
    pub evidence: &'m mut Evidence,
    pub random: Rng,
    /// Seconds per sample by kind of cell and size.
    prices: BTreeMap<(Kind, usize), f64>,
    /// The dearest byte seen, in seconds, restoring included.
    per_byte: f64,
}

/// Kind of visit with a cost of its own.
type Kind = (Operation, Destination, bool, bool);

fn kind(cell: &TuningCell) -> Kind {
    let beside = matches!(cell.after, After::Bystander(_));
    (cell.operation, cell.destination, beside, cell.script.is_some())
}

/// Assumed cost of a sample beyond its bytes until one was seen, in seconds.
const SAMPLE: f64 = 50e-6;

/// The time that has to be left for a round, over what it is expected to take.
const LEFT: f64 = 1.2;

impl<'m> Visits<'m> {
    pub(super) fn new(
        machine: &'m mut dyn Machine,
        evidence: &'m mut Evidence,
        seed: u64,
    ) -> Visits<'m> {
        // Until something was seen: half a GB/s, which no machine that is sold falls short of.
        let (random, prices, per_byte) = (Rng::with_seed(seed), BTreeMap::new(), 2e-9);
        Visits { machine, evidence, random, prices, per_byte }
    }

    /// Seconds that a sample is expected to take, and whether that was seen.
    pub(super) fn expected(&self, cell: &TuningCell) -> (f64, bool) {
        let kind = kind(cell);
        if let Some(price) = self.prices.get(&(kind, cell.size)) {
            return (*price, true);
        }
        let bystander = match cell.after {
            After::Bystander(bytes) => 2 * bytes,
            _ => 0,
        };
        let below = self.prices.range((kind, 0)..(kind, cell.size)).next_back();
        let price = match below {
            // A script takes as long wherever its calls go.
            Some((_, price)) if cell.script.is_some() => *price,
            Some((&(_, size), price)) => price * cell.size as f64 / size.max(1) as f64,
            None => SAMPLE + self.per_byte * (2 * cell.size + bystander) as f64,
        };
        (price, false)
    }

    /// One visit, if it can be over by `stop` even should it take twice what is expected. The
    /// first of its kind and size is a single sample.
    fn visit(
        &mut self,
        (cell, arm): Candidate,
        samples: usize,
        draw: u64,
        stop: f64,
    ) -> Result<Option<Sample>, LabError> {
        let (price, known) = self.expected(&cell);
        let samples = if known || price < SAMPLE { samples } else { 1 };
        let before = self.machine.now();
        if before + 2.0 * price * samples as f64 > stop {
            return Ok(None);
        }
        let visit = self.machine.visit(&Ask { cell, arm, samples, draw })?;
        let seconds = (self.machine.now() - before) / samples as f64;
        let price = self.prices.entry((kind(&cell), cell.size)).or_insert(seconds);
        // Rises at once, falls slowly: arms differ.
        *price = if seconds > *price { seconds } else { 0.9 * *price + 0.1 * seconds };
        if cell.size >= 1 << 18 {
            self.per_byte = self.per_byte.max(seconds / (2 * cell.size) as f64);
        }
        Ok(middle(&visit.samples))
    }

    /// A round that is kept as it is, each candidate under its name.
    pub(super) fn keep(
        &mut self,
        purpose: Purpose,
        reference: Candidate,
        others: &[(String, Candidate)],
        samples: usize,
        stop: f64,
    ) -> Result<Option<Round>, LabError> {
        let candidates: Vec<Candidate> = others.iter().map(|(_, other)| *other).collect();
        let found = self.round(reference, &candidates, samples, stop)?;
        if let Some(round) = &found {
            let seen = others.iter().zip(&round.others);
            let seen = seen.filter_map(|((name, _), sample)| Some((&**name, (*sample)?)));
            self.evidence.push(purpose, reference.0, round.reference, seen);
        }
        Ok(found)
    }

    /// One round: `None` where there was no time or no undisturbed reference.
    pub(super) fn round(
        &mut self,
        reference: Candidate,
        others: &[Candidate],
        samples: usize,
        stop: f64,
    ) -> Result<Option<Round>, LabError> {
        let draw = self.random.u64(..);
        let (price, _) = self.expected(&reference.0);
        let all = (others.len() + 2) as f64 * price;
        let left = stop - self.machine.now();
        if LEFT * all > left {
            return Ok(None);
        }
        let samples = samples.min((left / (LEFT * all)) as usize).max(1);
        let before = self.visit(reference, samples, draw, stop)?;
        let mut order: Vec<usize> = (0..others.len()).collect();
        self.random.shuffle(&mut order);
        let mut seen = vec![None; others.len()];
        for other in order {
            seen[other] = self.visit(others[other], samples, draw, stop)?;
        }
        // A branch predictor remembers the calls of a script: played a second time they took libc 0.4
        // to 0.6 of the first time (Zen 5), and every candidate looked that much slower.
        let again = if reference.0.script.is_some() { !draw } else { draw };
        let after = self.visit(reference, samples, again, stop)?;
        let reference = match (before, after) {
            (Some(before), Some(after)) => between(before, after),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Ok(None),
        };
        Ok(Some(Round { reference, others: seen }))
    }
}

/// The middle of a visit's samples, part by part; `None` when all were disturbed.
fn middle(samples: &[Sample]) -> Option<Sample> {
    let part = |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<_>>());
    (!samples.is_empty()).then(|| Sample {
        operation: part(|sample| sample.operation),
        reader: part(|sample| sample.reader),
        bystander: part(|sample| sample.bystander),
    })
}

/// Two visits of a round as one, the geometric mean of its parts.
pub(super) fn between(before: Sample, after: Sample) -> Sample {
    Sample {
        operation: (before.operation * after.operation).sqrt(),
        reader: (before.reader * after.reader).sqrt(),
        bystander: (before.bystander + after.bystander) / 2.0,
    }
}
