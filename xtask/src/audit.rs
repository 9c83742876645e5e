//! `xtask audit`: the findings of the distributions' own checkers about the crates and about what `xtask dist` made.

use crate::command::{Lacking, cargo, files_in, root, run as run_command, target};
use crate::python;
use anyhow::{Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files to check.
#[derive(Debug, clap::Args)]
pub struct Audit {
    /// The folder that `xtask dist` filled
    #[arg(long, value_name = "DIR", default_value = "target/dist/out")]
    output: PathBuf,
    /// Check the crates alone
    #[arg(long)]
    crates: bool,
}

/// Crates that a program names in its `Cargo.toml`; the others need the repository.
const CRATES: [&str; 3] = ["cachewise-kernels", "cachewise", "cachewise-pages"];

/// Checks the crates, then every wheel and every `.deb` of the folder.
pub fn run(args: &Audit) -> Result<()> {
    crates()?;
    if args.crates {
        return Ok(());
    }
    let folder = root().join(&args.output);
    let (wheels, packages) = (files_in(&folder, "", ".whl")?, files_in(&folder, "", ".deb")?);
    ensure!(
        !wheels.is_empty() || !packages.is_empty(),
        "{}: found no wheel and no .deb, accepted what xtask dist makes",
        folder.display()
    );
    if !wheels.is_empty() {
        self::wheels(&wheels)?;
    }
    packages.iter().try_for_each(|package| debian(package))
}

/// Packs the crates as a registry takes them, and builds each from its own files alone.
fn crates() -> Result<()> {
    let mut package = cargo("package --allow-dirty --quiet");
    package.args(CRATES.iter().flat_map(|name| ["-p", name])).current_dir(root());
    run_command(&mut package)
}

fn wheels(wheels: &[PathBuf]) -> Result<()> {
    let list = fs::read_to_string(root().join("packaging/requirements-audit.txt"))?;
    let wanted: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let place = target().join("dist");
    fs::create_dir_all(&place)?;
    let python = python::environment(&place.join("audit-tools"), &list, &wanted)?;
    let tool = |name: &str| Command::new(python.with_file_name(name));
    run_command(tool("twine").args(["check", "--strict"]).args(wheels))?;
    for wheel in wheels {
        run_command(tool("abi3audit").args(["--strict", "--summary"]).arg(wheel))?;
        run_command(tool("auditwheel").arg("show").arg(wheel))?;
    }
    Ok(())
}

/// Lintian's errors and warnings; tags that do not apply are overridden in the package.
fn debian(package: &Path) -> Result<()> {
    Lacking::check([("/usr/bin/lintian", "lintian")])?;
    let mut lintian = Command::new("lintian");
    // As root in a container, too.
    lintian.args(["--allow-root", "--fail-on", "error", "--info", "--color", "never"]);
    run_command(lintian.arg(package))
}
