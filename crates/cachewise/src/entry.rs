//! The entries on x86-64: `memcpy`, `memmove`, `memset`, zeroing, `memcmp` and the test for
//! equality, from the first instruction to the jump into the table, as machine code that no
//! compiler rearranges.
//!
//! An operation has several, for CPUs that differ: `sse2`, `avx2`, and `avx512vl`, which needs no
//! `vzeroupper` and masks up to 32 bytes (a fill up to 64). They are written from one description: vectors and groups of them in `grammar.rs`, size classes in
//! `storing.rs`, `filling.rs`, `comparing.rs` and `differing.rs`. [`variants`] names them, so that each can be called, measured
//! and tested by itself; `ways.rs` holds them.
//!
//! One number per operation says which is in use ([`CHOSEN`]). The exported function jumps by it, or not at all:
//! `avx512vl` follows in it. `defaults.rs` has the rule, a profile's
//! `entry` lines overrule it when the table is filled. Before a constructor has looked at the CPU it is `sse2`.
//!
//! The macros are not for use by programs: `raw.rs` makes its functions of them, and so do the C
//! library and the preload library, whose exported functions then *are* the operation rather than a
//! jump to it.
//!
//! The first two decisions beyond what an entry does by itself are one jump each, to a kernel or to the C
//! library's routine ([`NEXT`]); larger sizes find theirs in the table.
//!
//! *Direct* is what is done without the table, up to the row's limit ([`DIRECT`]): for as long as
//! the decisions say the plain loop of the vectors that the entry has.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod comparing;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod differing;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod filling;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod grammar;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod storing;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod ways;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::dispatch::Slot;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use crate::dispatch::boots;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use crate::dispatch::{
    COMPARE, COPY, EQUAL, FILL, MOVE, NARROW, NEXT, NEXT_BYTES, PAGE, ROW_BYTES, ZERO,
};
pub use crate::dispatch::{DIRECT, ROWS};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::names;
use crate::profile::{self, OPERATIONS};
use crate::reuse::Reuse;
pub use cachewise_kernels::Operation;
use cachewise_kernels::{Features, Function};
use core::sync::atomic::{AtomicU8, Ordering};

/// The numbers of the rows for calls without a hint.
pub const COPY_ROW: usize = profile::row(Operation::Copy, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const MOVE_ROW: usize = profile::row(Operation::Move, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const FILL_ROW: usize = profile::row(Operation::Fill, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const ZERO_ROW: usize = profile::row(Operation::Zero, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const COMPARE_ROW: usize = profile::row(Operation::Compare, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const EQUAL_ROW: usize = profile::row(Operation::Equal, Reuse::Unknown);

/// The entries by their numbers.
pub const SSE2: u8 = 0;
/// As [`SSE2`].
pub const AVX512VL: u8 = 1;
/// As [`SSE2`].
pub const AVX2: u8 = 2;

/// How many there are.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const COUNT: usize = 3;

/// The number of the entry that each operation takes; one line of the cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct Chosen([AtomicU8; OPERATIONS.len()]);

/// Which entries are in use.
pub static CHOSEN: Chosen = Chosen([const { AtomicU8::new(SSE2) }; OPERATIONS.len()]);

/// One entry of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `sse2`, `avx2` or `avx512vl`, as in a profile.
    pub name: &'static str,
    /// What the CPU must offer.
    pub requires: Features,
    /// The operation from this entry on, with the contract of its kernels: the table is behind it,
    /// as the decisions have it.
    pub function: Function,
}

impl Entry {
    /// Whether a CPU with these features can run it.
    #[must_use]
    pub const fn runs_on(&self, available: Features) -> bool {
        available.contains(self.requires)
    }
}

/// Where an operation stands in [`OPERATIONS`]; page operations with their byte operation.
#[must_use]
pub const fn place(operation: Operation) -> usize {
    match operation {
        Operation::Copy | Operation::CopyPages => 0,
        Operation::Move => 1,
        Operation::Fill => 2,
        Operation::Zero | Operation::ZeroPages => 3,
        Operation::Compare => 4,
        Operation::Equal => 5,
    }
}

/// The entries of an operation, by number; none where the entries are not written out: on every
/// other architecture, and for targets without vector registers.
///
/// ```
/// use cachewise_kernels::Operation;
///
/// for entry in cachewise::entry::variants(Operation::Copy) {
///     println!("copy {} needs {}", entry.name, entry.requires);
/// }
/// ```
#[must_use]
pub fn variants(operation: Operation) -> &'static [Entry] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return ways::ENTRIES.get(place(operation)).map_or(&[], |entries| entries);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let _ = operation;
        &[]
    }
}

/// The entry of an operation that calls take now; `None` where there is but one.
#[must_use]
pub fn chosen(operation: Operation) -> Option<&'static Entry> {
    variants(operation).get(usize::from(way(operation)))
}

/// Its number.
pub(crate) fn way(operation: Operation) -> u8 {
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
pub(crate) fn find(operation: Operation, name: &str, available: Features) -> Option<u8> {
    let mut numbered = (0u8..).zip(variants(operation));
    numbered
        .find(|(_, entry)| entry.name == now_called(name) && entry.runs_on(available))
        .map(|(number, _)| number)
}

/// What an entry of that name in a profile or a record is called now: until 2026-11-25 there was one more with
/// AVX-512, with masks up to 64 bytes.
#[must_use]
pub fn now_called(name: &str) -> &str {
    if name == "avx512vl.masked" { "avx512vl" } else { name }
}

/// The technique of the kernel whose work an entry does by itself above 256 bytes; `None` where it
/// does none.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const fn continues(operation: Operation, way: u8) -> Option<&'static str> {
    match (way, operation) {
        (AVX2, Operation::Compare | Operation::Equal) => Some("avx2"),
        (AVX2, _) => Some("avx"),
        (AVX512VL, _) => Some("avx512"),
        _ => None,
    }
}

/// The kernel whose work the entry of that name does by itself above 256 bytes.
#[doc(hidden)]
#[must_use]
pub fn continued_by(operation: Operation, name: &str) -> Option<&'static str> {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        let way = variants(operation).iter().position(|entry| entry.name == name)?;
        let technique = continues(operation, u8::try_from(way).ok()?)?;
        let kernels = cachewise_kernels::TABLE.iter();
        let mut own = kernels.filter(|kernel| kernel.operation() == operation);
        own.find(|kernel| kernel.technique() == technique).map(|kernel| kernel.name)
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let _ = (operation, name);
        None
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
                slots[place][way] = names::slot(operation, technique.as_bytes());
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
    (!slot.is_boot()).then_some(*slot)
}
