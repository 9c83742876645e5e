//! `copy-matrix`, `zero-matrix`, `compare-matrix`: kernels x sizes x residency, the operation alone.
//! `whole-cost`: the same with the reader and the bystander.

use super::roofline::{self, Ceilings};
use super::{Experiment, Finish, Setting, placed, short_bytes};
use crate::LabError;
use crate::bench::{Question, State};
use crate::routines::{Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Operation, PAGE_SIZE};
use cachewise_measure::{Figure, FigureKind, Level, MeasureError};

/// The operation alone, at placed and proved operands.
pub(super) fn operation_alone(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
) -> Result<Finish, LabError> {
    run(experiment, setting, |_, source, destination, _| placed(source, destination))
}

/// The operation, a reader of the whole destination, and a bystander.
pub(super) fn whole_cost(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
) -> Result<Finish, LabError> {
    run(experiment, setting, |setting, source, destination, size| State::At {
        source,
        destination,
        reader: Some(1.0),
        bystander: Some(setting.bench.bystander_bytes(size)),
    })
}

/// Speed of every kernel, a panel per residency.
pub(super) fn speeds() -> Vec<Figure> {
    vec![Figure {
        title: "Speed of the operation alone".to_owned(),
        kind: FigureKind::Bars,
        x: "candidate".to_owned(),
        y: None,
        value: "gbps".to_owned(),
        panels: ["source", "destination", "size"].map(str::to_owned).to_vec(),
        candidates: Vec::new(),
        states: String::new(),
    }]
}

/// Operation, reader and bystander stacked.
pub(super) fn costs() -> Vec<Figure> {
    let title =
        "Whole cost: the operation, the later reader, the neighbour's lost lines".to_owned();
    speeds()
        .into_iter()
        .map(|figure| Figure { title: title.clone(), value: "cost".to_owned(), ..figure })
        .collect()
}

/// One operation's candidates: libc, then the chosen kernels.
type Field = (Operation, Vec<Routine>);

fn run(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    state: impl Fn(&Setting<'_>, Level, Level, usize) -> State,
) -> Result<Finish, LabError> {
    let fields = fields(experiment, setting)?;
    let cells = setting.cells();
    let candidates: usize = fields.iter().map(|(_, routines)| routines.len()).sum();
    // Every sample takes about as long as the clock demands, unless the operation is longer.
    let work = |size: usize| (size as f64).max(4e5);
    let total: f64 = cells.iter().map(|&(_, _, size)| work(size) * candidates as f64).sum();
    setting.observer.begin(experiment.name, total);

    let mut ceilings = Ceilings::default();
    let mut skipped_sizes = Vec::new();
    for (source, destination, size) in cells {
        for (operation, routines) in &fields {
            let pages = matches!(operation, Operation::CopyPages | Operation::ZeroPages);
            if pages && !(size.is_multiple_of(PAGE_SIZE) && (size / PAGE_SIZE).is_power_of_two()) {
                skipped_sizes.push(format!("{operation} of {size} bytes: not 2^order pages"));
                continue;
            }
            let question = Question {
                experiment: experiment.name,
                operation: *operation,
                size,
                state: state(setting, source, destination, size),
                routines,
                plan: setting.plan(false),
                verify: true,
            };
            let mut answer = match setting.bench.ask(&question, setting.observer) {
                Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                    skipped_sizes.push(format!("{operation}: {error}"));
                    continue;
                }
                other => other?,
            };
            if answer.interrupted {
                return Ok(Finish::Interrupted);
            }
            let ceiling = ceilings.of(
                *operation,
                source.max(destination),
                setting.bench,
                setting.observer,
            )?;
            for row in &mut answer.rows {
                roofline::relate(row, ceiling, &setting.bench.clock);
                (setting.rows)(row)?;
            }
            setting.observer.advance(
                &format!("{operation} {} {source}:{destination}", short_bytes(size)),
                work(size) * routines.len() as f64,
            );
        }
    }
    for text in skipped_sizes {
        (setting.notes)(format!("skipped {text}"))?;
    }
    Ok(Finish::Complete)
}

/// Who competes per operation; what this CPU lacks is noted with the reason.
fn fields(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Vec<Field>, LabError> {
    let pattern = setting.options.kernels.as_deref();
    let chosen = select::kernels(experiment.operations, pattern)?;
    let (here, absent) = select::runnable(chosen, setting.bench.features);
    for (kernel, reason) in &absent {
        (setting.notes)(format!("skipped {}: {reason}", kernel.name))?;
    }
    if here.is_empty() {
        return Err(LabError::Nothing {
            why: "this CPU can run none of the kernels chosen".to_owned(),
        });
    }
    let mut fields: Vec<Field> = Vec::new();
    for &operation in experiment.operations {
        let chosen = &setting.options.operations;
        if !chosen.is_empty() && !chosen.contains(&operation) {
            continue;
        }
        let of_it: Vec<_> = here.iter().filter(|kernel| kernel.operation() == operation).collect();
        // The byte-wise reference is a hundred times slower than anything; it competes when named.
        let of_it: Vec<_> = of_it
            .into_iter()
            .filter(|kernel| pattern.is_some() || kernel.technique() != "bytes")
            .collect();
        if of_it.is_empty() {
            continue;
        }
        let mut routines = vec![libc_reference(operation)];
        routines.extend(of_it.into_iter().map(|kernel| Routine::from(*kernel)));
        fields.push((operation, routines));
    }
    Ok(fields)
}
