//! All call sites of a process, for many threads: a table that does not grow, without locks.
//!
//! A site's trial is changed by one thread at a time. A thread that finds another at it does not
//! wait: its call goes the way the last one went, and its interval is not counted. So a signal
//! handler may copy inside a copy, and a thread may end anywhere.

use crate::Way;
use crate::gate::Gated;
pub use crate::operation::Operation;
use crate::section::Site as Known;
use crate::trial::{Budget, Call, Clock, Trial};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Sites that have a place; further ones are done as the profile says.
///
/// Miri looks at the whole table at each reference to it.
pub const SITES: usize = if cfg!(miri) { 64 } else { 1024 };

/// Places looked at for a site.
const STEPS: usize = 16;

/// A site: where it is called from, what it does, and the octave of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

/// Bits of an address in user space (x86-64 with five levels of page tables).
const ADDRESS_BITS: u32 = 56;

impl Key {
    /// The key; no two sites of 2^56 bytes of address space share one.
    #[must_use]
    pub fn new(address: usize, operation: Operation, n: usize) -> Key {
        let octave = u64::from(usize::BITS - 1 - (n | 1).leading_zeros());
        // Only sizes of 64 KiB and more come here: the octave is 16 at least and its low five bits
        // are 0 to 31 from there; with the operation it fits in the seven bits below the mark.
        let small = octave.saturating_sub(16).min(31);
        let address = address as u64 & ((1 << ADDRESS_BITS) - 1);
        Key(address | small << ADDRESS_BITS | (operation as u64) << (ADDRESS_BITS + 5) | 1 << 63)
    }

    /// Where it is called from.
    #[must_use]
    pub fn address(self) -> usize {
        (self.0 & ((1 << ADDRESS_BITS) - 1)) as usize
    }

    /// What it does.
    #[must_use]
    pub fn operation(self) -> Operation {
        Operation::ALL[(self.0 >> (ADDRESS_BITS + 5) & 3) as usize]
    }

    /// Its sizes are at least 2 to this power, and below twice that.
    #[must_use]
    pub fn octave(self) -> u32 {
        (self.0 >> ADDRESS_BITS & 31) as u32 + 16
    }
}

/// The module a site lies in, by its number in the process, and how far in; whoever brings the
/// program's memory knows what the numbers mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The module's number.
    pub module: u32,
    /// The return address, as the module's file counts.
    pub offset: u64,
}

/// What is behind a site's gate.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Where it lies; `None` if nobody can say, and then it is not kept.
    pub place: Option<Place>,
    /// Its trial; `None` where its decision is followed and not learned.
    pub trial: Option<Trial>,
    /// The way where there is no trial.
    pub fixed: Option<Way>,
    /// The way its profile goes.
    pub usual: Way,
    /// Bytes so far.
    pub bytes: u64,
}

/// One site's place in the table.
pub struct Slot {
    key: AtomicU64,
    /// The way of the last call, plus 1.
    last: AtomicU8,
    state: Gated<Guarded>,
}

/// Valid when all its bytes are zero, as fresh pages are.
struct Guarded {
    met: bool,
    state: MaybeUninit<State>,
}

/// The table. It is empty where all its bytes are zero, as fresh pages are.
pub struct Sites {
    slots: [Slot; SITES],
    lost: AtomicU64,
}

/// One thread's clocks: by site, those that it called last.
///
/// Sets of a few, as a cache has them: with one place for each site, two sites of one loop that
/// share it would stop each other's clock at every call, and neither would ever be learned.
#[derive(Debug)]
#[repr(C)]
pub struct Clocks {
    sets: [[(u32, Clock); IN_SET]; SETS],
    /// Who goes next where a set is full.
    turn: u32,
    /// Bytes of this thread's large calls so far.
    bytes: u64,
}

const SETS: usize = 16;
const IN_SET: usize = 4;

impl Clocks {
    /// None is running.
    pub const STOPPED: Clocks =
        Clocks { sets: [[(0, Clock::STOPPED); IN_SET]; SETS], turn: 0, bytes: 0 };

    fn of(&mut self, slot: usize) -> &mut Clock {
        let me = slot as u32 + 1;
        let set = &mut self.sets[slot % SETS];
        let found = set.iter().position(|(owner, _)| *owner == me);
        let found = found.or_else(|| set.iter().position(|(owner, _)| *owner == 0));
        let at = found.unwrap_or_else(|| {
            self.turn = self.turn.wrapping_mul(5).wrapping_add(1);
            // The high bits: the low ones of such a sequence have a short period.
            (self.turn >> 16) as usize % IN_SET
        });
        let (owner, clock) = &mut set[at];
        if *owner != me {
            *owner = me;
            *clock = Clock::STOPPED;
        }
        clock
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            key: AtomicU64::new(0),
            last: AtomicU8::new(0),
            state: Gated::new(Guarded { met: false, state: MaybeUninit::zeroed() }),
        }
    }

    /// Its key, once it has one.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        Some(Key(self.key.load(Ordering::Relaxed))).filter(|key| key.0 != 0)
    }

    /// The state as it is; `None` where the site was never met, or a thread of this epoch is at it.
    #[must_use]
    pub fn state(&self, epoch: u32) -> Option<State> {
        self.state.with(epoch, |guarded| guarded.get().copied())?
    }
}

impl Guarded {
    fn get(&mut self) -> Option<&mut State> {
        if !self.met {
            return None;
        }
        // SAFETY: `met` is set behind the writing of the state only.
        Some(unsafe { self.state.assume_init_mut() })
    }

    fn get_or_meet(&mut self, meet: impl FnOnce(&mut State)) -> &mut State {
        if !self.met {
            meet(self.state.write(State::BLANK));
            self.met = true;
        }
        // SAFETY: `met` is set behind the writing of the state only.
        unsafe { self.state.assume_init_mut() }
    }
}

/// What [`Sites::call`] needs to know beyond the call itself.
pub struct Rules<'a> {
    /// What a trial may cost.
    pub budget: &'a Budget,
    /// Number of this process among those forked from each other, from 1: a child is another.
    pub epoch: u32,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites::new()
    }
}

impl Sites {
    /// A table without a site: all its bytes are zero.
    #[must_use]
    pub const fn new() -> Sites {
        Sites { slots: [const { Slot::new() }; SITES], lost: AtomicU64::new(0) }
    }

    /// What is known of a site; `None` where it was never called, or a thread of this epoch is at it.
    #[must_use]
    pub fn state(&self, epoch: u32, key: Key) -> Option<State> {
        let of_key = |at: usize| self.slots.get(at).filter(|slot| slot.key() == Some(key));
        places(key).find_map(of_key)?.state(epoch)
    }

    /// The way for a call, `None` being the profile's own choice. `meet` is asked once per site, at
    /// its first call, for what is known of it, and is given a blank state to change.
    pub fn call(
        &self,
        rules: &Rules<'_>,
        key: Key,
        n: usize,
        clocks: &mut Clocks,
        meet: impl FnOnce(Key, &mut State),
        now: impl FnOnce() -> u64,
    ) -> Option<Way> {
        let call = Call { n, before: clocks.bytes };
        clocks.bytes = clocks.bytes.wrapping_add(n as u64);
        let Some((at, slot)) = self.find(key) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let passed = slot.state.with(rules.epoch, |state| {
            let state = state.get_or_meet(|state| meet(key, state));
            state.bytes = state.bytes.saturating_add(n as u64);
            let way = match &mut state.trial {
                Some(trial) => trial.call(rules.budget, clocks.of(at), &call, now),
                None => state.fixed,
            };
            slot.last.store(way.map_or(0, |way| way as u8 + 1), Ordering::Relaxed);
            way
        });
        passed.unwrap_or_else(|| {
            clocks.of(at).stop();
            match slot.last.load(Ordering::Relaxed) {
                1 => Some(Way::Temporal),
                2 => Some(Way::NonTemporal),
                _ => None,
            }
        })
    }

    fn find(&self, key: Key) -> Option<(usize, &Slot)> {
        places(key).find_map(|at| {
            let slot = self.slots.get(at)?;
            let mut found = slot.key.load(Ordering::Relaxed);
            if found == 0 {
                let taken =
                    slot.key.compare_exchange(0, key.0, Ordering::Relaxed, Ordering::Relaxed);
                found = taken.map_or_else(|other| other, |_| key.0);
            }
            (found == key.0).then_some((at, slot))
        })
    }

    /// All places of the table.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// Calls of sites that found no place.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The places looked at for a site.
fn places(key: Key) -> impl Iterator<Item = usize> {
    // Knuth, TAOCP volume 3, 6.4: multiplication by 2^64 over the golden ratio.
    let start = (key.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize;
    (0..STEPS).map(move |step| (start + step) % SITES)
}

impl State {
    /// Nothing is known, and nothing is tried.
    pub const BLANK: State =
        State { place: None, trial: None, fixed: None, usual: Way::Temporal, bytes: 0 };

    /// Nothing is known, and a trial is about to begin.
    const LEARNING: State = State { trial: Some(Trial::BLANK), ..State::BLANK };

    /// Makes a blank state that of a site at its first call, from what an earlier run left: to learn on,
    /// or to follow. Where it lies: it is larger than what may be left of a signal handler's stack.
    pub fn meet(
        &mut self,
        place: Option<Place>,
        known: Option<&Known>,
        usual: Way,
        learning: bool,
        seed: u64,
    ) {
        if learning {
            self.clone_from(&State::LEARNING);
        }
        if let Some(trial) = &mut self.trial {
            trial.begin(usual, seed);
            if let Some(known) = known {
                trial.go_on_from(&known.left);
            }
        }
        self.place = place;
        self.fixed = known.and_then(|known| match known.left.outcome {
            crate::trial::Outcome::Decided(way) => Some(way),
            crate::trial::Outcome::CannotTell(_) => None,
        });
        self.usual = usual;
        self.bytes = known.map_or(0, |known| known.bytes);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::gate::Epochs;
    use crate::trial::{Left, Outcome};
    use core::sync::atomic::AtomicU32;
    use std::boxed::Box;
    use std::thread;

    fn empty() -> Box<Sites> {
        // SAFETY: a table is empty where all its bytes are zero: atomics, a bool and a MaybeUninit.
        unsafe { Box::new_zeroed().assume_init() }
    }

    const RULES: Rules<'static> = Rules { budget: &Budget::TRIAL_RUN, epoch: 1 };

    fn met(_: Key, state: &mut State) {
        state.meet(None, None, Way::Temporal, true, 3);
    }

    /// How much a test does. Under Miri, which interprets and looks at each access, it is as little as
    /// still takes the test through all it is about.
    const fn amount(usual: usize, under_miri: usize) -> usize {
        if cfg!(miri) { under_miri } else { usual }
    }

    #[test]
    fn a_key_says_what_went_into_it() {
        for address in [0x1000, 0x7FFF_FFFF_FFFF, 0x00FF_FFFF_FFFF_FFFF] {
            for operation in Operation::ALL {
                for octave in (16..47).step_by(amount(1, 6)) {
                    for n in [1usize << octave, (1 << octave) + 5, (2 << octave) - 1] {
                        let key = Key::new(address, operation, n);
                        assert_eq!(key.address(), address);
                        assert_eq!(key.operation(), operation);
                        assert_eq!(key.octave(), octave);
                    }
                }
            }
        }
    }

    #[test]
    fn sites_of_one_loop_do_not_stop_each_others_clocks() {
        let sites = empty();
        let mut clocks = Clocks::STOPPED;
        let mut time = 0;
        let key = |at: usize| Key::new(0x5000 + at * 0x123, Operation::Copy, 1 << 20);
        for _ in 0..amount(200, 60) {
            for at in 0..32 {
                time += 1000;
                sites.call(&RULES, key(at), 1 << 20, &mut clocks, met, || time);
            }
        }
        let learning = (0..32).filter(|at| {
            let state = sites.state(1, key(*at)).expect("called");
            state.trial.is_some_and(|trial| trial.left().evidence.pairs() > 4)
        });
        // A set that more than its four fall into has some of them wait for a better day.
        assert!(learning.count() >= 24);
    }

    /// A thread has clocks for 64: of more, most find theirs gone, and then nobody knows what trying
    /// costs.
    #[test]
    fn more_sites_than_clocks_are_hardly_tried_in_service() {
        let rules = Rules { budget: &Budget::IN_SERVICE, epoch: 1 };
        let few = (amount(32, 2), amount(5000, 1000), 0.02);
        let many = (amount(400, 80), amount(5000, 5), 0.002);
        for (count, each, most) in [few, many] {
            let sites = empty();
            let mut clocks = Clocks::STOPPED;
            let mut time = 0;
            let mut otherwise = 0;
            let calls = each * count;
            for call in 0..calls {
                time += 1000;
                let key = Key::new(0x5000 + call % count * 0x123, Operation::Copy, 1 << 20);
                let way = sites.call(&rules, key, 1 << 20, &mut clocks, met, || time);
                otherwise += usize::from(way == Some(Way::NonTemporal));
            }
            let share = otherwise as f64 / calls as f64;
            assert!(share < most, "{count} sites: {share}");
            assert!(count > 64 || otherwise > 0);
        }
    }

    #[test]
    fn more_sites_than_fit_are_done_as_the_profile_says() {
        let sites = empty();
        let mut clocks = Clocks::STOPPED;
        let calls = amount(4, 1);
        for call in 0..calls {
            for address in 0..2 * SITES {
                let key = Key::new(address * 16 + 64, Operation::Copy, 1 << 20);
                let time = (call * SITES + address) as u64;
                sites.call(&RULES, key, 1 << 20, &mut clocks, met, || time);
            }
        }
        let kept = sites.slots().filter(|slot| slot.state(1).is_some()).count();
        assert!(kept > SITES * 3 / 4, "{kept}");
        assert!(sites.lost() >= (calls * SITES) as u64);
    }

    #[test]
    fn a_site_that_somebody_is_at_answers_as_last_time_and_a_forked_child_takes_it_over() {
        let sites = empty();
        let mut clocks = Clocks::STOPPED;
        let key = Key::new(0x5000, Operation::Zero, 1 << 22);
        let left = Left {
            outcome: Outcome::Decided(Way::NonTemporal),
            calls: 1,
            explored: 0,
            reopened: 0,
            evidence: Default::default(),
            screening: Default::default(),
            confirming: Default::default(),
        };
        let known = Known {
            module: 0,
            offset: 0,
            operation: Operation::Zero,
            octave: 22,
            bytes: 0,
            usual: Way::Temporal,
            left,
        };
        let follow = |_, state: &mut State| state.meet(None, Some(&known), Way::Temporal, false, 1);
        let way = sites.call(&RULES, key, 1 << 22, &mut clocks, follow, || 0);
        assert_eq!(way, Some(Way::NonTemporal));
        let slot = sites.slots().find(|slot| slot.key() == Some(key)).expect("a place");
        // As left by a thread that the fork did not copy.
        slot.state.left_by(1);
        let way = sites.call(&RULES, key, 1 << 22, &mut clocks, |_, _| unreachable!(), || 0);
        assert_eq!((way, slot.state(1).is_none()), (Some(Way::NonTemporal), true));
        let child = Rules { budget: &Budget::TRIAL_RUN, epoch: 2 };
        sites.call(&child, key, 1 << 22, &mut clocks, |_, _| unreachable!(), || 0);
        assert_eq!(slot.state(2).map(|state| state.bytes), Some(2 << 22));
    }

    /// Two threads that are the first of a forked child once had an epoch each, and both were let
    /// through the gate.
    #[test]
    fn the_first_threads_of_a_child_agree_on_its_epoch() {
        use std::collections::BTreeSet;
        use std::sync::{Barrier, Mutex};
        const THREADS: usize = 4;
        let (epochs, here) = (Epochs::new(), AtomicU32::new(0));
        let inside = AtomicU32::new(0);
        let slot = Slot::new();
        let (barrier, seen) = (Barrier::new(THREADS), Mutex::new(BTreeSet::new()));
        for child in 0..amount(2000, 10) {
            // As a child finds it.
            here.store(0, Ordering::Relaxed);
            let found = Mutex::new(BTreeSet::new());
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        barrier.wait();
                        let epoch = epochs.of(&here);
                        found.lock().expect("whole").insert(epoch);
                        slot.state.with(epoch, |_| {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                            thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    });
                }
            });
            let found = found.into_inner().expect("whole");
            assert_eq!(found.len(), 1, "one process: {found:?}");
            assert!(
                seen.lock().expect("whole").insert(found),
                "child {child}: an ancestor's number"
            );
        }
    }

    #[test]
    fn threads_lose_no_call_that_found_the_gate_open() {
        let sites = empty();
        let calls = amount(20_000, 60) as u64;
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let sites = &sites;
                scope.spawn(move || {
                    let mut clocks = Clocks::STOPPED;
                    for call in 0..calls {
                        let at = (call % 40) as usize;
                        let key = Key::new(0x4000 + at * 64, Operation::Move, 1 << 17);
                        sites.call(&RULES, key, 1, &mut clocks, met, || call * 1000 + thread);
                    }
                });
            }
        });
        let states = sites.slots().filter_map(|slot| slot.state(1));
        let (mut bytes, mut counted, mut met) = (0, 0, 0);
        for state in states {
            bytes += state.bytes;
            counted += state.trial.map_or(0, |trial| trial.left().calls);
            met += 1;
        }
        assert_eq!(met, 40);
        assert_eq!(bytes, counted, "each call that passed was counted once by both");
        assert!(bytes <= 4 * calls && bytes > calls / 2);
    }
}
