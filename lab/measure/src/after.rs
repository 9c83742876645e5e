//! The cost of a kernel to the code after it. Some CPUs lower a core's clock once it has used vectors of 64 bytes, and keep it low
//! for up to 2 ms; they may take half of one to lower it (Intel 64 and IA-32 Architectures Optimization
//! Reference Manual, "Skylake Server Power Management"). No time of a kernel shows that, and where kernels take turns
//! libc pays as well.

use crate::{Clock, PairedRatio};
use cachewise_judge::margin::ROW;
use cachewise_kernels::Function;
use std::time::{Duration, Instant};

const UNTIL_RAISED: Duration = Duration::from_millis(3);
const UNTIL_LOWERED: Duration = Duration::from_millis(1);

/// Integers long enough for a lowered clock to be raised, then the call long enough for it to be lowered.
pub fn prepare(mut call: impl FnMut()) {
    let mut waited = 0u64;
    let begun = Instant::now();
    while begun.elapsed() < UNTIL_RAISED {
        waited = std::hint::black_box(waited.wrapping_add(1));
    }
    let begun = Instant::now();
    while begun.elapsed() < UNTIL_LOWERED {
        call();
    }
}

/// Some 30 us of integer work: multiplications that each wait for the one before.
pub fn work() {
    const STEPS: u64 = 1 << 15;
    let product = (0..STEPS).fold(1u64, |x, step| {
        std::hint::black_box(x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(step))
    });
    std::hint::black_box(product);
}

const BYTES: usize = 4096;

/// The time that integer work takes after a copy, over that after another copy, in turns.
///
/// # Safety
/// This CPU can run both.
pub unsafe fn of_copies(clock: &Clock, wide: Function, plain: Function) -> PairedRatio {
    const ROUNDS: usize = 15;
    let (src, mut dst) = (vec![1u8; BYTES], vec![0u8; BYTES]);
    let mut took = |function: Function| {
        prepare(|| {
            if let Function::Copy(copy) = function {
                // SAFETY: both are valid for so many bytes and apart, and this CPU runs it.
                std::hint::black_box(unsafe { copy(dst.as_mut_ptr(), src.as_ptr(), BYTES) });
            }
        });
        clock.time(work)
    };
    let rounds = (0..ROUNDS).map(|_| (took(wide), took(plain)));
    let (wide, plain): (Vec<f64>, Vec<f64>) = rounds.unzip();
    PairedRatio::paired(&wide, &plain)
}

/// Tells whether that shows a lower clock: those are lowered by steps of 100 MHz, which is more than a hundredth.
pub fn shows_a_lower_clock(ratio: &PairedRatio) -> bool {
    ratio.low > 1.0 + ROW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_interval_shows_is_no_lower_clock() {
        let of = |low, median, high| PairedRatio { median, low, high, rounds: 15 };
        assert!(!shows_a_lower_clock(&of(0.97, 1.07, 1.2)), "noise");
        assert!(!shows_a_lower_clock(&of(1.001, 1.004, 1.009)), "less than any step");
        assert!(shows_a_lower_clock(&of(1.05, 1.07, 1.09)));
    }
}
