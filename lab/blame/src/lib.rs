//! The stacks that page faults, copies or resident memory of a program come from.
//!
//! The kernel's software events are sampled (perf_event_open(2)), which guests have too, each sample with registers and a
//! copy of the stack. `framehop` unwinds it, `blazesym` names its functions; what a runtime compiled is named by its
//! perf map. Nothing is loaded into the program.
#![warn(missing_docs)]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod events;
mod recording;
mod resident;
mod symbols;
mod unwind;

pub use events::Refused;
pub use recording::Recording;

use std::collections::BTreeMap;

/// The quantity that stacks are blamed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blamed {
    /// Page faults.
    Faults,
    /// CPU time in copies, fills and comparisons.
    Copies,
    /// Memory that is resident in the last part of the run, by its page faults.
    Memory,
}

impl Blamed {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Blamed::Faults => "faults",
            Blamed::Copies => "copies",
            Blamed::Memory => "memory",
        }
    }

    /// The unit of a stack's count.
    pub fn unit(self) -> &'static str {
        match self {
            Blamed::Faults => "page faults",
            Blamed::Copies => "microseconds of CPU",
            Blamed::Memory => "KiB",
        }
    }
}

/// Stacks with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Functions from the program to the innermost one, between semicolons, with their count.
    pub folded: BTreeMap<String, u64>,
    /// Samples that they were estimated from.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples whose stack ended early.
    pub truncated: u64,
    /// True if faults inside of system calls are missing: seeing them takes a privilege.
    pub without_kernel: bool,
}

impl Stacks {
    /// The lines that other tools read: a stack, a space, a count.
    pub fn lines(&self) -> String {
        self.folded.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.folded.values().sum()
    }

    /// Functions by the count of the stacks that they stand in, the largest first.
    pub fn functions(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, count) in &self.folded {
            let names: std::collections::BTreeSet<&str> = stack.split(';').skip(1).collect();
            for name in names {
                *sums.entry(name).or_default() += count;
            }
        }
        let mut all: Vec<(String, u64)> =
            sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let folded = [("p;main;f;f", 3), ("p;main;g", 2)];
        let folded = folded.map(|(stack, count)| (stack.to_owned(), count)).into();
        let stacks = Stacks { folded, ..Stacks::default() };
        let named = |name: &str, count| (name.to_owned(), count);
        assert_eq!(stacks.functions(), [named("main", 5), named("f", 3), named("g", 2)]);
        assert_eq!(stacks.lines(), "p;main;f;f 3\np;main;g 2\n");
        assert_eq!(stacks.total(), 5);
    }
}
