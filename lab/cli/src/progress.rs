//! The live line on stderr: what is being done, how far, how long still; and Ctrl-C.

use crate::output;
use anyhow::Context;
use cachewise_experiments::recorder::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::c_int;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Draws the bar and knows whether the user wants to stop.
pub struct Bar {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    what: String,
    units: f64,
    done: f64,
    /// The greatest share that [`Bar::expected`] has shown.
    shown: f64,
    begun: Instant,
    plain: bool,
    said: Instant,
    /// The launch that this process is, and the number of all: others are before it and after it.
    pub launch: Option<(u32, u32)>,
}

/// Set by Ctrl-C, for all bars of this process.
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Returns whether the user wants to stop.
pub fn is_stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Resolution of the bar.
const STEPS: f64 = 10_000.0;

/// Without a terminal a line is said this often, so that a log shows that it lives.
const PLAIN_EVERY: Duration = Duration::from_secs(15);

impl Bar {
    /// Ready to draw; installs the Ctrl-C handler. The first Ctrl-C asks the run to stop and keep
    /// what is finished, the second ends the process at once. So does a terminal that is closed; what
    /// was ignored before (`nohup`) stays ignored.
    pub fn new() -> anyhow::Result<Bar> {
        let stop = Arc::clone(&STOP);
        let ends = [SIGINT, SIGTERM, SIGHUP];
        for signal in ends.into_iter().filter(|signal| !is_ignored(*signal)) {
            let status = i32::from(crate::status::INTERRUPTED);
            flag::register_conditional_shutdown(signal, status, Arc::clone(&stop))
                .and_then(|_| flag::register(signal, Arc::clone(&stop)))
                .context("cannot handle Ctrl-C")?;
        }
        let plain = !std::io::stderr().is_terminal();
        let target = match plain {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(8),
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
        let style = ProgressStyle::with_template("{msg:40!} {wide_bar} {percent:>3} % {prefix}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let now = Instant::now();
        Ok(Bar {
            bar,
            stop,
            what: String::new(),
            units: 1.0,
            done: 0.0,
            shown: 0.0,
            begun: now,
            plain,
            said: now,
            launch: None,
        })
    }

    /// Flag that Ctrl-C sets.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Removes the line, as the end of the bar does.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows how far work is that knows how many seconds it is expected to take from now on: a longer
    /// estimate takes nothing back of what was shown.
    pub fn expected(&mut self, what: &str, spent: f64, left: f64) {
        let share = (spent / (spent + left).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        self.shown = self.shown.max(share);
        self.show(what, self.shown, &format!("{left:.0} s left"), self.what != what);
        what.clone_into(&mut self.what);
    }

    /// Draws how far it is; without a terminal says so where it is new, or time for a line.
    fn show(&mut self, what: &str, share: f64, left: &str, is_new: bool) {
        self.bar.set_position((share * STEPS) as u64);
        self.bar.set_message(what.to_owned());
        self.bar.set_prefix(left.to_owned());
        if self.plain && (is_new || self.said.elapsed() >= PLAIN_EVERY) {
            output::tell(&format!("cachewise: {what}, {:.0} %, {left}", share * 100.0));
            self.said = Instant::now();
        }
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| output::tell(line));
    }

    /// Part of this stage that is done, or of all launches together.
    fn share(&self) -> f64 {
        let share = (self.done / self.units).clamp(0.0, 1.0);
        self.launch.map_or(share, |(which, many)| (f64::from(which - 1) + share) / f64::from(many))
    }

    /// Time left, from the work done so far in this stage.
    fn left(&self) -> String {
        let elapsed = self.begun.elapsed().as_secs_f64();
        if self.done < self.units * 0.02 || elapsed < 0.5 {
            return String::new();
        }
        let whole = elapsed * self.units / self.done;
        let after = self.launch.map_or(0, |(which, many)| many - which);
        let left = whole - elapsed + f64::from(after) * whole;
        format!("{:.0} s left", left.max(0.0))
    }
}

impl Progress for Bar {
    fn begin(&mut self, what: &str, units: f64) {
        self.what = match self.launch {
            None => what.to_owned(),
            Some((which, many)) => format!("{what}, launch {which} of {many}"),
        };
        self.units = units.max(f64::MIN_POSITIVE);
        self.done = 0.0;
        self.begun = Instant::now();
        self.bar.set_position((self.share() * STEPS) as u64);
        self.bar.set_prefix("");
        self.bar.set_message(self.what.clone());
        if self.plain {
            output::tell(&format!("cachewise: {}", self.what));
            self.said = Instant::now();
        }
    }

    fn advance(&mut self, what: &str, units: f64) {
        self.done += units;
        let share = self.share();
        let what = format!("{}: {what}", self.what);
        self.show(&what, share, &self.left(), false);
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Returns whether the program that started this wants it to go on after that signal.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zero is a sigaction.
    let mut now = unsafe { std::mem::zeroed::<libc::sigaction>() };
    // SAFETY: nothing is set, and `now` is writable.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}
