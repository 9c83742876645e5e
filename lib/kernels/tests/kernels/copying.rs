//! Copy and move, every kernel: lengths x alignments x page edges x overlaps.

use crate::lengths::{self, ALIGNMENTS, DENSE, Edge};
use crate::runner::{Effort, each_kernel, random_for};
use crate::support::Checked;
use crate::support::arena::{Arena, MARGIN};
use cachewise_kernels::kernel::CopyFn;
use cachewise_kernels::{Function, Kernel, Operation};

#[test]
fn every_copy_kernel_copies() {
    each_kernel(Operation::Copy, |kernel, arena, effort| {
        let Function::Copy(f) = kernel.function else { unreachable!("the operation is copy") };
        copies(kernel, f, arena, effort)
    });
}

#[test]
fn every_move_kernel_copies_and_moves() {
    each_kernel(Operation::Move, |kernel, arena, effort| {
        let Function::Move(f) = kernel.function else { unreachable!("the operation is move") };
        copies(kernel, f, arena, effort)?;
        moves(kernel, f, arena, effort)
    });
}

/// Between buffers that do not overlap.
fn copies(kernel: &'static Kernel, f: CopyFn, arena: &mut Arena, effort: Effort) -> Checked {
    let mut random = random_for(kernel);
    // Inside the room, canaries around: first all pairs of alignments at the core lengths ...
    for n in lengths::core(effort) {
        for d in 0..ALIGNMENTS {
            for s in 0..ALIGNMENTS {
                arena.copy(kernel, f, MARGIN + d, MARGIN + s, n)?;
            }
        }
        arena.source_intact(MARGIN..MARGIN + ALIGNMENTS + n)?;
    }
    // ... then all lengths at all destination alignments, with sampled sources.
    for n in lengths::dense(effort) {
        for d in (0..ALIGNMENTS).step_by(effort.pick(5, 1, 1)) {
            for s in lengths::partners(&mut random, d) {
                arena.copy(kernel, f, MARGIN + d, MARGIN + s, n)?;
            }
        }
        arena.source_intact(MARGIN..MARGIN + ALIGNMENTS + n)?;
    }
    // Against the guard pages.
    let room = arena.room();
    for n in (0..=DENSE).chain(lengths::large(effort, &mut random)) {
        let (destinations, sources) = (Edge::sample(&mut random), Edge::sample(&mut random));
        // Short buffers at all pairs of edges; of long ones two, the exact ends always among them.
        let pairs = if n <= DENSE { 4 } else { 1 };
        for (at, destination) in destinations.into_iter().enumerate().take(pairs) {
            for source in sources.into_iter().take(pairs) {
                arena.copy(kernel, f, destination.offset(room, n), source.offset(room, n), n)?;
            }
            let source = sources[at].offset(room, n);
            arena.source_intact(source..source + n)?;
        }
        if n > DENSE {
            let d = MARGIN + random.usize(0..ALIGNMENTS);
            let s = MARGIN + random.usize(0..ALIGNMENTS);
            arena.copy(kernel, f, d, s, n)?;
        }
    }
    Ok(())
}

/// Within one buffer, overlapping by every distance.
fn moves(kernel: &'static Kernel, f: CopyFn, arena: &mut Arena, effort: Effort) -> Checked {
    /// Two cache lines and a little: beyond, the distance exceeds every unrolled step's overlap.
    const NEAR: isize = 130;
    let mut random = random_for(kernel);
    let inside = MARGIN + NEAR as usize;
    for n in (0..=600).step_by(effort.pick(5, 1, 1)) {
        for distance in -NEAR..=NEAR {
            let from = inside + random.usize(0..ALIGNMENTS);
            arena.r#move(kernel, f, from.strict_add_signed(distance), from, n)?;
        }
    }
    for n in lengths::core(effort).step_by(effort.pick(2, 4, 4)) {
        for distance in [-65isize, -64, -63, -32, -16, -8, -1, 1, 8, 16, 31, 32, 33, 63, 64, 96] {
            for alignment in 0..ALIGNMENTS {
                let from = inside + alignment;
                arena.r#move(kernel, f, from.strict_add_signed(distance), from, n)?;
            }
        }
    }
    // Longer lengths, longer distances, and the region that both buffers cover against an edge.
    let room = arena.room();
    let short = (0..=DENSE).step_by(effort.pick(31, 3, 1));
    for n in short.chain(lengths::large(effort, &mut random)) {
        let half = n / 2;
        let distances = [
            1,
            random.usize(1..=256),
            random.usize(1..=n.max(1)),
            64,
            half,
            n.saturating_sub(1),
            4095,
            4096,
            4097,
        ];
        // The longest lengths take milliseconds a call: two distances each are enough there.
        let taken = if n > 256 << 10 { 2 } else { distances.len() };
        for distance in distances.into_iter().take(taken) {
            let span = n + distance;
            if span > room {
                continue;
            }
            for edge in [Edge::End(0), Edge::Start(0)] {
                let low = edge.offset(room, span);
                arena.r#move(kernel, f, low + distance, low, n)?;
                arena.r#move(kernel, f, low, low + distance, n)?;
            }
        }
    }
    Ok(())
}
