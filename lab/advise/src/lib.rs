//! Settings for one program. Pure: `cachewise advise` runs the program, or a simulation does.
//!
//! 1. [`bound`]: how much of a run anything here could gain, from one plain run and one observed.
//! 2. [`candidates`]: the settings that apply to this program, each with its condition; [`lists`] keeps the caller's.
//! 3. [`sample`]: the figures of a run. The race of settings is `cachewise_judge::race`.
//! 4. [`goal`], [`growth`]: less memory in place of less time, and memory that no setting gives back.
//! 5. [`verdict`]: the answer in sentences, with what it gains and costs.
//! 6. [`written`]: the setting for a shell, a systemd unit, a Dockerfile.
#![warn(missing_docs)]

pub mod bound;
pub mod candidates;
pub mod counts;
pub mod figures;
pub mod gathered;
pub mod goal;
pub mod growth;
pub mod lists;
pub mod rows;
pub mod sample;
pub mod verdict;
pub mod written;

/// Interpreters that a script's name may follow, by the beginning of their files' names.
const INTERPRETERS: [&str; 10] =
    ["python", "pypy", "perl", "ruby", "node", "php", "Rscript", "lua", "bash", "sh"];

/// The name of a program in tables and records: its file's, or that of the script that an interpreter runs, or Python's
/// module.
///
/// ```
/// let name = |line: &str| {
///     let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
///     cachewise_advise::shown_name(&words).to_owned()
/// };
/// assert_eq!(name("/usr/bin/python3 jobs/columns.py --fast"), "columns.py");
/// assert_eq!(name("python3 -m http.server"), "http.server");
/// assert_eq!(name("sh -c ls"), "sh");
/// assert_eq!(name("./shuffle data.txt"), "shuffle");
/// ```
#[must_use]
pub fn shown_name(words: &[String]) -> &str {
    let file = |word: &'_ String| word.rfind('/').map_or(0, |at| at + 1);
    let Some(program) = words.first().map(|word| &word[file(word)..]) else { return "" };
    let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_interpreter =
        INTERPRETERS.iter().any(|name| program.strip_prefix(name).is_some_and(version));
    match words.get(1..).filter(|_| is_interpreter) {
        Some([option, module, ..]) if option == "-m" && program.starts_with("py") => module,
        Some([script, ..]) if !script.starts_with('-') => &script[file(script)..],
        _ => program,
    }
}
