//! Runs: any number of frames side by side, from any frame on, of blocks in any state.

use crate::frames;
use cachewise_pages::buddy::{Buddy, Core, Frame, Run, State, Use, Wanted, order_for};
use std::ops::Range;

/// State of each frame; none where it is in use.
fn states(buddy: &Buddy<'_>) -> Vec<Option<State>> {
    let mut states = Vec::new();
    for (_, tag) in buddy.walk() {
        let state = match tag.used() {
            Some(Use::Free(state)) => Some(state),
            _ => None,
        };
        states.resize(states.len() + (1 << tag.order()), state);
    }
    states
}

/// Memory in which each frame is as given.
fn memory<'a>(core: &'a mut Core, frames: &'a [Frame], states: &[Option<State>]) -> Buddy<'a> {
    let mut buddy = Buddy::new(core, frames);
    buddy.extend(states.len() as u32, State::Dirty, 0);
    while buddy.take(0, State::Dirty).is_some() {}
    for (frame, state) in (0..).zip(states) {
        if let Some(state) = state {
            buddy.free(frame, 0, *state, 0).expect("ours");
        }
    }
    buddy
}

/// From the first frame in that state to behind the last, and how many there are.
fn span(states: &[Option<State>], run: Range<u32>, state: State) -> ((u32, u32), u32) {
    let found = run.clone().filter(|at| states[*at as usize] == Some(state));
    let span =
        (found.clone().min().unwrap_or(run.end), found.clone().max().map_or(run.end, |at| at + 1));
    (span, found.count() as u32)
}

/// The run of so many frames from there on.
fn run_at(states: &[Option<State>], first: u32, frames: u32) -> Run {
    let run = first..first + frames;
    let (dirty, dirties) = span(states, run.clone(), State::Dirty);
    let (absent, absents) = span(states, run, State::ZeroAbsent);
    let state = match (dirties, absents) {
        (0, 0) => State::ZeroResident,
        (0, _) => State::ZeroAbsent,
        _ => State::Dirty,
    };
    Run { first, state, absent, dirty }
}

/// The free frames side by side around one.
fn stretch(states: &[Option<State>], at: u32) -> Range<u32> {
    let at = at as usize;
    let start = (0..at).rev().take_while(|at| states[*at].is_some()).last().unwrap_or(at);
    let end = (at..states.len()).find(|at| states[*at].is_none()).unwrap_or(states.len());
    start as u32..end as u32
}

/// Faults, frames in the wrong state, and the length of the stretch; before the second the third where memory
/// is scarce.
fn cost(states: &[Option<State>], first: u32, wanted: &Wanted, scarce: bool) -> (u32, u32, u32) {
    let run = first..first + wanted.frames;
    let ((from, to), _) = span(states, run.clone(), State::Dirty);
    let zero = span(states, run.clone(), State::ZeroResident).1;
    let wrong = if wanted.zeroed { to - from } else { zero };
    let length = stretch(states, first).len() as u32;
    let (second, third) = if scarce { (length, wrong) } else { (wrong, length) };
    (span(states, run, State::ZeroAbsent).1, second, third)
}

/// Places where runs are sought: from each free block on, and up to the end of each stretch.
fn places(buddy: &Buddy<'_>, wanted: &Wanted, step: u32) -> Vec<u32> {
    let states = states(buddy);
    let mut places = Vec::new();
    for (block, tag) in buddy.walk() {
        if matches!(tag.used(), Some(Use::Free(_))) {
            let Range { start, end } = stretch(&states, block);
            let last = end.checked_sub(wanted.frames).map(|last| last / step * step);
            let of_block = [Some(block.next_multiple_of(step)), last];
            let fits = |first: &u32| *first >= start && first + wanted.frames <= end;
            places.extend(of_block.into_iter().flatten().filter(fits));
        }
    }
    places
}

/// Frames that the system brings together with a frame, if none of it is there.
fn comes_with(states: &[Option<State>], at: u32, wanted: &Wanted) -> Range<u32> {
    let around = if at < wanted.single { 1 } else { wanted.around };
    let from = at / around * around;
    let group = from..(from + around).min(states.len() as u32);
    let absent = span(states, group.clone(), State::ZeroAbsent).1;
    if absent == group.len() as u32 { group } else { 0..0 }
}

/// Held against what a look at each frame says: which run, what is told of it, and what all other frames
/// are then.
#[test]
fn the_cheapest_run_is_taken_and_what_comes_with_it_is_known() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut found, mut came) = (0, 0);
    for _ in 0..4000 {
        let (count, max_order) = (random.u32(1..24), random.u32(2..=5));
        // Stretches of one state, and few states at a time.
        let kinds = [None, Some(State::Dirty), Some(State::ZeroResident), Some(State::ZeroAbsent)];
        let (kinds, longest) = (&kinds[random.usize(0..3)..], random.usize(1..9));
        let mut given = Vec::new();
        while given.len() < count as usize {
            let kind = kinds[random.usize(..kinds.len())];
            let end = given.len() + random.usize(1..=longest);
            given.resize(end.min(count as usize), kind);
        }
        // One frame that is not in use yet: there is more to fall back on.
        let spare = random.usize(0..2);
        let (mut core, frames) = (Core::new(max_order), frames(count as usize + spare));
        let mut buddy = memory(&mut core, &frames, &given);
        assert_eq!(states(&buddy), given);
        let wanted = Wanted {
            frames: random.u32(1..=count),
            alignment: 1 << random.u32(0..3),
            zeroed: random.bool(),
            around: 1 << random.u32(0..4),
            single: if random.bool() { 0 } else { random.u32(0..count) },
        };
        let own = if wanted.frames.is_power_of_two() { wanted.frames } else { 1 };
        let step = own.max(wanted.alignment);
        let places = places(&buddy, &wanted, step);
        let fits = wanted.frames <= 1 << max_order;
        let way = random.u32(0..3);
        let wanted = Wanted { zeroed: wanted.zeroed || way == 1, ..wanted };
        let absent = span(&given, 0..count, State::ZeroAbsent).1;
        let scarce = spare == 0 && absent < wanted.frames;
        let cost = |first: u32| cost(&given, first, &wanted, scarce);
        let costs = places.iter().filter(|_| fits).map(|first| (cost(*first), *first));
        // Some of it is there, or is faulted in by itself anyway.
        let some = |(cost, first): &((u32, u32, u32), u32)| {
            cost.0 < wanted.frames || *first < wanted.single
        };
        let cheapest = costs.clone().filter(some).map(|(cost, _)| cost).min();
        let run = match way {
            0 => buddy.take_run(&wanted),
            1 => buddy.take_zero_run(&wanted),
            _ => buddy.take_any_run(&wanted),
        };
        let zero = cheapest.filter(|(absent, second, third)| {
            *absent == 0 && *(if scarce { third } else { second }) == 0
        });
        let paid = run.map(|run| cost(run.first));
        match way {
            0 => assert_eq!(paid, cheapest, "{wanted:?}, {given:?}"),
            1 => assert_eq!(paid, zero, "{wanted:?}, {given:?}"),
            _ => assert_eq!(run.is_some(), costs.clone().next().is_some(), "{wanted:?}, {given:?}"),
        }
        let mut expected = given.clone();
        if let Some(run) = run {
            let (first, end) = (run.first, run.first + wanted.frames);
            assert!(first.is_multiple_of(step));
            assert_eq!(run, run_at(&given, first, wanted.frames), "{wanted:?}, {given:?}");
            let around = stretch(&given, first);
            let last = (around.end - wanted.frames) / step * step;
            let at_an_end = |at: u32| at == around.start.next_multiple_of(step) || at == last;
            let same = |(other, place): &((u32, u32, u32), u32)| {
                *other == cost(first) && around.contains(place)
            };
            let could = costs.clone().filter(same).any(|(_, first)| at_an_end(first));
            assert!(way == 2 || !could || at_an_end(first), "{run:?}, {wanted:?}, {given:?}");
            for at in comes_with(&given, first, &wanted).chain(comes_with(&given, end - 1, &wanted))
            {
                expected[at as usize] = Some(State::ZeroResident);
                came += 1;
            }
            expected[first as usize..end as usize].fill(None);
            found += 1;
        }
        assert_eq!(states(&buddy), expected, "{run:?}, {wanted:?}, {given:?}");
        buddy.check().unwrap_or_else(|error| panic!("{error}: {run:?}, {wanted:?}, {given:?}"));
        if let Some(run) = run {
            buddy.free_run(run.first, wanted.frames, State::Dirty, 0).expect("ours");
            expected[run.first as usize..(run.first + wanted.frames) as usize]
                .fill(Some(State::Dirty));
            assert_eq!(states(&buddy), expected);
            buddy.check().expect("sound");
        }
    }
    assert!(found > 1000 && came > 100, "{found} runs, {came} frames came with them");
}

/// Sixteen frames of one state, of which one is in use: a run of any length has its place beside it, on
/// whichever side there is room, and the rest stays whole.
#[test]
fn a_run_begins_at_any_frame_where_as_many_are_free_side_by_side() {
    for state in [State::Dirty, State::ZeroResident] {
        for kept in 0..16u32 {
            for asked in 1..=16u32 {
                buddy!(buddy, frames: 4, 16; 16 of state);
                // All single, and all but one given back, in an order that leaves lists in any order.
                let mut all: Vec<_> = (0..16).filter_map(|_| buddy.take(0, state)).collect();
                all.rotate_left(5);
                for index in all.iter().filter(|index| **index != kept) {
                    buddy.free(*index, 0, state, 0).expect("ours");
                }
                let step = if asked.is_power_of_two() { asked } else { 1 };
                let place =
                    |first: &u32| first + asked <= 16 && !(*first..first + asked).contains(&kept);
                let expected = (0..16).step_by(step as usize).any(|first| place(&first));
                let found = buddy.take_run(&Wanted::frames(asked));
                assert_eq!(found.is_some(), expected, "{kept}, {asked}: {found:?}");
                let counts = buddy.check().expect("sound");
                assert_eq!(counts.out, 1 + if found.is_some() { u64::from(asked) } else { 0 });
                if let Some(run) = found {
                    assert!(place(&run.first) && run.first.is_multiple_of(step), "{run:?}");
                    buddy.free_run(run.first, asked, state, 0).expect("ours");
                    let again = buddy.free_run(run.first, asked, state, 0);
                    assert!(again.is_err(), "given back twice");
                }
                buddy.free(kept, 0, state, 0).expect("ours");
                buddy.check().expect("sound");
                assert_eq!(buddy.core().blocks(state, 4), 1, "all of it merged again");
            }
        }
    }
}

/// Memory with holes of given lengths, each free and with one frame in use behind it.
fn holes(core: &mut Core, frames: &[Frame], lengths: &[u32], state: State) -> Vec<u32> {
    let mut buddy = Buddy::new(core, frames);
    buddy.extend(lengths.iter().map(|length| length + 1).sum(), state, 0);
    while buddy.take(0, state).is_some() {}
    let mut firsts = Vec::new();
    let mut at = 0;
    for length in lengths {
        firsts.push(at);
        for frame in at..at + length {
            buddy.free(frame, 0, state, 0).expect("ours");
        }
        at += length + 1;
    }
    buddy.check().expect("sound");
    firsts
}

#[test]
fn a_run_is_cut_from_the_stretch_that_fits_it_closest() {
    let lengths = [40, 11, 25, 13, 60, 12];
    for asked in [9, 11, 12, 13, 14, 25, 26, 39, 41] {
        let (mut core, frames) = (Core::new(6), frames(200));
        let firsts = holes(&mut core, &frames, &lengths, State::Dirty);
        let mut buddy = Buddy::new(&mut core, &frames);
        let fits = |(_, length): &(&u32, &u32)| **length >= asked;
        let closest = firsts.iter().zip(&lengths).filter(fits).min_by_key(|(_, length)| **length);
        let (first, length) = closest.expect("one is as long");
        let run = buddy.take_run(&Wanted::frames(asked)).expect("one is as long");
        let at_an_end = run.first == *first || run.first + asked == first + length;
        assert!(at_an_end, "{asked}: {run:?} in {length} from {first}");
        buddy.check().expect("sound");
    }
}

#[test]
fn a_run_is_found_however_many_blocks_have_to_be_looked_at() {
    // Every other frame zero, the rest dirty: nothing merges, and no stretch is known as a whole.
    buddy!(buddy, frames: 9, 512; 512 of State::Dirty);
    while buddy.take(0, State::Dirty).is_some() {}
    for at in 0..300u32 {
        let state = if at.is_multiple_of(2) { State::Dirty } else { State::ZeroResident };
        buddy.free(at, 0, state, 0).expect("ours");
    }
    assert_eq!(buddy.take_any_run(&Wanted::frames(301)), None);
    let wanted = Wanted { alignment: 64, ..Wanted::frames(230) };
    let run = buddy.take_any_run(&wanted).expect("from 0 on, or from 64");
    assert_eq!((run.first % 64, run.state), (0, State::Dirty));
    buddy.check().expect("sound");
    buddy.free_run(run.first, 230, State::Dirty, 0).expect("ours");
    let run = buddy.take_any_run(&Wanted::frames(300)).expect("all of it");
    assert_eq!((run.first, run.state), (0, State::Dirty));
    assert_eq!(buddy.check().expect("sound").out, 512);
}

/// The rest of a huge page of which a run needs a part is there, on both sides; of one that is
/// there in part already nothing comes.
#[test]
fn what_the_system_brings_beside_a_run_is_there_from_then_on() {
    for (resident, asked, there) in [
        // From 0 on so many are there; a run of 9 begins with them, and the rest of its eights come.
        (5u32, 9u32, (0, 16)),
        (8, 9, (0, 16)),
        (3, 17, (0, 24)),
        (15, 31, (0, 32)),
        // A run that ends inside what is there brings nothing.
        (12, 9, (0, 12)),
    ] {
        buddy!(buddy, frames: 6, 64; 64 of State::ZeroAbsent);
        buddy.take(6, State::ZeroAbsent).expect("all");
        buddy.shrink_resident(0, 6, (1, resident), 0).expect("ours");
        buddy.free(0, 0, State::ZeroResident, 0).expect("ours");
        let wanted = Wanted { around: 8, ..Wanted::frames(asked) };
        let run = buddy.take_run(&wanted).expect("a part is there");
        assert!(run.first + asked >= resident.min(asked), "{run:?}");
        let counts = buddy.check().expect("sound");
        let (from, to): (u32, u32) = there;
        let now = u64::from(to - from).max(u64::from(resident));
        // In the unit that was there in part, what the run does not take stays absent.
        let known = counts.out + counts.zero_resident;
        assert_eq!(known, now, "{resident}, {asked}: {run:?}, {counts:?}");
        buddy.free_run(run.first, asked, State::ZeroResident, 0).expect("ours");
        assert_eq!(buddy.check().expect("sound").zero_resident, now);
    }
}

/// The resident part of a freed run serves a larger one, of which the rest alone has to be faulted
/// in: for every length of both, with and without a zeroed block between.
#[test]
fn a_run_is_made_of_blocks_in_different_states_where_that_spares_faults() {
    for freed in 1..=16u32 {
        for asked in freed..=32 {
            for zeroed in [false, true] {
                let (mut core, frames) = (Core::new(5), frames(32));
                let mut buddy = Buddy::new(&mut core, &frames);
                buddy.extend(32, State::ZeroAbsent, 0);
                let first = buddy.take(order_for(freed), State::ZeroAbsent).expect("all of it");
                let order = order_for(freed);
                buddy.shrink_resident(first, order, (freed, freed), 0).expect("ours");
                let state = if zeroed { State::ZeroResident } else { State::Dirty };
                buddy.free_run(first, freed, state, 0).expect("ours");
                let run = buddy.take_run(&Wanted::frames(asked));
                let faults = asked.saturating_sub(freed);
                let run = run.expect("all of it is free, and a part there");
                assert_eq!(run.first, 0, "{freed}, {asked}");
                let absent = if faults > 0 { (freed, asked) } else { (asked, asked) };
                assert_eq!(run.absent, absent, "{freed}, {asked}");
                let worst = match zeroed {
                    false => State::Dirty,
                    true if faults > 0 => State::ZeroAbsent,
                    true => State::ZeroResident,
                };
                assert_eq!(run.state, worst, "{freed}, {asked}");
                assert_eq!(buddy.check().expect("sound").out, u64::from(asked));
                buddy.free_run(0, asked, State::Dirty, 0).expect("a run of its length");
                assert_eq!(buddy.check().expect("sound").out, 0);
            }
        }
    }
    // Absent memory alone has nothing to spare, nor where every place is beside what is there.
    for there in [None, Some(7)] {
        let mut given = [Some(State::ZeroAbsent); 32];
        there.into_iter().for_each(|at: usize| given[at] = Some(State::Dirty));
        let (mut core, frames) = (Core::new(5), frames(32));
        let mut buddy = memory(&mut core, &frames, &given);
        let wanted = Wanted { alignment: 8, ..Wanted::frames(3) };
        assert_eq!(buddy.take_run(&wanted), None);
        assert!(buddy.take_any_run(&wanted).is_some());
    }
}

/// Two places for a run of twelve frames, each dirty but for its last frames, which are absent.
#[test]
fn of_runs_in_different_states_the_one_with_the_fewest_faults_is_taken() {
    for (at_16, at_40, expected) in [
        (2, 1, Some(40)),
        (1, 2, Some(16)),
        (0, 1, Some(16)),
        (1, 0, Some(40)),
        (3, 2, Some(40)),
        (3, 4, Some(16)),
        (4, 4, Some(40)),
    ] {
        buddy!(buddy, frames: 4, 64; 64 of State::Dirty);
        while buddy.take(0, State::Dirty).is_some() {}
        for (first, faults) in [(16, at_16), (40, at_40)] {
            for at in 0..12 {
                let state = if at < 12 - faults { State::Dirty } else { State::ZeroAbsent };
                buddy.free(first + at, 0, state, 0).expect("ours");
            }
        }
        let run = buddy.take_run(&Wanted::frames(12));
        assert_eq!(run.map(|run| run.first), expected, "{at_16}, {at_40}");
        if let Some(run) = run {
            let faults = if run.first == 16 { at_16 } else { at_40 };
            assert_eq!((run.absent.1 - run.absent.0, run.state), (faults, State::Dirty));
            buddy.free_run(run.first, 12, State::Dirty, 0).expect("ours");
        }
        buddy.check().expect("sound");
    }
}

/// Blocks of four frames, each free or in use as given, freed in that order: the last is met first.
fn fours(core: &mut Core, frames: &[Frame], order: &[u32]) {
    let mut buddy = Buddy::new(core, frames);
    buddy.extend(frames.len() as u32, State::Dirty, 0);
    while buddy.take(2, State::Dirty).is_some() {}
    for block in order {
        buddy.free(4 * block, 2, State::Dirty, 0).expect("ours");
    }
}

/// So many blocks of a stretch are examined. One that may go on is longer than any that ends, and is cut
/// from the end that was seen.
#[test]
fn a_stretch_that_is_not_seen_to_its_end_is_long() {
    // A hundred blocks, of which one end is met first; and twenty-five, where there are any.
    for (first_met, short) in [(99, true), (0, true), (99, false), (0, false)] {
        let long = (0..100).filter(|block| *block != first_met);
        let short = if short { 101..126 } else { 0..0 };
        let order: Vec<u32> = long.chain(short.clone()).chain([first_met]).collect();
        let (mut core, frames) = (Core::new(2), frames(4 * 127));
        fours(&mut core, &frames, &order);
        let run = Buddy::new(&mut core, &frames).take_run(&Wanted::frames(3)).expect("a place");
        let expected = match (short.is_empty(), first_met) {
            (false, _) => 404,
            (true, 0) => 0,
            (true, _) => 397,
        };
        assert_eq!(run.first, expected, "{first_met} met first");
    }
    // One that is small blocks in its middle: what is seen of it from either end is short.
    let (dirty, zero) = (Some(State::Dirty), Some(State::ZeroResident));
    let middle = (0..28).map(|at| if at % 2 == 0 { zero } else { dirty });
    let long = [dirty; 4].into_iter().chain(middle).chain([dirty; 36]);
    let given: Vec<_> = long.chain([None]).chain([dirty; 59]).chain([None; 4]).collect();
    let (mut core, frames) = (Core::new(2), frames(given.len()));
    let run = memory(&mut core, &frames, &given).take_run(&Wanted::frames(3));
    assert_eq!(run.map(|run| run.first), Some(69));
}

/// So many blocks are looked at, each once, and those that are long enough first: what lies behind more is not
/// found, by whom a fault would cost less than looking.
#[test]
fn few_blocks_are_looked_at_and_those_that_are_long_enough_first() {
    // Two stretches, whose blocks are met in turn, and one behind them that fits closer.
    let turns = (0..20).flat_map(|at| [10 + at, 40 + at]);
    let order: Vec<u32> = [0].into_iter().chain(turns).collect();
    let (mut core, frames) = (Core::new(2), frames(4 * 64));
    fours(&mut core, &frames, &order);
    let mut buddy = Buddy::new(&mut core, &frames);
    assert_eq!(buddy.take_run(&Wanted::frames(3)).map(|run| run.first), Some(0));
    // Single frames, three beside each other, more than are looked at where memory is scarce.
    let three = [Some(State::Dirty), Some(State::ZeroResident), Some(State::Dirty), None];
    let apart = three.repeat(350);
    for (place, found) in [([Some(State::Dirty); 4], true), (TWO_STATES, false)] {
        let given: Vec<_> = place.into_iter().chain([None]).chain(apart.clone()).collect();
        let (mut core, frames) = (Core::new(2), self::frames(given.len()));
        let mut buddy = memory(&mut core, &frames, &given);
        assert_eq!(buddy.take_run(&Wanted::frames(4)).is_some(), found);
        assert!(found || buddy.take_any_run(&Wanted::frames(4)).is_some());
    }
}

/// Four frames of which no two are one block.
const TWO_STATES: [Option<State>; 4] =
    [Some(State::Dirty), Some(State::ZeroResident), Some(State::Dirty), Some(State::ZeroResident)];

/// Whoever takes blocks by order has one where the frames are a power of two.
#[test]
fn a_power_of_two_is_one_block_where_it_may_begin_at_its_multiples() {
    for (frames, alignment, block) in [
        (1, 1, true),
        (1, 2, false),
        (4, 2, true),
        (4, 4, true),
        (4, 8, false),
        (3, 1, false),
        (0, 1, false),
    ] {
        assert_eq!(
            Wanted { alignment, ..Wanted::frames(frames) }.is_block(),
            block,
            "{frames}, {alignment}"
        );
    }
    let any = Wanted { frames: 3, alignment: 1, zeroed: false, around: 1, single: 0 };
    assert_eq!(Wanted::frames(3), any);
}

/// However much there is that would have to be faulted in.
#[test]
fn absent_memory_hides_nothing_that_is_there() {
    for single in [0, 4 * 200] {
        let absent = [Some(State::ZeroAbsent); 4].into_iter().cycle().take(4 * 200);
        let there = [None, Some(State::Dirty), Some(State::Dirty), Some(State::Dirty)];
        let given: Vec<_> = absent.chain(there).collect();
        let (mut core, frames) = (Core::new(2), frames(given.len()));
        let mut buddy = memory(&mut core, &frames, &given);
        let run = buddy.take_run(&Wanted { single, ..Wanted::frames(3) }).expect("a place");
        assert_eq!((run.first, run.state), (801, State::Dirty), "{single}");
    }
}

/// Whoever dies while the allocator grows leaves frames that are said to be free and are not managed yet.
#[test]
fn no_run_goes_on_where_somebody_died_growing() {
    let (mut core, frames) = (Core::new(4), frames(32));
    Buddy::new(&mut core, &frames).extend(12, State::Dirty, 0);
    let mut left = core.clone();
    // A block of another state: nothing merges across the border.
    Buddy::new(&mut core, &frames).extend(20, State::ZeroAbsent, 0);
    let mut buddy = Buddy::new(&mut left, &frames);
    buddy.rebuild(0);
    assert_eq!(buddy.check().map(|counts| counts.dirty), Ok(12));
    assert_eq!(buddy.take_run(&Wanted::frames(13)), None);
    assert_eq!(buddy.take_any_run(&Wanted::frames(13)), None);
    let run = buddy.take_run(&Wanted::frames(11)).expect("as many as there are");
    assert!(run.first + 11 <= 12, "{run:?}");
    assert_eq!(buddy.extend(20, State::Dirty, 0), 20);
    assert_eq!(buddy.check().map(|counts| (counts.dirty, counts.out)), Ok((21, 11)));
}

#[test]
fn what_a_run_or_a_block_leaves_is_as_old_as_it_was() {
    for run in [false, true] {
        buddy!(buddy, frames: 4, 16; 16 of State::Dirty);
        let whole = buddy.take(4, State::Dirty).expect("all");
        buddy.free(whole, 4, State::Dirty, 100).expect("ours");
        let taken = match run {
            false => buddy.take(0, State::Dirty),
            true => buddy.take_run(&Wanted::frames(3)).map(|run| run.first),
        };
        assert!(taken.is_some());
        assert_eq!(buddy.next_to_zero(0, 50, 149), Some(1));
        assert_eq!(buddy.take_to_zero(0, 4, 50, 149), None);
    }
}
