//! Time: the TSC where it is invariant, else `CLOCK_MONOTONIC_RAW`.
//!
//! A reading is ordered on both sides (`lfence; rdtsc; lfence`): nothing before it is still
//! executing, nothing after it has started (Intel SDM volume 2B, RDTSC; AMD APM volume 3, LFENCE
//! as dispatch-serialising, which Linux enables). Stores may still wait in the store buffer; a
//! kernel with non-temporal stores fences itself, and the reader pays for the rest.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{Ordering, compiler_fence};

/// A point in time, in the clock's own units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticks(u64);

/// A calibrated clock. Copying it is cheap.
///
/// Only this crate reads the clock: others hand over what is to be timed.
///
/// ```
/// let clock = cachewise_measure::Clock::of_process();
/// assert!(clock.time(|| clock.spin(1000.0)) > 900.0);
/// ```
/// ```compile_fail
/// cachewise_measure::Clock::of_process().now();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    nanoseconds_per_tick: f64,
    cost_ns: f64,
    resolution_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    #[cfg(target_arch = "x86_64")]
    Tsc,
    MonotonicRaw,
}

/// A clock as records describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// `tsc` or `monotonic-raw`.
    pub source: String,
    /// Ticks per nanosecond of the TSC, which is not the core's frequency; `None` for the operating
    /// system's clock.
    pub frequency_ghz: Option<f64>,
    /// Median cost of one reading in nanoseconds.
    #[serde(with = "crate::rounded")]
    pub cost_ns: f64,
    /// Smallest step seen, in nanoseconds.
    #[serde(with = "crate::rounded")]
    pub resolution_ns: f64,
    /// Core cycles per nanosecond when the record was started.
    #[serde(with = "crate::rounded")]
    pub core_ghz: f64,
}

/// A TSC whose reading costs more than this traps to a hypervisor and is no better than the
/// operating system's clock.
#[cfg(target_arch = "x86_64")]
const DEAREST_TSC_NS: f64 = 500.0;

impl Clock {
    /// This process's clock, calibrated when it is asked for first: 25 ms.
    pub fn of_process() -> Clock {
        static CLOCK: std::sync::OnceLock<Clock> = std::sync::OnceLock::new();
        *CLOCK.get_or_init(Clock::calibrate)
    }

    /// Chooses the source, measures its frequency against `CLOCK_MONOTONIC_RAW`, its cost and its
    /// resolution.
    pub(crate) fn calibrate() -> Clock {
        #[cfg(target_arch = "x86_64")]
        if x86::tsc_is_invariant() {
            let clock = Clock::with_source(Source::Tsc, x86::nanoseconds_per_tick());
            if clock.cost_ns < DEAREST_TSC_NS && clock.nanoseconds_per_tick.is_finite() {
                return clock;
            }
        }
        Clock::with_source(Source::MonotonicRaw, 1.0)
    }

    fn with_source(source: Source, nanoseconds_per_tick: f64) -> Clock {
        let mut clock = Clock { source, nanoseconds_per_tick, cost_ns: 0.0, resolution_ns: 0.0 };
        let mut steps = [0_u64; 4096];
        for step in &mut steps {
            let from = clock.now();
            *step = clock.now().0.saturating_sub(from.0);
        }
        steps.sort_unstable();
        clock.cost_ns = steps[steps.len() / 2] as f64 * nanoseconds_per_tick;
        let smallest_gap =
            steps.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0).min();
        clock.resolution_ns = smallest_gap.unwrap_or(1) as f64 * nanoseconds_per_tick;
        clock
    }

    /// This moment. A compiler barrier as well: no memory access moves across it.
    #[inline]
    pub(crate) fn now(&self) -> Ticks {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc => Ticks(x86::ordered_tsc()),
            Source::MonotonicRaw => Ticks(monotonic_raw_ns()),
        }
    }

    /// Nanoseconds that this takes, less what reading the clock costs.
    pub fn took(&self, work: impl FnOnce()) -> f64 {
        let from = self.now();
        work();
        let to = self.now();
        self.elapsed_ns(from, to)
    }

    /// Nanoseconds between two readings, less the cost of one reading, never below 0.
    #[inline]
    pub(crate) fn nanoseconds(&self, from: Ticks, to: Ticks) -> f64 {
        (self.elapsed_ns(from, to) - self.cost_ns).max(0.0)
    }

    /// Nanoseconds between two readings with nothing subtracted; 0 if they are out of order.
    #[inline]
    pub(crate) fn elapsed_ns(&self, from: Ticks, to: Ticks) -> f64 {
        to.0.saturating_sub(from.0) as f64 * self.nanoseconds_per_tick
    }

    /// Nanoseconds that a call takes, less the cost of one reading.
    #[inline]
    pub fn time(&self, call: impl FnOnce()) -> f64 {
        self.timed(call).1
    }

    /// Returns a call's result and the nanoseconds that it takes, less the cost of one reading.
    #[inline]
    pub fn timed<T>(&self, call: impl FnOnce() -> T) -> (T, f64) {
        let from = self.now();
        let returned = call();
        (returned, self.nanoseconds(from, self.now()))
    }

    /// Returns a call's result and the nanoseconds that it takes with one reading's cost, for calls that are hardly
    /// longer than that.
    #[inline]
    pub fn elapsed<T>(&self, call: impl FnOnce() -> T) -> (T, f64) {
        let from = self.now();
        let returned = call();
        (returned, self.elapsed_ns(from, self.now()))
    }

    /// Median nanoseconds that one reading costs.
    pub fn cost_ns(&self) -> f64 {
        self.cost_ns
    }

    /// Smallest difference seen between two intervals, in nanoseconds.
    pub fn resolution_ns(&self) -> f64 {
        self.resolution_ns
    }

    /// `tsc` or `monotonic-raw`.
    pub fn source(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc => "tsc",
            Source::MonotonicRaw => "monotonic-raw",
        }
    }

    /// Core cycles per nanosecond right now, from a chain of dependent additions, which take a cycle
    /// each: the best of twenty runs of about 50 microseconds, since whatever disturbs a run only slows
    /// it.
    pub fn core_ghz(&self) -> f64 {
        let run = |_| {
            let from = self.now();
            let cycles = dependent_additions(10_000);
            cycles as f64 / self.nanoseconds(from, self.now())
        };
        (0..20).map(run).filter(|ghz| ghz.is_finite()).fold(0.0, f64::max)
    }

    /// Lets that many nanoseconds pass without giving up the CPU.
    pub fn spin(&self, nanoseconds: f64) {
        let from = self.now();
        while self.elapsed_ns(from, self.now()) < nanoseconds {
            std::hint::spin_loop();
        }
    }

    /// The facts for a record; measures [`core_ghz`](Clock::core_ghz).
    pub fn facts(&self) -> ClockFacts {
        ClockFacts {
            source: self.source().to_owned(),
            frequency_ghz: (self.source != Source::MonotonicRaw)
                .then(|| crate::rounded::round(1.0 / self.nanoseconds_per_tick)),
            cost_ns: self.cost_ns,
            resolution_ns: self.resolution_ns,
            core_ghz: self.core_ghz(),
        }
    }
}

/// Nanoseconds of CPU that the calling thread has had, in user and in kernel mode: what waiting
/// does not lengthen. A system call, some hundred nanoseconds.
pub fn thread_cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: unlike `CLOCK_MONOTONIC`, no daemon slews it.
fn monotonic_raw_ns() -> u64 {
    compiler_fence(Ordering::SeqCst);
    let time = clock_gettime(ClockId::MonotonicRaw);
    compiler_fence(Ordering::SeqCst);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Makes `blocks` times 16 dependent additions, and says how many. Register plus register: additions of
/// constants are free on some cores (folded at rename).
fn dependent_additions(blocks: usize) -> usize {
    let (mut sum, step) = (1_usize, std::hint::black_box(3));
    for _ in 0..blocks {
        for _ in 0..16 {
            sum = sum.wrapping_add(step);
            // SAFETY: no instruction: the compiler only takes the sum for changed, so that it makes every
            // addition.
            unsafe {
                core::arch::asm!("/* {0} */", inout(reg) sum, options(nomem, nostack, preserves_flags))
            };
        }
    }
    blocks * 16
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::monotonic_raw_ns;
    use core::arch::x86_64::__cpuid;

    /// CPUID 8000_0007 EDX bit 8: constant rate in every P-, C- and T-state.
    pub(super) fn tsc_is_invariant() -> bool {
        let steady =
            || __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        __cpuid(1).edx >> 4 & 1 == 1 && steady()
    }

    #[inline]
    pub(super) fn ordered_tsc() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: RDTSC exists (the constructor asked) and only the named registers change, their upper
        // halves to zero. Memory counts as touched, so that the compiler moves no access across.
        unsafe {
            core::arch::asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
                options(nostack, preserves_flags));
        }
        high << 32 | low
    }

    /// One simultaneous reading of both clocks: the tightest of 32, in (nanoseconds, ticks).
    fn both() -> (u64, u64) {
        let reading = |_| {
            let (before, ticks, after) = (monotonic_raw_ns(), ordered_tsc(), monotonic_raw_ns());
            let width = after.saturating_sub(before);
            (width, before + width / 2, ticks)
        };
        let (_, at, ticks) = (0..32).map(reading).min().unwrap_or_default();
        (at, ticks)
    }

    /// Over 20 ms, an uncertainty of 50 ns at either end is 5 ppm.
    pub(super) fn nanoseconds_per_tick() -> f64 {
        let from = both();
        while monotonic_raw_ns().saturating_sub(from.0) < 20_000_000 {
            std::hint::spin_loop();
        }
        let to = both();
        (to.0 - from.0) as f64 / to.1.saturating_sub(from.1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_at_the_rate_of_the_operating_system() {
        for clock in [Clock::calibrate(), Clock::with_source(Source::MonotonicRaw, 1.0)] {
            // Between two looks at the other clock, however long this thread waited for a CPU there.
            let read = || (monotonic_raw_ns(), clock.now(), monotonic_raw_ns());
            let (before_from, from, after_from) = read();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (before_to, to, after_to) = read();
            let passed = clock.nanoseconds(from, to);
            let (least, most) = (before_to - after_from, after_to - before_from);
            let in_step = 0.9 * least as f64 <= passed && passed <= 1.1 * most as f64;
            assert!(in_step, "{}: {passed} ns, {least} to {most}", clock.source());
            assert!(clock.cost_ns() > 0.0 && clock.resolution_ns() > 0.0);
        }
    }

    #[test]
    fn cost_is_subtracted_and_never_more() {
        let mut clock = Clock::with_source(Source::MonotonicRaw, 1.0);
        clock.cost_ns = 30.0;
        assert_eq!(clock.nanoseconds(Ticks(100), Ticks(150)), 20.0);
        assert_eq!(clock.nanoseconds(Ticks(100), Ticks(110)), 0.0);
        assert_eq!(clock.nanoseconds(Ticks(150), Ticks(100)), 0.0);
        assert_eq!(clock.elapsed_ns(Ticks(100), Ticks(150)), 50.0);
        assert_eq!(clock.facts().frequency_ghz, None);
    }

    #[test]
    fn the_core_has_a_frequency() {
        let ghz = Clock::calibrate().core_ghz();
        assert!((0.05..20.0).contains(&ghz), "{ghz}");
    }
}
