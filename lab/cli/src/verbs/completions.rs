//! `cachewise completions`: from the same definitions as `--help`.

use crate::args::{Cli, Shell};
use crate::{output, status};
use cachewise::Reuse;
use cachewise_experiments::registry;
use cachewise_kernels::Operation;
use cachewise_measure::Level;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _};

pub fn run(shell: Shell) -> anyhow::Result<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut shown(&Cli::command()), "cachewise", &mut bytes);
    output::print(&String::from_utf8_lossy(&bytes))?;
    Ok(status::OK)
}

/// The command without the verbs and options that are for its own use.
fn shown(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    // The parser takes names that live as long as the process, which ends after this.
    let name: &'static str = command.get_name().to_owned().leak();
    let shown = Command::new(name).version(env!("CARGO_PKG_VERSION"));
    let shown = shown.about(command.get_about().cloned().unwrap_or_default());
    shown.args(arguments.cloned().map(valued)).subcommands(verbs.map(self::shown))
}

/// An argument whose values are names, with these.
fn valued(argument: Arg) -> Arg {
    let names: Vec<&'static str> = match argument.get_id().as_str() {
        "experiment" => {
            let whole = registry::here().filter(|experiment| !experiment.is_study);
            whole.map(|experiment| experiment.name).chain(["study"]).collect()
        }
        "item" => registry::here().filter(|one| one.is_study).map(|one| one.name).collect(),
        "op" => Operation::ALL.iter().map(|operation| operation.name()).collect(),
        "residency" => Level::ALL.iter().map(|level| level.name()).collect(),
        "reuse" => Reuse::ALL.iter().map(|reuse| reuse.name()).collect(),
        _ => return argument,
    };
    argument.value_parser(PossibleValuesParser::new(names))
}
