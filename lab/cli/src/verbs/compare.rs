//! `cachewise compare OLD NEW`: is new slower than old? Two commands in pairs, or two records.

mod records;

use crate::args::{Compare, Judged};
use crate::progress::Bar;
use crate::verbs::{drawn_seed, exec};
use crate::{output, status};
use anyhow::bail;
use cachewise_advise::comparison::{Comparison, Line, as_rows, by_pairs, strip};
use cachewise_advise::executable::is_executable;
use cachewise_advise::figures::Format;
use cachewise_advise::program::{
    Arm, Conditions, Failed, Figure, Measured, Prints, Programs, Sample,
};
use cachewise_advise::rows::{self, Figures, RowsFound};
use cachewise_experiments::LabError;
use cachewise_experiments::recorder::Progress as _;
use cachewise_judge::margin::LEAST_LOOKED;
use cachewise_judge::race::{self, Ended, Fate, Outcome, Promise, Question, Runner as _};
use cachewise_judge::{Ratio, Verdict};
use cachewise_measure::{NoiseSnapshot, children};
use cachewise_report::{Table, pairs};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of the sides in messages.
const SIDES: [&str; 2] = ["old", "new"];
/// Warming up takes this part of the budget at most, and so many runs of each.
const WARM_PART: f64 = 0.1;
const WARM_RUNS: usize = 3;
/// Rows printed where not all were asked for.
const LISTED: usize = 40;

/// Compares, says so, and exits by what it found.
pub fn run(args: &Compare) -> anyhow::Result<u8> {
    let both = [&args.old, &args.new].map(Path::new);
    if args.arguments.is_empty() && both.iter().any(|path| is_record(path)) {
        check_outputs(args, both.map(Path::to_owned).to_vec())?;
        return records::run(args, both);
    }
    commands(args)
}

/// Refuses, before anything runs, to write over what is read or run.
fn check_outputs(args: &Compare, inputs: Vec<PathBuf>) -> anyhow::Result<()> {
    let files = [&args.csv, &args.markdown, &args.json, &args.html];
    output::check_all(&files.map(|file| file.as_deref()), &inputs)
}

/// Returns whether a file begins as a record does: with an object of JSON, or compressed.
fn is_record(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut begin = [0; 2];
    is_file
        && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && (begin[0] == b'{' || begin == [0x1f, 0x8b])
}

/// One side: its file, its words, its folder and variables. `None` where its program is not found, which was said.
fn side(args: &Compare, at: usize) -> anyhow::Result<Option<Arm>> {
    let command = [&args.old, &args.new][at];
    let directory = [&args.directory_old, &args.directory_new][at];
    let variables = [&args.env_old, &args.env_new][at];
    let usage = |why: String| LabError::Usage(format!("{}: {why}", SIDES[at]));
    let mut words: Vec<OsString> = if args.arguments.is_empty() {
        let text = command.to_str().ok_or_else(|| usage("expected UTF-8".to_owned()))?;
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| {
            usage(format!(
                "expected a command, found {text:?}: a quote without its end, or nothing"
            ))
        })?;
        words.into_iter().map(OsString::from).collect()
    } else {
        std::iter::once(command).chain(&args.arguments).cloned().collect()
    };
    if args.figures == Some(Format::Cachewise) {
        // Its record takes the place of its tables.
        words.extend(["--json", "-"].map(OsString::from));
    }
    if let Some((name, _)) = words[0].to_string_lossy().split_once('=')
        && !name.contains('/')
    {
        return Err(usage(format!(
            "expected a program first, found a variable: --env-{} sets it",
            SIDES[at]
        ))
        .into());
    }
    let is_relative =
        words[0].as_encoded_bytes().contains(&b'/') && Path::new(&words[0]).is_relative();
    let name: OsString = match directory {
        Some(directory) if is_relative => directory.join(&words[0]).into(),
        _ => words[0].clone(),
    };
    let Some(file) = exec::program(&name, "compare")? else { return Ok(None) };
    if !is_executable(&file) {
        bail!("{}: expected a program or a record, found neither", file.display());
    }
    Ok(Some(Arm {
        file: std::path::absolute(file)?,
        words,
        directory: directory.clone(),
        input: args.input.clone(),
        variables: variables
            .iter()
            .map(|(name, value)| (name.clone(), OsString::from(value)))
            .collect(),
        ..Arm::default()
    }))
}

/// Compares two commands.
fn commands(args: &Compare) -> anyhow::Result<u8> {
    check_outputs(args, Vec::new())?;
    let (Some(old), Some(new)) = (side(args, 0)?, side(args, 1)?) else {
        return Ok(exec::NOT_FOUND);
    };
    let inputs = [&old.file, &new.file].into_iter().chain(&args.input).chain(&args.compare);
    check_outputs(args, inputs.cloned().collect())?;
    children::adopt_orphans();
    let before = NoiseSnapshot::take();
    let mut bar = Bar::new()?;
    bar.begin("warming up", 1.0);
    let (stop, limit) = (bar.stop(), Duration::from_secs_f64(args.budget));
    let bar = std::rc::Rc::new(std::cell::RefCell::new(bar));
    let shown = std::rc::Rc::clone(&bar);
    let progress = move |_: &str, spent, left| shown.borrow_mut().expected("pairs", spent, left);
    let conditions = Conditions {
        prepare: args.prepare.clone(),
        compared: args.compare.clone(),
        any_output: args.any_output,
        prints: args.figures.map(Prints::Rows),
        sampled: args.judge.contains(&Judged::Memory),
        ..Conditions::default()
    };
    let mut programs = Programs::new(vec![old, new], conditions, stop, limit, Box::new(progress))?;
    let found = compared(args, &mut programs, &before);
    bar.borrow().clear();
    let mut found = found?;
    found.notes.append(&mut programs.notes);
    if programs.left > 0 {
        let left = cachewise_measure::units::counted(programs.left, "process");
        found.notes.push(format!("{left} were left running and ended after each run"));
    }
    say(args, &found)
}

fn compared(
    args: &Compare,
    programs: &mut Programs,
    before: &NoiseSnapshot,
) -> anyhow::Result<Comparison> {
    let (warm, is_cpu) = warmed(args, programs)?;
    let busy = NoiseSnapshot::take().busy_since(before);
    let figures: Vec<Figure> = args.judge.iter().map(|judged| figure(*judged)).collect();
    let by_cpu = busy.is_some() && figures == [Figure::Wall] && args.figures.is_none() && is_cpu;
    let judged = if by_cpu { Figure::Cpu } else { figures[0].clone() };
    let seconds = warm.iter().flatten().map(|sample| sample.wall).sum::<f64>()
        / warm.iter().flatten().count() as f64;
    let left = args.budget - programs.now();
    let fit = (left / (2.0 * seconds)).floor();
    let pairs = if is_of_rows(args) { rows::FIRST_LOOK } else { LEAST_LOOKED };
    if fit < pairs as f64 {
        let least = args.budget - left + 2.0 * seconds * (pairs as f64 + 1.0);
        bail!(
            "--budget: expected room for {pairs} pairs of runs of {seconds:.1} s, found {:.0} s; --budget {:.0}s has it",
            args.budget,
            least.ceil()
        );
    }
    foresee(args, &warm, &judged, fit);
    let before = programs.now();
    let judged = if by_cpu { vec![judged] } else { figures };
    let mut found = raced(args, programs, &judged, seconds)?;
    // Runs before the pairs are paid for, too.
    found.runs = programs.runs.iter().sum();
    found.seconds += before;
    found.needs_seconds = found.needs_seconds.map(|needs| needs + before);
    if let Some(busy) = busy {
        let what = if by_cpu {
            "both are mostly CPU: their CPU time is judged"
        } else {
            "figures scatter"
        };
        found.notes.push(format!("the machine is busy ({busy}): {what}"));
    }
    Ok(found)
}

/// Runs each some times, so that files are cached and it is known how long a run takes and whether all of them wait for a CPU
/// alone; these runs are no pairs.
fn warmed(args: &Compare, programs: &mut Programs) -> anyhow::Result<([Vec<Sample>; 2], bool)> {
    let (mut warm, mut is_cpu) = ([Vec::new(), Vec::new()], true);
    for round in 0..WARM_RUNS {
        if round > 0 && programs.now() * (round + 1) as f64 / round as f64 > WARM_PART * args.budget
        {
            break;
        }
        for (who, samples) in warm.iter_mut().enumerate() {
            match programs.measure(who, &[])? {
                Ok(measured) => {
                    // Of several threads CPU time does not say how well they share the work.
                    is_cpu &= measured.sample.is_mostly_cpu() && measured.sample.threads <= 1.0;
                    let Measured { sample, printed, .. } = measured;
                    if who == 0 {
                        programs.outputs.add(printed);
                    }
                    samples.push(sample);
                }
                Err(Failed::Stopped) => return Err(LabError::Interrupted.into()),
                Err(Failed::Wrong(why)) => {
                    bail!("{}: {why}; expected {}", SIDES[who], programs.accepted())
                }
            }
        }
    }
    Ok((warm, is_cpu))
}

const fn figure(judged: Judged) -> Figure {
    match judged {
        Judged::Time => Figure::Wall,
        Judged::Cpu => Figure::Cpu,
        Judged::Peak => Figure::Peak,
        Judged::Memory => Figure::Level,
        Judged::Faults => Figure::Faults,
    }
}

/// Says what the budget will be able to see.
fn foresee(args: &Compare, warm: &[Vec<Sample>; 2], judged: &Figure, pairs: f64) {
    if args.figures.is_some() {
        return output::tell(&format!("cachewise: the budget has room for {pairs:.0} pairs"));
    }
    let mut squares = Vec::new();
    for samples in warm {
        let logs: Vec<f64> = samples.iter().map(|sample| judged.of(sample).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        squares.extend(logs.iter().map(|log| (log - mean).powi(2)));
    }
    let freedom = squares.len().saturating_sub(2);
    let scatter = (squares.iter().sum::<f64>() / freedom as f64).sqrt();
    let sees = |scatter: f64| {
        100.0 * race::visible(1, (pairs as usize).min(1000), scatter, 0.0).max(args.margin)
    };
    let told = match freedom {
        0 => format!(
            "they show {:.1} % or more if single runs scatter by 2 %, {:.1} % if by 6 %",
            sees(0.02),
            sees(0.06)
        ),
        _ => format!(
            "single runs scatter by {:.1} %: they show {:.1} % or more",
            100.0 * scatter,
            sees(scatter)
        ),
    };
    output::tell(&format!("cachewise: the budget has room for {pairs:.0} pairs; {told}"));
}

/// True for benchmarks, or several figures.
fn is_of_rows(args: &Compare) -> bool {
    args.figures.is_some() || args.judge.len() > 1
}

/// Pairs until the answer is known: of one figure after each, of rows after 6, 12, 24 ... of them.
fn raced(
    args: &Compare,
    programs: &mut Programs,
    figures: &[Figure],
    expected: f64,
) -> anyhow::Result<Comparison> {
    let begun = programs.now();
    let (judged, is_of_rows) = (&figures[0], is_of_rows(args));
    let own = |sample: &Sample| match args.figures {
        Some(_) => sample.own.clone(),
        None => as_rows(sample, figures),
    };
    let rows = |outcome: &Outcome<Sample>| {
        let [old, new] = [0, 1].map(|who| -> Vec<Figures> {
            outcome.runs[who].samples().take(outcome.pairs()).map(own).collect()
        });
        RowsFound::of(&old, &new, args.margin)
    };
    let cost = |sample: &Sample| judged.of(sample);
    let is_known = |outcome: &Outcome<Sample>| match is_of_rows {
        true => rows::is_looked_at(outcome.pairs()) && rows(outcome).is_settled(),
        false => {
            let [old, new] = [0, 1].map(|who| outcome.runs[who].of(cost));
            // Of many pairs not each is looked at, since a look takes time, too.
            let is_looked_at = old.len().is_multiple_of((old.len() / 50).max(1));
            is_looked_at && by_pairs([&old, &new], judged).word(args.margin).0 != Verdict::Unknown
        }
    };
    let question = Question {
        contestants: 1,
        own: 1,
        expected,
        end: args.budget,
        rounds: None,
        margin: args.margin,
        cost: &cost,
        loss: None,
        promise: &|_, _| Promise { ratio: 1.0, is_counted: false },
        is_known: Some(&is_known),
        seed: args.seed.unwrap_or_else(drawn_seed),
    };
    let outcome = race::race(programs, &question)?;
    match &outcome.ended {
        Ended::Stopped => return Err(LabError::Interrupted.into()),
        Ended::Unrepeatable(why) => bail!("old: {why}; expected {}", programs.accepted()),
        Ended::Settled | Ended::Time => {}
    }
    if let Some(Fate::Disqualified(why)) = outcome.fates.first()
        && (is_of_rows || outcome.runs[1].rounds() == 0)
    {
        let hint = if why.starts_with("another output") {
            "; --any-output compares them all the same"
        } else {
            ""
        };
        bail!("new: {why}{hint}");
    }
    let seconds = programs.now() - begun;
    Ok(match is_of_rows {
        true => Comparison::of_rows(&rows(&outcome), outcome.pairs(), args.margin, seconds),
        false => Comparison::of_race(&outcome, judged, args.margin, seconds),
    })
}

/// The answer of a comparison, as it is printed and written.
struct Said<'a> {
    sentence: &'a str,
    remarks: Vec<String>,
    /// Every row, or those that differ.
    table: &'a dyn Fn(bool) -> Table,
    /// The judged figure of each pair, and its interval.
    ratios: &'a [f64],
    judged: Option<Ratio>,
    margin: f64,
    json: String,
    /// Lines below all, on a terminal.
    below: String,
}

impl Said<'_> {
    /// Writes the files, and prints the text unless one of them is standard output.
    fn write(&self, args: &Compare) -> anyhow::Result<()> {
        let full = (self.table)(true);
        let page = || {
            let (judged, tables) = (self.judged.as_ref(), std::slice::from_ref(&full));
            pairs::page(self.sentence, self.ratios, judged, self.margin, tables)
        };
        let mut in_place = false;
        for (path, text) in [
            (&args.csv, &(|| full.csv()) as &dyn Fn() -> String),
            (&args.json, &|| format!("{}\n", self.json)),
            (&args.markdown, &|| self.markdown(args.all)),
            (&args.html, &page),
        ] {
            if let Some(path) = path {
                output::write(path, text().as_bytes())?;
                in_place |= output::is_stdout(path);
            }
        }
        if in_place { Ok(()) } else { output::print(&self.text(args.all)) }
    }

    fn text(&self, all: bool) -> String {
        let mut text = format!("{}\n", self.sentence);
        for remark in &self.remarks {
            text.push_str(&format!("  {remark}\n"));
        }
        let mut rows = (self.table)(all);
        let more = rows.rows.len().saturating_sub(LISTED);
        if !all && more > 0 {
            rows.rows.truncate(LISTED);
            rows.remarks.push(format!("{more} more; --all lists every row"));
        }
        if !rows.rows.is_empty() {
            text.push_str(&format!("\n{}", rows.terminal(output::width())));
        }
        let width = usize::from(output::width().unwrap_or(72)).min(72);
        if let Some(strip) = strip(self.ratios, width) {
            text.push_str(&format!("\nnew over old, by pairs:\n{strip}"));
        }
        text + &self.below
    }

    fn markdown(&self, all: bool) -> String {
        let mut text = format!("**{}**\n\n", self.sentence);
        for remark in &self.remarks {
            text.push_str(&format!("- {remark}\n"));
        }
        text.push_str(&format!("\n{}", (self.table)(all).markdown()));
        if let Some(strip) = strip(self.ratios, 72) {
            text.push_str(&format!("\nNew over old, by pairs:\n\n```\n{strip}```\n"));
        }
        text
    }
}

/// Prints the answer and writes the files; the exit status.
fn say(args: &Compare, found: &Comparison) -> anyhow::Result<u8> {
    let judged = found.lines.iter().find(|line| line.judged && !found.ratios.is_empty());
    let said = Said {
        sentence: &found.sentence,
        remarks: remarks(found),
        table: &|all| table(found, all),
        ratios: &found.ratios,
        judged: judged.map(|line| line.ratio),
        margin: found.margin,
        json: serde_json::to_string(found)?,
        below: String::new(),
    };
    said.write(args)?;
    Ok(match found.answer {
        Verdict::Slower => status::REGRESSION,
        Verdict::Unknown => status::INCONCLUSIVE,
        Verdict::Faster | Verdict::Same => status::OK,
    })
}

fn remarks(found: &Comparison) -> Vec<String> {
    let mut remarks = vec![format!(
        "{} pairs of runs in random order, {} runs and {:.0} s in all",
        found.pairs, found.runs, found.seconds
    )];
    for (side, names) in SIDES.into_iter().zip([&found.only_old, &found.only_new]) {
        if !names.is_empty() {
            remarks.push(format!("only {side} prints: {}", names.join(", ")));
        }
    }
    remarks.extend(found.notes.iter().cloned());
    remarks
}

fn table(found: &Comparison, all: bool) -> Table {
    let mut table = Table::new("", &["figure", "old", "new", "new/old", "95 %", "answer"]);
    let is_of_rows = found.ratios.is_empty();
    let is_shown = |line: &&Line| all || !is_of_rows || line.verdict.is_different();
    for line in found.lines.iter().filter(is_shown) {
        let ends = match line.ratio.low.is_finite() {
            true => format!("{:.3} .. {:.3}", line.ratio.low, line.ratio.high),
            false => "-".to_owned(),
        };
        let word = if line.judged { line.verdict.name() } else { "" };
        let ratio = format!("{:.3}", line.ratio.median);
        table.push(vec![
            line.name.clone(),
            line.written(line.old),
            line.written(line.new),
            ratio,
            ends,
            word.to_owned(),
        ]);
    }
    table
}
