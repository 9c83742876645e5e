//! What the rows of `cached-target` amount to. Pure.

use super::measure::without_prefetch;
use crate::words::*;

/// Within this of cached speed counts as cached speed (001.4's 10 %).
const NEAR: f64 = 1.10;

/// What `prefetchnta` changes by less than this is nothing; on A64 it was a third.
const MATTERS: f64 = 0.03;

/// Which of the documents' CPUs this one is like. Pure.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    [targets(rows), prefetching(rows)].concat()
}

/// The documents' CPUs whose non-temporal stores to a cached target these are like (001.4), by the paired
/// ratio to the fastest temporal store, and the time over that to a far target.
fn target_kind(over_cached: PairedRatio, over_far: f64) -> &'static str {
    if over_cached.rounds < stats::LEAST_ROUNDS {
        "cannot tell"
    } else if over_cached.high <= NEAR {
        "within 10 % of cached speed, as Athlon XP"
    } else if over_cached.low <= NEAR {
        "cannot tell"
    } else if over_far >= 1.0 / NEAR {
        "always at memory speed, as Athlon 64 and Opteron"
    } else {
        "neither at cached nor at memory speed, as none of the documents' CPUs"
    }
}

fn targets(rows: &[Row]) -> Vec<String> {
    let cells = by_cell(rows);
    let cell = |size: u64, state: &str, cached: f64| {
        let is_it = |key: &CellKey| {
            key.size == size && key.state == state && key.axis(SOURCE_CACHED) == Some(cached)
        };
        cells.iter().find(|(key, _)| is_it(key)).map(|(_, of_cell)| of_cell.as_slice())
    };
    let read = cells.iter().filter(|(key, _)| key.state == TARGET_READ);
    let sizes = sorted(read.map(|(key, _)| key.size)).into_iter();
    let told = sizes.filter_map(|size| {
        let read = cell(size, TARGET_READ, 1.0)?;
        let [kinds, times] = cached_target(size, read, cell(size, TARGET_FAR, 1.0)?)?;
        let unread =
            cell(size, TARGET_UNREAD, 1.0).and_then(|unread| pre_reading(size, read, unread));
        let uncached = cell(size, TARGET_READ, 0.0).and_then(|cell| uncached_source(size, cell));
        Some([Some(kinds), Some(times), unread, uncached])
    });
    told.flatten().flatten().collect()
}

/// What non-temporal stores to a cached target do (001.4).
fn cached_target(size: u64, read: &[&Row], far: &[&Row]) -> Option<[String; 2]> {
    let fastest = fastest_temporal(read)?;
    let kind = |row: &&Row| {
        let at_memory = named(far, &row.candidate)?.median_ns();
        let over_cached = versus(row, fastest);
        let text = format!("{} {:.2}", row.candidate, over_cached.median);
        Some((target_kind(over_cached, row.median_ns() / at_memory), text))
    };
    let non_temporal = read.iter().filter(|row| is_non_temporal(row));
    let found: Vec<(&str, String)> = non_temporal.filter_map(kind).collect();
    let kinds = groups(&found, |(kind, _)| *kind).into_iter();
    let kinds = kinds.map(|(kind, names)| format!("{kind} ({})", counted(names.len(), "kernel")));
    (!found.is_empty()).then(|| {
        [
            format!("NT to a cached target of {} (001.4): {}", bytes(size), joined(kinds, "; ")),
            format!(
                "Time over the fastest temporal stores, {}: {}",
                fastest.candidate,
                joined(found.iter().map(|(_, text)| text), ", ")
            ),
        ]
    })
}

fn is_non_temporal(row: &Row) -> bool {
    find(&row.candidate).is_some_and(Kernel::is_non_temporal)
}

/// The fastest with temporal stores.
fn fastest_temporal<'r>(of_cell: &[&'r Row]) -> Option<&'r Row> {
    fastest(of_cell.iter().copied().filter(|row| !is_non_temporal(row)))
}

/// What reading the target first changes for non-temporal stores (001.2).
fn pre_reading(size: u64, read: &[&Row], unread: &[&Row]) -> Option<String> {
    let change = |row: &&Row| {
        let unread = named(unread, &row.candidate)?.median_ns();
        (unread > 0.0).then(|| format!("{} {:.2}", row.candidate, row.median_ns() / unread))
    };
    let non_temporal = read.iter().filter(|row| is_non_temporal(row));
    let changes: Vec<String> = non_temporal.filter_map(change).collect();
    (!changes.is_empty()).then(|| {
        format!(
            "Target of {} pre-read, time over not read (001.2; different cells, so no interval): {}",
            bytes(size),
            changes.join(", ")
        )
    })
}

/// Who wins when the source is not cached (001.3).
fn uncached_source(size: u64, of_cell: &[&Row]) -> Option<String> {
    let best = fastest(of_cell.iter().copied().filter(|row| is_non_temporal(row)))?;
    let temporal = fastest_temporal(of_cell)?;
    let pair = versus(best, temporal);
    let (size, verdict, times) = (bytes(size), says(pair), times(pair));
    let (best, temporal) = (&best.candidate, &temporal.candidate);
    Some(format!(
        "With the source of {size} in memory (001.3), before anybody reads the target: {best} against \
         {temporal}: {verdict}, {times}"
    ))
}

/// Which kind of CPU `prefetchnta` makes this (002.9).
fn prefetching(rows: &[Row]) -> Vec<String> {
    let cells = by_cell(rows);
    let mut found: Vec<(&str, &str, PairedRatio)> = Vec::new();
    for (key, of_cell) in cells.iter().filter(|(key, _)| key.state == PREFETCHNTA) {
        let Some(level) = key.source else { continue };
        found.extend(of_cell.iter().filter_map(|row| {
            let without = find(&row.candidate).and_then(without_prefetch)?;
            let pair = between(of_cell, &row.candidate, without.name)?;
            Some((row.candidate.as_str(), level.name(), pair))
        }));
    }
    let sentence = |(name, levels): (&str, Vec<&(&str, &str, PairedRatio)>)| {
        let says = |wanted: &str| {
            let found = levels.iter().find(|(_, level, _)| *level == wanted);
            found.map(|(.., pair)| pair.verdict(MATTERS))
        };
        let kind = prefetch_kind(says("L2"), says("DRAM"));
        let figures = levels.iter().map(|(_, level, pair)| {
            format!("{level} {:.2} ({})", pair.median, pair.verdict(MATTERS))
        });
        let figures = joined(figures, ", ");
        format!("prefetchnta in {name} (002.9) {kind}; time over without: {figures}")
    };
    groups(&found, |(name, ..)| *name).into_iter().map(sentence).collect()
}

/// By what it does to a source in L2 and in memory.
fn prefetch_kind(in_l2: Option<Verdict>, in_memory: Option<Verdict>) -> &'static str {
    // What differs by less than the margin and what was not shown to differ read alike.
    let told = |verdict: Option<Verdict>| match verdict {
        Some(Verdict::Same) => Some(Verdict::Unknown),
        other => other,
    };
    match (told(in_l2), told(in_memory)) {
        (Some(Verdict::Slower), Some(Verdict::Faster)) => "helps uncached and hurts in L2, as A64",
        (Some(Verdict::Unknown), Some(Verdict::Unknown)) => "does nothing, as AXP and P4",
        (Some(Verdict::Unknown), Some(Verdict::Faster)) => "helps uncached and costs nothing in L2",
        (Some(Verdict::Slower), Some(_)) => "hurts in L2 and is not shown to help uncached",
        (Some(Verdict::Faster), Some(_)) => "helps in L2",
        (Some(_), Some(Verdict::Slower)) => "hurts uncached",
        _ => "cannot be placed: L2 or memory was not measured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_of_the_kinds() {
        for (low, high, rounds, over_far, kind) in [
            (1.0, 1.1, 15, 0.1, "within"),
            (1.05, 1.2, 15, 0.1, "cannot"),
            (8.9, 9.1, 15, 0.95, "always"),
            (2.9, 3.1, 15, 0.3, "neither"),
            (1.0, 1.0, 2, 1.0, "cannot"),
        ] {
            let over_cached = PairedRatio { median: (low + high) / 2.0, low, high, rounds };
            assert_eq!(target_kind(over_cached, over_far).split(' ').next(), Some(kind));
        }
    }
}
