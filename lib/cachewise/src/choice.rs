//! The entry that each operation takes, by the numbers and names of the entries: what is chosen, not what it
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

/// The number of the entry that follows in the exported functions, where this build's target allows more than the least:
/// then nothing is asked, whatever the CPU could do.
pub(crate) const FOLLOWING: Option<u8> =
    if cfg!(all(target_feature = "avx512vl", target_feature = "avx512bw", target_feature = "bmi2"))
    {
        Some(AVX512VL)
    } else if cfg!(all(target_feature = "avx2", target_feature = "bmi2")) {
        Some(AVX2)
    } else {
        None
    };

/// The number of every operation's entry until CPUID is asked.
const FIRST: u8 = match FOLLOWING {
    Some(number) => number,
    None => SSE2,
};

/// The number of the entry that each operation takes; one line of the cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Chosen {
    entries: [AtomicU8; OPERATIONS.len()],
    /// Largest size of comparisons that `avx2` makes by vectors of 16: 128 where the CPU halves those of 32, else 0.
    pub halves: AtomicU8,
}

/// The place of [`Chosen::halves`].
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub const HALVES: usize = core::mem::offset_of!(Chosen, halves);

/// The entries in use.
pub static CHOSEN: Chosen = Chosen {
    entries: [const { AtomicU8::new(FIRST) }; OPERATIONS.len()],
    halves: AtomicU8::new(0),
};

/// Name of the entries of a number, and the features that they need; the same for each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// `sse2`, `avx2` or `avx512vl`.
    pub(crate) name: &'static str,
    pub(crate) requires: Features,
}

/// The entries by number; none where they are not written out.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) static VARIANTS: [Variant; COUNT] = {
    const WITH_AVX2: Features =
        Features::SSE2.and(Features::AVX).and(Features::AVX2).and(Features::BMI2);
    const WITH_AVX512: Features =
        WITH_AVX2.and(Features::AVX512F).and(Features::AVX512BW).and(Features::AVX512VL);
    [
        Variant { name: "sse2", requires: Features::SSE2 },
        Variant { name: "avx2", requires: WITH_AVX2 },
        Variant { name: "avx512vl", requires: WITH_AVX512 },
    ]
};
/// See above.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) static VARIANTS: [Variant; 0] = [];

/// One entry of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `sse2`, `avx2` or `avx512vl`.
    pub name: &'static str,
    /// Features that the CPU must offer.
    pub requires: Features,
    /// The operation from this entry on, with the contract of its kernels: the table is behind it,
    /// as the decisions have it.
    pub function: Function,
}

impl Entry {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    pub(crate) const fn new(variant: &Variant, function: Function) -> Entry {
        Entry { name: variant.name, requires: variant.requires, function }
    }

    /// Returns whether a CPU with these features can run it.
    #[must_use]
    pub const fn runs_on(&self, available: Features) -> bool {
        available.contains(self.requires)
    }
}

/// The number of the entry that calls of an operation take now; before any call that has a choice, the first.
#[doc(hidden)]
pub fn variant(operation: Operation) -> u8 {
    CHOSEN.entries.get(place(operation)).map_or(SSE2, |variant| variant.load(Ordering::Relaxed))
}

/// Lets calls take an entry that this CPU can run, by its number. Any thread may be calling: it takes the one
/// or the other.
#[doc(hidden)]
pub fn choose(operation: Operation, variant: u8) {
    if let Some(chosen) = CHOSEN.entries.get(place(operation)) {
        chosen.store(variant, Ordering::Relaxed);
    }
}

/// The number of the entry of that name, where the CPU can run it.
pub(crate) fn find(name: &str, available: Features) -> Option<u8> {
    let runs = |variant: &Variant| variant.name == name && available.contains(variant.requires);
    (0u8..).zip(&VARIANTS).find(|(_, variant)| runs(variant)).map(|(number, _)| number)
}

/// The technique of the kernel whose work an entry does by itself above 256 bytes; `None` where it
/// does none.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const fn continues(operation: Operation, variant: u8) -> Option<&'static str> {
    match (variant, operation) {
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
        let mut variant = 0;
        while variant < slots[place].len() {
            if let Some(technique) = continues(operation, variant as u8) {
                slots[place][variant] = slots::named(operation, technique.as_bytes());
            }
            variant += 1;
        }
        place += 1;
    }
    slots
};

/// The slot of the kernel whose work the entry in use does by itself.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) fn continued(operation: Operation) -> Option<Slot> {
    let slot = CONTINUED.get(place(operation))?.get(usize::from(variant(operation)))?;
    (*slot != Slot::BOOT).then_some(*slot)
}
