//! Making a pool: its memory, then its bookkeeping, then what runs on it.

use super::{Handle, Pool};
use crate::buddy::{Frame, State};
use crate::config::{Builder, EngineChoice, PageSize};
use crate::engine::{Engine, Method};
use crate::error::{Note, PoolError};
use crate::inner::cache;
use crate::inner::{Inner, Kind, Places, Settings, now};
use crate::lease::{self, Lease};
use crate::os::{self, Mapping};
use crate::scrubber::Scrubber;
use std::boxed::Box;
use std::string::{String, ToString};
use std::sync::{Arc, Mutex};
use std::vec::Vec;

/// Bytes faulted in together where pages are small: few enough that a hand-out stays short.
const FAULT_AROUND: usize = 64 << 10;
/// Bytes from which on a device zeroes at its full rate, with one wait.
const LEAST_BATCH: usize = 16 << 20;

impl Builder {
    /// Makes the pool.
    ///
    /// # Errors
    /// [`PoolError::Setting`], [`PoolError::OverMemory`], [`PoolError::System`]. If the pool works
    /// without something that the system refused, that is a [`Note`], not an error.
    pub fn build(mut self) -> Result<Pool, PoolError> {
        self.check()?;
        os::count_forks();
        cache::ending::prepare();
        let mut notes = Vec::new();
        let memory = Memory::map(&self, &mut notes)?;
        // Without a scrubber nobody asks it for anything.
        let wanted = self.scrub.enabled && matches!(self.engine, EngineChoice::Cuda);
        let device = wanted.then(device);
        let is_lent = memory.kind == Kind::Lent || matches!(device, Some(Ok(_)));
        let kind = if is_lent { Kind::Lent } else { memory.kind };
        if kind != Kind::Private {
            let kept = memory.mapping.keep_from_children();
            kept.map_err(PoolError::system("keeping the pool's memory from forked children"))?;
        }
        if kind != memory.kind && memory.kind == Kind::Private {
            // SAFETY: the whole mapping, which nobody uses yet.
            let opened = unsafe { os::open(memory.mapping.start(), memory.mapping.length()) };
            opened.map_err(PoolError::system("making the pool's memory"))?;
        }
        let settings = Settings {
            verify: self.verify,
            scrub_start: self.scrub.start,
            max_order: self.max_order,
            fault_around: if memory.huge { os::huge_page_size() } else { FAULT_AROUND },
            trim_unit: memory.trim_unit,
            method: match &self.engine {
                EngineChoice::CpuThrough => Method::Through,
                // Pages of a file are not dropped by a mapping.
                EngineChoice::System if kind != Kind::Lent => Method::System,
                _ => Method::Around,
            },
            kind,
            locks: memory.mapping.is_unlocked(),
        };
        let capacity = memory.mapping.length();
        let places = places(memory.mapping)?;
        let inner = Arc::new(Inner::new(places, settings, self.cache_blocks, notes));
        inner.prefault(if kind == Kind::Lent { capacity } else { self.initial })?;
        let mut engine = self.engine;
        if let Some(made) = device {
            self.scrub.chunk = self.scrub.chunk.max(LEAST_BATCH);
            engine = adopted(&inner, made);
        }
        let mut scrubber = None;
        if self.scrub.enabled {
            let rules = (self.scrub, self.give_back);
            match Scrubber::start(&inner, rules, (engine, self.engine_deadline)) {
                Ok(started) => scrubber = Some(started),
                Err(error) => inner.note(Note::NoScrubber(error.to_string())),
            }
        }
        let handle = Handle { scrubber: Mutex::new(scrubber), inner: Arc::clone(&inner) };
        Ok(Pool { inner, handle: Arc::new(handle) })
    }
}

/// The pool's memory, or the address space for it.
struct Memory {
    mapping: Mapping,
    kind: Kind,
    /// True if huge pages were asked for.
    huge: bool,
    /// Bytes that can only be returned to the system together.
    trim_unit: usize,
}

impl Memory {
    fn map(builder: &Builder, notes: &mut Vec<Note>) -> Result<Memory, PoolError> {
        let page = os::page_size();
        let capacity = builder.capacity.next_multiple_of(page);
        let lent = builder.leased.as_deref().map(|socket| {
            let lease = Lease::take_within(socket, capacity, lease::patience(capacity));
            let lease = lease.map_err(|error| error.to_string())?;
            lease.map().map_err(|errno| errno.to_string())
        });
        match lent {
            Some(Ok(mapping)) => {
                return Ok(Memory { mapping, kind: Kind::Lent, huge: true, trim_unit: page });
            }
            Some(Err(why)) => notes.push(Note::NoLease(why)),
            None => {}
        }
        if builder.page_size == PageSize::Hugetlb {
            let unit = os::hugetlb_size();
            match Mapping::hugetlb(capacity.next_multiple_of(unit), unit) {
                Ok(mapping) => {
                    return Ok(Memory {
                        mapping,
                        kind: Kind::Hugetlb,
                        huge: true,
                        trim_unit: unit,
                    });
                }
                Err(errno) => notes.push(Note::NoHugetlb(os::refused(errno))),
            }
        }
        let align = os::huge_page_size().max(page);
        let mapping =
            Mapping::reserved(capacity, align).map_err(PoolError::system("mapping the pool"))?;
        let huge = builder.page_size != PageSize::Base;
        if let Err(errno) = mapping.advise_huge(huge) {
            notes.push(Note::NoHugeAdvice(errno.to_string()));
        }
        Ok(Memory { mapping, kind: Kind::Private, huge, trim_unit: page })
    }
}

/// The pool's memory with its bookkeeping.
fn places(data: Mapping) -> Result<Places, PoolError> {
    let page = os::page_size();
    let frames = data.length() / page;
    let too_many = || PoolError::OverMemory { asked: data.length(), memory: os::memory() };
    let bytes = frames.checked_mul(size_of::<Frame>()).ok_or_else(too_many)?;
    let capacity = u32::try_from(frames).map_err(|_| too_many())?;
    // Under a limit on locked memory blocks come first.
    let metadata = match data.is_unlocked() {
        true => Mapping::unlocked(bytes, page),
        false => Mapping::private(bytes, page),
    };
    let metadata = metadata.map_err(PoolError::system("mapping the bookkeeping"))?;
    metadata.leave_out_of_dumps();
    Ok(Places {
        frames: metadata.start().cast(),
        base: data.start(),
        capacity,
        mappings: std::vec![data, metadata],
    })
}

impl Inner {
    /// Makes the first bytes resident and takes them into use.
    fn prefault(&self, bytes: usize) -> Result<(), PoolError> {
        let asked = self.length(self.capacity).min(bytes.next_multiple_of(1 << self.frame_shift));
        let frames = (asked >> self.frame_shift) as u32;
        let range = self.range(0, frames);
        let opened = self.open(0, frames);
        opened.map_err(PoolError::system("making the pool's first memory"))?;
        // SAFETY: inside the mapping, and not in use by anybody yet.
        let populated = unsafe { os::populate(range.start, range.length) };
        let state = match populated {
            Ok(()) => State::ZeroResident,
            Err(_) => State::ZeroAbsent,
        };
        self.lock()?.buddy().extend(frames, state, now());
        if let Err(errno) = populated {
            self.note(Note::Prefault { asked, why: os::refused(errno) });
        }
        Ok(())
    }
}

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
    let told = made.and_then(|mut engine| {
        // SAFETY: nothing of it is returned (`Kind::Lent`), and the scrubber, which has the engine, ends
        // before the memory goes. Of an engine that is forgotten the driver holds the pages.
        let adopted = unsafe { engine.adopt(inner.range(0, inner.capacity)) };
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
