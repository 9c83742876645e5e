//! A record decided again by the rules of today.

use super::field::Field;
use super::hints::{self, Never};
use super::never;
use super::plan;
use super::referee::Trial;
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{Competitor, Facts, TuningCell};
use super::tuner::{Decided, decided};
use super::tuning::Tuning;
use cachewise::profile::{Decision, FIRST_SIZE, OPERATIONS};
use cachewise_kernels::{Operation, TABLE};
use cachewise_measure::LabError;
use cachewise_measure::Row;

/// Decides from a record's rows by the rules of today. What its rows do not show is libc; what its referee
/// saw fail is too. Nothing new is looked at, so nothing is refereed beyond that.
///
/// # Errors
/// [`LabError::Nothing`] for a record that no tuning wrote.
pub fn decide_again(rows: &[Row], facts: Facts, previous: &[Decision]) -> Result<Tuning, LabError> {
    let evidence = Evidence::of_rows(rows);
    if evidence.of(Purpose::Race).next().is_none() {
        return Err(LabError::Nothing(
            "the record has no rows of a tuning (experiment `tune`)".to_owned(),
        ));
    }
    let (mut fields, mut repairs, mut refereed) = (Vec::new(), Vec::new(), Vec::new());
    for operation in OPERATIONS {
        let mut field = field(operation, &evidence, &facts, previous);
        field.remember(&evidence);
        // Sizes that nobody looked at need no lot.
        let mut trial = Trial::new(field, &facts, &mut fastrand::Rng::with_seed(0));
        repairs.extend(trial.again(&evidence, &facts));
        refereed.extend(trial.refereed());
        let (unknown, field) = (trial.ranges(), trial.field);
        let shown = hints::never(&field, &evidence);
        let shown = shown.and_then(|from| never::again(&field, &evidence, from));
        let never = Never { default: hints::default(&field, &evidence), shown };
        fields.push(Decided { field, unknown, never });
    }
    Ok(Tuning { refereed, repairs, ..decided(&fields, facts) })
}

/// An operation's race as a record has it; of one that it has none of, libc alone.
fn field(operation: Operation, evidence: &Evidence, facts: &Facts, previous: &[Decision]) -> Field {
    let logs: Vec<(&TuningCell, &Log)> =
        evidence.of(Purpose::Race).filter(|(cell, _)| cell.operation == operation).collect();
    let took_part = |name: &str| logs.iter().any(|(_, log)| log.others.contains_key(name));
    let kernels = TABLE.iter().filter(|kernel| took_part(kernel.name)).map(Competitor::of);
    let arms: Vec<Competitor> = std::iter::once(Competitor::libc()).chain(kernels).collect();
    let top = logs.iter().map(|(cell, _)| cell.size).max().unwrap_or(FIRST_SIZE as usize);
    // States that no round of it is of were not measured then.
    let mut sizes = plan::grid(top);
    let measured = |size: &usize| logs.iter().any(|(cell, _)| cell.size == *size);
    // Half octaves ended at 8 MiB for a while, whatever the largest size.
    sizes.retain(|size| size.is_power_of_two() || measured(size));
    let mut views = plan::views(operation, facts);
    views.retain(|view| logs.iter().any(|(cell, _)| view.holds(cell)));
    Field::new(operation, arms, (sizes, views), facts, previous)
}
