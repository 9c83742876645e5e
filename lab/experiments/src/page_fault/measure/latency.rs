//! Latency of handing out a single zeroed page, while the scrubber works and while it rests.

use super::arms::unhindered;
use crate::prelude::*;
use cachewise_pages::{Block, Pool, PoolError, Scrub};
use std::collections::VecDeque;

const STATE: &str = "hand-out";
const RESTING: &str = "zalloc, scrubber off";

/// Bytes of the pool: enough that the scrubber always finds something.
const POOL: usize = 64 << 20;
const IN_USE: usize = 64;
/// Blocks that are written and given back between hand-outs, so that there is work: 256 KiB.
const DIRTY_ORDER: u32 = 6;
/// Hand-outs between two of those.
const BETWEEN: usize = 64;

/// One row per state of the scrubber.
pub(super) fn rows(setting: &mut Setting) -> Result<Vec<Row>> {
    let rounds = setting.plan(false).rounds;
    let per_round = if setting.options.quick { 10_000 } else { 100_000 };
    let mut found = Vec::new();
    for scrubbing in [false, true] {
        setting.go_on()?;
        let timed = timed(&setting.bench.clock, scrubbing, rounds, per_round);
        found.push(timed?);
    }
    let resting = found[0].by_round.clone();
    let row = |(candidate, mut found): (&str, AllocTimes)| {
        found.all.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * found.all.len() as f64).ceil() as usize;
            found.all[place.clamp(1, found.all.len()) - 1]
        };
        let figures = [
            ("p50_ns", at(0.5)),
            ("p99_ns", at(0.99)),
            ("p999_ns", at(0.999)),
            ("worst_ns", at(1.0)),
            ("scrubbed_mib", found.scrubbed as f64 / f64::from(1 << 20)),
            ("hit_share", found.hits),
        ];
        let cell = CellKey::new("zero", PAGE_SIZE, STATE);
        let row = setting.compared(cell, (candidate, &found.by_round), (RESTING, &resting));
        Row { calls: per_round as u32, ..row.with(&figures) }
    };
    Ok([RESTING, "zalloc, scrubbing"].into_iter().zip(found).map(row).collect())
}

struct AllocTimes {
    by_round: Vec<f64>,
    all: Vec<f64>,
    scrubbed: u64,
    hits: f64,
}

fn timed(
    clock: &Clock,
    scrubbing: bool,
    rounds: usize,
    per_round: usize,
) -> Result<AllocTimes, PoolError> {
    let scrub = Scrub { enabled: scrubbing, ..unhindered() };
    let pool = Pool::builder().capacity(POOL).initial(POOL).scrub(scrub).build()?;
    let mut in_use = VecDeque::with_capacity(IN_USE + 1);
    let (mut by_round, mut all) = (Vec::new(), Vec::with_capacity(rounds * per_round));
    for _ in 0..rounds {
        let first = all.len();
        for call in 0..per_round {
            // The reading's own cost stays: a hit is hardly longer, and its spread is what is told.
            let (page, took) = clock.elapsed(|| pool.zalloc(0));
            let page = page?;
            all.push(took);
            let mut page = page.into_dirty();
            page[0] = 1;
            in_use.push_back(page);
            if in_use.len() > IN_USE {
                in_use.pop_front().map_or(Ok(()), Block::give_back)?;
            }
            if call.is_multiple_of(BETWEEN) {
                let mut work = pool.alloc(DIRTY_ORDER)?;
                work[0] = 1;
            }
        }
        by_round.push(stats::median(&all[first..]));
    }
    let figures = pool.stats()?;
    let requests = (figures.zero_hits + figures.zero_misses).max(1);
    let hits = figures.zero_hits as f64 / requests as f64;
    Ok(AllocTimes { by_round, all, scrubbed: figures.scrubbed, hits })
}
