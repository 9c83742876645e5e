//! Which entry each operation takes, by the numbers and names of the entries: what is chosen, not what it
//! runs. So whoever decides needs none of their code, which leads to whoever decides.

use crate::rows::{OPERATIONS, place};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::slots::{self, Slot};
use cachewise_kernels::{Features, Function, Operation};
use core::sync::atomic::{AtomicU8, Ordering};

/// Number of the entry for every CPU.
pub const SSE2: u8 = 0;
/// Number of the entry with vectors of 32 bytes: the middle one, so that one comparison distinguishes all three.
pub const AVX2: u8 = 1;
/// Number of the entry with vectors of 64 bytes.
pub const AVX512VL: u8 = 2;

/// Number of entries.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const COUNT: usize = 3;

/// The number of the entry that each operation takes; one line of the cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct Chosen([AtomicU8; OPERATIONS.len()]);

/// Which entries are in use.
pub static CHOSEN: Chosen = Chosen([const { AtomicU8::new(SSE2) }; OPERATIONS.len()]);

/// Name of the entries of a number, and the features that they need; the same for each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// `sse2`, `avx2` or `avx512vl`, as in a profile.
    pub(crate) name: &'static str,
    pub(crate) requires: Features,
}

/// The entries by number; none where they are not written out.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) static KINDS: [Kind; COUNT] = {
    const WITH_AVX2: Features =
        Features::SSE2.and(Features::AVX).and(Features::AVX2).and(Features::BMI2);
    const WITH_AVX512: Features =
        WITH_AVX2.and(Features::AVX512F).and(Features::AVX512BW).and(Features::AVX512VL);
    [
        Kind { name: "sse2", requires: Features::SSE2 },
        Kind { name: "avx2", requires: WITH_AVX2 },
        Kind { name: "avx512vl", requires: WITH_AVX512 },
    ]
};
/// See above.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) static KINDS: [Kind; 0] = [];

/// One entry of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `sse2`, `avx2` or `avx512vl`, as in a profile.
    pub name: &'static str,
    /// Features that the CPU must offer.
    pub requires: Features,
    /// The operation from this entry on, with the contract of its kernels: the table is behind it,
    /// as the decisions have it.
    pub function: Function,
}

impl Entry {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    pub(crate) const fn new(kind: &Kind, function: Function) -> Entry {
        Entry { name: kind.name, requires: kind.requires, function }
    }

    /// Returns whether a CPU with these features can run it.
    #[must_use]
    pub const fn runs_on(&self, available: Features) -> bool {
        available.contains(self.requires)
    }
}

/// The number of the entry that calls of an operation take now; before any call that has a choice, [`SSE2`].
#[doc(hidden)]
pub fn way(operation: Operation) -> u8 {
    CHOSEN.0.get(place(operation)).map_or(SSE2, |way| way.load(Ordering::Relaxed))
}

/// Lets calls take an entry that this CPU can run, by its number. Any thread may be calling: it takes the one
/// or the other.
#[doc(hidden)]
pub fn choose(operation: Operation, way: u8) {
    if let Some(chosen) = CHOSEN.0.get(place(operation)) {
        chosen.store(way, Ordering::Relaxed);
    }
}

/// The number of the entry of that name, where the CPU can run it.
pub(crate) fn find(name: &str, available: Features) -> Option<u8> {
    let (number, kind) = named(name)?;
    available.contains(kind.requires).then_some(number)
}

/// The entry of that name, and its number.
pub(crate) fn named(name: &str) -> Option<(u8, &'static Kind)> {
    (0u8..).zip(&KINDS).find(|(_, kind)| kind.name == name)
}

/// The technique of the kernel whose work an entry does by itself above 256 bytes; `None` where it
/// does none.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const fn continues(operation: Operation, way: u8) -> Option<&'static str> {
    match (way, operation) {
        (AVX2, Operation::Compare | Operation::Equal) => Some("avx2"),
        (AVX2, _) => Some("avx"),
        (AVX512VL, _) => Some("avx512"),
        _ => None,
    }
}

/// By operation and entry, the slot of the kernel whose work the entry does by itself.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
static CONTINUED: [[Slot; COUNT]; OPERATIONS.len()] = {
    let mut slots = [[Slot::BOOT; COUNT]; OPERATIONS.len()];
    let mut place = 0;
    while place < slots.len() {
        let operation = OPERATIONS[place];
        let mut way = 0;
        while way < slots[place].len() {
            if let Some(technique) = continues(operation, way as u8) {
                slots[place][way] = slots::named(operation, technique.as_bytes());
            }
            way += 1;
        }
        place += 1;
    }
    slots
};

/// The slot of the kernel whose work the entry in use does by itself.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) fn continued(operation: Operation) -> Option<Slot> {
    let slot = CONTINUED.get(place(operation))?.get(usize::from(way(operation)))?;
    (*slot != Slot::BOOT).then_some(*slot)
}
