//! `xtask programs` and `xtask applications`: lists of commands for `cachewise advise`.
//!
//! A program is a script: `sh SCRIPT prepare` makes its input once, and says with status 77 what it lacks;
//! `sh SCRIPT run [WORD]`, in an empty directory, does the work and prints what has to be the same each time. They find
//! `$COMMON`, `$PREPARED`, `$REPOSITORY`, `$PYTHON` and `$PERCENT` (of the input) in their environment. A server is a command
//! line and the load that is run against it.

use crate::command::{self, Lacking, accepted, root, text};
use crate::python;
use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options: the programs to run, and the output.
#[derive(Debug, clap::Args)]
pub struct Programs {
    /// Only these, by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Write each program's record and page into this directory
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
    /// This much of each input, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    /// Further options of `advise`, such as --budget=2min
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

/// How a program is run.
#[derive(Clone, Copy)]
pub enum How {
    /// A script, and a word for it.
    Script(&'static str, &'static str),
    /// A server's command, its load, and what has to be there.
    Server { server: &'static str, load: &'static str, needs: &'static [&'static str] },
}

macro_rules! script {
    ($name:literal) => {
        script!($name, "")
    };
    ($name:literal, $word:literal) => {
        How::Script(include_str!(concat!("../programs/", $name, ".sh")), $word)
    };
}

const COMMON: &str = include_str!("../programs/common.sh");
/// Status of a script that lacks what it needs.
const SKIPPED: i32 = 77;

const REDIS: How = How::Server {
    server: "exec redis-server --port 0 --unixsocket socket --save '' --appendonly no --daemonize no",
    load: "redis-benchmark -s socket -q -n 8000 -c 20 -d 1024 -t set,get,incr,lpush,hset,mset && \
           redis-benchmark -s socket -q -n 2000 -c 4 -d 262144 -t set,get",
    needs: &["redis-server", "redis-benchmark"],
};
const NGINX: How = How::Server {
    server: "head -c 8000000 /dev/zero >page; printf '%s' 'daemon off; master_process off; pid pid; events {} \
             error_log errors; http { access_log off; server { listen unix:socket; root .; output_buffers 8 1m; sendfile off; } }' \
             >conf; exec nginx -p . -c conf -e errors",
    load: "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do curl -s --unix-socket socket http://x/page -o /dev/null || exit 1; done",
    needs: &["nginx", "curl"],
};

const POSTGRESQL: How = How::Server {
    server: "PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); mkdir data; as=; \
             if [ $(id -u) = 0 ]; then chown postgres . data; as='setpriv --reuid=postgres --regid=postgres --clear-groups'; fi; \
             $as initdb -D data -A trust -U postgres >/dev/null; \
             exec $as postgres -D data -k \"$PWD\" -c listen_addresses= -c fsync=off",
    load: "until pg_isready -q -h \"$PWD\"; do sleep 0.01; done; pgbench -h \"$PWD\" -U postgres -i -q -s 4 postgres 2>/dev/null && \
           pgbench -h \"$PWD\" -U postgres -n -c 4 -t 500 postgres >/dev/null 2>&1",
    needs: &["pgbench"],
};

/// Programs that compute, pack and compile.
pub const PROGRAMS: [(&str, How); 11] = [
    ("cpython", script!("cpython")),
    ("git", script!("git")),
    ("gcc", script!("gcc")),
    ("gzip", script!("gzip")),
    ("sort", script!("sort")),
    ("xz", script!("xz")),
    ("zstd", script!("zstd")),
    ("sqlite", script!("sqlite")),
    ("nginx", NGINX),
    ("postgresql", POSTGRESQL),
    ("numpy", script!("numpy")),
];

/// Programs that allocate much.
pub const APPLICATIONS: [(&str, How); 9] = [
    ("numpy-expression", script!("numpy-arrays", "expression")),
    ("numpy-zeros", script!("numpy-arrays", "zeros")),
    ("pandas", script!("pandas")),
    ("duckdb", script!("duckdb")),
    ("pillow", script!("pillow")),
    ("redis", REDIS),
    ("c-calloc", script!("calloc")),
    ("rust-vec", script!("rust-vec")),
    ("cpp-vector", script!("cpp-vector")),
];

/// Packages of the Python programs.
const PACKAGES: [&str; 4] = ["numpy", "pandas", "duckdb", "pillow"];

/// Advises on each of a list; Python's packages come from pip, into an environment of this chore's own.
pub fn run(args: &Programs, list: &[(&str, How)]) -> Result<()> {
    let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
    accepted("--only", &args.only, &names)?;
    if let Some(folder) = &args.to {
        fs::create_dir_all(folder)?;
    }
    let mut cargo = command::cargo("build --quiet --release -p cachewise-cli -p cachewise-preload");
    let advise = command::built(&mut cargo, None)?;
    let advise = advise.get("cachewise").context("the command was not built")?.clone();
    let folder = command::target().join("applications-python");
    let python = python::environment(&folder, &PACKAGES.join(" "), &PACKAGES);
    if let Err(error) = &python {
        eprintln!("Python as it is installed: {error:#}");
    }
    let mut wrong = Vec::new();
    for (name, how) in list
        .iter()
        .filter(|(name, _)| args.only.is_empty() || args.only.iter().any(|one| one == name))
    {
        println!("== {name}");
        if let Err(error) = one(args, name, *how, &advise, python.as_deref().ok()) {
            println!("{name}: {error:#}");
            if !error.is::<Lacking>() {
                wrong.push(*name);
            }
        }
    }
    ensure!(wrong.is_empty(), "failed: {}", wrong.join(", "));
    Ok(())
}

/// One program: prepared, and advised on.
fn one(args: &Programs, name: &str, how: How, advise: &Path, python: Option<&Path>) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("cachewise-programs").tempdir()?;
    let prepared = folder.path();
    let mut variables: Vec<(&str, OsString)> = vec![
        ("COMMON", prepared.join("common.sh").into()),
        ("SCRIPT", prepared.join("script.sh").into()),
        ("PREPARED", prepared.into()),
        ("REPOSITORY", root().into()),
        ("PERCENT", args.percent.to_string().into()),
        ("LC_ALL", "C".into()),
        ("TZ", "UTC".into()),
    ];
    variables.extend(python.map(|python| ("PYTHON", python.into())));
    fs::write(prepared.join("common.sh"), COMMON)?;
    let mut command = Command::new(advise);
    command.args(["advise", "--name", name]).args(&args.options).current_dir(prepared);
    if let Some(folder) = &args.to {
        let folder = fs::canonicalize(folder)?;
        command.arg("--json").arg(folder.join(format!("{name}.jsonl")));
        command.arg("--html").arg(folder.join(format!("{name}.html")));
    }
    match how {
        How::Script(source, word) => {
            fs::write(prepared.join("script.sh"), source)?;
            let mut prepare = Command::new("sh");
            prepare.args(["script.sh", "prepare"]).current_dir(prepared).stdin(Stdio::null());
            let made = prepare.envs(variables.iter().cloned()).output()?;
            match made.status.code() {
                Some(0) => {}
                Some(SKIPPED) => bail!(Lacking(text(&made.stdout).trim().to_owned())),
                _ => bail!("prepare: {}: {}", made.status, text(&made.stderr).trim()),
            }
            let line = "rm -rf run && mkdir run && cd run && exec sh \"$SCRIPT\" run \"$1\"";
            command.args(["--", "sh", "-c", line, name, word]);
        }
        How::Server { server, load, needs } => {
            let there = |name: &&&str| {
                Command::new("sh")
                    .args(["-c", &format!("command -v {name}")])
                    .stdout(Stdio::null())
                    .status()
                    .is_ok_and(|s| s.success())
            };
            if let Some(lacking) = needs.iter().find(|name| !there(name)) {
                bail!(Lacking(format!("{lacking} not installed")));
            }
            command.args(["--load", load, "--", "sh", "-c", server]);
        }
    }
    let ended = command.envs(variables).status()?;
    // 4: it cannot tell, which is an answer.
    ensure!(matches!(ended.code(), Some(0 | 4)), "{ended}");
    Ok(())
}
