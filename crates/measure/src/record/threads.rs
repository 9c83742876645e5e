//! From what size on several threads pay, by rows of candidates on so many threads. Pure.

use super::names::{ALONE, THREADS};
use super::{Row, ThreadDecision, groups};
use crate::Verdict;
use std::collections::BTreeSet;

/// Where threads come from: made for the call, or waiting in a pool. States of rows.
const SUPPLIES: [&str; 2] = ["spawned", "pooled"];

/// From what size on each number of threads is faster than the next smaller one: there and, as far
/// as the medians tell, at every larger size measured.
pub fn paying(rows: &[Row]) -> Vec<ThreadDecision> {
    let mut found = Vec::new();
    let count = |row: &Row| row.axis(THREADS).map_or(0, |threads| threads as u32);
    for (operation, of_it) in groups(rows, |row: &Row| row.cell.operation.clone()) {
        let sizes: BTreeSet<u64> = of_it.iter().map(|row| row.cell.size).collect();
        for supply in SUPPLIES {
            let mine: Vec<&Row> = of_it
                .iter()
                .copied()
                .filter(|row| [ALONE, supply].contains(&row.cell.state.as_str()))
                .collect();
            let counts: BTreeSet<u32> = mine.iter().map(|row| count(row)).collect();
            for (&fewer, &more) in counts.iter().zip(counts.iter().skip(1)) {
                let row = |size: u64, threads: u32| {
                    mine.iter().find(|row| row.cell.size == size && count(row) == threads)
                };
                let (mut from, mut compared) = (None, false);
                for &size in sizes.iter().rev() {
                    let (Some(by_fewer), Some(by_more)) = (row(size, fewer), row(size, more))
                    else {
                        continue;
                    };
                    compared = true;
                    let ratio = by_more.over(by_fewer);
                    if ratio.median >= 1.0 {
                        break;
                    }
                    if ratio.verdict(crate::MARGIN) == Verdict::Faster {
                        from = Some(size);
                    }
                }
                if !compared {
                    continue;
                }
                let (operation, supply) = (operation.clone(), supply.to_owned());
                found.push(ThreadDecision { operation, supply, threads: more, from });
            }
        }
    }
    found
}
