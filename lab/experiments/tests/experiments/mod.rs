//! Experiments run for real, small, and what they hand over fits together: rows, the figures that
//! say how these are drawn, and the sentences about them.

use cachewise_experiments::LabError;
use cachewise_experiments::bench::{Bench, Cell, Task};
use cachewise_experiments::experiment::Experiment;
use cachewise_experiments::recorder::{Progress, Recorder};
use cachewise_experiments::registry;
use cachewise_experiments::routines::libc_reference;
use cachewise_experiments::{Options, Setting, said};
use cachewise_kernels::Operation;
use cachewise_measure::{
    Contents, Destination, Figure, FigureKind, Level, Plan, ProofVerdict, Row,
};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

mod page_fault;
#[cfg(target_arch = "x86_64")]
mod x86;

/// One bench for all: experiments share its arena, and none may be timed beside another.
static BENCH: LazyLock<Mutex<Bench>> =
    LazyLock::new(|| Mutex::new(Bench::new(1, None, 0).expect("a machine to measure")));

/// The output of an experiment.
struct RunOutcome {
    finish: Result<(), LabError>,
    rows: Vec<Row>,
    notes: Vec<String>,
    verdicts: Vec<String>,
}

impl RunOutcome {
    /// Tells whether some rows say nothing: on a machine that is not quiet, operands may not be proved to be
    /// where they are said to be, and a time may be below nothing. Then, and only then, it is said.
    #[track_caller]
    fn is_withheld(&self) -> bool {
        let failed = |row: &Row| row.proofs.iter().any(|at| at.verdict == ProofVerdict::Failed);
        let fewer = self.rows.iter().any(|row| failed(row) || !row.is_measurable());
        let said = self.verdicts.join("\n");
        let is_said = said.contains("Withheld: ") || said.contains("Not measurable here: ");
        assert_eq!(fewer, is_said, "{said}");
        fewer
    }
}

/// Looks on, and stops after a number of advances.
struct Patience {
    begun: f64,
    advanced: f64,
    left: usize,
}

impl Progress for Patience {
    fn begin(&mut self, _: &str, units: f64) {
        self.begun += units;
    }
    fn advance(&mut self, _: &str, units: f64) {
        self.advanced += units;
        self.left = self.left.saturating_sub(1);
    }
    fn cancelled(&self) -> bool {
        self.left == 0
    }
}

fn found(name: &str) -> &'static Experiment {
    registry::of(name).expect("it is listed")
}

fn run_with(name: &str, options: &Options, patience: &mut Patience) -> RunOutcome {
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    let experiment = found(name);
    let mut out = Recorder::new(patience, None);
    let mut setting = Setting { bench: &mut bench, options, out: &mut out };
    let finish = experiment.carry_out(&mut setting);
    let verdicts = said::of(name, &BTreeMap::new(), &out.rows).verdicts;
    RunOutcome { finish, rows: out.rows, notes: out.notes, verdicts }
}

/// Progress that stops an experiment after a number of advances.
fn patient(left: usize) -> Patience {
    Patience { begun: 0.0, advanced: 0.0, left }
}

fn run(name: &str, options: &Options) -> RunOutcome {
    let mut patience = patient(usize::MAX);
    let outcome = run_with(name, options, &mut patience);
    assert!(matches!(outcome.finish, Ok(())), "{name}: {:?}", outcome.finish);
    let share = patience.advanced / patience.begun;
    assert!((0.99..=1.01).contains(&share), "{name}: the bar ends at {share}");
    consistent(name, &outcome);
    outcome
}

/// Why an experiment cannot follow these options, in a line.
fn refused(name: &str, options: &Options) -> String {
    let outcome = run_with(name, options, &mut patient(usize::MAX));
    assert!(outcome.rows.is_empty());
    let text = outcome.finish.expect_err("a refusal").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn quick(kernels: &str, sizes: &[usize]) -> Options {
    Options {
        kernels: (!kernels.is_empty()).then(|| kernels.to_owned()),
        sizes: sizes.to_vec(),
        quick: true,
        ..Options::default()
    }
}

/// Experiments whose rows all have every coordinate, and stand beside the reference they name.
const EACH: [&str; 5] = ["page-clear", "page-copy", "reuse-map", "cached-target", "receive"];

/// Rows are whole, figures draw something, sentences are sentences.
fn consistent(name: &str, outcome: &RunOutcome) {
    assert!(!outcome.rows.is_empty(), "{name}");
    let mut seen = std::collections::BTreeSet::new();
    for row in &outcome.rows {
        assert_eq!(row.experiment, name);
        assert!(row.operation_ns.iter().all(|ns| ns.is_finite() && *ns >= 0.0), "{name}: {row:?}");
        assert!(row.operation_ns.len() >= 4 && row.ratio.is_some(), "{name}: {row:?}");
        let stands = seen.insert(format!("{:?} {}", row.cell, row.candidate));
        assert!(stands, "{name}: {} stands twice", row.candidate);
        if EACH.contains(&name) {
            assert!(row.operation_ns.len() >= 15 || row.dropped, "{name}: {row:?}");
            let is_its = |other: &&Row| other.cell == row.cell && other.candidate == row.reference;
            assert!(outcome.rows.iter().any(|other| is_its(&other)), "{name}: {}", row.candidate);
        }
    }
    for figure in (found(name).figures)() {
        // Which states there are depends on the options.
        if outcome.rows.iter().any(|row| is_shown(&figure, row)) {
            draws(name, &figure, &outcome.rows);
        }
    }
    for verdict in &outcome.verdicts {
        assert!(!verdict.contains("NaN") && verdict.len() > 20, "{name}: {verdict}");
    }
}

fn is_shown(figure: &Figure, row: &Row) -> bool {
    let names = &figure.candidates;
    figure.shows(&row.cell.state) && (names.is_empty() || names.contains(&row.candidate))
}

/// A figure's coordinates and its quantity are to be found in the rows that it shows.
fn draws(name: &str, figure: &Figure, rows: &[Row]) {
    let shown: Vec<&Row> = rows.iter().filter(|row| is_shown(figure, row)).collect();
    let what = format!("{name}: \"{}\"", figure.title);
    assert!(!shown.is_empty(), "{what} shows nothing");
    let known = ["size", "candidate", "state", "reader", "bystander", "source", "destination"];
    let has = |check: &dyn Fn(&&Row) -> bool| match EACH.contains(&name) {
        true => shown.iter().all(check),
        false => shown.iter().any(check),
    };
    for coordinate in figure.panels.iter().chain([&figure.x]).chain(&figure.y) {
        let is_axis = has(&|row| row.cell.axes.contains_key(coordinate));
        assert!(known.contains(&coordinate.as_str()) || is_axis, "{what}: no {coordinate}");
    }
    let value = figure.value.as_str();
    let is_there = match value {
        "gbps" | "ns" | "total_ns" | "ratio" | "cost" | "calls" => true,
        "total_ratio" => shown.iter().all(|row| row.total_ratio.is_some()),
        extra => has(&|row| row.extra.contains_key(extra)),
    };
    assert!(is_there, "{what}: no {value}");
    assert_eq!(figure.kind == FigureKind::HeatMap, figure.y.is_some(), "{what}");
    if figure.y.as_deref() == Some("reader") {
        assert!(shown.iter().all(|row| row.cell.reader.is_some()), "{what}");
    }
}

#[test]
fn every_experiment_describes_itself() {
    for experiment in registry::here() {
        let Experiment { name, about, seeds, .. } = experiment;
        assert!(about.len() > 20 && !seeds.is_empty(), "{name}");
        assert!(!(experiment.figures)().is_empty(), "{name}");
    }
}

#[test]
fn a_cell_names_its_destination_and_restores_it() {
    let mut bench = BENCH.lock().unwrap_or_else(PoisonError::into_inner);
    for (cell, label, restore) in [
        (Cell::warm(), "warm", Destination::Cached),
        (Cell::misaligned(), "misaligned", Destination::Cached),
        (Cell::above_power(4096), "above 2^n", Destination::Cached),
        (
            Cell { contents: Some(Contents::Overwritten), ..Cell::read() },
            "read",
            Destination::Cached,
        ),
    ] {
        assert_eq!(cell.restore, restore, "{label}");
        let (operation, plan) = (Operation::Move, Plan { calls: Some(3), ..Plan::default() });
        let routines = [libc_reference(operation)];
        let task = Task { operation, size: 4096, cell, plan };
        let rows = bench.routines(&task, &routines, true, &|| false).expect(label).rows();
        assert_eq!(rows[0].cell.state, label);
        assert!(rows[0].operation_ns.iter().all(|ns| *ns > 0.0), "{label}");
    }
}

#[test]
fn hints_are_candidates_whose_bytes_are_checked() {
    let rows = run("reuse-map", &quick("", &[4 << 10])).rows;
    for (hint, state) in ["soon", "unknown", "never"].into_iter().zip(["read", "beside", "read"]) {
        let is_there = |row: &Row| row.candidate.ends_with(hint) && row.cell.state == state;
        assert!(rows.iter().any(is_there), "{hint}");
    }
}
