//! A profile read by the compiler: the lines of its text as slots and numbers. Reading the text takes a
//! process tens of microseconds of its start.
//!
//! Only for texts that [`ProfileText`](crate::profile::ProfileText) accepts: the tests hold every
//! shipped one against what it says.

use crate::cpu::{Caches, Identity};
use crate::entry::choice::KINDS;
use crate::follow::{self, Resolved, Routine};
use crate::names;
use crate::profile::{LIBC, MAX_SIZE, OPERATIONS, Parallel, Supply};
use crate::reuse::Reuse;
use crate::slots::{self, Slot};
use cachewise_kernels::{Features, Operation, TABLE};
use core::cell::OnceCell;

/// More lines of a kind than any of them has.
const MOST: usize = 64;

/// Contents of a profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiled {
    decisions: List<Resolved>,
    entries: List<(Operation, u8)>,
    parallel: List<Parallel>,
    /// Features that its kernels and entries need; `None` where this architecture lacks one of them.
    requires: Option<Features>,
}

#[derive(Clone, Copy, Debug)]
struct List<T> {
    lines: [Option<T>; MOST],
    length: usize,
}

impl<T: Copy> List<T> {
    const fn with(mut self, line: T) -> List<T> {
        self.lines[self.length] = Some(line);
        self.length += 1;
        self
    }

    fn iter(&self) -> impl Iterator<Item = T> {
        self.lines.iter().map_while(|line| *line)
    }
}

impl Compiled {
    /// Reads a text.
    pub(crate) const fn of(mut text: &[u8]) -> Compiled {
        let mut read = Compiled {
            decisions: List { lines: [None; MOST], length: 0 },
            entries: List { lines: [None; MOST], length: 0 },
            parallel: List { lines: [None; MOST], length: 0 },
            requires: Some(Features::NONE),
        };
        while let Some((line, rest)) = names::split(text, b'\n') {
            text = rest;
            read = read.with(line);
        }
        read
    }

    const fn with(mut self, line: &[u8]) -> Compiled {
        let (key, rest) = word(line);
        match key {
            b"decide" => {
                let (operation, rest) = word(rest);
                let (reuse, rest) = word(rest);
                let (from, rest) = word(rest);
                let (to, rest) = word(rest);
                let (name, nearest) = word(rest);
                let operation = named_operation(operation);
                let routine = if names::equal(name, LIBC.as_bytes()) {
                    Routine::Libc(match nearest {
                        b"" => None,
                        nearest => Some(self.kernel(operation, nearest)),
                    })
                } else {
                    Routine::Kernel(self.kernel(operation, name))
                };
                let reuse = named_reuse(reuse);
                let (from, to) = (number(from), number(to));
                let line = Resolved { operation, reuse, from, to, routine };
                self.decisions = self.decisions.with(line);
            }
            b"entry" => {
                let (operation, name) = word(rest);
                let operation = named_operation(operation);
                if let Some(way) = self.entry(name) {
                    self.entries = self.entries.with((operation, way));
                }
            }
            b"parallel" => {
                let (operation, rest) = word(rest);
                let (supply, rest) = word(rest);
                let (threads, from) = word(rest);
                let line = Parallel {
                    operation: named_operation(operation),
                    supply: match supply {
                        b"spawned" => Supply::Spawned,
                        _ => Supply::Pooled,
                    },
                    threads: number(threads) as u32,
                    from: match from {
                        b"never" => None,
                        from => Some(number(from)),
                    },
                };
                self.parallel = self.parallel.with(line);
            }
            // About whom it is for, and where it comes from.
            _ => {}
        }
        self
    }

    /// The slot of a kernel, which is needed from now on.
    const fn kernel(&mut self, operation: Operation, name: &[u8]) -> Slot {
        let mut at = 0;
        while at < TABLE.len() {
            if names::equal(TABLE[at].name.as_bytes(), name) {
                self.require(TABLE[at].requires);
            }
            at += 1;
        }
        let slot = match names::split(name, b'.') {
            Some((_, technique)) => slots::named(operation, technique),
            None => Slot::BOOT,
        };
        if slot.is_boot() {
            self.requires = None;
        }
        slot
    }

    /// The number of an entry, which is needed from now on.
    const fn entry(&mut self, name: &[u8]) -> Option<u8> {
        let mut way = 0;
        while way < KINDS.len() {
            if names::equal(KINDS[way].name.as_bytes(), name) {
                self.require(KINDS[way].requires);
                return Some(way as u8);
            }
            way += 1;
        }
        self.requires = None;
        None
    }

    const fn require(&mut self, more: Features) {
        if let Some(requires) = self.requires {
            self.requires = Some(requires.and(more));
        }
    }

    /// As [`Shipped::follow`](super::Shipped::follow).
    pub(crate) fn follow(&self, identity: &Identity, caches: &OnceCell<Caches>) -> Option<u16> {
        if !identity.features.contains(self.requires?) {
            return None;
        }
        let (parallel, entries) = (self.parallel.iter(), self.entries.iter());
        Some(follow::follow_lines(parallel, entries, self.decisions.iter(), identity, caches))
    }
}

/// Splits a line at its first space.
const fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match names::split(line, b' ') {
        Some(parts) => parts,
        None => (line, b""),
    }
}

const fn number(text: &[u8]) -> u64 {
    if names::equal(text, b"max") {
        return MAX_SIZE;
    }
    let (mut value, mut at) = (0, 0);
    while at < text.len() {
        assert!(text[at].is_ascii_digit());
        value = 10 * value + (text[at] - b'0') as u64;
        at += 1;
    }
    value
}

const fn named_operation(name: &[u8]) -> Operation {
    let mut at = 0;
    while !names::equal(OPERATIONS[at].name().as_bytes(), name) {
        at += 1;
    }
    OPERATIONS[at]
}

const fn named_reuse(name: &[u8]) -> Reuse {
    let mut at = 0;
    while !names::equal(Reuse::ALL[at].name().as_bytes(), name) {
        at += 1;
    }
    Reuse::ALL[at]
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    extern crate std;
    use super::*;
    use crate::entry::choice;
    use crate::profile::{Choice, ProfileText};
    use crate::shipped::SHIPPED;
    use std::vec::Vec;

    #[test]
    fn what_the_compiler_read_is_what_the_text_says() {
        let kernels = TABLE.iter().map(|kernel| kernel.requires);
        let entries = KINDS.iter().map(|kind| kind.requires);
        let everything = kernels.chain(entries).fold(Features::NONE, Features::and);
        for shipped in SHIPPED {
            let (text, compiled) =
                (ProfileText::parse(shipped.text).expect(shipped.name), &shipped.compiled);
            let slot = |kernel| slots::slot_of(kernel).expect("the library may use it");
            let mut requires = Features::NONE;
            let decisions: Vec<Resolved> = text
                .decisions()
                .map(|line| {
                    let routine = match line.choice(everything).expect(line.kernel) {
                        Choice::Kernel(kernel) => {
                            requires = requires.and(kernel.requires);
                            Routine::Kernel(slot(kernel))
                        }
                        Choice::Libc { nearest } => {
                            requires =
                                nearest.map_or(requires, |kernel| requires.and(kernel.requires));
                            Routine::Libc(nearest.map(slot))
                        }
                    };
                    let (operation, reuse) = (line.operation, line.reuse);
                    Resolved { operation, reuse, from: line.from, to: line.to, routine }
                })
                .collect();
            assert!(!decisions.is_empty() && compiled.decisions.iter().eq(decisions));
            let entries: Vec<(Operation, u8)> = text
                .entries()
                .map(|line| {
                    let way = choice::find(line.name, everything).expect(line.name);
                    requires = requires.and(KINDS[usize::from(way)].requires);
                    (line.operation, way)
                })
                .collect();
            assert!(compiled.entries.iter().eq(entries));
            assert!(compiled.parallel.iter().eq(text.parallel()));
            assert_eq!(compiled.requires, Some(requires), "{}", shipped.name);
            // One that lacks what the profile needs does not follow it, and nothing changes.
            let identity = Identity { features: Features::NONE, ..Identity::get() };
            assert_eq!(compiled.follow(&identity, &OnceCell::new()), None);
        }
    }

    #[test]
    fn what_this_architecture_lacks_makes_it_unusable() {
        for line in ["decide copy unknown 256 max copy.warp\n", "entry copy warp\n"] {
            assert_eq!(Compiled::of(line.as_bytes()).requires, None, "{line}");
        }
    }
}
