//! Facts about the machine as measured: above all the part of the LLC that is ours.

use super::operands::read;
use crate::seam::Facts;
use cachewise::profile::OPERATIONS;
use cachewise_host::Room;
use cachewise_kernels::{Function, Kernel, RegisterClass};
use cachewise_measure::after::{of_copies, shows_a_lower_clock};
use cachewise_measure::stats::median;
use cachewise_measure::{Arena, Clock, Latencies, Machine, MemoryBudget, PairedRatio};

/// Bytes that this process can have without pressing on others, from now on its budget's limit.
pub(super) fn limit_memory(asked: Option<usize>) -> usize {
    let free = usize::try_from(Room::of_process().available).unwrap_or(usize::MAX);
    limit(&MemoryBudget::process(), asked, free)
}

/// Limits a budget to half of what is free, within what it had.
fn limit(budget: &MemoryBudget, asked: Option<usize>, free: usize) -> usize {
    let limit = asked.unwrap_or(4 << 30).min(budget.limit()).min(free / 2);
    budget.set_limit(limit);
    limit
}

/// The facts: the latency of a line inside the LLC and in memory, and the knees of two curves over the
/// footprint, of latency and of bandwidth. What is ours of the LLC is the smaller of both. Without
/// `latencies`, for which there was too little memory, none of it is.
pub(super) fn facts(
    machine: &Machine,
    clock: &Clock,
    arena: &Arena,
    latencies: Option<&Latencies>,
    largest: usize,
) -> Facts {
    let caches = &machine.caches;
    let by_bandwidth = bandwidth_knee(&curve(clock, arena, 2 * caches.l2.bytes, caches.llc.bytes));
    let (by_latency, near_ns, dram_ns) = match latencies {
        Some(found) => (found.llc_bytes, found.llc, found.dram),
        None => (0, 0.0, 0.0),
    };
    Facts {
        l1: caches.l1d.bytes,
        l2: caches.l2.bytes,
        llc: caches.llc.bytes,
        llc_usable: by_bandwidth.map_or(by_latency, |knee| knee.min(by_latency)),
        near_ns,
        dram_ns,
        largest,
        below_libc: OPERATIONS.map(cachewise::below_libc),
        never: OPERATIONS.map(|of| {
            let (name, from) = cachewise::never_by_default(of)?;
            Some((name, usize::try_from(from).ok()?))
        }),
        hosts: 1,
    }
}

/// GB/s of reading a footprint over and over, for footprints from `least` in octaves to twice `most`,
/// as far as the arena goes; the last one stands for memory.
fn curve(clock: &Clock, arena: &Arena, least: usize, most: usize) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    let mut bytes = least;
    while bytes <= 2 * most && bytes <= arena.len() {
        // As many passes as read 64 MiB, three at least; the first one brings it there.
        let passes = (64 << 20) / bytes;
        read(arena.as_mut_ptr(), bytes);
        let times: Vec<f64> = (0..passes.clamp(3, 64))
            .map(|_| clock.time(|| read(arena.as_mut_ptr(), bytes)))
            .collect();
        found.push((bytes, bytes as f64 / median(&times)));
        bytes *= 2;
    }
    found
}

/// The largest footprint whose bandwidth is nearer to the first one's than to the last one's, which is
/// memory's; `None` where these differ by less than 1.2 and the curve has no knee.
fn bandwidth_knee(curve: &[(usize, f64)]) -> Option<usize> {
    let (near, memory) = (curve.first()?.1, curve.last()?.1);
    if near < 1.2 * memory {
        return None;
    }
    let fast = curve.iter().take_while(|(_, gbps)| gbps * gbps >= near * memory);
    fast.last().map(|(bytes, _)| *bytes)
}

/// Returns whether a string instruction copies by single bytes where the destination is a little above the source modulo
/// 4096. It then takes four times as long in a cache, and longer than libc in memory, which leaves such sizes to
/// vectors and whose operands are measured in no such places. Of the CPUs with a record, those that do take 13
/// times as long and more, the others 1.7 times at most (`aliasing`).
pub(super) fn copies_by_bytes(kernel: &Kernel, clock: &Clock, arena: &Arena) -> bool {
    let (Function::Copy(copy) | Function::Move(copy)) = kernel.function else { return false };
    if !kernel.technique().starts_with("rep.movs") {
        return false;
    }
    let took = |above: usize| {
        let src = arena.as_mut_ptr();
        let dst = src.wrapping_add(2 * STRING_COPY + above);
        let each = (0..5).map(|_| {
            clock.time(|| {
                // SAFETY: both lie in the arena and apart, and this CPU can run the kernel.
                unsafe { copy(dst, src, STRING_COPY) };
            })
        });
        each.fold(f64::INFINITY, f64::min)
    };
    let plain = took(2048);
    [1, 16].into_iter().any(|above| took(above) > 4.0 * plain)
}

/// Time ratio of integer work after a copy by vectors of 64 bytes than after one by integers, where
/// there are such vectors.
pub(super) fn after_wide_vectors(clock: &Clock, kernels: &[&Kernel]) -> Option<PairedRatio> {
    let wide = kernels.iter().find(|kernel| kernel.registers == RegisterClass::Zmm)?;
    let plain = cachewise_kernels::find("copy.gpr64")?;
    // SAFETY: this CPU can run those that compete, and integers.
    let turns = || unsafe { of_copies(clock, wide.function, plain.function) };
    let first = turns();
    // Somebody else's burst is not shown twice.
    Some(if shows_a_lower_clock(&first) { turns() } else { first })
}

/// Bytes of such a copy: a multiple of 4096, in the L2 of any CPU, and three of it fit into any arena.
const STRING_COPY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_bandwidth_leaves_the_cache() {
        let at = |gbps: &[f64]| {
            let curve: Vec<_> =
                gbps.iter().enumerate().map(|(index, gbps)| (1 << index, *gbps)).collect();
            bandwidth_knee(&curve)
        };
        assert_eq!(at(&[40.0, 39.0, 38.0, 12.0, 10.0]), Some(4));
        // A neighbour has half of it.
        assert_eq!(at(&[40.0, 25.0, 18.0, 12.0, 10.0]), Some(2));
        assert_eq!(at(&[11.0, 10.5, 10.0]), None, "no knee");
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn free_memory_is_told_and_kept_to() {
        const GIB: usize = 1 << 30;
        for (asked, had, free, most) in [
            (None, 64 * GIB, 2 * GIB, GIB),
            (None, 64 * GIB, 16 * GIB, 4 * GIB),
            (None, GIB / 2, 16 * GIB, GIB / 2),
            (Some(8 * GIB), 64 * GIB, 32 * GIB, 8 * GIB),
            (Some(8 * GIB), 64 * GIB, 2 * GIB, GIB),
            (Some(GIB), 64 * GIB, usize::MAX, GIB),
        ] {
            let budget = MemoryBudget::new(had);
            let limited = limit(&budget, asked, free);
            assert_eq!((limited, budget.limit()), (most, most), "{asked:?} of {free:?}");
        }
    }
}
