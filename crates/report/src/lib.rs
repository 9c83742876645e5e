//! Records drawn as terminal tables, CSV and Markdown; pure functions, no measuring.
//!
//! Everything here can redraw any old record: it reads the record's rows and nothing else.
#![warn(missing_docs)]

pub mod kernels;
pub mod matrix;
pub mod table;
pub mod tuning;
pub mod units;

pub use table::{Align, Table};
