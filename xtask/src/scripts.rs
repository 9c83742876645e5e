//! The scripts that run programs nobody here wrote, and what `programs`, `learn-programs` and
//! `applications` share in starting them.
//!
//! `sh script.sh prepare` makes the input once, in a directory of its own, and says with status 77
//! that what it needs is not here; `sh script.sh run`, in an empty directory, does the work and
//! prints what must be the same each time. They find in their environment:
//!
//! | | |
//! |---|---|
//! | `SCRIPT`, `COMMON` | themselves, and `common.sh`, which ours begin by reading |
//! | `PREPARED` | the directory that `prepare` was run in |
//! | `PERCENT` | so much of the usual input, where it is not all |
//! | `SECONDS_FILE` | where one that knows better how long its own work took writes it |
//! | `REPOSITORY` | this project |
//! | `PYTHON` | the Python to use, where a chore has one of its own |

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Status of a script that lacks what it needs.
pub const SKIPPED: i32 = 77;

const COMMON: &str = include_str!("../programs/common.sh");

/// What a preloaded library is told by, which is nobody's business but ours.
const OURS: &str = "PYTHON GLIBC_TUNABLES LD_PRELOAD CACHEWISE_STATS CACHEWISE_LEARN \
    CACHEWISE_PROGRAM CACHEWISE_POOL PERCENT";

/// The Python that scripts are told of, if any.
static PYTHON: OnceLock<PathBuf> = OnceLock::new();

/// From now on scripts use this Python, and not the first that is found.
pub fn python_is(python: PathBuf) {
    PYTHON.get_or_init(|| python);
}

/// Makes the directory, with the script in it.
pub fn lay_out(directory: &Path, script: &str) -> Result<()> {
    fs::create_dir(directory).with_context(|| directory.display().to_string())?;
    open_to_all(directory)?;
    fs::write(directory.join("script.sh"), script)?;
    Ok(fs::write(directory.join("common.sh"), COMMON)?)
}

/// A command that a script's step is, or that starts one: in a directory, and with what the script
/// finds in its environment.
pub fn command(program: &Path, prepared: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).stdin(Stdio::null());
    for name in OURS.split(' ') {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").env("TZ", "UTC").env("CACHEWISE_QUIET", "1");
    command.env("SCRIPT", prepared.join("script.sh")).env("COMMON", prepared.join("common.sh"));
    command.env("PREPARED", prepared).env("SECONDS_FILE", directory.join("seconds"));
    command.env("REPOSITORY", crate::command::root());
    if let Some(python) = PYTHON.get() {
        command.env("PYTHON", python);
    }
    command
}

/// A step of the script that was laid out there.
pub fn step(step: &str, prepared: &Path, directory: &Path) -> Command {
    let mut command = command(Path::new("sh"), prepared, directory);
    command.arg(prepared.join("script.sh")).arg(step);
    command
}

/// No input is made smaller than this many percent: it would be start and end only.
pub const LEAST_PERCENT: u32 = 10;

/// How much of a program's input is used, in percent, where so many runs shall fit into its share of
/// the time and one of the whole input takes so many seconds.
pub fn percent(share: Duration, runs: f64, seconds: f64) -> u32 {
    let room = share.as_secs_f64() / runs;
    ((100.0 * room / seconds.max(1e-3)) as u32).clamp(LEAST_PERCENT, 100)
}

/// Servers that refuse to run as root are run as somebody else.
pub fn open_to_all(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| path.display().to_string())
}

/// What of `all` is named by `--only`, in their own order; all where nothing is named.
pub fn chosen<T: Copy>(all: &[(&str, T)], only: &[String]) -> Result<Vec<(String, T)>> {
    if let Some(unknown) = only.iter().find(|only| !all.iter().any(|(name, _)| name == *only)) {
        let known: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        bail!("--only: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let wanted = all.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|o| o == name));
    Ok(wanted.map(|(name, one)| ((*name).to_owned(), *one)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_chosen_and_what_is_not_known_is_refused() {
        let all = [("one", 1), ("two", 2), ("three", 3)];
        let chosen = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            chosen(&all, &only)
        };
        let owned = |(name, one): (&str, i32)| (name.to_owned(), one);
        assert_eq!(chosen(&[]).expect("all"), all.map(owned));
        assert_eq!(chosen(&["three", "one"]).expect("two"), [all[0], all[2]].map(owned));
        let told = chosen(&["one", "four"]).expect_err("not known").to_string();
        assert_eq!(told, "--only: found \"four\", accepted one, two, three");
    }

    #[test]
    fn a_long_run_gets_a_smaller_input() {
        let minute = Duration::from_secs(60);
        assert_eq!(percent(minute, 100.0, 0.0), 100);
        assert_eq!(percent(minute, 100.0, 0.6), 100);
        assert_eq!(percent(minute, 100.0, 1.2), 50);
        assert_eq!(percent(minute, 100.0, 1000.0), LEAST_PERCENT);
        assert_eq!(percent(Duration::ZERO, 100.0, 1.0), LEAST_PERCENT);
    }

    #[test]
    fn a_smaller_input_is_a_part_rounded_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("place");
        let script = ". \"$COMMON\"\npart 40; part 3\nneed sh no-such-program-here\n";
        lay_out(&place, script).expect("laid out");
        for (percent, told) in [(None, "40\n3\n"), (Some("10"), "4\n1\n"), (Some("34"), "14\n2\n")]
        {
            let mut step = step("prepare", &place, &place);
            percent.map(|percent| step.env("PERCENT", percent));
            let output = step.output().expect("a shell");
            assert_eq!(output.status.code(), Some(SKIPPED));
            let expected = format!("{told}no-such-program-here not installed\n");
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        }
    }
}
