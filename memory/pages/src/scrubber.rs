//! Zeroes idle blocks in the background.
//!
//! One thread, at ordinary priority: the end, `exec` and dump of a process wait for each of its
//! threads, and a thread of idle priority may not run for seconds. It gives way instead: it works in
//! chunks of some ten microseconds, and takes little while threads wait for CPUs (`pace.rs`).
//!
//! Before every chunk it looks at the orders it was given (stop, pause), at its own waiting, at its
//! limits. That is where the forerunners of this design failed: one looked at the load only when it
//! woke, and its device was waited for without a deadline.

use crate::buddy::State;
use crate::config::{EngineChoice, Scrub};
use crate::engine::proof::Proof;
use crate::engine::{Cancelled, CpuEngine, Engine, Method, Progress, Range};
use crate::inner::{Inner, now};
use crate::os;
use crate::pace::{Pace, Rest};
use crate::stats::{ScrubberState, add};
use std::boxed::Box;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::vec::Vec;

const GO: u8 = 0;
const PAUSE: u8 = 1;
const STOP: u8 = 2;
/// Time that `pause` waits for the chunk at hand.
const PAUSE_WAIT: Duration = Duration::from_millis(10);
/// Time between two looks at orders while an engine is at work.
const SLICE: Duration = Duration::from_millis(2);
/// Time between two looks whether other threads are left: once the main thread has left, and before.
const LEFT_LOOK: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Rest after a built-in engine failed.
const FAILURE_REST: Duration = Duration::from_millis(250);
/// Rest while an allocation needs the blocks that would be taken.
const HOLD_OFF_REST: Duration = Duration::from_millis(5);
/// Bytes returned to the system at a time, and the rest after them.
const PORTION: usize = 4 << 20;
const PORTION_REST: Duration = Duration::from_millis(8);
/// Blocks in one batch at most.
const BATCH: usize = 64;
/// Failures after which an engine is dropped for the CPU.
const STRIKES: u32 = 3;

#[derive(Debug, Default)]
struct Orders {
    order: AtomicU8,
    quiet: Mutex<bool>,
    became_quiet: Condvar,
}

impl Orders {
    fn order(&self) -> u8 {
        self.order.load(Ordering::SeqCst)
    }

    /// Says that nothing is being done, unless work was ordered again meanwhile.
    fn be_quiet(&self) {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        *quiet = self.order() != GO;
        self.became_quiet.notify_all();
    }
}

/// The handle of the thread.
#[derive(Debug)]
pub(crate) struct Scrubber {
    orders: Arc<Orders>,
    thread: JoinHandle<()>,
}

impl Scrubber {
    pub(crate) fn start(
        inner: &Arc<Inner>,
        (scrub, give_back): (Scrub, Option<Duration>),
        (engine, deadline): (EngineChoice, Duration),
    ) -> std::io::Result<Scrubber> {
        let orders = Arc::new(Orders::default());
        let method = inner.settings().method;
        let custom = match engine {
            EngineChoice::Custom(engine) => Some(engine),
            _ => None,
        };
        let mut worker = Worker {
            inner: Arc::clone(inner),
            orders: Arc::clone(&orders),
            pace: Pace::new(scrub.clone()),
            scrub,
            give_back,
            method,
            cpu: CpuEngine::new(method),
            custom,
            proof: Proof::default(),
            deadline,
            failed: 0,
            quarantined: Vec::new(),
            cpu_told: Duration::ZERO,
            demand_seen: 0,
            unused: 0,
            awake: false,
        };
        let thread = os::spawn(move || worker.run())?;
        Ok(Scrubber { orders, thread })
    }

    pub(crate) fn pause(&self, inner: &Inner) -> bool {
        self.orders.order.store(PAUSE, Ordering::SeqCst);
        inner.wake_scrubber(true);
        let quiet = self.orders.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.orders.became_quiet.wait_timeout_while(quiet, PAUSE_WAIT, |quiet| !*quiet);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn resume(&self, inner: &Inner) {
        let mut quiet = self.orders.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        *quiet = false;
        self.orders.order.store(GO, Ordering::SeqCst);
        drop(quiet);
        inner.wake_scrubber(true);
    }

    pub(crate) fn stop(self, inner: &Inner) {
        self.orders.order.store(STOP, Ordering::SeqCst);
        inner.wake_scrubber(true);
        let _ = cachewise::uncancelled(|| self.thread.join());
    }
}

/// A block in flight: its first frame and order.
type Taken = (u32, u32);

/// The next thing to do.
enum Step {
    /// Zero these blocks.
    Zero(Vec<Taken>),
    /// Rest in that state, for so long at most.
    Rest(ScrubberState, Option<Duration>),
}

/// The end of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Zero, as far as the engine is to be believed.
    Zeroed,
    /// The engine was told to stop, and what is in the blocks is not known.
    Unknown,
    /// Late, failed or a lie.
    Failed,
}

struct Worker {
    inner: Arc<Inner>,
    orders: Arc<Orders>,
    scrub: Scrub,
    give_back: Option<Duration>,
    method: Method,
    cpu: CpuEngine,
    custom: Option<Box<dyn Engine>>,
    proof: Proof,
    deadline: Duration,
    failed: u32,
    /// Blocks of batches that an engine failed to zero, and may still write to: until it has been dropped.
    quarantined: Vec<Taken>,
    cpu_told: Duration,
    demand_seen: u64,
    unused: u64,
    awake: bool,
    pace: Pace,
}

impl Worker {
    fn run(&mut self) {
        loop {
            // The reason to rest may end before the rest does: a newer order is then seen as such.
            let order = self.orders.order();
            if order == STOP || os::is_alone() {
                break;
            }
            match self.next_step() {
                Step::Zero(batch) => self.zero(&batch),
                Step::Rest(state, timeout) => {
                    self.tell_cpu();
                    let idle = if order == GO { self.return_idle() } else { None };
                    let by_use = timeout.is_none();
                    self.rest(state, timeout.into_iter().chain(idle).min(), by_use, order);
                }
            }
        }
        self.retire_engine();
        self.tell_cpu();
        self.state(ScrubberState::Off);
        self.orders.be_quiet();
    }

    fn state(&self, state: ScrubberState) {
        self.inner.state.store(state as u8, Ordering::Relaxed);
    }

    /// Waits, without using the CPU, until something may have changed since that was the order.
    fn rest(&self, state: ScrubberState, timeout: Option<Duration>, by_use: bool, order: u8) {
        self.state(state);
        match state {
            ScrubberState::Load => add(&self.inner.events().load_rests, 1),
            ScrubberState::Paused => self.orders.be_quiet(),
            _ => {}
        }
        let inner = &self.inner;
        let has_work = || match state {
            ScrubberState::Idle => {
                let from = if self.awake { self.lowest() } else { self.scrub.start };
                by_use && self.due(from).is_some()
            }
            // Under the lock, as it is written.
            ScrubberState::Unused => {
                inner.lock().is_ok_and(|_guard| inner.demand() != self.demand_seen)
            }
            _ => false,
        };
        let by_use = by_use && matches!(state, ScrubberState::Idle | ScrubberState::Unused);
        let left = os::main_left();
        let look = if left { LEFT_LOOK } else { LONGEST_REST };
        inner.sleep(Some(timeout.unwrap_or(look).min(look)), by_use, || {
            self.orders.order() != order || os::main_left() != left || has_work()
        });
    }

    /// Returns a portion of idle memory to the system, where that is wanted. Returns for how long
    /// at most there is nothing to return.
    fn return_idle(&self) -> Option<Duration> {
        match self.inner.return_idle(millis(self.give_back?), PORTION) {
            Ok(_) => Some(PORTION_REST),
            Err(ticks) => ticks.map(not_before),
        }
    }

    fn lowest(&self) -> u32 {
        self.inner.lowest_to_zero(self.method, self.scrub.stop)
    }

    /// Time until a block of at least that order may be zeroed; `None` if there is none.
    fn due(&self, lowest: u32) -> Option<Duration> {
        let min_idle = millis(self.scrub.min_idle);
        let ticks = self.inner.lock().ok()?.buddy().next_to_zero(lowest, min_idle, now())?;
        Some(if ticks == 0 { Duration::ZERO } else { not_before(ticks) })
    }

    /// The next batch, or the reason that there is none.
    fn next_step(&mut self) -> Step {
        if self.orders.order() != GO || self.inner.is_closed() {
            return Step::Rest(ScrubberState::Paused, None);
        }
        let demand = self.inner.demand();
        if demand != self.demand_seen {
            self.demand_seen = demand;
            self.unused = 0;
        }
        if self.unused >= self.scrub.unused_limit {
            return Step::Rest(ScrubberState::Unused, None);
        }
        if let Some(wait) = self.nothing_due() {
            return Step::Rest(ScrubberState::Idle, wait);
        }
        if self.inner.holds_off() {
            return Step::Rest(ScrubberState::Working, Some(HOLD_OFF_REST));
        }
        let uses_cpu = self.custom.as_ref().is_none_or(|engine| engine.uses_cpu());
        match self.pace.rest(uses_cpu) {
            Some(Rest::Load(time)) => return Step::Rest(ScrubberState::Load, Some(time)),
            Some(Rest::Limits(time)) => return Step::Rest(ScrubberState::Working, Some(time)),
            None => {}
        }
        let batch = self.take();
        if batch.is_empty() {
            // Another thread was faster.
            return Step::Rest(ScrubberState::Idle, Some(Duration::from_millis(1)));
        }
        Step::Zero(batch)
    }

    /// `None` if there is a block to zero now; otherwise the time until there is one, if one is old enough some
    /// day. It wakes for a block of order `start`, and then goes on down to `stop`.
    fn nothing_due(&mut self) -> Option<Option<Duration>> {
        let orders = [self.scrub.start.max(self.lowest()), self.lowest()];
        for order in &orders[usize::from(self.awake)..] {
            match self.due(*order) {
                Some(Duration::ZERO) => self.awake = true,
                wait => {
                    self.awake = self.awake && wait.is_some();
                    return Some(wait);
                }
            }
        }
        None
    }

    fn take(&self) -> Vec<Taken> {
        let inner = &self.inner;
        let (lowest, highest) = (self.lowest(), inner.order_in(self.scrub.chunk));
        let min_idle = millis(self.scrub.min_idle);
        let mut batch = Vec::with_capacity(BATCH);
        let mut bytes = 0;
        let Ok(mut guard) = inner.lock() else { return batch };
        let now = now();
        while batch.len() < BATCH {
            let taken = guard.buddy().take_to_zero(lowest, highest, min_idle, now);
            let Some((index, order)) = taken else { break };
            batch.push((index, order));
            bytes += inner.bytes(order);
            // The next look comes before another block as large as this one.
            if bytes + inner.bytes(order) > self.scrub.chunk {
                break;
            }
        }
        batch
    }

    /// Zeroes a batch, and brings it back.
    fn zero(&mut self, batch: &[Taken]) {
        self.state(ScrubberState::Working);
        let ranges: Vec<_> =
            batch.iter().map(|(index, order)| self.inner.range(*index, 1 << order)).collect();
        let begun = (Instant::now(), self.cpu_time());
        if self.custom.is_some() {
            // SAFETY: in flight, so nobody else uses them, and whole pages of this mapping.
            unsafe { self.proof.begin(&ranges) };
        }
        let mut ended = self.submit(&ranges);
        let events = self.inner.events();
        if ended == Ended::Zeroed {
            let bytes = ranges.iter().map(|range| range.length).sum();
            self.pace.spent(begun.0, self.cpu_time().saturating_sub(begun.1), bytes);
        }
        // SAFETY: in flight, so nobody else uses them, and begun with.
        let lied = ended == Ended::Zeroed
            && self.custom.is_some()
            && !unsafe { self.proof.holds(&ranges) };
        if lied {
            add(&events.verify_failed, 1);
            ended = Ended::Failed;
        }
        if ended == Ended::Failed {
            add(&events.engine_faults, 1);
        }
        self.bring_back(batch, ended);
        if lied {
            self.retire_engine();
            self.inner.distrust();
        } else if ended == Ended::Failed {
            self.strike();
        }
    }

    fn submit(&mut self, ranges: &[Range]) -> Ended {
        let deadline = self.custom.is_some().then(|| Instant::now() + self.deadline);
        let engine: &mut dyn Engine = match &mut self.custom {
            Some(engine) => engine.as_mut(),
            None => &mut self.cpu,
        };
        // SAFETY: the ranges are in flight: mapped as long as the pool, which outlives this worker,
        // and in nobody's hands until the batch has ended (`bring_back`).
        let Ok(token) = (unsafe { engine.submit(ranges) }) else { return Ended::Failed };
        loop {
            let progress = engine.wait(token, SLICE);
            let told = self.orders.order() != GO;
            match progress {
                Progress::Done => return Ended::Zeroed,
                Progress::Partial(_) if told => return Ended::Unknown,
                Progress::Partial(_) | Progress::Fault(_) => return Ended::Failed,
                Progress::Pending => {}
            }
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !late && !told {
                continue;
            }
            match engine.cancel(token, SLICE) {
                _ if late => return Ended::Failed,
                Cancelled::Stopped => return Ended::Unknown,
                Cancelled::StillRunning => {}
            }
        }
    }

    /// Brings a batch back. An engine that failed may err in that it writes there no more, too: its blocks wait for its
    /// end, unless it is one of the pool's own.
    fn bring_back(&mut self, batch: &[Taken], ended: Ended) {
        let inner = Arc::clone(&self.inner);
        let Ok(mut guard) = inner.lock() else { return };
        let quarantines = ended == Ended::Failed && self.custom.is_some();
        let state = if ended == Ended::Zeroed { State::ZeroResident } else { State::Dirty };
        let mut bytes = 0;
        for (index, order) in batch {
            let done = match quarantines {
                true => guard.buddy().quarantine(*index, *order).map(|()| 0),
                false => guard.buddy().land(*index, *order, state, now()),
            };
            debug_assert!(done.is_ok(), "block in flight {index}: {done:?}");
            bytes += inner.bytes(*order) as u64;
        }
        // Under the lock: who sees them clean sees that they were zeroed.
        if quarantines {
            self.quarantined.extend(batch);
            add(&inner.events().quarantined_ever, bytes);
        } else if ended == Ended::Zeroed {
            add(&inner.events().scrubbed, bytes);
            self.unused += bytes;
        }
        drop(guard);
        self.tell_cpu();
    }

    /// One failure more. After enough of them the engine goes, and a built-in engine that failed is
    /// replaced by plain stores, which cannot.
    fn strike(&mut self) {
        self.failed += 1;
        if self.custom.is_none() {
            self.method = Method::Around;
            self.cpu = CpuEngine::new(Method::Around);
            self.pace.rest_until(Instant::now() + FAILURE_REST);
        } else if self.failed >= STRIKES {
            self.retire_engine();
        }
    }

    /// Drops a custom engine, after which it writes nowhere, and ends all quarantines. One that cannot be
    /// stopped is forgotten, and they last.
    fn retire_engine(&mut self) {
        let Some(mut engine) = self.custom.take() else { return };
        let quarantined = std::mem::take(&mut self.quarantined);
        if engine.stop(self.deadline) == Cancelled::StillRunning {
            return std::mem::forget(engine);
        }
        drop(engine);
        let Ok(mut guard) = self.inner.lock() else { return };
        for (index, order) in quarantined {
            let ended = guard.buddy().end_quarantine(index, order, now());
            debug_assert!(ended.is_ok(), "block in quarantine {index}: {ended:?}");
        }
    }

    fn cpu_time(&self) -> Duration {
        let custom = self.custom.as_ref().map_or(Duration::ZERO, |engine| engine.cpu_time());
        custom + os::thread_cpu_time()
    }

    /// Charges the pool's account with what was used since.
    fn tell_cpu(&mut self) {
        let used = self.cpu_time();
        let new = used.saturating_sub(self.cpu_told);
        self.cpu_told = used;
        add(&self.inner.events().scrub_cpu_ns, new.as_nanos() as u64);
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX / 2)
}

/// That many milliseconds, and the granularity of the clock: not a tick too early.
fn not_before(ticks: u32) -> Duration {
    Duration::from_millis(u64::from(ticks) + 4)
}
