//! The stages that need a nightly compiler: Miri and ThreadSanitizer. `.ci/nightly` names its date, so
//! that what passes today passes tomorrow; `.ci/run` installs it.

use crate::ci::Ended;
use crate::command;
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

const TOOLCHAIN: &str = include_str!("../../.ci/nightly");
const SANITIZED: &str = "x86_64-unknown-linux-gnu";
/// For Miri: no crate has inline assembly there.
const INTERPRETED: &str = "powerpc64le-unknown-linux-gnu";

/// Tests of one package.
struct Part {
    package: &'static str,
    /// Which of its test programs, and its features.
    programs: &'static [&'static str],
    /// Tests that are left out, for the reason beside them.
    left_out: &'static [&'static str],
}

/// What has no system call and no instruction of its own. `cfg!(miri)` makes the amount of work smaller
/// where a test has much of it.
const PURE: &[Part] = &[
    Part {
        package: "cachewise-learn",
        programs: &["--lib", "--test", "section", "--test", "corpus"],
        left_out: &[],
    },
    Part {
        package: "cachewise-pages",
        programs: &["--no-default-features", "--lib", "--test", "buddy"],
        left_out: &[
            // Thousands of steps, or of frames: minutes each, interpreted. This module has no unsafe code.
            "a_model_of_a_pool_that_fills_and_drains",
            "a_run_is_made_of_blocks",
            "bookkeeping_is_16_bytes_per_page_and_orders_go_to_18",
            "every_size_and_order_takes_all_and_gives_all_back",
            "it_does_what_the_model_does",
            "runs_of_every_length_leave_the_rest",
            "runs_tile_exactly",
            "the_fuzzers_corpus_replays",
            "the_lists_come_back_from_the_tags_alone",
        ],
    },
];

/// Programs whose threads meet; those of the learner's tests meet under Miri. ThreadSanitizer sees what Rust compiles, and not the kernels' assembly.
const THREADED: &[Part] = &[Part {
    package: "cachewise-pages",
    programs: &["--lib", "--test", "pool", "--test", "scrubber", "--test", "shards"],
    left_out: &[],
}];

pub(crate) fn miri() -> Result<Ended> {
    installed(&["miri", "rust-src"])?;
    for part in PURE {
        let mut command = part.command(&["miri", "test", "--target", INTERPRETED], "miri");
        // Corpora and the folder of a test are files.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command::run(&mut command)?;
    }
    Ok(Ended::Passed)
}

pub(crate) fn thread_sanitizer() -> Result<Ended> {
    installed(&["rust-src"])?;
    for part in THREADED {
        let build = ["test", "-Zbuild-std", "--target", SANITIZED];
        let mut command = part.command(&build, "thread-sanitizer");
        // It follows mappings through the C library only: a new one where another was has no past.
        command.env("RUSTFLAGS", "-Zsanitizer=thread --cfg rustix_use_libc");
        command::run(&mut command)?;
    }
    Ok(Ended::Passed)
}

impl Part {
    fn command(&self, call: &[&str], folder: &str) -> Command {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let mut command = Command::new("rustup");
        command.args(["run", TOOLCHAIN.trim(), "cargo"]).args(call);
        command.args(["-p", self.package]).args(self.programs).arg("--");
        for test in self.left_out {
            command.args(["--skip", test]);
        }
        command.env("CARGO_TARGET_DIR", Path::new(&target).join(folder));
        command.current_dir(command::root());
        command
    }
}

/// Fails where a component is missing, and says what installs it.
fn installed(components: &[&str]) -> Result<()> {
    let toolchain = TOOLCHAIN.trim();
    let install = format!(
        "rustup toolchain install {toolchain} --profile minimal --component miri --component rust-src"
    );
    let listed =
        Command::new("rustup").args(["component", "list", "--toolchain", toolchain]).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    for component in components {
        let there = text
            .lines()
            .any(|line| line.starts_with(component) && line.trim_end().ends_with("(installed)"));
        ensure!(there, "{component} of {toolchain} is not installed: {install}");
    }
    Ok(())
}
