//! One test per implausible answer seen in the field, and the plain cases.

use super::*;
use crate::tree::tests::{plant, planted};

fn level(bytes: u64, shared_by: usize) -> Option<LevelAnswer> {
    Some(LevelAnswer { bytes, shared_by })
}

fn answer(l1d: u64, l2: u64, l3: u64) -> Answer {
    Answer { l1d: level(l1d, 1), l2: level(l2, 1), l3: level(l3, 16) }
}

fn amd(logical_cpus: usize) -> Context {
    Context { vendor: "AuthenticAMD".to_owned(), family: 0x1A, logical_cpus }
}

fn intel(logical_cpus: usize) -> Context {
    Context { vendor: "GenuineIntel".to_owned(), family: 6, logical_cpus }
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

#[test]
fn agreement_needs_no_note_and_takes_sharing_from_sysfs() {
    let cpuid = answer(48 * K, M, 32 * M);
    let sysfs = Answer { l3: level(32 * M, 2), ..cpuid };
    let caches = reconcile(Some(&cpuid), Some(&sysfs), &amd(2));
    assert_eq!(caches.notes, Vec::<String>::new());
    assert_eq!((caches.l1d.bytes, caches.l2.bytes), (48 << 10, 1 << 20));
    let expected = CacheLevel { bytes: 32 << 20, shared_by: 2, source: "cpuid".to_owned() };
    assert_eq!(caches.llc, expected);
    assert!(caches.has_l3());
    assert_eq!(caches.dram_bytes(), 128 << 20);
}

#[test]
fn a_cache_of_zero_bytes_is_replaced() {
    let caches = reconcile(Some(&answer(32 * K, 512 * K, 0)), None, &intel(4));
    assert_eq!(caches.llc.bytes, 8 << 20);
    assert_eq!(caches.llc.source, "assumed");
    assert!(caches.notes[0].contains("LLC is 0 B"), "{:?}", caches.notes);
    assert_eq!(caches.dram_bytes(), 256 << 20, "an assumed LLC asks for a wider margin");
}

#[test]
fn zero_from_one_witness_leaves_the_other() {
    let cpuid = answer(0, 512 * K, 16 * M);
    let sysfs = answer(32 * K, 512 * K, 16 * M);
    let caches = reconcile(Some(&cpuid), Some(&sysfs), &intel(4));
    assert_eq!((caches.l1d.bytes, caches.l1d.source.as_str()), (32 << 10, "sysfs"));
    assert_eq!(caches.notes.len(), 1);
}

#[test]
fn a_terabyte_is_replaced() {
    let caches = reconcile(Some(&answer(32 * K, M, 1 << 40)), None, &intel(4));
    assert_eq!((caches.llc.bytes, caches.llc.source.as_str()), (8 << 20, "assumed"));
    assert!(caches.notes[0].contains("1 TiB"), "{:?}", caches.notes);
}

#[test]
fn a_socket_sum_on_amd_becomes_one_complex() {
    let told = answer(48 * K, M, 384 * M);
    let caches = reconcile(Some(&told), Some(&told), &amd(2));
    assert_eq!((caches.llc.bytes, caches.llc.source.as_str()), (32 << 20, "assumed"));
    assert!(caches.notes.iter().any(|note| note.contains("sum over several core complexes")));
    let zen2 = Context { family: 0x17, ..amd(2) };
    assert_eq!(reconcile(Some(&told), None, &zen2).llc.bytes, 16 << 20);
}

#[test]
fn a_large_mesh_cache_on_intel_is_believed() {
    let caches = reconcile(Some(&answer(48 * K, 2 * M, 504 * M)), None, &intel(256));
    assert_eq!((caches.llc.bytes, caches.llc.source.as_str()), (504 << 20, "cpuid"));
}

#[test]
fn a_level_not_larger_than_the_one_below_is_ignored() {
    let caches = reconcile(Some(&answer(64 * K, 64 * K, 8 * M)), None, &intel(4));
    assert_eq!((caches.l2.bytes, caches.l2.source.as_str()), (512 << 10, "assumed"));
    let caches = reconcile(Some(&answer(32 * K, 16 * M, 16 * M)), None, &intel(4));
    assert_eq!(caches.llc.bytes, 32 << 20, "assumed, but still larger than the L2");
}

#[test]
fn a_machine_without_l3_ends_in_its_l2() {
    let told = Answer { l3: None, ..answer(32 * K, M, 0) };
    let caches = reconcile(None, Some(&told), &Context::default());
    assert_eq!(caches.llc, caches.l2);
    assert!(!caches.has_l3());
}

#[test]
fn disagreement_takes_the_smaller_and_says_so() {
    let caches = reconcile(
        Some(&answer(32 * K, 512 * K, 32 * M)),
        Some(&answer(32 * K, 512 * K, 16 * M)),
        &intel(8),
    );
    assert_eq!((caches.llc.bytes, caches.llc.source.as_str()), (16 << 20, "sysfs"));
    assert!(caches.notes[0].contains("the smaller counts"));
}

#[test]
fn no_witness_means_defaults() {
    let caches = reconcile(None, None, &Context::default());
    assert_eq!(
        (caches.l1d.bytes, caches.l2.bytes, caches.llc.bytes),
        (32 << 10, 512 << 10, 8 << 20)
    );
    assert_eq!(caches.notes.len(), 3);
}

#[test]
fn sharing_is_never_more_than_the_cpus_there_are() {
    let caches = reconcile(Some(&answer(32 * K, 512 * K, 32 * M)), None, &amd(2));
    assert_eq!(caches.llc.shared_by, 2);
}

#[test]
fn a_measured_share_of_the_llc_is_noted() {
    let mut caches = reconcile(Some(&answer(32 * K, 512 * K, 32 * M)), None, &amd(2));
    let mut latencies =
        crate::Latencies { l1: 1.0, l2: 4.0, llc: 20.0, dram: 100.0, llc_bytes: 16 << 20 };
    caches.note_usable(&latencies);
    assert_eq!((caches.llc_usable, caches.notes.len()), (None, 0));
    latencies.llc_bytes = 8 << 20;
    caches.note_usable(&latencies);
    assert_eq!((caches.llc_usable, caches.notes.len()), (Some(8 << 20), 1));
    assert_eq!(crate::Level::Llc.capacity(&caches), 8 << 20);
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
    let found = from_sysfs(root.path()).expect("an answer");
    assert_eq!(found.l1d, level(32 * K, 2));
    assert_eq!(found.l2, level(512 * K, 1));
    assert_eq!(found.l3, level(32 * M, 16));
    assert_eq!(from_sysfs(&root.path().join("nothing")), None);
}
