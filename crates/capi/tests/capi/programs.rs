//! C and C++ programs, linked both ways, run, and run under valgrind.

use crate::support::{Linked, compile, libraries, output, run};
use std::path::Path;
use std::process::Command;

const C89: &[&str] = &["-std=c89", "-pedantic"];
const GNU: &[&str] = &["-std=gnu11"];
const CPP: &[&str] = &["-std=c++11", "-pedantic"];

#[test]
fn the_contract_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/contract.c", C89, linked);
        assert_eq!(output(&program), "contract kept\n");
    }
}

#[test]
fn examples_run_and_valgrind_has_no_complaint() {
    let directory = tempfile::tempdir().expect("a directory");
    for (source, flags, ends) in [
        ("examples/log_ring.c", C89, "bytes sent\n"),
        ("examples/snapshot.cpp", CPP, "snapshots hold\n"),
    ] {
        for linked in [Linked::Shared, Linked::Static] {
            let program = compile(directory.path(), source, flags, linked);
            let told = output(&program);
            assert!(told.ends_with(ends), "{source}: {told}");
        }
        let program = compile(directory.path(), source, flags, Linked::Shared);
        valgrind(&program, ends);
    }
    let program = compile(directory.path(), "tests/c/contract.c", C89, Linked::Shared);
    valgrind(&program, "contract kept\n");
}

/// Valgrind's CPU has no AVX-512, and says so: the library then chooses other kernels.
fn valgrind(program: &Path, ends: &str) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind: SKIPPED, not installed");
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]).arg(program);
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    let told = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    assert!(told.ends_with(ends), "{told}");
}

/// Trap flag and registers are x86-64's.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_signal_handler_may_call_it_while_the_first_call_is_under_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "tests/c/stepped.c", GNU, Linked::Shared);
    assert_eq!(output(&program), "interrupted everywhere\n");
}

/// Whatever happens, nothing unwinds out of it: the library has nothing that could.
#[test]
fn nothing_in_it_unwinds() {
    let bytes = std::fs::read(libraries().join("libcachewise.so")).expect("the library");
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(has(b"cw_copy"));
    assert!(!has(b"_Unwind_RaiseException") && !has(b"_Unwind_Resume"));
}
