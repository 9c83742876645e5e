//! `--verify-only` of `run` and `tune`: the bytes of everything that would be timed, and no timing.

use super::drawn_seed;
use crate::args::{Run, Tune};
use crate::progress::Bar;
use crate::{output, status};
use cachewise_lab::experiments::Experiment;
use cachewise_lab::verify::{self, Verified};
use cachewise_measure::MemoryBudget;

/// `run EXPERIMENT --verify-only`.
pub fn experiment(args: &Run, experiment: &Experiment) -> anyhow::Result<u8> {
    bound(args.memory);
    let seed = args.seed.unwrap_or_else(drawn_seed);
    let mut bar = Bar::new()?;
    let done =
        verify::kernels(experiment.operations, args.kernels.as_deref(), &args.size, seed, &mut bar);
    bar.clear();
    if experiment.name == "page-fault" {
        let size = args.size.first().copied().unwrap_or(4 << 20);
        let pages = cachewise_lab::experiments::page_fault::verify(size)?;
        output::print(&format!("page-fault: {pages} pages taken by every way, every byte zero\n"))?;
    }
    say(experiment.name, &done?)
}

/// `tune --verify-only`.
pub fn tuning(args: &Tune) -> anyhow::Result<u8> {
    bound(args.memory);
    let mut bar = Bar::new()?;
    let done = verify::tuning(args.seed.unwrap_or_else(drawn_seed), &mut bar);
    bar.clear();
    say("tune", &done?)
}

fn bound(memory: Option<usize>) {
    let budget = MemoryBudget::process();
    let quarter = budget.limit();
    budget.set_limit(memory.unwrap_or(1 << 30).min(quarter));
}

fn say(what: &str, done: &Verified) -> anyhow::Result<u8> {
    for skipped in &done.skipped {
        output::tell(&format!("note: skipped {skipped}"));
    }
    output::print(&format!(
        "{what}: {} kernels and {} others checked, {} calls, every byte right; nothing was timed\n",
        done.kernels, done.others, done.calls
    ))?;
    Ok(status::OK)
}
