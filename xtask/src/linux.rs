//! The kernel series in `linux/`: that it applies and compiles, and that the kernel boots and keeps
//! what it promises. What each step does is in the scripts there, which people run too.

use crate::command::{self, Lacking, root, run};
use anyhow::{Context as _, Result, ensure};
use cachewise_measure::record::groups;
use cachewise_measure::stats::median;
use cachewise_measure::{
    CellKey, Clock, Figure, Header, Machine, NoiseSnapshot, PairedRatio, Row, Writer, warnings,
};
use fs_err as fs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that the steps need, each with the Debian package it comes from.
const NEEDS: [(&str, &str); 7] = [
    ("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring"),
    ("/usr/bin/patch", "patch"),
    ("/usr/bin/flex", "flex"),
    ("/usr/bin/bison", "bison"),
    ("/usr/bin/bc", "bc"),
    ("/usr/bin/cpio", "cpio"),
    ("/usr/include/libelf.h", "libelf-dev"),
];

/// The emulator for the kernel for x86-64.
const MACHINE: (&str, &str) = ("/usr/bin/qemu-system-x86_64", "qemu-system-x86");

/// CI's stage, of one kernel, for minutes of CPU time. Every patch applies exactly and is as `checkpatch.pl` wants it.
/// User Mode Linux, which proves the order of its locks, compiles without a warning and runs the guest's own tests, with
/// every block that is marked as zero read before it is handed out. Meanwhile what the patches touch, hibernation
/// included, is compiled for x86-64.
pub(crate) fn proves_locks() -> Result<()> {
    Lacking::check(NEEDS)?;
    let (build, touched) = (folder(), touched(&patches()?));
    ensure!(!touched.is_empty(), "the series touches no file that is compiled");
    let _lock = locked(&build)?;
    applied(&build)?;
    as_reviewers_want(&build)?;
    compiles(&build, "um-locks", &[])?;
    let mut guest = boot(&build, "um-locks").arg("invariants").spawn()?;
    let compiled = compiles_alone(&build, "x86-locks", &touched);
    let status = guest.wait()?;
    ensure!(status.success(), "the guest ended with {status}");
    compiled
}

/// Messages of `checkpatch.pl --strict` that are accepted: who sends the series signs it, new files have no maintainer
/// yet, names of page flags are in capitals, and two lines are like their neighbours.
const ACCEPTED: &str = "BAD_SIGN_OFF,FROM_SIGN_OFF_MISMATCH,NO_AUTHOR_SIGN_OFF,FILE_PATH_CHANGES,CAMELCASE,BIT_MACRO,AVOID_BUG";

fn as_reviewers_want(build: &Path) -> Result<()> {
    for patch in files(&["series"])? {
        let mut check = Command::new("perl");
        check.arg(build.join("source/scripts/checkpatch.pl")).current_dir(build.join("source"));
        check.args(["--strict", "--quiet", "--no-summary", "--show-types", "--ignore", ACCEPTED]);
        let said = command::text(&check.arg(&patch).output()?.stdout);
        ensure!(said.trim().is_empty(), "{}:\n{said}", patch.display());
    }
    Ok(())
}

/// These object files alone. Folders of an architecture have two parents in the makefiles: without the limit their files
/// are built twice at once.
fn compiles_alone(build: &Path, flavour: &str, objects: &BTreeSet<String>) -> Result<()> {
    let objects = objects.iter().map(String::as_str);
    let (special, general): (Vec<_>, Vec<_>) = objects.partition(|file| file.starts_with("arch/"));
    compiles(build, flavour, &general)?;
    compiles(build, flavour, &[&["-j1"], &special[..]].concat())
}

/// The kernel, or these targets of its makefile.
fn compiles(build: &Path, flavour: &str, targets: &[&str]) -> Result<()> {
    let arguments = [&[flavour], targets].concat();
    let printed = script("build", build, &arguments)?;
    ensure!(!printed.contains("warning:"), "the compiler warns:\n{printed}");
    Ok(())
}

/// An object that only a kernel that hibernates has.
const HIBERNATES: &str = "kernel/power/snapshot.o";

/// A chore for which CI has no time. The kernel for x86-64, which has all that the patches touch, compiles without a warning and
/// runs the guest's own tests in QEMU, where there are huge pages. Then, with every allocation a request for zero: the
/// kernel's own tests, and the command.
pub(crate) fn boots_x86() -> Result<()> {
    Lacking::check(NEEDS.into_iter().chain([MACHINE]))?;
    let build = folder();
    let _lock = locked(&build)?;
    if !build.join("source/mm/prezero.c").exists() {
        applied(&build)?;
    }
    compiles(&build, "x86", &[])?;
    let mut lacks = touched(&patches()?);
    lacks.retain(|object| object != HIBERNATES && !build.join("x86").join(object).exists());
    ensure!(lacks.is_empty(), "not a part of the kernel: {lacks:?}");
    run(boot(&build, "x86").arg("invariants"))?;
    script("selftests", &build, &["x86"])?;
    run(&mut command::cargo("build --release -p cachewise-cli"))?;
    let mut programs = boot(&build, "x86");
    programs.args(["selftests", "cachewise", "init_on_alloc=1"]);
    run(programs.env("CACHEWISE", command::target().join("release/cachewise")))
}

fn boot(build: &Path, flavour: &str) -> Command {
    let mut boot = Command::new(linux().join("boot"));
    boot.arg(build).arg(flavour);
    boot
}

/// The source with the series.
fn applied(build: &Path) -> Result<()> {
    script("fetch", build, &[])?;
    script("apply", build, &[])?;
    Ok(())
}

/// Folder in which kernels are built.
fn folder() -> PathBuf {
    command::target().join("linux")
}

/// Lock of the folder: another build there waits.
fn locked(build: &Path) -> Result<fs::File> {
    fs::create_dir_all(build)?;
    let lock = fs::File::create(build.join("lock"))?;
    lock.file().lock()?;
    Ok(lock)
}

/// Run `/proc/zeroed_bench` under User Mode Linux and write a record.
#[derive(Debug, clap::Args)]
pub(crate) struct PrezeroBench {
    /// Folder where `linux/build DIRECTORY um-plain` built the kernel
    directory: PathBuf,
    /// Boots, each a round of the record
    #[arg(long, default_value_t = 6)]
    launches: u32,
    /// The record
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

const PREZERO_BENCH: &str = "prezero-bench";
/// The candidate that the others are compared with: nothing is zeroed ahead.
const OFF: &str = "off";

/// Boots so often and writes what the kernel's allocator takes for a zeroed block.
pub(crate) fn prezero_bench(args: &PrezeroBench) -> Result<()> {
    let tool = concat!("xtask ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, Machine::describe(), Clock::of_process().facts(), 0);
    let noise = NoiseSnapshot::take();
    let mut launches = Vec::new();
    for _ in 0..args.launches {
        run(boot(&args.directory, "um-plain").arg("bench"))?;
        launches.extend(timed(&fs::read_to_string(args.directory.join("boot-um-plain.log"))?)?);
    }
    header.settings.insert("launches".to_owned(), args.launches.into());
    header.warnings = warnings(&noise, &NoiseSnapshot::take(), &header.machine);
    header.figures =
        vec![Figure::curve("Time for a zeroed block", "size", "total_ns").by(&["state"])];
    let mut record = Writer::create(&args.output)?;
    record.header(&header)?;
    compared(joined(&launches, <[f64]>::to_vec)).iter().try_for_each(|row| record.row(row))?;
    record.finish(false)?;
    Ok(())
}

/// The rows of one boot: the middle one of its readings of the file.
fn timed(log: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [
            "guest:",
            when,
            "order",
            order,
            pass,
            blocks,
            "blocks",
            alone,
            "ns",
            "to",
            "allocate",
            whole,
            ..,
        ] = words[..]
        else {
            continue;
        };
        let read = || -> Option<Row> {
            let [alone, whole] = [alone.parse::<f64>().ok()?, whole.parse().ok()?];
            let cell = CellKey {
                reader: Some(1.0),
                ..CellKey::new("zero-pages", 4096 << order.parse::<u32>().ok()?, pass)
            };
            let mut row = Row::new(PREZERO_BENCH, cell, when, OFF, vec![alone]);
            row.reader_ns = vec![whole - alone];
            row.calls = blocks.parse().ok()?;
            Some(row)
        };
        rows.push(read().with_context(|| format!("not a line of /proc/zeroed_bench: {line}"))?);
    }
    ensure!(!rows.is_empty(), "the guest printed no line of /proc/zeroed_bench");
    Ok(joined(&rows, |times| vec![median(times)]))
}

/// One row for each candidate in each cell, from all times of such rows.
fn joined(rows: &[Row], times: fn(&[f64]) -> Vec<f64>) -> Vec<Row> {
    let one = |rows: Vec<&Row>| {
        let all = |part: fn(&Row) -> &Vec<f64>| {
            times(&rows.iter().flat_map(|row| part(row).clone()).collect::<Vec<f64>>())
        };
        let (operation_ns, reader_ns) = (all(|row| &row.operation_ns), all(|row| &row.reader_ns));
        Row { operation_ns, reader_ns, ..rows[0].clone() }
    };
    let key = |row: &Row| (row.cell.clone(), row.candidate.clone());
    groups(rows, key).into_iter().map(|(_, rows)| one(rows)).collect()
}

/// Each over the kernel that zeroes nothing ahead.
fn compared(mut rows: Vec<Row>) -> Vec<Row> {
    let known = rows.clone();
    for row in &mut rows {
        let is_base = |other: &&Row| other.cell == row.cell && other.candidate == row.reference;
        let Some(base) = known.iter().find(is_base) else { continue };
        row.ratio = Some(PairedRatio::paired(&row.operation_ns, &base.operation_ns));
        row.total_ratio = Some(PairedRatio::paired(&row.total_ns(), &base.total_ns()));
        row.verdict = row.said();
    }
    rows
}

fn linux() -> PathBuf {
    root().join("linux")
}

fn script(name: &str, build: &Path, arguments: &[&str]) -> Result<String> {
    let output = command::output(Command::new(linux().join(name)).arg(build).args(arguments))?;
    let printed = command::text(&output.stdout) + &command::text(&output.stderr);
    println!("{printed}");
    Ok(printed)
}

/// The patches of these sets, without their cover letters.
fn files(sets: &[&str]) -> Result<Vec<PathBuf>> {
    let mut patches = Vec::new();
    for set in sets {
        patches.extend(command::files_in(&linux().join(set), "", ".patch")?);
    }
    let is_cover = |file: &PathBuf| file.file_name().is_some_and(|name| name == COVER);
    patches.retain(|file| !is_cover(file));
    Ok(patches)
}

const COVER: &str = "0000-cover-letter.patch";

/// The texts of all patches: the series, and what is not sent with it.
fn patches() -> Result<Vec<String>> {
    files(&["series", "primitives"])?.iter().map(|file| Ok(fs::read_to_string(file)?)).collect()
}

/// Object files made from the files that are changed or added.
fn touched(patches: &[String]) -> BTreeSet<String> {
    let lines = patches.iter().flat_map(|patch| patch.lines());
    let files = lines.filter_map(|line| line.strip_prefix("+++ b/"));
    let stems = files.filter_map(|file| file.strip_suffix(".c").or(file.strip_suffix(".S")));
    stems.map(|stem| format!("{stem}.o")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_compiled_is_what_the_series_touches() {
        let patch =
            "+++ b/mm/a.c\n+++ b/mm/a.h\n+++ b/arch/x86/lib/b.S\n--- a/mm/c.c\n+++ /dev/null\n";
        let objects: Vec<_> = touched(&[patch.to_owned(), patch.to_owned()]).into_iter().collect();
        assert_eq!(objects, ["arch/x86/lib/b.o", "mm/a.o"]);
    }

    #[test]
    fn a_boot_is_a_round_and_its_middle_reading_counts() {
        let boot = |off: [u32; 3]| {
            let line = |when, time| {
                format!(
                    "guest: {when} order  9 first  28 blocks {time} ns to allocate {} ns with reading\r\n",
                    time + 5
                )
            };
            let off = off.map(|time| line(OFF, time)).concat();
            timed(&format!("booting\n{off}{}guest: ok\n", line("hitting", 10))).unwrap()
        };
        let launches = [boot([100, 900, 200]), boot([400, 300, 100])].concat();
        let rows = compared(joined(&launches, <[f64]>::to_vec));
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].cell.size, rows[0].calls), (2 << 20, 28));
        assert_eq!(
            (rows[0].operation_ns.as_slice(), rows[0].reader_ns.as_slice()),
            (&[200.0, 300.0][..], &[5.0; 2][..])
        );
        assert_eq!(rows[1].ratio.map(|ratio| ratio.rounds), Some(2));
        assert!(
            timed("guest: ok\n").is_err()
                && timed("guest: off order 9 first x blocks 1 ns to allocate 2 ns").is_err()
        );
    }

    /// The table that the cover letter wants, with a `perf` that is four times as fast where prezeroing is on.
    #[test]
    fn off_and_on_are_compared_on_bare_metal() {
        let folder = tempfile::tempdir().unwrap();
        let (switch, perf) = (folder.path().join("switch"), folder.path().join("perf"));
        fs::write(&switch, "0\n").unwrap();
        let says =
            format!("#!/bin/sh\necho \"$(($(cat {}) * 30 + 10)).5 GB/sec\"\n", switch.display());
        fs::write(&perf, says).unwrap();
        fs::set_permissions(&perf, std::fs::Permissions::from_mode(0o755)).unwrap();
        let measured = |switch: &Path| {
            let mut script = Command::new(linux().join("bare-metal"));
            script.arg(folder.path()).arg("measure").env("ROUNDS", "1").env("PERF", &perf);
            script.env("SWITCH", switch).output().unwrap()
        };
        let table = command::text(&measured(&switch).stdout);
        let row = table.lines().find(|line| line.contains("demand")).unwrap();
        let cells: Vec<_> = row.split_whitespace().skip(1).collect();
        assert_eq!(cells, ["10.5", "40.5", "3.857", "3.857"], "{table}");
        assert!(table.contains("\nCPU-of-everything-ticks "), "{table}");
        assert_eq!(fs::read_to_string(&switch).unwrap(), "0\n");
        let refused = measured(Path::new("/nowhere"));
        assert!(!refused.status.success() && command::text(&refused.stderr).contains("/nowhere"));
    }
}
