//! Runs: any number of frames side by side, from any frame on, made of whatever is free there.
//!
//! A run consists of the blocks that [`run_parts`](super::run_parts) names. It is looked for in
//! *stretches*, free blocks side by side whatever their states and orders, so that what a run leaves
//! free beside it serves the next one.

use super::{Buddy, NONE, State, Tag, Use};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// Blocks of stretches that are looked at for a run, so that no lock is held for long: some
/// microseconds' worth, as long as a fault takes that it may spare.
const WALKS: usize = 128;
/// So many times as many where memory is scarce: the next best is to look at all of them, or to refuse.
const SCARCE_WALKS: usize = 4;
/// Blocks of a stretch that are looked at together, around one of them.
const STRETCH: usize = 32;
/// Stretches that are remembered, so that none is looked at for each of its blocks.
const REMEMBERED: usize = 8;

/// A run that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Number of its frames.
    pub frames: u32,
    /// It begins at a multiple of so many frames, a power of two.
    pub alignment: u32,
    /// Zeroed memory is of use, and dirty memory costs its zeroing. Otherwise zeroed memory would be
    /// wasted.
    pub zeroed: bool,
    /// Number of frames that the system makes resident together, a power of two.
    pub around: u32,
    /// But before this frame one by one.
    pub single: u32,
}

impl Wanted {
    /// So many frames, wherever they begin and whatever is in them.
    #[must_use]
    pub const fn frames(frames: u32) -> Wanted {
        Wanted { frames, alignment: 1, zeroed: false, around: 1, single: 0 }
    }

    /// Checks whether it is to be one block.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        self.frames.is_power_of_two() && self.alignment <= self.frames
    }

    /// A run of a power of two is one block, as whoever takes blocks by order expects.
    fn aligned(self) -> Wanted {
        let own = if self.frames.is_power_of_two() { self.frames } else { 1 };
        Wanted { alignment: self.alignment.max(own), ..self }
    }

    const fn up(&self, at: u32) -> Option<u32> {
        at.checked_next_multiple_of(self.alignment)
    }
}

/// A run of free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first frame.
    pub first: u32,
    /// The worst state among its blocks: dirty before absent before resident.
    pub state: State,
    /// From its first absent frame to behind its last: frames between them may be resident.
    pub absent: (u32, u32),
    /// From its first frame that is dirty to behind its last: frames between them may
    /// be zero.
    pub dirty: (u32, u32),
}

/// Cost of a run, dearest first: frames to be faulted in, frames zeroed in vain or to be zeroed,
/// and how long the stretch is that it is cut from. Where memory is scarce, the two last change places.
type Cost = (u32, u32, u32);

/// The worst state of those that a run has.
fn worst(has: impl Fn(State) -> bool) -> State {
    let bad = [State::Dirty, State::ZeroAbsent];
    bad.into_iter().find(|state| has(*state)).unwrap_or(State::ZeroResident)
}

/// Free blocks side by side, in order.
struct Stretch {
    /// First frames, and behind the last block its end.
    borders: [u32; STRETCH + 1],
    states: [State; STRETCH],
    blocks: usize,
    /// True if it may go on to the left, to the right.
    open: (bool, bool),
}

impl Stretch {
    fn start(&self) -> u32 {
        self.borders[0]
    }

    fn end(&self) -> u32 {
        self.borders[self.blocks]
    }

    /// The run that would begin there, with its cost.
    fn run(&self, first: u32, wanted: &Wanted, scarce: bool) -> (Run, Cost) {
        let end = first + wanted.frames;
        let (mut absent, mut dirty) = ((end, end), (end, end));
        let mut frames = [0; super::STATES];
        for (block, state) in self.states[..self.blocks].iter().enumerate() {
            let (from, to) = (self.borders[block].max(first), self.borders[block + 1].min(end));
            if from >= to {
                continue;
            }
            frames[*state as usize] += to - from;
            match state {
                State::ZeroAbsent => absent = (absent.0.min(from), to),
                State::Dirty => dirty = (dirty.0.min(from), to),
                State::ZeroResident => {}
            }
        }
        let state = worst(|state| frames[state as usize] != 0);
        let wrong =
            if wanted.zeroed { dirty.1 - dirty.0 } else { frames[State::ZeroResident as usize] };
        let whole = self.open == (false, false);
        let length = if whole { self.end() - self.start() } else { u32::MAX };
        let (second, third) = if scarce { (length, wrong) } else { (wrong, length) };
        let cost = (frames[State::ZeroAbsent as usize], second, third);
        (Run { first, state, absent, dirty }, cost)
    }

    /// The cheapest run in it: one that begins with a block, or ends with the stretch; of two that
    /// cost the same the one at an end.
    fn cheapest(&self, wanted: &Wanted, scarce: bool) -> Option<(Run, Cost)> {
        let last = self.end().checked_sub(wanted.frames)? / wanted.alignment * wanted.alignment;
        let first = wanted.up(self.start())?;
        let ends = if self.open.0 { [last, first] } else { [first, last] };
        let begins = self.borders[..self.blocks].iter().filter_map(|border| wanted.up(*border));
        ends.into_iter()
            .chain(begins)
            .filter(|first| *first >= self.start() && *first <= last)
            .map(|first| self.run(first, wanted, scarce))
            .min_by_key(|(_, cost)| *cost)
    }
}

impl Buddy<'_> {
    /// Hands out a run of which at least a part is there, or that lies before [`Wanted::single`] in
    /// part: the one with the fewest frames to be faulted in, of these the one with the fewest frames
    /// in the wrong state, of these the one that fits closest. Where no absent memory is left to fall back
    /// on, the one that fits closest comes first: otherwise large runs find no place for long. It looks at
    /// so few blocks that no lock is held for long: first at those that are long enough, the smallest
    /// first, then at shorter ones, the largest first.
    ///
    /// The caller faults in what is absent. Where the system then brings [`Wanted::around`] frames at a
    /// time, what comes with the run and lies beside it is zero and resident from now on.
    pub fn take_run(&mut self, wanted: &Wanted) -> Option<Run> {
        self.take_run_if(wanted, |_| true)
    }

    /// [`take_run`](Buddy::take_run), if `may` says of the run that is found that it may be taken.
    pub fn take_run_if(&mut self, wanted: &Wanted, may: impl FnOnce(&Run) -> bool) -> Option<Run> {
        let wanted = wanted.aligned();
        let run = self.find_run(&wanted).filter(may)?;
        self.take_found(&run, &wanted);
        Some(run)
    }

    /// [`take_run`](Buddy::take_run) if all of it is zero and there.
    pub fn take_zero_run(&mut self, wanted: &Wanted) -> Option<Run> {
        let wanted = Wanted { zeroed: true, ..*wanted }.aligned();
        let run = self.find_run(&wanted).filter(|run| run.state == State::ZeroResident)?;
        self.take_found(&run, &wanted);
        Some(run)
    }

    /// [`take_run`](Buddy::take_run) whatever part of it is absent, and however many blocks have to be
    /// looked at: if there is a place for it, it is found.
    pub fn take_any_run(&mut self, wanted: &Wanted) -> Option<Run> {
        self.take_any_run_if(wanted, |_| true)
    }

    /// [`take_any_run`](Buddy::take_any_run), if `may` says of the run that is found that it may be taken.
    pub fn take_any_run_if(
        &mut self,
        wanted: &Wanted,
        may: impl FnOnce(&Run) -> bool,
    ) -> Option<Run> {
        let wanted = wanted.aligned();
        let run = self.find_any_run(&wanted).filter(may)?;
        self.take_found(&run, &wanted);
        Some(run)
    }

    fn find_run(&self, wanted: &Wanted) -> Option<Run> {
        if wanted.frames == 0 || wanted.frames > 1 << self.core.max_order {
            return None;
        }
        let mut best: Option<(Run, Cost)> = None;
        let all_in_use = self.core.managed as usize == self.frames.len();
        let scarce = all_in_use && self.core.counts.zero_absent < u64::from(wanted.frames);
        let mut looks = if scarce { SCARCE_WALKS * WALKS } else { WALKS };
        let mut seen = [(0, 0); REMEMBERED];
        let states = State::resident(wanted.zeroed);
        // Blocks as long as the run first, the smallest of them first: a place that fits closely is found
        // before others are cut up. Then shorter ones, of which a place may consist, the largest first.
        let enough = super::order_for(wanted.frames);
        let orders = || (enough..=self.core.max_order).chain((0..enough).rev());
        let there = orders().flat_map(|order| states.map(|state| (order, state)));
        // Last, so that no amount of it hides what is there; and for what is faulted in one by one alone.
        let absent = orders().filter(|_| wanted.single > 0).map(|order| (order, State::ZeroAbsent));
        let filled =
            |(order, state): &(u32, State)| self.core.filled[*state as usize] >> order & 1 != 0;
        for (order, state) in there.chain(absent).filter(filled) {
            let mut index = self.core.lists[state as usize][order as usize].head;
            while index != NONE && looks > 0 {
                if !seen.iter().any(|(from, to)| (*from..*to).contains(&index)) {
                    let stretch = self.stretch(index);
                    looks = looks.saturating_sub(stretch.blocks);
                    seen.rotate_right(1);
                    seen[0] = (stretch.start(), stretch.end());
                    if let Some((run, cost)) = stretch.cheapest(wanted, scarce)
                        // Absent memory alone is taken in portions, by the caller.
                        && (cost.0 < wanted.frames || run.first < wanted.single)
                        && best.is_none_or(|(_, cheapest)| cost < cheapest)
                    {
                        if cost.0 == 0
                            && [(0, wanted.frames), (wanted.frames, 0)].contains(&(cost.1, cost.2))
                        {
                            return Some(run);
                        }
                        best = Some((run, cost));
                    }
                }
                index = self.frames[index as usize].next.load(Ordering::Relaxed);
            }
        }
        best.map(|(run, _)| run)
    }

    /// The free blocks around one.
    fn stretch(&self, index: u32) -> Stretch {
        let mut found = Stretch {
            borders: [0; STRETCH + 1],
            states: [State::Dirty; STRETCH],
            blocks: 0,
            open: (true, true),
        };
        let free = |at: u32| {
            let (first, tag) = self.block_at(at)?;
            Some((first, tag.free_state()?))
        };
        // To the left first, from the right end of the room; then moved to its front.
        let (mut room, mut at) = (STRETCH, index);
        while room > STRETCH / 2 {
            let Some((first, state)) = at.checked_sub(1).and_then(free) else {
                found.open.0 = false;
                break;
            };
            room -= 1;
            (found.borders[room], found.states[room]) = (first, state);
            at = first;
        }
        found.borders.copy_within(room.., 0);
        found.states.copy_within(room.., 0);
        found.blocks = STRETCH - room;
        let mut at = index;
        while found.blocks < STRETCH {
            let tag = self.frames.get(at as usize).filter(|_| at < self.core.managed);
            let Some((tag, state)) =
                tag.map(super::Frame::tag).and_then(|tag| Some((tag, tag.free_state()?)))
            else {
                found.open.1 = false;
                break;
            };
            (found.borders[found.blocks], found.states[found.blocks]) = (at, state);
            found.blocks += 1;
            at += 1 << tag.order();
        }
        found.borders[found.blocks] = at;
        found
    }

    /// The first place found, from the largest free blocks down: from each free block on that has none
    /// before it.
    fn find_any_run(&self, wanted: &Wanted) -> Option<Run> {
        let counts = self.core.counts;
        let free = counts.free_resident() + counts.zero_absent;
        if wanted.frames == 0
            || wanted.frames > 1 << self.core.max_order
            || u64::from(wanted.frames) > free
        {
            return None;
        }
        for order in (0..=self.core.max_order).rev() {
            for state in State::ALL {
                let mut index = self.core.lists[state as usize][order as usize].head;
                while index != NONE {
                    let follows = index.checked_sub(1).and_then(|before| self.block_at(before));
                    if follows.is_none_or(|(_, tag)| tag.free_state().is_none())
                        && let Some(run) = self.run_from(index, wanted)
                    {
                        return Some(run);
                    }
                    index = self.frames[index as usize].next.load(Ordering::Relaxed);
                }
            }
        }
        None
    }

    /// The first run in the stretch that begins there.
    fn run_from(&self, start: u32, wanted: &Wanted) -> Option<Run> {
        let first = wanted.up(start)?;
        let end = first.checked_add(wanted.frames).filter(|end| *end <= self.core.managed)?;
        let (mut absent, mut dirty) = ((end, end), (end, end));
        let mut at = start;
        while at < end {
            let tag = self.frames[at as usize].tag();
            let state = tag.free_state()?;
            let next = at + (1 << tag.order());
            let (from, to) = (at.max(first), next.min(end));
            if from < to {
                match state {
                    State::Dirty => dirty = (dirty.0.min(from), to),
                    State::ZeroAbsent => absent = (absent.0.min(from), to),
                    State::ZeroResident => {}
                }
            }
            at = next;
        }
        let state = worst(|state| match state {
            State::ZeroAbsent => absent.0 < end,
            _ => dirty.0 < end,
        });
        Some(Run { first, state, absent, dirty })
    }

    /// Takes a run all of whose frames are free.
    fn take_found(&mut self, run: &Run, wanted: &Wanted) {
        let (first, end) = (run.first, run.first + wanted.frames);
        self.core.wasted += self.wasted_in(if wanted.zeroed { run.dirty } else { (first, end) });
        let comes = [first, end - 1].map(|at| self.comes_with(at, wanted));
        self.split_at(first);
        self.split_at(end);
        for (part, order) in super::run_parts(first, wanted.frames) {
            // A block that lies in the run and begins with a part is no larger than it.
            self.take_group(part, order, Use::Allocated);
        }
        for (from, to) in comes.into_iter().flatten() {
            self.is_resident(from, first);
            self.is_resident(end.max(from), to);
        }
    }

    /// Zeroed frames that are there, of those whose zeroing is of no use: the caller overwrites them, or zeroes
    /// them with the dirty ones around them.
    pub(super) fn wasted_in(&self, (from, to): (u32, u32)) -> u64 {
        let (mut at, mut found) = (from, 0);
        while at < to {
            let Some((first, tag)) = self.block_at(at) else { break };
            let next = (first + (1 << tag.order())).min(to);
            if tag.free_state() == Some(State::ZeroResident) {
                found += u64::from(next - at);
            }
            at = next;
        }
        found
    }

    /// The frames that the system makes resident together with this one, if none of them is yet.
    fn comes_with(&self, at: u32, wanted: &Wanted) -> Option<(u32, u32)> {
        let around = if at < wanted.single { 1 } else { wanted.around };
        let from = at / around * around;
        let to = from.saturating_add(around).min(self.core.managed);
        let (mut next, _) = self.block_at(from)?;
        while next < to {
            let tag = self.frames[next as usize].tag();
            if tag.free_state() != Some(State::ZeroAbsent) {
                return None;
            }
            next += 1 << tag.order();
        }
        Some((from, to))
    }

    /// Frames that were free and absent are zero and resident.
    fn is_resident(&mut self, from: u32, to: u32) {
        if from >= to {
            return;
        }
        self.split_at(from);
        self.split_at(to);
        let mut at = from;
        while at < to {
            let tag = self.frames[at as usize].tag();
            if tag.free_state() != Some(State::ZeroAbsent) {
                return;
            }
            let order = tag.order();
            self.unlink(at);
            *self.core.counts.of(Use::Free(State::ZeroAbsent)) -= 1 << order;
            *self.core.counts.of(Use::Free(State::ZeroResident)) += 1 << order;
            self.frames[at as usize].set_tag(Tag::free(State::ZeroResident, order));
            self.coalesce_and_link(at, order, State::ZeroResident);
            at += 1 << order;
        }
    }

    /// Cuts the free block in which that frame lies, so that one begins with it. Both sides are the
    /// largest blocks that they can be, but what is left of them may be buddies of one state, until the
    /// caller takes what lies on one side.
    pub(super) fn split_at(&mut self, at: u32) {
        if at >= self.core.managed {
            return;
        }
        let Some((mut index, tag)) = self.block_at(at) else { return };
        let Some(state) = tag.free_state() else { return };
        if index == at {
            return;
        }
        let mut order = tag.order();
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        self.unlink(index);
        while index != at {
            order -= 1;
            let upper = index + (1 << order);
            // As in `carve`: the upper half is tagged first.
            self.frames[upper as usize].stamp.store(stamp, Ordering::Relaxed);
            self.frames[upper as usize].set_tag(Tag::free(state, order));
            self.frames[index as usize].set_tag(Tag::free(state, order));
            if at < upper {
                self.link(upper, order, state);
            } else {
                self.link(index, order, state);
                index = upper;
            }
        }
        self.link(index, order, state);
    }
}
