//! The learner against programs whose right answer is known: simulated caches, simulated time.

mod programs;
mod verdicts;
mod world;
