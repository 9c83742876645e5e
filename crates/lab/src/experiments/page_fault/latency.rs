//! How long a single zeroed page takes to be handed out, while the scrubber works and while it
//! rests.

use super::super::Setting;
use super::arms::unhindered;
use crate::LabError;
use cachewise_kernels::PAGE_SIZE;
use cachewise_measure::record::names::SCRUBBING;
use cachewise_measure::{CallTimes, CellKey, PairedRatio, Row, stats};
use cachewise_pages::{Pool, PoolError, Scrub};
use std::collections::VecDeque;

/// The state of these rows.
pub(super) const STATE: &str = "hand-out";
/// The same while the scrubber rests.
const RESTING: &str = "zalloc, scrubber off";

/// Bytes of the pool: enough that the scrubber always finds something.
const POOL: usize = 64 << 20;
/// Pages in use at any time.
const IN_USE: usize = 64;
/// Blocks that are written and given back between hand-outs, so that there is work: 256 KiB.
const DIRTY_ORDER: u32 = 6;
/// Hand-outs between two of those.
const BETWEEN: usize = 64;

/// One row per state of the scrubber.
pub(super) fn rows(name: &str, setting: &mut Setting<'_, '_>) -> Result<Vec<Row>, LabError> {
    let rounds = setting.plan(false).rounds;
    let per_round = if setting.options.quick { 10_000 } else { 100_000 };
    let seed = setting.bench.seed;
    let mut found = Vec::new();
    for scrubbing in [false, true] {
        if setting.out.stopped() {
            return Err(LabError::Interrupted);
        }
        let timed = timed(setting, scrubbing, rounds, per_round);
        found.push(timed.map_err(|error| LabError::Pool(error.to_string()))?);
    }
    let reference = found[0].by_round.clone();
    let names = [RESTING, SCRUBBING];
    let rows = found.into_iter().zip(names).map(|(mut found, candidate)| {
        found.all.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * found.all.len() as f64).ceil() as usize;
            found.all[place.clamp(1, found.all.len()) - 1]
        };
        let ratio = PairedRatio::new(&found.by_round, &reference, seed);
        let figures = [
            ("p50_ns", at(0.5)),
            ("p99_ns", at(0.99)),
            ("p999_ns", at(0.999)),
            ("worst_ns", at(1.0)),
            ("scrubbed_mib", found.scrubbed as f64 / f64::from(1 << 20)),
            ("hit_share", found.hits),
        ];
        let cell = CellKey::new("zero", PAGE_SIZE, STATE);
        let times = found.by_round.clone();
        let row = Row::new(name, cell, candidate, RESTING, times).with_ratio(ratio).with(&figures);
        let histogram = Some(found.times.histogram(1000.0, 1));
        Row { calls: per_round as u32, histogram, ..row }
    });
    Ok(rows.collect())
}

struct Found {
    /// Median of each round.
    by_round: Vec<f64>,
    all: Vec<f64>,
    times: CallTimes,
    scrubbed: u64,
    hits: f64,
}

fn timed(
    setting: &Setting<'_, '_>,
    scrubbing: bool,
    rounds: usize,
    per_round: usize,
) -> Result<Found, PoolError> {
    let clock = &setting.bench.clock;
    let scrub = Scrub { enabled: scrubbing, ..unhindered() };
    let pool = Pool::builder().capacity(POOL).initial(POOL).scrub(scrub).build()?;
    let mut in_use = VecDeque::with_capacity(IN_USE + 1);
    let mut found = Found {
        by_round: Vec::with_capacity(rounds),
        all: Vec::with_capacity(rounds * per_round),
        times: CallTimes::default(),
        scrubbed: 0,
        hits: 0.0,
    };
    for _ in 0..rounds {
        let first = found.all.len();
        for call in 0..per_round {
            let begun = clock.now();
            let page = pool.zalloc_raw(0)?;
            let taken = clock.now();
            let took = clock.elapsed_ns(begun, taken).max(0.0);
            found.all.push(took);
            found.times.record(took);
            // SAFETY: just handed out.
            unsafe { page.as_ptr().write_volatile(1) };
            in_use.push_back(page);
            if in_use.len() > IN_USE
                && let Some(page) = in_use.pop_front()
            {
                // SAFETY: taken above, and used by nobody.
                unsafe { pool.free_raw(page, 0) }?;
            }
            if call.is_multiple_of(BETWEEN) {
                let mut work = pool.alloc(DIRTY_ORDER)?;
                work[0] = 1;
            }
        }
        found.by_round.push(stats::median(&found.all[first..]));
    }
    let figures = pool.stats()?;
    found.scrubbed = figures.scrubbed;
    let requests = (figures.zero_hits + figures.zero_misses).max(1);
    found.hits = figures.zero_hits as f64 / requests as f64;
    for page in in_use {
        // SAFETY: taken above, and used by nobody.
        unsafe { pool.free_raw(page, 0) }?;
    }
    Ok(found)
}
