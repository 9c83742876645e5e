//! Memory to measure on: mapped, advised, written first, counted against a budget.
//!
//! Every page is written with non-zero incompressible bytes when the arena is made. An unwritten
//! page would be the shared zero page, which fits the L1 cache whatever its size, and a page
//! faulted in later would bill its zeroing to the first candidate.

use crate::MeasureError;
use cachewise_host::Room;
use cachewise_pages::smaps::{self, Mapped};
use memmap2::{Advice, MmapMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Bytes of a huge page on x86-64 and on aarch64 with 4 KiB pages; arenas are aligned to it.
pub const HUGE_PAGE: usize = 2 << 20;

/// The pages that an arena asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePolicy {
    /// Huge pages (`MADV_HUGEPAGE`); given unless the system says `never`. With them the lines of
    /// an operand spread evenly over the sets of a physically indexed cache.
    Huge,
    /// Base pages (`MADV_NOHUGEPAGE`).
    Small,
    /// Whatever the system does for a program that says nothing.
    Default,
}

/// A limit on the bytes that arenas may take together. Clones share one account.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: AtomicUsize,
    used: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of that many bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(Account { limit: limit.into(), used: 0.into() }))
    }

    /// The budget of everything that names no other: a quarter of the memory this process may
    /// use (the machine's, or its control group's if that is less).
    pub fn process() -> MemoryBudget {
        static PROCESS: LazyLock<MemoryBudget> = LazyLock::new(|| {
            let Room { whole, .. } = Room::of_process();
            let memory = if whole == u64::MAX { 1 << 30 } else { whole };
            MemoryBudget::new(usize::try_from(memory / 4).unwrap_or(usize::MAX))
        });
        PROCESS.clone()
    }

    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Replaces the limit; what is already reserved stays reserved.
    pub fn set_limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Sets the limit to what somebody asked for, or else to what is needed, 1 GiB at least; never
    /// above what it is now.
    pub fn limit_to(&self, asked: Option<usize>, needed: usize) {
        self.set_limit(asked.unwrap_or(needed.max(1 << 30)).min(self.limit()));
    }

    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Bytes that can still be reserved.
    pub fn left(&self) -> usize {
        self.limit().saturating_sub(self.used())
    }

    fn reserve(&self, wanted: usize) -> Result<Reservation, MeasureError> {
        let limit = self.limit();
        let added = |used: usize| used.checked_add(wanted).filter(|total| *total <= limit);
        match self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added) {
            Ok(_) => Ok(Reservation { budget: self.clone(), bytes: wanted }),
            Err(used) => Err(MeasureError::OverBudget { wanted, used, limit }),
        }
    }
}

/// Bytes of a budget, given back when dropped.
#[derive(Debug)]
struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A private anonymous mapping, aligned to [`HUGE_PAGE`], every byte of it written; unmapped when
/// dropped. Share it between operands with [`Arc`]: those of 128 MiB are costly to make.
#[derive(Debug)]
pub struct Arena {
    mapping: MmapMut,
    /// Offset at which the mapping is aligned.
    offset: usize,
    bytes: usize,
    policy: PagePolicy,
    _reservation: Reservation,
}

impl Arena {
    /// An arena of at least `bytes` bytes (rounded up to whole huge pages) within
    /// [`MemoryBudget::process`], filled by a generator started from `seed`.
    ///
    /// # Errors
    /// [`MeasureError::OverBudget`] and [`MeasureError::Map`].
    pub fn new(bytes: usize, pages: PagePolicy, seed: u64) -> Result<Arena, MeasureError> {
        Arena::within(&MemoryBudget::process(), bytes, pages, seed)
    }

    /// Allocates like [`new`](Arena::new), within the given budget.
    pub fn within(
        budget: &MemoryBudget,
        bytes: usize,
        pages: PagePolicy,
        seed: u64,
    ) -> Result<Arena, MeasureError> {
        let (used, limit) = (budget.used(), budget.limit());
        let too_large = || MeasureError::OverBudget { wanted: bytes, used, limit };
        let bytes = bytes.max(1).checked_next_multiple_of(HUGE_PAGE).ok_or_else(too_large)?;
        let mapped = bytes.checked_add(HUGE_PAGE).ok_or_else(too_large)?;
        let reservation = budget.reserve(bytes)?;
        let mapping = MmapMut::map_anon(mapped);
        let mapping = mapping.map_err(|source| MeasureError::Map { bytes, source })?;
        // The mapping is one huge page longer than asked, so the aligned part fits.
        let offset = mapping.as_ptr().align_offset(HUGE_PAGE);
        let mut arena = Arena { mapping, offset, bytes, policy: pages, _reservation: reservation };
        arena.advise();
        arena.write_first(seed);
        Ok(arena)
    }

    fn advise(&self) {
        let advice = match self.policy {
            PagePolicy::Huge => Advice::HugePage,
            PagePolicy::Small => Advice::NoHugePage,
            PagePolicy::Default => return,
        };
        // A kernel without huge pages refuses the advice, which changes nothing here:
        // huge_fraction() tells what was given.
        let _ = self.mapping.advise_range(advice, self.offset, self.bytes);
    }

    fn write_first(&mut self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (words, _) = self.mapping[self.offset..][..self.bytes].as_chunks_mut();
        words.fill_with(|| non_zero_bytes(random.u64(..)).to_ne_bytes());
    }

    /// Its first byte, aligned to [`HUGE_PAGE`]. Valid for [`len`](Arena::len) bytes for as long
    /// as the arena lives.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.mapping.as_ptr().cast_mut().wrapping_add(self.offset)
    }

    /// Its size in bytes, a multiple of [`HUGE_PAGE`] and never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The policy it was made with.
    pub fn policy(&self) -> PagePolicy {
        self.policy
    }

    /// The part of it that the kernel backs with huge pages, 0 to 1, from `/proc/self/smaps`; `None`
    /// where that cannot be read. Adjacent arenas may share one entry, and then one answer.
    pub fn huge_fraction(&self) -> Option<f64> {
        huge_fraction_at(&smaps::mappings(), self.as_mut_ptr() as usize)
    }
}

/// The word with the lowest bit of every byte set: no byte is zero, and 56 of 64 bits stay random.
pub(crate) const fn non_zero_bytes(word: u64) -> u64 {
    word | 0x0101_0101_0101_0101
}

fn huge_fraction_at(mappings: &[Mapped], address: usize) -> Option<f64> {
    let mapped = mappings.iter().find(|mapped| mapped.range.contains(&address))?;
    let (resident, huge) = (mapped.figure("Rss")?, mapped.figure("AnonHugePages")?);
    (resident > 0).then(|| (huge as f64 / resident as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_aligned_written_and_given_back() {
        let budget = MemoryBudget::new(8 << 20);
        let arena = Arena::within(&budget, 3 << 20, PagePolicy::Small, 7).expect("an arena");
        assert_eq!((arena.len(), budget.used()), (4 << 20, 4 << 20));
        assert_eq!(arena.as_mut_ptr() as usize % HUGE_PAGE, 0);
        // SAFETY: the arena is that long, initialised, and nobody else has a pointer into it.
        let bytes = unsafe { std::slice::from_raw_parts(arena.as_mut_ptr(), arena.len()) };
        assert!(bytes.iter().all(|byte| *byte != 0));
        let distinct: std::collections::BTreeSet<_> = bytes.chunks(64).take(1000).collect();
        assert_eq!(distinct.len(), 1000, "no line repeats");
        drop(arena);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_budget_refuses_and_says_why() {
        let budget = MemoryBudget::new(4 << 20);
        let held = Arena::within(&budget, 1, PagePolicy::Default, 1).expect("one huge page");
        let refused = Arena::within(&budget, 4 << 20, PagePolicy::Default, 1).err();
        let text = refused.expect("a refusal").to_string();
        assert!(text.contains("4194304 bytes") && text.contains("(2097152 of"), "{text}");
        assert!(Arena::within(&budget, usize::MAX, PagePolicy::Default, 1).is_err());
        drop(held);
        assert_eq!(budget.left(), 4 << 20);
        budget.limit_to(None, 2 << 20);
        assert_eq!(budget.limit(), 4 << 20, "more than there is");
        let large = MemoryBudget::new(16 << 30);
        large.limit_to(None, 3 << 30);
        assert_eq!(large.limit(), 3 << 30, "what is needed");
        large.limit_to(None, 1 << 20);
        assert_eq!(large.limit(), 1 << 30, "or the default");
        large.limit_to(Some(1 << 20), 3 << 30);
        assert_eq!(large.limit(), 1 << 20, "what was asked for holds");
        budget.set_limit(0);
        assert!(Arena::within(&budget, 1, PagePolicy::Default, 1).is_err());
    }

    #[test]
    fn smaps_tells_the_huge_part() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nRss: 4 kB\nAnonHugePages: 0 kB\n\
                     200000-600000 rw-p 00000000 00:00 0\nRss: 4096 kB\nAnonHugePages: 2048 kB\n";
        let smaps = &smaps::parse(smaps);
        assert_eq!(huge_fraction_at(smaps, 0x20_0000), Some(0.5));
        assert_eq!(huge_fraction_at(smaps, 0x1000), Some(0.0));
        assert_eq!(huge_fraction_at(smaps, 0x9000), None);
    }
}
