//! The page allocator by itself: against a model, exhaustively for small ones, and after a death at
//! any moment.

use crate::frames;
use crate::support::{Model, replay};
use cachewise_pages::buddy::{
    Buddy, Core, Frame, FreeError, MAX_ORDER, State, Use, Wanted, halve_cached, run_parts,
    split_cached,
};
use proptest::prelude::*;
use std::path::Path;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn it_does_what_the_model_does(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        replay(&bytes);
    }

    #[test]
    fn runs_tile_exactly(first in 0u32..1 << 19, count in 1u32..1 << 19) {
        let mut next = first;
        for (part, order) in run_parts(first, count) {
            prop_assert_eq!(part, next);
            prop_assert_eq!(part & ((1 << order) - 1), 0, "aligned to its own size");
            next = part + (1 << order);
        }
        prop_assert_eq!(next, first + count);
    }
}

fn corpus() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/buddy")
}

#[test]
fn the_fuzzers_corpus_replays() {
    let mut files = 0;
    for entry in std::fs::read_dir(corpus()).expect("a corpus folder") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a readable file");
        replay(&bytes);
        files += 1;
    }
    assert!(files >= 10, "buddy has {files} corpus files, its seeds are missing");
}

#[test]
fn every_size_and_order_takes_all_and_gives_all_back() {
    for count in 1..=70u32 {
        for max_order in 0..=6 {
            for order in 0..=max_order {
                let (mut core, frames) = (Core::new(max_order), frames(count as usize));
                let mut buddy = Buddy::new(&mut core, &frames);
                assert_eq!(buddy.extend(count + 5, State::ZeroResident, 0), count);
                let mut taken = Vec::new();
                while let Some(index) = buddy.take(order, State::ZeroResident) {
                    assert_eq!(index & ((1 << order) - 1), 0);
                    taken.push(index);
                }
                assert_eq!(taken.len() as u32, count >> order, "{count} frames, order {order}");
                buddy.check().expect("sound");
                for index in taken {
                    buddy.free(index, order, State::ZeroResident, 0).expect("ours");
                }
                let counts = buddy.check().expect("sound");
                assert_eq!(counts.zero_resident, u64::from(count));
            }
        }
    }
}

#[test]
fn runs_of_every_length_leave_the_rest() {
    for count in 1..=64u32 {
        buddy!(buddy, frames: 6, 64; 64 of State::ZeroResident);
        let order = cachewise_pages::buddy::order_for(count);
        let index = buddy.take(order, State::ZeroResident).expect("all is free");
        buddy.shrink_resident(index, order, (count, 1 << order), 0).expect("ours");
        let counts = buddy.check().expect("sound");
        assert_eq!((counts.out, counts.zero_resident), (u64::from(count), u64::from(64 - count)));
        if count > 1 {
            let shorter = buddy.free_run(index, count - 1, State::Dirty, 0);
            assert!(shorter.is_err() || !count.is_multiple_of(2), "another length: {shorter:?}");
            if shorter.is_ok() {
                continue;
            }
        }
        buddy.free_run(index, count, State::ZeroResident, 0).expect("ours");
        let counts = buddy.check().expect("sound");
        assert_eq!(counts.zero_resident, 64);
        assert_eq!(buddy.core().blocks(State::ZeroResident, 6), 1, "all of it merged again");
    }
}

#[test]
fn absent_memory_is_taken_ahead_in_the_portion_asked_for_or_the_largest_below() {
    let (mut core, frames) = (Core::new(4), frames(16));
    let mut buddy = Buddy::new(&mut core, &frames);
    assert_eq!(buddy.take_absent(2), None);
    assert_eq!(buddy.take_cached_of(State::ZeroAbsent, 0, 1, &mut [0]), 0);
    assert_eq!(buddy.take(40, State::ZeroAbsent), None);
    buddy.extend(6, State::ZeroAbsent, 0);
    assert_eq!(buddy.take_absent(1), Some((4, 1)));
    assert_eq!(buddy.take_absent(3), Some((0, 2)), "there is no larger one");
    assert_eq!(buddy.take_absent(0), None);
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.in_flight, counts.zero_absent), (6, 0));
    buddy.land(0, 2, State::ZeroResident, 0).expect("in flight");
    buddy.land(4, 1, State::ZeroAbsent, 0).expect("in flight");
    assert!(buddy.all_resident(0, 2) && !buddy.all_resident(0, 3));
    // An absent frame anywhere among those that are managed.
    for absent in 0..6 {
        buddy!(buddy, frames: 3, 8; 6 of State::Dirty);
        while buddy.take(0, State::Dirty).is_some() {}
        assert!(buddy.all_resident(0, 3));
        buddy.free(absent, 0, State::ZeroAbsent, 0).expect("ours");
        assert!(!buddy.all_resident(0, 3), "{absent}");
    }
}

/// Some frames of an absent block were made resident: a run is kept, what follows it is zero.
#[test]
fn an_absent_block_cut_down_to_a_run_has_the_rest_in_its_states() {
    for kept in 1..=16u32 {
        for there in kept..=16 {
            buddy!(buddy, frames: 4, 16; 16 of State::ZeroAbsent);
            let index = buddy.take(4, State::ZeroAbsent).expect("all");
            for wrong in [(0, there), (there + 1, there), (kept, 17)] {
                let refused = buddy.shrink_resident(index, 4, wrong, 0);
                assert_eq!(refused, Err(FreeError::WrongOrder { actual: 4 }), "{wrong:?}");
            }
            buddy.shrink_resident(index, 4, (kept, there), 0).expect("ours");
            let counts = buddy.check().expect("sound");
            let found = (counts.out, counts.zero_resident, counts.zero_absent);
            let wanted = (kept, there - kept, 16 - there);
            assert_eq!(
                found,
                (wanted.0.into(), wanted.1.into(), wanted.2.into()),
                "{kept} {there}"
            );
            buddy.free_run(index, kept, State::ZeroAbsent, 0).expect("a run of that length");
            buddy.check().expect("sound");
        }
    }
}

/// However many there are and however far apart: neighbours merge, and what is not cached so is left.
#[test]
fn cached_blocks_are_taken_back_all_at_once() {
    let all: fn(u32) -> bool = |_| true;
    for (cached, largest, zero) in [
        (all, 6, false),
        (|frame| frame % 2 == 0, 0, true),
        (|frame| frame % 4 < 2, 1, false),
        (|frame| frame % 5 != 0, 2, true),
        (|frame| frame != 1, 5, false),
        (|frame| (8..24).contains(&frame), 3, true),
        // The one that is beside another comes when as many wait as there is room for.
        (|frame| (frame < 38 && frame % 2 == 0) || matches!(frame, 39 | 40), 0, false),
        (|_| false, 0, false),
    ] {
        buddy!(buddy, frames: 6, 64; 64 of State::Dirty);
        while buddy.take(0, State::Dirty).is_some() {}
        let mut number = 0;
        for frame in (0..64).filter(|frame| cached(*frame)) {
            frames[frame as usize].cache(0, zero).expect("allocated");
            number += 1;
        }
        let mut blocks: Vec<u32> = (0..64).rev().collect();
        assert_eq!(buddy.free_cached_all(&mut blocks, 0, zero, 100), (largest, 64 - number));
        let counts = buddy.check().expect("sound");
        let free = if zero { counts.zero_resident } else { counts.dirty };
        assert_eq!((free, counts.out), (number as u64, 64 - number as u64), "{largest}");
        // As old as they are now.
        let soonest = (number > 0 && !zero).then_some(30);
        assert_eq!(buddy.next_to_zero(0, 50, 120), soonest);
    }
}

/// No more than a block may have is taken together, and what is named twice is taken once.
#[test]
fn cached_blocks_beside_each_other_are_as_many_as_a_block_may_have() {
    buddy!(buddy, frames: 2, 12; 12 of State::ZeroResident);
    let mut pieces = [0; 6];
    let state = State::ZeroResident;
    assert_eq!(buddy.take_cached_of(State::ZeroAbsent, 1, 6, &mut pieces), 0);
    assert_eq!(buddy.take_cached_of(state, 1, 5, &mut pieces), 3, "four, four, and two frames");
    assert_eq!(split_cached(&frames, 1, &mut pieces[..4], 3), 0, "no room for five");
    assert_eq!(split_cached(&frames, 1, &mut pieces[..5], 3), 5);
    assert_eq!(buddy.take_cached_of(state, 1, 5, &mut pieces[5..]), 1, "two are left");
    let mut twice: Vec<u32> = [10, 2, 2, 4, 8, 6, 10].into();
    assert_eq!(buddy.free_cached_all(&mut twice, 1, true, 0), (2, 2));
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.zero_resident, counts.out), (10, 2));
    assert_eq!(buddy.free_cached_all(&mut [0], 1, true, 0), (2, 0));
    assert_eq!(buddy.core().blocks(State::ZeroResident, 2), 3);
    buddy.check().expect("sound");
}

/// Dirty is worse than absent, and absent than resident, whichever comes first.
#[test]
fn a_block_of_buddies_in_different_states_is_as_good_as_the_worst() {
    let (dirty, there, absent) = (State::Dirty, State::ZeroResident, State::ZeroAbsent);
    for (lower, upper, worst) in [
        (there, absent, absent),
        (absent, there, absent),
        (absent, dirty, dirty),
        (dirty, absent, dirty),
        (there, dirty, dirty),
        (dirty, there, dirty),
    ] {
        buddy!(buddy, frames: 1, 2; 1 of lower);
        buddy.extend(1, upper, 0);
        let run = buddy.take_any_run(&Wanted::frames(2)).map(|run| (run.first, run.state));
        assert_eq!(run, Some((0, worst)), "{lower:?}, {upper:?}");
        // The taker will overwrite zeroed memory.
        let wasted = [lower, upper].contains(&there);
        assert_eq!(buddy.core().wasted(), u64::from(wasted));
        buddy.check().expect("sound");
    }
}

/// The forerunner's lists of zeroed and other pages never met: a large block could not be had
/// though all of it was free (design: "zeroed and dirty buddies never merged").
#[test]
fn a_zero_and_a_dirty_buddy_merge_when_a_larger_block_is_needed_and_not_before() {
    buddy!(buddy, frames: 4, 16; 16 of State::ZeroResident);
    let low = buddy.take(3, State::ZeroResident).expect("half");
    buddy.free(low, 3, State::Dirty, 0).expect("ours");
    assert_eq!(buddy.core().blocks(State::Dirty, 3), 1, "not before");
    assert_eq!(buddy.core().wasted(), 0);
    for state in State::ALL {
        assert_eq!(buddy.take(4, state), None);
    }
    let run = buddy.take_any_run(&Wanted::frames(16)).expect("both halves");
    assert_eq!((run.first, run.state, run.absent), (0, State::Dirty, (16, 16)));
    assert_eq!(buddy.core().wasted(), 8, "the zeroing of half of it was for nothing");
    buddy.check().expect("sound");
}

/// The part of a run that was zeroed in vain does not depend on the blocks that the run is made of.
#[test]
fn wasted_is_what_the_taker_overwrites_or_what_is_zeroed_once_more() {
    let (dirty, there) = (State::Dirty, State::ZeroResident);
    for (states, zeroed, length, wasted) in [
        ([there, there, there, dirty], false, 4, 3),
        ([there, there, there, dirty], false, 3, 3),
        ([there, there, there, dirty], true, 4, 0),
        ([there, dirty, there, dirty], true, 4, 1),
        ([there, dirty, there, dirty], true, 3, 0),
        ([dirty, there, there, dirty], true, 4, 2),
        ([dirty, there, there, dirty], true, 3, 0),
        ([there, dirty, dirty, there], false, 3, 1),
        ([there, dirty, dirty, there], true, 4, 0),
        ([dirty, dirty, dirty, dirty], false, 4, 0),
    ] {
        let (mut core, frames) = (Core::new(2), frames(4));
        let mut buddy = Buddy::new(&mut core, &frames);
        states.iter().for_each(|state| assert_eq!(buddy.extend(1, *state, 0), 1));
        let wanted = Wanted { zeroed, ..Wanted::frames(length) };
        let run = buddy.take_any_run(&wanted).expect("all of it is free");
        assert_eq!(run.first, 0);
        assert_eq!(buddy.core().wasted(), wasted, "{states:?}, {zeroed}, {length}");
        buddy.check().expect("sound");
    }
}

#[test]
fn idle_memory_goes_whole_though_its_parts_are_in_different_states() {
    buddy!(buddy, frames: 3, 16; 16 of State::ZeroResident);
    let whole = buddy.take(3, State::ZeroResident).expect("eight");
    let kept = buddy.take(0, State::ZeroResident).expect("one of the other eight");
    buddy.shrink_resident(whole, 3, (5, 8), 100).expect("ours");
    buddy.free_run(whole, 5, State::Dirty, 100).expect("ours");
    assert_eq!(buddy.take_idle((3, 3), 50, 120), Err(Some(30)), "used lately");
    assert_eq!(buddy.take_idle((3, 3), 50, 151), Ok((whole, 3)), "five dirty, three zero");
    assert_eq!(buddy.take_idle((3, 3), 50, 1000), Err(None), "one frame is in use");
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.in_flight, counts.out), (8, 1));
    buddy.land(whole, 3, State::ZeroAbsent, 200).expect("in flight");
    buddy.free(kept, 0, State::Dirty, 200).expect("ours");
    let other = buddy.take_idle((3, 3), 0, 200).expect("one dirty, seven zero");
    assert_eq!(other, (kept & !7, 3));
    buddy.land(other.0, 3, State::ZeroAbsent, 200).expect("in flight");
    assert_eq!(buddy.take_idle((0, 3), 0, 200), Err(None), "absent memory is not there to return");
    buddy.check().expect("sound");
}

/// Sixteen frames in fours: each is dirty or zero since a moment, or in use.
fn fours<'a>(
    core: &'a mut Core,
    frames: &'a [Frame],
    fours: [Option<(State, u32)>; 4],
) -> Buddy<'a> {
    let mut buddy = Buddy::new(core, frames);
    buddy.extend(16, State::Dirty, 0);
    while buddy.take(2, State::Dirty).is_some() {}
    for (at, free) in (0..).zip(fours) {
        if let Some((state, since)) = free {
            buddy.free(4 * at, 2, state, since).expect("ours");
        }
    }
    buddy
}

#[test]
fn what_is_returned_is_the_largest_and_of_those_the_dirty_one_and_the_oldest() {
    let (dirty, zero) = (State::Dirty, State::ZeroResident);
    for (given, now, expected) in [
        // The largest, whatever its state; among as large ones the dirty one; of those the oldest.
        ([Some((zero, 0)), Some((zero, 0)), Some((dirty, 0)), None], 0, (0, 2, zero)),
        ([Some((zero, 0)), None, Some((dirty, 9)), None], 9, (8, 2, dirty)),
        ([Some((dirty, 9)), None, Some((dirty, 5)), None], 9, (0, 2, dirty)),
        ([Some((dirty, 5)), None, None, Some((zero, 5))], 9, (0, 2, dirty)),
        ([None, None, None, Some((zero, 5))], 9, (12, 2, zero)),
    ] {
        let (mut core, frames) = (Core::new(3), frames(16));
        let mut buddy = fours(&mut core, &frames, given);
        assert_eq!(buddy.take_to_trim(0, 2), Some(expected), "{given:?}, {now}");
        buddy.check().expect("sound");
        // The same where nothing has to be idle.
        let (mut core, other) = (Core::new(3), self::frames(16));
        let mut buddy = fours(&mut core, &other, given);
        assert_eq!(buddy.take_idle((0, 2), 0, now), Ok((expected.0, expected.1)));
        let counts = buddy.check().expect("sound");
        assert_eq!(counts.in_flight, 4, "{given:?}");
    }
    for (orders, expected) in
        [((0, 1), (0, 1)), ((2, 0), (0, 2)), ((1, 0), (0, 1)), ((0, 9), (0, 3))]
    {
        let (mut core, frames) = (Core::new(3), frames(16));
        let mut buddy = fours(&mut core, &frames, [Some((dirty, 0)), Some((dirty, 0)), None, None]);
        let taken = buddy.take_to_trim(orders.0, orders.1).map(|(at, order, _)| (at, order));
        assert_eq!(taken, Some(expected), "{orders:?}");
    }
    let (mut core, frames) = (Core::new(3), frames(16));
    let mut buddy = fours(&mut core, &frames, [Some((dirty, 0)), None, None, None]);
    assert_eq!(buddy.take_to_trim(3, 3), None, "none is as large");
}

/// Memory used lately is left, and the time of the next one is returned: the first of all.
#[test]
fn what_was_used_lately_is_not_returned() {
    let (dirty, zero) = (State::Dirty, State::ZeroResident);
    for (given, now, expected) in [
        ([Some((dirty, 100)), None, Some((zero, 90)), None], 120, Err(Some(20))),
        ([Some((dirty, 90)), None, Some((zero, 100)), None], 120, Err(Some(20))),
        ([Some((dirty, 100)), None, Some((zero, 90)), None], 140, Ok((8, 2))),
        ([Some((dirty, 100)), Some((dirty, 100)), Some((dirty, 90)), None], 141, Ok((8, 2))),
        ([Some((dirty, 100)), Some((dirty, 100)), Some((dirty, 90)), None], 120, Err(Some(20))),
        ([Some((dirty, 90)), Some((dirty, 90)), Some((zero, 100)), None], 120, Err(Some(20))),
        // On a clock that is behind another's, nothing has any age.
        ([Some((dirty, 100)), None, None, None], 99, Err(Some(50))),
        ([None; 4], 120, Err(None)),
    ] {
        let (mut core, frames) = (Core::new(3), frames(16));
        let mut buddy = fours(&mut core, &frames, given);
        assert_eq!(buddy.take_idle((2, 2), 50, now), expected, "{given:?}, {now}");
        buddy.check().expect("sound");
    }
    let (mut core, frames) = (Core::new(3), frames(16));
    let mut buddy = fours(&mut core, &frames, [Some((dirty, 100)), None, None, None]);
    assert_eq!((buddy.next_to_zero(0, 1, 99), buddy.take_to_zero(0, 2, 1, 99)), (Some(1), None));
    assert_eq!(buddy.next_to_zero(2, 1, 101), Some(0));
    assert_eq!(buddy.next_to_zero(3, 1, 101), None, "none is as large");
    assert_eq!(buddy.next_to_zero(0, 50, 999), Some(0));
}

/// A group is as old as what was used last of it, and the oldest one goes.
#[test]
fn of_groups_in_different_states_the_idle_one_goes() {
    let (dirty, zero) = (State::Dirty, State::ZeroResident);
    // A block that is in no group lies before those that are, on both lists.
    for (given, now, expected) in [
        ([(dirty, 0), (zero, 90), (zero, 90), (dirty, 100)], 120, Err(Some(20))),
        ([(dirty, 90), (zero, 100), (zero, 80), (dirty, 90)], 120, Err(Some(20))),
        ([(dirty, 90), (zero, 100), (zero, 80), (dirty, 90)], 140, Ok((8, 3))),
        ([(dirty, 100), (zero, 90), (zero, 100), (dirty, 90)], 149, Err(Some(1))),
        ([(dirty, 100), (zero, 90), (zero, 100), (dirty, 100)], 150, Ok((0, 3))),
    ] {
        let (mut core, frames) = (Core::new(3), frames(32));
        let mut buddy = Buddy::new(&mut core, &frames);
        buddy.extend(32, dirty, 0);
        while buddy.take(2, dirty).is_some() {}
        for (index, state) in [(16, dirty), (24, zero)] {
            buddy.free(index, 2, state, 0).expect("ours");
        }
        for (at, (state, since)) in (0..).zip(given) {
            buddy.free(4 * at, 2, state, since).expect("ours");
        }
        assert_eq!(buddy.take_idle((3, 3), 50, now), expected, "{given:?}, {now}");
        buddy.check().expect("sound");
    }
    // A group that ends behind the last frame is none.
    buddy!(buddy, frames: 3, 4; 2 of zero);
    buddy.extend(2, dirty, 0);
    assert_eq!(buddy.take_idle((3, 3), 0, 0), Err(None));
    assert_eq!(buddy.take_idle((2, 2), 0, 0), Ok((0, 2)));
}

#[test]
fn what_is_withdrawn_is_nobodys_until_that_ends() {
    buddy!(buddy, frames: 2, 8; 8 of State::Dirty);
    let index = buddy.take(1, State::Dirty).expect("two");
    assert_eq!(buddy.end_quarantine(index, 1, 0), Err(FreeError::DoubleFree), "it is in use");
    assert_eq!(buddy.quarantine_allocated(index, 1), Ok(()));
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.quarantined, counts.out, counts.dirty), (2, 0, 6));
    assert_eq!(buddy.quarantine_allocated(index, 1), Err(FreeError::DoubleFree));
    assert_eq!(buddy.free(index, 1, State::Dirty, 0), Err(FreeError::DoubleFree));
    assert_eq!(buddy.end_quarantine(index, 0, 0), Err(FreeError::WrongOrder { actual: 1 }));
    assert_eq!(buddy.end_quarantine(index, 1, 0), Ok(2));
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.quarantined, counts.dirty), (0, 8));
}

/// The forerunner took blocks in flight out of the lists and left them in the counts.
#[test]
fn a_block_in_flight_is_in_no_list_and_in_one_count() {
    buddy!(buddy, frames: 4, 16; 16 of State::Dirty);
    let (index, order) = buddy.take_to_zero(0, 2, 0, 10).expect("dirty and idle");
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.in_flight, counts.dirty), (4, 12));
    let blocks: u32 = (0..=4).map(|order| buddy.core().blocks(State::Dirty, order) << order).sum();
    assert_eq!(blocks, 12);
    assert_eq!(buddy.land(index, order, State::ZeroResident, 10), Ok(2));
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.in_flight, counts.zero_resident), (0, 4));
    assert!(buddy.land(index, order, State::ZeroResident, 10).is_err(), "only once");
}

#[test]
fn zeroing_begins_with_the_highest_order_and_leaves_what_was_used_lately() {
    buddy!(buddy, frames: 4, 32; 32 of State::ZeroResident);
    let small = buddy.take(0, State::ZeroResident).expect("one");
    let large = buddy.take(4, State::ZeroResident).expect("large");
    buddy.free(small, 0, State::Dirty, 100).expect("ours");
    buddy.free(large, 4, State::Dirty, 150).expect("ours");
    assert_eq!(buddy.next_to_zero(0, 50, 120), Some(30));
    assert_eq!(buddy.take_to_zero(0, 4, 50, 149), None);
    assert_eq!(buddy.take_to_zero(0, 4, 50, 160), Some((small, 0)), "the large one is young");
    assert_eq!(buddy.take_to_zero(0, 2, 50, 200), Some((large, 2)), "a chunk of it");
    assert_eq!(buddy.take_to_zero(4, 2, 50, 200), None, "none of that order is whole");
    assert_eq!(buddy.next_to_zero(4, 50, 200), None);
}

#[test]
fn the_most_recently_used_block_is_handed_out_first() {
    buddy!(buddy, frames: 0, 8; 8 of State::Dirty);
    let taken: Vec<_> = (0..8).map(|_| buddy.take(0, State::Dirty).expect("one")).collect();
    for index in [taken[2], taken[5], taken[3]] {
        buddy.free(index, 0, State::Dirty, 1).expect("ours");
    }
    assert_eq!(buddy.take(0, State::Dirty), Some(taken[3]));
    assert_eq!(buddy.take_to_zero(0, 0, 0, 9), Some((taken[2], 0)), "the oldest is zeroed first");
}

#[test]
fn every_wrong_free_has_its_own_answer() {
    buddy!(buddy, frames: 4, 16; 16 of State::Dirty);
    let index = buddy.take(2, State::Dirty).expect("four");
    let free = |buddy: &mut Buddy<'_>, index, order| buddy.free(index, order, State::Dirty, 0);
    assert_eq!(free(&mut buddy, 99, 0), Err(FreeError::Foreign));
    assert_eq!(free(&mut buddy, index + 1, 1), Err(FreeError::Misaligned));
    assert_eq!(free(&mut buddy, index, 40), Err(FreeError::Misaligned));
    assert_eq!(free(&mut buddy, index + 1, 0), Err(FreeError::Interior));
    assert_eq!(free(&mut buddy, index, 1), Err(FreeError::WrongOrder { actual: 2 }));
    assert_eq!(free(&mut buddy, index, 2), Ok(4));
    assert_eq!(free(&mut buddy, index, 2), Err(FreeError::DoubleFree));
    assert_eq!(free(&mut buddy, index + 1, 0), Err(FreeError::DoubleFree), "merged since");
}

#[test]
fn what_is_no_run_is_not_taken_back_as_one() {
    buddy!(buddy, frames: 4, 32; 16 of State::Dirty);
    let whole = buddy.take(4, State::Dirty).expect("sixteen");
    buddy.extend(16, State::Dirty, 0);
    while buddy.take(0, State::Dirty).is_some() {}
    let single = 16;
    // None, one that is longer than the largest block, and a power of two that ends in other hands.
    for (index, frames) in [(whole, 0), (0, 17), (single - 1, 2)] {
        let freed = buddy.free_run(index, frames, State::Dirty, 0);
        assert_eq!(freed, Err(FreeError::Misaligned), "{index}, {frames}");
    }
    // The last frame is in hand, and those behind it are nobody's.
    for (index, frames) in [(31, 3), (u32::MAX, 1), (32, 16), (99, 1)] {
        let freed = buddy.free_run(index, frames, State::Dirty, 0);
        assert_eq!(freed, Err(FreeError::Foreign), "{index}, {frames}");
    }
    assert_eq!(buddy.check().expect("nothing is changed").out, 32);
}

#[test]
fn what_came_of_a_run_taken_back_is_as_large_as_its_largest_part() {
    buddy!(buddy, frames: 4, 8; 8 of State::Dirty);
    assert_eq!(buddy.take_run(&Wanted::frames(3)).map(|run| run.first), Some(0));
    while buddy.take(0, State::Dirty).is_some() {}
    for (first, frames, order) in [(5, 1, 0), (0, 3, 1), (3, 1, 2), (4, 1, 1)] {
        let freed = buddy.free_run(first, frames, State::Dirty, 0);
        assert_eq!(freed, Ok(order), "{first}, {frames}");
    }
    buddy.check().expect("sound");
}

#[test]
fn a_cached_block_is_taken_back_as_it_was_cached() {
    for zero in [false, true] {
        buddy!(buddy, frames: 2, 4; 4 of State::Dirty);
        let index = buddy.take(1, State::Dirty).expect("two");
        let free = |buddy: &mut Buddy<'_>, order, zero| buddy.free_cached(index, order, zero, 100);
        assert_eq!(free(&mut buddy, 1, zero), Err(FreeError::DoubleFree), "it is in use");
        assert_eq!(halve_cached(&frames, index), None, "nor is it a cache's");
        assert_eq!(buddy.free_cached(4, 1, zero, 0), Err(FreeError::Foreign));
        frames[index as usize].cache(1, zero).expect("allocated");
        assert_eq!(free(&mut buddy, 1, !zero), Err(FreeError::DoubleFree));
        assert_eq!(free(&mut buddy, 0, zero), Err(FreeError::WrongOrder { actual: 1 }));
        assert_eq!(free(&mut buddy, 1, zero), Ok(if zero { 1 } else { 2 }));
        assert_eq!(halve_cached(&frames, index), None, "nobody's");
        let counts = buddy.check().expect("sound");
        assert_eq!((counts.zero_resident, counts.out), (if zero { 2 } else { 0 }, 0));
    }
}

/// A holder of the lock may die between any two stores. What it leaves is simulated by copying the
/// tags at arbitrary moments, with lists and counts of another moment.
#[test]
fn the_lists_come_back_from_the_tags_alone() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..50 {
        let (mut core, frames) = (Core::new(6), frames(200));
        let mut buddy = Buddy::new(&mut core, &frames);
        buddy.extend(200, State::Dirty, 0);
        let mut held = Vec::new();
        for _ in 0..random.usize(1..80) {
            let order = random.u32(0..4);
            match buddy.take(order, State::Dirty) {
                Some(index) if random.bool() => held.push((index, order)),
                Some(index) => {
                    buddy.free(index, order, State::ZeroResident, 0).expect("ours");
                }
                None => {}
            }
        }
        let before = buddy.check().expect("sound");
        // Lists and counts of a moment long gone.
        let mut torn = Core::new(6);
        let mut other = Buddy::new(&mut torn, &frames);
        assert_eq!(other.extend(0, State::Dirty, 0), 0);
        let mut stale = core.clone();
        let mut buddy = Buddy::new(&mut stale, &frames);
        for (index, order) in held.iter().skip(1).step_by(2) {
            buddy.free(*index, *order, State::Dirty, 0).expect("ours");
        }
        let now = buddy.check().expect("sound");
        let mut buddy = Buddy::new(&mut core, &frames);
        assert!(now == before || buddy.check().is_err(), "lists of another moment do not fit");
        buddy.rebuild(0);
        assert_eq!(buddy.check(), Ok(now));
        for (index, order) in held.iter().step_by(2) {
            buddy.free(*index, *order, State::Dirty, 0).expect("still handed out");
        }
        buddy.check().expect("sound");
    }
}

#[test]
fn a_block_of_the_highest_order_outlives_its_lists() {
    buddy!(buddy, frames: 3, 16; 16 of State::ZeroResident);
    let index = buddy.take(3, State::ZeroResident).expect("eight");
    buddy.rebuild(0);
    let counts = buddy.check().expect("sound");
    assert_eq!((counts.out, counts.zero_resident), (8, 8));
    assert_eq!(buddy.free(index, 3, State::ZeroResident, 0), Ok(3));
}

#[test]
fn reclaiming_takes_the_blocks_that_are_named_and_no_others() {
    buddy!(buddy, frames: 5, 64; 64 of State::ZeroResident);
    let alive = buddy.take(1, State::ZeroResident).expect("two");
    let dead = buddy.take(3, State::ZeroResident).expect("eight");
    assert_eq!(buddy.reclaim(|tag| tag.order() == 3, State::Dirty, 0), 8);
    assert_eq!(buddy.free(dead, 3, State::Dirty, 0), Err(FreeError::DoubleFree));
    assert_eq!(buddy.free(alive, 1, State::Dirty, 0).map(|_| ()), Ok(()));
    buddy.check().expect("sound");
}

#[test]
fn a_model_of_a_pool_that_fills_and_drains() {
    let mut model = Model::new(256, 8);
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..4000 {
        model.step(random.u8(..), random.u8(..));
    }
    model.finish();
}

#[test]
fn bookkeeping_is_16_bytes_per_page_and_orders_go_to_18() {
    assert_eq!((size_of::<Frame>(), MAX_ORDER), (16, 18));
    let all = 1 << 18;
    buddy!(buddy, frames: 18, all as usize; all of State::Dirty);
    assert_eq!(buddy.take(18, State::Dirty), Some(0));
    let walked: Vec<_> =
        buddy.walk().map(|(index, tag)| (index, tag.used(), tag.order())).collect();
    assert_eq!(walked, [(0, Some(Use::Allocated), 18)]);
}
