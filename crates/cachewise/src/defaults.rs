//! Decisions where no profile makes them: computed from what the CPU can do and from the caches
//! *of one core complex*. This is the one place with their reasons.
//!
//! They are meant to be safe on a machine nobody has measured, not to be the best on any:
//! `cachewise tune` replaces them.
//!
//! **Widest vector by default.** AVX-512 is left out on Intel CPUs before Ice Lake, whose clock
//! drops for zmm work; Ice Lake is the first with FSRM, which is what is asked for.
//!
//! **`rep movsb` and `rep stosb` on Intel only, where both ERMS and FSRM are told,** from 4 KiB
//! on (Intel Optimization Reference Manual, Enhanced REP MOVSB and STOSB Operation). On AMD
//! `rep movsb` is 10-60 times slower where destination minus source is a little above a power of
//! two (STL#5658), and loses from 2112 B on (glibc BZ 30994).
//!
//! **Around the cache, by hint.** A copy of n bytes brings 2n through the cache, a fill n.
//! - `Unknown`: above 3/4 of the LLC, glibc's long-standing rule for its non-temporal threshold,
//!   but of the complex's LLC, never the socket's sum (BZ 32470). Below it some reader may still
//!   find the data; above it source and destination have pushed each other out.
//! - `Soon`: above the whole LLC. Up to there a reader finds at least a part, and temporal stores
//!   keep it; above it, he meets the data in the order in which it was pushed out and finds
//!   nothing (least recently used, read in a circle), so its way through the cache buys nothing.
//! - `Never`: above the L2. Below it the operation disturbs only the core's own caches, and lines
//!   that are already there are cheaper to write where they are (seed 000.12: around the cache
//!   loses at 32 KiB, wins at 320 KiB).
//!
//! **Zero around the cache uses `clzero`** where there is one: full lines of zeros written around
//! the cache reach DRAM at twice the rate of anything else.

//!
//! **Arm and POWER: fixed vectors, through the cache.** NEON before SVE, whose length alone says
//! nothing about speed; VSX before VMX, since it takes any alignment. Arm's non-temporal stores are
//! a hint that nobody has measured here, POWER has none. Zeroes from 4 KiB on use the instruction
//! that zeroes a block without reading it (`dc zva`, `dcbz`), as the C libraries of both do.

use crate::cpu::{Caches, Identity};
use crate::dispatch::{self, Slot};
use crate::entry;
use crate::profile::{self, FIRST_SIZE, MAX_SIZE, OPERATIONS};
use crate::reuse::Reuse;
use cachewise_kernels::{Features, Operation};

/// `rep` pays from here on (glibc's `rep_movsb_threshold` for 32-byte vectors); whole blocks of zeros
/// certainly do.
const STRING_FROM: u64 = 4096;

/// Writes the computed decisions into every row that `decided` has no bit for, and into the others
/// below the first size that a profile decides.
pub(crate) fn fill(decided: u16, identity: &Identity) {
    let mut caches = None;
    for operation in OPERATIONS {
        let ways = Ways::find(operation, identity);
        for reuse in profile::hints(operation) {
            let row = profile::row(operation, *reuse);
            dispatch::set(row, 0, FIRST_SIZE - 1, ways.temporal);
            if decided >> row & 1 == 0 {
                let caches = caches.get_or_insert_with(|| Caches::of(identity));
                ways.fill(row, last_temporal(*reuse, caches));
            }
        }
    }
}

/// The kernel through the cache that an operation has here.
pub(crate) fn temporal(operation: Operation, identity: &Identity) -> Slot {
    Ways::find(operation, identity).temporal
}

/// The number of the way in that an operation has here.
pub(crate) fn way(operation: Operation, identity: &Identity) -> u8 {
    let amd = identity.signature.vendor.as_str() == "AuthenticAMD";
    let wanted: &[&str] = match operation {
        Operation::Compare | Operation::Equal => &["avx512vl.masked", "avx2"],
        _ if amd => &["avx512vl.masked", "avx2"],
        _ => &["avx512vl", "avx2"],
    };
    wanted
        .iter()
        .find_map(|name| entry::find(operation, name, identity.features))
        .unwrap_or(entry::SSE2)
}

/// The largest size that still goes through the cache.
fn last_temporal(reuse: Reuse, caches: &Caches) -> u64 {
    match reuse {
        Reuse::Unknown => caches.llc / 4 * 3,
        Reuse::Soon => caches.llc,
        Reuse::Never => caches.l2,
    }
}

/// The kernels an operation has on this CPU.
struct Ways {
    temporal: Slot,
    /// A string instruction, or one that zeroes whole blocks.
    string: Option<Slot>,
    around: Option<Slot>,
}

impl Ways {
    fn find(operation: Operation, identity: &Identity) -> Ways {
        let available = identity.features;
        let intel = identity.signature.vendor.as_str() == "GenuineIntel";
        let fast_string = available.contains(Features::ERMS.and(Features::FSRM));
        let without_zmm = available.without(Features::AVX512F);
        let wide = if intel && !fast_string { without_zmm } else { available };
        let stored = !matches!(operation, Operation::Compare | Operation::Equal);
        let string: &[&str] = match operation {
            Operation::Copy if intel && fast_string => &["rep.movsb"],
            Operation::Fill | Operation::Zero if intel && fast_string => &["rep.stosb"],
            Operation::Zero => &["zva", "dcbz"],
            // A move may have to run backward, where `rep` is slow.
            _ => &[],
        };
        let around: &[&str] = if operation == Operation::Zero {
            &["clzero", "avx512.nt", "avx.nt", "sse2.nt"]
        } else {
            &["avx512.nt", "avx.nt", "sse2.nt"]
        };
        let first = |techniques: &[&str]| {
            techniques.iter().find_map(|technique| slot(operation, technique, wide))
        };
        Ways {
            temporal: first(&[
                "avx512", "avx2", "avx", "sse2", "neon", "vsx", "vmx", "gpr64", "bytes",
            ])
            .unwrap_or(Slot::BOOT),
            string: first(string),
            around: if stored { first(around) } else { None },
        }
    }

    fn fill(&self, row: usize, last_temporal: u64) {
        dispatch::set(row, FIRST_SIZE, MAX_SIZE, self.temporal);
        if let Some(string) = self.string {
            dispatch::set(row, STRING_FROM, MAX_SIZE, string);
        }
        if let Some(around) = self.around {
            dispatch::set(row, last_temporal.saturating_add(1), MAX_SIZE, around);
        }
    }
}

fn slot(operation: Operation, technique: &str, available: Features) -> Option<Slot> {
    dispatch::kernels(operation)
        .find(|(_, kernel)| kernel.technique() == technique && kernel.runs_on(available))
        .map(|(slot, _)| slot)
}
