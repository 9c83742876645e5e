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
use crate::config::{EngineChoice, GiveBack, Scrub};
use crate::engine::{Cancelled, CpuEngine, Engine, Method, Progress, Range, Token};
use crate::inner::{Inner, now};
use crate::lock;
use crate::os;
use crate::pace::{Pace, Rest};
use crate::proof::Proof;
use crate::stats::{ScrubberState, add, get};
use std::boxed::Box;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::vec::Vec;

const GO: u8 = 0;
const PAUSE: u8 = 1;
const STOP: u8 = 2;
/// Time that `pause` waits for the chunk at hand.
const PAUSE_WAIT: Duration = Duration::from_millis(10);
/// Time between two looks at orders while an engine is at work.
const SLICE: Duration = Duration::from_millis(2);
/// Time between two looks whether other threads are left, once the main thread has left.
const LEFT_LOOK: Duration = Duration::from_millis(100);
/// Rest after a built-in engine failed.
const FAILURE_REST: Duration = Duration::from_millis(250);
/// Rest while an allocation needs the blocks that would be taken.
const HOLD_OFF_REST: Duration = Duration::from_millis(5);
/// Bytes returned to the system at a time: some hundred microseconds of it.
const PORTION: usize = 4 << 20;
/// Blocks in one batch at most.
const BATCH: usize = 64;

#[derive(Debug, Default)]
struct Orders {
    order: AtomicU8,
    quiet: Mutex<bool>,
    became_quiet: Condvar,
}

impl Orders {
    /// Says that nothing is being done, unless work was ordered again meanwhile.
    fn be_quiet(&self) {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        *quiet = self.order.load(Ordering::SeqCst) != GO;
        self.became_quiet.notify_all();
    }

    fn go(&self) {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        *quiet = false;
        self.order.store(GO, Ordering::SeqCst);
    }
}

/// The handle of the thread.
#[derive(Debug)]
pub(crate) struct Scrubber {
    orders: Arc<Orders>,
    thread: os::Spawned,
    generation: u32,
}

impl Scrubber {
    pub(crate) fn start(
        inner: &Arc<Inner>,
        (scrub, give_back): (Scrub, Option<GiveBack>),
        engine: EngineChoice,
        deadline: Duration,
        strikes: u32,
    ) -> std::io::Result<Scrubber> {
        let orders = Arc::new(Orders::default());
        let method = inner.settings().method;
        let custom = match engine {
            EngineChoice::Custom(engine) => Some(engine),
            _ => None,
        };
        let pace = Pace::new(scrub.clone());
        let mut worker = Worker {
            inner: Arc::clone(inner),
            orders: Arc::clone(&orders),
            scrub,
            give_back,
            pressure: None,
            method,
            cpu: CpuEngine::new(method),
            custom,
            proof: Proof::new(inner.base() as u64 ^ inner.gate.id),
            deadline,
            strikes,
            failed: 0,
            quarantined: Vec::new(),
            cpu_told: Duration::ZERO,
            demand_seen: 0,
            unused: 0,
            awake: false,
            pace,
        };
        let thread = os::spawn(move || worker.run())?;
        Ok(Scrubber { orders, thread, generation: lock::generation() })
    }

    /// Checks whether the thread is this process's, and not the parent's.
    pub(crate) fn is_here(&self) -> bool {
        self.generation == lock::generation()
    }

    pub(crate) fn pause(&self, inner: &Inner) -> bool {
        if !self.is_here() {
            return true;
        }
        self.orders.order.store(PAUSE, Ordering::SeqCst);
        inner.wake_scrubber(true);
        let quiet = self.orders.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.orders.became_quiet.wait_timeout_while(quiet, PAUSE_WAIT, |quiet| !*quiet);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn resume(&self, inner: &Inner) {
        self.orders.go();
        inner.wake_scrubber(true);
    }

    pub(crate) fn stop(self, inner: &Inner) {
        if !self.is_here() {
            return self.forget();
        }
        self.orders.order.store(STOP, Ordering::SeqCst);
        inner.wake_scrubber(true);
        self.thread.join();
    }

    /// In a forked child: the threads are the parent's.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

/// A block in flight.
#[derive(Clone, Copy, Debug)]
struct Taken {
    index: u32,
    order: u32,
}

/// The next thing to do.
enum Step {
    /// Zero these blocks.
    Zero(Vec<Taken>),
    /// Rest in that state, for so long at most.
    Rest(ScrubberState, Option<Duration>),
}

/// The end of a batch.
enum Ended {
    /// Zero, as far as the engine is to be believed.
    Zeroed,
    /// The engine let go of it, and what is in it is not known.
    Unknown,
    /// The engine may still write to it.
    Held(Token),
    /// The engine let go, but it was late or wrong.
    Failed,
}

struct Worker {
    inner: Arc<Inner>,
    orders: Arc<Orders>,
    scrub: Scrub,
    give_back: Option<GiveBack>,
    pressure: Option<os::Pressure>,
    method: Method,
    cpu: CpuEngine,
    custom: Option<Box<dyn Engine>>,
    proof: Proof,
    deadline: Duration,
    strikes: u32,
    failed: u32,
    /// Blocks in quarantine, and the batch after whose end they may leave it; without one, when the
    /// engine has been dropped.
    quarantined: Vec<(Taken, Option<Token>)>,
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
            let order = self.order();
            if order == STOP || os::is_alone() {
                break;
            }
            if order == GO && self.grow_ahead() {
                continue;
            }
            match self.next_step() {
                Step::Zero(batch) => self.zero(&batch),
                Step::Rest(state, timeout) => {
                    self.tell_cpu();
                    let by_use = timeout.is_none();
                    let idle = if order == GO { self.return_idle() } else { None };
                    let timeout = timeout.into_iter().chain(idle).min();
                    self.rest(state, timeout, by_use, order);
                }
            }
        }
        self.retire_engine();
        self.tell_cpu();
        self.state(ScrubberState::Off);
        self.orders.be_quiet();
    }

    fn order(&self) -> u8 {
        self.orders.order.load(Ordering::SeqCst)
    }

    fn state(&self, state: ScrubberState) {
        self.inner.background.state.store(state as u8, Ordering::Relaxed);
    }

    /// Waits, without using the CPU, until something may have changed since that was the order.
    fn rest(&mut self, state: ScrubberState, timeout: Option<Duration>, by_use: bool, order: u8) {
        self.state(state);
        if state == ScrubberState::Load {
            add(&self.inner.background.load_rests, 1);
        }
        if state == ScrubberState::Paused {
            self.orders.be_quiet();
        }
        let demand = self.demand_seen;
        let awake = self.awake;
        let inner = &self.inner;
        let (scrub, lowest) = (&self.scrub, self.lowest());
        let has_work = || match state {
            ScrubberState::Idle => {
                let from = if awake { lowest } else { scrub.start };
                by_use && due(inner, from, scrub).is_some()
            }
            // Under the lock, as it is written.
            ScrubberState::Unused => {
                inner.lock().is_ok_and(|_guard| get(&inner.control().demand) != demand)
            }
            _ => false,
        };
        let orders = &self.orders;
        let by_use = by_use && matches!(state, ScrubberState::Idle | ScrubberState::Unused);
        let left = os::main_left();
        let timeout = timeout.into_iter().chain(left.then_some(LEFT_LOOK)).min();
        let behind = || order == GO && inner.is_behind();
        inner.sleep(timeout, by_use, || {
            orders.order.load(Ordering::SeqCst) != order
                || os::main_left() != left
                || behind()
                || has_work()
        });
    }

    /// Makes a portion of free memory resident ahead of need. Not while memory is short, nor in a
    /// pool that is closed.
    fn grow_ahead(&mut self) -> bool {
        if !self.inner.is_behind() {
            return false;
        }
        let pressure = self.pressure.get_or_insert_with(os::Pressure::new);
        if self.inner.is_closed() || pressure.is_short() {
            self.inner.stay_behind();
            return false;
        }
        self.inner.grow_ahead()
    }

    /// Returns a portion of idle memory to the system, where that is wanted. Returns for how long
    /// at most there is nothing to return.
    fn return_idle(&mut self) -> Option<Duration> {
        let when = self.give_back.as_ref()?;
        let pressure = self.pressure.get_or_insert_with(os::Pressure::new);
        let short = pressure.is_short();
        let min_idle = if short { 0 } else { millis(when.after) };
        match self.inner.return_idle(when.floor, min_idle, PORTION) {
            Ok(bytes) => Some(Duration::from_secs_f64(bytes as f64 / when.bytes_per_second as f64)),
            // Until then memory may become short.
            Err(Some(ticks)) => {
                Some(Duration::from_millis(u64::from(ticks) + 4).min(os::Pressure::LOOK))
            }
            Err(None) => None,
        }
    }

    fn lowest(&self) -> u32 {
        self.inner.lowest_to_zero(self.method, self.scrub.stop)
    }

    /// The next batch, or the reason that there is none.
    fn next_step(&mut self) -> Step {
        self.release_finished();
        if self.order() != GO || self.inner.is_closed() {
            return Step::Rest(ScrubberState::Paused, None);
        }
        let demand = get(&self.inner.control().demand);
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
        if let Some((state, time)) = self.must_rest() {
            return Step::Rest(state, Some(time));
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
            match due(&self.inner, *order, &self.scrub) {
                Some(Duration::ZERO) => self.awake = true,
                wait => {
                    self.awake = self.awake && wait.is_some();
                    return Some(wait);
                }
            }
        }
        None
    }

    /// The rest that load or limits ask for before the next chunk.
    fn must_rest(&mut self) -> Option<(ScrubberState, Duration)> {
        let uses_cpu = self.custom.as_ref().is_none_or(|engine| engine.uses_cpu());
        Some(match self.pace.rest(uses_cpu)? {
            Rest::Load(time) => (ScrubberState::Load, time),
            Rest::Limits(time) => (ScrubberState::Working, time),
        })
    }

    fn take(&mut self) -> Vec<Taken> {
        let inner = &self.inner;
        let lowest = self.lowest();
        let chunk = (self.scrub.chunk >> inner.chunks.frame_shift).max(1).ilog2();
        let min_idle = millis(self.scrub.min_idle);
        let mut batch = Vec::with_capacity(BATCH);
        let mut bytes = 0;
        let Ok(mut guard) = inner.lock() else { return batch };
        let now = now();
        while bytes < self.scrub.chunk && batch.len() < BATCH {
            let taken = guard.buddy().take_to_zero(lowest, chunk, min_idle, now);
            let Some((index, order)) = taken else { break };
            bytes += inner.bytes(order);
            batch.push(Taken { index, order });
            // The next look comes before another block as large as this one.
            if bytes + inner.bytes(order) > self.scrub.chunk {
                break;
            }
        }
        batch
    }

    /// Zeroes a batch, chunk by chunk, and brings it back.
    fn zero(&mut self, batch: &[Taken]) {
        self.state(ScrubberState::Working);
        let batch = &*self.leave_absent(batch);
        let ranges: Vec<_> = batch
            .iter()
            .map(|taken| Range {
                start: self.inner.address(taken.index),
                length: self.inner.bytes(taken.order),
            })
            .collect();
        if self.custom.is_some() {
            // SAFETY: in flight, so nobody else uses them, and whole pages of this mapping.
            unsafe { self.proof.begin(&ranges) };
        }
        let mut ended = Ended::Zeroed;
        // Only where `stop` is above a chunk is there more than one of them.
        for chunk in chunks(&ranges, self.scrub.chunk, self.method) {
            let begun = (Instant::now(), self.cpu_time());
            ended = self.zero_chunk(&chunk);
            if !matches!(ended, Ended::Zeroed) {
                break;
            }
            let bytes: usize = chunk.iter().map(|range| range.length).sum();
            let used = self.cpu_time().saturating_sub(begun.1);
            self.pace.spent(begun.0, used, bytes);
            if ranges.len() == 1 && chunk[0].length < ranges[0].length && !self.go_on() {
                ended = Ended::Unknown;
                break;
            }
        }
        let lied = matches!(ended, Ended::Zeroed) && !self.proved(&ranges);
        if lied {
            ended = Ended::Failed;
        }
        self.bring_back(batch, &ended);
        if lied {
            self.retire_engine();
            self.inner.distrust();
        } else if matches!(ended, Ended::Held(_) | Ended::Failed) {
            self.strike();
        }
    }

    /// Lands what nobody has touched, which zeroing would bring; the rest.
    fn leave_absent(&mut self, batch: &[Taken]) -> Vec<Taken> {
        let inner = &self.inner;
        if !inner.settings().fault_on_touch {
            return batch.to_vec();
        }
        // Absent memory may be swapped out: dropping it makes it zero.
        let dropped = |taken: &Taken| {
            let (start, length) = (inner.address(taken.index), inner.bytes(taken.order));
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            os::resident(start, length) == Ok(0) && unsafe { os::discard(start, length) }.is_ok()
        };
        let (absent, rest): (Vec<_>, Vec<_>) = batch.iter().copied().partition(dropped);
        if !absent.is_empty()
            && let Ok(mut guard) = inner.lock()
        {
            for Taken { index, order } in absent {
                let landed = guard.buddy().land(index, order, State::ZeroAbsent, now());
                inner.close_absent(&guard.buddy(), index);
                debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
            }
        }
        rest
    }

    /// Between the chunks of one large block: waits as load and limits say. False when told to
    /// stop.
    fn go_on(&mut self) -> bool {
        loop {
            let order = self.order();
            if order != GO {
                return false;
            }
            match self.must_rest() {
                None => return true,
                Some((state, time)) => self.rest(state, Some(time), false, order),
            }
        }
    }

    fn zero_chunk(&mut self, ranges: &[Range]) -> Ended {
        let deadline = self.custom.is_some().then(|| Instant::now() + self.deadline);
        let engine: &mut dyn Engine = match &mut self.custom {
            Some(engine) => engine.as_mut(),
            None => &mut self.cpu,
        };
        // SAFETY: the ranges are in flight: mapped as long as the pool, which outlives this worker,
        // and in nobody's hands until the batch has ended (`bring_back`).
        let Ok(token) = (unsafe { engine.submit(ranges) }) else {
            add(&self.inner.control().events.engine_faults, 1);
            return Ended::Failed;
        };
        loop {
            match engine.wait(token, SLICE) {
                Progress::Done => return Ended::Zeroed,
                Progress::Partial(_) if self.orders.order.load(Ordering::SeqCst) != GO => {
                    return Ended::Unknown;
                }
                Progress::Partial(_) | Progress::Fault(_) => {
                    add(&self.inner.control().events.engine_faults, 1);
                    return Ended::Failed;
                }
                Progress::Pending => {}
            }
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let told = self.orders.order.load(Ordering::SeqCst) != GO;
            if !late && !told {
                continue;
            }
            let stopped = engine.cancel(token, SLICE) == Cancelled::Stopped;
            match (late, stopped) {
                (false, true) => return Ended::Unknown,
                (false, false) => {}
                (true, stopped) => {
                    add(&self.inner.control().events.engine_faults, 1);
                    return if stopped { Ended::Failed } else { Ended::Held(token) };
                }
            }
        }
    }

    /// Checks whether the ranges that a custom engine called zero are zero, as far as they are read.
    fn proved(&mut self, ranges: &[Range]) -> bool {
        // SAFETY: in flight, so nobody else uses them, and begun with.
        if self.custom.is_none() || unsafe { self.proof.holds(ranges) } {
            return true;
        }
        let events = &self.inner.control().events;
        add(&events.engine_faults, 1);
        add(&events.verify_failed, 1);
        false
    }

    fn bring_back(&mut self, batch: &[Taken], ended: &Ended) {
        let inner = Arc::clone(&self.inner);
        let events = &inner.control().events;
        let Ok(mut guard) = inner.lock() else { return };
        // A batch that failed is not touched by this engine any more, or is it? An engine that
        // errs may err about that too: unless it is one of ours, the blocks wait for its end.
        let quarantine = match ended {
            Ended::Held(token) => Some(Some(*token)),
            Ended::Failed if self.custom.is_some() => Some(None),
            _ => None,
        };
        let mut bytes = 0;
        for taken in batch {
            let Taken { index, order } = *taken;
            let size = inner.bytes(order) as u64;
            if let Some(token) = quarantine {
                if guard.buddy().quarantine(index, order).is_ok() {
                    self.quarantined.push((*taken, token));
                    add(&events.quarantined_ever, size);
                }
                continue;
            }
            let zeroed = matches!(ended, Ended::Zeroed);
            let state = if zeroed { State::ZeroResident } else { State::Dirty };
            let landed = guard.buddy().land(index, order, state, now());
            debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
            bytes += if zeroed { size } else { 0 };
        }
        // Under the lock: who sees them clean sees that they were zeroed.
        add(&events.scrubbed, bytes);
        drop(guard);
        self.unused += bytes;
        self.tell_cpu();
    }

    /// One failure more. After enough of them the engine goes, and a built-in engine that failed is
    /// replaced by plain stores, which cannot.
    fn strike(&mut self) {
        self.failed += 1;
        if self.custom.is_none() {
            self.method = Method::Around;
            self.cpu = CpuEngine::new(Method::Around);
            // A thread that cannot be started is not asked for in a loop.
            self.pace.rest_until(Instant::now() + FAILURE_REST);
        } else if self.failed >= self.strikes {
            self.retire_engine();
        }
    }

    /// Drops a custom engine, after which it writes nowhere, and ends all quarantines. One that cannot be
    /// stopped is forgotten, and they last.
    fn retire_engine(&mut self) {
        let Some(mut engine) = self.custom.take() else { return };
        if engine.stop(self.deadline) == Cancelled::StillRunning {
            std::mem::forget(engine);
            return self.quarantined.clear();
        }
        drop(engine);
        self.release(|_| true);
    }

    /// Ends the quarantine of blocks whose batch has ended since.
    fn release_finished(&mut self) {
        let Some(engine) = &mut self.custom else { return };
        let mut ended: Vec<Token> = Vec::new();
        let mut asked: Vec<Token> = Vec::new();
        for token in self.quarantined.iter().filter_map(|(_, token)| *token) {
            if !asked.contains(&token) {
                asked.push(token);
                if engine.poll(token) != Progress::Pending {
                    ended.push(token);
                }
            }
        }
        if !ended.is_empty() {
            self.release(|token| token.is_some_and(|token| ended.contains(&token)));
        }
    }

    fn release(&mut self, which: impl Fn(Option<Token>) -> bool) {
        let inner = Arc::clone(&self.inner);
        let Ok(mut guard) = inner.lock() else { return };
        self.quarantined.retain(|(taken, token)| {
            if !which(*token) {
                return true;
            }
            let ended = guard.buddy().end_quarantine(taken.index, taken.order, now());
            debug_assert!(ended.is_ok(), "block in quarantine {}: {ended:?}", taken.index);
            false
        });
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
        add(&self.inner.control().events.scrub_cpu_ns, new.as_nanos() as u64);
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX / 2)
}

/// Time until a block of at least that order may be zeroed; `None` if there is none.
fn due(inner: &Inner, lowest: u32, scrub: &Scrub) -> Option<Duration> {
    let mut guard = inner.lock().ok()?;
    let ticks = guard.buddy().next_to_zero(lowest, millis(scrub.min_idle), now())?;
    // The clock has a granularity of some milliseconds: not a tick too early.
    Some(if ticks == 0 { Duration::ZERO } else { Duration::from_millis(u64::from(ticks) + 4) })
}

/// The ranges in portions of a chunk: one portion, unless a single range is larger.
fn chunks(ranges: &[Range], chunk: usize, method: Method) -> Vec<Vec<Range>> {
    match ranges {
        [large] if large.length > chunk && !matches!(method, Method::System) => (0..large.length)
            .step_by(chunk)
            .map(|offset| {
                let length = chunk.min(large.length - offset);
                std::vec![Range { start: large.start.wrapping_add(offset), length }]
            })
            .collect(),
        _ => std::vec![ranges.to_vec()],
    }
}
