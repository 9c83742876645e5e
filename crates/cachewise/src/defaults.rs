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
//! (`record/2026-11-22-tune-quick-cascade-lake-guest.jsonl.gz`).
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
//! **Arm and POWER: fixed vectors, temporal stores.** NEON before SVE, whose length alone says
//! nothing about speed; VSX before VMX, since it takes any alignment. Arm's non-temporal stores are
//! a hint that nobody has measured here, POWER has none. Zeroes from 4 KiB on use the instruction
//! that zeroes a block without reading it (`dc zva`, `dcbz`), as the C libraries of both do.

use crate::cpu::{Caches, Identity};
use crate::entry::choice;
use crate::profile::{self, FIRST_SIZE, MAX_SIZE, OPERATIONS, libc_from};
use crate::reuse::Reuse;
use crate::rows::{place, row};
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
        let ways = Ways::in_use(operation, identity);
        for reuse in profile::hints(operation) {
            let row = row(operation, *reuse);
            table::set(row, 0, FIRST_SIZE - 1, ways.temporal);
            if decided >> row & 1 == 0 {
                let caches = caches.get_or_init(|| Caches::of(identity));
                let libc = *libc.get_or_init(system::found);
                for (from, slot) in ways.plan(operation, *reuse, caches, libc) {
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
    Ways::in_use(operation, identity).temporal
}

/// What is done below [`libc_from`] where there is a C library.
pub(crate) fn below_libc(operation: Operation, identity: &Identity) -> Slot {
    Ways::in_use(operation, identity).below_libc(operation)
}

/// The number of the entry that operations have here: the first that the CPU can run
/// (`docs/decisions/entry-stubs.md`).
pub(crate) fn way(identity: &Identity) -> u8 {
    ["avx512vl", "avx2"]
        .iter()
        .find_map(|name| choice::find(name, identity.features))
        .unwrap_or(choice::SSE2)
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
struct Ways {
    temporal: Slot,
    /// Whether that is a loop of AVX2 or AVX-512.
    wide: bool,
    /// A string instruction, or one that zeroes whole blocks.
    string: Option<Slot>,
    around: Option<Slot>,
}

impl Ways {
    fn find(operation: Operation, identity: &Identity) -> Ways {
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
        Ways {
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

    /// The same where an entry is in use: its own loop is the temporal kernel, which needs no table.
    fn in_use(operation: Operation, identity: &Identity) -> Ways {
        let ways = Ways::find(operation, identity);
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(temporal) = choice::continued(operation) {
            return Ways { temporal, ..ways };
        }
        ways
    }

    fn below_libc(&self, operation: Operation) -> Slot {
        if self.leaves_all(operation) { libc_slot(operation) } else { self.temporal }
    }

    /// Whether the C library does all that a decision is about: comparisons without AVX2.
    fn leaves_all(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Compare | Operation::Equal) && !self.wide
    }

    /// What is done from each of these sizes on, of which a later line overrules those before it.
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
        // Where nobody reads, the caller knows more than any library.
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
mod tests {
    extern crate std;
    use super::*;
    use crate::cpu::Signature;
    use crate::profile::Choice;
    use crate::shipped::SHIPPED;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::string::String;
    use std::vec::Vec;
    use std::{fs, println};

    /// Where a default takes more of libc's time than this, somebody loses by using the library.
    const LEAST: f64 = 0.97;

    /// The CPU that a table of costs is of, by its file's name.
    fn identity(file: &str) -> Identity {
        let signature = match file {
            file if file.contains("zen5") => Signature::new("AuthenticAMD", 26, 2, 1),
            file if file.contains("zen3") => Signature::new("AuthenticAMD", 25, 1, 1),
            file if file.contains("zen4") => Signature::new("AuthenticAMD", 25, 17, 1),
            file if file.contains("cascade-lake") => Signature::new("GenuineIntel", 6, 85, 7),
            other => panic!("{other}: which CPU is it?"),
        };
        let leaves = cachewise_kernels::Leaves::read();
        let all = Features::SSE2.and(Features::AVX).and(Features::AVX2);
        let all = all.and(Features::BMI2).and(Features::ERMS);
        let wide = Features::AVX512F.and(Features::AVX512BW).and(Features::AVX512VL);
        let features = match signature.vendor.as_str() {
            "AuthenticAMD" if signature.model == 1 => all.and(Features::CLZERO).and(Features::FSRM),
            "AuthenticAMD" => all.and(wide).and(Features::CLZERO).and(Features::FSRM),
            _ => all.and(wide),
        };
        Identity { signature, features, leaves }
    }

    /// The name of what is done without a profile, `libc` where that is the C library's.
    fn by_default(operation: Operation, n: u64, identity: &Identity) -> &'static str {
        // All of them have about this much; with a C library, nothing is non-temporal.
        let caches = Caches { l1d: 32 << 10, l2: 1 << 20, llc: 32 << 20, clamped: false };
        let plan = Ways::find(operation, identity).plan(operation, Reuse::Unknown, &caches, true);
        let (_, slot) = plan
            .iter()
            .rev()
            .find(|(from, slot)| *from <= n && slot.is_some())
            .expect("every size is decided");
        name(operation, slot.expect("it is decided"))
    }

    /// The same with the profile that is shipped for the CPU.
    fn by_profile(operation: Operation, n: u64, identity: &Identity) -> &'static str {
        let shipped = SHIPPED.iter().find(|shipped| shipped.is_for_model(&identity.signature));
        let shipped = shipped.expect("a profile for it");
        let profile = shipped.read(identity).expect(shipped.name);
        let unknown = |line: &profile::DecisionLine| {
            line.operation == operation && line.reuse == Reuse::Unknown
        };
        let line = profile.decisions().filter(unknown).find(|line| line.from <= n && n <= line.to);
        match line.expect("every size is decided").choice(identity.features) {
            Ok(Choice::Kernel(kernel)) => kernel.name,
            Ok(Choice::Libc { .. }) if n < libc_from(operation) => {
                name(operation, Ways::find(operation, identity).below_libc(operation))
            }
            Ok(Choice::Libc { .. }) => "libc",
            Err(error) => panic!("{}: {error:?}", shipped.name),
        }
    }

    fn name(operation: Operation, slot: Slot) -> &'static str {
        let kernel = slots::kernels(operation).find(|(known, _)| *known == slot);
        kernel.map_or("libc", |(_, kernel)| kernel.name)
    }

    /// By operation, size and state: a kernel's least, median and greatest time.
    type Cells = BTreeMap<(String, u64, String), BTreeMap<String, [f64; 3]>>;

    fn cells(text: &str) -> Cells {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let column = |name: &str| columns.iter().position(|found| *found == name).expect(name);
        // Rows of a tuning: intervals are of the ratio to libc, and libc has none.
        let tuned = columns[0] == "experiment";
        let mut cells = Cells::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let time = |name: &str| fields[column(name)].parse::<f64>().expect(name);
            let (kernel, state, times) = if tuned {
                // Operands that differ have rows of their own; what few rounds say is no interval.
                if !fields[column("axes")].is_empty() || time("rounds") < 8.0 {
                    continue;
                }
                // Taken in turns: what libc took in the same rounds is 1.
                let times = ["ratio_low", "ratio", "ratio_high"].map(time);
                ("candidate", "destination", times)
            } else {
                ("kernel", "state", ["low_ns", "median_ns", "high_ns"].map(time))
            };
            let of = |name: &str| String::from(fields[column(name)]);
            let cell = (of("operation"), of("bytes").parse().expect("a size"), of(state));
            cells.entry(cell).or_default().insert(of(kernel), times);
        }
        // Where a table has no interval of libc's, it says nothing about a few per cent.
        cells.retain(|_, times| tuned || times["libc"][0] < times["libc"][2]);
        cells
    }

    #[test]
    fn neither_a_default_nor_a_shipped_profile_loses_to_libc_in_any_table_of_costs() {
        let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
        let mut tables = 0;
        for entry in fs::read_dir(records).expect("the records") {
            let path = entry.expect("a record").path();
            let file = String::from(path.file_name().and_then(|name| name.to_str()).unwrap_or(""));
            if !file.contains("-costs-") || !file.ends_with(".csv") {
                continue;
            }
            tables += 1;
            let identity = identity(&file);
            let cells = cells(&fs::read_to_string(&path).expect("a table"));
            let deciders = [("default", by_default as Decider), ("profile", by_profile)];
            for (who, decide) in deciders {
                let (mut checked, mut product) = (0, 0.0);
                for ((operation, n, state), times) in &cells {
                    let operation = Operation::from_name(operation).expect("an operation");
                    let chosen = decide(operation, *n, &identity);
                    // Not every kernel was measured everywhere with both operands in memory.
                    let (libc, Some(ours)) = (times["libc"], times.get(chosen)) else { continue };
                    // A cell passes where the intervals allow it: medians of 11 are noise at 10 ns.
                    assert!(
                        libc[2] / ours[0] >= LEAST,
                        "{file}, {who}: {operation} {n} {state}: {chosen} takes {ours:?}, libc {libc:?}"
                    );
                    checked += 1;
                    product += (libc[1] / ours[1]).ln();
                }
                assert!(10 * checked > 9 * cells.len(), "{file}, {who}: {checked} cells");
                let mean = (product / checked as f64).exp();
                println!("{file}, {who}: {checked} cells, {mean:.3} of libc in the geometric mean");
                assert!(mean >= 1.0, "{file}, {who}: {mean}");
            }
        }
        assert!(tables >= 4, "{tables} tables of costs");
    }

    type Decider = fn(Operation, u64, &Identity) -> &'static str;
}
