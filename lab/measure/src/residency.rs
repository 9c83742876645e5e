//! Residency of lines when the operation starts: made (`Operand::prepare`) and proved (`Operand::prove`).
//!
//! An operand is a set of *slots*, equal buffers inside an arena that are visited in turn, in an
//! order fixed by a seed. Slots are what makes a level hold still: an operand "in L2" is as many
//! slots as fill half the L2, walked in visiting order beforehand, so that the slot visited next
//! is always the one touched longest ago and has left L1. An operand "in DRAM" covers so much
//! memory that a slot has left every cache before its turn comes again.

use crate::bystander::read_lines;
use crate::latency::{Latencies, chase};
use crate::level::{Destination, Level};
use crate::order::Order;
use crate::{Arena, Clock, LINE, MeasureError, lines};
use std::sync::Arc;

mod proof;
mod slots;

pub use proof::{Proof, ProofVerdict};
use slots::PAGE;
pub use slots::Slots;

/// Access of an operation to an operand, which decides how [`Operand::prepare`] prepares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read: its contents stay.
    Read,
    /// Written: it gets other non-zero bytes first, so that no store finds its own value.
    Write,
}

/// One operand of an operation: equal buffers inside an arena, its slots, that are visited in turn.
#[derive(Clone, Debug)]
pub struct Operand {
    pub(crate) slots: Slots,
    arena: Arc<Arena>,
    /// Byte of the arena where slot 0's unit begins.
    base: usize,
    seed: u64,
    order: Order,
    visits: u64,
    scribbles: u64,
    pub(crate) restore: Destination,
}

impl Operand {
    /// From byte `from` (a multiple of 4096) of an arena, which several operands may share; those of
    /// one operation must not overlap.
    ///
    /// # Errors
    /// [`MeasureError::BadRequest`] when the arena is too short or `from` is no multiple of 4096.
    pub fn new(
        arena: &Arc<Arena>,
        from: usize,
        slots: Slots,
        seed: u64,
    ) -> Result<Operand, MeasureError> {
        let needed = slots.count * slots.stride;
        let end = from.checked_add(needed);
        if !from.is_multiple_of(PAGE) || end.is_none_or(|end| end > arena.len()) {
            return Err(MeasureError::BadRequest {
                what: "place in an arena",
                found: format!("{needed} bytes from byte {from}"),
                accepted: format!("whole pages within its {} bytes", arena.len()),
            });
        }
        Ok(Operand {
            order: Order::new(slots.count, seed),
            slots,
            arena: Arc::clone(arena),
            base: from,
            seed,
            visits: 0,
            scribbles: seed,
            restore: Destination::Repeated,
        })
    }

    /// A reused operand that is restored before each sample.
    #[must_use]
    pub fn restored(self, restore: Destination) -> Operand {
        Operand { restore, ..self }
    }

    pub(crate) fn level(&self) -> Level {
        self.slots.level
    }

    pub(crate) fn is_reused(&self) -> bool {
        self.slots.is_reused
    }

    pub fn size(&self) -> usize {
        self.slots.size
    }

    pub fn slots(&self) -> usize {
        self.slots.count
    }

    /// The slot that is visited after `ahead` others, valid for [`size`](Operand::size) bytes.
    pub fn visit(&self, ahead: usize) -> *mut u8 {
        self.unit(ahead).wrapping_add(self.slots.lead)
    }

    /// Passes over `count` slots without visiting them.
    pub(crate) fn skip(&mut self, count: usize) {
        self.visits += count as u64;
    }

    fn unit(&self, ahead: usize) -> *mut u8 {
        let slot = self.order.at(self.visits + ahead as u64);
        self.arena.as_mut_ptr().wrapping_add(self.base + slot * self.slots.stride)
    }

    /// The first line of a slot.
    fn first_line(&self, ahead: usize) -> *mut u8 {
        self.unit(ahead).wrapping_add(self.slots.lead / LINE * LINE)
    }

    /// Uses only a multiple of `factor` slots, so that two operands keep their pairing when the
    /// shorter one starts over. Restarts the visiting order. No effect below `factor` slots.
    pub(crate) fn keep_multiple_of(&mut self, factor: usize) {
        let slots = self.slots.count / factor.max(1) * factor.max(1);
        if slots > 0 && slots != self.slots.count {
            self.slots.count = slots;
            self.order = Order::new(slots, self.seed);
            self.visits = 0;
        }
    }

    /// Establishes the state in which the next `count` visits are to find their slots.
    ///
    /// In a cache every slot is walked in visiting order, read or written over as `access` says.
    /// In memory a slot that is read is left alone (the visiting order keeps it cold); one that is
    /// written gets its other bytes by non-temporal stores on x86-64, and elsewhere once per
    /// cycle, in visiting order, so that they too have left the cache when visited.
    pub(crate) fn prepare(&mut self, count: usize, access: Access) {
        let level = self.slots.level;
        if self.slots.is_reused {
            if self.restore != Destination::Repeated {
                self.walk(access);
            }
            if self.restore == Destination::Evicted {
                self.evict();
            }
            return;
        }
        match (level, access) {
            (Level::Dram, Access::Read) => {}
            (Level::Dram, Access::Write) => self.overwrite_in_memory(count.min(self.slots.count)),
            _ => self.walk(access),
        }
        // More, nearly free passes where a missed line would matter: replacement is only nearly
        // least-recently-used, and settles after some.
        if level == Level::L1 {
            (0..3).for_each(|_| self.walk(Access::Read));
        }
    }

    /// Reads every slot, or writes over it.
    fn walk(&mut self, access: Access) {
        for ahead in 0..self.slots.count {
            match access {
                Access::Write => self.scribble(ahead),
                Access::Read => read_lines(self.first_line(ahead), self.slots.lines * LINE),
            }
        }
    }

    /// Drives the lines of every slot out of every cache.
    fn evict(&self) {
        for ahead in 0..self.slots.count {
            let lines = self.slots.lines * LINE;
            // SAFETY: a slot's lines, which are part of the arena.
            unsafe { lines::evict(self.first_line(ahead), lines) };
        }
    }

    /// Writes new non-zero bytes over a slot by temporal stores.
    fn scribble(&mut self, ahead: usize) {
        let (slot, seed) = (self.visit(ahead), self.next_scribble());
        // SAFETY: the slot, which is part of the arena.
        unsafe { lines::overwrite(slot, self.slots.size, seed) };
    }

    fn next_scribble(&mut self) -> u64 {
        self.scribbles = self.scribbles.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(GOLDEN);
        self.scribbles
    }

    #[cfg(target_arch = "x86_64")]
    fn overwrite_in_memory(&mut self, count: usize) {
        for ahead in 0..count {
            let (first, seed) = (self.first_line(ahead), self.next_scribble());
            // SAFETY: whole lines of a slot, within the arena and shared with no other slot.
            unsafe { lines::overwrite_in_memory(first, self.slots.lines * LINE, seed) };
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn overwrite_in_memory(&mut self, count: usize) {
        let position = (self.visits % self.slots.count as u64) as usize;
        if position == 0 || position + count > self.slots.count {
            self.walk(Access::Write);
        }
    }

    /// Lines among which a probe chooses: eight times [`PROBED`] of the slots visited next, so that
    /// a prefetcher that brings a line's neighbours helps little; but (except in L1, where all are
    /// equal) never the later half of the operand, which preparing it left in nearer caches.
    fn probe_range(&self) -> usize {
        let all = self.slots.count * self.slots.lines;
        let most = if self.slots.level == Level::L1 { all } else { all.div_ceil(2) };
        (8 * PROBED).max(self.slots.lines).min(most).max(1)
    }

    /// Times dependent loads of up to 256 random lines of the slots that would be visited next and
    /// compares them with this process's [`Latencies::shared`]. Call it right after
    /// [`prepare`](Operand::prepare). Slots in memory that it has looked at are cached now: so many
    /// visits are to be passed over. Those in a cache want preparing again.
    pub(crate) fn prove(&self, clock: &Clock) -> (Proof, usize) {
        // Enough for the probe's lines.
        let visits = self.probe_range().div_ceil(self.slots.lines);
        (self.probe(clock), if self.slots.level == Level::Dram { visits } else { 0 })
    }

    fn probe(&self, clock: &Clock) -> Proof {
        let mut random = fastrand::Rng::with_seed(self.seed ^ self.visits);
        let range = self.probe_range();
        let origin = self.arena.as_mut_ptr().wrapping_add(self.base);
        let place = |line: usize| {
            let slot = self.first_line(line / self.slots.lines);
            ((slot as usize - origin as usize) / LINE + line % self.slots.lines) as u32
        };
        let chosen = random.choose_multiple(0..range, PROBED).into_iter();
        let mut lines: Vec<u32> = chosen.map(place).collect();
        random.shuffle(&mut lines);
        let parts: Vec<f64> =
            lines.chunks(PROBED / 4).map(|part| chase(clock, origin, part)).collect();
        let found = crate::stats::median(&parts);
        let Slots { level, caches, .. } = &self.slots;
        match Latencies::shared(clock, caches) {
            Ok(latencies) => Proof::judge(*level, found, &latencies, caches.has_l3()),
            Err(error) => Proof {
                level: *level,
                verdict: ProofVerdict::Doubtful,
                nanoseconds_per_line: found,
                expected: (0.0, 0.0),
                text: format!("{level}: {found:.1} ns a line, nothing to compare: {error}"),
            },
        }
    }
}

const PROBED: usize = 256;

/// 2^64 divided by the golden ratio: the step of a Weyl sequence.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
#[path = "residency_tests.rs"]
pub(crate) mod tests;
