//! How sizes, rates and times are written: one formatter for all, which `measure` has.

pub use cachewise_measure::units::*;
