//! Handing runs out past the caches' stacks, and taking them back.

use crate::buddy::{Buddy, FreeError, Run, State, Wanted, order_for};
use crate::cache;
use crate::config::Verify;
use crate::error::PoolError;
use crate::inner::{Guard, Inner, now};
use crate::os;
use crate::proof::is_zero;
use crate::stats::add;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time that an allocation waits for blocks in flight before it says that there are none. A chunk
/// takes microseconds, but on a busy machine the thread that has it may wait for a CPU, and to be late is better
/// than to have no memory.
const LANDING: Duration = Duration::from_secs(1);
/// Time between two looks.
const LANDING_WAIT: Duration = Duration::from_micros(100);

/// The memory that serves a request.
#[derive(Clone, Copy, Debug)]
enum ServingMemory {
    /// A block of one state, of the run's size or larger; what it has more is still to be given
    /// back.
    Whole(u32, State),
    /// The run itself.
    Run(Run),
}

impl Inner {
    /// A zeroed run of `frames` frames that begins at a multiple of `alignment` of them, past the
    /// caches. Returns its first frame.
    #[cold]
    pub(crate) fn zalloc(&self, frames: u32, alignment: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        let wanted = self.run_of(frames, alignment, true);
        let block = wanted.is_block();
        if block && let Some((index, dirty)) = cache::take_zeroed(self, order) {
            // Blocks that caches had when an engine failed are not trusted.
            if dirty || self.distrusts() {
                self.hot_zero(index, frames);
            }
            self.verify(index, frames)?;
            return Ok(index);
        }
        let mut guard = self.lock_to_take()?;
        self.wanted(u64::from(frames));
        let mut buddy = guard.buddy();
        let found = if block {
            buddy.take(order, State::ZeroResident)
        } else {
            buddy.take_zero_run(&wanted).map(|run| run.first)
        };
        if let Some(index) = found {
            self.release_after_hand_out(guard);
            add(&events.zero_hits[order as usize], 1);
            self.verify(index, frames)?;
            return Ok(index);
        }
        drop(guard);
        add(&events.zero_misses[order as usize], 1);
        self.wake_scrubber(false);
        let found = self.take_any(&wanted, order)?;
        let (index, (from, end)) = self.make_resident(found, frames)?;
        if from != end {
            self.hot_zero(from, end - from);
            add(&events.hot_zeroed, u64::from(end - from) << self.chunks.frame_shift);
        }
        self.verify(index, frames)?;
        Ok(index)
    }

    /// A run of `frames` frames with any contents that begins at a multiple of `alignment` of them,
    /// past the caches' stacks. Returns its first frame.
    #[cold]
    pub(crate) fn alloc(&self, frames: u32, alignment: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        let wanted = self.run_of(frames, alignment, false);
        if wanted.is_block()
            && let Some(index) = cache::take_dirty(self, order)
        {
            return Ok(index);
        }
        let found = self.take_any(&wanted, order)?;
        let (index, _) = self.make_resident(found, frames)?;
        // The lists count runs.
        if matches!(found, ServingMemory::Whole(_, State::ZeroResident)) {
            add(&events.wasted, u64::from(frames) << self.chunks.frame_shift);
        }
        add(&events.dirty_allocations, 1);
        Ok(index)
    }

    fn run_of(&self, frames: u32, alignment: u32, zeroed: bool) -> Wanted {
        let (around, single) = (1 << self.settings().huge_order, self.settings().small);
        Wanted { frames, alignment, zeroed, around, single }
    }

    fn order(&self, frames: u32) -> Result<u32, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        let max_order = self.settings().max_order;
        let order = order_for(frames);
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        Ok(order)
    }

    /// A run from whatever there is: what is there already, then absent memory, then by growing,
    /// then from this thread's own cache, then from what others have in flight at the moment.
    fn take_any(&self, wanted: &Wanted, order: u32) -> Result<ServingMemory, PoolError> {
        let mut deadline = None;
        let mut flushed = false;
        loop {
            let mut guard = self.lock_to_take()?;
            let found = self.take_once(&mut guard, wanted, order);
            if let Some(found) = found {
                self.release_after_hand_out(guard);
                return Ok(found);
            }
            let in_flight = guard.buddy().core().counts().in_flight;
            drop(guard);
            if !flushed {
                flushed = true;
                cache::flush(self);
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + LANDING);
            if in_flight == 0 || !self.settings().waits || Instant::now() >= deadline {
                return Err(PoolError::Exhausted {
                    bytes: (wanted.frames as usize) << self.chunks.frame_shift,
                    capacity: (self.chunks.capacity as usize) << self.chunks.frame_shift,
                });
            }
            self.hold_off();
            #[cfg(all(feature = "testing", debug_assertions))]
            if crate::schedule::point() {
                continue;
            }
            os::sleep(LANDING_WAIT);
        }
    }

    fn take_once(
        &self,
        guard: &mut Guard<'_>,
        wanted: &Wanted,
        order: u32,
    ) -> Option<ServingMemory> {
        let mut buddy = guard.buddy();
        let block = wanted.is_block();
        // Absent memory is handed out as a block, to be cut down when it is there (`populate`).
        let order = order.max(wanted.alignment.ilog2());
        let states = State::resident(wanted.zeroed);
        // Before it is taken: what the system brings with a run counts as there from then on.
        let opens = |run: &Run| self.open(run.absent.0, run.absent.1).is_ok();
        let held = |buddy: &mut Buddy<'_>| {
            let block = block.then(|| {
                states.iter().find_map(|state| {
                    Some(ServingMemory::Whole(buddy.take(order, *state)?, *state))
                })
            });
            let absent = State::ZeroAbsent;
            block
                .flatten()
                .or_else(|| Some(ServingMemory::Run(buddy.take_run_if(wanted, opens)?)))
                // In portions, and in smaller ones where there are no larger ones.
                .or_else(|| {
                    Some(ServingMemory::Whole(buddy.take(self.around(order), absent)?, absent))
                })
                .or_else(|| Some(ServingMemory::Whole(buddy.take(order, absent)?, absent)))
                .or_else(|| Some(ServingMemory::Run(buddy.take_any_run_if(wanted, opens)?)))
        };
        if let Some(found) = held(&mut buddy) {
            return Some(found);
        }
        self.grow(&mut buddy, order);
        held(&mut buddy)
    }

    /// Faults in what of the run is absent. Its first frame, and from where to where it may be dirty.
    fn make_resident(
        &self,
        found: ServingMemory,
        frames: u32,
    ) -> Result<(u32, (u32, u32)), PoolError> {
        match found {
            ServingMemory::Whole(index, State::ZeroAbsent) => {
                self.populate(index, frames)?;
                Ok((index, (index, index)))
            }
            ServingMemory::Whole(index, State::Dirty) => Ok((index, (index, index + frames))),
            ServingMemory::Whole(index, State::ZeroResident) => Ok((index, (index, index))),
            ServingMemory::Run(run) => {
                self.populate_run(run, frames)?;
                Ok((run.first, run.dirty))
            }
        }
    }

    /// Makes a run longer or shorter where it is. False, and nothing is changed, if something else is
    /// behind it; with `or_move` also if nothing is there yet, and twice as much is resident elsewhere.
    pub(crate) fn resize(
        &self,
        index: u32,
        (frames, wanted): (u32, u32),
        or_move: bool,
    ) -> Result<bool, PoolError> {
        let wrong = |why| self.free_error(index, order_for(frames), why);
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        if wanted == 0 || order_for(wanted) > self.settings().max_order {
            return Ok(false);
        }
        let mut guard = self.lock()?;
        if wanted > frames && guard.buddy().is_cached(index + frames) {
            // This thread's cache may have taken what is behind it together with it.
            drop(guard);
            cache::flush(self);
            guard = self.lock()?;
        }
        if wanted <= frames {
            let (parts, now) = ((frames, wanted), now());
            let done = guard.buddy().shorten(index, parts, State::Dirty, now);
            drop(guard);
            done.map_err(wrong)?;
            if order_for(frames - wanted) >= self.settings().scrub_start {
                self.wake_scrubber(false);
            }
            return Ok(true);
        }
        let mut buddy = guard.buddy();
        // Else a block that grows again and again takes new memory each time, beside what it gave back.
        // Each move doubles its room: all of them copy less than two of its last lengths.
        if or_move
            && buddy.is_absent(index + frames)
            && buddy.has_resident(wanted.saturating_mul(2))
        {
            return Ok(false);
        }
        let end = index.saturating_add(wanted);
        if end > buddy.core().managed() && end <= self.chunks.capacity {
            let missing = end - buddy.core().managed();
            self.grow(&mut buddy, order_for(missing).min(self.settings().max_order));
        }
        let Some(absent) = buddy.lengthen(index, (frames, wanted)).map_err(wrong)? else {
            return Ok(false);
        };
        self.release_after_hand_out(guard);
        if absent.0 < absent.1 && self.fault_in(absent.0, absent.1 - absent.0).is_err() {
            let mut guard = self.lock()?;
            let (parts, state) = ((wanted, frames), self.vacate(index + frames, end, State::Dirty));
            let undone = guard.buddy().shorten(index, parts, state, now());
            drop(guard);
            undone.map_err(wrong)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Faults in what a run needs of an absent block just taken, rounded up to what the system
    /// brings at once anyway, and gives the rest back: what came beyond the run as zero and
    /// resident, what did not come as absent.
    fn populate(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let taken = self.frames()[index as usize].tag().order();
        let small = index + frames <= self.settings().small;
        let around = if small { os::page_size() } else { self.settings().fault_around };
        let around = (around >> self.chunks.frame_shift).max(1) as u32;
        let mut there = frames.next_multiple_of(around).min(1 << taken);
        let mut populated = self.fault_in(index, there);
        if populated.is_err() && there > frames {
            there = frames;
            populated = self.fault_in(index, there);
        }
        let mut guard = self.lock()?;
        let now = now();
        let result = match &populated {
            Ok(()) => guard.buddy().shrink_resident(index, taken, (frames, there), now),
            Err(_) => guard.buddy().free(index, taken, State::ZeroAbsent, now).map(|_| ()),
        };
        drop(guard);
        result.map_err(|why| self.free_error(index, taken, why))?;
        populated
    }

    /// Faults in what is absent of a run just taken.
    fn populate_run(&self, run: Run, frames: u32) -> Result<(), PoolError> {
        let (from, end) = run.absent;
        let populated = if from == end { Ok(()) } else { self.fault_in(from, end - from) };
        if populated.is_err() {
            let state = self.vacate(run.first, run.first + frames, run.state);
            let mut guard = self.lock()?;
            let freed = guard.buddy().free_run(run.first, frames, state, now());
            drop(guard);
            freed.map_err(|why| self.free_error(run.first, order_for(frames), why))?;
        }
        populated
    }

    /// Makes frames just taken resident, but for those where that is left to the touch.
    fn fault_in(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let bytes = (frames as usize) << self.chunks.frame_shift;
        let refused =
            |errno: rustix::io::Errno| PoolError::NoMemory { bytes, source: errno.into() };
        self.open(index, index + frames).map_err(refused)?;
        if self.settings().fault_on_touch {
            return Ok(());
        }
        // SAFETY: just taken: mapped, and nobody else's.
        unsafe { os::populate(self.address(index), bytes) }.map_err(refused)?;
        add(&self.control().events.populated, bytes as u64);
        Ok(())
    }

    /// Reads a zeroed run just taken, if it is its turn.
    pub(crate) fn verify(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let (every, abort) = match self.settings().verify {
            Verify::Off => return Ok(()),
            Verify::Report(every) => (every, false),
            Verify::Abort(every) => (every, true),
        };
        if !self.verify_turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            return Ok(());
        }
        let events = &self.control().events;
        add(&events.verified, 1);
        let bytes = (frames as usize) << self.chunks.frame_shift;
        let Some((address, byte)) = self.not_zero(index, bytes) else { return Ok(()) };
        add(&events.verify_failed, 1);
        let error = PoolError::NotZero { address, byte, bytes };
        if abort {
            let text = std::format!("cachewise: {error}; aborting\n");
            os::write_stderr(text.as_bytes());
            std::process::abort();
        }
        let mut guard = self.lock()?;
        for (part, order) in crate::buddy::run_parts(index, frames) {
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

    /// Takes a run back, past the caches.
    pub(crate) fn free(&self, index: u32, frames: u32, zeroed: bool) -> Result<(), PoolError> {
        let state = if zeroed { State::ZeroResident } else { State::Dirty };
        let mut guard = self.lock()?;
        let freed = guard.buddy().free_run(index, frames, state, now());
        drop(guard);
        let order = freed.map_err(|why| self.free_error(index, order_for(frames), why))?;
        add(&self.control().events.frees, 1);
        if order >= self.settings().scrub_start {
            self.wake_scrubber(false);
        }
        Ok(())
    }

    pub(crate) fn free_error(&self, index: u32, order: u32, why: FreeError) -> PoolError {
        PoolError::Free { address: self.address(index) as usize, order, why }
    }
}
