//! One case per implausible answer seen in the field, and the plain ones.

use super::*;
use crate::Latencies;
use crate::planted;
use cachewise_host::plant;

fn level(kib: u64, shared_by: usize) -> Option<LevelAnswer> {
    Some(LevelAnswer { bytes: kib << 10, shared_by })
}

/// An answer with levels of so many KiB each.
fn answer(l1d: u64, l2: u64, l3: u64) -> Option<CacheAnswer> {
    Some([level(l1d, 1), level(l2, 1), level(l3, 16)])
}

fn amd(family: u32) -> Cpu {
    Cpu { vendor: "AuthenticAMD".to_owned(), family, ..Cpu::default() }
}

#[test]
fn answers_are_weighed() {
    let zen = &amd(0x1A);
    let intel = &Cpu { vendor: "GenuineIntel".to_owned(), family: 6, ..Cpu::default() };
    let without_l3 = Some([level(32, 1), level(1 << 10, 1), None]);
    let usual = answer(32, 512, 32 << 10);
    let shared = Some([level(32, 1), level(512, 1), level(32 << 10, 2)]);
    let half = answer(32, 512, 16 << 10);
    let socket = answer(48, 1 << 10, 384 << 10);
    let sum = "LLC is 384 MiB, a sum over several core complexes: ignored";
    // Both sources' answers, the result (with its source, unless CPUID), and the notes.
    for (cpuid, sysfs, cpu, weighed, notes, told) in [
        (usual, shared, zen, "32 KiB, 512 KiB, 32 MiB", 0, ""),
        (answer(32, 512, 0), None, intel, "32 KiB, 512 KiB, 8 MiB assumed", 2, "LLC is 0 B"),
        (answer(0, 512, 16 << 10), half, intel, "32 KiB sysfs, 512 KiB, 16 MiB", 1, "L1d is 0 B"),
        (answer(32, 1 << 10, 1 << 30), None, intel, "32 KiB, 1 MiB, 8 MiB assumed", 2, "1 TiB"),
        (socket, socket, zen, "48 KiB, 1 MiB, 32 MiB assumed", 3, sum),
        (socket, None, &amd(0x17), "48 KiB, 1 MiB, 16 MiB assumed", 2, sum),
        // A large mesh cache.
        (answer(48, 2 << 10, 504 << 10), None, intel, "48 KiB, 2 MiB, 504 MiB", 0, ""),
        (answer(64, 64, 8 << 10), None, intel, "64 KiB, 512 KiB assumed, 8 MiB", 2, "not larger"),
        // Still larger than the L2.
        (
            answer(32, 16 << 10, 16 << 10),
            None,
            intel,
            "32 KiB, 16 MiB, 32 MiB assumed",
            2,
            "not larger",
        ),
        (None, without_l3, intel, "32 KiB sysfs, 1 MiB sysfs, 1 MiB sysfs", 1, "no L3"),
        (usual, half, intel, "32 KiB, 512 KiB, 16 MiB sysfs", 1, "the smaller counts"),
        (None, None, intel, "32 KiB assumed, 512 KiB assumed, 8 MiB assumed", 3, "LLC is assumed"),
    ] {
        let caches = reconcile(cpuid, sysfs, cpu, 8);
        let found = [&caches.l1d, &caches.l2, &caches.llc].map(|level| {
            format!("{} {}", human(level.bytes as u64), level.source).replace(" cpuid", "")
        });
        assert_eq!(found.join(", "), weighed, "{:?}", caches.notes);
        assert_eq!(caches.notes.len(), notes, "{:?}", caches.notes);
        assert!(caches.notes.join("\n").contains(told), "{told}: {:?}", caches.notes);
        assert_eq!(caches.has_l3(), sysfs != without_l3);
        // An assumed LLC asks for a wider margin.
        let least = if weighed.ends_with("assumed") { 256 << 20 } else { 64 << 20 };
        assert_eq!(caches.dram_bytes(), (4 * caches.llc.bytes).max(least));
    }
    // Sharing is sysfs's word, and never more than the CPUs there are.
    assert_eq!(reconcile(usual, shared, zen, 8).llc.shared_by, 2);
    assert_eq!(reconcile(usual, None, zen, 4).llc.shared_by, 4);
}

#[test]
fn a_measured_share_of_the_llc_is_noted() {
    let mut caches = reconcile(answer(32, 512, 32 << 10), None, &amd(0x1A), 2);
    let mut latencies = Latencies { l1: 1.0, l2: 4.0, llc: 20.0, dram: 100.0, llc_bytes: 16 << 20 };
    caches.note_usable(&latencies);
    assert_eq!((caches.llc_usable, caches.notes.len()), (None, 0));
    latencies.llc_bytes = 8 << 20;
    caches.note_usable(&latencies);
    assert_eq!((caches.llc_usable, caches.notes.len()), (Some(8 << 20), 1));
    assert_eq!(Level::Llc.capacity(&caches), 8 << 20);
    assert_eq!(caches.dram_bytes(), 128 << 20, "cold is cold for the whole cache");
}

#[test]
fn sysfs_is_read_below_a_root() {
    let root = planted(&[]);
    let levels = [
        ["1\n", "Data\n", "32K\n", "0,64\n"],
        ["1\n", "Instruction\n", "64K\n", ""],
        ["2\n", "Unified\n", "512K\n", ""],
        ["3\n", "Unified\n", "32768K\n", "0-7,64-71\n"],
    ];
    for (index, texts) in levels.into_iter().enumerate() {
        let below = root.path().join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
        for (name, text) in ["level", "type", "size", "shared_cpu_list"].into_iter().zip(texts) {
            plant(&below, &[(name, text)]);
        }
    }
    let expected = [level(32, 2), level(512, 1), level(32 << 10, 16)];
    assert_eq!(from_sysfs(&Tree::at(root.path())), Some(expected));
    assert_eq!(from_sysfs(&Tree::at(&root.path().join("nothing"))), None);
}
