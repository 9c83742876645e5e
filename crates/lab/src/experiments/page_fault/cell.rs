//! How many pages are handed out, touched how far, by how many threads, how often.

use cachewise_kernels::PAGE_SIZE;

/// Lines of a page.
pub(super) const PAGE_LINES: usize = PAGE_SIZE / 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) pages: usize,
    pub(super) lines: usize,
    pub(super) threads: usize,
    pub(super) reps: usize,
}

impl Cell {
    /// How long it takes, in arbitrary units: preparing and reading count like one repetition.
    pub(super) fn weight(&self) -> f64 {
        (self.reps + 1) as f64 / self.threads as f64
    }
}
