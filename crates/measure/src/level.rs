//! The levels of the memory hierarchy by name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A level of the memory hierarchy, from one core's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Level 1 data cache.
    L1,
    /// Level 2 cache.
    L2,
    /// The last-level cache of the core complex; the L2 where there is no L3.
    #[serde(rename = "LLC")]
    Llc,
    /// Memory.
    #[serde(rename = "DRAM")]
    Dram,
}

impl Level {
    /// Every level, nearest first.
    pub const ALL: [Level; 4] = [Level::L1, Level::L2, Level::Llc, Level::Dram];

    /// `L1`, `L2`, `LLC` or `DRAM`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::L1 => "L1",
            Level::L2 => "L2",
            Level::Llc => "LLC",
            Level::Dram => "DRAM",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        let named = |level: &Level| level.name().eq_ignore_ascii_case(text.trim());
        let refused = || format!("\"{text}\" is no level; accepted: L1, L2, LLC, DRAM");
        Level::ALL.into_iter().find(named).ok_or_else(refused)
    }
}
