//! Decisions where no profile makes them: computed from what the CPU can do and from the caches
//! *of one core complex*. This is the one place with their reasons.
//!
//! They are meant to be safe on a machine nobody has measured, not to be the best on any:
//! `cachewise tune` replaces them.
//!
//! **What the C library does, where there is one.** It knows its CPUs; we know those that records
//! exist for. So its routine is called for every size that no record shows ours to be level at,
//! whatever the state of the destination: copies, moves and fills from where its `rep` may begin on
//! ([`libc_from`]), and comparisons whose operands are together more than a quarter of the LLC (Zen 4: 6 to 13 %
//! slower there); without AVX2 all of more than 256 bytes. A test holds that against
//! the tables of costs in `record/`. What follows is for programs without one, or linked
//! statically.
//!
//! **Widest vector by default.** On Cascade Lake too, whose clock is said to drop for zmm work:
//! copies of 512 bytes to 8 KiB take 0.74-0.86 of libc's time with zmm, 0.87-1.09 with ymm
//! (`tune --quick` of 2026-11-22).
//!
//! **`rep movsb` and `rep stosb` on Intel only, where both ERMS and FSRM are told,** from 4 KiB
//! on (Intel Optimization Reference Manual, Enhanced REP MOVSB and STOSB Operation). On AMD
//! `rep movsb` is 10-60 times slower where destination minus source is a little above a power of
//! two (STL#5658), and loses from 2112 B on (glibc BZ 30994).
//!
//! **Non-temporal stores, by hint.** A copy of n bytes brings 2n through the cache, a fill n.
//! - `Unknown`: above 3/4 of the LLC, glibc's long-standing rule for its non-temporal threshold,
//!   but of the complex's LLC, never the socket's sum (BZ 32470). Below it some reader may still
//!   find the data; above it source and destination have pushed each other out.
//! - `Soon`: above the whole LLC. Up to there a reader finds at least a part, and temporal stores
//!   keep it; above it, he meets the data in the order in which it was pushed out and finds
//!   nothing (least recently used, read in a circle), so temporal stores buy nothing.
//! - `Never`: above the L2. Below it the operation disturbs only the core's own caches, and lines
//!   that are already there are cheaper to write where they are (seed 000.12: non-temporal stores
//!   lose at 32 KiB and win at 320 KiB).
//!
//! **A non-temporal zero uses `clzero`** where there is one: whole lines of zeros written past the
//! caches reach DRAM at twice the rate of anything else.
//!
//! **Arm and POWER: fixed vectors, temporal stores.** VSX before VMX, since it takes any alignment.
//! Arm's non-temporal stores are
//! a hint that nobody has measured here, POWER has none. Zeroes from 4 KiB on use the instruction
//! that zeroes a block without reading it (`dc zva`, `dcbz`), as the C libraries of both do.

use crate::choice;
use crate::cpu::{Caches, Identity};
use crate::profile::{self, FIRST_SIZE, MAX_SIZE, OPERATIONS, libc_from};
use crate::reuse::Reuse;
use crate::rows::{OWN, place, row};
use crate::slots::{self, Slot, libc_slot};
use crate::system;
use crate::table;
use cachewise_kernels::{Features, Operation};
use core::cell::OnceCell;

/// `rep` pays from here on (glibc's `rep_movsb_threshold` for 32-byte vectors); whole blocks of
/// zeros certainly do.
const STRING_FROM: u64 = 4096;

/// Writes the computed decisions into every row that `decided` has no bit for, and into the others
/// below the first size that a profile decides.
pub(crate) fn fill(decided: u16, identity: &Identity, caches: &OnceCell<Caches>) {
    let libc = OnceCell::new();
    for operation in OPERATIONS {
        let kernels = Kernels::in_use(operation, identity);
        for reuse in profile::hints(operation) {
            let row = row(operation, *reuse);
            table::set(row, 0, FIRST_SIZE - 1, kernels.small(operation));
            if decided >> row & 1 == 0 {
                table::leave(row, FIRST_SIZE, MAX_SIZE, false);
                let caches = caches.get_or_init(|| Caches::of(identity));
                let libc = *libc.get_or_init(system::found);
                for (from, slot) in kernels.plan(operation, *reuse, caches, libc) {
                    if let Some(slot) = slot {
                        table::set(row, from, MAX_SIZE, slot);
                    }
                }
            }
        }
    }
}

/// The temporal kernel that an operation has here.
pub(crate) fn temporal(operation: Operation, identity: &Identity) -> Slot {
    Kernels::in_use(operation, identity).temporal
}

/// Routine below [`libc_from`] where there is a C library.
pub(crate) fn below_libc(operation: Operation, identity: &Identity) -> Slot {
    Kernels::in_use(operation, identity).below_libc(operation)
}

/// Routine under `never`, and the size from which it serves.
pub(crate) fn around(operation: Operation, identity: &Identity) -> Option<(u64, Slot)> {
    let around = Kernels::in_use(operation, identity).around?;
    Some((last_temporal(Reuse::Never, &Caches::of(identity)).saturating_add(1), around))
}

/// The number of the entry that operations have here: the one that follows in this build, or else the first that the CPU
/// can run (`docs/decisions/entry-stubs.md`).
pub(crate) fn variant(identity: &Identity) -> u8 {
    choice::FOLLOWING.unwrap_or_else(|| {
        let mut names = ["avx512vl", "avx2"].iter();
        names.find_map(|name| choice::find(name, identity.features)).unwrap_or(choice::SSE2)
    })
}

/// The largest size that is still stored temporally.
fn last_temporal(reuse: Reuse, caches: &Caches) -> u64 {
    match reuse {
        Reuse::Unknown => caches.llc / 4 * 3,
        Reuse::Soon => caches.llc,
        Reuse::Never => caches.l2,
    }
}

/// The kernels an operation has on this CPU.
struct Kernels {
    temporal: Slot,
    /// True if that is a loop of AVX2 or AVX-512.
    wide: bool,
    /// A string instruction, or one that zeroes whole blocks.
    string: Option<Slot>,
    around: Option<Slot>,
}

impl Kernels {
    fn find(operation: Operation, identity: &Identity) -> Kernels {
        let available = identity.features;
        let intel = identity.signature.vendor.as_str() == "GenuineIntel";
        let fast_string = available.contains(Features::ERMS.and(Features::FSRM));
        let stored = !matches!(operation, Operation::Compare | Operation::Equal);
        let place = place(operation);
        let first = |slots: &[Slot]| {
            slots.iter().copied().find(|slot| {
                slots::kernel(operation, *slot).is_some_and(|kernel| kernel.runs_on(available))
            })
        };
        Kernels {
            temporal: first(&TEMPORAL[place]).unwrap_or(Slot::BOOT),
            wide: first(&WIDE[place]).is_some(),
            string: match operation {
                // A move may have to run backward, where `rep` is slow.
                Operation::Copy | Operation::Fill | Operation::Zero if intel && fast_string => {
                    first(&STRING[place])
                }
                _ => first(&BLOCKS[place]),
            },
            around: if stored { first(&AROUND[place]) } else { None },
        }
    }

    /// Kernels where an entry is in use: its own loop is the temporal kernel, which needs no table.
    fn in_use(operation: Operation, identity: &Identity) -> Kernels {
        let kernels = Kernels::find(operation, identity);
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(temporal) = choice::continued(operation) {
            return Kernels { temporal, ..kernels };
        }
        kernels
    }

    /// Routine below the first size that a profile decides: where no entries are written out, the C library's.
    fn small(&self, operation: Operation) -> Slot {
        if OWN == 0 && system::found() { libc_slot(operation) } else { self.temporal }
    }

    fn below_libc(&self, operation: Operation) -> Slot {
        if self.leaves_all(operation) { libc_slot(operation) } else { self.temporal }
    }

    /// Returns whether the C library does all that a decision is about: comparisons without AVX2.
    fn leaves_all(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Compare | Operation::Equal) && !self.wide
    }

    /// Routines from each of these sizes on; a later line overrules those before it.
    fn plan(
        &self,
        operation: Operation,
        reuse: Reuse,
        caches: &Caches,
        libc: bool,
    ) -> [(u64, Option<Slot>); 4] {
        let around = (last_temporal(reuse, caches).saturating_add(1), self.around);
        if !libc {
            return [
                (FIRST_SIZE, Some(self.temporal)),
                (STRING_FROM, self.string),
                around,
                (MAX_SIZE, None),
            ];
        }
        let theirs = Some(libc_slot(operation));
        let theirs = match operation {
            _ if self.leaves_all(operation) => (FIRST_SIZE, theirs),
            Operation::Compare | Operation::Equal => (caches.llc / 8 + 1, theirs),
            _ => (libc_from(operation), theirs),
        };
        // Under `Never` the caller knows more than any library.
        let around = if reuse == Reuse::Never { around } else { (MAX_SIZE, None) };
        [(FIRST_SIZE, Some(self.temporal)), theirs, around, (MAX_SIZE, None)]
    }
}

/// By operation, the slots of these techniques, the first of which that the CPU can run is taken.
type Slots<const N: usize> = [[Slot; N]; OPERATIONS.len()];

static TEMPORAL: Slots<9> =
    slots(["avx512", "avx2", "avx", "sse2", "neon", "vsx", "vmx", "gpr64", "bytes"]);
static WIDE: Slots<2> = slots(["avx512", "avx2"]);
static STRING: Slots<2> = slots(["rep.movsb", "rep.stosb"]);
static BLOCKS: Slots<2> = slots(["zva", "dcbz"]);
static AROUND: Slots<4> = slots(["clzero", "avx512.nt", "avx.nt", "sse2.nt"]);

/// Worked out when this is compiled: names are looked for in the table of kernels.
const fn slots<const N: usize>(techniques: [&str; N]) -> Slots<N> {
    let mut slots = [[Slot::BOOT; N]; OPERATIONS.len()];
    let mut place = 0;
    while place < slots.len() {
        let mut at = 0;
        while at < N {
            slots[place][at] = slots::named(OPERATIONS[place], techniques[at].as_bytes());
            at += 1;
        }
        place += 1;
    }
    slots
}

#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
#[path = "defaults_tests.rs"]
mod tests;
