//! Every byte of every function, called by Rust and by C programs that are linked statically; size and needs of the code.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use cachewise_static::{memcmp, memcpy, memmove, memset};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SIZES: std::ops::Range<usize> = 0..700;
const ROOM: usize = 3000;

fn noise(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..ROOM).map(|_| random.u8(..)).collect()
}

/// Copies within one buffer, by both functions.
#[test]
fn copies_of_every_length_alignment_and_overlap() {
    let before = noise(1);
    for copy in [memcpy, memmove] {
        for n in SIZES.chain([1024, 1400]) {
            for (to, from) in [(0, 1500), (1, 1517), (63, 1408), (700, 701), (701, 700), (800, 733)]
                .into_iter()
                .chain((640..768).step_by(9).map(|to| (to, 700)))
            {
                let (mut buffer, mut expected) = (before.clone(), before.clone());
                expected.copy_within(from..from + n, to);
                let start = buffer.as_mut_ptr();
                let dst = start.wrapping_add(to);
                // SAFETY: both are inside the buffer.
                let returned = unsafe { copy(dst, start.wrapping_add(from), n) };
                assert!(returned == dst && buffer == expected, "{n} bytes from {from} to {to}");
            }
        }
    }
}

#[test]
fn fills_of_every_length_and_alignment() {
    let before = noise(2);
    for n in SIZES.chain([1024, 2047]) {
        for at in 64..130 {
            let (mut buffer, mut expected) = (before.clone(), before.clone());
            expected[at..at + n].fill(0xA5);
            let dst = buffer.as_mut_ptr().wrapping_add(at);
            // SAFETY: inside the buffer.
            let returned = unsafe { memset(dst, 0x1A5, n) };
            assert!(returned == dst && buffer == expected, "{n} bytes at {at}");
        }
    }
}

/// Also by buffers that end where the page ends behind which nobody may read.
#[test]
fn comparisons_of_every_length_and_first_difference() {
    let left = noise(3);
    for n in SIZES {
        let mut right = left.clone();
        for at in (0..n).step_by(if n < 140 { 1 } else { 17 }) {
            right[at] ^= 0x80;
            right[n - 1] ^= u8::from(at + 1 < n);
            let expected = left[..n].cmp(&right[..n]) as i32;
            // SAFETY: both have that many bytes.
            let found = unsafe { memcmp(left.as_ptr(), right.as_ptr(), n) };
            assert_eq!(found.signum(), expected, "{n} bytes, {at} differs");
            right[..n].copy_from_slice(&left[..n]);
        }
        right[n] ^= 1;
        // SAFETY: as above.
        assert_eq!(unsafe { memcmp(left.as_ptr(), right.as_ptr(), n) }, 0, "{n} bytes");
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{told}", output.status);
    output
}

/// The crate as it is linked into a program: a static library with its own objects alone.
fn built() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "-p", "cachewise-static", "--target-dir"]).arg(target);
    run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    target.join("release/libcachewise_static.rlib")
}

/// Through symbols, linked statically with glibc and without any library: before everything else, at the very start.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn static_programs_take_them_and_they_need_nothing() {
    let (library, directory) = (built(), tempfile::tempdir().expect("a directory"));
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
    let library = built();
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
