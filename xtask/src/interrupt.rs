//! Ctrl-C in a chore that takes long: what is finished is kept; and how long the rest will take.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Status of a chore that the user ended.
pub const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C came. The programs that run at the moment get it too, as the terminal's.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ctrl-C no longer ends this process by itself: it ends the program that runs, and then this
    /// one stops by its own. A second one ends it.
    pub fn new() -> Result<Interrupt> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let second = Arc::clone(&came);
            signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, second)?;
            signal_hook::flag::register(signal, Arc::clone(&came))?;
        }
        Ok(Interrupt(came))
    }

    /// Whether it came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What tells, for whoever waits in a loop.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Says what is begun and, from what the others took, how long the rest will take.
pub fn progress(name: &str, done: usize, all: usize, began: Instant) {
    let left = left(done, all, began.elapsed().as_secs_f64());
    eprintln!("{name}: {} of {all}{left}", done + 1);
}

fn left(done: usize, all: usize, took: f64) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = took / done as f64 * (all - done) as f64;
    match seconds {
        0.0..90.0 => format!(", some {seconds:.0} s left"),
        _ => format!(", some {:.0} min left", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_what_is_done() {
        assert_eq!(left(0, 5, 0.1), "");
        assert_eq!(left(2, 5, 20.0), ", some 30 s left");
        assert_eq!(left(1, 5, 60.0), ", some 4 min left");
    }
}
