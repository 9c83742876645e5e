//! Verbs and options of earlier releases: each is answered by what takes its place.

use crate::args::{Cli, Verb};
use clap::error::{ContextKind, ContextValue};
use std::ffi::OsStr;

/// The verb, or the verb and its option or value; what to use now.
const REMOVED: &[(&str, &str)] = &[
    ("run --verify-only", "`run` and `tune` check the bytes of what they time"),
    ("tune --verify-only", "`run` and `tune` check the bytes of what they time"),
    ("run --plot", "`-o PAGE.html`; the tables have the same figures"),
    ("report --plot", "`-o PAGE.html`; the tables have the same figures"),
    ("tune --plot", "`--html PAGE.html`; `cachewise report RECORD` has the same figures"),
    ("report --splice", "`cargo run -p xtask -- splice` in the project's own sources"),
    ("report --check", "`cargo run -p xtask -- splice --check` in the project's own sources"),
    ("man", "the packages bring the manual pages; `cachewise VERB --help` prints the same"),
    ("learn", "`cachewise advise -- PROGRAM` says what a program gains"),
    ("forget", "delete the profile, a file that `cachewise doctor` names"),
    ("exec --unlearned", "`exec` without it: calls follow the profile alone"),
    (
        "compare --launches",
        "`--budget`; two builds: `compare --figures cachewise OLD NEW -- run EXPERIMENT`",
    ),
    ("export profile", "a profile is text already: `cachewise doctor` names its file"),
    ("export json", "a profile is text already: `cachewise doctor` names its file"),
    ("export c", "link the C library (docs/c-library.md), which follows the profile"),
    (
        "export mpi",
        "`ucx_perftest` with UCX's own variables; `cachewise advise --figure` compares settings of any program",
    ),
    (
        "export --untried",
        "`cachewise export glibc` prints at once; `cachewise advise -- PROGRAM` tries the line on a program",
    ),
    ("export --loader", "run `cachewise export glibc` under the other glibc"),
    ("export --system", "`cachewise advise --write FILE.conf -- PROGRAM` writes a systemd drop-in"),
    ("export --advice", "`cachewise advise --write FILE.conf -- PROGRAM` writes a systemd drop-in"),
    (
        "exec --name",
        "`cachewise advise -- PROGRAM` says what a program gains; hints for one gained nothing",
    ),
    (
        "advise --blame",
        "perf record -g -e page-faults -- PROGRAM, heaptrack PROGRAM, memray run PROGRAM (docs/advise.md)",
    ),
    ("advise --folded", "perf script, and a flame graph tool of your own (docs/advise.md)"),
    ("run page-colour", "`cachewise report` draws its records; docs/findings.md has its answer"),
    ("run jumps", "`cachewise report` draws its records; docs/findings.md has its answer"),
    (
        "run buffer-reuse",
        "`cachewise run study cached-target` has destinations just read and in memory",
    ),
    ("run parallel", "`cachewise run page-fault` times memory made resident by threads"),
    ("run prefault", "`cachewise run page-fault` times memory made resident by threads"),
    (
        "list entries",
        "`cachewise explain --op OPERATION --size SIZE` names the entry stub: CPUID decides",
    ),
    ("scrubd --engine", "every lease is a new file that the kernel zeroed, as by default before"),
    ("scrubd --prometheus", "`cachewise scrubd status --json`"),
    ("explain --program", "`cachewise explain --reuse soon` or `--reuse never`"),
    (
        "exec --pool",
        "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824 is as fast, and `cachewise advise -- PROGRAM` says what a program gains",
    ),
    (
        "advise --unit",
        "--load COMMAND -- the words of the unit's ExecStart; --write NAME.conf makes the drop-in",
    ),
];

/// The answer for an option or a verb that was removed.
fn instead(words: &str) -> Option<String> {
    let (words, instead) = REMOVED.iter().find(|(removed, _)| *removed == words)?;
    Some(format!("`{words}` was removed; instead: {instead}"))
}

/// [`instead`] for what the parser of arguments refused.
pub fn refused(error: &clap::Error) -> Option<String> {
    let found = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(verb) = found(ContextKind::InvalidSubcommand) {
        return instead(verb);
    }
    let verb = std::env::args().nth(1)?;
    let kinds = [ContextKind::InvalidValue, ContextKind::InvalidArg];
    kinds.into_iter().find_map(|kind| instead(&format!("{verb} {}", found(kind)?)))
}

/// [`instead`] for a word that the parser takes: an experiment's name, or an unknown option before a program.
pub fn accepted(cli: &Cli) -> Option<String> {
    let (verb, program) = match &cli.verb {
        Verb::Run(args) => return instead(&format!("run {}", args.experiment)),
        Verb::Advise(args) => ("advise", args.program.first()),
        Verb::Exec(args) => ("exec", args.program.first()),
        Verb::Lease(args) => ("lease", args.program.first()),
        _ => return None,
    };
    let option = program.map(OsStr::new)?.to_str()?;
    instead(&format!("{verb} {}", option.split('=').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn nothing_that_was_removed_is_accepted() {
        for (words, _) in REMOVED {
            let line = format!("cachewise {words}");
            let refusal = match Cli::try_parse_from(line.split(' ')) {
                Ok(cli) => accepted(&cli),
                // By the words of this process's own arguments, which are a test's.
                Err(error) => error.use_stderr().then(String::new),
            };
            assert!(refusal.is_some(), "{words}");
        }
    }
}
