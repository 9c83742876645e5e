//! The kernel series in `linux/`: that it applies and compiles, and that the kernel boots and keeps
//! what it promises. What each step does is in the scripts there, which people run too.

use crate::command::{self, Lacking, remove_folder, root, run};
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
use std::time::{Duration, Instant};

/// What the steps need, each with the Debian package it comes from.
const NEEDS: [(&str, &str); 7] = [
    ("/usr/src/linux-source-6.12.tar.xz", "linux-source-6.12"),
    ("/usr/bin/patch", "patch"),
    ("/usr/bin/flex", "flex"),
    ("/usr/bin/bison", "bison"),
    ("/usr/bin/bc", "bc"),
    ("/usr/bin/cpio", "cpio"),
    ("/usr/include/libelf.h", "libelf-dev"),
];

const QEMU: (&str, &str) = ("/usr/bin/qemu-system-x86_64", "qemu-system-x86");

/// The stage that builds and boots.
pub(crate) const BOOT: &str = "linux-boot";

/// What that may take: a kernel has to be built first.
pub(crate) const BOOT_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Every patch applies exactly, and every file that one touches compiles without a warning.
pub(crate) fn compiles() -> Result<()> {
    Lacking::check(NEEDS)?;
    let (build, patches) = (command::target().join("linux"), patches()?);
    remove_folder(&build.join("source"))?;
    script("fetch", &build, &[])?;
    script("apply", &build, &[])?;
    let touched = touched(&patches);
    ensure!(!touched.is_empty(), "the series touches no file that is compiled");
    // Whole folders, since not every file is a part of this kernel.
    let objects = touched.iter().filter(|target| *target != FOLDER);
    let folders = objects.filter_map(|object| Some(format!("{}/", object.rsplit_once('/')?.0)));
    for (flavour, targets) in [("x86", &touched), ("um", &folders.collect())] {
        let mut arguments = vec![flavour];
        arguments.extend(targets.iter().map(String::as_str));
        let printed = script("build", &build, &arguments)?;
        ensure!(!printed.contains("warning:"), "the compiler warns:\n{printed}");
    }
    println!("linux: {} patches applied, {} targets compiled", patches.len(), touched.len());
    Ok(())
}

/// The kernel under QEMU, with every block from a zero list read before it is handed out: the guest's
/// own tests, the kernel's, and the command.
pub(crate) fn boots() -> Result<()> {
    Lacking::check(NEEDS.into_iter().chain([QEMU]))?;
    let build = command::target().join("linux");
    if !build.join("source/mm/scrub.c").exists() {
        script("fetch", &build, &[])?;
        script("apply", &build, &[])?;
    }
    let begun = Instant::now();
    let left = || BOOT_LIMIT.saturating_sub(begun.elapsed()).max(Duration::from_secs(1));
    let mut limited = Command::new("timeout");
    limited.arg(left().as_secs().to_string()).arg(linux().join("build")).arg(&build).arg("x86");
    run(limited.env("KBUILD_BUILD_TIMESTAMP", "@0"))?;
    let boot = |parts: &[&str], cachewise: Option<&Path>| {
        let mut boot = Command::new(linux().join("boot"));
        boot.arg(&build).arg("x86").args(parts).env("LIMIT", left().as_secs().to_string());
        run(boot.envs(cachewise.map(|path| ("CACHEWISE", path))))
    };
    let invariants = Instant::now();
    boot(&["invariants"], None)?;
    let booting = invariants.elapsed();
    let without_the_rest = || {
        println!("linux-boot: selftests and the command SKIPPED, {} s are left", left().as_secs());
        Ok(())
    };
    if !has_room_for_the_rest(begun.elapsed()) {
        return without_the_rest();
    }
    script("selftests", &build, &["x86"])?;
    let command = command_for_guests(&build)?;
    // No boot of the same guest is shorter.
    if left() < booting {
        return without_the_rest();
    }
    boot(&["selftests", "cachewise", "init_on_alloc=1"], Some(&command))
}

/// Whether the kernel's own tests and the command are begun, after all before them took so long on this
/// machine: where as much time is left and a quarter more. They are the same kinds of work again, a build and a boot.
fn has_room_for_the_rest(took: Duration) -> bool {
    BOOT_LIMIT.saturating_sub(took) >= took + took / 4
}

/// The command, linked statically: a guest has no libraries.
fn command_for_guests(build: &Path) -> Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let folder = build.join("cargo");
    let mut cargo = command::cargo("build --release -p cachewise-cli --target");
    cargo.args([TARGET, "--target-dir"]).arg(&folder).current_dir(root());
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    run(cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false"))?;
    Ok(folder.join(TARGET).join("release/cachewise"))
}

/// What `/proc/zeroed_bench` says under User Mode Linux, as a record.
#[derive(Debug, clap::Args)]
pub(crate) struct ZeroedBench {
    /// Where `linux/build DIRECTORY um` built the kernel
    directory: PathBuf,
    /// Boots, each a round of the record
    #[arg(long, default_value_t = 6)]
    launches: u32,
    /// The record
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

const ZEROED_BENCH: &str = "zeroed-bench";
/// The candidate that the others are compared with: nothing is zeroed ahead.
const OFF: &str = "off";

/// Boots so often and writes what the kernel's allocator takes for a zeroed block.
pub(crate) fn zeroed_bench(args: &ZeroedBench) -> Result<()> {
    let tool = concat!("xtask ", env!("CARGO_PKG_VERSION"));
    let mut header = Header::now(tool, Machine::describe(), Clock::of_process().facts(), 0);
    let noise = NoiseSnapshot::take();
    let mut launches = Vec::new();
    for _ in 0..args.launches {
        run(Command::new(linux().join("boot")).arg(&args.directory).args(["um", "bench"]))?;
        launches.extend(timed(&fs::read_to_string(args.directory.join("boot-um.log"))?)?);
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
            let mut row = Row::new(ZEROED_BENCH, cell, when, OFF, vec![alone]);
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
        row.ratio = Some(PairedRatio::exact(&row.operation_ns, &base.operation_ns));
        row.total_ratio = Some(PairedRatio::exact(&row.total_ns(), &base.total_ns()));
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

/// Its single targets fail where dependencies are noted.
const FOLDER: &str = "arch/x86/lib/";

/// The texts of the series.
fn patches() -> Result<Vec<String>> {
    let files = command::files_in(&linux().join("patches"), "", "")?;
    files.iter().map(|file| Ok(fs::read_to_string(file)?)).collect()
}

/// What is made of the files that are changed or added: objects, and the whole of a folder whose
/// assembly Kbuild makes no single object of.
fn touched(patches: &[String]) -> BTreeSet<String> {
    let lines = patches.iter().flat_map(|patch| patch.lines());
    let files = lines.filter_map(|line| line.strip_prefix("+++ b/"));
    let stems = files.filter_map(|file| file.strip_suffix(".c").or(file.strip_suffix(".S")));
    let of_stem = |stem: &str| match stem.starts_with(FOLDER) {
        true => FOLDER.to_owned(),
        false => format!("{stem}.o"),
    };
    stems.map(of_stem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_is_what_the_series_touches() {
        let patch =
            "+++ b/mm/a.c\n+++ b/mm/a.h\n+++ b/arch/x86/lib/b.S\n--- a/mm/c.c\n+++ /dev/null\n";
        let objects: Vec<_> = touched(&[patch.to_owned(), patch.to_owned()]).into_iter().collect();
        assert_eq!(objects, ["arch/x86/lib/", "mm/a.o"]);
    }

    #[test]
    fn the_rest_is_begun_where_more_time_is_left_than_it_took_until_then() {
        let (most, second) = (BOOT_LIMIT * 4 / 9, Duration::from_secs(1));
        let begun =
            [Duration::ZERO, most, most + second, 2 * BOOT_LIMIT].map(has_room_for_the_rest);
        assert_eq!(begun, [true, true, false, false]);
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

    #[test]
    fn the_series_is_there_and_in_order() {
        let patches = patches().unwrap();
        assert!(patches.len() > 1);
        let signed = |patch: &String| patch.contains("\nSigned-off-by: ");
        assert!(patches.iter().all(signed));
        assert!(touched(&patches).contains("mm/page_alloc.o"));
    }
}
