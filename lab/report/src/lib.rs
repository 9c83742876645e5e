//! Records drawn as terminal tables and plots, CSV, Markdown, SVG and one HTML page, and compared with each other; pure
//! functions, no measuring.
//!
//! Everything here can redraw any old record: it reads the record's rows, and what an experiment says of
//! them ([`Said`]). It knows no experiment by name.

pub mod advice;
pub mod cells;
pub mod closing;
pub mod compare;
pub mod cost;
pub mod crossover;
pub mod foreign;
pub mod grid;
pub mod html;
pub mod kernels;
pub mod matrix;
pub mod pairs;
pub mod plot;
pub mod rows;
mod said;
pub mod svg;
pub mod table;
pub mod text;

/// One formatter for sizes, rates and times.
pub use cachewise_measure::units;
pub use said::Said;
pub use table::{Align, Table};
