//! `xtask programs`: programs that nobody wrote for this project or that are written from public reports, each with its
//! input and what is expected of it.
//!
//! Programs are scripts: `sh SCRIPT prepare` makes its input once, and says with status 77 what it lacks;
//! `sh SCRIPT run [WORD]`, in an empty directory, does the work and prints what has to be the same each time. They find
//! `$COMMON`, `$PREPARED`, `$REPOSITORY`, `$PYTHON` and `$PERCENT` (of the input) in their environment. A server is a command
//! line and the load that is run against it.

use crate::command::{self, Lacking, accepted, root, text};
use crate::{held, python};
use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options: the programs to run, and the output.
#[derive(Debug, clap::Args)]
pub struct Programs {
    /// Only these groups [default: all]
    #[arg(long, value_enum, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<Group>,
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

/// A part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// Programs of the README's table.
    Readme,
    /// Reproducers of public reports: memory that does not come back, and two where nothing is to be gained.
    Reports,
    /// Services whose live memory is known: the four numbers and the word for them (`held`).
    Held,
}

/// Way in which a program is run.
#[derive(Clone, Copy)]
enum How {
    /// A script, and a word for it.
    Script(&'static str, &'static str),
    /// A server's command, its load, and the programs that it needs.
    Server { server: &'static str, load: &'static str, needs: &'static [&'static str] },
}

/// Expected answer for a program.
#[derive(Clone, Copy)]
enum Expected {
    /// An answer.
    Answer,
    /// An answer for that goal; the setting that those who reported it ended with races too.
    Report { goal: &'static str, fix: &'static str },
    /// That nothing is to be gained for that goal.
    Nothing { goal: &'static str },
}

/// A program, its input, and what is expected of it.
struct Program {
    name: &'static str,
    group: Group,
    how: How,
    expected: Expected,
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

/// The table.
const TABLE: [Program; 21] = [
    program("gzip", Group::Readme, script!("gzip"), Expected::Answer),
    program("sort", Group::Readme, script!("sort"), Expected::Answer),
    program("nginx", Group::Readme, NGINX, Expected::Answer),
    program("postgresql", Group::Readme, POSTGRESQL, Expected::Answer),
    program("numpy-zeros", Group::Readme, script!("numpy-arrays", "zeros"), Expected::Answer),
    program("pandas", Group::Readme, script!("pandas"), Expected::Answer),
    program("duckdb", Group::Readme, script!("duckdb"), Expected::Answer),
    program("pillow", Group::Readme, script!("pillow"), Expected::Answer),
    program("redis", Group::Readme, REDIS, Expected::Answer),
    program("rust-vec", Group::Readme, script!("rust-vec"), Expected::Answer),
    program("cpp-vector", Group::Readme, script!("cpp-vector"), Expected::Answer),
    program("service", Group::Reports, script!("service"), report("memory", "MALLOC_ARENA_MAX=2")),
    program(
        "messages",
        Group::Reports,
        script!("messages"),
        report(
            "time",
            "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=67108864:glibc.malloc.trim_threshold=67108864",
        ),
    ),
    program(
        "instances",
        Group::Reports,
        script!("instances"),
        report(
            "time",
            "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=67108864:glibc.malloc.trim_threshold=67108864",
        ),
    ),
    program(
        "images",
        Group::Reports,
        script!("images"),
        report("memory", "LD_PRELOAD=libjemalloc.so.2"),
    ),
    program(
        "byte-arrays",
        Group::Reports,
        script!("byte-arrays"),
        report("memory", "LD_PRELOAD=libjemalloc.so.2"),
    ),
    program(
        "store",
        Group::Reports,
        script!("store"),
        report("memory", "LD_PRELOAD=libjemalloc.so.2"),
    ),
    program(
        "workers",
        Group::Reports,
        script!("workers"),
        report("memory", "MALLOC_TRIM_THRESHOLD_=131072"),
    ),
    program(
        "short-processes",
        Group::Reports,
        script!("short-processes"),
        report("time", "LD_PRELOAD=libmimalloc.so.2"),
    ),
    program("computes", Group::Reports, script!("computes"), Expected::Nothing { goal: "time" }),
    program("all-live", Group::Reports, script!("all-live"), Expected::Nothing { goal: "memory" }),
];

const fn program(name: &'static str, group: Group, how: How, expected: Expected) -> Program {
    Program { name, group, how, expected }
}

const fn report(goal: &'static str, fix: &'static str) -> Expected {
    Expected::Report { goal, fix }
}

/// Packages of the Python programs.
const PACKAGES: [&str; 4] = ["numpy", "pandas", "duckdb", "pillow"];

/// Runs each; Python's packages come from pip, into an environment of this chore's own.
pub fn run(args: &Programs) -> Result<()> {
    let names: Vec<&str> = TABLE.iter().map(|program| program.name).collect();
    accepted("--only", &args.only, &names)?;
    if let Some(folder) = &args.to {
        fs::create_dir_all(folder)?;
    }
    let is_asked = |program: &&Program| {
        (args.group.is_empty() || args.group.contains(&program.group))
            && (args.only.is_empty() || args.only.iter().any(|name| name == program.name))
    };
    let asked: Vec<&Program> = TABLE.iter().filter(is_asked).collect();
    let packages =
        "-p cachewise-cli -p cachewise-preload -p cachewise-preload-stats -p cachewise-probe";
    let mut cargo = command::cargo(&format!("build --quiet --release {packages}"));
    let built = command::built(&mut cargo, None)?;
    let advise = built.get("cachewise").context("the command was not built")?.clone();
    if args.group.contains(&Group::Held) {
        held::run(&advise)?;
    }
    if asked.is_empty() {
        return Ok(());
    }
    let folder = command::target().join("applications-python");
    let python = match python::environment(&folder, &PACKAGES.join(" "), &PACKAGES) {
        Ok(python) => Some(python),
        Err(error) => {
            eprintln!("Python as it is installed: {error:#}");
            None
        }
    };
    let mut wrong = Vec::new();
    for program in asked {
        println!("== {}", program.name);
        if let Err(error) = one(args, program, &advise, python.as_deref()) {
            println!("{}: {error:#}", program.name);
            if !error.is::<Lacking>() {
                wrong.push(program.name);
            }
        }
    }
    ensure!(wrong.is_empty(), "failed: {}", wrong.join(", "));
    Ok(())
}

fn is_there(program: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

/// One program: prepared, and advised on.
fn one(args: &Programs, program: &Program, advise: &Path, python: Option<&Path>) -> Result<()> {
    let Program { name, how, expected, .. } = program;
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
    let mut record = prepared.join("record.jsonl");
    if let Some(folder) = &args.to {
        let folder = fs::canonicalize(folder)?;
        record = folder.join(format!("{name}.jsonl"));
        command.arg("--html").arg(folder.join(format!("{name}.html")));
    }
    command.arg("--json").arg(&record);
    match expected {
        Expected::Answer => {}
        Expected::Nothing { goal } => {
            command.args(["--goal", goal]);
        }
        Expected::Report { goal, fix } => {
            command.args(["--goal", goal, "--also", fix]);
        }
    }
    match *how {
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
            if let Some(lacking) = needs.iter().find(|name| !is_there(name)) {
                bail!(Lacking(format!("{lacking} not installed")));
            }
            command.args(["--load", load, "--", "sh", "-c", server]);
        }
    }
    let ended = command.envs(variables).status()?;
    // 4: it cannot tell, which is an answer.
    ensure!(matches!(ended.code(), Some(0 | 4)), "{ended}");
    if let Expected::Nothing { .. } = expected {
        let said = fs::read_to_string(&record)?;
        ensure!(
            !said.contains("\"recommended\""),
            "a setting is recommended where nothing is to be gained"
        );
    }
    Ok(())
}
