//! The Python package as a user gets it: a wheel, in environments of its own, with the tests of the package
//! under NumPy 1.26 and 2.x, and NumPy's own tests with all its arrays in the pool.

use crate::command::{self, files_in, remove_folder, root, run as run_command};
use anyhow::{Context as _, Result, anyhow, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release of NumPy: the file of its packages, and which of its own tests run.
struct Environment {
    requirements: &'static str,
    numpy: &'static str,
    /// The Arrow of today needs NumPy 2: the tests that use it, the fleet's among them, run with that one.
    arrow: bool,
}

/// The older one shares most of the newer one's tests: what makes and resizes arrays is run again.
const ENVIRONMENTS: [Environment; 2] = [
    Environment {
        requirements: "requirements-numpy1.txt",
        numpy: "numpy.core.tests.test_multiarray",
        arrow: false,
    },
    Environment { requirements: "requirements-numpy2.txt", numpy: "numpy", arrow: true },
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
    // What the second one needs comes from the network while the wheel is built and tested.
    std::thread::scope(|scope| {
        let second = scope.spawn(|| made(newer.requirements));
        let python = made(older.requirements)?;
        let wheel = built(&python, &place)?;
        tests(&python, &wheel, &older)?;
        let python = second.join().map_err(|_| anyhow!("no second environment"))??;
        tests(&python, &wheel, &newer)
    })
}

fn tests(python: &Path, wheel: &Path, environment: &Environment) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
    run_command(Command::new(python).args(pip).arg(wheel))?;
    own_tests(python, environment)?;
    if environment.arrow {
        types(python)?;
    }
    numpys_tests(python, environment)
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

/// The wheel, made as `pip install ./python` makes it, with the environment's own maturin.
fn built(python: &Path, place: &Path) -> Result<PathBuf> {
    let wheels = place.join("wheels");
    remove_folder(&wheels)?;
    let mut pip = on_path(python)?;
    pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]);
    run_command(pip.arg(&wheels).arg(root().join("python")))?;
    let mut found = files_in(&wheels, "", "")?;
    ensure!(found.len() == 1, "{}: found {} wheels, accepted one", wheels.display(), found.len());
    found.pop().context("a wheel")
}

/// That interpreter, with the programs of its environment before all others.
fn on_path(python: &Path) -> Result<Command> {
    let programs = python.parent().context("a folder of programs")?;
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&others));
    let mut command = Command::new(python);
    command.env("PATH", std::env::join_paths(path)?).env_remove("PYTHONPATH");
    Ok(command)
}

/// pytest in the environment, in so many processes for each CPU. `-P`: the folder it is started in is no
/// place for modules, or the sources would be tested in place of what was installed.
fn pytest(python: &Path, per_cpu: usize) -> Result<Command> {
    let processes = per_cpu * std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = on_path(python)?;
    command.args(["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n"]);
    command.arg(processes.to_string());
    Ok(command)
}

fn own_tests(python: &Path, environment: &Environment) -> Result<()> {
    println!("python: the package's tests, {}", environment.requirements);
    // Some wait: for a tuning, for the end of a scheduler.
    let mut command = pytest(python, 2)?;
    let tests = root().join("python/tests");
    if !environment.arrow {
        command.args(["-m", "not arrow", "--ignore"]).arg(tests.join("fleet"));
    }
    run_command(command.arg(tests))
}

/// The package's types, and whether the stub of the extension module says what the module has.
fn types(python: &Path) -> Result<()> {
    println!("python: types");
    let mypy = |module: &str| -> Result<Command> {
        let mut command = on_path(python)?;
        command.env("MYPY_CACHE_DIR", python.with_file_name("mypy-cache"));
        command.current_dir(root().join("python")).args(["-P", "-m", module]);
        Ok(command)
    };
    run_command(&mut mypy("mypy")?)?;
    let stub = ["--mypy-config-file", "pyproject.toml", "cachewise._core"];
    run_command(mypy("mypy.stubtest")?.args(stub))
}

fn numpys_tests(python: &Path, environment: &Environment) -> Result<()> {
    println!("python: NumPy's own tests in the pool, {}", environment.requirements);
    let mut command = pytest(python, 1)?;
    let plugin = root().join("python/numpy_suite");
    // Apart from the package's own settings.
    let folder = python.ancestors().nth(2).context("the environment's folder")?;
    command.current_dir(folder).env("PYTHONPATH", plugin);
    command.args(["-p", "on_pool", "-m", "not slow", "--pyargs", environment.numpy]);
    run_command(&mut command)
}
