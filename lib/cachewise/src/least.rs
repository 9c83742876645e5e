//! From what size on how many threads pay, as this process decides: computed, or a profile's.

use crate::profile::{MOST_THREADS_LOG, PARALLEL, Parallel, Supply};
use cachewise_kernels::Operation;
use core::sync::atomic::{AtomicU64, Ordering};

/// No size pays.
pub(crate) const NEVER: u64 = u64::MAX;
/// Rows: an operation, with threads of its own or those of a pool.
const ROWS: usize = PARALLEL.len() * 2;

/// By row and by logarithm of the number of threads, rounded up: the smallest size that pays.
pub(crate) static LEAST: [[AtomicU64; MOST_THREADS_LOG + 1]; ROWS] = {
    let mut rows = [const { [const { AtomicU64::new(NEVER) }; MOST_THREADS_LOG + 1] }; ROWS];
    let mut row = 0;
    while row < ROWS {
        let mut log = 0;
        while log <= MOST_THREADS_LOG {
            rows[row][log] = AtomicU64::new(computed(row % 2, log));
            log += 1;
        }
        row += 1;
    }
    rows
};

/// Threshold without a profile. A thread of one's own costs some tens of microseconds, one woken
/// from a pool somewhat less, and each should have several times that to do. Nobody has measured
/// this machine, so the figures are such that a wrong one costs little.
const fn computed(supply: usize, log: usize) -> u64 {
    const TWO_SPAWNED: u64 = 8 << 20;
    const TWO_POOLED: u64 = 2 << 20;
    match log {
        0 => NEVER,
        _ if supply == Supply::Spawned as usize => TWO_SPAWNED << (log - 1),
        _ => TWO_POOLED << (log - 1),
    }
}

pub(crate) fn row(operation: Operation, supply: Supply) -> usize {
    2 * usize::from(operation == Operation::Zero) + supply as usize
}

/// The place of a number of threads: those between two powers of two share the larger's.
pub(crate) fn log_of(threads: usize) -> usize {
    (threads.max(1).next_power_of_two().ilog2() as usize).min(MOST_THREADS_LOG)
}

/// Follows a profile's lines; an operation and supply without any keep what is computed.
pub(crate) fn follow(lines: impl Iterator<Item = Parallel>) {
    let mut fresh = [[None; MOST_THREADS_LOG + 1]; ROWS];
    for Parallel { operation, supply, threads, from } in lines {
        let place = fresh.get_mut(row(operation, supply));
        if let Some(place) = place.and_then(|row| row.get_mut(log_of(threads as usize))) {
            *place = Some(from.unwrap_or(NEVER));
        }
    }
    for (row, (fresh, least)) in fresh.iter().zip(&LEAST).enumerate() {
        // A line about two threads says that more were not tried, or nothing about them.
        let told = fresh.iter().any(Option::is_some);
        for (log, (fresh, least)) in fresh.iter().zip(least).enumerate() {
            let otherwise = if told { NEVER } else { computed(row % 2, log) };
            least.store(fresh.unwrap_or(otherwise), Ordering::Relaxed);
        }
    }
}
