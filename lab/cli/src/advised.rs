//! Records of `advise`: their names, and the tables that are drawn from them.

mod memory;
mod table;

pub use table::{CPU_TIME, FATES, JUDGED_BY, programs};

use cachewise_measure::Record;
use cachewise_report::Table;

pub const EXPERIMENT: &str = "advise";

/// The record's tables: of a race for speed or, with a goal, for less memory.
pub fn tables(record: &Record) -> Vec<Table> {
    match record.header.settings.contains_key("goal") {
        true => memory::tables(record),
        false => table::tables(record),
    }
}
