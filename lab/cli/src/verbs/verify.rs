//! `--verify-only` of `run` and `tune`: the bytes of everything that would be timed, and no timing.

use super::drawn_seed;
use crate::args::{Run, Tune};
use crate::progress::Bar;
use crate::{output, status};
use cachewise_experiments::LabError;
use cachewise_experiments::experiment::Experiment;
use cachewise_experiments::verify::{self, Verified};
use cachewise_measure::MemoryBudget;

/// `run EXPERIMENT --verify-only`.
pub fn experiment(args: &Run, experiment: &Experiment) -> anyhow::Result<u8> {
    let name = experiment.name;
    if let Some(other) = args.op.iter().find(|op| !experiment.operations.contains(op)) {
        let refusal = format!("--op: not for {name}: it is not about {other}");
        return Err(LabError::Usage(refusal).into());
    }
    let operations = if args.op.is_empty() { experiment.operations } else { &args.op };
    let largest = args.size.iter().copied().max().unwrap_or(0);
    checked(name, (args.memory, largest), args.seed, |seed, bar| {
        let done = verify::kernels(operations, args.kernels.as_deref(), &args.size, seed, bar);
        bar.clear();
        if name == "page-fault" {
            let size = args.size.first().copied().unwrap_or(4 << 20);
            let pages = cachewise_experiments::page_fault::verify(size)?;
            output::print(&format!("{name}: {pages} pages taken by every way, every byte zero\n"))?;
        }
        Ok(done?)
    })
}

/// `tune --verify-only`.
pub fn tuning(args: &Tune) -> anyhow::Result<u8> {
    checked("tune", (args.memory, 0), args.seed, |seed, bar| Ok(verify::tuning(seed, bar)?))
}

fn checked(
    what: &str,
    (memory, largest): (Option<usize>, usize),
    seed: Option<u64>,
    check: impl FnOnce(u64, &mut Bar) -> anyhow::Result<Verified>,
) -> anyhow::Result<u8> {
    // Two operands, each with a page to spare.
    MemoryBudget::process().limit_to(memory, largest.saturating_mul(2).saturating_add(1 << 20));
    let mut bar = Bar::new()?;
    let done = check(seed.unwrap_or_else(drawn_seed), &mut bar)?;
    bar.clear();
    for skipped in &done.skipped {
        output::tell(&format!("note: skipped {skipped}"));
    }
    output::print(&format!(
        "{what}: {} kernels and {} others checked, {} calls, every byte right; nothing was timed\n",
        done.kernels, done.others, done.calls
    ))?;
    Ok(status::OK)
}
