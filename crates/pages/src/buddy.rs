//! A buddy allocator of page frames that knows which free blocks are zero.
//!
//! One file, though a long one: tags, lists and counts are kept true by each other's private parts,
//! and a border through the middle would make these public.
//!
//! It owns no memory and touches none: frames are numbers, and what is known of each is 16 bytes in
//! a slice that the caller brings. So an operating system's kernel can run it over its own page
//! frames (`examples/kernel_frames.rs`), and a process can put both the slice and [`Core`] in
//! memory shared with others.
//!
//! Every frame belongs to exactly one block, and every block is in exactly one [`Use`]. The first
//! frame of a block carries a *tag*: use, order, owner; all other frames carry the tag of a tail.
//! **Tags are the truth, lists and counts are derived**: each split, merge and change of use becomes
//! valid with one store of one tag, in program order, so that after a crash at any point in between
//! [`Buddy::rebuild`] finds a partition of all frames by walking the tags. A process that dies with
//! the lock held therefore costs a rebuild and not the pool.
//!
//! Free blocks hang in one list per order and [`State`], newest first. Buddies of one state merge at
//! once; buddies of different states only when a larger block is needed and no other is to be had
//! ([`Buddy::take_mixed`]), since the merged block is only as good as its worse half.
//!
//! All methods need exclusive access, which the caller's lock gives. The exception is what a per-thread
//! cache does to its own blocks, which nobody else may change: between allocated and cached
//! ([`Frame::cache`], [`Frame::uncache`]), and cutting a cached block up ([`halve_cached`],
//! [`split_cached`]), so that the lock is held for one block however many pages a cache takes. Others
//! may look meanwhile, but must not [rebuild](Buddy::rebuild): where somebody may die holding the lock
//! and others live on, blocks are cut up under it too. Joining is left to the lock altogether: who
//! walks the blocks would meet a tail whose head it has passed.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// The highest order: 2^18 frames, 1 GiB of 4 KiB frames.
pub const MAX_ORDER: u32 = 18;
/// How many orders there are.
pub const ORDERS: usize = MAX_ORDER as usize + 1;
/// How many owners are told apart; an owner is a small number of the caller's choice.
pub const OWNERS: usize = 1 << 16;

const NONE: u32 = u32::MAX;
/// Blocks of one list that are looked at for a group, so that no lock is held for long.
const LOOKS: usize = 32;
const STATES: usize = 3;

/// What is known of a free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Anything may be in it.
    Dirty = 0,
    /// Every byte is zero, and its pages are there.
    ZeroResident = 1,
    /// Every byte is zero once its pages are there; touching it may fault.
    ZeroAbsent = 2,
}

impl State {
    /// Every state, in declaration order.
    pub const ALL: [State; STATES] = [State::Dirty, State::ZeroResident, State::ZeroAbsent];
}

/// What a block is used for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// In a list, to be handed out.
    Free(State),
    /// Being zeroed or returned to the system; in no list.
    InFlight,
    /// Handed out.
    Allocated,
    /// In a per-thread cache, contents unknown.
    CachedDirty,
    /// In a per-thread cache, every byte zero.
    CachedZero,
    /// Withdrawn: somebody who was told to stop may still write to it.
    Quarantined,
}

/// Use, order and owner of a block, in the word that its first frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(u32);

const TAIL: Tag = Tag(0);

impl Tag {
    const fn new(used: Use, order: u32, owner: u16) -> Tag {
        let code = match used {
            Use::Free(State::Dirty) => 1,
            Use::Free(State::ZeroResident) => 2,
            Use::Free(State::ZeroAbsent) => 3,
            Use::InFlight => 4,
            Use::Allocated => 5,
            Use::CachedDirty => 6,
            Use::CachedZero => 7,
            Use::Quarantined => 8,
        };
        Tag(code | order << 8 | (owner as u32) << 16)
    }

    const fn free(state: State, order: u32) -> Tag {
        Tag::new(Use::Free(state), order, 0)
    }

    /// What the block is used for; `None` if the frame is not the first of a block.
    #[must_use]
    pub const fn used(self) -> Option<Use> {
        Some(match self.0 & 0xFF {
            1 => Use::Free(State::Dirty),
            2 => Use::Free(State::ZeroResident),
            3 => Use::Free(State::ZeroAbsent),
            4 => Use::InFlight,
            5 => Use::Allocated,
            6 => Use::CachedDirty,
            7 => Use::CachedZero,
            8 => Use::Quarantined,
            _ => return None,
        })
    }

    /// The block's order.
    #[must_use]
    pub const fn order(self) -> u32 {
        self.0 >> 8 & 0xFF
    }

    /// Who took it, for blocks that are not free.
    #[must_use]
    pub const fn owner(self) -> u16 {
        (self.0 >> 16) as u16
    }

    const fn free_state(self) -> Option<State> {
        match self.used() {
            Some(Use::Free(state)) => Some(state),
            _ => None,
        }
    }
}

const fn cached(zero: bool) -> Use {
    if zero { Use::CachedZero } else { Use::CachedDirty }
}

/// What is known of one frame: 16 bytes, all of them zero at first.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    tag: AtomicU32,
    next: AtomicU32,
    prev: AtomicU32,
    stamp: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Frame>() == 16, "16 bytes per frame are promised");

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

impl Frame {
    /// A frame that belongs to no block yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Frame {
        Frame {
            tag: AtomicU32::new(0),
            next: AtomicU32::new(0),
            prev: AtomicU32::new(0),
            stamp: AtomicU32::new(0),
        }
    }

    /// A frame that belongs to no block yet.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Frame {
        Frame {
            tag: AtomicU32::new(0),
            next: AtomicU32::new(0),
            prev: AtomicU32::new(0),
            stamp: AtomicU32::new(0),
        }
    }

    /// The tag at this moment.
    #[must_use]
    pub fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Acquire))
    }

    // Release, so that no tag becomes visible before one stored earlier (see the module's text).
    fn set_tag(&self, tag: Tag) {
        self.tag.store(tag.0, Ordering::Release);
    }

    /// Puts an allocated block into a cache, without the lock. Exactly one of several callers
    /// succeeds, so a block freed twice is noticed whatever the threads do.
    ///
    /// # Errors
    /// The tag found, if it is not that of a block allocated with this order by this owner.
    #[inline(always)]
    pub fn cache(&self, order: u32, owner: u16, zero: bool) -> Result<(), Tag> {
        let to = Tag::new(cached(zero), order, owner);
        self.swap(Tag::new(Use::Allocated, order, owner), to)
    }

    /// Takes a block out of a cache again, without the lock. Only the thread whose cache it is may
    /// call this; nobody else changes the tag of a cached block, so no exchange is needed.
    ///
    /// # Errors
    /// The tag found, if it is not that of a block cached so.
    pub fn uncache(&self, order: u32, owner: u16, zero: bool) -> Result<(), Tag> {
        let tag = self.tag();
        if tag != Tag::new(cached(zero), order, owner) {
            return Err(tag);
        }
        self.set_tag(Tag::new(Use::Allocated, order, owner));
        Ok(())
    }

    /// [`uncache`](Frame::uncache) of a block that the caller knows to be cached so: one store.
    #[inline(always)]
    pub fn hand_out(&self, order: u32, owner: u16) {
        debug_assert!(matches!(self.tag().used(), Some(Use::CachedZero | Use::CachedDirty)));
        self.set_tag(Tag::new(Use::Allocated, order, owner));
    }

    #[inline(always)]
    fn swap(&self, from: Tag, to: Tag) -> Result<(), Tag> {
        self.tag
            .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Tag)
    }
}

/// Frames by use. `out` are those handed out or in a per-thread cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Free frames with unknown contents.
    pub dirty: u64,
    /// Free frames that are zero and there.
    pub zero_resident: u64,
    /// Free frames that are zero and will fault.
    pub zero_absent: u64,
    /// Frames being zeroed or returned to the system.
    pub in_flight: u64,
    /// Frames handed out or in a per-thread cache.
    pub out: u64,
    /// Frames withdrawn from use.
    pub quarantined: u64,
}

impl Counts {
    /// All of them: the number of frames managed, always.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.dirty
            + self.zero_resident
            + self.zero_absent
            + self.in_flight
            + self.out
            + self.quarantined
    }

    fn of(&mut self, used: Use) -> &mut u64 {
        match used {
            Use::Free(State::Dirty) => &mut self.dirty,
            Use::Free(State::ZeroResident) => &mut self.zero_resident,
            Use::Free(State::ZeroAbsent) => &mut self.zero_absent,
            Use::InFlight => &mut self.in_flight,
            Use::Allocated | Use::CachedDirty | Use::CachedZero => &mut self.out,
            Use::Quarantined => &mut self.quarantined,
        }
    }
}

/// Why a block was not taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeError {
    /// No frame of this allocator.
    Foreign,
    /// A block of this order cannot start there.
    Misaligned,
    /// It is not handed out: freed before.
    DoubleFree,
    /// Inside a block that starts elsewhere.
    Interior,
    /// The block has another order.
    WrongOrder {
        /// The order it has.
        actual: u32,
    },
    /// Handed out to another owner.
    OtherOwner {
        /// Who has it.
        owner: u16,
    },
}

impl core::fmt::Display for FreeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            FreeError::Foreign => f.write_str("not an address of this pool"),
            FreeError::Misaligned => f.write_str("no block of this order can start there"),
            FreeError::DoubleFree => f.write_str("the block is free already (freed twice?)"),
            FreeError::Interior => f.write_str("inside a block that starts elsewhere"),
            FreeError::WrongOrder { actual } => write!(f, "the block there has order {actual}"),
            FreeError::OtherOwner { owner } => {
                write!(f, "the block there belongs to owner {owner}")
            }
        }
    }
}

impl core::error::Error for FreeError {}

/// Where tags, lists and counts disagree; an error of this module, or memory overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistent {
    /// The frame at which it showed.
    pub frame: u32,
    /// What does not hold.
    pub what: &'static str,
}

impl core::fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "frame {}: {}", self.frame, self.what)
    }
}

impl core::error::Error for Inconsistent {}

/// The free blocks of one order and state, newest first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct List {
    head: u32,
    tail: u32,
    blocks: u32,
}

const EMPTY: List = List { head: NONE, tail: NONE, blocks: 0 };

/// List heads and counts: what [`Buddy`] needs besides the frames. Plain numbers, no pointers.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Core {
    /// One bit per order with a block in its list.
    filled: [u32; STATES],
    max_order: u32,
    managed: u32,
    counts: Counts,
    wasted: u64,
    /// By state, then order: an operation works on one state and on orders next to each other, so
    /// what it needs lies together.
    lists: [[List; ORDERS]; STATES],
}

impl Core {
    /// An allocator of no frames yet, with blocks up to `max_order` ([`MAX_ORDER`] at most).
    #[must_use]
    pub const fn new(max_order: u32) -> Core {
        Core {
            lists: [[EMPTY; ORDERS]; STATES],
            filled: [0; STATES],
            max_order: if max_order > MAX_ORDER { MAX_ORDER } else { max_order },
            managed: 0,
            counts: Counts {
                dirty: 0,
                zero_resident: 0,
                zero_absent: 0,
                in_flight: 0,
                out: 0,
                quarantined: 0,
            },
            wasted: 0,
        }
    }

    /// Frames by use.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Frames managed.
    #[must_use]
    pub const fn managed(&self) -> u32 {
        self.managed
    }

    /// The highest order of a block.
    #[must_use]
    pub const fn max_order(&self) -> u32 {
        self.max_order
    }

    /// Free blocks of that state and order.
    #[must_use]
    pub fn blocks(&self, state: State, order: u32) -> u32 {
        self.lists[state as usize].get(order as usize).map_or(0, |list| list.blocks)
    }

    /// Frames that were zeroed for nothing: merged into a dirty block.
    #[must_use]
    pub const fn wasted(&self) -> u64 {
        self.wasted
    }
}

/// The allocator: a [`Core`] and its frames, both borrowed for the length of an operation.
#[derive(Debug)]
pub struct Buddy<'a> {
    core: &'a mut Core,
    frames: &'a [Frame],
}

/// The smallest order whose blocks have at least that many frames.
#[must_use]
pub const fn order_for(frames: u32) -> u32 {
    if frames <= 1 { 0 } else { (frames - 1).ilog2() + 1 }
}

/// Is `a` a later moment than `b`, on a clock that wraps?
const fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Could blocks that follow `next` make it the buddy of the run before it?
const fn near((first, order): (u32, u32), next: u32, next_order: u32) -> bool {
    next == first.wrapping_add(1 << order) && next_order <= order
}

/// A run of so many frames starts at a multiple of this many: of its largest part.
#[must_use]
pub const fn run_alignment(frames: u32) -> u32 {
    if frames == 0 { 1 } else { 1 << frames.ilog2() }
}

/// The blocks that a run of `frames` frames consists of, as offset and order, largest first. The run
/// starts at a multiple of its largest part ([`run_alignment`]), so each is aligned to its own size.
pub fn run_parts(frames: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..u32::BITS).rev().filter(move |order| frames >> order & 1 == 1).map(move |order| {
        let larger = if order == u32::BITS - 1 { 0 } else { frames >> (order + 1) << (order + 1) };
        (larger, order)
    })
}

/// Cuts the first `pieces` blocks, as [`Buddy::take_cached`] left them, into blocks of `order`, in the
/// same slice. Returns how many those are; none, and nothing is changed, if the slice is too short for
/// them. Without the lock, by the thread whose cache they are in.
///
/// A piece's first frame is tagged last: until then all of it is one cached block. A fork copies page by
/// page, and what it copied of a larger piece may be half of a cut; pieces of up to 256 frames have
/// their tags in one page.
pub fn split_cached(
    frames: &[Frame],
    order: u32,
    owner: u16,
    blocks: &mut [u32],
    pieces: usize,
) -> usize {
    let size = |index: u32| {
        let found = frames.get(index as usize).map_or(order, |frame| frame.tag().order());
        1usize << found.saturating_sub(order)
    };
    let filled: usize = blocks[..pieces].iter().map(|index| size(*index)).sum();
    if filled > blocks.len() {
        return 0;
    }
    let mut end = filled;
    // From behind: each piece makes at least one block, so no piece is overwritten that is still to
    // be cut.
    for piece in (0..pieces).rev() {
        let first = blocks[piece];
        let count = size(first);
        let found = frames.get(first as usize).and_then(|frame| frame.tag().used());
        let tag = Tag::new(cached(found != Some(Use::CachedDirty)), order, owner);
        let begin = end.saturating_sub(count);
        for place in (0..end - begin).rev() {
            let block = first + ((place as u32) << order);
            if count > 1 {
                frames[block as usize].set_tag(tag);
            }
            blocks[begin + place] = block;
        }
        end = begin;
    }
    filled
}

/// Halves a cached block. Returns the first frame of its upper half, and the order of both; nothing for
/// a block of one frame and for one that is not cached so. Without the lock, by the thread whose cache
/// it is in.
pub fn halve_cached(frames: &[Frame], index: u32, owner: u16) -> Option<(u32, u32)> {
    let whole = frames.get(index as usize)?.tag();
    let order = whole.order().checked_sub(1)?;
    let used = whole.used().filter(|used| matches!(used, Use::CachedZero | Use::CachedDirty))?;
    if whole.owner() != owner {
        return None;
    }
    let upper = index + (1 << order);
    let tag = Tag::new(used, order, owner);
    frames.get(upper as usize)?.set_tag(tag);
    frames[index as usize].set_tag(tag);
    Some((upper, order))
}

impl<'a> Buddy<'a> {
    /// The allocator over these frames, of which the first [`Core::managed`] are in use.
    ///
    /// A core that manages more frames than there are is cut down to them.
    pub fn new(core: &'a mut Core, frames: &'a [Frame]) -> Buddy<'a> {
        let have = u32::try_from(frames.len()).unwrap_or(NONE - 1);
        core.managed = core.managed.min(have);
        Buddy { core, frames }
    }

    /// The counts and list lengths.
    #[must_use]
    pub fn core(&self) -> &Core {
        self.core
    }

    /// Takes the next `count` frames into use, free and in the given state. Returns how many were
    /// added: fewer if the slice ends earlier.
    pub fn extend(&mut self, count: u32, state: State, now: u32) -> u32 {
        let first = self.core.managed;
        let room = u32::try_from(self.frames.len()).unwrap_or(NONE - 1) - first;
        let end = first + count.min(room);
        let mut index = first;
        while index < end {
            let order = self.largest_at(index, end);
            let frame = &self.frames[index as usize];
            frame.stamp.store(now, Ordering::Relaxed);
            frame.prev.store(NONE, Ordering::Relaxed);
            frame.set_tag(Tag::free(state, order));
            index += 1 << order;
        }
        self.core.managed = end;
        *self.core.counts.of(Use::Free(state)) += u64::from(end - first);
        let mut index = first;
        while index < end {
            let order = self.largest_at(index, end);
            self.coalesce_and_link(index, order, state);
            index += 1 << order;
        }
        end - first
    }

    fn largest_at(&self, index: u32, end: u32) -> u32 {
        let fits = (end - index).ilog2();
        index.trailing_zeros().min(fits).min(self.core.max_order)
    }

    /// Hands out a block of that order and state for `owner`: the smallest that is large enough,
    /// among those the most recently freed; what is left over stays free.
    pub fn take(&mut self, order: u32, state: State, owner: u16) -> Option<u32> {
        let (index, found) = self.newest(order, state)?;
        self.unlink(index);
        self.carve(index, found, order, state);
        self.become_used(index, order, state, Use::Allocated, owner);
        Some(index)
    }

    /// Hands out a run that is made of free blocks of one state side by side, where no block of its
    /// rounded-up size is free: three quarters of a large block whose last quarter is in use, say. Its
    /// parts are as [`run_parts`] has them. It looks at so many blocks that no lock is held for long.
    pub fn take_run(&mut self, frames: u32, state: State, owner: u16) -> Option<u32> {
        let largest = frames.checked_ilog2().filter(|order| *order <= self.core.max_order)?;
        if frames.is_power_of_two() {
            return None;
        }
        let mut first = self.core.lists[state as usize][largest as usize].head;
        for _ in 0..LOOKS {
            if first == NONE {
                return None;
            }
            if self.is_free_run(first, frames, state) {
                self.take_parts(first, frames, state, owner);
                return Some(first);
            }
            first = self.frames[first as usize].next.load(Ordering::Relaxed);
        }
        None
    }

    fn is_free_run(&self, first: u32, frames: u32, state: State) -> bool {
        let (mut at, mut left) = (first, frames);
        loop {
            if at >= self.core.managed {
                return false;
            }
            let tag = self.frames[at as usize].tag();
            // Of one state, a part that is free is one block, or lies in one.
            if tag.free_state() != Some(state) || 1 << tag.order() < run_alignment(left) {
                return false;
            }
            let size = 1 << tag.order();
            if size >= left {
                return true;
            }
            (at, left) = (at + size, left - size);
        }
    }

    fn take_parts(&mut self, first: u32, frames: u32, state: State, owner: u16) {
        let (mut at, mut left) = (first, frames);
        while left > 0 {
            let order = self.frames[at as usize].tag().order();
            let stamp = self.frames[at as usize].stamp.load(Ordering::Relaxed);
            self.unlink(at);
            self.become_used(at, order, state, Use::Allocated, owner);
            let size = 1 << order;
            if size > left {
                let cut = self.shrink_from(at, order, left, state, owner, stamp);
                debug_assert!(cut.is_ok(), "just taken: {cut:?}");
                return;
            }
            (at, left) = (at + size, left - size);
        }
    }

    /// Takes an absent block away to be made resident: of that order, or the largest below it.
    pub fn take_absent(&mut self, order: u32, owner: u16) -> Option<(u32, u32)> {
        let state = State::ZeroAbsent;
        let (index, found) = self.newest(order, state).or_else(|| {
            let smaller = self.core.filled[state as usize] & ((1 << order) - 1);
            let found = smaller.checked_ilog2()?;
            Some((self.core.lists[state as usize][found as usize].head, found))
        })?;
        let part = found.min(order);
        self.unlink(index);
        self.carve(index, found, part, state);
        self.become_used(index, part, state, Use::InFlight, owner);
        Some((index, part))
    }

    /// Whether no frame of an aligned group is free and absent. The group's first frame has to begin a
    /// block that lies inside it.
    #[must_use]
    pub fn all_resident(&self, base: u32, order: u32) -> bool {
        let end = base.saturating_add(1 << order).min(self.core.managed);
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            if tag.free_state() == Some(State::ZeroAbsent) {
                return false;
            }
            index += if tag.used().is_some() { 1 << tag.order() } else { 1 };
        }
        true
    }

    fn newest(&self, order: u32, state: State) -> Option<(u32, u32)> {
        if order > self.core.max_order {
            return None;
        }
        let large_enough = self.core.filled[state as usize] >> order << order;
        if large_enough == 0 {
            return None;
        }
        let found = large_enough.trailing_zeros();
        Some((self.core.lists[state as usize][found as usize].head, found))
    }

    /// Takes zero and resident memory for a per-thread cache: up to `most` blocks of `order`, in as few
    /// pieces as can be and no more than `pieces` has places; [`split_cached`] and [`halve_cached`]
    /// make blocks of them. Returns how many pieces there are.
    pub fn take_cached(&mut self, order: u32, most: u32, owner: u16, pieces: &mut [u32]) -> usize {
        self.take_cached_of(State::ZeroResident, order, most, owner, pieces)
    }

    /// [`take_cached`](Buddy::take_cached) of dirty memory, too: never of absent memory, of which a cache
    /// could not say that it is there.
    pub fn take_cached_of(
        &mut self,
        state: State,
        order: u32,
        most: u32,
        owner: u16,
        pieces: &mut [u32],
    ) -> usize {
        let used = match state {
            State::Dirty => Use::CachedDirty,
            State::ZeroResident => Use::CachedZero,
            State::ZeroAbsent => return 0,
        };
        let (mut found, mut left) = (0, most);
        while left > 0 && found < pieces.len() {
            let Some((index, free)) = self.newest(order, state) else { break };
            let part = free.min(order + left.ilog2());
            self.unlink(index);
            self.carve(index, free, part, state);
            self.become_used(index, part, state, used, owner);
            pieces[found] = index;
            found += 1;
            left -= 1 << (part - order);
        }
        found
    }

    /// Hands out a block made of free buddies of different states, for when no state by itself has
    /// one that large. Among all groups the one found first from the largest free blocks down. The
    /// result is dirty if any part was (and the zeroing of the others is counted as wasted), else
    /// zero and absent if any part was absent.
    pub fn take_mixed(&mut self, order: u32, owner: u16) -> Option<(u32, State)> {
        if order > self.core.max_order {
            return None;
        }
        for below in (0..order).rev() {
            for state in State::ALL {
                let mut index = self.core.lists[state as usize][below as usize].head;
                while index != NONE {
                    let base = index >> order << order;
                    if let Some(worst) = self.group(base, order) {
                        self.merge_group(base, order, worst);
                        self.become_used(base, order, worst, Use::Allocated, owner);
                        return Some((base, worst));
                    }
                    index = self.frames[index as usize].next.load(Ordering::Relaxed);
                }
            }
        }
        None
    }

    /// The worst state among the blocks of an aligned group, if all of it is free.
    fn group(&self, base: u32, order: u32) -> Option<State> {
        let end = base.checked_add(1 << order).filter(|end| *end <= self.core.managed)?;
        let mut worst = State::ZeroResident;
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            match tag.free_state()? {
                State::Dirty => worst = State::Dirty,
                State::ZeroAbsent if worst == State::ZeroResident => worst = State::ZeroAbsent,
                State::ZeroAbsent | State::ZeroResident => {}
            }
            index += 1 << tag.order();
        }
        Some(worst)
    }

    fn merge_group(&mut self, base: u32, order: u32, into: State) {
        let end = base + (1 << order);
        let mut stamp = self.frames[base as usize].stamp.load(Ordering::Relaxed);
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            let size = 1u64 << tag.order();
            if let Some(state) = tag.free_state() {
                self.unlink(index);
                *self.core.counts.of(Use::Free(state)) -= size;
                *self.core.counts.of(Use::Free(into)) += size;
                if state == State::ZeroResident && into == State::Dirty {
                    self.core.wasted += size;
                }
            }
            let own = self.frames[index as usize].stamp.load(Ordering::Relaxed);
            if later(own, stamp) {
                stamp = own;
            }
            index += 1 << tag.order();
        }
        let mut index = base + (1 << self.frames[base as usize].tag().order());
        self.frames[base as usize].set_tag(Tag::free(into, order));
        self.frames[base as usize].stamp.store(stamp, Ordering::Relaxed);
        while index < end {
            let size = 1 << self.frames[index as usize].tag().order();
            self.frames[index as usize].set_tag(TAIL);
            index += size;
        }
    }

    /// Cuts an unlinked free block down to `order`, its front kept, the rest linked as free blocks.
    fn carve(&mut self, index: u32, mut from: u32, order: u32, state: State) {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        while from > order {
            from -= 1;
            let upper = index + (1 << from);
            self.frames[upper as usize].stamp.store(stamp, Ordering::Relaxed);
            self.frames[upper as usize].set_tag(Tag::free(state, from));
            self.frames[index as usize].set_tag(Tag::free(state, from));
            self.link(upper, from, state);
        }
    }

    fn become_used(&mut self, index: u32, order: u32, from: State, to: Use, owner: u16) {
        *self.core.counts.of(Use::Free(from)) -= 1 << order;
        *self.core.counts.of(to) += 1 << order;
        self.frames[index as usize].set_tag(Tag::new(to, order, owner));
    }

    /// Gives the end of a block just taken back, so that a run of `frames` frames is left: a
    /// sequence of blocks as [`run_parts`] has them. `state` is what the block was taken as.
    ///
    /// # Errors
    /// As [`free`](Buddy::free), and [`FreeError::WrongOrder`] if the run is empty or longer than the
    /// block.
    pub fn shrink(
        &mut self,
        index: u32,
        frames: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.shrink_from(index, order_for(frames), frames, state, owner, now)
    }

    /// [`shrink`](Buddy::shrink) of a block that may be larger than the run needs.
    ///
    /// # Errors
    /// As [`shrink`](Buddy::shrink).
    pub fn shrink_from(
        &mut self,
        index: u32,
        order: u32,
        frames: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned(index, order, owner)?;
        if frames == 0 || frames > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let mut covered = order;
        let mut at = index;
        let mut left = frames;
        // Halve from the front: a half that is wholly kept is a part, one that is wholly given back
        // is freed, one that is neither is halved again.
        while left != 0 && left != 1 << covered {
            covered -= 1;
            let upper = at + (1 << covered);
            self.frames[upper as usize].set_tag(Tag::new(Use::Allocated, covered, owner));
            self.frames[at as usize].set_tag(Tag::new(Use::Allocated, covered, owner));
            if left > 1 << covered {
                left -= 1 << covered;
                at = upper;
            } else {
                self.release(upper, covered, Use::Allocated, state, now);
                if left == 1 << covered {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives the end of an absent block back, of which the first `resident` frames were made to be there:
    /// a run of `frames` frames is left, what follows it of those is zero and resident, and the rest
    /// absent as before.
    ///
    /// # Errors
    /// As [`shrink`](Buddy::shrink).
    pub fn shrink_resident(
        &mut self,
        index: u32,
        order: u32,
        (frames, resident): (u32, u32),
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned(index, order, owner)?;
        if frames == 0 || frames > resident || resident > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let (keep, there) = (index + frames, index + resident);
        let mut left = [(0u32, 0u32); ORDERS + 1];
        (left[0], left[1]) = ((index, order), (0, 0));
        let mut depth = 1usize;
        while let Some(top) = depth.checked_sub(1) {
            let (at, order) = left[top];
            let end = at + (1 << order);
            depth = top;
            if end <= keep {
                continue;
            }
            let state = match () {
                () if at >= there => State::ZeroAbsent,
                () if at >= keep && end <= there => State::ZeroResident,
                () => {
                    // A border lies inside: the upper half is tagged first, as in `carve`.
                    let half = order - 1;
                    let upper = at + (1 << half);
                    let tag = Tag::new(Use::Allocated, half, owner);
                    self.frames[upper as usize].set_tag(tag);
                    self.frames[at as usize].set_tag(tag);
                    (left[depth], left[depth + 1]) = ((at, half), (upper, half));
                    depth += 2;
                    continue;
                }
            };
            self.release(at, order, Use::Allocated, state, now);
        }
        Ok(())
    }

    /// Takes a block back. Returns the order of the free block that it became part of.
    ///
    /// # Errors
    /// [`FreeError`]; nothing is changed then.
    pub fn free(
        &mut self,
        index: u32,
        order: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<u32, FreeError> {
        self.claim(index, order, owner)?;
        Ok(self.release(index, order, Use::Allocated, state, now))
    }

    /// Takes an allocated block out of its owner's hands, in one exchange: whoever frees it at the same
    /// moment without the lock ([`Frame::cache`]) finds it gone, or this one does. Its frames still count
    /// as handed out.
    fn claim(&self, index: u32, order: u32, owner: u16) -> Result<(), FreeError> {
        self.owned(index, order, owner)?;
        let gone = Tag::new(Use::InFlight, order, owner);
        let swapped =
            self.frames[index as usize].swap(Tag::new(Use::Allocated, order, owner), gone);
        swapped.map_err(|_| FreeError::DoubleFree)
    }

    /// Takes a run back that [`shrink`](Buddy::shrink) made. Returns the order of the largest free
    /// block that came of it.
    ///
    /// # Errors
    /// [`FreeError`]; nothing is changed then.
    pub fn free_run(
        &mut self,
        index: u32,
        frames: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<u32, FreeError> {
        let whole = order_for(frames);
        let aligned = index & (run_alignment(frames) - 1) == 0;
        if frames == 0 || whole > self.core.max_order || !aligned {
            return Err(FreeError::Misaligned);
        }
        for (claimed, (offset, order)) in run_parts(frames).enumerate() {
            let Err(why) = self.claim(index + offset, order, owner) else { continue };
            for (offset, order) in run_parts(frames).take(claimed) {
                let tag = Tag::new(Use::Allocated, order, owner);
                self.frames[(index + offset) as usize].set_tag(tag);
            }
            return Err(why);
        }
        let mut largest = 0;
        for (offset, order) in run_parts(frames) {
            let merged = self.release(index + offset, order, Use::Allocated, state, now);
            largest = largest.max(merged);
        }
        Ok(largest)
    }

    /// Whether `owner` has a block of that order there.
    ///
    /// # Errors
    /// What is there instead.
    pub fn owned(&self, index: u32, order: u32, owner: u16) -> Result<(), FreeError> {
        if index >= self.core.managed {
            return Err(FreeError::Foreign);
        }
        if order > self.core.max_order || index & ((1 << order) - 1) != 0 {
            return Err(FreeError::Misaligned);
        }
        let tag = self.frames[index as usize].tag();
        match tag.used() {
            Some(Use::Allocated) if tag.order() != order => {
                Err(FreeError::WrongOrder { actual: tag.order() })
            }
            Some(Use::Allocated) if tag.owner() != owner => {
                Err(FreeError::OtherOwner { owner: tag.owner() })
            }
            Some(Use::Allocated) => Ok(()),
            Some(_) => Err(FreeError::DoubleFree),
            None => Err(match self.enclosing(index).and_then(Tag::used) {
                Some(Use::Allocated) => FreeError::Interior,
                _ => FreeError::DoubleFree,
            }),
        }
    }

    /// The tag of the block that a tail frame belongs to.
    fn enclosing(&self, index: u32) -> Option<Tag> {
        (1..=self.core.max_order).find_map(|order| {
            let tag = self.frames[(index >> order << order) as usize].tag();
            (tag.used().is_some() && tag.order() >= order).then_some(tag)
        })
    }

    fn release(&mut self, index: u32, order: u32, from: Use, to: State, now: u32) -> u32 {
        *self.core.counts.of(from) -= 1 << order;
        *self.core.counts.of(Use::Free(to)) += 1 << order;
        self.frames[index as usize].stamp.store(now, Ordering::Relaxed);
        self.frames[index as usize].set_tag(Tag::free(to, order));
        self.coalesce_and_link(index, order, to)
    }

    fn coalesce_and_link(&mut self, mut index: u32, mut order: u32, state: State) -> u32 {
        while order < self.core.max_order {
            let buddy = index ^ (1 << order);
            if u64::from(buddy) + (1 << order) > u64::from(self.core.managed)
                || self.frames[buddy as usize].tag() != Tag::free(state, order)
                || !self.linked(buddy, order, state)
            {
                break;
            }
            self.unlink(buddy);
            let (lower, upper) = (index.min(buddy), index.max(buddy));
            let (a, b) = (&self.frames[lower as usize], &self.frames[upper as usize]);
            let upper_stamp = b.stamp.load(Ordering::Relaxed);
            if later(upper_stamp, a.stamp.load(Ordering::Relaxed)) {
                a.stamp.store(upper_stamp, Ordering::Relaxed);
            }
            a.set_tag(Tag::free(state, order + 1));
            b.set_tag(TAIL);
            index = lower;
            order += 1;
        }
        self.link(index, order, state);
        order
    }

    /// Free blocks are tagged before they are linked while the allocator grows; only linked ones
    /// can be merged with.
    fn linked(&self, index: u32, order: u32, state: State) -> bool {
        let frame = &self.frames[index as usize];
        let prev = frame.prev.load(Ordering::Relaxed);
        match self.frames.get(prev as usize) {
            None => self.core.lists[state as usize][order as usize].head == index,
            Some(before) => before.next.load(Ordering::Relaxed) == index,
        }
    }

    fn link(&mut self, index: u32, order: u32, state: State) {
        let (state, order) = (state as usize, order as usize);
        let head = self.core.lists[state][order].head;
        let frame = &self.frames[index as usize];
        frame.next.store(head, Ordering::Relaxed);
        frame.prev.store(NONE, Ordering::Relaxed);
        match self.frames.get(head as usize) {
            Some(next) => next.prev.store(index, Ordering::Relaxed),
            None => self.core.lists[state][order].tail = index,
        }
        self.core.lists[state][order].head = index;
        self.core.lists[state][order].blocks += 1;
        self.core.filled[state] |= 1 << order;
    }

    fn unlink(&mut self, index: u32) {
        let frame = &self.frames[index as usize];
        let tag = frame.tag();
        let Some(state) = tag.free_state() else { return };
        let (state, order) = (state as usize, tag.order() as usize);
        let next = frame.next.load(Ordering::Relaxed);
        let prev = frame.prev.load(Ordering::Relaxed);
        match self.frames.get(prev as usize) {
            Some(before) => before.next.store(next, Ordering::Relaxed),
            None => self.core.lists[state][order].head = next,
        }
        match self.frames.get(next as usize) {
            Some(after) => after.prev.store(prev, Ordering::Relaxed),
            None => self.core.lists[state][order].tail = prev,
        }
        // No frame may look linked that is not (`linked`).
        frame.prev.store(NONE, Ordering::Relaxed);
        self.core.lists[state][order].blocks -= 1;
        if self.core.lists[state][order].blocks == 0 {
            self.core.filled[state] &= !(1 << order);
        }
    }

    /// Takes a dirty block away to be zeroed: from the highest order down to `lowest`, among one
    /// order the least recently freed, if nobody used it for `min_idle` ticks. Of a block larger
    /// than `chunk` only its first part of that order is taken.
    pub fn take_to_zero(
        &mut self,
        lowest: u32,
        chunk: u32,
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Option<(u32, u32)> {
        for order in (lowest..=self.core.max_order).rev() {
            let index = self.core.lists[State::Dirty as usize][order as usize].tail;
            if index == NONE || self.age(index, now) < min_idle {
                continue;
            }
            let part = order.min(chunk.max(lowest));
            self.unlink(index);
            self.carve(index, order, part, State::Dirty);
            self.become_used(index, part, State::Dirty, Use::InFlight, owner);
            return Some((index, part));
        }
        None
    }

    /// In how many ticks [`take_to_zero`](Buddy::take_to_zero) may find a block; 0 is now, `None`
    /// is not before another block is freed.
    #[must_use]
    pub fn next_to_zero(&self, lowest: u32, min_idle: u32, now: u32) -> Option<u32> {
        (lowest..=self.core.max_order)
            .map(|order| self.core.lists[State::Dirty as usize][order as usize].tail)
            .filter(|index| *index != NONE)
            .map(|index| min_idle.saturating_sub(self.age(index, now)))
            .min()
    }

    fn age(&self, index: u32, now: u32) -> u32 {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        if later(stamp, now) { 0 } else { now.wrapping_sub(stamp) }
    }

    /// Takes the largest free resident block away to be returned to the system, dirty before zero;
    /// at least of order `lowest`, at most its first 2^`highest` frames.
    pub fn take_to_trim(
        &mut self,
        lowest: u32,
        highest: u32,
        owner: u16,
    ) -> Option<(u32, u32, State)> {
        for order in (lowest..=self.core.max_order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let index = self.core.lists[state as usize][order as usize].tail;
                if index == NONE {
                    continue;
                }
                let part = order.min(highest.max(lowest));
                self.unlink(index);
                self.carve(index, order, part, state);
                self.become_used(index, part, state, Use::InFlight, owner);
                return Some((index, part, state));
            }
        }
        None
    }

    /// [`take_to_trim`](Buddy::take_to_trim) of a block that nobody used for `min_idle` ticks, or when there
    /// will be one: 0 where the answer is a block, `None` where there is none large enough.
    pub fn take_idle(
        &mut self,
        (lowest, highest): (u32, u32),
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Result<(u32, u32), Option<u32>> {
        let mut soonest: Option<u32> = None;
        for order in (lowest..=self.core.max_order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let index = self.core.lists[state as usize][order as usize].tail;
                if index == NONE {
                    continue;
                }
                let left = min_idle.saturating_sub(self.age(index, now));
                if left > 0 {
                    soonest = Some(soonest.map_or(left, |other| other.min(left)));
                    continue;
                }
                let part = order.min(highest.max(lowest));
                self.unlink(index);
                self.carve(index, order, part, state);
                self.become_used(index, part, state, Use::InFlight, owner);
                return Ok((index, part));
            }
        }
        self.take_idle_group(lowest, min_idle, owner, now)
            .map_err(|left| soonest.into_iter().chain(left).min())
    }

    /// A group of that order whose blocks are all free, in different states, and idle: what a run and the
    /// rest of the block that it was cut from leave. As [`take_idle`](Buddy::take_idle).
    fn take_idle_group(
        &mut self,
        order: u32,
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Result<(u32, u32), Option<u32>> {
        let mut soonest: Option<u32> = None;
        for below in (0..order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let mut index = self.core.lists[state as usize][below as usize].tail;
                for _ in 0..LOOKS {
                    if index == NONE {
                        break;
                    }
                    let base = index >> order << order;
                    if self.group(base, order).is_some() {
                        let left = min_idle.saturating_sub(self.group_age(base, order, now));
                        if left == 0 {
                            self.merge_group(base, order, State::Dirty);
                            self.become_used(base, order, State::Dirty, Use::InFlight, owner);
                            return Ok((base, order));
                        }
                        soonest = Some(soonest.map_or(left, |other| other.min(left)));
                    }
                    index = self.frames[index as usize].prev.load(Ordering::Relaxed);
                }
            }
        }
        Err(soonest)
    }

    /// The age of the block of a group that was used last.
    fn group_age(&self, base: u32, order: u32, now: u32) -> u32 {
        let (mut index, mut youngest) = (base, u32::MAX);
        while index < base + (1 << order) {
            youngest = youngest.min(self.age(index, now));
            index += 1 << self.frames[index as usize].tag().order();
        }
        youngest
    }

    /// Brings a block back that was in flight, in the state it has now. Returns the order of the
    /// free block that it became part of.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is in flight there.
    pub fn land(
        &mut self,
        index: u32,
        order: u32,
        state: State,
        now: u32,
    ) -> Result<u32, FreeError> {
        self.is(index, order, Use::InFlight)?;
        Ok(self.release(index, order, Use::InFlight, state, now))
    }

    /// Withdraws a block in flight from use.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is in flight there.
    pub fn quarantine(&mut self, index: u32, order: u32) -> Result<(), FreeError> {
        self.is(index, order, Use::InFlight)?;
        let frame = &self.frames[index as usize];
        self.core.counts.in_flight -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        frame.set_tag(Tag::new(Use::Quarantined, order, frame.tag().owner()));
        Ok(())
    }

    /// Withdraws an allocated block from use.
    ///
    /// # Errors
    /// [`FreeError`] as [`free`](Buddy::free).
    pub fn quarantine_allocated(
        &mut self,
        index: u32,
        order: u32,
        owner: u16,
    ) -> Result<(), FreeError> {
        self.claim(index, order, owner)?;
        self.core.counts.out -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        self.frames[index as usize].set_tag(Tag::new(Use::Quarantined, order, owner));
        Ok(())
    }

    /// Ends the quarantine of a block: it is dirty.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is quarantined there.
    pub fn end_quarantine(&mut self, index: u32, order: u32, now: u32) -> Result<u32, FreeError> {
        self.is(index, order, Use::Quarantined)?;
        Ok(self.release(index, order, Use::Quarantined, State::Dirty, now))
    }

    /// Takes a block back from a per-thread cache.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is cached so there.
    pub fn free_cached(
        &mut self,
        index: u32,
        order: u32,
        zero: bool,
        now: u32,
    ) -> Result<u32, FreeError> {
        let (used, state) = if zero {
            (Use::CachedZero, State::ZeroResident)
        } else {
            (Use::CachedDirty, State::Dirty)
        };
        self.is(index, order, used)?;
        Ok(self.release(index, order, used, state, now))
    }

    /// Takes blocks of one order back from a per-thread cache; neighbours among them are merged
    /// before they meet the lists. Returns the order of the largest free block that came of it, and
    /// how many were not cached so and were left alone.
    pub fn free_cached_all(
        &mut self,
        blocks: &mut [u32],
        order: u32,
        zero: bool,
        now: u32,
    ) -> (u32, usize) {
        let used = cached(zero);
        let state = if zero { State::ZeroResident } else { State::Dirty };
        blocks.sort_unstable();
        let (mut largest, mut refused) = (0, 0);
        // A run of buddies found so far, not yet released: its first frame and order.
        let mut pending = [(0u32, 0u32); ORDERS + 1];
        let mut depth = 0;
        for &index in blocks.iter() {
            if self.is(index, order, used).is_err() {
                refused += 1;
                continue;
            }
            let (mut first, mut merged) = (index, order);
            while depth > 0
                && merged < self.core.max_order
                && pending[depth - 1] == (first ^ (1 << merged), merged)
                && pending[depth - 1].0 < first
            {
                depth -= 1;
                first = pending[depth].0;
                merged += 1;
            }
            if depth > 0 && (depth == pending.len() || !near(pending[depth - 1], first, merged)) {
                for (first, merged) in &pending[..depth] {
                    let all = self.release_cached(*first, *merged, order, used, state, now);
                    largest = largest.max(all);
                }
                depth = 0;
            }
            pending[depth] = (first, merged);
            depth += 1;
        }
        for (first, merged) in &pending[..depth] {
            let all = self.release_cached(*first, *merged, order, used, state, now);
            largest = largest.max(all);
        }
        (largest, refused)
    }

    /// Releases cached blocks of `order` that together are the block of order `whole` at `first`.
    fn release_cached(
        &mut self,
        first: u32,
        whole: u32,
        order: u32,
        used: Use,
        state: State,
        now: u32,
    ) -> u32 {
        *self.core.counts.of(used) -= 1 << whole;
        *self.core.counts.of(Use::Free(state)) += 1 << whole;
        self.frames[first as usize].stamp.store(now, Ordering::Relaxed);
        self.frames[first as usize].set_tag(Tag::free(state, whole));
        for place in 1..1u32 << (whole - order) {
            self.frames[(first + (place << order)) as usize].set_tag(TAIL);
        }
        self.coalesce_and_link(first, whole, state)
    }

    fn is(&self, index: u32, order: u32, used: Use) -> Result<(), FreeError> {
        if index >= self.core.managed {
            return Err(FreeError::Foreign);
        }
        let tag = self.frames[index as usize].tag();
        if tag.used() != Some(used) {
            return Err(FreeError::DoubleFree);
        }
        if tag.order() != order {
            return Err(FreeError::WrongOrder { actual: tag.order() });
        }
        Ok(())
    }

    /// Every block in order of its first frame, as that frame and its tag.
    pub fn walk(&self) -> impl Iterator<Item = (u32, Tag)> {
        let mut index = 0;
        core::iter::from_fn(move || {
            if index >= self.core.managed {
                return None;
            }
            let tag = self.frames[index as usize].tag();
            let first = index;
            index = index.saturating_add(if tag.used().is_some() { 1 << tag.order() } else { 1 });
            Some((first, tag))
        })
    }

    /// Takes back, as dirty, every block that is not free and that `gone` says nobody will ever
    /// bring back: those of a dead process, or of threads that did not survive a fork. Returns the
    /// frames gained.
    pub fn reclaim(&mut self, mut gone: impl FnMut(Tag) -> bool, now: u32) -> u64 {
        let mut index = 0;
        let mut gained = 0;
        while index < self.core.managed {
            let tag = self.frames[index as usize].tag();
            let Some(used) = tag.used() else {
                index += 1;
                continue;
            };
            let size = 1 << tag.order();
            if !matches!(used, Use::Free(_)) && gone(tag) {
                gained += u64::from(size);
                // Its owner may have died cutting it up.
                for tail in index + 1..index + size {
                    self.frames[tail as usize].set_tag(TAIL);
                }
                self.release(index, tag.order(), used, State::Dirty, now);
            }
            index += size;
        }
        gained
    }

    /// Makes lists and counts anew from the tags, after somebody died in the middle of an
    /// operation. Frames whose tag makes no sense become dirty blocks of one frame.
    pub fn rebuild(&mut self, now: u32) {
        let (max_order, wasted) = (self.core.max_order, self.core.wasted);
        let managed = self.core.managed.min(u32::try_from(self.frames.len()).unwrap_or(NONE - 1));
        *self.core = Core { managed, wasted, ..Core::new(max_order) };
        for frame in &self.frames[..managed as usize] {
            frame.prev.store(NONE, Ordering::Relaxed);
        }
        let mut index = 0;
        while index < managed {
            let frame = &self.frames[index as usize];
            let tag = frame.tag();
            let order = tag.order();
            let sound = tag.used().is_some()
                && order <= max_order
                && index & ((1u32 << order) - 1) == 0
                && u64::from(index) + (1u64 << order) <= u64::from(managed);
            if !sound {
                frame.set_tag(Tag::free(State::Dirty, 0));
                frame.stamp.store(now, Ordering::Relaxed);
            }
            let tag = frame.tag();
            let size = 1u32 << tag.order();
            for tail in index + 1..index + size {
                self.frames[tail as usize].set_tag(TAIL);
            }
            if let Some(used) = tag.used() {
                *self.core.counts.of(used) += u64::from(size);
                if let Use::Free(state) = used {
                    self.coalesce_and_link(index, tag.order(), state);
                }
            }
            index += size;
        }
    }

    /// Looks at everything: that blocks tile the frames, that every list holds exactly the free
    /// blocks of its order and state, that the counts add up, that no two buddies of one state are
    /// apart. Takes time in proportion to the frames.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<Counts, Inconsistent> {
        let fail = |frame, what| Err(Inconsistent { frame, what });
        let mut counts = Counts::default();
        let mut blocks = [[0u32; ORDERS]; STATES];
        let mut index = 0;
        while index < self.core.managed {
            let tag = self.frames[index as usize].tag();
            let Some(used) = tag.used() else {
                return fail(index, "belongs to no block");
            };
            let order = tag.order();
            if order > self.core.max_order || index & ((1 << order) - 1) != 0 {
                return fail(index, "a block is not aligned to its size");
            }
            let Some(end) = index.checked_add(1 << order).filter(|end| *end <= self.core.managed)
            else {
                return fail(index, "a block ends after the last frame");
            };
            // A cache may be cutting its block up; once that is done the first frame says so.
            let parts = |tail: Tag| {
                let cached = matches!(used, Use::CachedDirty | Use::CachedZero);
                cached && tail.used() == Some(used) && tail.owner() == tag.owner()
            };
            let whole = |tail: Tag| tail == TAIL || parts(tail);
            if !(index + 1..end).all(|tail| whole(self.frames[tail as usize].tag())) {
                if self.frames[index as usize].tag() != tag {
                    continue;
                }
                return fail(index, "a block lies inside another");
            }
            *counts.of(used) += 1 << order;
            if let Use::Free(state) = used {
                blocks[state as usize][order as usize] += 1;
                if !self.linked(index, order, state) {
                    return fail(index, "a free block is in no list");
                }
                let buddy = index ^ (1 << order);
                if order < self.core.max_order
                    && buddy < self.core.managed
                    && self.frames[buddy as usize].tag() == tag
                {
                    return fail(index, "two free buddies of one state are apart");
                }
            }
            index = end;
        }
        if counts != self.core.counts {
            return fail(0, "the counts are not those of the blocks");
        }
        if counts.total() != u64::from(self.core.managed) {
            return fail(0, "the counts do not add up to all frames");
        }
        let lengths = self.core.lists.map(|lists| lists.map(|list| list.blocks));
        if blocks != lengths {
            return fail(0, "the lists' lengths are not the numbers of blocks");
        }
        self.check_lists()?;
        Ok(counts)
    }

    fn check_lists(&self) -> Result<(), Inconsistent> {
        for state in State::ALL {
            for order in 0..ORDERS {
                let mut index = self.core.lists[state as usize][order].head;
                let (mut length, mut last) = (0, NONE);
                while let Some(frame) = self.frames.get(index as usize) {
                    if frame.tag() != Tag::free(state, order as u32) {
                        let what = "a list holds a block that is not its own";
                        return Err(Inconsistent { frame: index, what });
                    }
                    length += 1;
                    if length > self.core.lists[state as usize][order].blocks {
                        let what = "a list is longer than its count";
                        return Err(Inconsistent { frame: index, what });
                    }
                    last = index;
                    index = frame.next.load(Ordering::Relaxed);
                }
                if length != self.core.lists[state as usize][order].blocks
                    || last != self.core.lists[state as usize][order].tail
                {
                    let what = "a list does not end where it should";
                    return Err(Inconsistent { frame: last, what });
                }
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A cache is interrupted anywhere in cutting its block up: by a death, a fork, or somebody who
    /// looks. The block is whole until its first frame says otherwise.
    #[test]
    fn a_block_cut_halfway_is_one_block() {
        for used in [Use::CachedZero, Use::CachedDirty] {
            for cut in 0..4 {
                let frames: [Frame; 8] = core::array::from_fn(|_| Frame::new());
                let mut core = Core::new(3);
                let mut buddy = Buddy::new(&mut core, &frames);
                buddy.extend(8, State::ZeroResident, 0);
                assert_eq!(buddy.take_cached(0, 4, 2, &mut [0]), 1);
                frames[0].set_tag(Tag::new(used, 2, 2));
                for tail in &frames[4 - cut..4] {
                    tail.set_tag(Tag::new(used, 0, 2));
                }
                assert_eq!(buddy.check().map(|counts| counts.out), Ok(4));
                let mut after = core.clone();
                let mut rebuilt = Buddy::new(&mut after, &frames);
                if cut % 2 == 0 {
                    rebuilt.rebuild(0);
                    assert_eq!(rebuilt.check().map(|counts| counts.out), Ok(4));
                }
                assert_eq!(rebuilt.reclaim(|tag| tag.owner() == 2, 0), 4);
                let counts = rebuilt.check();
                assert_eq!(counts.map(|counts| (counts.out, counts.dirty)), Ok((0, 4)));
            }
        }
    }

    /// Whatever else stands inside a block is an error still.
    #[test]
    fn a_strangers_tag_inside_a_cached_block_is_noticed() {
        let frames: [Frame; 4] = core::array::from_fn(|_| Frame::new());
        for tag in [
            Tag::new(Use::CachedZero, 0, 3),
            Tag::new(Use::CachedDirty, 0, 2),
            Tag::new(Use::Allocated, 0, 2),
            Tag::free(State::ZeroResident, 0),
        ] {
            let mut core = Core::new(2);
            let mut buddy = Buddy::new(&mut core, &frames);
            buddy.extend(4, State::ZeroResident, 0);
            buddy.take_cached(0, 4, 2, &mut [0]);
            assert!(buddy.check().is_ok());
            frames[3].set_tag(tag);
            assert!(buddy.check().is_err(), "{tag:?}");
            frames[3].set_tag(TAIL);
        }
    }
}
