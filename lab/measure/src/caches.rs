//! The cache hierarchy of one core complex, from two witnesses that are both known to lie.
//!
//! CPUID describes what the (possibly virtual) CPU says, sysfs what the kernel made of it.
//! Hypervisors report caches of 0 B, of 384 MiB (a whole socket's L3 as if one core reached it)
//! and of 1 TiB; thresholds computed from such answers are how libraries came to switch at 288
//! MiB. [`reconcile`] is a pure function over both answers: implausible ones are set aside, every
//! step that was not plain agreement leaves a note, and the residency proofs check the outcome
//! against measured latencies.

use crate::cpu::Cpu;
use crate::level::Level;
use crate::units::{bytes as human, parse_bytes};
use cachewise_host::{Tree, cpus_in_list};
use serde::{Deserialize, Serialize};

/// The caches that one core can use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caches {
    /// Level 1 data cache.
    pub l1d: CacheLevel,
    /// Level 2 cache.
    pub l2: CacheLevel,
    /// The last level one core can reach: its core complex's L3, never the socket's sum. Equal to
    /// `l2` on machines without an L3.
    pub llc: CacheLevel,
    /// Bytes of the LLC that this machine really gets, where that was measured and is less than
    /// half of it, or that were asked for: a guest shares the LLC with guests it cannot see, or has only some
    /// ways of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_usable: Option<usize>,
    /// Notes on answers that were implausible, disagreed or were assumed, one sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLevel {
    pub bytes: usize,
    /// Logical CPUs that share it, at least 1.
    pub shared_by: usize,
    /// `cpuid`, `sysfs` or `assumed`.
    pub source: String,
}

/// One source's answer about one level, as claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelAnswer {
    pub(crate) bytes: u64,
    pub(crate) shared_by: usize,
}

/// One source's answer about L1 data, L2 and L3; `None` for a level it does not mention.
pub(crate) type CacheAnswer = [Option<LevelAnswer>; 3];

/// Plausible sizes and the size assumed when nobody gives one, in bytes.
struct Bounds {
    name: &'static str,
    least: u64,
    most: u64,
    assumed: u64,
}

// From 8 KiB (Pentium 4) to 256 KiB (twice Apple's 128 KiB).
const L1D: Bounds = Bounds { name: "L1d", least: 8 << 10, most: 256 << 10, assumed: 32 << 10 };
// From 64 KiB (K8) to 64 MiB (twice a shared 32 MiB, z15).
const L2: Bounds = Bounds { name: "L2", least: 64 << 10, most: 64 << 20, assumed: 512 << 10 };
// 1 GiB is twice the largest L3 that one core reaches (504 MiB, Granite Rapids-AP).
const LLC: Bounds = Bounds { name: "LLC", least: 256 << 10, most: 1 << 30, assumed: 8 << 20 };

/// The largest L3 of one AMD core complex is 96 MiB (V-Cache); what exceeds this is a sum of
/// several, which no core can reach.
const MOST_PER_AMD_COMPLEX: u64 = 128 << 20;

/// The L3 of an AMD core complex when only an implausible answer is there: 16 MiB in family 17h
/// (Zen 2), 32 MiB since (Zen 3 to 5).
const fn assumed_amd_complex(family: u32) -> u64 {
    if family <= 0x17 { 16 << 20 } else { 32 << 20 }
}

impl Caches {
    /// Bytes that operands in DRAM must cover, so that a line visited in turn has left the cache
    /// before it is met again: four times the LLC, and 256 MiB where the LLC is only assumed.
    pub fn dram_bytes(&self) -> usize {
        let four_times = self.llc.bytes.saturating_mul(4).max(64 << 20);
        if self.llc.source == "assumed" { four_times.max(256 << 20) } else { four_times }
    }

    /// The level's capacity in bytes; for [`Level::Dram`]
    /// [`dram_bytes`](Caches::dram_bytes).
    pub fn bytes(&self, level: Level) -> usize {
        match level {
            Level::L1 => self.l1d.bytes,
            Level::L2 => self.l2.bytes,
            Level::Llc => self.llc.bytes,
            Level::Dram => self.dram_bytes(),
        }
    }

    /// Bytes of the LLC that operands are made for.
    pub fn usable(&self) -> usize {
        self.llc_usable.unwrap_or(self.llc.bytes)
    }

    /// Returns whether there is a level between L2 and memory.
    pub fn has_l3(&self) -> bool {
        self.llc.bytes > self.l2.bytes
    }
}

impl Level {
    /// Bytes that all operands of an operation together may have of this level: 3/4 of L1, half of
    /// L2 and of the LLC (or what is usable of it), and for memory the bytes they must cover.
    pub fn capacity(self, caches: &Caches) -> usize {
        match self {
            Level::L1 => caches.l1d.bytes / 4 * 3,
            Level::L2 => caches.l2.bytes / 2,
            Level::Llc => caches.llc_usable.unwrap_or(usize::MAX).min(caches.llc.bytes / 2),
            Level::Dram => caches.dram_bytes(),
        }
    }
}

/// Weighs both witnesses. Pure.
///
/// Per level: an answer outside the plausible range, or not larger than the level below, is set
/// aside. Of two plausible answers that differ the smaller counts (what is believed too small is
/// still inside the cache). Sharing comes from sysfs where it has it, because CPUID counts APIC
/// identifiers, not CPUs. Without a plausible answer a default is assumed. A machine on which no
/// witness mentions an L3 has its L2 as last level.
pub(crate) fn reconcile(
    cpuid: Option<CacheAnswer>,
    sysfs: Option<CacheAnswer>,
    cpu: &Cpu,
    logical_cpus: usize,
) -> Caches {
    let mut notes = Vec::new();
    let mut choose = |bounds: &Bounds, level: usize, below: usize| {
        let answers = [("cpuid", cpuid), ("sysfs", sysfs)];
        let answers = answers.map(|(source, answer)| (source, answer.and_then(|all| all[level])));
        choose(bounds, &answers, below as u64, cpu, logical_cpus, &mut notes)
    };
    let l1d = choose(&L1D, 0, 0);
    let l2 = choose(&L2, 1, l1d.bytes);
    let l3_is_mentioned = [cpuid, sysfs].iter().flatten().any(|answer| answer[2].is_some());
    let llc = if !l3_is_mentioned && l2.source != "assumed" {
        notes.push("no L3 is mentioned: the last level is the L2".to_owned());
        l2.clone()
    } else {
        choose(&LLC, 2, l2.bytes)
    };
    Caches { l1d, l2, llc, llc_usable: None, notes }
}

fn choose(
    bounds: &Bounds,
    answers: &[(&'static str, Option<LevelAnswer>)],
    below: u64,
    cpu: &Cpu,
    logical_cpus: usize,
    notes: &mut Vec<String>,
) -> CacheLevel {
    let name = bounds.name;
    let is_amd = matches!(cpu.vendor.as_str(), "AuthenticAMD" | "HygonGenuine");
    let per_complex = name == LLC.name && is_amd;
    let mut plausible: Vec<(&'static str, LevelAnswer)> = Vec::new();
    let mut sum_of_complexes = false;
    for (source, answer) in answers {
        let Some(answer) = *answer else { continue };
        let why = if answer.bytes < bounds.least || answer.bytes > bounds.most {
            format!("plausible is {} to {}", human(bounds.least), human(bounds.most))
        } else if answer.bytes <= below {
            format!("not larger than the level below ({})", human(below))
        } else if per_complex && answer.bytes > MOST_PER_AMD_COMPLEX {
            sum_of_complexes = true;
            "a sum over several core complexes".to_owned()
        } else {
            plausible.push((*source, answer));
            continue;
        };
        notes.push(format!("{source} says {name} is {}, {why}: ignored", human(answer.bytes)));
    }
    if let [(first, a), (second, b)] = plausible[..]
        && a.bytes != b.bytes
    {
        let (a, b) = (human(a.bytes), human(b.bytes));
        notes.push(format!("{name}: {first} says {a}, {second} says {b}: the smaller counts"));
    }
    let Some((source, answer)) = plausible.iter().min_by_key(|(_, answer)| answer.bytes) else {
        let typical =
            if sum_of_complexes { assumed_amd_complex(cpu.family) } else { bounds.assumed };
        let bytes = typical.max(below.saturating_mul(2));
        notes.push(format!("{name} is assumed to be {}", human(bytes)));
        return CacheLevel { bytes: bytes as usize, shared_by: 1, source: "assumed".to_owned() };
    };
    let by_sysfs = plausible.iter().find(|(source, _)| *source == "sysfs");
    let sharing = by_sysfs.map_or(answer.shared_by, |(_, answer)| answer.shared_by);
    CacheLevel {
        bytes: answer.bytes as usize,
        shared_by: sharing.clamp(1, logical_cpus.max(1)),
        source: (*source).to_owned(),
    }
}

/// Reads `sys/devices/system/cpu/cpu0/cache/index*`. `None` when nothing is there (containers, many
/// aarch64 guests).
pub(crate) fn from_sysfs(tree: &Tree) -> Option<CacheAnswer> {
    let mut answer = CacheAnswer::default();
    for index in 0..10 {
        let file = |name: &str| {
            tree.text(format!("sys/devices/system/cpu/cpu0/cache/index{index}/{name}"))
        };
        let (Some(level), Some(kind)) = (file("level"), file("type")) else { continue };
        let Some(Ok(bytes)) = file("size").map(|text| parse_bytes(&text)) else { continue };
        if let (Ok(level @ 1..=3), "Data" | "Unified") = (level.parse::<usize>(), kind.as_str()) {
            let shared_by = file("shared_cpu_list").as_deref().and_then(cpus_in_list).unwrap_or(1);
            answer[level - 1] = Some(LevelAnswer { bytes: bytes as u64, shared_by });
        }
    }
    (answer != CacheAnswer::default()).then_some(answer)
}

/// Answer of CPUID; `None` where it names no cache.
#[cfg(target_arch = "x86_64")]
pub(crate) fn from_cpuid() -> Option<CacheAnswer> {
    let answer = cachewise::cpu::reported_caches()
        .map(|level| level.map(|(bytes, shared_by)| LevelAnswer { bytes, shared_by }));
    (answer != CacheAnswer::default()).then_some(answer)
}

#[cfg(test)]
#[path = "caches_tests.rs"]
mod tests;
