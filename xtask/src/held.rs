//! `xtask programs --group held`: services whose live memory is known (`programs/held/held.c`). `advise --goal memory` has to say
//! the right word of each, and what is live within a twentieth of the level.

use crate::command::{self, Lacking, root, text};
use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mode of the program, the library that it is linked with, and the word.
const TABLE: [(&str, &str, &str); 10] = [
    ("arenas", "", "held"),
    ("top", "", "held"),
    ("thresholds", "", "held"),
    ("leak", "", "leaked"),
    ("cache", "", "needed"),
    ("idle", "libjemalloc.so.2", "held"),
    ("idle", "libmimalloc.so.2", "held"),
    ("idle", RJEM, "held"),
    ("two", "libjemalloc.so.2", "held"),
    ("lazy", "", "needed"),
];
/// jemalloc inside of the program, by the prefix that Rust's crate gives it.
const RJEM: &str = "rjem";
/// The part of the level by which what is live may be missed.
const MISSED: f64 = 0.05;

/// Runs each, says what was found, and counts.
pub fn run(advise: &Path) -> Result<()> {
    let (mut right, mut wrong) = (0, Vec::new());
    for (mode, library, word) in TABLE {
        let name = format!("{mode} {library}");
        match one(advise, mode, library, word) {
            Ok(said) => {
                println!("{name:<22} {said}");
                right += 1;
            }
            Err(error) => {
                println!("{name:<22} {error:#}");
                if !error.is::<Lacking>() {
                    wrong.push(name);
                }
            }
        }
    }
    println!("{right} of {} are right", TABLE.len());
    ensure!(wrong.is_empty(), "wrong: {}", wrong.join(", "));
    Ok(())
}

fn one(advise: &Path, mode: &str, library: &str, word: &str) -> Result<String> {
    let folder = tempfile::Builder::new().prefix("cachewise-held").tempdir()?;
    let place = folder.path();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-pthread", "-o", "held"]).current_dir(place);
    compiler.arg(root().join("xtask/programs/held/held.c"));
    match library {
        "" => {}
        RJEM => _ = compiler.arg("-DRJEM").arg(prefixed()?).arg("-lm"),
        name => _ = compiler.arg("-Wl,--no-as-needed").arg(installed(name)?),
    }
    let said = compiler.output()?;
    ensure!(said.status.success(), "cc: {}", text(&said.stderr));
    let mut command = Command::new(advise);
    command.args(["advise", "--goal", "memory", "--budget", "20s", "--settle", "0", "--json", "r"]);
    command.args(["--load", "./held load s", "--", "./held", mode, "s"]).current_dir(place);
    let said = command.output()?;
    ensure!(matches!(said.status.code(), Some(0 | 4)), "{}: {}", said.status, text(&said.stderr));
    let record = fs::read_to_string(place.join("r"))?;
    let header: Value = serde_json::from_str(record.lines().next().context("an empty record")?)?;
    let memory = &header["settings"]["memory"];
    let of = |name: &str| memory[name].as_f64().unwrap_or(f64::NAN);
    let loads = memory["lives"].as_array().map_or(0, Vec::len);
    // The first server is that of the plain run.
    let known = fs::read_to_string(place.join("live-2"))?;
    let known = known.lines().nth(loads.saturating_sub(1)).context("no load was written down")?;
    let (known, live, level) = (known.parse::<f64>()?, of("live"), of("level"));
    let found = memory["word"].as_str().unwrap_or_default();
    let mib = |bytes: f64| bytes / 1048576.0;
    let said = format!(
        "{found}: live {:.1} of {:.1} MiB, by itself {:.1}; a trim returns {:.1}",
        mib(live),
        mib(level),
        mib(known),
        mib(of("trimmed"))
    );
    let is_close = (live - known).abs() <= MISSED * level;
    ensure!(is_close && found == word, "{said}; expected {word}");
    Ok(said)
}

fn installed(name: &str) -> Result<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = [multiarch.as_str(), "/usr/lib64", "/usr/lib"];
    let mut all = places.iter().map(|place| Path::new(place).join(name));
    match all.find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!(Lacking(format!("{name} not installed"))),
    }
}

/// A static jemalloc whose names begin with `_rjem_`, as the crate builds it.
fn prefixed() -> Result<PathBuf> {
    let folder = command::target().join("held-rjem");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "")?;
    // Polars builds it without statistics: of that one nothing is known but what a trim returns.
    let manifest = "[package]\nname = \"rjem\"\nedition = \"2024\"\n[workspace]\n[dependencies]\ntikv-jemalloc-sys = { version = \"0.6\", features = [\"stats\"] }\n";
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let mut cargo = Command::new(env!("CARGO"));
    let said = cargo
        .args(["build", "--release", "--target-dir", "target"])
        .current_dir(&folder)
        .output()?;
    if !said.status.success() {
        bail!(Lacking(format!("jemalloc was not built: {}", text(&said.stderr))));
    }
    for build in fs::read_dir(folder.join("target/release/build"))? {
        let archive = build?.path().join("out/lib/libjemalloc_pic.a");
        if archive.exists() {
            return Ok(archive);
        }
    }
    bail!(Lacking("the crate has built no libjemalloc_pic.a".to_owned()))
}
