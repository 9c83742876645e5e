//! `cachewise export allocator`: whether allocators should keep what is freed on this machine, tried in fresh
//! processes, and the variables that have them do so.

use crate::progress::Bar;
use crate::verbs::advise::installed;
use crate::{output, status};
use anyhow::Context as _;
use cachewise_advise::candidates::{KEEP, KEPT_BY, quoted};
use cachewise_experiments::helper::{Helper, Request};
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::PairedRatio;
use cachewise_measure::stats::{LEAST_ROUNDS, Verdict};
use cachewise_measure::units::{bytes, gain};
use cachewise_report::Table;

/// Pairs of fresh processes.
const PAIRS: usize = LEAST_ROUNDS + 1;
/// Sizes of blocks that are tried.
const SIZES: [usize; 4] = [256 << 10, 2 << 20, 16 << 20, 64 << 20];
/// A difference of less is no reason to set anything.
const WORTHWHILE: f64 = 0.03;

type Variables = Vec<(String, String)>;

/// An allocator, how it is had, and what has it keep what is freed.
struct Tried {
    name: String,
    base: Variables,
    setting: (String, String),
}

/// Prints the variables that pay, a line each; what was seen goes to stderr.
pub fn run() -> anyhow::Result<u8> {
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut all = vec![Tried {
        name: "glibc".to_owned(),
        base: Vec::new(),
        setting: own(("GLIBC_TUNABLES", KEEP)),
    }];
    for found in installed() {
        let Some((_, key, value)) = KEPT_BY.into_iter().find(|(name, ..)| *name == found.name)
        else {
            continue;
        };
        let base = vec![("LD_PRELOAD".to_owned(), found.file.to_string_lossy().into_owned())];
        all.push(Tried { name: found.name, base, setting: own((key, value)) });
    }
    let mut bar = Bar::new()?;
    bar.begin("trying allocators that keep what is freed", (all.len() * PAIRS * 2) as f64);
    let heads = "allocator | setting | >bytes | >speed with it | >95 % interval | verdict";
    let mut table = Table::of("blocks taken, written page by page and given back", heads);
    let mut paying = Vec::new();
    for Tried { name, base, setting } in all {
        let with: Variables = base.iter().cloned().chain([setting.clone()]).collect();
        let mut times = [const { [const { Vec::new() }; SIZES.len()] }; 2];
        for pair in 0..PAIRS {
            for which in [pair % 2, 1 - pair % 2] {
                let taken = blocks(if which == 1 { &with } else { &base })?;
                if bar.cancelled() {
                    bar.clear();
                    output::tell("cachewise: interrupted; the settings were not tried to the end");
                    return Ok(status::INTERRUPTED);
                }
                times[which].iter_mut().zip(taken).for_each(|(all, time)| all.push(time));
                bar.advance(&name, 1.0);
            }
        }
        let mut verdicts = Vec::new();
        for ((size, without), with) in SIZES.into_iter().zip(&times[0]).zip(&times[1]) {
            let ratio = PairedRatio::in_turns(with, without);
            let verdict = ratio.verdict(WORTHWHILE);
            verdicts.push(verdict);
            let interval = format!("{} .. {}", gain(ratio.high), gain(ratio.low));
            let cells = [bytes(size as u64), gain(ratio.median), interval, verdict.to_string()];
            let named = [name.clone(), format!("{}={}", setting.0, setting.1)];
            table.push(named.into_iter().chain(cells).collect());
        }
        if verdicts.contains(&Verdict::Faster) && !verdicts.contains(&Verdict::Slower) {
            paying.push((name, setting));
        }
    }
    bar.clear();
    table.remark("a setting pays where it is faster at one size and slower at none; it costs the memory that is kept");
    output::tell(&table.terminal(None));
    for (name, (key, value)) in &paying {
        output::print(&format!("{key}={} # {name}\n", quoted(value)))?;
    }
    Ok(if paying.is_empty() { status::INCONCLUSIVE } else { status::OK })
}

/// What blocks take in a fresh process.
fn blocks(variables: &[(String, String)]) -> anyhow::Result<Vec<f64>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut helper =
        Helper::start_with(&program, variables).context("a fresh process could not be started")?;
    helper
        .ask(&Request::Blocks { sizes: SIZES.to_vec() })
        .context("timing blocks in a fresh process")
}
