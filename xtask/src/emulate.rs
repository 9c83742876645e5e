//! Runs the tests of the AVX-512 kernels and of the entry stubs on an emulated CPU, for machines whose
//! own has no AVX-512.
//!
//! Bochs emulates the CPU, Debian's cloud kernel saves its registers, and a test binary is the only process:
//! `emulate/boot` says how. Each test binary has a machine of its own; they run side by side.
//!
//! Emulation proves bytes, never speed: no time from it is kept.

use crate::command::{Lacking, built, cargo, files_in, number_before, root};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test binary that is run on a machine of its own.
struct Program {
    /// The test's name, and the folder's of its machine.
    test: &'static str,
    /// Options of cargo: package and features.
    options: &'static str,
    /// Arguments for libtest.
    arguments: &'static str,
}

const PROGRAMS: [Program; 2] = [
    // Neither the corpus nor the executable's own file is on the memory disk (the host reads the machine
    // code of all kernels itself).
    Program {
        test: "kernels",
        options: "--package cachewise-kernels --features lab",
        arguments: "--test-threads=1 --skip corpus --skip machine_code",
    },
    Program {
        test: "entry",
        options: "--package cachewise --features std",
        arguments: "--test-threads=1 --nocapture",
    },
];

/// Options: the tests to run and their time limit.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Emulate it on a CPU that has AVX-512, too.
    #[arg(long)]
    anyway: bool,
    /// Kernels and entries whose name contains one of these, separated by commas.
    #[arg(long, default_value = "avx512")]
    kernels: String,
    /// Part of the case space that is visited: small, normal, thorough.
    #[arg(long, default_value = "small")]
    effort: String,
    /// Give up after this many minutes.
    #[arg(long, default_value_t = 20)]
    limit: u64,
}

/// Results of the tests under emulation.
#[derive(Debug, Default)]
pub struct Summary {
    /// libtest's last line, after "test result: " and without the time, which is emulated.
    pub result: String,
    /// Kernels run, over all operations, or entries.
    kernels: u64,
    /// Calls checked, over all sweeps.
    pub calls: u64,
    /// Kernels that failed a sweep.
    failed: u64,
    /// Kernels or entries that the emulated CPU could not run.
    skipped: u64,
    /// Exit status of the test binary, as `wait` returns it; `None` when it never ended.
    status: Option<u32>,
}

impl Summary {
    /// Reads the serial port's log.
    pub fn of(log: &str) -> Summary {
        let mut summary = Summary::default();
        for line in log.lines() {
            if let Some(result) = line.trim().strip_prefix("test result: ") {
                let counts = result.split_once("; finished").map_or(result, |(counts, _)| counts);
                summary.result = counts.to_string();
            }
            if let Some((_, rest)) = line.split_once("exitcode=0x") {
                let digits = rest.split(|c: char| !c.is_ascii_hexdigit()).next();
                summary.status = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            }
            // "copy: 27 kernels, 1155141 calls checked in 0.3 s, 0 failed, 0 skipped", after what
            // libtest wrote to the same line.
            if line.contains(" calls checked in ") {
                let before = |word| number_before(line, word).unwrap_or(0);
                summary.kernels += before(" kernels,") + before(" entries,");
                summary.calls += before(" calls");
                summary.failed += before(" failed");
                summary.skipped += before(" skipped");
            }
        }
        summary
    }

    fn passed(&self) -> bool {
        let whole = self.result.starts_with("ok. ") && self.kernels > 0;
        whole && self.status == Some(0) && self.failed == 0 && self.skipped == 0
    }
}

/// Files the emulation needs beside a kernel, each with the Debian package it comes from.
const NEEDS: [(&str, &str); 8] = [
    ("/usr/share/bochs/BIOS-bochs-latest", "bochsbios"),
    ("/usr/share/bochs/VGABIOS-lgpl-latest", "vgabios"),
    ("/usr/lib/ISOLINUX/isolinux.bin", "isolinux"),
    ("/usr/lib/syslinux/modules/bios/ldlinux.c32", "syslinux-common"),
    ("/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so", "bochs-term"),
    ("/usr/bin/bochs", "bochs"),
    ("/usr/bin/xorriso", "xorriso"),
    ("/usr/bin/cpio", "cpio"),
];

/// Builds the tests, boots them on emulated CPUs, and says how it went. Everything it makes is
/// under `target/emulate`; progress goes to stderr.
pub fn run(options: &Options) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vl") && !options.anyway {
        println!(
            "this CPU has AVX-512: `test` runs its kernels and entries, every length and place, faster than a tenth of them here"
        );
        return Ok(());
    }
    Lacking::check(NEEDS)?;
    let kernels = files_in("/boot".as_ref(), "vmlinuz-", "-cloud-amd64").unwrap_or_default();
    ensure!(!kernels.is_empty(), Lacking::packages(&["linux-image-cloud-amd64"]));
    let target = root().join("target/emulate");
    let built = PROGRAMS.iter().map(|program| Ok((program, build(program, &target)?)));
    let built = built.collect::<Result<Vec<_>>>()?;
    let machine = |program: &Program, tests: &Path| {
        let folder = target.join("machine").join(program.test);
        boot(program, tests, &folder, options)
    };
    // All are waited for, whatever becomes of one.
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let started = built.iter().map(|(program, tests)| scope.spawn(|| machine(program, tests)));
        let started: Vec<_> = started.collect();
        started.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    ended.into_iter().collect()
}

/// Boots one test binary.
fn boot(program: &Program, tests: &Path, folder: &Path, options: &Options) -> Result<()> {
    let Options { kernels, effort, limit, .. } = options;
    let mut boot = Command::new(root().join("xtask/emulate/boot"));
    boot.arg(folder).arg(tests).arg(limit.to_string());
    boot.arg(format!("CACHEWISE_TEST_KERNELS={kernels}"));
    boot.arg(format!("CACHEWISE_TEST_EFFORT={effort}")).args(["--", program.arguments]);
    let mut machine = boot.stdout(Stdio::piped()).spawn().context("emulate/boot")?;
    let mut log = String::new();
    for line in BufReader::new(machine.stdout.take().context("a pipe")?).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if line.contains(" calls checked in ") || line.starts_with("test ") {
            eprintln!("  {line}");
        }
        log += &(line + "\n");
    }
    let ended = machine.wait()?;
    let summary = Summary::of(&log);
    let what = format!("emulated AVX-512, {}", program.test);
    if !ended.success() || !summary.passed() {
        println!("{}", told(&log));
        bail!("{what}: failed ({summary:?}); all of it: {}/serial.log", folder.display());
    }
    let Summary { kernels, calls, result, .. } = summary;
    println!("{what}: {kernels} run, {calls} calls checked; test result: {result}");
    Ok(())
}

/// Extracts the tests' output: all between the first of libtest's lines and the kernel's last words.
fn told(log: &str) -> String {
    let lines = log.lines().skip_while(|line| !line.trim_start().starts_with("running "));
    let lines = lines.take_while(|line| !line.contains("Kernel panic"));
    lines.map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Builds a test binary without dynamic linking and without symbols; returns its path.
fn build(program: &Program, target: &Path) -> Result<PathBuf> {
    let Program { test, options, .. } = program;
    let mut build = cargo("test --no-run --target x86_64-unknown-linux-gnu");
    build.args(["--config", "profile.dev.debug=false"]);
    build.args(["--config", "profile.dev.strip=\"symbols\""]);
    build.args(options.split(' ')).args(["--test", test, "--target-dir"]).arg(target);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static").current_dir(root());
    built(&mut build, None)?.remove(*test).context("cargo named no test binary")
}

#[cfg(test)]
mod tests {
    use super::{Summary, told};

    const LOG: &str = "\
[    6.8] Run /kernels as init process\r
running 14 tests\r
test comparing::every_compare_kernel_orders ... compare: 4 kernels, 966828 calls checked in 0.2 s, 0 failed, 0 skipped\r
ok\r
copy: 27 kernels, 1155141 calls checked in 0.3 s, 1 failed, 2 skipped\r
test result: ok. 14 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.02s\r
\r
[    7.9] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00006500\r
";

    #[test]
    fn summary_reads_counts_and_status() {
        let summary = Summary::of(LOG);
        assert_eq!((summary.kernels, summary.calls), (31, 2_121_969));
        assert_eq!((summary.failed, summary.skipped), (1, 2));
        assert_eq!(summary.status, Some(0x6500));
        assert_eq!(
            summary.result,
            "ok. 14 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out"
        );
        assert!(!summary.passed());
        assert_eq!(Summary::of("").status, None);
        assert!(told(LOG).starts_with("running 14 tests\ntest comparing"));
        assert!(!told(LOG).contains("exitcode"));
    }
}
