//! `advise --blame`: where a program's page faults, copies or resident memory come from.

use super::asked::Asked;
use super::looks::Watched;
use super::runner::{Failed, Measured, Runner};
use crate::args;
use crate::verbs::redraw::{self, Loaded};
use crate::{advised, output, status};
use anyhow::bail;
use cachewise_advise::shown_name;
use cachewise_blame::{Blamed, Recording, Stacks};
use cachewise_experiments::recorder::Progress as _;
use cachewise_measure::record::names::BLAME;
use cachewise_measure::{Clock, Decisions, End, Header, Record};
use cachewise_report::Table;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::time::Instant;

/// Functions that the table has.
const MOST: usize = 16;
/// Characters of a function's name in the table: those of templates have hundreds. Files have all.
const NAME: usize = 56;
/// Python names its functions for profilers (from 3.12 on; older ones ignore it).
const PYTHON: &str = "PYTHONPERFSUPPORT";

impl From<args::Blame> for Blamed {
    fn from(what: args::Blame) -> Blamed {
        match what {
            args::Blame::Faults => Blamed::Faults,
            args::Blame::Copies => Blamed::Copies,
            args::Blame::Memory => Blamed::Memory,
        }
    }
}

/// Prints and writes the stacks; the exit status.
pub(super) fn say(
    asked: &Asked<'_>,
    blamed: Blamed,
    stacks: Option<&Stacks>,
    begun: Instant,
) -> anyhow::Result<u8> {
    let Some(stacks) = stacks else { return Ok(status::INTERRUPTED) };
    let args = asked.args;
    let program = args.name.clone().unwrap_or_else(|| shown_name(asked.words).to_owned());
    let headline = headline(shown_name(asked.words.get(..1).unwrap_or_default()), blamed, stacks);
    let places = [&args.json, &args.html, &args.folded];
    if !places.into_iter().flatten().any(|file| output::is_stdout(file)) {
        let table = table(&program, blamed, stacks).terminal(output::width());
        output::print(&format!("{headline}\n\n{table}"))?;
    }
    if let Some(file) = &args.folded {
        output::write(file, stacks.lines().as_bytes())?;
    }
    let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
    let mut header =
        Header::now(tool, asked.machine.clone(), Clock::of_process().facts(), asked.seed);
    header.settings.insert("experiment".to_owned(), advised::EXPERIMENT.into());
    header.settings.insert("name".to_owned(), program.into());
    header.settings.insert("program".to_owned(), asked.words.into());
    header.settings.insert("load".to_owned(), args.load.clone().into());
    header.settings.insert(BLAME.to_owned(), recorded(blamed, stacks));
    let end = End {
        rows: 0,
        interrupted: false,
        seconds: begun.elapsed().as_secs_f64(),
        peak_bytes: None,
        verdicts: vec![headline.clone()],
    };
    let record = Record {
        header,
        rows: Vec::new(),
        notes: Vec::new(),
        decisions: Decisions::default(),
        end: Some(end),
    };
    if let Some(path) = &args.json {
        output::write_record(
            output::record_writer(path)?.since(begun),
            &record,
            &[headline],
            false,
        )?;
    }
    if let Some(path) = &args.html {
        let name = args.json.as_ref().map_or_else(String::new, |file| redraw::named(file));
        output::write(path, redraw::page(&[Loaded { name, record }])?.as_bytes())?;
    }
    Ok(status::OK)
}

/// The stacks of one run after one that counts its faults; none where it was stopped.
pub fn stacks(runner: &mut Runner<'_>, blamed: Blamed) -> anyhow::Result<Option<Stacks>> {
    let Some(plain) = run(runner, &[], &mut Watched::default())? else { return Ok(None) };
    let faults = plain.sample.faults.max(0.0) as u64;
    runner.bar.begin("recorded run", 1.0);
    let recording = Recording::begin(blamed, faults)?;
    let mut watched = Watched::default();
    let own = std::env::var_os(PYTHON);
    let more = [(PYTHON, own.clone().unwrap_or_else(|| OsString::from("1")))];
    let ended = run(runner, &more, &mut watched);
    // Files that were named for this run alone are removed.
    let stacks = recording.end(watched.program, own.is_none());
    Ok(ended?.map(|_| stacks))
}

fn run(
    runner: &mut Runner<'_>,
    more: &[(&str, OsString)],
    watched: &mut Watched,
) -> anyhow::Result<Option<Measured>> {
    match runner.measure(None, more, watched)? {
        Ok(measured) => Ok(Some(measured)),
        Err(Failed::Stopped) => Ok(None),
        Err(Failed::Wrong(why)) => {
            bail!("{}: {why}; accepted: {}", runner.program.display(), runner.accepted())
        }
    }
}

/// The finding in a sentence: the function of the program's own, or the file without names, that most of it is under.
pub fn headline(program: &str, blamed: Blamed, stacks: &Stacks) -> String {
    let total = stacks.total();
    match stacks.functions().into_iter().find(|(name, _)| is_own(name, program)) {
        _ if total == 0 => format!("no {}: no stack was sampled", what(blamed)),
        Some((name, count)) => format!(
            "{} in all, {} of them in {name} and what it calls",
            amount(blamed, total),
            percent(count, total)
        ),
        None => format!("{} in all", amount(blamed, total)),
    }
}

/// Returns true for a function or file that says more than that the program ran.
fn is_own(name: &str, program: &str) -> bool {
    const START: [&str; 7] =
        ["_start", "__libc_start", "main", "clone", "start_thread", "std::rt::", "std::sys::"];
    const PYTHON: [&str; 4] = ["Py", "_Py", "run_mod", "run_eval_code_obj"];
    const FILES: [&str; 6] = ["[libc.", "[ld-", "[python", "[libpython", "[kernel", "[unknown"];
    let is_program =
        || name.strip_prefix('[').is_some_and(|file| file.strip_suffix(']') == Some(program));
    !START.iter().chain(&PYTHON).chain(&FILES).any(|begin| name.starts_with(begin)) && !is_program()
}

/// Returns true if stacks go through Python's evaluation and none has a function of the Python program.
fn python_is_unnamed(stacks: &Stacks) -> bool {
    let frames = || stacks.folded.keys().flat_map(|stack| stack.split(';'));
    frames().any(|frame| frame == "_PyEval_EvalFrameDefault")
        && !frames().any(|frame| frame.starts_with("py::"))
}

fn what(blamed: Blamed) -> &'static str {
    match blamed {
        Blamed::Faults => "page faults",
        Blamed::Copies => "CPU time in copies, fills and comparisons",
        Blamed::Memory => "resident memory that page faults of the run made",
    }
}

fn amount(blamed: Blamed, count: u64) -> String {
    match blamed {
        Blamed::Faults => format!("{count} page faults"),
        Blamed::Copies => {
            let time = cachewise_report::units::time(count as f64 * 1000.0);
            format!("{time} of CPU in copies, fills and comparisons")
        }
        Blamed::Memory => {
            format!("{} resident at the end", cachewise_report::units::bytes(count << 10))
        }
    }
}

fn percent(part: u64, total: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / total.max(1) as f64)
}

/// Functions by the count of their stacks, and by what they have themselves.
pub fn table(program: &str, blamed: Blamed, stacks: &Stacks) -> Table {
    let heads = "function | >with callees | >itself";
    let mut table = Table::of(format!("{program}: {}", what(blamed)), heads);
    let total = stacks.total();
    let itself = |name: &str| {
        let ends = |stack: &&String| stack.rsplit(';').next() == Some(name);
        stacks.folded.iter().filter(|(stack, _)| ends(stack)).map(|(_, count)| count).sum::<u64>()
    };
    for (name, count) in stacks.functions().into_iter().take(MOST) {
        let own = percent(itself(&name), total);
        table.push(vec![shortened(&name), percent(count, total), own]);
    }
    if stacks.truncated * 20 > stacks.samples {
        table.remark(format!(
            "{} of {} stacks end early: a file without unwind information",
            stacks.truncated, stacks.samples
        ));
    }
    if python_is_unnamed(stacks) {
        table.remark(
            "Python's own functions are not named: Python 3.12 and later name them for profilers",
        );
    }
    if stacks.lost > 0 {
        table.remark(format!(
            "{} samples were lost: the program was faster than the reader",
            stacks.lost
        ));
    }
    if stacks.without_kernel {
        table.remark(
            "without what happens inside of system calls: that takes kernel.perf_event_paranoid = 1 or less, or CAP_PERFMON",
        );
    }
    table
}

/// A name without its middle, where it is too long.
fn shortened(name: &str) -> String {
    let long = name.chars().count();
    if long <= NAME {
        return name.to_owned();
    }
    let (half, end) = ((NAME - 3) / 2, NAME - 3 - (NAME - 3) / 2);
    let (first, last) = (name.chars().take(half), name.chars().skip(long - end));
    format!("{}...{}", first.collect::<String>(), last.collect::<String>())
}

/// The record's setting, from which the page draws the flame graph.
pub fn recorded(blamed: Blamed, stacks: &Stacks) -> Value {
    json!({ "of": what(blamed), "unit": blamed.unit(), "folded": stacks.lines() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(folded: &[(&str, u64)]) -> Stacks {
        let folded = folded.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect();
        Stacks { folded, samples: 100, truncated: 6, without_kernel: true, ..Stacks::default() }
    }

    #[test]
    fn the_headline_names_the_first_function_of_the_programs_own() {
        let found = stacks(&[
            ("p;_start;main;load;memset", 75),
            ("p;_start;main;load", 5),
            ("p;_start;main;[x.so]", 20),
        ]);
        assert_eq!(
            headline("p", Blamed::Faults, &found),
            "100 page faults in all, 80 % of them in load and what it calls"
        );
        // A file without names, but not the program's or the C library's.
        let files = stacks(&[("p;_start;[p];[libc.so.6];[x.so]", 80), ("p;_start;[p];memset", 20)]);
        assert_eq!(
            headline("p", Blamed::Faults, &files),
            "100 page faults in all, 80 % of them in [x.so] and what it calls"
        );
        let table = table("p", Blamed::Faults, &found);
        let row = table.rows.iter().find(|row| row[0] == "load").expect("a row");
        assert_eq!(row[1..], ["80 %", "5 %"]);
        assert_eq!(table.remarks.len(), 2, "{:?}", table.remarks);
        assert_eq!(shortened("std::vector<int>::push_back"), "std::vector<int>::push_back");
        let long = format!("begin{}end", "x".repeat(500));
        let short = shortened(&long);
        assert_eq!(short.chars().count(), NAME);
        assert!(short.starts_with("begin") && short.contains("...") && short.ends_with("end"));
        // An old Python is said to be one; a new one has its functions among the stacks.
        let remarks = |stack| {
            let one = Stacks { folded: [(format!("p;{stack}"), 1)].into(), ..Stacks::default() };
            super::table("p", Blamed::Faults, &one).remarks.len()
        };
        assert_eq!(remarks("_PyEval_EvalFrameDefault;memset"), 1);
        assert_eq!(remarks("_PyEval_EvalFrameDefault;py::work:a.py;memset"), 0);
        assert!(headline("p", Blamed::Copies, &stacks(&[])).starts_with("no CPU time in copies"));
    }
}
