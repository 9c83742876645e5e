//! `cachewise`: flags and glue. What is measured is the experiments' and the tuner's business, what is drawn the
//! report's; here are the verbs, the exit codes, the progress bar and Ctrl-C.

mod advised;
mod args;
mod inherited;
mod libraries;
mod output;
mod program;
mod progress;
mod python;
mod removed;
mod status;
mod verbs;

use args::{Cli, Verb};
use cachewise_experiments::LabError;
use cachewise_scrubd::ServeError;
use clap::Parser;
use std::process::ExitCode;

/// Bytes of stack that the command has; with less than an eighth of them (`ulimit -s`), in a thread of its own.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= STACK as u64 / 8) {
        return run();
    }
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    thread.ok().and_then(|thread| thread.join().ok()).unwrap_or(ExitCode::FAILURE)
}

fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => match removed::accepted(&cli) {
            Some(instead) => return refused(&instead),
            None => cli,
        },
        Err(error) => match removed::refused(&error) {
            Some(instead) => return refused(&instead),
            None => error.exit(),
        },
    };
    let outcome = match cli.verb {
        Verb::Tune(args) => verbs::tune::run(&args),
        Verb::Advise(args) => verbs::advise::run(&args),
        Verb::Doctor { json } => verbs::doctor::run(json),
        Verb::List(args) => verbs::list::run(&args),
        Verb::Run(args) => verbs::run::run(&args),
        Verb::Explain(args) => verbs::explain::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Report(args) => verbs::report::run(&args),
        Verb::Compare(args) => verbs::compare::run(&args),
        Verb::Completions { shell } => verbs::completions::run(shell),
        Verb::Exec(args) => verbs::exec::run(&args),
        Verb::Scrubd(args) => verbs::scrubd::run(&args),
        Verb::Lease(args) => verbs::lease::run(&args),
        Verb::Helper => helper(),
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // The reader of a record has seen enough.
            if output::is_closed_pipe(&error) {
                return ExitCode::from(status::OK);
            }
            output::tell(&format!("cachewise: {}", line_of(&error)));
            let is_stopped = progress::is_stopped();
            ExitCode::from(if is_stopped { status::INTERRUPTED } else { status_of(&error) })
        }
    }
}

fn refused(why: &str) -> ExitCode {
    output::tell(&format!("cachewise: {why}"));
    ExitCode::from(status::USAGE)
}

/// Serves requests until standard input ends.
fn helper() -> anyhow::Result<u8> {
    cachewise_experiments::serving::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(status::OK)
}

/// The error and its causes, less those that the words before them have already.
fn line_of(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) {
            line = if line.is_empty() { cause } else { format!("{line}: {cause}") };
        }
    }
    line
}

/// The exit status an error stands for.
fn status_of(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(ServeError::Setting(_)))) {
        return status::USAGE;
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<LabError>()) {
        Some(lab) if lab.is_wrong_bytes() => status::WRONG_BYTES,
        Some(LabError::Interrupted) => status::INTERRUPTED,
        Some(
            LabError::Usage(_)
            | LabError::UnknownKernel { .. }
            | LabError::TooLarge { .. }
            | LabError::Nothing(_),
        ) => status::USAGE,
        _ => status::ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::RecordError;

    #[test]
    fn errors_have_the_statuses_that_help_promises() {
        let of = |error: LabError| status_of(&anyhow::Error::from(error));
        assert_eq!(of(LabError::WrongBytes("byte 3".into())), status::WRONG_BYTES);
        assert_eq!(of(LabError::Nothing("none".into())), status::USAGE);
        assert_eq!(of(LabError::Emulated("qemu".into())), status::ERROR);
        let wrapped = anyhow::Error::from(LabError::TooLarge { found: 9, most: 1, budget: 4 });
        assert_eq!(status_of(&wrapped.context("while running")), status::USAGE);
        assert_eq!(status_of(&anyhow::anyhow!("anything else")), status::ERROR);
    }

    #[test]
    fn a_cause_is_said_once() {
        let io = || std::io::Error::from_raw_os_error(libc::ENOSPC);
        let record = RecordError::Io { file: "r.jsonl".into(), source: io() };
        let full = format!("r.jsonl: {}", io());
        assert_eq!(line_of(&LabError::from(record).into()), full);
        assert_eq!(line_of(&anyhow::Error::from(io()).context("r.jsonl")), full);
    }
}
