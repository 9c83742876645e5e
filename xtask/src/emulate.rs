//! Runs the tests of the AVX-512 kernels and of the entry stubs on an emulated CPU, for machines whose
//! own has no AVX-512.
//!
//! Bochs emulates the CPU, Debian's cloud kernel saves its registers, and a test binary, linked
//! statically, is the only process: it is the initial memory disk, its arguments and
//! environment come from the kernel's command line, and its exit status is in the kernel's last
//! words on the serial port ("Attempted to kill init! exitcode=..."), which end the run. Each test
//! binary has a machine of its own; they run side by side.
//!
//! Emulation proves bytes, never speed: no time from it is kept.

use crate::command::{Lacking, cargo, command, files_in, made, number_before, output, root, text};
use anyhow::{Context, Result, anyhow, bail};
use fs_err::{self as fs, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The CPU that Bochs emulates: the first Intel server core with AVX-512 F, BW and VL.
const CPU: &str = "corei7_skylake_x";

/// Words added to the kernel's command line.
/// - Bochs 2.7 reports the standard size of the register area for the compacted format too, and a
///   kernel that notices turns AVX and AVX-512 off; without XSAVEC and XSAVES it uses the standard
///   format, whose size is right.
/// - Warnings and worse are printed, but nothing that would break into the tests' lines.
/// - The rest saves time: no self-tests, no mitigations, no random placement, reboot at the end.
const KERNEL_WORDS: &str = "console=ttyS0,115200 loglevel=5 panic=-1 clearcpuid=xsavec,xsaves \
                            cryptomgr.notests mitigations=off nokaslr rdinit=/tests";

/// A test binary that is run on a machine of its own.
struct Program {
    /// The test's name, and the folder's of its machine.
    test: &'static str,
    /// Of which package, with which features.
    options: &'static str,
    /// What libtest is told.
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

/// What to run and how long.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Kernels and entries whose name contains one of these, separated by commas.
    #[arg(long, default_value = "avx512")]
    pub kernels: String,
    /// How much of the case space is visited: small, normal, thorough.
    #[arg(long, default_value = "small")]
    pub effort: String,
    /// Give up after this many minutes.
    #[arg(long, default_value_t = 20)]
    pub limit: u64,
    /// Fail where packages are missing, rather than skip.
    #[arg(long)]
    pub required: bool,
}

/// What the tests said under emulation.
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

const BIOS: &str = "/usr/share/bochs/BIOS-bochs-latest";
const VGA_BIOS: &str = "/usr/share/bochs/VGABIOS-lgpl-latest";
const LOADER: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const LOADER_MODULE: &str = "/usr/lib/syslinux/modules/bios/ldlinux.c32";

/// Files the emulation needs beside a kernel, each with the Debian package it comes from.
const NEEDS: [(&str, &str); 7] = [
    (BIOS, "bochsbios"),
    (VGA_BIOS, "vgabios"),
    (LOADER, "isolinux"),
    (LOADER_MODULE, "syslinux-common"),
    ("/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so", "bochs-term"),
    ("/usr/bin/bochs", "bochs"),
    ("/usr/bin/xorriso", "xorriso"),
];

/// Builds the tests, boots them on emulated CPUs, and says how it went. Everything it makes is
/// under `target/emulate`; progress goes to stderr.
pub fn run(options: &Options) -> Result<()> {
    Lacking::check(NEEDS)?;
    // The last of Debian's cloud kernels, in the order of names.
    let kernels = files_in("/boot".as_ref(), "vmlinuz-", "-cloud-amd64").unwrap_or_default();
    let kernel = kernels.last().ok_or_else(|| Lacking::packages(&["linux-image-cloud-amd64"]))?;
    let target = root().join("target/emulate");
    let built = PROGRAMS.iter().map(|program| Ok((program, build(program, &target)?)));
    let built = built.collect::<Result<Vec<_>>>()?;
    let machine = |program: &Program, tests: &Path| {
        let folder = target.join("machine").join(program.test);
        boot(program, tests, kernel, &folder, options)
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
fn boot(
    program: &Program,
    tests: &Path,
    kernel: &Path,
    folder: &Path,
    options: &Options,
) -> Result<()> {
    let disk = folder.join("disk");
    fs::create_dir_all(&disk)?;
    fs::copy(kernel, disk.join("vmlinuz"))?;
    fs::copy(LOADER, disk.join("isolinux.bin"))?;
    fs::copy(LOADER_MODULE, disk.join("ldlinux.c32"))?;
    fs::write(disk.join("initrd"), memory_disk(&fs::read(tests)?)?)?;
    // What the kernel does not know becomes its first process's environment, what follows the two
    // dashes its arguments. The loader appends an initrd= of its own unless it finds one.
    let Options { kernels, effort, .. } = options;
    let loader = format!(
        "DEFAULT tests\nPROMPT 0\nLABEL tests\n  KERNEL vmlinuz\n  APPEND initrd=initrd \
         {KERNEL_WORDS} CACHEWISE_TEST_KERNELS={kernels} CACHEWISE_TEST_EFFORT={effort} -- {}\n",
        program.arguments
    );
    fs::write(disk.join("isolinux.cfg"), loader)?;
    let mut image = command("xorriso -as mkisofs -quiet -o disk.iso -b isolinux.bin -c boot.cat");
    image.args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "disk"]);
    output(image.current_dir(folder))?;
    fs::write(folder.join("bochsrc"), machine_configuration())?;
    // Debian's Bochs stops in its debugger first: continue.
    fs::write(folder.join("start"), "continue\n")?;

    let log = folder.join("serial.log");
    run_machine(folder, &log, Duration::from_secs(options.limit * 60))?;
    let text = read_log(&log);
    let summary = Summary::of(&text);
    let what = format!("emulated AVX-512, {}", program.test);
    if !summary.passed() {
        println!("{}", told(&text));
        bail!("{what}: failed ({summary:?}); all of it: {}", log.display());
    }
    let Summary { kernels, calls, result, .. } = summary;
    println!("{what}: {kernels} run, {calls} calls checked; test result: {result}");
    Ok(())
}

/// What the tests printed: all between the first of libtest's lines and the kernel's last words.
fn told(log: &str) -> String {
    let lines = log.lines().skip_while(|line| !line.trim_start().starts_with("running "));
    let lines = lines.take_while(|line| !line.contains("Kernel panic"));
    lines.map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Builds a test binary without dynamic linking and without symbols; returns its path.
fn build(program: &Program, target: &Path) -> Result<PathBuf> {
    let Program { test, options, .. } = program;
    let mut build = cargo("test --no-run --target x86_64-unknown-linux-gnu --message-format json");
    build.args(["--config", "profile.dev.debug=false"]);
    build.args(["--config", "profile.dev.strip=\"symbols\""]);
    build.args(options.split(' ')).args(["--test", test, "--target-dir"]).arg(target);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static").current_dir(root());
    let told = output(build.stderr(Stdio::inherit()))?.stdout;
    made(&told, None).remove(*test).context("cargo named no test binary")
}

/// A memory disk with a console and one program, in the `newc` format (Linux,
/// Documentation/driver-api/early-userspace/buffer-format.rst).
fn memory_disk(program: &[u8]) -> Result<Vec<u8>> {
    use cpio::newc::{Builder, trailer};
    let (folder, character_device, executable) = (0o040_755, 0o020_600, 0o100_755);
    let console = Builder::new("dev/console").mode(character_device).rdev_major(5).rdev_minor(1);
    let mut disk = Vec::new();
    // Any inodes but 0: nothing here is linked twice.
    for (inode, (entry, content)) in (1..).zip([
        (Builder::new("dev").mode(folder), &[][..]),
        (console, &[]),
        (Builder::new("tests").mode(executable), program),
    ]) {
        let mut entry = entry.ino(inode).write(disk, content.len() as u32);
        entry.write_all(content)?;
        disk = entry.finish()?;
    }
    Ok(trailer(disk)?)
}

fn machine_configuration() -> String {
    format!(
        "megs: 512\n\
         cpu: model={CPU}, count=1, ips=50000000\n\
         romimage: file={BIOS}\n\
         vgaromimage: file={VGA_BIOS}\n\
         ata0-master: type=cdrom, path=disk.iso, status=inserted\n\
         boot: cdrom\n\
         com1: enabled=1, mode=file, dev=serial.log\n\
         display_library: term\n\
         clock: sync=none\n\
         log: bochs.log\n\
         panic: action=fatal\n\
         error: action=ignore\n\
         info: action=ignore\n"
    )
}

/// Runs the machine until its serial port reports the test binary's end.
fn run_machine(folder: &Path, log: &Path, limit: Duration) -> Result<()> {
    if log.exists() {
        fs::remove_file(log)?;
    }
    let screen = File::create(folder.join("screen.log"))?.into_file();
    let mut bochs = command("bochs -q -f bochsrc -rc start");
    bochs.current_dir(folder).env("TERM", "vt100"); // it draws a text screen, into a file here
    bochs.stdin(Stdio::null()).stdout(screen.try_clone()?).stderr(screen);
    let mut machine = bochs.spawn().context("bochs could not be started")?;
    let (started, mut shown) = (Instant::now(), 0);
    let ended = loop {
        std::thread::sleep(Duration::from_millis(500));
        let text = read_log(log);
        show_progress(&text, &mut shown);
        if text.contains("exitcode=0x") {
            break Ok(());
        }
        if !matches!(machine.try_wait(), Ok(None)) {
            let folder = folder.display();
            break Err(anyhow!("the emulated machine stopped early: see the logs in {folder}"));
        }
        if started.elapsed() > limit {
            break Err(anyhow!("no result after {} s: see {}", limit.as_secs(), log.display()));
        }
    };
    // Refused only where it has ended already.
    let _ = machine.kill();
    let _ = machine.wait();
    ended
}

/// The serial port's log so far; empty before the machine has opened it.
fn read_log(log: &Path) -> String {
    fs::read(log).map(|bytes| text(&bytes)).unwrap_or_default()
}

/// Passes on whole lines that the tests have printed since the last call.
fn show_progress(text: &str, shown: &mut usize) {
    let Some(end) = text.rfind('\n') else { return };
    for line in text.get(*shown..end).unwrap_or_default().lines() {
        if line.contains(" calls checked in ") || line.starts_with("test ") {
            eprintln!("  {}", line.trim_end());
        }
    }
    *shown = end;
}

#[cfg(test)]
mod tests {
    use super::{Summary, memory_disk, told};

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

    #[test]
    fn a_memory_disk_has_a_console_and_the_program() {
        let disk = memory_disk(b"program").expect("a disk");
        let text = String::from_utf8_lossy(&disk);
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.contains("dev/console\0") && text.contains("program"), "{text}");
    }
}
