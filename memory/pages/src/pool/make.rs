//! Making a pool.

use super::{FAULT_AROUND, Handle, Pool};
use crate::buddy::{Frame, State};
use crate::config::{Builder, EngineChoice, PageSize};
use crate::engine::{Engine, Method, Range};
use crate::error::{Note, PoolError};
use crate::fork;
use crate::inherited::Memory;
use crate::inner::{self, Inner, Places, Settings, now};
use crate::layers::Control;
use crate::lease::{self, Lease};
use crate::lock::Turn;
use crate::os::{self, Mapping};
use crate::slots;
use std::boxed::Box;
use std::string::{String, ToString};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::vec::Vec;

/// An allocator's pool begins with so many huge pages' worth of small ones:
/// where one more huge page would be more than a quarter of what is there.
const SMALL: usize = 4;

impl Builder {
    /// Makes the pool.
    ///
    /// # Errors
    /// [`PoolError::Setting`], [`PoolError::OverMemory`], [`PoolError::System`]. If the pool works
    /// without something that the system refused, that is a [`Note`], not an error.
    pub fn build(self) -> Result<Pool, PoolError> {
        self.check()?;
        Pool::make(self)
    }
}

/// Bytes from which on a device zeroes at its full rate, with one wait.
const LEAST_BATCH: usize = 16 << 20;

/// The device's engine, or why there is none.
fn device() -> Result<Box<dyn Engine>, String> {
    #[cfg(feature = "cuda")]
    let made = match crate::engine::CudaEngine::new() {
        Ok(engine) => Ok(Box::new(engine) as Box<dyn Engine>),
        Err(error) => Err(error.to_string()),
    };
    #[cfg(not(feature = "cuda"))]
    let made = Err("built without the feature `cuda`".to_string());
    made
}

/// The device's engine, told of the pool's memory; the CPU if there is none.
fn adopted(inner: &Inner, made: Result<Box<dyn Engine>, String>) -> EngineChoice {
    let length = (inner.chunks.capacity as usize) << inner.chunks.frame_shift;
    let memory = Range { start: inner.base(), length };
    let told = made.and_then(|mut engine| {
        // SAFETY: nothing of it is returned (`Memory::Lent`), and the scrubber, which has the engine, ends
        // before the memory goes. Of an engine that is forgotten the driver holds the pages.
        let adopted = unsafe { engine.adopt(memory) };
        adopted.map(|()| engine).map_err(|error| error.to_string())
    });
    match told {
        Ok(engine) => EngineChoice::Custom(engine),
        Err(why) => {
            inner.note(Note::NoDevice(why));
            EngineChoice::CpuAround
        }
    }
}

impl Pool {
    fn make(mut builder: Builder) -> Result<Pool, PoolError> {
        fork::register();
        let page = os::page_size();
        let mut notes = Vec::new();
        let mut capacity = builder.capacity.next_multiple_of(page);
        let mut trim_unit = page;
        let mut data = None;
        if let Some(socket) = &builder.leased {
            let within = lease::patience(capacity);
            let leased = Lease::take_within(socket, capacity, within);
            let leased = leased.map_err(|error| error.to_string());
            match leased.and_then(|lease| lease.map().map_err(|errno| errno.to_string())) {
                Ok(mapping) => {
                    capacity = mapping.length();
                    builder.initial = capacity;
                    data = Some(mapping);
                }
                Err(why) => notes.push(Note::NoLease(why)),
            }
        }
        let leased = data.is_some();
        if builder.page_size == PageSize::Hugetlb && !leased {
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
                Mapping::reserved(capacity, align).map_err(PoolError::system("mapping the pool"))?
            }
        };
        let huge = builder.page_size != PageSize::Base || leased;
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
        // Under a limit on locked memory blocks come first.
        let metadata = match data.is_unlocked() {
            true => Mapping::unlocked(bytes, page),
            false => Mapping::private(bytes, page),
        };
        let metadata = metadata.map_err(PoolError::system("mapping the bookkeeping"))?;
        metadata.leave_out_of_dumps();
        let control = metadata.start().cast::<Control>();
        // SAFETY: the mapping is new, zero, page-aligned and long enough.
        unsafe { inner::init_control(control, builder.max_order) };
        let places = Places {
            control,
            frames: metadata.start().wrapping_add(inner::control_bytes()).cast::<Frame>(),
            base: data.start(),
            capacity: u32::try_from(frames).map_err(|_| too_many())?,
            memory: match (explicit, leased) {
                (_, true) => Memory::Lent,
                (true, false) => Memory::Hugetlb,
                (false, false) => Memory::Private,
            },
            mappings: std::vec![data, metadata],
        };
        Pool::finish(builder, places, (huge, trim_unit), notes)
    }

    fn finish(
        mut builder: Builder,
        mut places: Places,
        (huge, trim_unit): (bool, usize),
        notes: Vec<Note>,
    ) -> Result<Pool, PoolError> {
        // Without a scrubber nobody asks it for anything.
        let wanted = builder.scrub.enabled && matches!(builder.engine, EngineChoice::Cuda);
        let device = wanted.then(device);
        let explicit = places.memory != Memory::Private;
        if let Some(Ok(_)) = device {
            places.memory = Memory::Lent;
            builder.initial = places.capacity as usize * os::page_size();
            builder.scrub.chunk = builder.scrub.chunk.max(LEAST_BATCH);
        }
        let lent = places.memory == Memory::Lent;
        let data = &places.mappings[0];
        if places.memory != Memory::Private {
            let kept = data.keep_from_children();
            kept.map_err(PoolError::system("keeping the pool's memory from forked children"))?;
        }
        let method = match &builder.engine {
            EngineChoice::CpuAround | EngineChoice::Custom(_) | EngineChoice::Cuda => {
                Method::Around
            }
            EngineChoice::CpuThrough => Method::Through,
            // Pages of a file are not dropped by a mapping.
            EngineChoice::System if lent => Method::Around,
            EngineChoice::System => Method::System,
        };
        let (page, stands_in) = (os::page_size(), !builder.waits);
        let small = if stands_in && huge && trim_unit == page {
            u32::try_from(SMALL * os::huge_page_size() / page).unwrap_or(0)
        } else {
            0
        };
        let settings = Settings {
            growth: builder.growth,
            cache_blocks: builder.cache_blocks,
            verify: builder.verify,
            scrub_start: builder.scrub.start,
            max_order: builder.max_order,
            fault_around: match (stands_in, huge) {
                (true, true) if os::gives_huge_pages() => os::huge_page_size(),
                // Touched pages become resident, and nothing with them.
                (true, _) => page,
                (false, true) => os::huge_page_size(),
                (false, false) => FAULT_AROUND,
            },
            trim_unit,
            method,
            waits: builder.waits,
            ahead: builder.grow_ahead,
            locks: data.is_unlocked(),
            closes: !explicit,
            numa_node: builder.numa_node,
            small,
            fault_on_touch: stands_in && trim_unit == page && !lent,
            huge_order: if huge {
                (os::huge_page_size() / os::page_size()).max(1).ilog2()
            } else {
                0
            },
        };
        let inner = Inner::new(places, settings, notes, slots::slot());
        Pool::prefault(&inner, builder.initial, builder.prefault_threads)?;
        if let Some(made) = device {
            builder.engine = adopted(&inner, made);
        }
        let pool = Pool {
            inner: Arc::clone(&inner),
            handle: Arc::new(Handle {
                turn: Turn::default(),
                scrubber: AtomicPtr::default(),
                started: AtomicU32::new(0),
                scrub: builder.scrub.clone(),
                scrub_later: builder.scrub_later && builder.scrub.enabled,
                give_back: builder.give_back.filter(|_| !lent),
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
        let frames =
            (bytes.div_ceil(1 << inner.chunks.frame_shift)).min(inner.chunks.capacity as usize);
        let share = frames.div_ceil(threads);
        let opened = inner.open(0, frames as u32);
        opened.map_err(PoolError::system("making the pool's first memory"))?;
        let populate = |thread: usize| {
            let first = (thread * share).min(frames);
            let count = share.min(frames - first);
            if count == 0 {
                return Ok(());
            }
            let start = inner.address(first as u32);
            // SAFETY: inside the mapping, and not in use by anybody yet.
            unsafe { os::populate(start, count << inner.chunks.frame_shift) }
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
                    // Without a thread, or if it failed, this one does the work.
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
            let shift = inner.chunks.frame_shift;
            inner.note(Note::Prefault { asked: frames << shift, got: there << shift });
        }
        Ok(())
    }
}
