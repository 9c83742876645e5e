//! A pool's settings: one builder, each setting with its default and the values it accepts.

use crate::buddy::MAX_ORDER;
use crate::engine::Engine;
use crate::error::PoolError;
use crate::inner::magazine::CACHE_BLOCKS;
use crate::os;
use std::boxed::Box;
use std::format;
use std::string::ToString;
use std::time::Duration;

/// The pages that a pool asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// Base pages only: what is returned is returned page by page.
    Base,
    /// Transparent huge pages, where the system gives them.
    #[default]
    Transparent,
    /// Explicit huge pages of the default size; if they are refused, transparent ones, and a note.
    /// Returned to the system only whole.
    Hugetlb,
}

/// Checking of zeroed blocks when they are allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing.
    #[default]
    Off,
    /// Every n-th is read; one that is not zero is quarantined and the caller gets
    /// [`PoolError::NotZero`].
    Report(u32),
    /// Every n-th is read; if one is not zero, the process prints a message and aborts: something
    /// wrote to memory that it does not own, and no later result can be trusted.
    Abort(u32),
}

/// The engine that zeroes in the background.
#[derive(Debug, Default)]
pub enum EngineChoice {
    /// The CPU, with the kernel that the profile has for data that is not read again.
    #[default]
    CpuAround,
    /// The CPU, with the kernel that the profile has for data that is read soon.
    CpuThrough,
    /// The system: pages are dropped and populated anew.
    System,
    /// A GPU's copy engine (feature `cuda`). All of the pool's capacity is made resident at once and registered
    /// with the driver, which is loaded at run time; nothing of it goes back before the pool does. It has to prove what it
    /// does, as your own has to. The load does not hold it back, since it uses no CPU. Without a device: the CPU, and a
    /// [`Note`](crate::Note).
    Cuda,
    /// Your own engine, which has to prove what it does ([`Engine`]).
    Custom(Box<dyn Engine>),
}

/// The scrubber's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Scrub {
    /// Switches it on. On by default.
    pub enabled: bool,
    /// The order of a free dirty block that wakes it (seed 003: `scrub_start`). 4 by default:
    /// single pages that nothing merges with are left to be zeroed at hand-out, in the cache.
    pub start: u32,
    /// The lowest order that it zeroes once awake (seed 003: `scrub_stop`). 0 by default.
    pub stop: u32,
    /// The machine's load average above which it rests (seed 003: `scrub_load`): it then takes
    /// [`FLOOR`](crate::FLOOR) of a CPU at most. Infinity, the default, is no such limit. It does so in any
    /// case while threads wait for the CPUs of this process.
    pub load: f64,
    /// Its share of one CPU at most, 0 to 1. 0.5 by default.
    pub cpu_share: f64,
    /// A block is zeroed after it was idle for so long: a block that is soon used again is better
    /// zeroed in the cache when it is allocated. 50 ms by default.
    pub min_idle: Duration,
    /// Bytes zeroed between two checks of load, limits and requests to stop. 512 KiB by default.
    pub chunk: usize,
    /// Bytes zeroed without a request for zeroed memory after which it rests until the next
    /// such request. 1 GiB by default.
    pub unused_limit: u64,
}

impl Default for Scrub {
    fn default() -> Scrub {
        Scrub {
            enabled: true,
            start: 4,
            stop: 0,
            load: f64::INFINITY,
            cpu_share: 0.5,
            min_idle: Duration::from_millis(50),
            chunk: 512 << 10,
            unused_limit: 1 << 30,
        }
    }
}

/// A builder whose settings have a default each. The first have a method that takes the new value; the methods of the
/// last differ, and are written out below.
macro_rules! builder {
    ($($(#[$about:meta])+ $field:ident: $type:ty = $default:expr;)+
     own methods: $($other:ident: $kind:ty = $otherwise:expr;)+) => {
        /// The settings of a new pool.
        #[derive(Debug)]
        #[must_use]
        pub struct Builder {
            $(pub(crate) $field: $type,)+
            $(pub(crate) $other: $kind,)+
        }

        impl Default for Builder {
            fn default() -> Builder {
                Builder { $($field: $default,)+ $($other: $otherwise,)+ }
            }
        }

        impl Builder {
            $($(#[$about])+ pub fn $field(mut self, $field: $type) -> Builder {
                self.$field = $field;
                self
            })+
        }
    };
}

builder! {
    /// Bytes at most, rounded up to whole pages. 256 MiB by default. Address space only: memory is
    /// taken as it is needed.
    capacity: usize = 256 << 20;
    /// The highest order of a block, [`MAX_ORDER`] at most and by default.
    max_order: u32 = MAX_ORDER;
    /// Bytes made resident when the pool is made. None by default.
    initial: usize = 0;
    /// The pages that are asked for. Transparent huge pages by default.
    page_size: PageSize = PageSize::default();
    /// Single pages in a thread's stack, one of zeroed and one of dirty ones; of larger orders up to 32 KiB as many
    /// bytes. 32 at most and by default; 0 is no caches. Where the pool is small or threads are many it is less: all
    /// caches together hold a quarter of the pool at most.
    cache_blocks: usize = CACHE_BLOCKS;
    /// Reading of zeroed blocks at hand-out. Off by default.
    verify: Verify = Verify::Off;
    /// The scrubber's settings.
    scrub: Scrub = Scrub::default();
    /// The engine that zeroes in the background. The CPU with non-temporal stores by default.
    engine: EngineChoice = EngineChoice::default();
    /// Time that an engine of your own may take for a batch. 1 s by default.
    engine_deadline: Duration = Duration::from_secs(1);
    own methods:
    allow_over_memory: bool = false;
    give_back: Option<Duration> = None;
    leased: Option<std::path::PathBuf> = None;
}

impl Builder {
    /// Accepts a capacity above the memory this process may use: for pools that will be sparse.
    pub fn allow_over_memory(mut self) -> Builder {
        self.allow_over_memory = true;
        self
    }

    /// Lets free memory go back to the system by itself once it was idle for so long; the scrubber's thread does it. By
    /// default it stays until [`trim`](crate::Pool::trim).
    pub fn give_back(mut self, idle: Duration) -> Builder {
        self.give_back = Some(idle);
        self
    }

    /// Takes the whole capacity as a lease from the server at that socket (`cachewise scrubd`): resident and
    /// zero from the start. Nothing of it goes back before the pool does, and a forked child does not have it: it must
    /// not touch its blocks. If there is no lease, the pool is a private one, with a [`Note`](crate::Note).
    /// [`lease::default_socket`](crate::lease::default_socket) is where the server usually is.
    pub fn leased(mut self, socket: impl Into<std::path::PathBuf>) -> Builder {
        self.leased = Some(socket.into());
        self
    }

    pub(crate) fn check(&self) -> Result<(), PoolError> {
        let memory = os::memory();
        let whole = |setting, found: &dyn ToString, ok: bool, accepted: &str| {
            if ok {
                return Ok(());
            }
            let (found, accepted) = (found.to_string(), accepted.to_string());
            Err(PoolError::Setting { setting, found, accepted })
        };
        let most = (u32::MAX as usize / 4).saturating_mul(os::page_size());
        let fits = (1..=most).contains(&self.capacity);
        whole("capacity", &self.capacity, fits, &format!("1 to {most} bytes"))?;
        if self.capacity > memory && !self.allow_over_memory {
            return Err(PoolError::OverMemory { asked: self.capacity, memory });
        }
        let orders = format!("0 to {MAX_ORDER}");
        whole("max_order", &self.max_order, self.max_order <= MAX_ORDER, &orders)?;
        let inside = format!("0 to the capacity, {} bytes", self.capacity);
        whole("initial", &self.initial, self.initial <= self.capacity, &inside)?;
        let blocks = self.cache_blocks;
        let most = format!("0 to {}", CACHE_BLOCKS);
        whole("cache_blocks", &blocks, blocks <= CACHE_BLOCKS, &most)?;
        if let Verify::Report(every) | Verify::Abort(every) = self.verify {
            whole("verify: every n-th block", &every, every != 0, "1 and more")?;
        }
        let scrub = &self.scrub;
        whole("scrub.start", &scrub.start, scrub.start <= MAX_ORDER, &orders)?;
        whole("scrub.stop", &scrub.stop, scrub.stop <= scrub.start, "0 to scrub.start")?;
        let load_ok = scrub.load >= 0.0;
        whole("scrub.load", &scrub.load, load_ok, "0 and more")?;
        let share_ok = scrub.cpu_share > 0.0 && scrub.cpu_share <= 1.0;
        whole("scrub.cpu_share", &scrub.cpu_share, share_ok, "above 0, at most 1")?;
        let idle_ok = scrub.min_idle <= Duration::from_secs(24 * 3600);
        whole("scrub.min_idle", &scrub.min_idle.as_secs(), idle_ok, "at most a day")?;
        let chunk_ok = (4096..=1 << 30).contains(&scrub.chunk);
        whole("scrub.chunk", &scrub.chunk, chunk_ok, "4096 to 2^30 bytes")?;
        let idle = self.give_back.unwrap_or_default();
        let give_back_ok = idle <= Duration::from_secs(24 * 3600);
        whole("give_back", &idle.as_secs(), give_back_ok, "at most a day")
    }
}
