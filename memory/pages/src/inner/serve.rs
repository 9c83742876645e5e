//! Handing out past the caches' stacks, and taking back.

use crate::buddy::{FreeError, State, order_for, run_parts};
use crate::config::Verify;
use crate::engine::proof::is_zero;
use crate::error::PoolError;
use crate::inner::cache;
use crate::inner::{Guard, Inner, now};
use crate::os;
use crate::stats::add;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time that an allocation waits for blocks in flight before it says that there are none. A chunk
/// takes microseconds, but on a busy machine the thread that has it may wait for a CPU, and to be late is better
/// than to have no memory.
const LANDING: Duration = Duration::from_secs(1);
/// Time between two looks.
const LANDING_WAIT: Duration = Duration::from_micros(100);

/// Frames that are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) frames: u32,
    /// They begin at a multiple of so many frames, a power of two.
    pub(crate) alignment: u32,
    pub(crate) zeroed: bool,
}

/// Frames just taken, and what is still to be done with them.
#[derive(Clone, Copy, Debug)]
struct Taken {
    first: u32,
    /// Some of it is dirty, absent.
    dirty: bool,
    absent: bool,
    /// The order of the block whose front they are, where the rest is still to be given back: when it is known how much
    /// of it came with them.
    block: Option<u32>,
}

impl Taken {
    fn of(first: u32, state: State) -> Taken {
        let (dirty, absent) = (state == State::Dirty, state == State::ZeroAbsent);
        Taken { first, dirty, absent, block: None }
    }
}

impl Inner {
    /// Hands out frames, past the caches' stacks. Returns the first.
    #[cold]
    pub(crate) fn take(self: &Arc<Self>, wanted: Wanted) -> Result<u32, PoolError> {
        self.usable()?;
        let Wanted { frames, alignment, zeroed } = wanted;
        if frames > self.capacity {
            let (bytes, capacity) = (self.length(frames), self.length(self.capacity));
            return Err(PoolError::TooLarge { bytes, capacity });
        }
        let events = self.events();
        let order = order_for(frames);
        if frames == 1 << order && alignment <= frames {
            if zeroed && let Some((index, dirty)) = cache::take_zeroed(self, order) {
                // Blocks that caches had when an engine failed are not trusted.
                if dirty || self.distrusts() {
                    self.hot_zero(index, frames);
                }
                self.verify(index, frames)?;
                return Ok(index);
            }
            if !zeroed && let Some(index) = cache::take_dirty(self, order) {
                return Ok(index);
            }
        }
        let taken = self.find(wanted)?;
        if taken.absent {
            self.make_resident(taken, frames)?;
        }
        let of_order = (order as usize).min(events.zero_hits.len() - 1);
        match (zeroed, taken.dirty) {
            (true, dirty) => {
                let hit = !dirty && !taken.absent;
                let counts = if hit { &events.zero_hits } else { &events.zero_misses };
                add(&counts[of_order], 1);
                if dirty {
                    self.hot_zero(taken.first, frames);
                    add(&events.hot_zeroed, self.length(frames) as u64);
                }
                self.verify(taken.first, frames)?;
            }
            (false, dirty) => {
                add(&events.dirty_allocations, 1);
                if !dirty && !taken.absent {
                    add(&events.wasted, self.length(frames) as u64);
                }
            }
        }
        Ok(taken.first)
    }

    /// Frames from whatever there is: what is there already, then absent memory, then by growing, then from adjacent free
    /// blocks in any state, then from this thread's own cache, then from what others have in flight at the moment.
    fn find(&self, wanted: Wanted) -> Result<Taken, PoolError> {
        let mut deadline = None;
        let mut flushed = false;
        loop {
            let mut guard = self.lock()?;
            if wanted.zeroed && deadline.is_none() && !flushed {
                self.wanted(u64::from(wanted.frames));
            }
            let (found, refused) = self.find_once(&mut guard, wanted);
            let in_flight = guard.buddy().core().counts().in_flight;
            drop(guard);
            if let Some(taken) = found {
                if wanted.zeroed && (taken.dirty || taken.absent) {
                    self.wake_scrubber(false);
                }
                return Ok(taken);
            }
            if !flushed {
                flushed = true;
                cache::flush(self);
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + LANDING);
            if in_flight == 0 || Instant::now() >= deadline {
                let (bytes, capacity) = (self.length(wanted.frames), self.length(self.capacity));
                return Err(match refused {
                    Some(errno) => PoolError::NoMemory { bytes, source: os::error(errno) },
                    None => PoolError::Exhausted { bytes, capacity },
                });
            }
            self.hold_off();
            os::sleep(LANDING_WAIT);
        }
    }

    /// Frames found now, and the system's answer if it refused to let the pool grow.
    fn find_once(
        &self,
        guard: &mut Guard<'_>,
        wanted: Wanted,
    ) -> (Option<Taken>, Option<rustix::io::Errno>) {
        let Wanted { frames, alignment, zeroed } = wanted;
        let mut buddy = guard.buddy();
        // A block lies at a multiple of its size.
        let order = order_for(frames.max(alignment));
        for state in State::resident(zeroed) {
            if let Some(first) = buddy.take_front(order, frames, state, now()) {
                return (Some(Taken::of(first, state)), None);
            }
        }
        // Absent memory in portions, and in smaller ones where there are no larger ones.
        let portion = order.max(self.order_in(self.settings().fault_around));
        let absent = |buddy: &mut crate::buddy::Buddy<'_>| {
            [portion, order].into_iter().find_map(|order| {
                let first = buddy.take(order, State::ZeroAbsent)?;
                Some(Taken { block: Some(order), ..Taken::of(first, State::ZeroAbsent) })
            })
        };
        if let Some(taken) = absent(&mut buddy) {
            return (Some(taken), None);
        }
        let refused = self.grow(&mut buddy, frames.max(alignment)).err();
        let found = absent(&mut buddy).or_else(|| {
            // What is taken and given back as a block is one.
            let is_block = frames == 1 << order_for(frames) && order <= self.settings().max_order;
            let alignment = if is_block { alignment.max(frames) } else { alignment };
            let run = buddy.take_any_run(frames, alignment)?;
            Some(Taken { first: run.first, dirty: run.dirty, absent: run.absent, block: None })
        });
        (found, refused)
    }

    /// Faults in what of the frames is absent. Of a block's front as much more as the system brings at once anyway; the
    /// rest is given back: what came as zero and resident, what did not as absent.
    fn make_resident(&self, taken: Taken, frames: u32) -> Result<(), PoolError> {
        let Taken { first, block, .. } = taken;
        let around = 1 << self.order_in(self.settings().fault_around);
        let most = block.map_or(frames, |order| 1 << order);
        let mut there = frames.next_multiple_of(around).min(most);
        let mut populated = self.fault_in(first, there);
        if populated.is_err() && there > frames {
            there = frames;
            populated = self.fault_in(first, there);
        }
        let mut guard = self.lock()?;
        let mut buddy = guard.buddy();
        let absent = (State::ZeroAbsent, now());
        let done = match (&populated, block) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(order)) => buddy.keep_front(first, order, (frames, there), absent),
            (Err(_), Some(order)) => buddy.free(first, order, absent.0, absent.1).map(|_| ()),
            (Err(_), None) => buddy.free_run(first, frames, State::Dirty, absent.1).map(|_| ()),
        };
        drop(guard);
        done.map_err(|why| self.free_error(first, order_for(frames), why))?;
        populated
    }

    fn fault_in(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let range = self.range(index, frames);
        // SAFETY: just taken: mapped, and nobody else's.
        unsafe { os::populate(range.start, range.length) }.map_err(|errno| {
            PoolError::NoMemory { bytes: range.length, source: os::error(errno) }
        })?;
        add(&self.events().populated, range.length as u64);
        Ok(())
    }

    /// Reads zeroed frames just taken, if it is their turn.
    fn verify(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let (every, abort) = match self.settings().verify {
            Verify::Off => return Ok(()),
            Verify::Report(every) => (every, false),
            Verify::Abort(every) => (every, true),
        };
        if !self.verify_turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            return Ok(());
        }
        let events = self.events();
        add(&events.verified, 1);
        let bytes = self.length(frames);
        let Some((address, byte)) = self.not_zero(index, bytes) else { return Ok(()) };
        add(&events.verify_failed, 1);
        let error = PoolError::NotZero { address, byte, bytes };
        if abort {
            let text = std::format!("cachewise: {error}; aborting\n");
            os::write_stderr(text.as_bytes());
            std::process::abort();
        }
        let mut guard = self.lock()?;
        for (part, order) in run_parts(index, frames, self.settings().max_order) {
            let done = guard.buddy().quarantine_allocated(part, order);
            done.map_err(|why| self.free_error(part, order, why))?;
        }
        add(&events.quarantined_ever, bytes as u64);
        Err(error)
    }

    /// The first byte that is not zero, with its address.
    pub(crate) fn not_zero(&self, index: u32, bytes: usize) -> Option<(usize, u8)> {
        // SAFETY: the caller holds the block, so it is mapped and nobody writes to it.
        let slice = unsafe { std::slice::from_raw_parts(self.address(index), bytes) };
        if is_zero(slice) {
            return None;
        }
        let place = slice.iter().position(|byte| *byte != 0)?;
        Some((slice.as_ptr() as usize + place, slice[place]))
    }

    /// Takes frames back, past the caches.
    pub(crate) fn free(&self, index: u32, frames: u32, zeroed: bool) -> Result<(), PoolError> {
        let state = if zeroed { State::ZeroResident } else { State::Dirty };
        let mut guard = self.lock()?;
        let freed = guard.buddy().free_run(index, frames, state, now());
        drop(guard);
        let order = freed.map_err(|why| self.free_error(index, order_for(frames), why))?;
        add(&self.events().frees, 1);
        if order >= self.settings().scrub_start {
            self.wake_scrubber(false);
        }
        Ok(())
    }

    pub(crate) fn free_error(&self, index: u32, order: u32, why: FreeError) -> PoolError {
        PoolError::Free { address: self.address(index) as usize, order, why }
    }
}
