//! The sites' trials: one table for all, as the preload library has one, with names in place of
//! return addresses.
//!
//! A thread is told from others by where its `errno` lies, which needs no thread-local storage of
//! this library's own: that could run out where it is loaded late (`dlopen`), and does not exist in
//! every language that links it.

use super::name::{MAX_NAME, Name};
use super::state::{LARGE, SiteOutcome, SiteState};
use crate::cpu::Caches;
use crate::hooks::{self, OPERATIONS};
use crate::os::{self, files};
use crate::programs::{self, Modules, Problem, Refused, Store};
use cachewise_kernels as kernels;
use cachewise_learn::Way;
use cachewise_learn::gate::Epochs;
use cachewise_learn::section::Module;
use cachewise_learn::sites::{Clocks, Key, Operation, Place, Rules, SITES, Sites, State};
use cachewise_learn::trial::{Budget, Outcome, Why};
use core::cell::UnsafeCell;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Zero bytes until a site is called: pages that nobody touches.
static TABLE: Sites = Sites::new();
static NAMES: Names = Names { taken: AtomicUsize::new(0), all: [const { Kept::new() }; SITES] };
static THREADS: [Thread; THREAD_PLACES] = [const { Thread::new() }; THREAD_PLACES];

/// What this process does about its sites; made once, before the first is asked.
struct Learner {
    /// What learning may cost; `None` where decisions are followed.
    budget: Option<Budget>,
    /// Where they are kept, or why they cannot be.
    store: Result<Store, Problem>,
    epochs: Epochs,
    /// This process's, in a page that a forked child finds zeroed.
    here: &'static AtomicU32,
}

static LEARNER: AtomicPtr<Learner> = AtomicPtr::new(core::ptr::null_mut());

/// The process that makes it, meanwhile.
static CLAIM: AtomicU32 = AtomicU32::new(0);

/// `None` while another thread, or the code that a signal interrupted, makes it.
fn learner() -> Option<&'static Learner> {
    // SAFETY: null, or pages for the life of the process, complete before they were stored.
    unsafe { LEARNER.load(Ordering::Acquire).as_ref() }.or_else(|| {
        os::preserving_errno(make);
        // SAFETY: as above.
        unsafe { LEARNER.load(Ordering::Acquire).as_ref() }
    })
}

#[cold]
fn make() {
    // A child that was forked while another thread made it has a claim of its own.
    let me = os::process_id().max(1);
    let found = CLAIM.load(Ordering::Relaxed);
    let taken = CLAIM.compare_exchange(found, me, Ordering::Acquire, Ordering::Relaxed);
    if found == me || taken.is_err() {
        return;
    }
    // An earlier claim may have come to its end between the two loads above.
    if LEARNER.load(Ordering::Acquire).is_null() && prepare().is_none() {
        // Asked again at the next large call.
        CLAIM.store(0, Ordering::Release);
    }
}

fn prepare() -> Option<()> {
    if !os::has_environment() {
        return None;
    }
    let secure = os::is_secure();
    let variable = |name| if secure { None } else { os::variable(name) };
    let budget = match variable(c"CACHEWISE_LEARN").map(|value| value.to_bytes()) {
        None | Some(b"1") => Some(Budget::IN_SERVICE),
        Some(b"trial") => Some(Budget::TRIAL_RUN),
        Some(b"0") => None,
        Some(_) => {
            complain(&"CACHEWISE_LEARN", &"accepted 0, 1 or trial; sites do as the profile says");
            None
        }
    };
    let budget = budget.map(|budget| budget.with_cache(Caches::detect().llc));
    let store = match (secure, variable(c"CACHEWISE_PROGRAM")) {
        (true, _) => Err(Refused { path: None, problem: Problem::Privileged }),
        (false, Some(named)) if named != c"0" => Store::open(Some(named), budget.is_some()),
        (false, _) => Store::open(None, budget.is_some()),
    };
    match &store {
        Ok(store) => {
            if let Some(why) = store.was_damaged() {
                complain(&programs::Named(store.path()), &programs::SetAside(why));
            }
        }
        Err(Refused { path: Some(path), problem }) => complain(&programs::Named(path), problem),
        // No place for it, or more privilege than the caller: nobody asked for a file.
        Err(Refused { path: None, .. }) => {}
    }
    let store = store.map_err(|refused| refused.problem);
    let here = files::pages_of_each_process(size_of::<AtomicU32>()).ok()?.cast::<AtomicU32>();
    // SAFETY: fresh pages, all zero, which is an AtomicU32, for the process's life.
    let here = unsafe { &*here };
    let place = os::Scratch::new(size_of::<Learner>()).ok()?.leak().as_mut_ptr().cast::<Learner>();
    let learner = Learner { budget, store, epochs: Epochs::new(), here };
    // SAFETY: fresh pages of that size, which nobody else has.
    unsafe { place.write(learner) };
    LEARNER.store(place, Ordering::Release);
    Some(())
}

/// One line that says what is wrong; sites start from nothing then.
fn complain(name: &dyn core::fmt::Display, problem: &dyn core::fmt::Display) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let quiet = os::variable(c"CACHEWISE_QUIET").is_some_and(|value| value != c"0");
    if quiet || TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut line = [0; 512];
    let mut line = crate::cursor::Cursor::new(&mut line);
    let _ = write!(line, "cachewise: {name}: {problem} (CACHEWISE_QUIET=1 silences this)");
    let _ = line.push(b"\n");
    os::write_stderr(line.written());
}

impl Learner {
    fn epoch(&self) -> u32 {
        self.epochs.of(self.here)
    }

    fn way(&self, name: Name<'_>, operation: Operation, n: usize, usual: Way) -> Option<Way> {
        let epoch = self.epoch();
        let rules = Rules { budget: self.budget.as_ref().unwrap_or(&Budget::IN_SERVICE), epoch };
        let key = key(name, operation, n);
        with_clocks(epoch, |clocks| {
            let meet = |key, state: &mut State| self.meet(name, key, usual, state);
            TABLE.call(&rules, key, n, clocks, meet, files::monotonic)
        })
    }

    /// A site's first call.
    #[cold]
    #[inline(never)]
    fn meet(&self, name: Name<'_>, key: Key, usual: Way, state: &mut State) {
        let place = NAMES.keep(name).map(|module| Place { module, offset: 0 });
        let known = place.zip(self.store.as_ref().ok());
        let known = known.and_then(|(place, store)| store.known(&NAMES, place.module, key, 0));
        let learning = self.budget.is_some();
        let seed = if learning { files::monotonic() ^ name.number } else { 0 };
        state.meet(place, known, usual, learning, seed);
    }
}

fn key(name: Name<'_>, operation: Operation, n: usize) -> Key {
    Key::new(name.number as usize, operation, n)
}

/// The slot for a large call.
pub(super) fn slot(name: Name<'_>, at: usize, n: usize) -> usize {
    hooks::slot(at, n, |around| {
        let operation = *Operation::ALL.get(at)?;
        if name.bytes.is_empty() {
            return None;
        }
        let usual = if around { Way::NonTemporal } else { Way::Temporal };
        let way = learner()?.way(name, operation, n, usual)?;
        Some(way == Way::NonTemporal)
    })
}

/// See [`super::Site::state`].
pub(super) fn state(name: Name<'_>, operation: kernels::Operation, n: usize) -> Option<SiteState> {
    let at = OPERATIONS.iter().position(|one| *one == operation)?;
    if n < LARGE {
        return None;
    }
    let learner = learner()?;
    let state = TABLE.state(learner.epoch(), key(name, *Operation::ALL.get(at)?, n))?;
    let Some(trial) = state.trial else {
        // Followed, not learned.
        let outcome = state.fixed.map_or(SiteOutcome::TooFew, decided);
        return Some(SiteState {
            outcome,
            calls: 0,
            tried: 0,
            temporal_ns: 0.0,
            non_temporal_ns: 0.0,
        });
    };
    let left = trial.left();
    let [temporal, non_temporal] = left.evidence.costs;
    Some(SiteState {
        outcome: match left.outcome {
            Outcome::Decided(way) => decided(way),
            Outcome::CannotTell(Why::TooFew) => SiteOutcome::TooFew,
            Outcome::CannotTell(Why::NoDifference) => SiteOutcome::NoDifference,
            Outcome::CannotTell(Why::Unconfirmed) => SiteOutcome::Unconfirmed,
            Outcome::CannotTell(Why::Reopened) => SiteOutcome::Reopened,
        },
        calls: left.calls,
        tried: left.explored,
        temporal_ns: temporal.mean(),
        non_temporal_ns: non_temporal.mean(),
    })
}

fn decided(way: Way) -> SiteOutcome {
    match way {
        Way::Temporal => SiteOutcome::Temporal,
        Way::NonTemporal => SiteOutcome::NonTemporal,
    }
}

/// Milliseconds to wait for others that save at the same moment.
const PATIENCE: u32 = 500;

/// See [`super::save_sites`].
pub(super) fn save() -> Result<(), Problem> {
    // Without a learner no site was called; then there is nothing to save.
    // SAFETY: null, or pages for the life of the process, complete before they were stored.
    let Some(learner) = (unsafe { LEARNER.load(Ordering::Acquire).as_ref() }) else {
        return Ok(());
    };
    if learner.budget.is_none() {
        return Ok(());
    }
    let mut saved = Ok(());
    os::preserving_errno(|| {
        saved =
            learner.store.and_then(|store| store.save(&TABLE, learner.epoch(), &NAMES, PATIENCE));
    });
    saved
}

/// A site's name, copied: its own may lie in a library that is unloaded.
struct Kept {
    ready: AtomicBool,
    number: UnsafeCell<u64>,
    length: UnsafeCell<usize>,
    bytes: UnsafeCell<[u8; MAX_NAME]>,
}

impl Kept {
    const fn new() -> Kept {
        Kept {
            ready: AtomicBool::new(false),
            number: UnsafeCell::new(0),
            length: UnsafeCell::new(0),
            bytes: UnsafeCell::new([0; MAX_NAME]),
        }
    }
}

// SAFETY: all is written by the thread that took the place, before `ready`, and read behind `ready`
// only.
unsafe impl Sync for Kept {}

/// The names of the sites that were called; in a section each is a module with the id `site`, whose
/// path is the name.
struct Names {
    taken: AtomicUsize,
    all: [Kept; SITES],
}

/// The id of named sites in a section: no build id, which has digits only.
const ID: &str = "site";

impl Names {
    /// A name's number; two threads may both keep one, which is saved once.
    fn keep(&self, name: Name<'_>) -> Option<u32> {
        let same = |kept: &Kept| {
            // SAFETY: written before `ready`, and never again.
            kept.ready.load(Ordering::Acquire) && unsafe { *kept.number.get() } == name.number
        };
        if let Some(at) = self.all.iter().position(same) {
            return Some(at as u32);
        }
        let at = self.taken.fetch_add(1, Ordering::Relaxed);
        let Some(kept) = self.all.get(at) else {
            self.taken.store(SITES, Ordering::Relaxed);
            return None;
        };
        // SAFETY: this thread took the place, and nobody reads before `ready`.
        let bytes = unsafe { &mut *kept.bytes.get() };
        let mut length = 0;
        for (place, byte) in bytes.iter_mut().zip(name.bytes) {
            let shown = byte.is_ascii_graphic() || *byte == b' ' && length > 0;
            *place = if shown { *byte } else { b'?' };
            length += 1;
        }
        // SAFETY: as above.
        unsafe { *kept.length.get() = length };
        // SAFETY: as above.
        unsafe { *kept.number.get() = name.number };
        kept.ready.store(true, Ordering::Release);
        Some(at as u32)
    }
}

impl Modules for Names {
    fn count(&self) -> u32 {
        self.taken.load(Ordering::Relaxed).min(SITES) as u32
    }

    fn id(&self, number: u32) -> Option<&str> {
        let kept = self.all.get(number as usize)?;
        kept.ready.load(Ordering::Acquire).then_some(ID)
    }

    fn path(&self, number: u32) -> &str {
        let Some(kept) = self.all.get(number as usize) else { return "" };
        if !kept.ready.load(Ordering::Acquire) {
            return "";
        }
        // SAFETY: written before `ready`, and never again.
        let length = unsafe { *kept.length.get() };
        // SAFETY: as above.
        let bytes = unsafe { &*kept.bytes.get() };
        core::str::from_utf8(bytes.get(..length).unwrap_or(&[])).unwrap_or("")
    }

    fn is(&self, number: u32, module: &Module<'_>) -> bool {
        module.id == ID && module.path == self.path(number)
    }
}

/// Threads that have clocks at a time; with more, some intervals are not counted.
const THREAD_PLACES: usize = 128;
const PROBES: usize = 4;

/// A thread's clocks. One that has ended leaves them to the next at its place: at worst an interval
/// is too long once.
struct Thread {
    /// Where its `errno` lies; 0 for none.
    owner: AtomicUsize,
    /// The epoch of the process whose thread is at them; 0 if none is.
    gate: AtomicU32,
    clocks: UnsafeCell<Clocks>,
}

// SAFETY: the clocks are reached behind the gate only, by one thread at a time.
unsafe impl Sync for Thread {}

impl Thread {
    const fn new() -> Thread {
        Thread {
            owner: AtomicUsize::new(0),
            gate: AtomicU32::new(0),
            clocks: UnsafeCell::new(Clocks::STOPPED),
        }
    }
}

/// Runs `body` with this thread's clocks; a signal handler that finds them in use, and a thread
/// that finds no place, with clocks that do not run.
fn with_clocks<T>(epoch: u32, body: impl FnOnce(&mut Clocks) -> T) -> T {
    // SAFETY: always callable.
    let me = unsafe { libc::__errno_location() } as usize;
    // Knuth, TAOCP volume 3, 6.4.
    let start = ((me as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57) as usize;
    let places = || (0..PROBES).filter_map(|step| THREADS.get((start + step) % THREAD_PLACES));
    let owned = |by| places().find(|place| place.owner.load(Ordering::Relaxed) == by);
    let place = owned(me).or_else(|| owned(0)).or_else(|| places().next());
    let mut stopped = Clocks::STOPPED;
    let Some(place) = place else { return body(&mut stopped) };
    let found = place.gate.load(Ordering::Relaxed);
    let gate = &place.gate;
    if found == epoch
        || gate.compare_exchange(found, epoch, Ordering::Acquire, Ordering::Relaxed).is_err()
    {
        return body(&mut stopped);
    }
    // SAFETY: the gate holds this epoch until the store below, and nobody of this epoch passes it
    // meanwhile; a former epoch's threads are not in this process.
    let clocks = unsafe { &mut *place.clocks.get() };
    if place.owner.swap(me, Ordering::Relaxed) != me {
        *clocks = Clocks::STOPPED;
    }
    let result = body(clocks);
    place.gate.store(0, Ordering::Release);
    result
}
