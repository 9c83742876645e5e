//! The page allocator against a model of all its operations, and what the model leaves open: which block is taken.

#[path = "../../../fuzz/replaying.rs"]
mod replaying;

use crate::support::{Model, replay};
use cachewise_pages::buddy::{Buddy, Core, Frame, FreeError, MAX_ORDER, State, Use};
use proptest::prelude::*;

const DIRTY: State = State::Dirty;
const ZERO: State = State::ZeroResident;
const ABSENT: State = State::ZeroAbsent;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn model_of_all_operations(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        replay(&bytes);
    }
}

#[test]
fn model_replays_the_fuzzers_corpus() {
    replaying::replay_corpus("buddy", 10, replay);
}

#[test]
fn model_of_a_pool_that_fills_and_drains() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut model = Model::new(300, 6);
    model.step(14, 200);
    for filling in [true, false, true, false] {
        for _ in 0..300 {
            let operation = if filling { random.u8(0..5) } else { random.u8(5..8) };
            model.step(operation, random.u8(..));
        }
    }
    model.finish();
}

/// An allocator of blocks up to that order, with that many frames in that state.
fn with(max_order: u32, count: u32, state: State, test: impl FnOnce(Buddy<'_>, &[Frame])) {
    let frames: Vec<Frame> = (0..count).map(|_| Frame::new()).collect();
    let mut core = Core::new(max_order);
    let mut buddy = Buddy::new(&mut core, &frames);
    assert_eq!(buddy.extend(count + 5, state, 0), count, "as many as there are");
    test(buddy, &frames);
}

#[test]
fn front_of_a_block_is_kept_and_the_rest_has_its_states() {
    for kept in 1..=16u32 {
        for there in kept..=16 {
            with(4, 16, ABSENT, |mut buddy, _| {
                let index = buddy.take(4, ABSENT).expect("all");
                for wrong in [(0, there), (there + 1, there), (kept, 17)] {
                    let refused = buddy.keep_front(index, 4, wrong, (ABSENT, 0));
                    assert_eq!(refused, Err(FreeError::WrongOrder { actual: 4 }), "{wrong:?}");
                }
                buddy.keep_front(index, 4, (kept, there), (ABSENT, 0)).expect("ours");
                let counts = buddy.check().expect("sound");
                let found = [counts.out, counts.zero_resident, counts.zero_absent];
                assert_eq!(found, [kept, there - kept, 16 - there].map(u64::from));
                buddy.free_run(index, kept, ABSENT, 0).expect("a run of that length");
                buddy.check().expect("sound");
            });
        }
    }
}

/// The worst of the states that a row is made of, and the zeroing that was for nothing.
#[test]
fn row_of_blocks_in_different_states_is_as_good_as_the_worst() {
    for states in (0..27).map(|code| [code / 9, code / 3 % 3, code % 3].map(|at| State::ALL[at])) {
        let frames: [Frame; 3] = std::array::from_fn(|_| Frame::new());
        let mut core = Core::new(1);
        let mut buddy = Buddy::new(&mut core, &frames);
        states.iter().for_each(|state| assert_eq!(buddy.extend(1, *state, 0), 1));
        let run = buddy.take_any_run(3, 1).expect("longer than the largest block");
        let has = |state| states.contains(&state);
        assert_eq!((run.first, run.dirty, run.absent), (0, has(DIRTY), has(ABSENT)));
        let zeroed = states.iter().filter(|state| **state == ZERO).count() as u64;
        assert_eq!(buddy.core().wasted(), if has(DIRTY) { zeroed } else { 0 });
        assert_eq!(buddy.take_any_run(1, 1), None);
        buddy.free_run(0, 3, DIRTY, 0).expect("ours");
        assert_eq!(buddy.check().map(|counts| counts.dirty), Ok(3));
    }
}

/// Sixteen frames in fours: each is dirty or zero since a moment, or in use.
fn fours(given: [Option<(State, u32)>; 4], test: impl FnOnce(Buddy<'_>, &[Frame])) {
    with(3, 16, DIRTY, |mut buddy, frames| {
        while buddy.take(2, DIRTY).is_some() {}
        for (at, free) in (0..).zip(given) {
            if let Some((state, since)) = free {
                buddy.free(4 * at, 2, state, since).expect("ours");
            }
        }
        test(buddy, frames);
    });
}

#[test]
fn take_prefers_the_smallest_block_and_of_those_the_newest() {
    fours([Some((DIRTY, 0)), None, Some((DIRTY, 0)), None], |mut buddy, _| {
        assert_eq!(buddy.take(0, DIRTY), Some(8), "freed last");
        assert_eq!(buddy.take(0, DIRTY), Some(9), "what is left of it comes before a larger one");
        assert_eq!(buddy.take(1, DIRTY), Some(10));
        assert_eq!(buddy.take(3, DIRTY), None);
        assert_eq!(buddy.take(40, DIRTY), None);
    });
}

#[test]
fn trim_takes_the_largest_block_of_those_the_dirty_one_and_of_those_the_oldest() {
    for (given, expected) in [
        ([Some((ZERO, 0)), Some((ZERO, 0)), Some((DIRTY, 0)), None], (0, 2)),
        ([Some((ZERO, 0)), None, Some((DIRTY, 9)), None], (8, 2)),
        ([Some((DIRTY, 9)), None, Some((DIRTY, 5)), None], (0, 2)),
        ([Some((DIRTY, 5)), None, None, Some((ZERO, 5))], (0, 2)),
        ([None, None, None, Some((ZERO, 5))], (12, 2)),
        ([None, Some((DIRTY, 5)), None, Some((ABSENT, 0))], (4, 2)),
    ] {
        fours(given, |mut buddy, _| {
            assert_eq!(buddy.take_to_trim((0, 2), 0, 9), Ok(expected), "{given:?}");
            assert_eq!(buddy.check().map(|counts| counts.in_flight), Ok(4));
        });
    }
}

/// Zeroing begins with the largest dirty block, down to the lowest order that is asked for.
#[test]
fn zeroing_takes_the_largest_dirty_block() {
    fours([Some((DIRTY, 0)), None, Some((DIRTY, 0)), Some((DIRTY, 0))], |mut buddy, _| {
        assert_eq!(buddy.take(0, DIRTY), Some(0), "the smallest; a page and a pair are left of it");
        let found: Vec<_> = (0..4).map(|_| buddy.take_to_zero(1, 9, 0, 0)).collect();
        assert_eq!(found, [Some((8, 3)), Some((2, 1)), None, None]);
        assert_eq!(buddy.take_to_zero(0, 9, 0, 0), Some((1, 0)));
    });
}

/// Memory is taken away when nobody used it for long enough; until then the answer is how long that is.
#[test]
fn idle_memory_is_told_from_what_was_used_lately_also_where_the_clock_wraps() {
    for since in [100, u32::MAX - 10] {
        fours([Some((DIRTY, since)), None, None, Some((ZERO, since))], |mut buddy, _| {
            let at = |later: u32| since.wrapping_add(later);
            assert_eq!(buddy.next_to_zero(0, 50, at(20)), Some(30));
            assert_eq!(buddy.take_to_zero(0, 9, 50, at(20)), None);
            assert_eq!(buddy.take_to_trim((0, 9), 50, at(20)), Err(Some(30)));
            assert_eq!(buddy.take_to_trim((3, 9), 50, at(50)), Err(None), "none is that large");
            assert_eq!(buddy.next_to_zero(0, 50, at(50)), Some(0));
            assert_eq!(buddy.take_to_zero(0, 1, 50, at(50)), Some((0, 1)), "its first part");
            assert_eq!(buddy.take_to_trim((1, 1), 50, at(50)), Ok((12, 1)), "of the largest");
            assert_eq!(buddy.take_to_trim((0, 9), 50, at(50)), Ok((2, 1)), "the rest is as old");
            assert_eq!(buddy.next_to_zero(0, 0, at(50)), None);
            buddy.check().expect("sound");
        });
    }
}

#[test]
fn wrong_frees_are_refused_each_with_its_reason() {
    with(3, 16, DIRTY, |mut buddy, frames| {
        let block = buddy.take(2, DIRTY).expect("four");
        let cached = buddy.take(0, DIRTY).expect("one");
        frames[cached as usize].cache(0, false).expect("allocated");
        for (index, order, why) in [
            (16, 0, FreeError::Foreign),
            (block + 1, 1, FreeError::Misaligned),
            (block, 4, FreeError::Misaligned),
            (block + 1, 0, FreeError::Interior),
            (block, 1, FreeError::WrongOrder { actual: 2 }),
            (cached, 0, FreeError::DoubleFree),
            (0, 3, FreeError::DoubleFree),
        ] {
            assert_eq!(buddy.free(index, order, DIRTY, 0), Err(why), "{index}, {order}");
        }
        for (index, frames, why) in [
            (block, 0, FreeError::Foreign),
            (block, 17, FreeError::Foreign),
            (block, u32::MAX, FreeError::Foreign),
            (block, 5, FreeError::DoubleFree),
            (block, 3, FreeError::WrongOrder { actual: 2 }),
        ] {
            assert_eq!(buddy.free_run(index, frames, DIRTY, 0), Err(why), "{index}, {frames}");
        }
        buddy.free(block, 2, DIRTY, 0).expect("nothing was changed");
        assert_eq!(buddy.free_cached(&[cached, cached], 0, false, 0), (3, 1));
        assert_eq!(buddy.check().map(|counts| counts.dirty), Ok(16));
    });
}

#[test]
fn bookkeeping_is_16_bytes_per_page_and_orders_go_to_18() {
    assert_eq!((size_of::<Frame>(), MAX_ORDER), (16, 18));
    with(99, 1 << MAX_ORDER, DIRTY, |mut buddy, frames| {
        assert_eq!(buddy.core().max_order(), MAX_ORDER);
        assert_eq!(buddy.take(MAX_ORDER, DIRTY), Some(0));
        assert_eq!(frames[0].tag().used(), Some(Use::Allocated));
    });
}
