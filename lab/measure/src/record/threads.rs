//! From what size on several threads pay, by rows of candidates on so many threads. Pure.

use super::names::{ALONE, THREADS};
use super::{Row, ThreadDecision, groups};
use crate::{PairedRatio, Verdict};
use std::collections::BTreeMap;

/// Sources of threads, as states of rows: made for the call, or waiting in a pool.
const SUPPLIES: [&str; 2] = ["spawned", "pooled"];

/// From what size on each number of threads is faster than the next smaller one: there and, as far
/// as the medians tell, at every larger size measured.
pub fn paying(rows: &[Row]) -> Vec<ThreadDecision> {
    let mut found = Vec::new();
    for (operation, of_it) in groups(rows, |row: &Row| &row.cell.operation) {
        for supply in SUPPLIES {
            // By number of threads, by size.
            let mut mine: BTreeMap<u32, BTreeMap<u64, &Row>> = BTreeMap::new();
            for row in of_it.iter().filter(|row| [ALONE, supply].contains(&&*row.cell.state)) {
                let threads = row.axis(THREADS).map_or(0, |threads| threads as u32);
                mine.entry(threads).or_default().entry(row.cell.size).or_insert(row);
            }
            for (fewer, (&threads, more)) in mine.values().zip(mine.iter().skip(1)) {
                let ratio =
                    |(size, more): (&u64, &&Row)| Some((*size, more.over(fewer.get(size)?)));
                let ratios: Vec<(u64, PairedRatio)> = more.iter().rev().filter_map(ratio).collect();
                let gaining = ratios
                    .iter()
                    .take_while(|(_, ratio)| ratio.median < 1.0 || ratio.median.is_nan());
                let is_faster =
                    |ratio: &PairedRatio| ratio.verdict(crate::MARGIN) == Verdict::Faster;
                let from =
                    gaining.filter(|(_, ratio)| is_faster(ratio)).last().map(|(size, _)| *size);
                if !ratios.is_empty() {
                    let (operation, supply) = (operation.clone(), supply.to_owned());
                    found.push(ThreadDecision { operation, supply, threads, from });
                }
            }
        }
    }
    found
}
