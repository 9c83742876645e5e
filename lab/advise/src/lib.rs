//! Settings for any program: it is run with them and without, and compared.
//!
//! 1. [`program`]: the one runner; [`load`] for servers, [`output`] compares, [`figure`] and [`figures`] read what is printed,
//!    [`watched`] looks at the processes, [`executable`] at their files.
//! 2. [`settings`]: what applies to a program, each with its condition; [`lists`] keeps the caller's values of variables.
//! 3. [`bound`], [`gathered`]: how much of a run could be gained, by what is counted.
//! 4. [`ask`]: from the first run to the answer. The race is `cachewise_judge::race`; [`answer`] has the words, and decides what
//!    *no* may be said over; [`rows`] judges many figures at once.
//! 5. [`written`]: the setting for a shell, a systemd unit, a Dockerfile.

pub mod answer;
pub mod ask;
pub mod bound;
pub mod comparison;
pub mod executable;
pub mod figure;
pub mod figures;
pub mod four;
pub mod gathered;
pub mod lists;
pub mod load;
pub mod output;
pub mod parts;
pub mod probe;
pub mod program;
pub mod rows;
pub mod settings;
pub mod watched;
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
