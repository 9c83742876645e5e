//! The model that the page allocator is held against: bytes become operations, one byte of memory
//! stands for each frame. `cargo test` replays the fuzzer's corpus and random sequences through it, a
//! fuzzer runs it on its own.

use cachewise_pages::buddy::{
    Buddy, Core, Frame, FreeError, Run, State, Use, order_for, run_parts,
};

struct Held {
    index: u32,
    frames: u32,
}

/// One allocator, its memory, and what is known to be in whose hands.
pub struct Model {
    core: Core,
    frames: Vec<Frame>,
    /// 0 is zero; anything else is what somebody wrote.
    memory: Vec<u8>,
    held: Vec<Held>,
    flying: Vec<(u32, u32)>,
    cached: Vec<(u32, u32, bool)>,
    quarantined: Vec<(u32, u32)>,
    /// Taker of each frame: 0 for none, else one more than a place in time.
    taken: Vec<bool>,
    now: u32,
}

impl Model {
    /// An allocator with room for that many frames, none of them in use yet.
    pub fn new(frames: u32, max_order: u32) -> Model {
        Model {
            core: Core::new(max_order),
            frames: (0..frames).map(|_| Frame::new()).collect(),
            memory: vec![0; frames as usize],
            held: Vec::new(),
            flying: Vec::new(),
            cached: Vec::new(),
            quarantined: Vec::new(),
            taken: vec![false; frames as usize],
            now: 0,
        }
    }

    fn buddy(&mut self) -> Buddy<'_> {
        Buddy::new(&mut self.core, &self.frames)
    }

    /// Marks frames as somebody's; nobody may have them already.
    fn claim(&mut self, index: u32, frames: u32) {
        for frame in index..index + frames {
            let taken = &mut self.taken[frame as usize];
            assert!(!*taken, "frame {frame} is handed out twice");
            *taken = true;
        }
    }

    fn unclaim(&mut self, index: u32, frames: u32) {
        self.taken[index as usize..(index + frames) as usize].fill(false);
    }

    fn assert_zero(&self, index: u32, frames: u32) {
        let range = index as usize..(index + frames) as usize;
        assert!(self.memory[range].iter().all(|byte| *byte == 0), "a zero block is not zero");
    }

    fn scribble(&mut self, index: u32, frames: u32, byte: u8) {
        self.memory[index as usize..(index + frames) as usize].fill(byte | 1);
    }

    /// One operation, chosen and parametrised by two bytes.
    pub fn step(&mut self, operation: u8, argument: u8) {
        self.now = self.now.wrapping_add(1);
        let (now, argument) = (self.now, u32::from(argument));
        let max_order = self.core.max_order();
        let order = argument % (max_order + 2);
        match operation % 16 {
            0..=2 => {
                let state = State::ALL[usize::from(operation % 16)];
                if let Some(index) = self.buddy().take(order, state) {
                    self.took(index, 1 << order, state);
                }
            }
            3 => {
                let frames = 1 + argument * 5 % ((2 << max_order) + 2);
                self.any_run(frames, 1 << (argument % 3));
            }
            4 => {
                let frames = 1 + argument % (1 << max_order);
                let order = order_for(frames);
                let state = State::ALL[(argument / 4 % 3) as usize];
                if argument.is_multiple_of(4) {
                    if let Some(index) = self.buddy().take(order, State::ZeroAbsent) {
                        let there = frames + argument % ((1 << order) - frames + 1);
                        let rest = (State::ZeroAbsent, now);
                        let kept = self.buddy().keep_front(index, order, (frames, there), rest);
                        assert_eq!(kept, Ok(()));
                        self.took(index, frames, State::ZeroAbsent);
                    }
                } else if let Some(index) = self.buddy().take_front(order, frames, state, now) {
                    self.took(index, frames, state);
                }
            }
            5 | 6 => self.free(argument, operation % 16 == 6),
            7 => {
                if let Some((index, order)) = self.buddy().take_to_zero(0, order, 2, now) {
                    self.claim(index, 1 << order);
                    self.flying.push((index, order));
                }
            }
            8 => {
                let orders = (argument % 2, order);
                if let Ok((index, order)) = self.buddy().take_to_trim(orders, argument % 3, now) {
                    self.claim(index, 1 << order);
                    self.flying.push((index, order));
                }
            }
            9 | 10 => self.land(argument, operation % 16 == 10),
            11 => self.cache(argument),
            12 if argument > 160 => self.fill_cache(argument),
            12 => self.uncache(argument),
            13 => self.quarantine(argument),
            14 if argument > 200 => {
                if let Some((index, order)) = self.buddy().take_zeroed_away() {
                    self.claim(index, 1 << order);
                    self.flying.push((index, order));
                }
            }
            14 => {
                let count = argument % 40;
                self.buddy().extend(count, State::ZeroAbsent, now);
            }
            _ => self.misuse(argument),
        }
        self.check();
    }

    /// A run if there is a place for it: where no frame is anybody's.
    fn any_run(&mut self, frames: u32, alignment: u32) {
        let managed = self.core.managed();
        let place = |first: &u32| {
            first + frames <= managed
                && !self.taken[*first as usize..(first + frames) as usize].contains(&true)
        };
        let possible = (0..managed).step_by(alignment as usize).find(place);
        let run = self.buddy().take_any_run(frames, alignment);
        assert_eq!(run.map(|run| run.first), possible, "{frames} by {alignment}");
        let Some(Run { first, dirty, absent }) = run else { return };
        let state = match (dirty, absent) {
            (true, _) => State::Dirty,
            (false, true) => State::ZeroAbsent,
            (false, false) => State::ZeroResident,
        };
        self.took(first, frames, state);
    }

    fn took(&mut self, index: u32, frames: u32, state: State) {
        self.claim(index, frames);
        if matches!(state, State::ZeroResident | State::ZeroAbsent) {
            self.assert_zero(index, frames);
        }
        self.scribble(index, frames, self.now as u8);
        self.held.push(Held { index, frames });
    }

    fn free(&mut self, argument: u32, zeroed: bool) {
        if self.held.is_empty() {
            return;
        }
        let Held { index, frames } = self.held.swap_remove(argument as usize % self.held.len());
        let state = if zeroed { State::ZeroResident } else { State::Dirty };
        if zeroed {
            self.memory[index as usize..(index + frames) as usize].fill(0);
        }
        self.unclaim(index, frames);
        let now = self.now;
        let freed = self.buddy().free_run(index, frames, state, now);
        assert!(freed.is_ok(), "{freed:?}");
        let again = self.buddy().free_run(index, frames, state, now);
        assert!(matches!(again, Err(FreeError::DoubleFree)), "freed twice: {again:?}");
    }

    fn land(&mut self, argument: u32, well: bool) {
        if self.flying.is_empty() {
            return;
        }
        let place = argument as usize % self.flying.len();
        let (index, order) = self.flying.swap_remove(place);
        let state = match (well, argument % 2) {
            (false, _) => State::Dirty,
            (true, 0) => State::ZeroResident,
            (true, _) => State::ZeroAbsent,
        };
        if well {
            self.memory[index as usize..(index + (1 << order)) as usize].fill(0);
        } else {
            self.scribble(index, 1 << order, 0xEE);
        }
        self.unclaim(index, 1 << order);
        let now = self.now;
        assert!(self.buddy().land(index, order, state, now).is_ok());
    }

    fn cache(&mut self, argument: u32) {
        let highest = 1 << self.core.max_order();
        let is_block = |held: &Held| {
            held.frames.is_power_of_two()
                && held.frames <= highest
                && held.index.is_multiple_of(held.frames)
        };
        let whole = self.held.iter().position(is_block);
        let Some(place) = whole else { return };
        let Held { index, frames } = self.held.swap_remove(place);
        let (order, zero) = (frames.ilog2(), argument.is_multiple_of(2));
        let frame = &self.frames[index as usize];
        assert!(frame.cache(order + 1, zero).is_err(), "a wrong order is noticed");
        assert!(frame.cache(order, zero).is_ok());
        assert!(frame.cache(order, zero).is_err(), "caching twice is noticed");
        if zero {
            self.memory[index as usize..(index + frames) as usize].fill(0);
        }
        self.cached.push((index, order, zero));
    }

    fn uncache(&mut self, argument: u32) {
        let Some((index, order, zero)) = self.cached.pop() else { return };
        let now = self.now;
        let foreign = self.held.first().map(|held| held.index);
        if argument.is_multiple_of(2) {
            self.unclaim(index, 1 << order);
            // With one that is not cached.
            let blocks: Vec<u32> = foreign.into_iter().chain([index]).collect();
            let (_, refused) = self.buddy().free_cached(&blocks, order, zero, now);
            assert_eq!(refused, usize::from(foreign.is_some()));
        } else {
            self.frames[index as usize].hand_out(order);
            if zero {
                self.assert_zero(index, 1 << order);
            }
            self.scribble(index, 1 << order, 0x55);
            self.held.push(Held { index, frames: 1 << order });
        }
    }

    /// Takes blocks for a cache together.
    fn fill_cache(&mut self, argument: u32) {
        let (order, zero) = (argument % 3, argument.is_multiple_of(2));
        let mut blocks = [0; 16];
        let places = &mut blocks[..1 + (argument / 16) as usize % 16];
        let found = self.buddy().take_cached(order, zero, places);
        for index in &blocks[..found] {
            self.claim(*index, 1 << order);
            if zero {
                self.assert_zero(*index, 1 << order);
            }
            self.cached.push((*index, order, zero));
        }
    }

    fn quarantine(&mut self, argument: u32) {
        let now = self.now;
        match argument % 3 {
            0 => {
                let Some((index, order)) = self.flying.pop() else { return };
                assert!(self.buddy().quarantine(index, order).is_ok());
                self.scribble(index, 1 << order, 0xDD);
                self.quarantined.push((index, order));
            }
            1 => {
                let Some(Held { index, frames }) = self.held.pop() else { return };
                let max_order = self.core.max_order();
                for (part, order) in run_parts(index, frames, max_order) {
                    assert!(self.buddy().quarantine_allocated(part, order).is_ok());
                    self.quarantined.push((part, order));
                }
            }
            _ => {
                let Some((index, order)) = self.quarantined.pop() else { return };
                self.unclaim(index, 1 << order);
                assert!(self.buddy().end_quarantine(index, order, now).is_ok());
            }
        }
    }

    /// Wrong calls change nothing.
    fn misuse(&mut self, argument: u32) {
        let before = self.core.counts();
        let index = argument.wrapping_mul(2_654_435_761) >> 8;
        let index = index % (self.frames.len() as u32 + 3);
        let order = argument % 25;
        let now = self.now;
        let max_order = self.core.max_order();
        let held = |this: &Model, frames: u32| {
            this.held.iter().any(|held| {
                run_parts(held.index, held.frames, max_order)
                    .any(|(first, part)| first == index && frames == 1 << part)
            })
        };
        if order > 20 || !held(self, 1 << order) {
            let freed = self.buddy().free(index, order, State::Dirty, now);
            assert!(freed.is_err(), "frame {index}, order {order} was nobody's");
        }
        if !self.flying.contains(&(index, order)) {
            assert!(self.buddy().land(index, order, State::ZeroResident, now).is_err());
            assert!(self.buddy().quarantine(index, order).is_err());
        }
        assert_eq!(self.core.counts(), before, "a refusal changed something");
    }

    /// Everything adds up, and everything said to be zero is.
    pub fn check(&mut self) {
        let counts = self.buddy().check().expect("sound bookkeeping");
        let taken = self.taken.iter().filter(|taken| **taken).count() as u64;
        assert_eq!(counts.out + counts.in_flight + counts.quarantined, taken, "conservation");
        assert_eq!(counts.total(), u64::from(self.core.managed()));
        let zero: Vec<_> = self
            .buddy()
            .walk()
            .filter(|(_, tag)| {
                matches!(tag.used(), Some(Use::Free(State::ZeroResident | State::ZeroAbsent)))
            })
            .collect();
        for (index, tag) in zero {
            self.assert_zero(index, 1 << tag.order());
        }
    }

    /// Brings everything back and expects the fewest blocks that can be.
    pub fn finish(mut self) {
        while !self.held.is_empty() {
            self.free(0, false);
        }
        while !self.flying.is_empty() {
            self.land(0, false);
        }
        for (index, order, zero) in std::mem::take(&mut self.cached) {
            self.unclaim(index, 1 << order);
            assert_eq!(self.buddy().free_cached(&[index], order, zero, 0).1, 0);
        }
        for (index, order) in std::mem::take(&mut self.quarantined) {
            self.unclaim(index, 1 << order);
            assert!(self.buddy().end_quarantine(index, order, 0).is_ok());
        }
        self.check();
        // Whatever is free in mixed states can be had as the largest blocks there can be.
        let (managed, max_order) = (self.core.managed(), self.core.max_order());
        let mut all = 0;
        let mut blocks = Vec::new();
        for order in (0..=max_order).rev() {
            loop {
                let mut buddy = self.buddy();
                let taken = State::ALL
                    .iter()
                    .find_map(|state| buddy.take(order, *state))
                    .or_else(|| buddy.take_any_run(1 << order, 1 << order).map(|run| run.first));
                let Some(index) = taken else { break };
                self.claim(index, 1 << order);
                all += 1u32 << order;
                blocks.push((index, order));
                assert!(managed >> order << order >= index + (1 << order));
            }
            let aligned = managed >> order << order;
            assert_eq!(all, aligned, "not everything merged at order {order}");
        }
        self.check();
        for (index, order) in blocks {
            self.unclaim(index, 1 << order);
            assert!(self.buddy().free(index, order, State::Dirty, 0).is_ok());
        }
        self.check();
        let blocks: u32 = (0..=max_order).map(|order| self.core.blocks(State::Dirty, order)).sum();
        let fewest = (managed >> max_order) + (managed & ((1 << max_order) - 1)).count_ones();
        assert_eq!(blocks, fewest, "full coalescing");
    }
}

/// Interprets bytes as a sequence of operations, checking everything after each.
pub fn replay(bytes: &[u8]) {
    let [size, order, operations @ ..] = bytes else { return };
    let mut model = Model::new(1 + u32::from(*size), u32::from(*order) % 9);
    model.step(14, *size % 40);
    for pair in operations.chunks_exact(2).take(2000) {
        model.step(pair[0], pair[1]);
    }
    model.finish();
}
