//! The Python package as a user gets it: a wheel, in environments of its own, with the tests of the package
//! under NumPy 1.26 and 2.x.

use crate::command::{self, files_in, remove_folder, root, run as run_command};
use anyhow::{Context as _, Result, anyhow, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release of NumPy: the file of its packages.
struct Environment {
    requirements: &'static str,
    /// The Arrow of today needs NumPy 2: the tests that use it, the fleet's among them, run with that one.
    arrow: bool,
}

const ENVIRONMENTS: [Environment; 2] = [
    Environment { requirements: "requirements-numpy1.txt", arrow: false },
    Environment { requirements: "requirements-numpy2.txt", arrow: true },
];

pub(crate) fn run() -> Result<()> {
    let place = command::target().join("python");
    fs::create_dir_all(&place)?;
    let old_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    run_command(Command::new("python3").args(["-c", old_enough])).context(
        "the package needs Python 3.11 or later (Debian packages: python3 python3-venv)",
    )?;
    let made = |requirements: &str| {
        let list = root().join("python").join(requirements);
        let folder = place.join(requirements.trim_end_matches(".txt"));
        environment(&folder, &fs::read_to_string(&list)?, &["--requirement", path(&list)?])
    };
    let [older, newer] = ENVIRONMENTS;
    // The second one's packages come from the network while the wheel is built and tested.
    std::thread::scope(|scope| {
        let second = scope.spawn(|| made(newer.requirements));
        let python = made(older.requirements)?;
        let wheel = built(&python, &place.join("wheels"))?;
        tests(&python, &wheel, &older)?;
        let python = second.join().map_err(|_| anyhow!("no second environment"))??;
        tests(&python, &wheel, &newer)
    })
}

/// The package's own tests with a release of NumPy.
fn tests(python: &Path, wheel: &Path, environment: &Environment) -> Result<()> {
    let Environment { requirements, arrow } = environment;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
    run_command(Command::new(python).args(pip).arg(wheel))?;
    println!("python: the package's tests, {requirements}");
    // Some wait: for a tuning, for the end of a scheduler.
    let mut own = pytest(python, 2)?;
    let folder = root().join("python/tests");
    if !arrow {
        own.args(["-m", "not arrow", "--ignore"]).arg(folder.join("fleet"));
    }
    run_command(own.arg(folder))?;
    if *arrow {
        println!("python: types");
        // And whether the stub of the extension module says what the module has.
        for words in ["mypy", "mypy.stubtest --mypy-config-file pyproject.toml cachewise._core"] {
            let mut mypy = module(python, words)?;
            mypy.env("MYPY_CACHE_DIR", python.with_file_name("mypy-cache"));
            run_command(mypy.current_dir(root().join("python")))?;
        }
        // A user's program, by the stubs that were installed.
        for version in ["3.11", "3.13"] {
            let mut mypy = module(python, "mypy --strict --config-file= --python-version")?;
            mypy.env("MYPY_CACHE_DIR", python.with_file_name("mypy-cache-of-users"));
            mypy.arg(version).arg(root().join("python/tests/typed/program.py"));
            run_command(mypy.current_dir(python.parent().context("a folder")?))?;
        }
    }
    Ok(())
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
    ensure!(found.len() == 1, "{}: found {} wheels, accepted one", wheels.display(), found.len());
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

/// pytest, in so many processes for each CPU.
fn pytest(python: &Path, per_cpu: usize) -> Result<Command> {
    let processes = per_cpu * std::thread::available_parallelism().map_or(1, usize::from);
    module(python, &format!("pytest -q -p no:cacheprovider -n {processes}"))
}
