//! `cachewise export pmdk`: from which size on libpmem should write past the cache, tried in fresh processes.
//!
//! Below `PMEM_MOVNT_THRESHOLD`, 256 bytes where nobody sets it, libpmem writes by ordinary stores and flushes each
//! line; from there on it writes past the cache (libpmem(7)). Both are asked at every size first, and the
//! threshold that follows is tried beside the default.

use super::trial::{PAIRS, Trial, Variables, WORTHWHILE, fresh, in_turns, settle, table};
use crate::progress::Bar;
use crate::{output, status};
use anyhow::Context as _;
use cachewise_experiments::helper::{Helper, Request};
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::PairedRatio;
use cachewise_measure::stats::Verdict;
use cachewise_measure::units::bytes;

/// Operations, and libpmem's functions for them, of whose bytes nothing is in a cache in the end.
const FUNCTIONS: [(&str, &str); 2] =
    [("copy", "pmem_memcpy_persist"), ("fill", "pmem_memset_persist")];
/// Sizes that are tried; the first is libpmem's own threshold.
const SIZES: [usize; 8] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 512 << 10, 4 << 20, 24 << 20];
const THRESHOLD: &str = "PMEM_MOVNT_THRESHOLD";
const NEVER: &str = "PMEM_NO_MOVNT";

/// Prints the variable that pays.
pub fn run() -> anyhow::Result<u8> {
    let mut bar = Bar::new()?;
    bar.begin("libpmem by and past the cache", (2 * PAIRS) as f64);
    let ways = [(NEVER, "1"), (THRESHOLD, "0")].map(|set| vec![own(set)]);
    let Some([by, past]) = in_turns(&mut bar, "libpmem", &mut |which| times(&ways[which]))? else {
        return Ok(status::INTERRUPTED);
    };
    let ratios: Vec<PairedRatio> =
        past.iter().zip(&by).map(|(past, by)| PairedRatio::paired(past, by)).collect();
    let Some(setting) = threshold(&ratios) else {
        bar.clear();
        output::tell(
            "cachewise: past the cache is nowhere slower for libpmem: there is nothing to set",
        );
        return Ok(status::INCONCLUSIVE);
    };
    bar.begin("trying the threshold", (2 * PAIRS) as f64);
    let mut table = table("libpmem's copies and fills of warm buffers, flushed", "library");
    table.remark("what reads the data afterwards is not in these times");
    let trial = Trial { who: "libpmem".to_owned(), base: Vec::new(), setting: vec![setting] };
    let cells = FUNCTIONS.map(|(what, _)| SIZES.map(|n| format!("{what} {}", bytes(n as u64))));
    settle(&mut bar, table, vec![trial], &cells.concat(), &mut |set| times(set))
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The setting by which nothing is written past the cache where that is slower: times past the cache over those by
/// it, for every size of one operation, then of the next.
fn threshold(past_over_by: &[PairedRatio]) -> Option<(String, String)> {
    let is_slower = |at: &usize| {
        let of = |operation: usize| &past_over_by[operation * SIZES.len() + *at];
        let all = (0..FUNCTIONS.len()).map(of);
        let mean: f64 = all.clone().map(|ratio| ratio.median.ln()).sum();
        mean > 0.0 && all.clone().any(|ratio| ratio.verdict(WORTHWHILE) == Verdict::Slower)
    };
    let last = (0..SIZES.len()).rev().find(is_slower)?;
    // What is larger than all that was tried stays as libpmem has it.
    let first = SIZES.get(last + 1).copied().unwrap_or(SIZES[SIZES.len() - 1] + 1);
    Some(own((THRESHOLD, &first.to_string())))
}

/// What libpmem takes in a fresh process, for every size of one operation, then of the next.
fn times(variables: &Variables) -> anyhow::Result<Vec<f64>> {
    let mut helper = fresh(|program| Helper::start_with(program, variables))?;
    let mut all = Vec::new();
    for (operation, function) in FUNCTIONS {
        let library = Some(format!("libpmem=libpmem.so.1:{function}"));
        let request =
            Request::Sizes { operation: operation.to_owned(), sizes: SIZES.to_vec(), library };
        let taken: Vec<f64> = helper
            .ask(&request)
            .context("export pmdk takes an installed libpmem (package libpmem1)")?;
        all.extend(taken);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_the_first_size_after_those_that_are_slower_past_the_cache() {
        let ratio = |median: f64| {
            let (low, high) = (median * 0.99, median * 1.01);
            PairedRatio { median, low, high, rounds: PAIRS }
        };
        let of = |copies: [f64; 8], fills: [f64; 8]| {
            threshold(&copies.into_iter().chain(fills).map(ratio).collect::<Vec<_>>())
        };
        let slower_to_16k = [2.0, 2.0, 1.5, 1.2, 0.9, 0.8, 0.8, 0.7];
        let set = |name: &str, value: &str| Some(own((name, value)));
        assert_eq!(of(slower_to_16k, slower_to_16k), set(THRESHOLD, "65536"));
        assert_eq!(of([1.2; 8], [1.2; 8]), set(THRESHOLD, "25165825"));
        assert_eq!(of([0.9; 8], [1.0; 8]), None);
        // One operation's loss is the other's larger gain.
        assert_eq!(of([1.1; 8], [0.5; 8]), None);
    }
}
