//! Every verb and flag, in one place; clap draws `--help` from it.

use cachewise::Reuse;
use cachewise_advise::figures::Format;
use cachewise_kernels::Operation;
use cachewise_measure::Level;
use cachewise_report::units::parse_bytes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variables and files, for `--help`.
const ENVIRONMENT: &str = "\
Environment (programs with more privilege than their caller ignore all of it):
  CACHEWISE_PROFILE  the profile that the library follows, before all others
  CACHEWISE_QUIET    anything but 0: the library prints no warning
  CACHEWISE_STATS    of libcachewise_preload_stats.so: 1 prints counts of calls to stderr at exit,
                     a file's name appends them there
  CACHEWISE_LIBRARY  directories, with `:` between them, in which `exec` looks first for the
                     preload libraries; then beside the command, in ../lib, LD_LIBRARY_PATH, and
                     inside the command
  CACHEWISE_SCRUBD   the socket of scrubd, for the server, `lease` and the Python package

Files:
  ~/.config/cachewise/       the user's profiles, each beside its record (XDG_CONFIG_HOME)
  /etc/cachewise/            the machine's profiles
  ~/.local/share/cachewise/  the preload libraries from inside the command (XDG_DATA_HOME)";

/// Measure how this machine copies, zeroes and compares memory, decide, and act on it.
///
/// Tables and data go to stdout, progress and warnings to stderr. Exit status: 0 ok, 1 error,
/// 2 usage, 3 regression, 4 inconclusive, 5 wrong bytes, 130 interrupted (finished rows kept).
#[derive(Debug, Parser)]
#[command(name = "cachewise", version, max_term_width = 100, arg_required_else_help = true, after_help = ENVIRONMENT)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// The options of a verb, as they are typed.
pub fn options_of(verb: &str) -> Vec<String> {
    let all = <Cli as clap::CommandFactory>::command();
    let options = all.find_subcommand(verb).into_iter().flat_map(clap::Command::get_arguments);
    options.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect()
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Tune(Tune),
    Advise(Advise),
    /// Say whether this machine's memcpy settings are right, and what would disturb measurements here
    Doctor {
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    List(List),
    Run(Run),
    Explain(Explain),
    Export(Export),
    Report(Report),
    Compare(Compare),
    /// Print completions for a shell
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    Exec(Exec),
    Scrubd(Scrubd),
    Lease(Lease),
    /// Do what is asked on standard input in this process (used by experiments)
    #[command(hide = true)]
    Helper,
}

/// Measure this machine, decide, and write the profile the library follows
#[derive(Debug, Args)]
pub struct Tune {
    /// Take one minute
    #[arg(long, conflicts_with_all = ["thorough", "budget"])]
    pub quick: bool,
    /// Take one hour
    #[arg(long, conflicts_with = "budget")]
    pub thorough: bool,
    /// How long it may take: 90s, 10min, 0.5h [default: 10min]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_negative_numbers = true)]
    pub budget: Option<f64>,
    /// Measure nothing: decide again from the record of an earlier tuning, and print the profile; from the records of
    /// several hosts with one CPU and the same caches, each of them a round
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with_all = ["quick", "thorough", "budget", "record", "seed", "memory", "html"])]
    pub from: Vec<PathBuf>,
    /// File to write the profile to [default: this CPU's place in the user's configuration directory]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the profile for all users and services of this machine, in /etc/cachewise (as root)
    #[arg(long, conflicts_with = "output")]
    pub system: bool,
    /// Replace a profile of a longer or less disturbed tuning, or with kernels where this one finds none
    #[arg(long, conflicts_with = "from")]
    pub force: bool,
    /// File to write the record to [default: beside the profile]
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Sizes, overlaps and alignments of small calls, three lines of value:probability [default: built in]
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub distribution: Option<PathBuf>,
    /// Seed of every random choice [default: drawn, and recorded]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Most memory to use at once; never more than a quarter of RAM [default: 4 GiB, at most half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub memory: Option<usize>,
    /// Write a self-contained page with the decisions, every figure and every row
    #[arg(long, value_name = "FILE", value_parser = page)]
    pub html: Option<PathBuf>,
}

/// Find out what to set for one program, by running it with settings and without
#[derive(Debug, Args)]
pub struct Advise {
    /// The figure that is to be small: time (or --figure), memory after the load (first where it is: live, held, lazy,
    /// files), or peak memory
    #[arg(long, value_enum, default_value_t = Goal::Time)]
    pub goal: Goal,
    /// How long it may take: 90s, 10min, 0.5h [default: 3min, or as long as one look at all settings and four rounds of the
    /// best take, at most 10min]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_negative_numbers = true)]
    pub budget: Option<f64>,
    /// The program's name in tables and the record [default: the name of its file, or of its script]
    #[arg(long, value_name = "NAME", value_parser = program_name)]
    pub name: Option<String>,
    /// The program is a server: run this shell command against it once it listens, and time that
    #[arg(long, value_name = "COMMAND")]
    pub load: Option<String>,
    /// With --load: the server can be used once this shell command succeeds [default: once it listens on a socket]
    #[arg(long, value_name = "COMMAND", requires = "load")]
    pub ready: Option<String>,
    /// Take this number from the output in place of the time, more of it being better: the first group, or all of
    /// it; of several, their geometric mean
    #[arg(long, value_name = "REGEX")]
    pub figure: Option<regex_lite::Regex>,
    /// With --figure: less of it is better
    #[arg(long, requires = "figure")]
    pub less: bool,
    /// Run this shell command before each run: it undoes what the last one has done
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// No run may print a line that matches, to either output
    #[arg(long, value_name = "REGEX")]
    pub errors: Option<regex_lite::Regex>,
    /// Compare this file after each run, in place of what the program prints
    #[arg(long, value_name = "FILE")]
    pub compare: Vec<PathBuf>,
    /// The program's standard input [default: none]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// With --goal memory or peak: how much time a setting may lose [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = loss, allow_negative_numbers = true)]
    pub at_most: Option<f64>,
    /// With --load and --goal memory: seconds between the end of the load and the reading [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = settle, allow_negative_numbers = true)]
    pub settle: Option<f64>,
    /// Run it with so much memory, in a control group: what is killed is out, the fastest that survives is the answer
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// With --load and --goal memory: so many loads tell whether live memory grows [default: 3]
    #[arg(long, value_name = "N", requires = "load", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub loads: Option<u32>,
    /// Try this setting too: NAME=VALUE, several between spaces
    #[arg(long, value_name = "VARIABLES", value_parser = variables)]
    pub also: Vec<String>,
    /// Try only settings whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub only: Option<regex_lite::Regex>,
    /// Run every setting so often, whatever the bound, the budget and the first rounds say
    #[arg(long, value_name = "N", conflicts_with = "budget", value_parser = clap::value_parser!(u32).range(6..=1000))]
    pub rounds: Option<u32>,
    /// Write the setting in the form of the file's name: *.sh, *.env, *.conf (systemd), *Dockerfile*, *k8s*.yaml
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Write the record as JSON lines; `-` is stdout, in place of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a self-contained page; `-` is stdout, in place of the tables
    #[arg(long, value_name = "FILE", value_parser = page)]
    pub html: Option<PathBuf>,
    /// The profile to try [default: the one that `doctor` names]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// The preload library [default: libcachewise_preload.so beside this program, in ../lib, or the one inside it]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Seed of every random choice [default: drawn, and recorded]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// The figure that is to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// Time, or the figure of --figure
    #[default]
    Time,
    /// Memory after the load
    Memory,
    /// The most memory at a time
    Peak,
}

/// Seconds of at most an hour.
fn settle(text: &str) -> Result<f64, String> {
    let seconds = text.trim().trim_end_matches('s').parse::<f64>();
    let seconds = seconds.ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| format!("expected 0 to 3600 seconds, found {text}"))
}

/// Variables between spaces.
fn variables(text: &str) -> Result<String, String> {
    let is_one = |pair: &str| pair.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let pairs: Vec<&str> = text.split_whitespace().collect();
    match pairs.iter().all(|pair| is_one(pair)) && !pairs.is_empty() {
        // Its name is one line.
        true => Ok(pairs.join(" ")),
        false => Err(format!("expected NAME=VALUE, several between spaces, found {text}")),
    }
}

/// List kernels or experiments, with aliases and a description
#[derive(Debug, Args)]
pub struct List {
    /// Kind of things to list [default: how many there are; with an option, kernels]
    #[arg(value_enum)]
    pub what: Option<Listing>,
    /// Only kernels or entry stubs of this operation
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    pub op: Option<Operation>,
    /// Only kernels whose name or an alias matches this regular expression
    #[arg(long, visible_alias = "kernel", value_name = "REGEX")]
    pub kernels: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Kernels
    Kernels,
    /// Experiments
    Experiments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Columns for a terminal
    Table,
    /// Comma-separated values
    Csv,
    /// A Markdown table
    Markdown,
    /// JSON lines
    Json,
}

/// Run one experiment
#[derive(Debug, Args)]
pub struct Run {
    /// Its name (`cachewise list experiments`); `study` and an item
    pub experiment: String,
    /// Item of `study`
    #[arg(value_name = "ITEM")]
    pub item: Option<String>,
    /// Only kernels whose name or an alias matches this regular expression as a whole
    #[arg(long, visible_alias = "kernel", value_name = "REGEX")]
    pub kernels: Option<String>,
    /// Bytes per operation, comma-separated: 4K,1M; K, M, G and T are powers of 1024 [default: the experiment's own]
    #[arg(long, visible_alias = "sizes", value_name = "SIZE", value_delimiter = ',', value_parser = parse_bytes, allow_negative_numbers = true)]
    pub size: Vec<usize>,
    /// Only these operations, comma-separated [default: the experiment's own]
    #[arg(long, value_name = "OPERATION", value_delimiter = ',', value_parser = operation)]
    pub op: Vec<Operation>,
    /// Levels of the operands: L1, L2, LLC, DRAM, or source:destination [default: the experiment's own]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', value_parser = placement)]
    pub residency: Vec<(Level, Level)>,
    /// Fewer sizes and rounds
    #[arg(long)]
    pub quick: bool,
    /// The source document's own parameters, where the experiment has them
    #[arg(long, conflicts_with = "quick")]
    pub classic: bool,
    /// Rounds, at least 15
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(15..=100_000))]
    pub rounds: Option<u32>,
    /// Repeat it in N processes, one after the other, at least 6. The intervals then include what differs
    /// from process to process, which matters for calls of a few nanoseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(cachewise_experiments::launches::LEAST as i64..=1000))]
    pub launches: Option<u32>,
    /// Which of them this process is
    #[arg(long, hide = true, value_name = "N", requires_all = ["launches", "launch_record"])]
    pub launch: Option<u32>,
    /// File for its record
    #[arg(long, hide = true, value_name = "FILE", requires = "launch")]
    pub launch_record: Option<PathBuf>,
    /// Seed of every random choice [default: drawn, and recorded]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Most memory to use at once; never more than a quarter of RAM [default: what is needed, 1 GiB at least]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub memory: Option<usize>,
    /// How much of the LLC operands may fill [default: what is measured as faster than memory, in the first
    /// launch for all of them]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub llc: Option<usize>,
    /// peers: also compare with this library: NAME=PATH:SYMBOL, or NAME=PATH:SYMBOL@OPERATION
    #[arg(long, value_name = "PEER")]
    pub peer: Vec<cachewise_experiments::libraries::Peer>,
    /// peers: also compare with the C library in this folder, by its own loader
    #[arg(long, value_name = "DIR")]
    pub libc: Vec<PathBuf>,
    /// peers: the sizes and alignments to call with (Fleetbench's form); compare-latency: first differences
    #[arg(long, value_name = "FILE")]
    pub distribution: Option<PathBuf>,
    /// Write the record as JSON lines; `-` is stdout, in place of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the rows as CSV; `-` is stdout, in place of the tables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables as Markdown; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a self-contained page with every figure and every row; `-` is stdout, in place of the tables
    #[arg(long, short = 'o', visible_alias = "output", value_name = "FILE", value_parser = page)]
    pub html: Option<PathBuf>,
}

impl Run {
    /// The files that it writes.
    pub fn files(&self) -> [Option<&Path>; 4] {
        [&self.json, &self.csv, &self.markdown, &self.html].map(|file| file.as_deref())
    }
}

/// Show the decision for one call, and the figures behind it
#[derive(Debug, Args)]
pub struct Explain {
    /// copy, move, fill, zero, compare or equal; or memcpy, memmove, memset, bzero, memcmp, bcmp
    #[arg(long, value_name = "OPERATION", value_parser = operation_or_function)]
    pub op: Operation,
    /// Bytes of the call: 4096, 4K, 1.5M; K, M, G and T are powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub size: usize,
    /// Next use of the destination: unknown, soon or never
    #[arg(long, value_name = "REUSE", value_parser = reuse, default_value = "unknown")]
    pub reuse: Reuse,
    /// Explain this profile instead of the one in force
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
}

/// Print the decisions as variables of another library
#[derive(Debug, Args)]
pub struct Export {
    /// Which library
    #[arg(value_enum)]
    pub form: ExportForm,
    /// Export this profile instead of the one in force
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// GLIBC_TUNABLES with the profile's thresholds; `cachewise advise -- PROGRAM` tries them on a program
    Glibc,
}

/// Show stored records: tables, plots, a self-contained page
#[derive(Debug, Args)]
pub struct Report {
    /// Records as `tune` and `run --json` write them, also compressed (.jsonl.gz); or one folder of records of several CPUs:
    /// what they answer to the documents
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Write one self-contained page of all of them; `-` is stdout
    #[arg(long, short, visible_alias = "html", value_name = "FILE", value_parser = page)]
    pub output: Option<PathBuf>,
    /// Write the rows as CSV; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Is new slower than old? Two commands run in pairs, in random order, until the question is settled; or two records
///
/// Ends with 0 where new is not slower, 3 where it is slower by more than the margin, 4 where that cannot be told.
#[derive(Debug, Args)]
#[command(
    override_usage = "cachewise compare [OPTIONS] 'OLD COMMAND' 'NEW COMMAND'\n       cachewise compare [OPTIONS] OLD NEW -- ARGUMENTS\n       cachewise compare [OPTIONS] OLD-RECORD NEW-RECORD"
)]
pub struct Compare {
    /// The old command, its words as a shell splits them; with ARGUMENTS a program; or a record
    pub old: OsString,
    /// The new one
    pub new: OsString,
    /// The figure that is judged; several, separated by commas, are corrected for their number
    #[arg(long, value_enum, value_delimiter = ',', default_value = "time")]
    pub judge: Vec<Judged>,
    /// Judge the benchmarks that both print, a row each: google-benchmark, pytest-benchmark, criterion, go, lines (NAME VALUE
    /// UNIT), cachewise (records)
    #[arg(long, value_name = "FORMAT", conflicts_with = "judge")]
    pub figures: Option<Format>,
    /// Differences up to this many per cent are of no interest
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true, default_value = "2")]
    pub margin: f64,
    /// How long it may take: 90s, 10min, 0.5h; it stops as soon as the question is settled
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_negative_numbers = true, default_value = "2min")]
    pub budget: f64,
    /// Standard input of both [default: none]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run this line of the shell before each run, untimed
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Compare this file after each run, in place of what is printed
    #[arg(long, value_name = "FILE")]
    pub compare: Vec<PathBuf>,
    /// Let both print what they like
    #[arg(long, conflicts_with = "compare")]
    pub any_output: bool,
    /// A variable of the old command: NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env_old: Vec<(String, String)>,
    /// A variable of the new command
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env_new: Vec<(String, String)>,
    /// Folder in which the old command starts, and from which its file is looked up
    #[arg(long, value_name = "FOLDER")]
    pub directory_old: Option<PathBuf>,
    /// Folder in which the new command starts
    #[arg(long, value_name = "FOLDER")]
    pub directory_new: Option<PathBuf>,
    /// Seed of every random order [default: drawn]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Of records: compare although they come from different machines
    #[arg(long)]
    pub across_machines: bool,
    /// List every row, not only those that changed
    #[arg(long)]
    pub all: bool,
    /// Write every row as CSV; `-` is stdout, in place of the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the answer and the table as Markdown; `-` is stdout, in place of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write everything as one JSON object; `-` is stdout, in place of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a self-contained page; of commands with a dot for each pair
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Arguments of both programs
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

/// A figure that `compare` judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Judged {
    /// By the clock; of programs that are mostly CPU on a busy machine, their CPU time
    Time,
    /// CPU seconds, of all processes
    Cpu,
    /// Most memory of the largest process
    Peak,
    /// Memory of all processes at the end
    Memory,
    /// Page faults
    Faults,
}

/// NAME=VALUE.
fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("expected NAME=VALUE, found {text}"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// source <(cachewise completions bash)
    Bash,
    /// cachewise completions zsh > ~/.zfunc/_cachewise
    Zsh,
    /// cachewise completions fish > ~/.config/fish/completions/cachewise.fish
    Fish,
}

/// Run a program with the preload library: its calls follow the profile
#[derive(Debug, Args)]
pub struct Exec {
    /// The preload library [default: libcachewise_preload.so, with --stats libcachewise_preload_stats.so, beside this
    /// program, in ../lib, or the one inside it]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The profile to follow [default: the one that `doctor` names]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Afterwards print to stderr how many calls it made to copy, move, fill, zero and compare, by size
    #[arg(long, visible_alias = "statistics")]
    pub stats: bool,
    /// The program and its arguments; its exit status becomes that of this command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// Keep memory resident and zero, and lease it to other processes
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Scrubd {
    #[command(subcommand)]
    pub what: Option<ScrubdVerb>,
    /// How much memory to keep
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, required = true, allow_negative_numbers = true)]
    pub size: Option<usize>,
    #[command(flatten)]
    pub at: At,
    /// Size of the files that are there from the start: what clients will ask for [default: a quarter, at most 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub segment: Option<usize>,
    /// Most memory leased to one user at a time [default: all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub user_limit: Option<usize>,
    /// Permissions of the socket
    #[arg(long, value_name = "OCTAL", default_value = "0600", value_parser = mode)]
    pub mode: u32,
    /// Group of the socket, by name or number [default: this process's]
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Kind of pages that the memory has
    #[arg(long, value_enum, default_value_t = Pages::Auto)]
    pub pages: Pages,
    /// Ready memory that is not given back, however short of memory others are
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "0", allow_negative_numbers = true)]
    pub keep: usize,
    /// Take 2 % of a CPU at most while the load average is above this [default: no limit]
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub load: Option<f64>,
    /// Use at most this part of one CPU in the background
    #[arg(long, value_name = "PER CENT", default_value = "50", value_parser = share)]
    pub cpu_share: f64,
}

#[derive(Debug, Subcommand)]
pub enum ScrubdVerb {
    /// Print what a running scrubd holds, who has what, how long clients waited and what zeroing cost
    Status {
        #[command(flatten)]
        at: At,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Which scrubd.
#[derive(Debug, Args)]
pub struct At {
    /// Its socket [default: CACHEWISE_SCRUBD, else cachewise/scrubd.sock in XDG_RUNTIME_DIR or /run]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pages {
    /// The first of the next three that this system gives
    Auto,
    /// A tmpfs of its own for each file, with huge pages, which takes root
    Tmpfs,
    /// Pages reserved in vm.nr_hugepages
    Hugetlb,
    /// A memfd with huge pages, where shmem_enabled allows them
    Memfd,
    /// Small pages: a lease gains nothing over the system's own memory
    Small,
}

/// Run a program with memory leased from scrubd
#[derive(Debug, Args)]
pub struct Lease {
    #[command(flatten)]
    pub at: At,
    /// How much memory, rounded up to whole huge pages
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub size: usize,
    /// The program and its arguments; {path} becomes the path of a file of that size, which it maps shared
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// A program's name, of which files and lines of others' files are made.
fn program_name(text: &str) -> Result<String, String> {
    match crate::program::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected {}, found {text:?}", crate::program::NAMES)),
    }
}

/// A page's file: refuses a name that says another form.
fn page(text: &str) -> Result<PathBuf, String> {
    let others = [".jsonl", ".jsonl.gz", ".json", ".csv", ".md"];
    match others.iter().find(|end| text.ends_with(**end)) {
        Some(end) => Err(format!("expected a page's name: *.html, found *{end}")),
        None => Ok(text.into()),
    }
}

/// A part of a CPU that is not nothing.
fn share(text: &str) -> Result<f64, String> {
    percent(text).and_then(|share| match share {
        0.0 => Err(format!("expected a percentage above 0, at most 100, found \"{text}\"")),
        share => Ok(share),
    })
}

/// A load average.
fn load(text: &str) -> Result<f64, String> {
    let load = text.parse().ok().filter(|load| (0.0..f64::INFINITY).contains(load));
    load.ok_or_else(|| format!("expected a load average of 0 or more, found \"{text}\""))
}

/// Permissions of a socket, in octal: those who may write to it may connect.
fn mode(text: &str) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(text, 8).ok();
    let mode = mode.filter(|mode| digits && *mode <= 0o777 && mode & 0o222 != 0);
    mode.ok_or_else(|| {
        format!("expected an octal mode that lets somebody write, such as 0660, found \"{text}\"")
    })
}

/// Residency of the source and of the destination.
fn placement(text: &str) -> Result<(Level, Level), String> {
    let (source, destination) = text.split_once(':').unwrap_or((text, text));
    let level = |part: &str| {
        part.parse().map_err(|_| {
            let accepted = "L1, L2, LLC, DRAM or two of them as source:destination";
            format!("expected {accepted}, found \"{text}\"")
        })
    };
    Ok((level(source)?, level(destination)?))
}

/// Per cent as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let part = loss(text).ok().filter(|part| *part <= 1.0);
    part.ok_or_else(|| format!("expected a percentage from 0 to 100, found \"{text}\""))
}

/// A loss as a fraction: what takes three times as long loses 200 %.
fn loss(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    let number = number.filter(|number| (0.0..f64::INFINITY).contains(number));
    let part = number.map(|number| number / 100.0);
    part.ok_or_else(|| format!("expected a percentage of 0 or more, found \"{text}\""))
}

fn operation(text: &str) -> Result<Operation, String> {
    Operation::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        format!("expected {}, found \"{text}\"", names.join(", "))
    })
}

/// An operation by its own name or by that of the C function that does it.
fn operation_or_function(text: &str) -> Result<Operation, String> {
    Ok(match text {
        "memcpy" | "mempcpy" => Operation::Copy,
        "memmove" => Operation::Move,
        "memset" => Operation::Fill,
        "bzero" => Operation::Zero,
        "memcmp" => Operation::Compare,
        "bcmp" => Operation::Equal,
        _ => operation(text)
            .map_err(|told| format!("{told}, or memcpy, memmove, memset, bzero, memcmp, bcmp"))?,
    })
}

/// Seconds of a duration.
fn duration(text: &str) -> Result<f64, String> {
    // The parser wants a digit before the point.
    let zero = if text.starts_with('.') { "0" } else { "" };
    let found = format!("{zero}{text}").parse::<jiff::SignedDuration>();
    match found.map(|duration| duration.as_secs_f64()) {
        Ok(seconds) if (1.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "expected a duration from 1s to 24h, such as 90s, 10min or 0.5h, found \"{text}\""
        )),
    }
}

fn reuse(text: &str) -> Result<Reuse, String> {
    Reuse::from_name(text).ok_or_else(|| format!("expected unknown, soon, never, found \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::{duration, variables};

    #[test]
    fn a_settings_name_is_one_line() {
        assert_eq!(variables(" A=1\n B=2 ").as_deref(), Ok("A=1 B=2"));
        assert!(variables(" \n").is_err() && variables("A=1 =2").is_err());
    }

    #[test]
    fn durations_may_have_a_fraction() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("10min", 600.0),
            ("0.5h", 1800.0),
            (".5h", 1800.0),
            ("1.5 min", 90.0),
            ("1h30m", 5400.0),
        ] {
            assert_eq!(duration(text), Ok(seconds), "{text}");
        }
        for text in [".", ".h", ".5", "..5h", "-.5h", ".5s", "0.5d2"] {
            let told = duration(text).expect_err(text);
            let found = format!(", found \"{text}\"");
            assert!(told.starts_with("expected a duration") && told.ends_with(&found), "{told}");
        }
    }
}
