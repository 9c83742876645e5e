//! State before any call, in a process of its own.

#![cfg(all(feature = "os", target_arch = "x86_64", target_os = "linux", not(miri)))]

use cachewise::entry::{chosen, variants};
use cachewise::profile::OPERATIONS;
use cachewise_kernels::Features;

/// A program that makes small calls only never reads a profile. Its entry is the CPU's all the same.
#[test]
fn small_calls_take_the_cpus_entry_from_the_first_on() {
    if !crate::alone("loaded::small_calls_take_the_cpus_entry_from_the_first_on") {
        return;
    }
    for operation in OPERATIONS {
        let rule = ["avx512vl", "avx2", "sse2"];
        let runs = |name: &&str| {
            let found = variants(operation).iter().find(|entry| entry.name == *name);
            found.is_some_and(|entry| entry.runs_on(Features::detect()))
        };
        let expected = *rule.iter().find(|name| runs(name)).expect("every CPU runs the last");
        assert_eq!(chosen(operation).map(|entry| entry.name), Some(expected), "{operation}");
    }
}
