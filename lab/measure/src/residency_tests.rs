//! Slots lie where they should and come round in turn; verdicts follow from times alone.

use super::*;
use crate::{Caches, PagePolicy};
use std::collections::BTreeSet;

/// Caches of a machine with a last level of that size.
pub(crate) fn caches(llc: usize) -> Caches {
    let level = |bytes| crate::CacheLevel { bytes, shared_by: 1, source: "cpuid".into() };
    let (l1d, l2, llc) = (level(32 << 10), level(512 << 10), level(llc));
    Caches { l1d, l2, llc, llc_usable: None, notes: Vec::new() }
}

const LLC: usize = 8 << 20;

/// Placed, in an arena of its own.
pub(crate) fn operand(
    level: Level,
    size: usize,
    offset: usize,
    share: f64,
    caches: &Caches,
    seed: u64,
) -> Result<Operand, MeasureError> {
    let slots = Slots::placed(level, size, offset, share, caches)?;
    let arena = Arc::new(Arena::new(slots.bytes(), PagePolicy::Huge, seed)?);
    Operand::new(&arena, 0, slots, seed)
}

/// Reused, in an arena of so many bytes.
pub(crate) fn reused(arena: usize, from: usize, size: usize, caches: &Caches) -> Operand {
    let arena = Arc::new(Arena::new(arena, PagePolicy::Small, 1).expect("an arena"));
    let slots = Slots::reused(size, 0, caches).expect("slots");
    Operand::new(&arena, from, slots, 1).expect("an operand")
}

#[test]
fn levels_are_spelled_in_any_case() {
    for level in Level::ALL {
        assert_eq!(level.name().to_lowercase().parse(), Ok(level));
        let json = serde_json::to_string(&level).expect("JSON");
        assert_eq!(json, format!("\"{level}\""));
    }
    let refused = "L4".parse::<Level>().expect_err("no such level").to_string();
    assert_eq!(refused, "expected L1, L2, LLC or DRAM, found \"L4\"");
}

#[test]
fn slots_are_distinct_aligned_and_within_their_share() {
    for (level, size, offset, share) in [
        (Level::L1, 64, 0, 0.5),
        (Level::L1, 1, 3, 1.0),
        (Level::L1, 100, 200, 0.5),
        (Level::L2, 4096, 64, 0.5),
        (Level::L2, 5000, 1, 1.0),
        (Level::Llc, 1 << 20, 0, 0.5),
    ] {
        let operand = operand(level, size, offset, share, &caches(LLC), 5).expect("an operand");
        let allowed = (level.capacity(&caches(LLC)) as f64 * share) as usize;
        assert!(operand.slots() * operand.slots.lines * LINE <= allowed, "{level} {size}");
        let mut starts = BTreeSet::new();
        let arena = operand.arena.as_mut_ptr() as usize;
        let modulus = if size >= 4096 { 4096 } else { LINE };
        for ahead in 0..operand.slots() {
            let slot = operand.visit(ahead) as usize;
            assert_eq!(slot % modulus, offset % modulus, "{level} {size} {offset}");
            assert!(slot >= arena && slot + size <= arena + operand.arena.len());
            assert!(starts.insert(slot / LINE), "a line in two slots");
        }
        assert_eq!(operand.visit(0), operand.visit(operand.slots()), "and round again");
    }
}

#[test]
fn memory_operands_cover_four_times_the_cache() {
    for size in [1, 64, 5000, 1 << 20, 24 << 20] {
        for offset in [0, 7, 2048] {
            let slots = Slots::placed(Level::Dram, size, offset, 0.5, &caches(LLC)).expect("fits");
            let lines = slots.count * slots.lines * LINE;
            assert!(lines >= caches(LLC).dram_bytes() / 2, "{size} at {offset}: {lines}");
            assert!(slots.count >= 2);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let placed =
        |level, size: usize, share: f64| Slots::placed(level, size, 0, share, &caches(LLC));
    let refused = placed(Level::L1, 20 << 10, 0.5).expect_err("too large").to_string();
    assert_eq!(
        refused,
        "20480 bytes, alignment included, do not fit the share of L1, which is 12288 bytes"
    );
    for (size, share) in [(usize::MAX, 0.5), (8, 0.0), (8, f64::NAN)] {
        assert!(placed(Level::L1, size, share).is_err(), "{size} {share}");
    }
    assert!(Slots::reused(usize::MAX, 0, &caches(LLC)).is_err());
    let arena = Arc::new(Arena::new(1, PagePolicy::Default, 1).expect("an arena"));
    let at = |from| Operand::new(&arena, from, placed(Level::L2, 64, 0.5).expect("slots"), 1);
    assert!(at(0).is_ok() && at(1 << 20).is_ok());
    assert!(at(64).is_err() && at(2 << 20).is_err() && at(usize::MAX).is_err());
}

#[test]
fn a_reused_operand_is_one_slot_left_alone() {
    let arena = Arc::new(Arena::new(1 << 20, PagePolicy::Default, 1).expect("an arena"));
    let slots = Slots::reused(100, 521, &caches(LLC)).expect("slots");
    let mut operand = Operand::new(&arena, 4096, slots, 1).expect("fits");
    assert!(operand.is_reused() && operand.slots() == 1);
    assert_eq!(operand.visit(0) as usize - arena.as_mut_ptr() as usize, 4096 + 521);
    assert_eq!((operand.visit(0), operand.level()), (operand.visit(5), Level::L1));
    // SAFETY: the slot is inside the arena.
    let first = || unsafe { arena.as_mut_ptr().wrapping_add(4096 + 521).read() };
    let before = first();
    for _ in 0..8 {
        operand.prepare(1, Access::Write);
        assert_eq!(first(), before);
    }
    let large = Slots::reused(2 << 20, 1, &caches(LLC)).expect("slots");
    assert!(Operand::new(&arena, 0, large, 1).is_err());
}

#[test]
fn preparing_a_written_operand_changes_every_byte_of_the_slot_and_no_other() {
    for (level, size, offset) in
        [(Level::L1, 100, 5), (Level::L1, 3, 1), (Level::L2, 4096, 64), (Level::Dram, 1 << 20, 0)]
    {
        let mut operand = operand(level, size, offset, 1.0, &caches(LLC), 5).expect("fits");
        let slot = operand.visit(0);
        // SAFETY: the slot is that long, and lives as long as the operand.
        let bytes = || unsafe { std::slice::from_raw_parts(slot, size) }.to_vec();
        let mut differs = vec![false; size];
        let first = bytes();
        for _ in 0..8 {
            operand.prepare(1, Access::Write);
            for (differs, (now, before)) in differs.iter_mut().zip(bytes().iter().zip(&first)) {
                assert_ne!(*now, 0);
                *differs |= now != before;
            }
        }
        let changed = differs.iter().filter(|differs| **differs).count();
        assert!(changed * 10 >= size * 9, "{level}: {changed} of {size} bytes changed");
        let before = bytes();
        operand.prepare(1, Access::Read);
        assert_eq!(bytes(), before);
    }
}

#[test]
fn keeping_a_multiple_keeps_a_permutation() {
    let mut operand = operand(Level::L1, 64, 0, 1.0, &caches(LLC), 5).expect("fits");
    let slots = operand.slots();
    operand.keep_multiple_of(7);
    assert_eq!(operand.slots(), slots / 7 * 7);
    let distinct: BTreeSet<_> = (0..operand.slots()).map(|ahead| operand.visit(ahead)).collect();
    assert_eq!(distinct.len(), operand.slots());
}

#[test]
fn verdicts_follow_from_times() {
    let latencies = Latencies { l1: 1.0, l2: 4.0, llc: 16.0, dram: 100.0, llc_bytes: 4 << 20 };
    let judge = |level, found| Proof::judge(level, found, &latencies, true);
    assert_eq!(judge(Level::Dram, 90.0).verdict, ProofVerdict::Proved);
    let cached = judge(Level::Dram, 16.0);
    assert_eq!(cached.verdict, ProofVerdict::Failed);
    assert_eq!(cached.text, "DRAM not proved: 16.0 ns a line, expected 40.0 to 1000.0 ns");
    assert_eq!(judge(Level::L1, 5.0).verdict, ProofVerdict::Failed);
    let flat = Latencies { dram: 17.0, ..latencies };
    let doubtful = Proof::judge(Level::Dram, 17.0, &flat, true);
    assert_eq!(doubtful.verdict, ProofVerdict::Doubtful);
    let worst = Proof::worst(&[judge(Level::Dram, 90.0), cached.clone()]).expect("one");
    assert_eq!(worst.verdict, ProofVerdict::Failed);
    assert!(worst.text.ends_with("(1 of 2 probes proved)"), "{}", worst.text);
    assert_eq!(Proof::worst(&[]), None);
}

#[test]
fn probing_looks_at_the_next_slots_and_passes_over_them_in_memory() {
    let clock = Clock::calibrate();
    let real = crate::Machine::describe().caches;
    let mut near = operand(Level::L1, 64, 0, 0.5, &real, 5).expect("fits");
    near.prepare(1, Access::Read);
    let (proof, passed) = near.prove(&clock);
    assert!(proof.nanoseconds_per_line > 0.0 && !proof.text.is_empty());
    assert_eq!(passed, 0);
    let far = operand(Level::Dram, 64, 0, 0.25, &real, 5).expect("fits");
    assert_eq!(far.prove(&clock).1, 8 * PROBED);
}
