//! The pool's C interface as C programs see it: header, libraries, example.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[path = "../../../../lib/capi/tests/capi/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Linked, libraries, output, package, run};

/// Libraries that the static library needs besides libc.
const NEEDED: &[&str] = &["-lpthread", "-ldl", "-lm", "-lgcc_s"];

fn compile(into: &Path, source: &str, flags: &[&str], linked: Linked) -> PathBuf {
    support::compile(into, source, &[&["-std=c89", "-pedantic"], flags].concat(), linked)
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_contract_is_kept_and_the_example_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/contract.c", &[], linked);
        assert_eq!(output(&program), "contract kept\n");
        let program = compile(directory.path(), "examples/row_cache.c", &[], linked);
        let told = output(&program);
        assert!(told.ends_with("rows were zero\n"), "{told}");
    }
}

/// C++ as programs write it: names, exceptions, the memory resource, the example of the guide.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_memory_resource_serves_containers_and_the_example_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["-std=c++17", "-pedantic", "-pthread"];
    for linked in [Linked::Shared, Linked::Static] {
        let compiled = |source| support::compile(directory.path(), source, &flags, linked);
        assert_eq!(output(&compiled("tests/c/resource.cpp")), "resource held\n");
        let told = output(&compiled("examples/tables.cpp"));
        assert!(told.starts_with("20971520; "), "{told}");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_process_whose_main_thread_leaves_ends_with_its_last_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "tests/c/leaves.c", &["-pthread"], Linked::Shared);
    assert_eq!(output(&program), "");
    // Without /proc, and in a namespace whose task ids are not those that /proc has.
    let nothing = ["--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];
    for surroundings in [&nothing[..], &["--pid", "--kill-child"]] {
        // The threads that are left would let no other signal through.
        let mut elsewhere = Command::new("timeout");
        elsewhere.args(["--signal=KILL", "60", "unshare", "--map-root-user"]);
        run(elsewhere.args(surroundings).arg(&program));
    }
}

/// With both libraries under ThreadSanitizer as well (`cargo run -p xtask -- ci thread-sanitizer`).
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn threads_pass_blocks_on_while_one_zeroes_and_trims() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/threads.c", &["-pthread"], linked);
        assert_eq!(output(&program), "threads hold\n");
    }
}

/// Each reads and writes what it may, and leaves nothing that nobody can reach: handles, which are never
/// freed, were once reported as lost.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn under_address_sanitizer_nothing_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["-g", "-pthread", "-fsanitize=address,undefined", "-fno-sanitize-recover"];
    let program = compile(directory.path(), "tests/c/contract.c", &flags, Linked::Static);
    assert_eq!(output(&program), "contract kept\n");
    let program = compile(directory.path(), "tests/c/threads.c", &flags, Linked::Static);
    assert_eq!(output(&program), "threads hold\n");
    let program = compile(directory.path(), "examples/row_cache.c", &flags, Linked::Static);
    let told = output(&program);
    assert!(told.ends_with("rows were zero\n"), "{told}");
}

#[test]
fn the_headers_figures_are_the_librarys_in_their_order() {
    let header = std::fs::read_to_string(package().join("include/cachewise_pool.h")).expect("read");
    let (_, structure) = header.split_once("struct cw_pool_stats {").expect("declared");
    let (structure, _) = structure.split_once("};").expect("closed");
    let member = |line: &'static str| Some(line.trim().strip_prefix("size_t ")?.split_once(';')?.0);
    let members: Vec<_> = structure.to_owned().leak().lines().filter_map(member).collect();
    assert_eq!(members, cachewise_pool_c::PoolStats::MEMBERS);
}

/// Names of functions in the header, as the compiler sees it.
fn declared() -> BTreeSet<String> {
    let mut command = Command::new("cc");
    command.args(["-E", "-P"]).arg(package().join("include/cachewise_pool.h"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names = text.split('(').filter_map(|before| {
        let name = before.rsplit(|letter| !is_name(letter)).next()?;
        name.starts_with("cw_").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn what_is_declared_is_exported_and_nothing_else() {
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only"]).arg(libraries().join("libcachewise_pool.so"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    let list = std::fs::read_to_string(package().join("../../packaging/symbols")).expect("a list");
    let (_, list) = list.split_once("\nlibcachewise_pool.so.0.2 cachewise\n").expect("the library");
    let listed: Vec<_> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let names = listed.iter().map(|line| line.trim_start().split_once("@Base ").expect(line).0);
    assert_eq!(exported, names.map(str::to_owned).collect());
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_header_compiles_alone_in_every_dialect() {
    support::the_header_compiles_alone("");
}

/// Declarations stay as long as the soname does; before the first release of it, `CACHEWISE_BLESS=1` writes the file anew.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn programs_of_the_last_release_of_this_soname_still_fit() {
    let mut command = Command::new("cc");
    command.args(["-E", "-P"]).arg(package().join("include/cachewise_pool.h"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    support::the_interface_is_kept("libcachewise_pool.so.0.2", &text);
}
