//! `struct cw_pool_config`: its layout, its versions, and what it means to the pool.

use crate::code::{Code, Refused};
use cachewise_pages::{Builder, EngineChoice, PageSize, Pool, Scrub, Verify};
use core::ffi::{CStr, c_char, c_uint};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

/// See `cachewise_pool.h`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Config {
    struct_size: usize,
    capacity: usize,
    max_order: c_uint,
    flags: c_uint,
    initial: usize,
    verify_every: c_uint,
    scrub_start: c_uint,
    scrub_stop: c_uint,
    scrub_load: f64,
    scrub_cpu_share: f64,
    scrub_min_idle_ms: usize,
    leased: *const c_char,
    give_back_ms: usize,
}

const NO_SCRUBBER: c_uint = 1;
const BASE_PAGES: c_uint = 2;
const HUGETLB: c_uint = 4;
const PREFAULT: c_uint = 8;
const VERIFY_ABORT: c_uint = 16;
const OVER_MEMORY: c_uint = 32;
const ENGINE_THROUGH: c_uint = 64;
const ENGINE_SYSTEM: c_uint = 128;
const ENGINE_CUDA: c_uint = 256;
const KNOWN: c_uint = 511;

/// Bytes of this version's, the first of its soname.
const OWN: usize = size_of::<Config>();
/// Bytes that it may grow by before its size is taken for a mistake.
const GROWTH: usize = 4096;

impl Default for Config {
    fn default() -> Config {
        let scrub = Scrub::default();
        Config {
            struct_size: OWN,
            capacity: 256 << 20,
            max_order: cachewise_pages::buddy::MAX_ORDER,
            flags: 0,
            initial: 0,
            verify_every: 0,
            scrub_start: scrub.start,
            scrub_stop: scrub.stop,
            scrub_load: scrub.load,
            scrub_cpu_share: scrub.cpu_share,
            scrub_min_idle_ms: scrub.min_idle.as_millis() as usize,
            leased: core::ptr::null(),
            give_back_ms: 0,
        }
    }
}

/// The caller's settings; the defaults where there are none.
///
/// # Safety
/// Null, or readable for the size it says; its string is null or ends in NUL.
pub(crate) unsafe fn read(config: *const Config) -> Result<Config, Refused> {
    if config.is_null() {
        return Ok(Config::default());
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { config.cast::<usize>().read() };
    let refused = || (Code::Version, format!("config.struct_size: expected {OWN}, found {size}"));
    if !(OWN..=OWN + GROWTH).contains(&size) {
        return Err(refused());
    }
    // A newer program's structure is longer. A program that sets what this library does not know
    // needs a newer library.
    let beyond = config.cast::<u8>().wrapping_add(OWN);
    // SAFETY: the caller's promise.
    let beyond = unsafe { std::slice::from_raw_parts(beyond, size.saturating_sub(OWN)) };
    if beyond.iter().any(|byte| *byte != 0) {
        return Err(refused());
    }
    // SAFETY: as long as this library's, by the caller's promise.
    Ok(unsafe { config.read() })
}

impl Config {
    /// The settings as the pool takes them.
    pub(crate) fn builder(&self) -> Result<Builder, Refused> {
        let has = |flag| self.flags & flag != 0;
        let refuse = |what: &str| Err((Code::Invalid, format!("config.{what}")));
        if self.flags & !KNOWN != 0 {
            return refuse(&format!("flags: expected bits of {KNOWN:#x}, found {:#x}", self.flags));
        }
        for (one, other, names) in [
            (BASE_PAGES, HUGETLB, "CW_POOL_BASE_PAGES and CW_POOL_HUGETLB"),
            (ENGINE_THROUGH, ENGINE_SYSTEM, "CW_POOL_ENGINE_THROUGH and CW_POOL_ENGINE_SYSTEM"),
            (ENGINE_THROUGH, ENGINE_CUDA, "CW_POOL_ENGINE_THROUGH and CW_POOL_ENGINE_CUDA"),
            (ENGINE_SYSTEM, ENGINE_CUDA, "CW_POOL_ENGINE_SYSTEM and CW_POOL_ENGINE_CUDA"),
        ] {
            if has(one) && has(other) {
                return refuse(&format!("flags: expected one of them, found {names}"));
            }
        }
        let pages = match () {
            () if has(BASE_PAGES) => PageSize::Base,
            () if has(HUGETLB) => PageSize::Hugetlb,
            () => PageSize::Transparent,
        };
        let engine = match () {
            () if has(ENGINE_THROUGH) => EngineChoice::CpuThrough,
            () if has(ENGINE_SYSTEM) => EngineChoice::System,
            () if has(ENGINE_CUDA) => EngineChoice::Cuda,
            () => EngineChoice::CpuAround,
        };
        let verify = match (self.verify_every, has(VERIFY_ABORT)) {
            (0, true) => {
                return refuse("verify_every: expected 1 and more (CW_POOL_VERIFY_ABORT), found 0");
            }
            (0, false) => Verify::Off,
            (every, true) => Verify::Abort(every),
            (every, false) => Verify::Report(every),
        };
        let scrub = Scrub {
            enabled: !has(NO_SCRUBBER),
            start: self.scrub_start,
            stop: self.scrub_stop,
            load: self.scrub_load,
            cpu_share: self.scrub_cpu_share,
            min_idle: Duration::from_millis(self.scrub_min_idle_ms as u64),
            ..Scrub::default()
        };
        let mut builder = Pool::builder()
            .capacity(self.capacity)
            .max_order(self.max_order)
            .initial(if has(PREFAULT) { self.capacity } else { self.initial })
            .page_size(pages)
            .engine(engine)
            .verify(verify)
            .scrub(scrub);
        if self.give_back_ms != 0 {
            builder = builder.give_back(Duration::from_millis(self.give_back_ms as u64));
        }
        if !self.leased.is_null() {
            // SAFETY: a string, as the header asks (`read`).
            let socket = unsafe { CStr::from_ptr(self.leased) };
            let socket = OsStr::from_bytes(socket.to_bytes());
            builder = builder.leased(match socket.is_empty() {
                true => cachewise_pages::lease::default_socket(),
                false => socket.into(),
            });
        }
        Ok(if has(OVER_MEMORY) { builder.allow_over_memory() } else { builder })
    }
}
