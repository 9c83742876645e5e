//! Time: the TSC where it is invariant, else `CLOCK_MONOTONIC_RAW`.
//!
//! A reading is ordered on both sides (`lfence; rdtsc; lfence`): nothing before it is still
//! executing, nothing after it has started (Intel SDM volume 2B, RDTSC; AMD APM volume 3, LFENCE
//! as dispatch-serialising, which Linux enables). Stores may still wait in the store buffer; a
//! kernel with non-temporal stores fences itself, and the reader pays for the rest.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point in time, in the clock's own units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// A calibrated clock. Copying it is cheap; calibrating takes about 25 ms.
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
    /// Ticks per nanosecond; `None` for the operating system's clock.
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
    /// Chooses the source, measures its frequency against `CLOCK_MONOTONIC_RAW`, its cost and its
    /// resolution.
    pub fn calibrate() -> Clock {
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
        let mut clock = Clock {
            source,
            nanoseconds_per_tick,
            cost_ns: 0.0,
            resolution_ns: nanoseconds_per_tick,
        };
        let mut steps: Vec<u64> = Vec::with_capacity(4096);
        for _ in 0..4096 {
            let from = clock.now();
            let to = clock.now();
            steps.push(to.0.saturating_sub(from.0));
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
    pub fn now(&self) -> Ticks {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc => Ticks(x86::ordered_tsc()),
            Source::MonotonicRaw => Ticks(monotonic_raw_ns()),
        }
    }

    /// Nanoseconds between two readings, less the cost of one reading, never below 0.
    #[inline]
    pub fn nanoseconds(&self, from: Ticks, to: Ticks) -> f64 {
        (self.elapsed_ns(from, to) - self.cost_ns).max(0.0)
    }

    /// Nanoseconds between two readings with nothing subtracted; 0 if they are out of order.
    #[inline]
    pub fn elapsed_ns(&self, from: Ticks, to: Ticks) -> f64 {
        to.0.saturating_sub(from.0) as f64 * self.nanoseconds_per_tick
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

    /// Ticks per nanosecond of the TSC, which is not the core's frequency.
    pub fn frequency_ghz(&self) -> Option<f64> {
        (self.source != Source::MonotonicRaw).then(|| 1.0 / self.nanoseconds_per_tick)
    }

    /// Core cycles per nanosecond right now, from a chain of dependent additions: the best of
    /// twenty runs of about 50 microseconds, since whatever disturbs a run only slows it.
    ///
    /// The chain takes one cycle per addition on x86-64 and aarch64. Elsewhere it is compiled
    /// code of assumed length, good to a factor.
    pub fn core_ghz(&self) -> f64 {
        const BLOCKS: u64 = 10_000;
        let mut best = 0.0_f64;
        for _ in 0..20 {
            let from = self.now();
            let cycles = dependent_additions(BLOCKS);
            let to = self.now();
            let elapsed = self.nanoseconds(from, to);
            if elapsed > 0.0 {
                best = best.max(cycles as f64 / elapsed);
            }
        }
        best
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
            frequency_ghz: self.frequency_ghz().map(crate::rounded::round),
            cost_ns: self.cost_ns,
            resolution_ns: self.resolution_ns,
            core_ghz: self.core_ghz(),
        }
    }
}

/// Nanoseconds of CPU that the calling thread has had, in user and in kernel mode: what waiting
/// does not lengthen. A system call, some hundred nanoseconds.
pub fn thread_cpu_ns() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: unlike `CLOCK_MONOTONIC`, no daemon slews it.
fn monotonic_raw_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    let time = clock_gettime(ClockId::MonotonicRaw);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    let elapsed = Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32);
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs `blocks` times 16 dependent additions and returns the cycles they should take.
/// Register plus register: additions of constants are free on some cores (folded at rename).
#[cfg(target_arch = "x86_64")]
fn dependent_additions(blocks: u64) -> u64 {
    // SAFETY: only registers are touched, all of them declared.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 16",
            "add {sum}, {step}",
            ".endr",
            "dec {left}",
            "jnz 2b",
            sum = inout(reg) 1_u64 => _,
            step = in(reg) 3_u64,
            left = inout(reg) blocks.max(1) => _,
            options(nomem, nostack)
        );
    }
    blocks.max(1) * 16
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
fn dependent_additions(blocks: u64) -> u64 {
    // SAFETY: only registers are touched, all of them declared.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 16",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            sum = inout(reg) 1_u64 => _,
            step = in(reg) 3_u64,
            left = inout(reg) blocks.max(1) => _,
            options(nomem, nostack)
        );
    }
    blocks.max(1) * 16
}

/// A chain the compiler cannot shorten: a rotation, an exclusive or and an addition, four cycles
/// where each takes one and the counter hides beside them.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn dependent_additions(blocks: u64) -> u64 {
    let step = std::hint::black_box(3_u64);
    let mut sum = 1_u64;
    for _ in 0..blocks.max(1) * 4 {
        sum = (sum.rotate_left(7) ^ step).wrapping_add(step);
    }
    std::hint::black_box(sum);
    blocks.max(1) * 4 * 4
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::monotonic_raw_ns;
    use raw_cpuid::CpuId;

    /// CPUID 8000_0007 EDX bit 8: constant rate in every P-, C- and T-state.
    pub(super) fn tsc_is_invariant() -> bool {
        let cpuid = CpuId::new();
        let has_tsc = cpuid.get_feature_info().is_some_and(|info| info.has_tsc());
        let steady = cpuid.get_advanced_power_mgmt_info();
        has_tsc && steady.is_some_and(|info| info.has_invariant_tsc())
    }

    #[inline]
    pub(super) fn ordered_tsc() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: RDTSC exists (the constructor asked) and only the named registers change. Memory
        // counts as touched, so that the compiler moves no access across.
        unsafe {
            core::arch::asm!(
                "lfence",
                "rdtsc",
                "lfence",
                out("eax") low,
                out("edx") high,
                options(nostack, preserves_flags)
            );
        }
        u64::from(high) << 32 | u64::from(low)
    }

    /// One simultaneous reading of both clocks: the tightest of 32, in (nanoseconds, ticks).
    fn both() -> (u64, u64) {
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..32 {
            let before = monotonic_raw_ns();
            let ticks = ordered_tsc();
            let after = monotonic_raw_ns();
            let width = after.saturating_sub(before);
            if width < best.0 {
                best = (width, before + width / 2, ticks);
            }
        }
        (best.1, best.2)
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
            std::thread::sleep(Duration::from_millis(20));
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
        assert_eq!(clock.frequency_ghz(), None);
    }

    #[test]
    fn the_core_has_a_frequency() {
        let ghz = Clock::calibrate().core_ghz();
        assert!((0.05..20.0).contains(&ghz), "{ghz}");
    }
}
