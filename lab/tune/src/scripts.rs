//! Small calls as programs make them: the cells, and the check of the library in them.

use super::plan;
use super::referee::{Referee, is_enough};
use super::rounds::Purpose;
use super::seam::{Arm, Contents, Destination, Facts, Script, TuningCell};
use super::tuning::{Refereed, Ruling};
use cachewise::profile::OPERATIONS;
use cachewise_judge::estimate::{Estimate, Sure};
use cachewise_judge::margin::GUARD;
use cachewise_kernels::Operation;
use cachewise_measure::LabError;

/// Candidate of a record's rows: the library as programs call it.
pub const LIBRARY: &str = "library";

/// Rounds of a cell.
const ROUNDS: usize = 5;

/// The cells of an operation's scripts: hot and cold, their calls spread over bytes well inside L1 and far
/// beyond L2; of comparisons with operands that are equal, and with such that differ.
fn cells(operation: Operation, facts: &Facts) -> Vec<TuningCell> {
    let contents = [Contents::Equal, Contents::Unequal];
    let contents = if plan::stores(operation) { &contents[..1] } else { &contents };
    let spans = [(true, facts.l1 / 2), (false, plan::TOP.min(facts.largest))];
    let cells = spans.into_iter().flat_map(|(hot, span)| {
        let cell = TuningCell::new(operation, span, Destination::Cached);
        contents.iter().map(move |&contents| TuningCell {
            contents,
            script: Some(Script { hot }),
            ..cell
        })
    });
    cells.collect()
}

impl Referee<'_, '_> {
    /// The library's small calls as programs make them, against libc.
    ///
    /// # Errors
    /// Returns the first error of [`Machine::visit`](super::seam::Machine::visit).
    pub(super) fn scripts(&mut self, stop: f64) -> Result<Vec<Refereed>, LabError> {
        let mut found = Vec::new();
        for cell in OPERATIONS.into_iter().flat_map(|of| cells(of, &self.facts)) {
            let library = [(LIBRARY.to_owned(), (cell, Arm::Library))];
            let mut ratios = Vec::new();
            for _ in 0..ROUNDS {
                let libc = (cell, Arm::LIBC);
                let round = self.visits.keep(Purpose::Referee, libc, &library, 3, stop)?;
                let Some(round) = round else { break };
                let Some(ours) = round.others[0] else { continue };
                ratios.push((ours.total() / round.reference.total()).ln());
            }
            if !is_enough(&ratios) {
                continue;
            }
            let seen = Estimate::of(&ratios, 0.0);
            let kept = seen.keeps(GUARD, Sure::Seems);
            let Estimate { mean, error, rounds } = seen;
            found.push(Refereed {
                cell,
                name: LIBRARY.to_owned(),
                ratio: mean.exp(),
                error,
                rounds,
                verdict: if kept { Ruling::Kept } else { Ruling::Lost },
                in_use: true,
            });
        }
        Ok(found)
    }
}
