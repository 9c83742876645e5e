//! Who looks on while the laboratory works: progress out, Ctrl-C in.

use cachewise_measure::{Progress, Watch};

/// Told how far a run is, asked whether to stop. The command line draws a bar from it.
pub trait Observer {
    /// The work ahead, in arbitrary units, and what it is.
    fn begin(&mut self, what: &str, units: f64);
    /// A piece of it was done.
    fn advance(&mut self, what: &str, units: f64);
    /// Whether to stop; asked between samples.
    fn cancelled(&self) -> bool;
}

/// Nobody looks on, and nobody stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn begin(&mut self, _what: &str, _units: f64) {}
    fn advance(&mut self, _what: &str, _units: f64) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// The sampler's view of an observer.
pub(crate) struct Lookout<'o> {
    observer: &'o mut dyn Observer,
}

impl<'o> Lookout<'o> {
    pub(crate) fn new(observer: &'o mut dyn Observer) -> Lookout<'o> {
        Lookout { observer }
    }
}

impl Watch for Lookout<'_> {
    fn cancelled(&self) -> bool {
        self.observer.cancelled()
    }

    fn progress(&mut self, _progress: Progress<'_>) {}
}
