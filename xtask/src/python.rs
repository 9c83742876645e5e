//! The Python package as a user gets it: a wheel, in an environment of its own, with the tests of the package.

use crate::command::{self, files_in, remove_folder, root, run as run_command};
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn run() -> Result<()> {
    let place = command::target().join("python");
    fs::create_dir_all(&place)?;
    let old_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    run_command(Command::new("python3").args(["-c", old_enough])).context(
        "the package needs Python 3.11 or later (Debian packages: python3 python3-venv)",
    )?;
    let list = root().join("python/requirements.txt");
    let packages = ["--requirement", path(&list)?];
    let python = environment(&place.join("environment"), &fs::read_to_string(&list)?, &packages)?;
    let wheel = built(&python, &place.join("wheels"))?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
    run_command(Command::new(&python).args(pip).arg(&wheel))?;
    println!("python: the package's tests");
    // Some wait: for a tuning, for the end of a scheduler.
    let processes = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut tests = module(&python, &format!("pytest -q -p no:cacheprovider -n {processes}"))?;
    run_command(tests.arg(root().join("python/tests")).env("CACHEWISE_TEST_WHEEL", &wheel))?;
    println!("python: types");
    // And whether the stub of the extension module says what the module has.
    for words in ["mypy", "mypy.stubtest --mypy-config-file pyproject.toml cachewise._core"] {
        let mut mypy = module(&python, words)?;
        mypy.env("MYPY_CACHE_DIR", python.with_file_name("mypy-cache"));
        run_command(mypy.current_dir(root().join("python")))?;
    }
    // A user's program, by the stubs that were installed.
    let mut mypy = module(&python, "mypy --strict --config-file= --python-version 3.11")?;
    mypy.env("MYPY_CACHE_DIR", python.with_file_name("mypy-cache-of-users"));
    mypy.arg(root().join("python/tests/typed/program.py"));
    run_command(mypy.current_dir(python.parent().context("a folder")?))
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

/// The Python of an environment with those packages and no others, made anew when the list changes.
pub(crate) fn environment(folder: &Path, list: &str, packages: &[&str]) -> Result<PathBuf> {
    let (python, stamp) = (folder.join("bin/python"), folder.join("made-from"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == list) {
        return Ok(python);
    }
    eprintln!("installing {} into {}", packages.join(" "), folder.display());
    remove_folder(folder)?;
    run_command(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet"];
    run_command(Command::new(&python).args(pip).args(packages))?;
    fs::write(&stamp, list)?;
    Ok(python)
}

/// The line of `packaging/requirements.txt` that names a package's version.
pub(crate) fn listed(package: &str) -> Result<String> {
    let list = fs::read_to_string(root().join("packaging/requirements.txt"))?;
    let line = list.lines().find(|line| line.split("==").next() == Some(package));
    Ok(line.with_context(|| format!("packaging/requirements.txt: no {package}"))?.to_owned())
}

/// The wheel in an empty folder, made as `pip install ./python` makes it, with the environment's own maturin.
pub(crate) fn built(python: &Path, wheels: &Path) -> Result<PathBuf> {
    remove_folder(wheels)?;
    let mut pip = module(python, "pip wheel --quiet --no-deps --no-build-isolation --wheel-dir")?;
    run_command(pip.arg(wheels).arg(root().join("python")))?;
    let mut found = files_in(wheels, "", "")?;
    ensure!(found.len() == 1, "{}: expected one, found {} wheels", wheels.display(), found.len());
    found.pop().context("a wheel")
}

/// A module with the programs of its environment before all others. `-P`: the folder it is started in is
/// no place for modules, or the sources would be tested in place of what was installed.
fn module(python: &Path, words: &str) -> Result<Command> {
    let programs = python.parent().context("a folder of programs")?;
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&others));
    let mut command = Command::new(python);
    command.args(["-P", "-m"]).args(words.split(' '));
    command.env("PATH", std::env::join_paths(path)?).env_remove("PYTHONPATH");
    Ok(command)
}
