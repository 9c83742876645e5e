//! Work on free memory: it is zeroed, returned to the system, counted.

use crate::buddy::{ORDERS, State};
use crate::engine::Method;
use crate::error::PoolError;
use crate::inner::cache;
use crate::inner::{Inner, Kind, now};
use crate::os;
use crate::stats::{OrderStats, ScrubberState, Stats, add, get};
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::vec::Vec;

/// Refusals after which no more is returned: memory that cannot be (locked, for example) would come up again and again.
const REFUSALS: usize = 64;

/// Outcome of returning one block to the system.
enum Returned {
    Bytes(usize),
    /// Refused: the block is still in flight, since it would come up again.
    Refused((u32, u32), rustix::io::Errno),
    /// There is none; in how many milliseconds there may be one, if ever.
    Later(Option<u32>),
}

impl Inner {
    /// The lowest order that can be returned to the system by itself.
    fn trim_order(&self) -> u32 {
        self.order_in(self.settings().trim_unit)
    }

    /// Returns free memory to the system, that of this thread's cache included.
    pub(crate) fn trim(&self) -> Result<usize, PoolError> {
        self.usable()?;
        cache::flush(self);
        let (mut bytes, mut failure, mut refused) = (0, None, Vec::new());
        let orders = (self.trim_order(), self.settings().max_order);
        while refused.len() < REFUSALS {
            match self.return_one(orders, 0)? {
                Returned::Bytes(returned) => bytes += returned,
                Returned::Refused(block, errno) => {
                    refused.push(block);
                    failure = Some(errno);
                }
                Returned::Later(_) => break,
            }
        }
        for (index, order) in refused {
            // Part of it may have been dropped, so nothing is known of it.
            self.land(index, order, State::Dirty)?;
        }
        match failure {
            Some(errno) if bytes == 0 => Err(PoolError::system("returning memory")(errno)),
            _ => Ok(bytes),
        }
    }

    /// Returns a portion of memory that nobody used for that many milliseconds. How many bytes that was, or in how many
    /// milliseconds there may be something, if ever. Of a huge page no part goes alone: what is left of it would be
    /// small pages.
    pub(crate) fn return_idle(&self, min_idle: u32, portion: usize) -> Result<usize, Option<u32>> {
        let unit = self.settings().trim_unit.max(self.settings().fault_around);
        let lowest = self.order_in(unit).min(self.settings().max_order);
        match self.return_one((lowest, self.order_in(portion)), min_idle).map_err(|_| None)? {
            Returned::Bytes(bytes) => Ok(bytes),
            Returned::Later(ticks) => Err(ticks),
            Returned::Refused((index, order), _) => {
                let _ = self.land(index, order, State::Dirty);
                Err(None)
            }
        }
    }

    /// Returns one block of these orders. Of a lease none: the pages of a file outlive what is said of a mapping.
    fn return_one(&self, orders: (u32, u32), min_idle: u32) -> Result<Returned, PoolError> {
        if self.settings().kind == Kind::Lent {
            return Ok(Returned::Later(None));
        }
        let taken = self.lock()?.buddy().take_to_trim(orders, min_idle, now());
        let (index, order) = match taken {
            Ok(taken) => taken,
            Err(ticks) => return Ok(Returned::Later(ticks)),
        };
        // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
        if let Err(errno) = unsafe { os::discard(self.address(index), self.bytes(order)) } {
            return Ok(Returned::Refused((index, order), errno));
        }
        self.land(index, order, State::ZeroAbsent)?;
        add(&self.events().trimmed, self.bytes(order) as u64);
        Ok(Returned::Bytes(self.bytes(order)))
    }

    /// Brings a block in flight back.
    fn land(&self, index: u32, order: u32, state: State) -> Result<(), PoolError> {
        let landed = self.lock()?.buddy().land(index, order, state, now());
        landed.map(|_| ()).map_err(|why| self.free_error(index, order, why))
    }

    /// Zeroes free dirty blocks in the calling thread, whatever their age, highest order first.
    pub(crate) fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        self.usable()?;
        let begun = os::thread_cpu_time();
        let method = self.settings().method;
        let lowest = self.lowest_to_zero(method, 0);
        let mut bytes = 0;
        while bytes < budget {
            let left = ((budget - bytes) >> self.frame_shift).clamp(1, 1 << 9);
            let mut guard = self.lock()?;
            let taken = guard.buddy().take_to_zero(lowest, left.ilog2(), 0, now());
            drop(guard);
            let Some((index, order)) = taken else { break };
            let range = self.range(index, 1 << order);
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            let mut zeroed = unsafe { method.zero(range) };
            if zeroed.is_err() {
                add(&self.events().engine_faults, 1);
                // SAFETY: as above.
                zeroed = unsafe { Method::Around.zero(range) };
            }
            let state = if zeroed.is_ok() { State::ZeroResident } else { State::Dirty };
            self.land(index, order, state)?;
            add(&self.events().scrubbed, range.length as u64);
            bytes += range.length;
        }
        let used = os::thread_cpu_time().saturating_sub(begun);
        add(&self.events().scrub_cpu_ns, used.as_nanos() as u64);
        Ok(bytes)
    }

    /// The lowest order to zero: dropping pages works on what the system can drop, stores on anything.
    pub(crate) fn lowest_to_zero(&self, method: Method, stop: u32) -> u32 {
        if method == Method::System { stop.max(self.trim_order()) } else { stop }
    }

    pub(crate) fn stats(&self) -> Result<Stats, PoolError> {
        let mut guard = self.lock()?;
        let core = guard.buddy().core().clone();
        let shift = self.frame_shift;
        let counts = core.counts();
        let events = self.events();
        let mut stats = Stats {
            capacity: u64::from(self.capacity) << shift,
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
            scrubbed: get(&events.scrubbed),
            scrub_cpu: Duration::from_nanos(get(&events.scrub_cpu_ns)),
            wasted: get(&events.wasted) + (core.wasted() << shift),
            trimmed: get(&events.trimmed),
            quarantined_ever: get(&events.quarantined_ever),
            engine_faults: get(&events.engine_faults),
            verified: get(&events.verified),
            verify_failed: get(&events.verify_failed),
            scrubber: ScrubberState::from_code(self.state.load(Ordering::Relaxed)),
            load_rests: get(&events.load_rests),
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
        self.magazines.all().for_each(|magazine| magazine.add_to(&mut stats, shift));
        drop(guard);
        stats.cached = stats.cached.min(counts.out << shift);
        stats.allocated = (counts.out << shift) - stats.cached;
        stats.zero_hits = stats.orders.iter().map(|order| order.zero_hits).sum();
        stats.zero_misses = stats.orders.iter().map(|order| order.zero_misses).sum();
        Ok(stats)
    }
}
