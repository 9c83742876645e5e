//! Several pools as one, for programs of many threads that take and give back small blocks all the
//! time: each thread takes from a shard of its own, and a block goes back to the shard it is from.
//!
//! A pool's lists are under one lock. Per-thread caches make a thread take it once for hundreds of
//! pages, which is enough for some threads; the lock is busy all the time from a number on that
//! `docs/decisions/pool-shards.md` derives. With shards each lock has its part of the threads.
//!
//! Each shard is a pool with all that belongs to one: nothing is shared between them, and so
//! nothing here has a lock. Threads are given their shards in turn. Where a thread's own shard has
//! nothing left, it takes from the others.

use crate::block::{Block, Dirty, Zeroed};
use crate::config::{Builder, EngineChoice};
use crate::error::PoolError;
use crate::pool::Pool;
use crate::stats::Stats;
use crate::thread::{self, ENTRIES};
use std::boxed::Box;
use std::ptr::NonNull;
use std::string::ToString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::vec::Vec;

/// Shards at most: a thread finds the caches of so many pools at once.
pub const MOST_SHARDS: usize = ENTRIES;

/// Threads that have a home.
static HOMES: AtomicU32 = AtomicU32::new(0);

/// A pool in shards.
#[derive(Debug)]
pub struct Shards {
    /// By address.
    pools: Box<[Pool]>,
}

impl Builder {
    /// Makes the pool in so many shards, each with its part of the capacity and of what is resident
    /// initially, of the scrubber's CPU and bytes, and of what is given back or grown ahead. No
    /// block is larger than a shard. Their scrubbers' threads are started when something is first
    /// given back.
    ///
    /// # Errors
    /// As [`build`](Builder::build); and 1 to [`MOST_SHARDS`] shards, with the CPU's engine or the system's.
    pub fn build_sharded(self, shards: usize) -> Result<Shards, PoolError> {
        let refuse = |setting, found: std::string::String, accepted: std::string::String| {
            Err(PoolError::Setting { setting, found, accepted })
        };
        if !(1..=MOST_SHARDS).contains(&shards) {
            let accepted = std::format!("1 to {MOST_SHARDS}");
            return refuse("shards", shards.to_string(), accepted);
        }
        self.check()?;
        let mut pools = Vec::with_capacity(shards);
        for _ in 0..shards {
            let engine = match &self.engine {
                EngineChoice::CpuAround => EngineChoice::CpuAround,
                EngineChoice::CpuThrough => EngineChoice::CpuThrough,
                EngineChoice::System => EngineChoice::System,
                other => {
                    let custom = matches!(other, EngineChoice::Custom(_));
                    return refuse(
                        "engine of a pool in shards",
                        if custom { "custom" } else { "cuda" }.into(),
                        "the CPU's or the system's".into(),
                    );
                }
            };
            pools.push(self.part_of(shards, engine).build()?);
        }
        pools.sort_by_key(|pool| pool.base() as usize);
        Ok(Shards { pools: pools.into_boxed_slice() })
    }

    fn part_of(&self, shards: usize, engine: EngineChoice) -> Builder {
        let part = |bytes: usize| bytes.div_ceil(shards);
        let mut scrub = self.scrub.clone();
        scrub.cpu_share /= shards as f64;
        scrub.bytes_per_second = scrub.bytes_per_second.div_ceil(shards as u64);
        scrub.unused_limit = scrub.unused_limit.div_ceil(shards as u64);
        let mut give_back = self.give_back.clone();
        if let Some(give_back) = &mut give_back {
            give_back.floor = part(give_back.floor);
            give_back.bytes_per_second =
                give_back.bytes_per_second.div_ceil(shards as u64).max(1 << 20);
        }
        Builder {
            capacity: part(self.capacity),
            initial: part(self.initial),
            grow_ahead: part(self.grow_ahead),
            scrub,
            give_back,
            engine,
            scrub_later: true,
            leased: self.leased.clone(),
            ..*self
        }
    }
}

/// One pool as the only shard.
impl From<Pool> for Shards {
    fn from(pool: Pool) -> Shards {
        Shards { pools: Box::new([pool]) }
    }
}

impl Shards {
    /// The shards, by address.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The calling thread's shard.
    #[inline]
    fn home(&self) -> usize {
        let mine = &thread::current().home;
        let mut home = mine.load(Ordering::Relaxed);
        if home == 0 {
            home = HOMES.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
            mine.store(home, Ordering::Relaxed);
        }
        (home - 1) as usize % self.pools.len()
    }

    /// The first answer that is a block, from the thread's own shard on; else the own shard's.
    #[inline]
    fn first<'s, T>(
        &'s self,
        take: impl Fn(&'s Pool) -> Result<T, PoolError>,
    ) -> Result<T, PoolError> {
        if let [only] = &*self.pools {
            return take(only);
        }
        let home = self.home();
        match take(&self.pools[home]) {
            Err(error @ (PoolError::Exhausted { .. } | PoolError::NoMemory { .. })) => {
                let others = (1..self.pools.len()).map(|step| (home + step) % self.pools.len());
                others.map(|at| take(&self.pools[at])).find(Result::is_ok).unwrap_or(Err(error))
            }
            answer => answer,
        }
    }

    /// As [`Pool::alloc`].
    ///
    /// # Errors
    /// As [`Pool::alloc`].
    pub fn alloc(&self, order: u32) -> Result<Block<'_, Dirty>, PoolError> {
        self.first(|pool| pool.alloc(order))
    }

    /// As [`Pool::zalloc`].
    ///
    /// # Errors
    /// As [`Pool::zalloc`].
    pub fn zalloc(&self, order: u32) -> Result<Block<'_, Zeroed>, PoolError> {
        self.first(|pool| pool.zalloc(order))
    }

    /// As [`Pool::alloc_raw`].
    ///
    /// # Errors
    /// As [`Pool::alloc_raw`].
    #[inline]
    pub fn alloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        self.first(|pool| pool.alloc_raw(order))
    }

    /// As [`Pool::zalloc_raw`].
    ///
    /// # Errors
    /// As [`Pool::zalloc_raw`].
    #[inline]
    pub fn zalloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        self.first(|pool| pool.zalloc_raw(order))
    }

    /// As [`Pool::zalloc_to_fill_raw`].
    ///
    /// # Errors
    /// As [`Pool::zalloc_to_fill_raw`].
    pub fn zalloc_to_fill_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        self.first(|pool| pool.zalloc_to_fill_raw(order))
    }

    /// The shard that an address lies in, or the one below it.
    #[inline]
    fn of(&self, start: NonNull<u8>) -> &Pool {
        if let [only] = &*self.pools {
            return only;
        }
        let address = start.as_ptr() as usize;
        let after = self.pools.partition_point(|pool| pool.base() as usize <= address);
        &self.pools[after.saturating_sub(1)]
    }

    /// As [`Pool::free_raw`], to whichever shard the block is from.
    ///
    /// # Safety
    /// As for [`Pool::free_raw`].
    ///
    /// # Errors
    /// As [`Pool::free_raw`].
    #[inline]
    pub unsafe fn free_raw(&self, start: NonNull<u8>, order: u32) -> Result<(), PoolError> {
        // SAFETY: the caller's promise.
        unsafe { self.of(start).free_raw(start, order) }
    }

    /// Makes a block one of another order, with the contents that both have room for: where it is if
    /// [`Pool::resize_run_raw`] can and it stays aligned to its size, or else by copying. It is copied too where
    /// it would need new memory, and twice as much is free and resident.
    ///
    /// # Safety
    /// As for [`Pool::resize_run_raw`], and of the whole block if it moves.
    ///
    /// # Errors
    /// As [`Pool::free_raw`] and [`Pool::alloc_raw`]; the block is as it was then.
    pub unsafe fn resize_raw(
        &self,
        start: NonNull<u8>,
        order: u32,
        wanted: u32,
    ) -> Result<NonNull<u8>, PoolError> {
        let pool = self.of(start);
        let max_order = pool.max_order();
        if let Some(order) = [order, wanted].into_iter().find(|order| *order > max_order) {
            return Err(PoolError::Order { order, max_order });
        }
        let offset = start.addr().get().wrapping_sub(pool.base().addr());
        let aligned = offset.is_multiple_of(pool.page_size() << wanted);
        // SAFETY: the caller's promise.
        let resized =
            aligned && unsafe { pool.resize_or_move_raw(start, (1 << order, 1 << wanted), true) }?;
        if resized {
            return Ok(start);
        }
        // Also finds out whether it is a block of that order.
        // SAFETY: the caller's promise; nothing is cut off.
        unsafe { pool.resize_run_raw(start, 1 << order, 1 << order) }?;
        let new = self.first(|pool| pool.roomy_block_raw(wanted))?;
        let length = pool.page_size() << order.min(wanted);
        // SAFETY: both are that long, and a new block overlaps no other.
        unsafe { cachewise::raw::copy_nonoverlapping(new.as_ptr(), start.as_ptr(), length) };
        // SAFETY: the caller's promise.
        unsafe { self.free_raw(start, order) }?;
        Ok(new)
    }

    /// As [`Pool::flush_thread_cache`], in every shard.
    pub fn flush_thread_cache(&self) {
        self.pools.iter().for_each(Pool::flush_thread_cache);
    }

    /// As [`Pool::scrub_now`], one shard after the other.
    ///
    /// # Errors
    /// As [`Pool::scrub_now`].
    pub fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        self.pools.iter().try_fold(0, |done, pool| Ok(done + pool.scrub_now(budget - done)?))
    }

    /// As [`Pool::trim`], in every shard.
    ///
    /// # Errors
    /// As [`Pool::trim`].
    pub fn trim(&self) -> Result<usize, PoolError> {
        self.pools.iter().try_fold(0, |done, pool| Ok(done + pool.trim()?))
    }

    /// As [`Pool::pause_scrubber`], of every shard: whether all had stopped.
    pub fn pause_scrubber(&self) -> bool {
        let stopped = self.pools.iter().filter(|pool| pool.pause_scrubber()).count();
        stopped == self.pools.len()
    }

    /// As [`Pool::resume_scrubber`], of every shard.
    pub fn resume_scrubber(&self) {
        self.pools.iter().for_each(Pool::resume_scrubber);
    }

    /// The figures of all shards together.
    ///
    /// # Errors
    /// As [`Pool::stats`].
    pub fn stats(&self) -> Result<Stats, PoolError> {
        let mut all = Stats::default();
        for pool in &self.pools {
            all.add(&pool.stats()?);
        }
        Ok(all)
    }
}
