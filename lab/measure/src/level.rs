//! The levels of the memory hierarchy by name, and where an operand is.

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
    #[serde(rename = "DRAM")]
    Dram,
}

impl Level {
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
        let refused = || format!("expected L1, L2, LLC or DRAM, found \"{text}\"");
        Level::ALL.into_iter().find(named).ok_or_else(refused)
    }
}

/// Place of an operand when an operation starts, by the word in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&str")]
pub enum Residency {
    /// Placed in a level, and proved to be there.
    At(Level),
    /// Written and read just before, as far as it fits into the caches.
    Cached,
    Evicted,
    /// Left where the calls just before left it.
    Repeated,
}

/// State that is restored before each sample of a [reused](crate::Slots::reused) operand. A destination is
/// sticky: string instructions leave its lines where they find them, vector stores bring them into the
/// cache, non-temporal stores drive them out. So a candidate's time depends on who ran before it, unless
/// the state is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// Written and read just before, the source read, both as far as they fit into the caches: the
    /// reader of the last call has been there.
    Cached,
    /// Flushed from every level, the source read just before. Of comparisons: both flushed.
    Evicted,
    /// Nothing: it stays where the last call left it, as benchmarks and loops do.
    #[default]
    Repeated,
}

impl Destination {
    pub const ALL: [Destination; 3] =
        [Destination::Cached, Destination::Evicted, Destination::Repeated];
}

impl From<Destination> for Residency {
    fn from(destination: Destination) -> Residency {
        match destination {
            Destination::Cached => Residency::Cached,
            Destination::Evicted => Residency::Evicted,
            Destination::Repeated => Residency::Repeated,
        }
    }
}

impl Residency {
    /// A level's name, or `cached`, `evicted`, `repeated`.
    pub const fn name(self) -> &'static str {
        match self {
            Residency::At(level) => level.name(),
            Residency::Cached => "cached",
            Residency::Evicted => "evicted",
            Residency::Repeated => "repeated",
        }
    }
}

impl From<Level> for Residency {
    fn from(level: Level) -> Residency {
        Residency::At(level)
    }
}

impl From<Residency> for &'static str {
    fn from(residency: Residency) -> &'static str {
        residency.name()
    }
}

impl FromStr for Residency {
    type Err = String;

    fn from_str(text: &str) -> Result<Residency, String> {
        let mut words = [Residency::Cached, Residency::Evicted, Residency::Repeated].into_iter();
        let refused = |_| {
            format!(
                "residency: expected L1, L2, LLC, DRAM, cached, evicted, repeated, found \"{text}\""
            )
        };
        let level = || text.parse().map(Residency::At).map_err(refused);
        words.find(|word| word.name() == text).map_or_else(level, Ok)
    }
}

impl TryFrom<String> for Residency {
    type Error = String;

    fn try_from(text: String) -> Result<Residency, String> {
        text.parse()
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_record_is_read_back_and_no_other_is() {
        for word in ["L1", "L2", "LLC", "DRAM", "cached", "evicted", "repeated"] {
            let read: Residency = serde_json::from_value(word.into()).expect(word);
            assert_eq!(serde_json::to_value(read).expect("text"), word);
        }
        let refused = serde_json::from_value::<Residency>("L9".into()).expect_err("no level");
        assert!(
            refused
                .to_string()
                .contains("expected L1, L2, LLC, DRAM, cached, evicted, repeated, found \"L9\""),
            "{refused}"
        );
    }
}
