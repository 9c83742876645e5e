//! Work on free memory: it is zeroed, returned to the system, counted.

use crate::buddy::{ORDERS, State};
use crate::cache;
use crate::engine::{Method, Range};
use crate::error::PoolError;
use crate::inner::{Guard, Inner, Working, now};
use crate::os;
use crate::stats::{OrderStats, ScrubberState, Stats, add, get};
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::vec::Vec;

impl Inner {
    /// The lowest order that can be returned to the system by itself.
    pub(crate) fn trim_order(&self) -> u32 {
        (self.settings().trim_unit >> self.chunks.frame_shift).max(1).ilog2()
    }

    /// Returns idle memory to the system until that many bytes were returned or none is left.
    pub(crate) fn trim(&self, most: usize) -> Result<usize, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        cache::flush(self);
        self.return_free(most)
    }

    /// As [`trim`](Inner::trim), of what no cache holds. Of a lease nothing: the pages of a file outlive what is
    /// said of a mapping.
    pub(crate) fn return_free(&self, most: usize) -> Result<usize, PoolError> {
        if !self.may_return() {
            return Ok(0);
        }
        let _working = Working::begin();
        let lowest = self.trim_order();
        let mut refused: Vec<(u32, u32)> = Vec::new();
        let mut failure = None;
        let mut bytes = 0;
        while bytes < most {
            // No more than was asked for, as far as blocks allow.
            let left = ((most - bytes) >> self.chunks.frame_shift).clamp(1, 1 << 17);
            let mut guard = self.lock()?;
            let taken = guard.buddy().take_to_trim(lowest, left.ilog2());
            drop(guard);
            let Some((index, order, _)) = taken else { break };
            let length = self.bytes(order);
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            let discarded = unsafe { os::discard(self.address(index), length) };
            if let Err(errno) = discarded {
                failure = Some(PoolError::system("returning memory to the system")(errno));
                refused.push((index, order));
                // Memory that cannot be returned (locked, for example) would come up again.
                if refused.len() >= 64 {
                    break;
                }
                continue;
            }
            let mut guard = self.lock_to_land()?;
            self.count_broken(&mut guard, index, order);
            let landed = guard.buddy().land(index, order, State::ZeroAbsent, now());
            self.close_absent(&guard.buddy(), index);
            add(&self.control().events.trimmed, length as u64);
            drop(guard);
            landed.map_err(|why| self.free_error(index, order, why))?;
            bytes += length;
        }
        if !refused.is_empty() {
            let mut guard = self.lock()?;
            for (index, order) in refused {
                // Part of it may have been dropped, so nothing is known of it.
                let landed = guard.buddy().land(index, order, State::Dirty, now());
                landed.map_err(|why| self.free_error(index, order, why))?;
            }
        }
        match failure {
            Some(failure) if bytes == 0 => Err(failure),
            _ => Ok(bytes),
        }
    }

    /// In a forked child: drops free memory. It is the parent's too, and is copied where either
    /// writes to it.
    pub(crate) fn drop_inherited(&self) {
        self.settle();
        if self.is_current() && !self.is_closed() {
            let _ = self.return_free(usize::MAX);
        }
    }

    /// Counts a huge page that was whole until this block of it went back to the system.
    fn count_broken(&self, guard: &mut Guard<'_>, index: u32, order: u32) {
        let huge = self.settings().huge_order;
        if order < huge
            && index >= self.settings().small
            && guard.buddy().all_resident(index >> huge << huge, huge)
        {
            add(&self.control().events.huge_broken, 1);
        }
    }

    /// The order of what is returned together: of a huge page no part goes back alone, since what is
    /// left of it would be small pages.
    fn whole_order(&self) -> u32 {
        let unit = self.settings().trim_unit.max(self.settings().fault_around);
        (unit >> self.chunks.frame_shift).max(1).ilog2().min(self.settings().max_order)
    }

    /// Returns one portion of idle memory to the system: what lies above the floor and was not used
    /// for that long. How many bytes that was, or in how many milliseconds there may be something,
    /// if ever.
    pub(crate) fn return_idle(
        &self,
        floor: usize,
        min_idle: u32,
        portion: usize,
    ) -> Result<usize, Option<u32>> {
        if !self.may_return() {
            return Err(None);
        }
        let lowest = self.whole_order();
        let mut guard = self.lock().map_err(|_| None)?;
        let counts = guard.buddy().core().counts();
        let free = (counts.free_resident() << self.chunks.frame_shift) as usize;
        let excess = free.saturating_sub(floor);
        if excess < self.bytes(lowest) {
            return Err(None);
        }
        let highest = (excess.min(portion) >> self.chunks.frame_shift).max(1).ilog2();
        let orders = (lowest, highest);
        let (index, order) = guard.buddy().take_idle(orders, min_idle, now())?;
        drop(guard);
        let length = self.bytes(order);
        // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
        let discarded = unsafe { os::discard(self.address(index), length) };
        let state = if discarded.is_ok() { State::ZeroAbsent } else { State::Dirty };
        let mut guard = self.lock_to_land().map_err(|_| None)?;
        if discarded.is_ok() {
            self.count_broken(&mut guard, index, order);
            add(&self.control().events.trimmed, length as u64);
        }
        let landed = guard.buddy().land(index, order, state, now());
        self.close_absent(&guard.buddy(), index);
        drop(guard);
        debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        if discarded.is_ok() { Ok(length) } else { Err(None) }
    }

    /// Zeroes free dirty blocks in the calling thread, whatever their age, highest order first.
    pub(crate) fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        self.settle();
        let _working = Working::begin();
        let begun = os::thread_cpu_time();
        let method = self.settings().method;
        let lowest = self.lowest_to_zero(method, 0);
        let mut bytes = 0;
        while bytes < budget {
            let left = ((budget - bytes) >> self.chunks.frame_shift).clamp(1, 1 << 9);
            let mut guard = self.lock()?;
            let taken = guard.buddy().take_to_zero(lowest, left.ilog2(), 0, now());
            drop(guard);
            let Some((index, order)) = taken else { break };
            let length = self.bytes(order);
            let range = Range { start: self.address(index), length };
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            let mut zeroed = unsafe { method.zero(range) };
            if zeroed.is_err() {
                add(&self.control().events.engine_faults, 1);
                // SAFETY: as above.
                zeroed = unsafe { Method::Around.zero(range) };
            }
            let state = if zeroed.is_ok() { State::ZeroResident } else { State::Dirty };
            let mut guard = self.lock_to_land()?;
            let landed = guard.buddy().land(index, order, state, now());
            add(&self.control().events.scrubbed, length as u64);
            drop(guard);
            landed.map_err(|why| self.free_error(index, order, why))?;
            bytes += length;
        }
        let used = os::thread_cpu_time().saturating_sub(begun);
        add(&self.control().events.scrub_cpu_ns, used.as_nanos() as u64);
        Ok(bytes)
    }

    /// Dropping pages works on what the system can drop; stores work on anything.
    pub(crate) fn lowest_to_zero(&self, method: Method, stop: u32) -> u32 {
        match method {
            Method::System => stop.max(self.trim_order()),
            Method::Around | Method::Through | Method::Populate => stop,
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats, PoolError> {
        let mut guard = self.lock()?;
        let core = guard.buddy().core().clone();
        let shift = self.chunks.frame_shift;
        let counts = core.counts();
        let events = &self.control().events;
        let mut stats = Stats {
            capacity: u64::from(self.chunks.capacity) << shift,
            managed: u64::from(core.managed()) << shift,
            dirty: (counts.dirty) << shift,
            in_flight: counts.in_flight << shift,
            zero_resident: counts.zero_resident << shift,
            zero_absent: counts.zero_absent << shift,
            quarantined: counts.quarantined << shift,
            resident: (counts.total() - counts.zero_absent) << shift,
            dirty_allocations: get(&events.dirty_allocations),
            frees: get(&events.frees),
            hot_zeroed: get(&events.hot_zeroed),
            populated: get(&events.populated),
            grown_ahead: get(&events.grown_ahead),
            huge_broken: get(&events.huge_broken),
            scrubbed: get(&events.scrubbed),
            scrub_cpu: Duration::from_nanos(get(&events.scrub_cpu_ns)),
            wasted: get(&events.wasted) + (core.wasted() << shift),
            trimmed: get(&events.trimmed),
            quarantined_ever: get(&events.quarantined_ever),
            engine_faults: get(&events.engine_faults),
            verified: get(&events.verified),
            verify_failed: get(&events.verify_failed),
            lock_holds: get(&self.control().holds),
            scrubber: ScrubberState::from_code(self.background.state.load(Ordering::Relaxed)),
            load_rests: get(&self.background.load_rests),
            ..Stats::default()
        };
        for order in 0..ORDERS {
            let blocks = |state| u64::from(core.blocks(state, order as u32));
            stats.orders[order] = OrderStats {
                dirty: blocks(State::Dirty),
                zero_resident: blocks(State::ZeroResident),
                zero_absent: blocks(State::ZeroAbsent),
                zero_hits: get(&events.zero_hits[order]),
                zero_misses: get(&events.zero_misses[order]),
            };
        }
        self.caches.magazines.all().for_each(|magazine| magazine.add_to(&mut stats, shift));
        drop(guard);
        stats.cached = stats.cached.min(counts.out << shift);
        stats.allocated = (counts.out << shift) - stats.cached;
        stats.zero_hits = stats.orders.iter().map(|order| order.zero_hits).sum();
        stats.zero_misses = stats.orders.iter().map(|order| order.zero_misses).sum();
        Ok(stats)
    }
}
