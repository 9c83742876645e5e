//! The project's own chores: `cargo run -p xtask -- <chore>`.

mod agree;
mod browser;
mod ci;
mod command;
mod conformance;
mod dist;
mod emulate;
mod emulate_arch;
mod fuzz;
mod held;
mod install;
mod links;
mod linux;
mod matrix;
mod nightly;
mod programs;
mod python;
mod size;
mod splice;

use anyhow::Result;
use clap::{Parser, Subcommand};
use command::Lacking;
use std::path::PathBuf;
use std::process::ExitCode;

/// Chores of the Cachewise workspace.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run CI's stages; a stage that lacks something fails.
    Ci {
        /// Only these stages, by name.
        stages: Vec<String>,
        /// Name a stage that lacks something on this machine and go on; without this it fails.
        #[arg(long)]
        allow_skips: bool,
        /// Print all that the stages print, one after the other.
        #[arg(long)]
        verbose: bool,
    },
    /// glibc's own tests under the preload library; minutes.
    Conformance {
        /// Only tests whose names contain this.
        only: Option<String>,
        /// With the glibc whose Debian package is unpacked there, in the place of the system's.
        #[arg(long, value_name = "DIRECTORY")]
        glibc: Option<std::path::PathBuf>,
    },
    /// Every exported function of the preload libraries, called from every place callers come from.
    Matrix,
    /// Every fuzz target for a while, with the ordinary compiler and AddressSanitizer.
    Fuzz {
        /// Only these targets, by name.
        targets: Vec<String>,
        /// Seconds that each runs.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Agreement of two profiles of one machine: sizes with the same kernel, or with kernels whose
    /// times differ by at most 3 % in either record. Octaves only.
    Agree {
        /// The first profile.
        first: PathBuf,
        /// The second profile, its record beside it.
        second: PathBuf,
    },
    /// Make the parts of documents again that come from records: claims and figures.
    Splice {
        /// Write nothing: a part that is out of date is an error.
        #[arg(long)]
        check: bool,
    },
    /// Check that every local link of the Markdown leads somewhere; the others are listed.
    Links,
    /// Tests of the Python package as a user gets it.
    Python,
    /// Tests whose threads meet, under ThreadSanitizer.
    ThreadSanitizer,
    /// Tests of what is pure, interpreted by Miri.
    Miri,
    /// Lines of Rust, lines of tests and words of Markdown beside those of the last release.
    Size,
    /// The kernel series of `linux/` applies, compiles, proves the order of its locks and keeps its promises.
    Linux,
    /// Look at the report in headless Chromium: every control, two widths, both colour schemes.
    ReportInBrowser {
        /// The record to draw [default: the newest tuning in record/].
        record: Option<PathBuf>,
    },
    /// Build the C library and the preload library and install them, with header and pkg-config file.
    Install(install::Install),
    /// Make an archive, a .deb, an .rpm, a static command and wheels, with bills of materials and checksums.
    Dist(dist::Dist),
    /// Advise on real programs and on reproducers of public reports.
    Programs(programs::Programs),
    /// Test the library on an emulated Arm or POWER CPU (QEMU); minutes.
    EmulateArch {
        /// powerpc64le or aarch64 [default: both].
        architecture: Option<String>,
        /// Part of the case space is visited: small, normal, thorough.
        #[arg(long, default_value = "small")]
        effort: String,
    },
    /// Build the kernel of `linux/` for x86-64 and run the guest's tests, the kernel's own and the command in QEMU; an hour.
    LinuxBoot,
    /// Time of the kernel of `linux/` for a zeroed block, at this CPU's speed (User Mode Linux), as a record.
    PrezeroBench(linux::PrezeroBench),
    /// Test the AVX-512 kernels and entries on an emulated CPU (Bochs); minutes.
    EmulateAvx512(emulate::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the trace that its other form has where somebody set RUST_BACKTRACE.
            eprintln!("xtask: {error:#}");
            ExitCode::from(if error.is::<Lacking>() { command::LACKING } else { 1 })
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::Ci { stages, allow_skips, verbose } => ci::run(&stages, allow_skips, verbose),
        Chore::Conformance { only, glibc } => conformance::run(only.as_deref(), glibc.as_deref()),
        Chore::Fuzz { targets, seconds } => fuzz::run(&targets, seconds),
        Chore::Matrix => matrix::run(),
        Chore::Agree { first, second } => agree::run(&first, &second),
        Chore::Splice { check } => splice::run(check),
        Chore::Links => links::run(),
        Chore::Python => python::run(),
        Chore::ThreadSanitizer => nightly::thread_sanitizer(),
        Chore::Miri => nightly::miri(),
        Chore::Size => size::run(),
        Chore::Linux => linux::proves_locks(),
        Chore::ReportInBrowser { record } => {
            browser::run(&record.map_or_else(browser::newest_tuning, Ok)?)
        }
        Chore::Install(args) => install::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Programs(args) => programs::run(&args),
        Chore::EmulateArch { architecture, effort } => {
            emulate_arch::run(architecture.as_deref(), &effort)
        }
        Chore::LinuxBoot => linux::boots_x86(),
        Chore::PrezeroBench(args) => linux::prezero_bench(&args),
        Chore::EmulateAvx512(args) => emulate::run(&args),
    }
}
