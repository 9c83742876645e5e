//! A record decided again by the rules of today.

use super::field::Field;
use super::hints::{self, Never};
use super::never;
use super::plan;
use super::ranges::ranges;
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{Competitor, Facts, TuningCell};
use super::tuner::{Decided, decided};
use super::tuning::Tuning;
use cachewise::profile::{Decision, FIRST_SIZE, OPERATIONS};
use cachewise_judge::estimate::{Estimate, Scatter, Sure};
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
    let mut fields = Vec::new();
    for operation in OPERATIONS {
        let mut field = field(operation, &evidence, &facts, previous);
        field.remember(&evidence);
        refuse(&mut field, &evidence);
        let chosen = hints::chosen(&field, &facts);
        let extends = plan::extends(&facts, &field.sizes);
        let shown = hints::never(&field, &evidence);
        let shown = shown.and_then(|from| never::again(&field, &evidence, from));
        let never = Never { default: hints::default(&field, &evidence), shown };
        let unknown = ranges(&field.sizes, &chosen, &[], extends);
        fields.push(Decided { field, unknown, never });
    }
    Ok(decided(&fields, facts))
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

/// Takes out what the record's referee saw fail.
fn refuse(field: &mut Field, evidence: &Evidence) {
    for (cell, log) in evidence.of(Purpose::Referee) {
        if cell.operation != field.operation || cell.script.is_some() {
            continue;
        }
        for name in log.others.keys() {
            let Some(arm) = field.arms.iter().position(|arm| arm.name == *name) else { continue };
            let seen = Estimate::of(&log.log_ratios(name), 0.0);
            let near = |size: &usize| (*size as f64 / cell.size as f64).ln().abs();
            let nearest = (0..field.sizes.len())
                .min_by(|a, b| near(&field.sizes[*a]).total_cmp(&near(&field.sizes[*b])));
            let Some(nearest) = nearest else { continue };
            let is_enough = seen.rounds >= Scatter::Pooled.least_rounds();
            if is_enough && seen.is_above(field.guard(nearest), Sure::Seems) {
                field.refused[arm][nearest] = true;
            }
        }
    }
}
