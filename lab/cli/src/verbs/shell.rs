//! `cachewise completions` and `cachewise man`: from the same definitions as `--help`.

use crate::args::{Cli, Shell};
use crate::{output, status};
use anyhow::Context;
use cachewise::Reuse;
use cachewise_experiments::registry;
use cachewise_kernels::Operation;
use cachewise_measure::Level;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _};
use std::path::Path;

pub fn completions(shell: Shell) -> anyhow::Result<u8> {
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

/// Prints the manual page, or writes one per verb.
pub fn man(to: Option<&Path>) -> anyhow::Result<u8> {
    let command = Cli::command().disable_help_subcommand(true);
    let mut command = command.mut_subcommands(|verb| verb.disable_help_subcommand(true));
    command.build();
    let Some(directory) = to else {
        output::print(&String::from_utf8_lossy(&page(&command)?))?;
        return Ok(status::OK);
    };
    std::fs::create_dir_all(directory)
        .with_context(|| format!("{}: directory not made", directory.display()))?;
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let with_own = verbs.flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
    for one in std::iter::once(&command).chain(with_own) {
        let name = one.get_display_name().unwrap_or(one.get_name()).replace(' ', "-");
        output::write_file(&directory.join(format!("{name}.1")), &page(one)?)?;
    }
    Ok(status::OK)
}

/// The variables, where the documentation has them.
const VARIABLES: &str = include_str!("../../../../docs/environment.md");

const FILES: [(&str, &str); 3] = [
    (
        "$XDG_CONFIG_HOME/cachewise/, ~/.config/cachewise/",
        "The user's profiles, each beside its record.",
    ),
    ("/etc/cachewise/", "The machine's profiles."),
    (
        "$XDG_DATA_HOME/cachewise/, ~/.local/share/cachewise/",
        "Copies of the libraries that are preloaded.",
    ),
];

const EXAMPLES: [(&str, &str); 13] = [
    ("cachewise tune --quick", "Measure for a minute, and write the profile."),
    ("cachewise advise -- PROGRAM ARGS", "Find out what to set for a program."),
    ("cachewise doctor", "Judge this machine's settings."),
    ("cachewise list kernels --op copy", "Name the ways to copy."),
    (
        "cachewise run copy-matrix --residency L2 --json FILE",
        "Time copies in the L2, and keep the figures.",
    ),
    ("cachewise explain --op memcpy --size 32M", "Show one decision and what it rests on."),
    ("cachewise export glibc", "Try the profile's thresholds in glibc, and print what pays."),
    ("cachewise report RECORD -o report.html", "Draw a record as a page."),
    ("cachewise compare OLD NEW -- run page-clear", "Run two builds in turns, and compare them."),
    ("cachewise completions bash", "Print what bash completes."),
    ("cachewise exec -- PROGRAM ARGS", "Run a program on the library."),
    ("cachewise scrubd --size 16G", "Hold zeroed memory for other processes."),
    ("cachewise lease --size 2G -- PROGRAM {path}", "Run a program on such memory."),
];

/// The manual page of the command or of a verb.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or(command.get_name()).replace('-', " ");
    let is_whole = name == command.get_name();
    let shown = || command.get_arguments().filter(|argument| !argument.is_hide_set());
    let version = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone()).source(version);
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    let mut text = format!(".SH SYNOPSIS\n.B {name}\n");
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        shown().partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positional) {
        // With the value, in brackets where it may be left out: a positional one brings its own.
        let is_plain = argument.is_required_set() || argument.is_positional();
        let (begin, end) = if is_plain { ("", "") } else { ("[", "]") };
        text += &format!("{}\n", roff(&format!("{begin}{argument}{end}")));
    }
    text += if command.has_subcommands() { "VERB ...\n" } else { "" };
    out.extend(text.bytes());
    man.render_description_section(&mut out)?;
    if shown().next().is_some() {
        man.render_options_section(&mut out)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    let own = |(line, _): &&(&str, &str)| is_whole || line.starts_with(&name);
    let examples: Vec<(String, String)> = EXAMPLES.iter().filter(own).map(texts).collect();
    let mut sections = vec![("EXAMPLES", examples)];
    if is_whole {
        sections.push(("ENVIRONMENT", variables()));
        sections.push(("FILES", FILES.iter().map(texts).collect()));
        man.render_version_section(&mut out)?;
    }
    for (title, entries) in sections.into_iter().filter(|(_, entries)| !entries.is_empty()) {
        out.extend(format!(".SH {title}\n").bytes());
        for (what, about) in entries {
            out.extend(format!(".TP\n{}\n{}\n", roff(&what), roff(&about)).bytes());
        }
    }
    if !is_whole {
        out.extend(b".SH SEE ALSO\ncachewise(1): variables and files\n");
    }
    Ok(out)
}

fn texts((what, about): &(&str, &str)) -> (String, String) {
    ((*what).to_owned(), (*about).to_owned())
}

/// The rows of the tables about the library and the command.
fn variables() -> Vec<(String, String)> {
    let told = VARIABLES.split("\n## ").filter(|part| part.starts_with("The "));
    let rows = told.flat_map(str::lines).filter(|line| line.starts_with("| `"));
    let entry = |row: &str| {
        // A link is replaced by its text.
        let plain = row.replace(['`', '['], "");
        let parts: Vec<&str> = plain.split("](").collect();
        let plain: String = std::iter::once(parts[0])
            .chain(
                parts[1..].iter().map(|part| part.split_once(')').map_or(*part, |(_, rest)| rest)),
            )
            .collect();
        let mut cells = plain.split('|').map(str::trim).skip(1);
        let mut next = || cells.next().unwrap_or_default().to_owned();
        let (name, value, without) = (next(), next(), next());
        (name, format!("{value}. Without it: {without}."))
    };
    rows.map(entry).collect()
}

/// Text as roff takes it: no sign of it is a request.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn the_examples_of_the_manual_are_accepted() {
        for (line, _) in EXAMPLES {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
        }
    }

    #[test]
    fn pages_have_values_variables_files_and_examples() {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let text = |command: &Command| {
            String::from_utf8(page(command).expect("memory")).expect("what was text")
        };
        let whole = text(&command);
        for part in ["SH ENVIRONMENT", "\nCACHEWISE_PROFILE\n", "SH FILES", "/etc/cachewise/"] {
            assert!(whole.contains(part), "{part}: {whole}");
        }
        let told: String = variables().into_iter().map(|(name, about)| name + &about).collect();
        assert!(!told.contains("](") && !told.contains('`'), "no Markdown: {told}");
        let run = text(command.find_subcommand("run").expect("a verb"));
        for part in
            [".B cachewise run\n", "[\\-\\-kernels <REGEX>]\n", "SH EXAMPLES", "copy\\-matrix"]
        {
            assert!(run.contains(part), "{part}: {run}");
        }
        assert!(!run.contains("launch\\-record"), "hidden: {run}");
    }
}
