//! Starting other programs: cargo and compilers, whose failure is the chore's.

use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."))
}

/// The cargo that runs this.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs it to its end, with all that it prints shown.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs it to its end and returns what it printed, which is told where it failed.
pub fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    ensure!(output.status.success(), "{command:?} ended with {}\n{out}{err}", output.status);
    Ok(output)
}

/// What a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files that cargo says it made (`--message-format json`): programs, else libraries, by target.
pub fn made(told: &[u8]) -> BTreeMap<String, PathBuf> {
    let file = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?.to_owned();
        let library = || {
            let files = message["filenames"].as_array()?.iter().filter_map(|file| file.as_str());
            files.into_iter().find(|file| file.ends_with(".rlib"))
        };
        Some((name, message["executable"].as_str().or_else(library)?.into()))
    };
    text(told).lines().filter_map(file).collect()
}
