//! Results, round by round: kept from the first visit on, so that a tuning that is stopped keeps
//! what it has, and a tuning that ends can be decided again.

use super::seam::{Sample, TuningCell};
use std::collections::BTreeMap;

/// Purpose of a visit to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Kernels against libc.
    Race,
    /// Non-temporal stores and what a bystander loses.
    Hints,
    /// The library with its decisions against libc.
    Referee,
    /// The library under the hint `never`, beside a bystander.
    Never,
}

impl Purpose {
    /// All of them, in a record's order.
    pub const ALL: [Purpose; 4] = [Purpose::Race, Purpose::Hints, Purpose::Referee, Purpose::Never];

    /// The experiment's name in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Purpose::Race => "tune",
            Purpose::Hints => "tune-hints",
            Purpose::Referee => "tune-referee",
            Purpose::Never => "tune-referee-never",
        }
    }
}

/// Everything seen.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub(super) logs: BTreeMap<Purpose, BTreeMap<TuningCell, Log>>,
}

/// One cell's rounds. In every round the reference was there; others took part in some.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// libc.
    pub reference: Vec<Sample>,
    /// The others by name, one entry per round.
    pub others: BTreeMap<String, Vec<Option<Sample>>>,
}

impl Log {
    /// The rounds of one of the others with the reference's.
    pub fn pairs(&self, name: &str) -> impl Iterator<Item = (Sample, Sample)> {
        let times = self.others.get(name).into_iter().flatten();
        times.zip(&self.reference).filter_map(|(other, reference)| Some(((*other)?, *reference)))
    }
}

impl Evidence {
    /// Adds one round of a cell.
    pub(super) fn push<'n>(
        &mut self,
        purpose: Purpose,
        cell: TuningCell,
        reference: Sample,
        others: impl IntoIterator<Item = (&'n str, Sample)>,
    ) {
        let log = self.logs.entry(purpose).or_default().entry(cell).or_default();
        for (name, sample) in others {
            let times = match log.others.get_mut(name) {
                Some(times) => times,
                None => log.others.entry(name.to_owned()).or_default(),
            };
            times.resize(log.reference.len(), None);
            times.push(Some(sample));
        }
        log.reference.push(reference);
    }

    /// Rounds of all cells.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.logs.values().flat_map(BTreeMap::values).map(|log| log.reference.len()).sum()
    }

    /// The cells that were visited for a purpose.
    pub fn of(&self, purpose: Purpose) -> impl Iterator<Item = (&TuningCell, &Log)> {
        self.logs.get(&purpose).into_iter().flatten()
    }
}
