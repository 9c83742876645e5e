//! One candidate visited alone: for a search that decides after each visit whom to visit next, as the tuner does,
//! and so has no rounds of all.
//!
//! A sample is a time, or the mean of several where the clock's steps are long. Those during which the thread did
//! not run are left out.

use crate::Clock;
use crate::clock::thread_cpu_ns;
use crate::stats::median;
use std::time::{Duration, Instant};

/// An operation and what follows it, in nanoseconds.
pub type Parts = [f64; 2];

/// A sample shorter than this is over before anybody else runs; the clocks of the thread cost more.
const WATCHED_NS: f64 = 20_000.0;

/// A sample is disturbed when the thread did not run for more than this part of it.
const STOLEN: f64 = 0.05;

/// Conditions of a visit's samples.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    clock: Clock,
    /// True if it is asked how long the thread ran.
    watched: bool,
    longest: Duration,
}

impl Visit {
    /// Samples that take so many nanoseconds at the least, in a search that has a budget of so many seconds.
    pub fn new(clock: &Clock, at_least_ns: f64, budget: f64) -> Visit {
        Visit { clock: *clock, watched: at_least_ns > WATCHED_NS, longest: longest(budget) }
    }

    /// Times an operation and what follows it, if anything does; `None` where the thread did not run all the time.
    pub fn parts(&self, operation: impl FnOnce(), after: Option<impl FnOnce()>) -> Option<Parts> {
        let clock = &self.clock;
        let time = || {
            let begun = clock.now();
            operation();
            let called = clock.now();
            let Some(after) = after else { return [clock.nanoseconds(begun, called), 0.0] };
            after();
            [clock.nanoseconds(begun, called), clock.nanoseconds(called, clock.now())]
        };
        if !self.watched {
            return Some(time());
        }
        let (wall, own) = (clock.now(), thread_cpu_ns());
        let parts = time();
        let (own, wall) = (thread_cpu_ns() - own, clock.elapsed_ns(wall, clock.now()));
        // The thread's clock counts in steps of its own, and stands still in a hypervisor's debt only
        // where the kernel is told.
        (wall - own <= STOLEN * wall + 2_000.0).then_some(parts)
    }

    /// Takes times until the operation's mean is known in spite of the clock's steps, or it has been long
    /// enough; one time at least. `None` where the first was disturbed.
    ///
    /// # Errors
    /// Returns the first error of `take`.
    pub fn sample<E>(
        &self,
        take: impl FnMut() -> Result<Option<Parts>, E>,
    ) -> Result<Option<Parts>, E> {
        let begun = Instant::now();
        sample(self.clock.resolution_ns(), || begun.elapsed() > self.longest, take)
    }
}

/// Part of itself to which a sample is known as far as the clock's steps go: a fifth of what one round
/// of a small operation scatters.
const PRECISE: f64 = 0.01;

/// Samples of a minute's tuning, about: its record has the figures of 44,000 to 90,000 visits
/// (`record/*-tune-quick-*`), most of them the median of seven.
const SAMPLES: f64 = 500_000.0;

/// Time that a sample may go on against the clock's steps: all samples of a tuning together take no more
/// than its budget, so that a coarse clock makes intervals wider and no tuning longer.
fn longest(budget: f64) -> Duration {
    Duration::from_secs_f64((budget / SAMPLES).clamp(0.0, 1.0))
}

/// Takes times (operation, what follows it) until the operation's mean is known in spite of the clock's
/// `step` or `is_over` says that it has been long enough; one time at least. `None` where the first was
/// disturbed.
fn sample<E>(
    step: f64,
    is_over: impl Fn() -> bool,
    mut take: impl FnMut() -> Result<Option<Parts>, E>,
) -> Result<Option<Parts>, E> {
    let mut times = Vec::new();
    while let Some(time) = take()? {
        times.push(time);
        // At powers of two, since looking takes time.
        if is_over() || (times.len().is_power_of_two() && is_precise(&times, step)) {
            break;
        }
    }
    Ok(mean(&times, step))
}

/// Returns whether the mean of some times is precise. Both ends of a time lie anywhere in a step, which leaves
/// each time with a standard deviation of a step over the root of 6.
fn is_precise(times: &[[f64; 2]], step: f64) -> bool {
    let deviation = step / (6.0 * times.len() as f64).sqrt();
    mean(times, step).is_some_and(|[operation, _]| deviation <= PRECISE * operation)
}

/// The mean of a sample's times, without those that something else has a part in; `None` for none. An
/// interrupt's length is the machine's: what is over twice the middle time by more than the clock's step
/// was not the operation alone, however short the interrupt. A median would not see it either.
fn mean(times: &[[f64; 2]], step: f64) -> Option<[f64; 2]> {
    let whole = |[operation, after]: &[f64; 2]| operation + after;
    let middle = median(&times.iter().map(whole).collect::<Vec<_>>());
    // Differences of two walks may be below 0.
    let most = middle + middle.abs() + 1.5 * step;
    let calm: Vec<_> = times.iter().filter(|time| whole(time) <= most).collect();
    let part = |of: usize| calm.iter().map(|time| time[of]).sum::<f64>() / calm.len() as f64;
    // An operation of no time at all is below what so many times by this clock can tell.
    (!calm.is_empty()).then(|| [part(0).max(step / calm.len() as f64), part(1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::cell::Cell;

    /// A machine whose operation takes 33 ns, by a clock of such steps; one time in a hundred has an
    /// interrupt in it; each takes a microsecond to set up.
    fn medians(step: f64, interrupt: f64, budget: f64) -> (f64, f64) {
        let mut random = Rng::with_seed(1);
        let (now, longest) = (Cell::new(0.0), longest(budget).as_secs_f64() * 1e9);
        let mut most = 0.0f64;
        let samples: Vec<f64> = (0..101)
            .map(|_| {
                let begun = now.get();
                let take = || {
                    let begun = now.get() + 1000.0 + step * random.f64();
                    let extra = if random.usize(0..100) == 0 { interrupt } else { 0.0 };
                    now.set(begun + 33.0 + extra);
                    let read = |moment: f64| (moment / step).floor() * step;
                    Ok::<_, ()>(Some([read(now.get()) - read(begun), 0.0]))
                };
                let found = sample(step, || now.get() - begun > longest, take).expect("no error");
                most = most.max(now.get() - begun);
                found.expect("times")[0]
            })
            .collect();
        (median(&samples), most / longest)
    }

    /// Steps of a good TSC, of an Arm counter at 24 MHz, of an HPET, and long ones; interrupts of half a
    /// microsecond and of a guest that exits to its host.
    #[test]
    fn clocks_of_long_steps_and_interrupts_of_any_length_are_averaged_out() {
        for step in [0.4, 10.0, 41.7, 70.0, 100.0] {
            for interrupt in [500.0, 2_000.0, 20_000.0, 300_000.0] {
                let (found, _) = medians(step, interrupt, 60.0);
                let wrong = (found / 33.0 - 1.0).abs();
                assert!(wrong < 0.05, "{found} by steps of {step}, interrupts of {interrupt}");
            }
        }
    }

    /// Whatever the clock, a sample ends; a longer tuning has longer ones, and knows more.
    #[test]
    fn a_coarse_clock_takes_no_more_than_the_budget() {
        let (_, most) = medians(1_000.0, 500.0, 60.0);
        assert!(most < 1.1, "{most} of what it may take");
        let (found, _) = medians(1_000.0, 20_000.0, 3600.0);
        assert!((found / 33.0 - 1.0).abs() < 0.1, "{found}");
    }

    /// Both parts are there, whether or not the thread is watched.
    #[test]
    fn an_operation_and_what_follows_it_are_timed_apart() {
        let clock = Clock::of_process();
        for at_least in [0.0, 1e6] {
            let visit = Visit::new(&clock, at_least, 60.0);
            let spin = |nanoseconds| move || clock.spin(nanoseconds);
            // Another thread may have had the CPU.
            let parts = (0..100).find_map(|_| visit.parts(spin(3e4), Some(spin(1e4))));
            let [operation, after] = parts.expect("one in a hundred runs through");
            assert!(operation >= 2.9e4 && after >= 0.9e4, "{operation} {after}");
            let alone = (0..100).find_map(|_| visit.parts(spin(1e4), None::<fn()>));
            assert_eq!(alone.expect("one runs through")[1], 0.0);
        }
    }

    #[test]
    fn one_time_is_enough_where_it_is_many_steps() {
        let calls = Cell::new(0);
        let take = |time: f64| {
            calls.set(0);
            let count = || {
                calls.set(calls.get() + 1);
                Ok::<_, ()>((calls.get() < 5).then_some([time, -9e3]))
            };
            sample(10.0, || false, count).expect("no error")
        };
        assert_eq!((take(500.0), calls.get()), (Some([500.0, -9e3]), 1));
        assert_eq!((take(0.0), calls.get()), (Some([2.5, -9e3]), 5), "a disturbed one ends it");
        assert_eq!(sample(10.0, || false, || Ok::<_, ()>(None)).expect("no error"), None);
    }
}
