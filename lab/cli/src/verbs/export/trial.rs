//! Settings tried in fresh processes, with them and without in turns: those that pay are printed.

use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context as _;
use cachewise_advise::candidates::quoted;
use cachewise_experiments::helper::Helper;
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::PairedRatio;
use cachewise_measure::stats::{LEAST_ROUNDS, Verdict};
use cachewise_report::Table;
use cachewise_report::units::gain;
use std::path::Path;

/// Pairs of fresh processes: with fewer than six there is no interval.
pub const PAIRS: usize = LEAST_ROUNDS + 1;
/// A difference of less is no reason to set anything.
pub const WORTHWHILE: f64 = 0.03;

/// Variables of the environment.
pub type Variables = Vec<(String, String)>;

/// A setting, and what else is set with it and without.
pub struct Trial {
    /// Whose setting it is.
    pub who: String,
    /// Set both times.
    pub base: Variables,
    /// What is tried.
    pub setting: Variables,
}

/// A helper in a process of its own, however it is started.
pub fn fresh(start: impl FnOnce(&Path) -> std::io::Result<Helper>) -> anyhow::Result<Helper> {
    let program = std::env::current_exe().context("cannot find this program")?;
    start(&program).context("a fresh process could not be started")
}

/// The times of two ways to run something, by cell and pair.
pub type Both = [Vec<Vec<f64>>; 2];

/// Runs two ways in turns, and in turn who goes first: `run` is told which, and returns a time for each cell.
/// `None` where the user stopped it.
pub fn in_turns(
    bar: &mut Bar,
    who: &str,
    run: &mut dyn FnMut(usize) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<Option<Both>> {
    let mut times = Both::default();
    for pair in 0..PAIRS {
        for which in [pair % 2, 1 - pair % 2] {
            let taken = run(which);
            if bar.cancelled() {
                bar.clear();
                output::tell("cachewise: interrupted; the settings were not tried to the end");
                return Ok(None);
            }
            let taken = taken?;
            times[which].resize(taken.len(), Vec::new());
            times[which].iter_mut().zip(taken).for_each(|(all, time)| all.push(time));
            bar.advance(who, 1.0);
        }
    }
    Ok(Some(times))
}

/// Tries each in every cell. Prints the variables of those that pay, a line each; what was seen goes to stderr.
pub fn settle(
    bar: &mut Bar,
    mut table: Table,
    trials: Vec<Trial>,
    cells: &[String],
    run: &mut dyn FnMut(&Variables) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<u8> {
    let mut paying = Vec::new();
    for Trial { who, base, setting } in trials {
        let with: Variables = base.iter().chain(&setting).cloned().collect();
        let environments = [&base, &with];
        let Some([without, with]) = in_turns(bar, &who, &mut |which| run(environments[which]))?
        else {
            return Ok(status::INTERRUPTED);
        };
        let assigned: Vec<String> =
            setting.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let mut verdicts = Vec::new();
        for ((cell, without), with) in cells.iter().zip(&without).zip(&with) {
            let ratio = PairedRatio::in_turns(with, without);
            let verdict = ratio.verdict(WORTHWHILE);
            verdicts.push(verdict);
            let interval = format!("{} .. {}", gain(ratio.high), gain(ratio.low));
            let shown = [gain(ratio.median), interval, verdict.to_string()];
            let named = [who.clone(), assigned.join(" "), cell.clone()];
            table.push(named.into_iter().chain(shown).collect());
        }
        if verdicts.contains(&Verdict::Faster) && !verdicts.contains(&Verdict::Slower) {
            paying.extend(assigned.into_iter().map(|line| format!("{line} # {who}\n")));
        }
    }
    bar.clear();
    table.remark("a setting pays where it is faster in one row and slower in none");
    output::tell_table(&table);
    output::print(&paying.concat())?;
    Ok(if paying.is_empty() { status::INCONCLUSIVE } else { status::OK })
}

/// A table for what [`settle`] has seen.
pub fn table(title: &str, whose: &str) -> Table {
    Table::of(
        title,
        &format!("{whose} | setting | >cell | >speed with it | >95 % interval | verdict"),
    )
}
