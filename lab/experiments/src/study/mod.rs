//! `study NAME`: small questions of the source documents. Each is a list of cells with their candidates; what
//! they have in common is here.

use crate::bench::CellOutcome;
use crate::prelude::*;

pub(crate) mod aliasing;
pub(crate) mod cached_target;
pub(crate) mod extent;
pub(crate) mod mapped;
pub(crate) mod read_batch;
pub(crate) mod sticky;
pub(crate) mod values;

const STUDY: Experiment = Experiment { is_study: true, ..PLAIN };

/// One cell and its candidates; the first is the reference unless they say otherwise.
struct Step {
    task: Task,
    calls: Vec<Call<'static>>,
    /// A remark on how it went.
    remark: fn(&Task, &CellOutcome) -> Option<String>,
}

impl Step {
    fn new(task: Task, calls: Vec<Call<'static>>) -> Step {
        Step { task, calls, remark: |_, _| None }
    }
}

/// Measures all cells of an item.
fn measured(setting: &mut Setting, steps: Vec<Step>) -> Result {
    let work = |step: &Step| (step.task.size as f64).max(4e5);
    setting.through(steps, work, |setting, Step { task, calls, remark }| {
        if let Some((found, rows)) = setting.told(&task, calls)? {
            remark(&task, &found).map_or(Ok(()), |text| setting.out.note(text))?;
            setting.out.rows(rows)?;
        }
        Ok(format!("{} {} {}", task.operation, bytes(task.size), task.cell.label))
    })
}

/// The user's sizes, or one for the nearer of two levels.
fn sizes_at(setting: &Setting, (source, destination): (Level, Level), part: usize) -> Vec<usize> {
    let usual = default_sizes(source.min(destination), true, &setting.bench.machine.caches)[0];
    setting.sizes_or([usual / part])
}
