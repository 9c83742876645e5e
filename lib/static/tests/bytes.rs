//! Every byte of every function, called by C programs that are linked statically; size and needs of the code.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../preload/tests/preload/built.rs"]
mod built;

use built::{built, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate as it is linked into a program: a static library with its own objects alone.
fn library() -> PathBuf {
    built(&["cachewise-static"]).join("libcachewise_static.rlib")
}

/// Through symbols, linked statically with glibc and without any library: before everything else, at the very start.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn static_programs_take_them_and_they_need_nothing() {
    let (library, directory) = (library(), tempfile::tempdir().expect("a directory"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = |source: &str, flags: &[&str]| {
        let program = directory.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-builtin", "-w"]).args(flags).arg("-o").arg(&program);
        run(cc.arg(here.join(source)).arg(&library));
        program
    };
    let program = compiled("../preload/tests/c/exhaustive.c", &["-static"]);
    assert_eq!(run(&mut Command::new(program)).stdout, b"every byte right\n");
    for flags in [&["-static", "-nostdlib"][..], &["-static-pie", "-nostdlib"]] {
        let program = compiled("tests/c/start.c", flags);
        assert_eq!(
            Command::new(program).status().expect("it starts").code(),
            Some(42),
            "{flags:?}"
        );
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_code_is_smaller_than_8_kib_and_asks_for_no_symbol() {
    let library = library();
    let mut nm = Command::new("nm");
    let told = run(nm.args(["--print-size", "--radix=d"]).arg(&library)).stdout;
    let told = String::from_utf8(told).expect("UTF-8");
    let functions = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];
    let size = |line: &str| -> Option<usize> {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.len() == 4 && functions.contains(&words[3])).then(|| words[1].parse().expect(line))
    };
    let sizes: Vec<usize> = told.lines().filter_map(size).collect();
    assert_eq!(sizes.len(), functions.len(), "{told}");
    assert!(sizes.iter().sum::<usize>() < 8 << 10, "{sizes:?}");
    assert!(!told.lines().any(|line| line.trim_start().starts_with("U ")), "{told}");
}
