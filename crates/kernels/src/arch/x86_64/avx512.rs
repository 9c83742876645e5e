//! to be written
use crate::table::Kernel;
pub(crate) const ROWS: &[Kernel] = &[];
