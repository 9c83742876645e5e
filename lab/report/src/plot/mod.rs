//! A record's figures as data: panels, series, points. What draws them (SVG, text) decides nothing
//! but how they look.

mod build;
mod data;
pub mod fixtures;
mod scale;
mod value;

pub(crate) use build::cell_caption;
pub use build::{figures, plot, plots};
pub(crate) use data::Bar;
pub use data::{Axis, Key, Panel, Plot, Point, Series, agree_on_colours};
pub(crate) use scale::{Scale, longest_bar, range};
pub use value::{Quantity, Spread, Unit};
