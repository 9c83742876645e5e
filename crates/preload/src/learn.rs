//! Large calls by the place they come from: learned, or followed as an earlier run has decided.
//!
//! - `CACHEWISE_PROGRAM=FILE` follows what the file, a program's section of the profile, has
//!   decided.
//! - `CACHEWISE_LEARN=1` learns in a program in service, at a cost of at most 2 % of each site's
//!   time; `CACHEWISE_LEARN=trial` learns in a run that is there to learn. Both start from the file
//!   and save to it: at exit, and in a call that comes more than `CACHEWISE_LEARN_SAVE` seconds
//!   (300 where it is not said) after the last time. Where no file is named it is the user's for
//!   this program.
//!
//! Nothing of this is in the way of a program that asks for neither, and nothing in the way of
//! small calls: the decision table sends large calls here (`cachewise::hooks`).
//!
//! - [`hook`] is where they arrive; [`modules`] knows what lies at an address;
//!   `cachewise::programs` reads and writes the file; [`thread`] has each thread's clocks.

mod hook;
mod modules;
mod thread;

use crate::{observed::LARGE, os};
use cachewise::cpu::Caches;
use cachewise::hooks::{self, Hooks};
use cachewise::programs::{Named, Refused, SetAside, Store};
use cachewise_learn::Way;
use cachewise_learn::gate::Epochs;
use cachewise_learn::sites::{Key, Operation, Rules, Sites, State};
use cachewise_learn::trial::Budget;
use core::ffi::CStr;
use core::fmt::{Display, Write as _};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What this process does about its call sites; made once, before calls arrive.
struct Learner {
    /// What learning may cost; `None` where decisions are followed.
    budget: Option<Budget>,
    sites: &'static Sites,
    store: Store,
    modules: modules::Modules,
    /// Nanoseconds between savings.
    save_every: u64,
    /// When it was saved last, or started.
    saved: AtomicU64,
    epochs: Epochs,
    /// This process's, in a page that a forked child finds zeroed.
    here: &'static AtomicU32,
}

static LEARNER: AtomicPtr<Learner> = AtomicPtr::new(core::ptr::null_mut());

fn learner() -> Option<&'static Learner> {
    // SAFETY: null, or pages for the life of the process, complete before they were stored.
    unsafe { LEARNER.load(Ordering::Acquire).as_ref() }
}

/// The smallest copy that is hooked.
static COPIES_FROM: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether copies of that size have a way by their call site.
pub(crate) fn takes_copies(n: usize) -> bool {
    n as u64 >= COPIES_FROM.load(Ordering::Acquire)
}

pub(crate) use hook::copy;

/// Begins, where the environment says so.
pub(crate) fn start() {
    let learn = os::variable(c"CACHEWISE_LEARN");
    let program = os::variable(c"CACHEWISE_PROGRAM");
    let budget = match learn.map(CStr::to_bytes) {
        None if program.is_none() => return,
        None => None,
        Some(b"1") => Some(Budget::IN_SERVICE),
        Some(b"trial") => Some(Budget::TRIAL_RUN),
        Some(_) => return complain(&"CACHEWISE_LEARN", "accepted 0, 1 or trial"),
    };
    let seconds = match os::number(c"CACHEWISE_LEARN_SAVE").map(CStr::to_str) {
        None => 300,
        Some(text) => match text.ok().and_then(|text| text.parse::<u32>().ok()) {
            Some(seconds) => seconds,
            None => return complain(&"CACHEWISE_LEARN_SAVE", "accepted a number of seconds"),
        },
    };
    let budget = budget.map(|budget| budget.with_cache(Caches::detect().llc));
    let store = match Store::open(program, budget.is_some()) {
        Ok(store) => store,
        Err(Refused { path: Some(path), problem }) => return complain(&Named(path), problem),
        Err(Refused { path: None, problem }) => return complain(&"CACHEWISE_PROGRAM", problem),
    };
    if let Some(why) = store.was_damaged() {
        tell(&Named(store.path()), SetAside(why), b"\n");
    }
    if budget.is_none() && !store.decides() {
        return;
    }
    if begin(budget, store, u64::from(seconds) * 1_000_000_000).is_none() {
        complain(&"CACHEWISE_LEARN", "found no memory, or an unsuitable system");
    }
}

fn begin(budget: Option<Budget>, store: Store, save_every: u64) -> Option<()> {
    let sites = os::pages(size_of::<Sites>())?.cast::<Sites>();
    // SAFETY: fresh pages of that size, all zero, which is an empty table, for the process's life.
    let sites = unsafe { &*sites };
    let here = os::pages_of_each_process(size_of::<AtomicU32>())?.cast::<AtomicU32>();
    // SAFETY: fresh pages, all zero, which is an AtomicU32, for the process's life.
    let here = unsafe { &*here };
    let place = os::pages(size_of::<Learner>())?.cast::<Learner>();
    let learner = Learner {
        budget,
        sites,
        store,
        modules: modules::Modules::new()?,
        save_every,
        saved: AtomicU64::new(hook::now()),
        epochs: Epochs::new(),
        here,
    };
    // SAFETY: fresh pages of that size, which nobody else has.
    unsafe { place.write(learner) };
    LEARNER.store(place, Ordering::Release);
    let hooks = Hooks {
        copy: hook::stub::copy,
        r#move: hook::stub::r#move,
        fill: hook::stub::fill,
        zero: hook::stub::zero,
    };
    let [copies, ..] = hooks::install(&hooks, LARGE as u64);
    COPIES_FROM.store(copies.unwrap_or(u64::MAX), Ordering::Release);
    Some(())
}

/// Saves what was learned.
pub(crate) fn finish() {
    if let Some(learner) = learner() {
        learner.save(PATIENCE);
    }
}

/// Milliseconds that the end of a program waits for others that save at the same moment.
const PATIENCE: u32 = 500;

/// One line that says what is wrong; the program runs on without.
fn complain(name: &dyn Display, problem: impl Display) {
    tell(name, problem, b"; call sites are not learned\n");
}

fn tell(name: &dyn Display, problem: impl Display, end: &[u8]) {
    if os::variable(c"CACHEWISE_QUIET").is_some() {
        return;
    }
    let mut line = [0; 512];
    let mut line = crate::statistics::Text::new(&mut line);
    let _ = write!(line, "cachewise: {name}: {problem}");
    line.end_with(end);
    os::write_stderr(line.written());
}

impl Learner {
    /// The way for a call.
    fn way(&self, operation: Operation, n: usize, address: usize) -> Option<Way> {
        if self.modules.is_own(address) {
            // A forwarding function of this library: the program's place is further up.
            return None;
        }
        let budget = self.budget.as_ref().unwrap_or(&Budget::IN_SERVICE);
        let rules = Rules { budget, epoch: self.epochs.of(self.here) };
        let key = Key::new(address, operation, n);
        let mut time = None;
        let way = thread::with_clocks(|clocks| {
            let now = || *time.insert(hook::now());
            self.sites.call(&rules, key, n, clocks, |key, state| self.meet(key, n, state), now)
        })?;
        if let Some(now) = time {
            self.save_if_due(now);
        }
        way
    }

    /// A site's first call.
    #[cold]
    #[inline(never)]
    fn meet(&self, key: Key, n: usize, state: &mut State) {
        os::preserving_errno(|| {
            let place = self.modules.place(key.address());
            let known = place
                .and_then(|place| self.store.known(&self.modules, place.module, key, place.offset));
            let usual = match hooks::usually_non_temporal(key.operation() as usize, n) {
                true => Way::NonTemporal,
                false => Way::Temporal,
            };
            let learning = self.budget.is_some();
            // Who only follows asks for no time: where the kernel's clock is not one that can be
            // read by a program itself, that would be a system call.
            let seed = if learning { hook::now() ^ (key.address() as u64) << 20 } else { 0 };
            state.meet(place, known, usual, learning, seed);
        });
    }

    fn save_if_due(&self, now: u64) {
        let saved = self.saved.load(Ordering::Relaxed);
        if now.saturating_sub(saved) < self.save_every
            || self
                .saved
                .compare_exchange(saved, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        if os::is_on_signal_stack() {
            // Which may be a small one: the next call will do.
            self.saved.store(saved, Ordering::Relaxed);
            return;
        }
        // A call waits for nobody: whoever has the lock now leaves the next time to this process.
        self.save(0);
    }

    #[cold]
    #[inline(never)]
    fn save(&self, patience: u32) {
        if self.budget.is_none() {
            return;
        }
        os::preserving_errno(|| {
            let epoch = self.epochs.of(self.here);
            // There is nobody to tell in the middle of a program; what is undone is not in the
            // file.
            let _ = self.store.save(self.sites, epoch, &self.modules, patience);
        });
    }
}
