//! Making a pool, private or shared, and attaching to a shared one.

use super::{FAULT_AROUND, Handle, Pool};
use crate::buddy::{Frame, State};
use crate::config::{Builder, EngineChoice, PageSize};
use crate::engine::Method;
use crate::error::{Note, PoolError};
use crate::fork::Turn;
use crate::inner::{self, Control, Inner, Places, Settings, now};
use crate::os::{self, Backing, Mapping};
use crate::shared;
use rustix::fd::{AsFd, OwnedFd};
use std::string::ToString;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::vec::Vec;

/// A pool that stands in for a program's allocator begins with so many huge pages' worth of small ones:
/// where one more huge page would be more than a quarter of what is there.
const SMALL: usize = 4;

/// In a control group with a limit the system may take what is free, except for this part of the pool
/// or of the limit, which is more: what a program with the pool needs more than without it.
const KEPT: u64 = 16;
/// And for so many bytes, so that whatever is freed lazily together is not too little.
const KEPT_LEAST: usize = 4 << 20;

impl Pool {
    pub(crate) fn make(builder: Builder) -> Result<Pool, PoolError> {
        let page = os::page_size();
        let mut notes = Vec::new();
        let mut capacity = builder.capacity.next_multiple_of(page);
        let mut trim_unit = page;
        let mut data = None;
        if builder.pages == PageSize::Hugetlb {
            let size = os::hugetlb_size();
            let rounded = capacity.next_multiple_of(size);
            match Mapping::hugetlb(rounded) {
                Ok(mapping) => {
                    data = Some(mapping);
                    (capacity, trim_unit) = (rounded, size);
                }
                Err(errno) => notes.push(Note::NoHugetlb(errno.to_string())),
            }
        }
        let explicit = data.is_some();
        let data = match data {
            Some(data) => data,
            None => {
                let align = os::huge_page_size().max(page);
                Mapping::private(capacity, align).map_err(PoolError::system("mapping the pool"))?
            }
        };
        let huge = builder.pages != PageSize::Base;
        if !explicit {
            let small = if huge && !builder.waits { SMALL * os::huge_page_size() } else { 0 };
            let advised = data.advise_huge(huge).and_then(|()| match small {
                0 => Ok(()),
                bytes => data.advise_small(bytes),
            });
            if let Err(errno) = advised {
                notes.push(Note::NoHugeAdvice(errno.to_string()));
            }
        }
        if let Some(node) = builder.numa_node
            && let Err(errno) = data.bind(node)
        {
            notes.push(Note::NoNuma { node, why: errno.to_string() });
        }
        let frames = capacity / page;
        let too_many = || PoolError::OverMemory { asked: capacity, memory: os::memory() };
        let bytes = inner::metadata_bytes(frames).ok_or_else(too_many)?;
        let metadata =
            Mapping::private(bytes, page).map_err(PoolError::system("mapping the bookkeeping"))?;
        let control = metadata.start().cast::<Control>();
        // SAFETY: the mapping is new, zero, page-aligned and long enough.
        unsafe { inner::init_control(control, builder.max_order, Backing::Private) };
        let places = Places {
            control,
            frames: metadata.start().wrapping_add(inner::control_bytes()).cast::<Frame>(),
            base: data.start(),
            capacity: u32::try_from(frames).map_err(|_| too_many())?,
            mappings: std::vec![data, metadata],
            file: None,
        };
        Pool::finish(builder, places, Backing::Private, (huge, trim_unit), notes)
    }

    pub(crate) fn make_shared(builder: Builder) -> Result<Pool, PoolError> {
        let page = os::page_size();
        let frames = builder.capacity.div_ceil(page);
        let too_many = || PoolError::OverMemory { asked: builder.capacity, memory: os::memory() };
        let metadata = inner::metadata_bytes(frames).ok_or_else(too_many)?;
        let data = metadata.next_multiple_of(os::huge_page_size().max(page));
        let length = data.checked_add(frames * page).ok_or_else(too_many)?;
        let file = os::shared_file(length).map_err(PoolError::system("making a shared file"))?;
        let mapping =
            Mapping::shared(&file, length).map_err(PoolError::system("mapping the shared file"))?;
        let control = mapping.start().cast::<Control>();
        // SAFETY: the file is new and zero, its mapping page-aligned and long enough.
        unsafe { inner::init_control(control, builder.max_order, Backing::Shared) };
        // SAFETY: initialised above, except for what follows, all of it atomic.
        let shown = unsafe { &*control };
        let identity = &shown.identity;
        let huge = builder.pages != PageSize::Base;
        for (field, value) in [
            (&identity.magic, shared::MAGIC),
            (&identity.control, size_of::<Control>() as u64),
            (&identity.page_size, page as u64),
            (&identity.frames, frames as u64),
            (&identity.data, data as u64),
            (&identity.length, length as u64),
            (&identity.max_order, u64::from(builder.max_order)),
            (&identity.huge, u64::from(huge)),
        ] {
            field.store(value, Ordering::Relaxed);
        }
        shown.ready.store(1, Ordering::Release);
        let places = Pool::shared_places(mapping, frames, data, file)?;
        Pool::finish(builder, places, Backing::Shared, (huge, page), Vec::new())
    }

    fn shared_places(
        mapping: Mapping,
        frames: usize,
        data: usize,
        file: OwnedFd,
    ) -> Result<Places, PoolError> {
        let start = mapping.start();
        Ok(Places {
            control: start.cast::<Control>(),
            frames: start.wrapping_add(inner::control_bytes()).cast::<Frame>(),
            base: start.wrapping_add(data),
            capacity: u32::try_from(frames).map_err(|_| PoolError::NotAPool {
                what: "number of pages",
                found: frames as u64,
                accepted: u64::from(u32::MAX),
            })?,
            mappings: std::vec![mapping],
            file: Some(file),
        })
    }

    /// Maps a pool that another process made, from its file. This process runs no scrubber: the one
    /// of another process, or [`attach_with`](Pool::attach_with), serves all.
    ///
    /// The processes that share a pool must trust each other: each can write to all of it.
    ///
    /// # Errors
    /// [`PoolError::NotAPool`] for any other file, one of another version or page size included;
    /// [`PoolError::System`]; [`PoolError::TooManyProcesses`].
    pub fn attach(file: impl AsFd) -> Result<Pool, PoolError> {
        let mut builder = Pool::builder();
        builder.scrub.enabled = false;
        Pool::attach_with(file, builder)
    }

    /// [`attach`](Pool::attach) with this process's own settings: caches, verifying, growth, the
    /// scrubber and its engine. What the pool's maker decided is not looked at.
    ///
    /// # Errors
    /// As [`attach`](Pool::attach).
    pub fn attach_with(file: impl AsFd, mut builder: Builder) -> Result<Pool, PoolError> {
        let duplicate = file
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| PoolError::System { what: "duplicating the shared file", source })?;
        let status = rustix::fs::fstat(&duplicate);
        let status = status.map_err(PoolError::system("looking at the shared file"))?;
        let length = u64::try_from(status.st_size).unwrap_or(0);
        let least = inner::control_bytes() as u64;
        let refuse = |what, found, accepted| Err(PoolError::NotAPool { what, found, accepted });
        if length < least {
            return refuse("bytes of the file", length, least);
        }
        let seals = rustix::fs::fcntl_get_seals(&duplicate);
        let shrink = rustix::fs::SealFlags::SHRINK;
        if !seals.is_ok_and(|seals| seals.contains(shrink)) {
            // Without the seal the file could be cut short under its users.
            return refuse("seals of the file", 0, u64::from(shrink.bits()));
        }
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let mapping = Mapping::shared(&duplicate, bytes);
        let mapping = mapping.map_err(PoolError::system("mapping the shared file"))?;
        // SAFETY: mapped, aligned to a page, long enough; identity and `ready` are atomics, and
        // nothing else is looked at before they are found right.
        let control = unsafe { &*mapping.start().cast::<Control>() };
        let identity = &control.identity;
        let get = |field: &std::sync::atomic::AtomicU64| field.load(Ordering::Relaxed);
        let (frames, data) = (get(&identity.frames), get(&identity.data));
        let needed = inner::metadata_bytes(usize::try_from(frames).unwrap_or(usize::MAX));
        for (what, found, accepted) in [
            ("first bytes", get(&identity.magic), shared::MAGIC),
            ("version", get(&identity.control), size_of::<Control>() as u64),
            ("page size", get(&identity.page_size), os::page_size() as u64),
            ("length", get(&identity.length), length),
            ("ready", u64::from(control.ready.load(Ordering::Acquire)), 1),
        ] {
            if found != accepted {
                return refuse(what, found, accepted);
            }
        }
        let end = frames.checked_mul(os::page_size() as u64).and_then(|all| all.checked_add(data));
        if end != Some(length) || needed.is_none_or(|needed| data < needed as u64) {
            return refuse("pages and length", frames, length);
        }
        let max_order = get(&identity.max_order);
        if max_order > u64::from(crate::buddy::MAX_ORDER) {
            return refuse("max_order", max_order, u64::from(crate::buddy::MAX_ORDER));
        }
        builder.capacity = usize::try_from(length - data).unwrap_or(usize::MAX);
        builder.allow_over_memory = true;
        builder.check()?;
        builder.max_order = max_order as u32;
        builder.initial = 0;
        let huge = get(&identity.huge) != 0;
        let places = Pool::shared_places(mapping, frames as usize, data as usize, duplicate)?;
        let page = os::page_size();
        Pool::finish(builder, places, Backing::Shared, (huge, page), Vec::new())
    }

    fn finish(
        builder: Builder,
        places: Places,
        backing: Backing,
        (huge, trim_unit): (bool, usize),
        notes: Vec<Note>,
    ) -> Result<Pool, PoolError> {
        let method = match &builder.engine {
            EngineChoice::CpuAround | EngineChoice::Custom(_) => Method::Around,
            EngineChoice::CpuThrough => Method::Through,
            EngineChoice::System => Method::System(backing),
        };
        let (page, stands_in) = (os::page_size(), !builder.waits);
        // A cache could not say of its pages that they stay.
        let lazily = builder.give_back.is_some()
            && builder.cache_blocks == 0
            && backing == Backing::Private
            && trim_unit == page;
        let limit = if lazily { os::limit() } else { None };
        let small = if stands_in && huge && trim_unit == page {
            u32::try_from(SMALL * os::huge_page_size() / page).unwrap_or(0)
        } else {
            0
        };
        let limited = limit.map_or(0, |bytes| (bytes / page) as u64);
        let keeps = u64::from(places.capacity).max(limited) / KEPT;
        let keeps = keeps.max((KEPT_LEAST / page) as u64);
        // To free small pages lazily, and to use them again, costs a hundred times what it costs with huge
        // pages: they are kept where that leaves enough for others.
        let lazy_from = if u64::from(small) <= keeps / 2 { small } else { 0 };
        let settings = Settings {
            growth: builder.growth,
            cache_blocks: builder.cache_blocks,
            verify: builder.verify,
            scrub_start: builder.scrub.start,
            max_order: builder.max_order,
            fault_around: if huge { os::huge_page_size() } else { FAULT_AROUND },
            trim_unit,
            method,
            waits: builder.waits,
            ahead: builder.ahead,
            keeps: limit.map_or(u64::MAX, |_| keeps - u64::from(lazy_from)),
            lazy_from,
            small,
            fault_on_touch: stands_in && huge && trim_unit == page && os::gives_huge_pages(),
            huge_order: if huge {
                (os::huge_page_size() / os::page_size()).max(1).ilog2()
            } else {
                0
            },
        };
        let inner = Inner::new(places, backing, settings, notes);
        if backing == Backing::Shared {
            inner.enter()?;
        }
        Pool::prefault(&inner, builder.initial, builder.prefault_threads)?;
        let pool = Pool {
            inner: Arc::clone(&inner),
            handle: Arc::new(Handle {
                turn: Turn::default(),
                scrubber: AtomicPtr::default(),
                started: AtomicU32::new(0),
                scrub: builder.scrub.clone(),
                scrub_later: builder.scrub_later && builder.scrub.enabled,
                give_back: builder.give_back,
                inner,
            }),
        };
        if builder.scrub.enabled && !builder.scrub_later {
            let _turn = pool.handle.turn.take();
            pool.handle.start(builder.engine, builder.engine_deadline, builder.engine_strikes);
        }
        Ok(pool)
    }

    /// Makes the first bytes resident and takes them into use.
    fn prefault(inner: &Arc<Inner>, bytes: usize, threads: usize) -> Result<(), PoolError> {
        if bytes == 0 {
            return Ok(());
        }
        let frames = (bytes.div_ceil(1 << inner.frame_shift)).min(inner.capacity as usize);
        let share = frames.div_ceil(threads);
        let populate = |thread: usize| {
            let first = (thread * share).min(frames);
            let count = share.min(frames - first);
            if count == 0 {
                return Ok(());
            }
            let start = inner.address(first as u32);
            // SAFETY: inside the mapping, and not in use by anybody yet.
            unsafe { os::populate(start, count << inner.frame_shift) }
        };
        let in_parts = || {
            std::thread::scope(|scope| {
                let populate = &populate;
                let helpers: Vec<_> = (1..threads)
                    .map(|thread| {
                        let helper = std::thread::Builder::new();
                        (thread, helper.spawn_scoped(scope, move || populate(thread)))
                    })
                    .collect();
                let mut results = std::vec![populate(0)];
                for (thread, helper) in helpers {
                    // Where no thread is to be had, or it failed, this one does the work.
                    let done = helper.ok().and_then(|helper| helper.join().ok());
                    results.push(done.unwrap_or_else(|| populate(thread)));
                }
                results
            })
        };
        let results: Vec<_> = cachewise::uncancelled(in_parts);
        let good = results.iter().take_while(|result| result.is_ok()).count();
        let there = (good * share).min(frames);
        let mut guard = inner.lock()?;
        guard.buddy().extend(there as u32, State::ZeroResident, now());
        drop(guard);
        if there < frames {
            let shift = inner.frame_shift;
            inner.note(Note::Prefault { asked: frames << shift, got: there << shift });
        }
        Ok(())
    }
}
