//! Where a line is when the operation starts: made ([`Operand::prepare`]) and proved
//! ([`Operand::prove`]).
//!
//! An operand is a set of *slots*, equal buffers inside an arena that are visited in turn, in an
//! order fixed by a seed. Slots are what makes a level hold still: an operand "in L2" is as many
//! slots as fill half the L2, walked in visiting order beforehand, so that the slot visited next
//! is always the one touched longest ago and has left L1. An operand "in DRAM" covers so much
//! memory that a slot has left every cache before its turn comes again.

use crate::arena::non_zero_bytes;
use crate::latency::{Latencies, chase};
use crate::order::Order;
use crate::{Arena, Caches, Clock, LINE, MeasureError, PagePolicy};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

mod layout;
mod proof;

use layout::{Layout, PAGE};
pub use proof::{Proof, ProofVerdict};

/// A level of the memory hierarchy, from one core's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Level 1 data cache.
    L1,
    /// Level 2 cache.
    L2,
    /// The last-level cache of the core complex; the L2 where there is no L3.
    #[serde(rename = "LLC")]
    Llc,
    /// Memory.
    #[serde(rename = "DRAM")]
    Dram,
}

impl Level {
    /// Every level, nearest first.
    pub const ALL: [Level; 4] = [Level::L1, Level::L2, Level::Llc, Level::Dram];

    /// `L1`, `L2`, `LLC` or `DRAM`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::L1 => "L1",
            Level::L2 => "L2",
            Level::Llc => "LLC",
            Level::Dram => "DRAM",
        }
    }

    /// Bytes that all operands of an operation together may have of this level: 3/4 of L1, half of
    /// L2 and of the LLC (or what is usable of it), and for memory the bytes they must cover.
    pub fn capacity(self, caches: &Caches) -> usize {
        match self {
            Level::L1 => caches.l1d.bytes / 4 * 3,
            Level::L2 => caches.l2.bytes / 2,
            Level::Llc => caches.llc_usable.unwrap_or(usize::MAX).min(caches.llc.bytes / 2),
            Level::Dram => caches.dram_bytes(),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no level; accepted: L1, L2, LLC, DRAM")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Level, UnknownLevel> {
        let named = |level: &Level| level.name().eq_ignore_ascii_case(text.trim());
        Level::ALL.into_iter().find(named).ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

/// What an operation does to an operand, hence what [`Operand::prepare`] does to it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read: its contents stay.
    Read,
    /// It is written: it gets other non-zero bytes first, so that no store finds its own value.
    Write,
}

/// What is restored before each sample of a [reused](Operand::reused) operand. A destination is
/// sticky: string instructions leave its lines where they find them, vector stores bring them into the
/// cache, non-temporal stores drive them out. So a candidate's time depends on who ran before it, unless
/// the state is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restore {
    /// Nothing: it stays where the last call left it.
    #[default]
    Left,
    /// It is brought into the cache before each sample, as far as the cache holds it.
    Cached,
    /// It is driven out of every cache before each call.
    Evicted,
}

/// One operand of an operation. See the [module](self) for slots.
#[derive(Clone, Debug)]
pub struct Operand {
    level: Level,
    size: usize,
    layout: Layout,
    arena: Arc<Arena>,
    /// Byte of the arena where slot 0's unit begins.
    base: usize,
    caches: Caches,
    seed: u64,
    order: Order,
    visits: u64,
    scribbles: u64,
    reused: bool,
    restore: Restore,
}

impl Operand {
    /// Slots of `size` bytes for `level`, in an arena of their own on huge pages.
    ///
    /// `offset` is where a slot begins: modulo a page where slots are a page or more, modulo a
    /// line otherwise. `share` is the part of
    /// the level that this operand may have, above 0 and at most 1: the shares of the operands of
    /// one operation at one level add up to 1. For [`Level::Dram`] any size fits.
    ///
    /// # Errors
    /// [`MeasureError::DoesNotFit`] when not one slot fits the share of the level,
    /// [`MeasureError::BadRequest`] for a share out of range, and those of [`Arena::new`].
    pub fn new(
        level: Level,
        size: usize,
        offset: usize,
        share: f64,
        caches: &Caches,
        seed: u64,
    ) -> Result<Operand, MeasureError> {
        let bytes = Operand::footprint(level, size, offset, share, caches)?;
        let arena = Arc::new(Arena::new(bytes, PagePolicy::Huge, seed)?);
        Operand::in_arena(&arena, 0, level, size, offset, share, caches, seed)
    }

    /// Bytes of an arena that [`in_arena`](Operand::in_arena) needs, a whole number of pages.
    ///
    /// # Errors
    /// As [`new`](Operand::new), less the arena's.
    pub fn footprint(
        level: Level,
        size: usize,
        offset: usize,
        share: f64,
        caches: &Caches,
    ) -> Result<usize, MeasureError> {
        let layout = Layout::new(level, size, offset, share, caches)?;
        Ok((layout.slots * layout.stride).next_multiple_of(PAGE))
    }

    /// As [`new`](Operand::new), from byte `from` (a multiple of 4096) of an existing arena, which
    /// several operands may share; those of one operation must not overlap.
    ///
    /// # Errors
    /// As [`new`](Operand::new), and [`MeasureError::BadRequest`] when the arena is too short.
    #[allow(clippy::too_many_arguments)]
    pub fn in_arena(
        arena: &Arc<Arena>,
        from: usize,
        level: Level,
        size: usize,
        offset: usize,
        share: f64,
        caches: &Caches,
        seed: u64,
    ) -> Result<Operand, MeasureError> {
        let layout = Layout::new(level, size, offset, share, caches)?;
        Operand::laid_out(arena, from, level, size, layout, caches, seed)
    }

    /// One buffer of `size` bytes, `offset` (modulo 4096) bytes after byte `from` of the arena,
    /// that every call uses and that stays wherever the previous call left it, unless it is to be
    /// [restored](Operand::restored); there is nothing to prove. Its
    /// [`level`](Operand::level) is the nearest that would hold two such buffers.
    ///
    /// # Errors
    /// [`MeasureError::BadRequest`] when the arena is too short or `from` is no multiple of 4096.
    pub fn reused(
        arena: &Arc<Arena>,
        from: usize,
        size: usize,
        offset: usize,
        caches: &Caches,
        seed: u64,
    ) -> Result<Operand, MeasureError> {
        let holds = |level: &Level| size <= level.capacity(caches) / 2;
        let level = Level::ALL[..3].iter().copied().find(holds).unwrap_or(Level::Dram);
        let too_large = MeasureError::DoesNotFit { level, size, capacity: arena.len() };
        let layout = Layout::one(size, offset, PAGE).ok_or(too_large)?;
        let mut operand = Operand::laid_out(arena, from, level, size, layout, caches, seed)?;
        operand.reused = true;
        Ok(operand)
    }

    fn laid_out(
        arena: &Arc<Arena>,
        from: usize,
        level: Level,
        size: usize,
        layout: Layout,
        caches: &Caches,
        seed: u64,
    ) -> Result<Operand, MeasureError> {
        let needed = from.checked_add(layout.slots * layout.stride);
        if !from.is_multiple_of(PAGE) || needed.is_none_or(|end| end > arena.len()) {
            return Err(MeasureError::BadRequest {
                what: "place in an arena",
                found: format!("{} bytes from byte {from}", layout.slots * layout.stride),
                accepted: format!("whole pages within its {} bytes", arena.len()),
            });
        }
        Ok(Operand {
            level,
            size,
            layout,
            arena: Arc::clone(arena),
            base: from,
            caches: caches.clone(),
            seed,
            order: Order::new(layout.slots, seed),
            visits: 0,
            scribbles: seed,
            reused: false,
            restore: Restore::Left,
        })
    }

    /// The level it is made for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The caches it was made for.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Whether it was made by [`reused`](Operand::reused).
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// A reused operand that is restored before each sample.
    #[must_use]
    pub fn restored(mut self, restore: Restore) -> Operand {
        self.restore = restore;
        self
    }

    /// What is restored before each sample of it.
    pub fn restore(&self) -> Restore {
        self.restore
    }

    /// Bytes of a slot.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.layout.slots
    }

    /// Bytes of all lines of all slots.
    pub fn bytes(&self) -> usize {
        self.layout.slots * self.layout.lines * LINE
    }

    /// The arena it lies in.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The next slot in visiting order, valid for [`size`](Operand::size) bytes.
    // Not an iterator: it never ends, and borrows nothing.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> *mut u8 {
        let slot = self.visit(0);
        self.visits += 1;
        slot
    }

    /// The slot that `ahead` more calls of [`next`](Operand::next) would return.
    pub fn visit(&self, ahead: usize) -> *mut u8 {
        self.unit(ahead).wrapping_add(self.layout.lead)
    }

    /// Passes over `count` slots without visiting them.
    pub fn skip(&mut self, count: usize) {
        self.visits += count as u64;
    }

    fn unit(&self, ahead: usize) -> *mut u8 {
        let slot = self.order.at(self.visits + ahead as u64);
        self.arena.as_mut_ptr().wrapping_add(self.base + slot * self.layout.stride)
    }

    /// The first line of a slot.
    fn first_line(&self, ahead: usize) -> *mut u8 {
        self.unit(ahead).wrapping_add(self.layout.lead / LINE * LINE)
    }

    /// Uses only a multiple of `factor` slots, so that two operands keep their pairing when the
    /// shorter one starts over. Restarts the visiting order. No effect below `factor` slots.
    pub(crate) fn keep_multiple_of(&mut self, factor: usize) {
        let slots = self.layout.slots / factor.max(1) * factor.max(1);
        if slots > 0 && slots != self.layout.slots {
            self.layout.slots = slots;
            self.order = Order::new(slots, self.seed);
            self.visits = 0;
        }
    }

    /// Brings every slot into the level as an operand that is read. Twice over, because caches do
    /// not replace strictly the oldest line. Nothing to do for memory.
    pub fn warm(&mut self) {
        self.prepare(self.layout.slots, Access::Read);
        self.prepare(self.layout.slots, Access::Read);
    }

    /// Establishes the state in which the next `count` visits are to find their slots.
    ///
    /// In a cache every slot is walked in visiting order, read or written over as `access` says.
    /// In memory a slot that is read is left alone (the visiting order keeps it cold); one that is
    /// written gets its other bytes by non-temporal stores on x86-64, and elsewhere once per
    /// cycle, in visiting order, so that they too have left the cache when visited.
    pub fn prepare(&mut self, count: usize, access: Access) {
        if self.reused {
            if self.restore != Restore::Left {
                match access {
                    Access::Read => self.walk(),
                    Access::Write => self.scribble(0),
                }
            }
            if self.restore == Restore::Evicted {
                self.evict();
            }
            return;
        }
        match (self.level, access) {
            (Level::Dram, Access::Read) => {}
            (Level::Dram, Access::Write) => self.overwrite_in_memory(count.min(self.layout.slots)),
            (_, Access::Read) => self.walk(),
            (_, Access::Write) => {
                for ahead in 0..self.layout.slots {
                    self.scribble(ahead);
                }
            }
        }
        // More, nearly free passes where a missed line would matter: replacement is only nearly
        // least-recently-used, and settles after some.
        if self.level == Level::L1 {
            (0..3).for_each(|_| self.walk());
        }
    }

    fn walk(&self) {
        for ahead in 0..self.layout.slots {
            crate::bystander::read_lines(self.first_line(ahead), self.layout.lines * LINE);
        }
    }

    /// Drives the lines of every slot out of every cache.
    fn evict(&self) {
        for ahead in 0..self.layout.slots {
            let first = self.first_line(ahead);
            for line in 0..self.layout.lines {
                evict_line(first.wrapping_add(line * LINE));
            }
        }
        // Whatever follows waits until they have left.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 CPU has SSE2.
        unsafe {
            core::arch::x86_64::_mm_mfence();
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier changes nothing.
        unsafe {
            core::arch::asm!("dsb ish", options(nostack));
        }
        #[cfg(target_arch = "powerpc64")]
        // SAFETY: a barrier changes nothing.
        unsafe {
            core::arch::asm!("sync", options(nostack));
        }
    }

    /// Writes new non-zero bytes over a slot by temporal stores.
    fn scribble(&mut self, ahead: usize) {
        let slot = self.visit(ahead);
        let mut word = self.next_scribble();
        let whole = self.size / 8;
        for index in 0..whole {
            word = word.wrapping_add(GOLDEN);
            let place = slot.wrapping_add(index * 8).cast::<u64>();
            // SAFETY: within the slot, which is part of the arena; no alignment is assumed.
            unsafe { place.write_unaligned(non_zero_bytes(word)) };
        }
        for index in whole * 8..self.size {
            // SAFETY: within the slot.
            unsafe { slot.wrapping_add(index).write(word as u8 | 1) };
        }
    }

    fn next_scribble(&mut self) -> u64 {
        self.scribbles = self.scribbles.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(GOLDEN);
        self.scribbles
    }

    #[cfg(target_arch = "x86_64")]
    fn overwrite_in_memory(&mut self, count: usize) {
        use core::arch::x86_64::{_mm_sfence, _mm_stream_si64};
        for ahead in 0..count {
            let mut word = self.next_scribble();
            let first = self.first_line(ahead).cast::<i64>();
            for index in 0..self.layout.lines * LINE / 8 {
                word = word.wrapping_add(GOLDEN);
                let place = first.wrapping_add(index);
                // SAFETY: whole lines of a slot, aligned, within the arena and shared with no
                // other slot; the fence below orders them before anyone reads.
                unsafe { _mm_stream_si64(place, non_zero_bytes(word) as i64) };
            }
        }
        // SAFETY: every x86-64 CPU has SSE.
        unsafe { _mm_sfence() };
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn overwrite_in_memory(&mut self, count: usize) {
        let position = (self.visits % self.layout.slots as u64) as usize;
        let starts_over = position == 0 || position + count > self.layout.slots;
        if starts_over {
            for ahead in 0..self.layout.slots {
                self.scribble(ahead);
            }
        }
    }

    /// Lines among which a probe chooses: eight times [`PROBED`] of the slots visited next, so that
    /// a prefetcher that brings a line's neighbours helps little; but (except in L1, where all are
    /// equal) never the later half of the operand, which preparing it left in nearer caches.
    fn probe_range(&self) -> usize {
        let all = self.layout.slots * self.layout.lines;
        let most = if self.level == Level::L1 { all } else { all.div_ceil(2) };
        (8 * PROBED).max(self.layout.lines).min(most).max(1)
    }

    /// Times dependent loads of up to 256 random lines of the slots that would be visited next and
    /// compares them with this process's [`Latencies::shared`]. Call it right after
    /// [`prepare`](Operand::prepare). Slots in memory that it has looked at are cached now and are
    /// passed over; those in a cache want preparing again.
    pub fn prove(&mut self, clock: &Clock) -> Proof {
        let (proof, used) = self.probe_and_count(clock);
        self.skip(used);
        proof
    }

    /// [`prove`](Operand::prove) and how many visits to pass over afterwards.
    pub(crate) fn probe_and_count(&self, clock: &Clock) -> (Proof, usize) {
        // Enough for the probe's lines.
        let visits = self.probe_range().div_ceil(self.layout.lines);
        (self.probe(clock), if self.level == Level::Dram { visits } else { 0 })
    }

    fn probe(&self, clock: &Clock) -> Proof {
        let mut random = fastrand::Rng::with_seed(self.seed ^ self.visits);
        let range = self.probe_range();
        let origin = self.arena.as_mut_ptr().wrapping_add(self.base);
        let mut lines: Vec<u32> = random
            .choose_multiple(0..range, PROBED)
            .into_iter()
            .map(|line| {
                let slot = self.first_line(line / self.layout.lines);
                let place = slot as usize - origin as usize + line % self.layout.lines * LINE;
                (place / LINE) as u32
            })
            .collect();
        random.shuffle(&mut lines);
        let parts: Vec<f64> =
            lines.chunks(PROBED / 4).map(|part| chase(clock, origin, part)).collect();
        let found = crate::stats::median(&parts);
        match Latencies::shared(clock, &self.caches) {
            Ok(latencies) => Proof::judge(self.level, found, &latencies, self.caches.has_l3()),
            Err(error) => Proof {
                level: self.level,
                verdict: ProofVerdict::Doubtful,
                nanoseconds_per_line: found,
                expected: (0.0, 0.0),
                text: format!("{}: {found:.1} ns a line, nothing to compare: {error}", self.level),
            },
        }
    }
}

/// Drives a line of the arena out of every cache.
fn evict_line(line: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a mapped line; every x86-64 CPU has SSE2, and flushing changes no byte.
    unsafe {
        core::arch::x86_64::_mm_clflush(line);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a mapped line; Linux lets user space do this (SCTLR_EL1.UCI), and it changes no byte.
    unsafe {
        core::arch::asm!("dc civac, {}", in(reg) line, options(nostack));
    }
    #[cfg(target_arch = "powerpc64")]
    // SAFETY: a mapped line; the instruction is unprivileged and changes no byte.
    unsafe {
        core::arch::asm!("dcbf 0, {}", in(reg) line, options(nostack));
    }
}

/// Lines a probe times.
const PROBED: usize = 256;

/// 2^64 divided by the golden ratio: the step of a Weyl sequence.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
#[path = "residency_tests.rs"]
pub(crate) mod tests;
