//! Settings tried in fresh processes, with them and without in turns: those that pay are printed.

use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context as _;
use cachewise_advise::candidates::quoted;
use cachewise_experiments::helper::Helper;
use cachewise_experiments::recorder::Progress as _;
use cachewise_judge::margin::HEADLINE;
use cachewise_judge::race::{self, Ran, Runner, Runs, Stage};
use cachewise_measure::PairedRatio;
use cachewise_measure::stats::{LEAST_ROUNDS, Verdict};
use cachewise_report::Table;
use cachewise_report::units::gain;
use std::path::Path;

/// Pairs of fresh processes: with fewer than six there is no interval.
pub const PAIRS: usize = LEAST_ROUNDS + 1;
/// A difference of less is no reason to set anything.
pub const WORTHWHILE: f64 = HEADLINE;

/// Variables of the environment.
pub type Variables = Vec<(String, String)>;

/// A setting, and what else is set with it and without.
pub struct Trial {
    /// Name of the setting.
    pub who: String,
    /// Set both times.
    pub base: Variables,
    /// Setting that is tried.
    pub setting: Variables,
}

/// A helper in a process of its own, however it is started.
pub fn fresh(start: impl FnOnce(&Path) -> std::io::Result<Helper>) -> anyhow::Result<Helper> {
    let program = std::env::current_exe().context("cannot find this program")?;
    start(&program).context("a fresh process could not be started")
}

/// The times of two ways to run something, by cell and pair.
pub type Both = [Vec<Vec<f64>>; 2];

/// Fresh processes that take turns: 1 is with the setting.
struct Turns<'a> {
    bar: &'a mut Bar,
    who: &'a str,
    start: &'a mut dyn FnMut(usize) -> anyhow::Result<Vec<f64>>,
}

impl Runner for Turns<'_> {
    type Sample = Vec<f64>;
    type Error = anyhow::Error;

    fn run(&mut self, which: usize) -> anyhow::Result<Ran<Vec<f64>>> {
        let taken = (self.start)(which);
        if self.bar.cancelled() {
            return Ok(Ran::Stopped);
        }
        self.bar.advance(self.who, 1.0);
        taken.map(Ran::Well)
    }

    fn cost(times: &Vec<f64>) -> f64 {
        times.iter().sum()
    }

    fn now(&self) -> f64 {
        0.0
    }

    fn progress(&mut self, _: Stage, _: f64) {}
}

/// Runs two ways in pairs: `run` is told which, and returns a time for each cell. `None` where the user stopped it.
pub fn in_turns(
    bar: &mut Bar,
    who: &str,
    run: &mut dyn FnMut(usize) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<Option<Both>> {
    let mut turns = Turns { bar, who, start: run };
    let found = race::pairs(&mut turns, 1, PAIRS, fastrand::u64(..), |_, _| ())?;
    if found.cut.is_some() {
        turns.bar.clear();
        output::tell("cachewise: interrupted; the settings were not tried to the end");
        return Ok(None);
    }
    let cells = found.sides[0].samples().next().map_or(0, Vec::len);
    let of = |runs: &Runs<Vec<f64>>| (0..cells).map(|cell| runs.of(|times| times[cell])).collect();
    Ok(Some([of(&found.sides[0]), of(&found.sides[1])]))
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
            let ratio = PairedRatio::paired(with, without);
            let verdict = ratio.verdict(WORTHWHILE);
            verdicts.push(verdict);
            let interval = format!("{} .. {}", gain(ratio.high), gain(ratio.low));
            let shown = [gain(ratio.median), interval, verdict.to_string()];
            let named = [who.clone(), assigned.join(" "), cell.clone()];
            table.push(named.into_iter().chain(shown).collect());
        }
        if verdicts.contains(&Verdict::Faster) && !verdicts.contains(&Verdict::Slower) {
            // Nothing else on the line: `env $(cachewise export ...)` takes every word of it.
            paying.extend(assigned.into_iter().map(|line| line + "\n"));
        }
    }
    bar.clear();
    table.remark("a setting pays where it is faster in one row and slower in none");
    output::tell_table(&table);
    output::print_exactly(&paying.concat())?;
    Ok(if paying.is_empty() { status::INCONCLUSIVE } else { status::OK })
}

/// A table for what [`settle`] has seen.
pub fn table(title: &str, whose: &str) -> Table {
    Table::of(
        title,
        &format!("{whose} | setting | >cell | >speed with it | >95 % interval | verdict"),
    )
}
