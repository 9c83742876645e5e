//! `peers`: the library against other libraries, as a program sees them: C calls through a function
//! pointer, at fixed sizes and with the sizes and alignments that programs call with.
//!
//! The *envelope* is the best of the peers in each cell, libc among them. No library leads
//! everywhere; the envelope is what the best choice per size would give. Even rounds are compared with
//! the peer that was best in the odd ones, and the other way round.

use super::{Experiment, Finish, Setting, short_bytes};
use crate::LabError;
use crate::bench::script::Script;
use crate::bench::{MARGIN, Question, State};
use crate::distributions::Distribution;
use crate::elsewhere::{TUNED_LIBC, TunedLibc};
use crate::routines::{LIBC, LIBRARY, Routine, libc_reference, library};
use cachewise_kernels::Operation;
use cachewise_measure::{
    Candidate, Figure, FigureKind, MeasureError, PairedRatio, Plan, Row, stats,
};

/// Name of the extra figure: the candidate's time over the best peer's.
pub const OF_ENVELOPE: &str = "of_envelope";

/// 1 byte to 256 MiB.
const SIZES: [usize; 37] = [
    1,
    4,
    8,
    15,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    200,
    256,
    384,
    512,
    1024,
    1500,
    2048,
    2304,
    3072,
    4096,
    6144,
    8192,
    12288,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    64 << 20,
    256 << 20,
];

const QUICK_SIZES: [usize; 11] = [1, 8, 16, 64, 128, 256, 1024, 4096, 16 << 10, 256 << 10, 4 << 20];

/// Sizes at which the operands are also misaligned, and a little above a power of two apart.
const ASKEW: [usize; 7] = [100, 300, 1500, 4096, 16 << 10, 256 << 10, 4 << 20];
const QUICK_ASKEW: [usize; 2] = [300, 16 << 10];

/// Spans of the scripts: inside L1, and far outside every cache.
const SPANS: [usize; 2] = [16 << 10, 64 << 20];

/// Whom the distributions are of.
const fn c_function(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy | Operation::CopyPages => "memcpy",
        Operation::Move => "memmove",
        Operation::Fill | Operation::Zero | Operation::ZeroPages => "memset",
        Operation::Compare => "memcmp",
        Operation::Equal => "bcmp",
    }
}

/// Speed by size, a line per library.
pub(super) fn figures() -> Vec<Figure> {
    let curve = |title: &str, value: &str, states: &str| Figure {
        title: title.to_owned(),
        kind: FigureKind::Curve,
        x: "size".to_owned(),
        y: None,
        value: value.to_owned(),
        panels: Vec::new(),
        candidates: Vec::new(),
        states: states.to_owned(),
    };
    vec![
        curve("Speed by size, warm buffers", "gbps", "warm"),
        curve("Time over libc's, warm buffers", "ratio", "warm"),
        curve("Time over libc's, misaligned buffers", "ratio", "misaligned"),
    ]
}

pub(super) fn run(_: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let quick = setting.options.quick;
    let chosen: Vec<usize> = match &setting.options.sizes {
        sizes if !sizes.is_empty() => sizes.clone(),
        _ if quick => QUICK_SIZES.to_vec(),
        _ => SIZES.to_vec(),
    };
    let most = setting.bench.largest_size();
    let sizes: Vec<usize> = chosen.iter().copied().filter(|size| *size <= most).collect();
    if sizes.len() < chosen.len() {
        (setting.notes)(format!(
            "sizes above {} left out: --memory allows no more",
            short_bytes(most)
        ))?;
    }
    let given = setting.options.sizes.is_empty();
    let askew: &[usize] = match (given, quick) {
        (false, _) => &[],
        (true, true) => &QUICK_ASKEW,
        (true, false) => &ASKEW,
    };
    let operations: Vec<Operation> = match &setting.options.operations {
        chosen if chosen.is_empty() => super::operations_with_peers().to_vec(),
        chosen => chosen.clone(),
    };
    let from_file = match &setting.options.distribution {
        Some(path) => Some(Distribution::read(path)?),
        None => None,
    };
    // All of them before anything is measured.
    let peers = peers(&operations, setting)?;
    if let Some(left_out) = crate::peers::left_out() {
        (setting.notes)(left_out.to_owned())?;
    }
    // Where a distribution was asked for and no sizes, only it is measured.
    let fixed = from_file.is_none() || !setting.options.sizes.is_empty();
    let cells = if fixed { sizes.len() + 2 * askew.len() } else { 0 }
        + if given || from_file.is_some() { SPANS.len() } else { 0 };
    setting.observer.begin("peers", (cells * operations.len()) as f64);

    let mut judged = Vec::new();
    for operation in operations {
        let routines = candidates(operation, &peers);
        let mut tuned = tuned_libc(operation, setting)?;
        let mut states: Vec<(State, &[usize])> = Vec::new();
        if fixed {
            states.push((State::Warm, &sizes));
            if operation != Operation::Move {
                states.push((State::Askew, askew));
            }
            if matches!(operation, Operation::Copy | Operation::Move) {
                states.push((State::Above, askew));
            }
        }
        for (state, sizes) in states {
            for &size in sizes {
                let question = Question {
                    experiment: "peers",
                    operation,
                    size,
                    state,
                    routines: &routines,
                    plan: Plan { drop_ratio: 8.0, ..setting.plan(true) },
                    verify: true,
                };
                // Below, it would be libc once more, and the loop of another process the difference.
                let concerned = size >= crate::tunables::LEAST_REP;
                let other =
                    tuned.as_mut().filter(|_| concerned).map(|tuned| tuned as &mut dyn Candidate);
                let asked = setting.bench.ask_beside(&question, other, setting.observer);
                let mut answer = match asked {
                    Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                        (setting.notes)(format!("skipped {operation}: {error}"))?;
                        continue;
                    }
                    other => other?,
                };
                if answer.interrupted {
                    return Ok(Finish::Interrupted);
                }
                if let Some(error) = tuned.as_mut().and_then(TunedLibc::take_failure) {
                    answer.rows.retain(|row| row.candidate != TUNED_LIBC);
                    (setting.notes)(format!("{operation}: {TUNED_LIBC} left out: {error}"))?;
                    tuned = None;
                }
                if let Some(tuned) = &mut tuned {
                    as_beside_the_library(&mut answer.rows, tuned, setting.bench.seed);
                }
                finish(&mut answer.rows, setting, &mut judged)?;
                setting
                    .observer
                    .advance(&format!("{operation} {} {}", short_bytes(size), state.label()), 1.0);
            }
        }
        if !given && from_file.is_none() {
            continue;
        }
        let Some(distribution) =
            from_file.clone().or_else(|| Distribution::built_in(c_function(operation)))
        else {
            continue;
        };
        for span in SPANS {
            let script = Script::draw(&distribution, operation, span, setting.bench.seed);
            let plan = setting.plan(true);
            let mut answer = setting.bench.ask_script(
                "peers",
                operation,
                &script,
                &routines,
                &plan,
                setting.observer,
            )?;
            if answer.interrupted {
                return Ok(Finish::Interrupted);
            }
            finish(&mut answer.rows, setting, &mut judged)?;
            setting
                .observer
                .advance(&format!("{operation} as {} calls it", distribution.name), 1.0);
        }
    }
    for sentence in verdicts(&judged) {
        (setting.verdicts)(sentence);
    }
    Ok(Finish::Complete)
}

/// The libraries of the options, loaded.
fn peers(
    operations: &[Operation],
    setting: &mut Setting<'_>,
) -> Result<Vec<(Operation, Routine)>, LabError> {
    let options = setting.options;
    let mut loaded = Vec::new();
    for peer in &options.peers {
        loaded.push((peer.operation, peer.load()?));
        if !operations.contains(&peer.operation) {
            (setting.notes)(format!("--peer {}: not called: no {}", peer.name, peer.operation))?;
        }
    }
    Ok(loaded)
}

fn candidates(operation: Operation, peers: &[(Operation, Routine)]) -> Vec<Routine> {
    let mut routines = vec![libc_reference(operation), library(operation)];
    routines.extend(crate::peers::built_in(operation));
    let those = peers.iter().filter(|(of, _)| *of == operation);
    routines.extend(those.map(|(_, routine)| routine.clone()));
    routines
}

/// libc under the tunables of the options, where there are any. It has fixed sizes alone: scripts
/// of a thousand sizes and places would have to be told to it first.
fn tuned_libc(
    operation: Operation,
    setting: &mut Setting<'_>,
) -> Result<Option<TunedLibc>, LabError> {
    let options = setting.options;
    let (Some(program), Some(tunables)) = (&options.helper, &options.tunables) else {
        return Ok(None);
    };
    // No tunable is about comparing.
    if matches!(operation, Operation::Compare | Operation::Equal) {
        return Ok(None);
    }
    match TunedLibc::start(program, tunables, operation) {
        Ok(started) => Ok(Some(started)),
        Err(error) => {
            (setting.notes)(format!("{operation}: {TUNED_LIBC} left out: {error}"))?;
            Ok(None)
        }
    }
}

/// Name of the extra figure of libc under tunables: the median of its times in its own process.
pub const IN_ITS_PROCESS: &str = "in_its_process_ns";

/// Replaces the times of libc under tunables, which come from a process with other buffers, by those
/// that its ratio to the library there implies here.
fn as_beside_the_library(rows: &mut [Row], tuned: &mut TunedLibc, seed: u64) {
    let times = |name: &str| {
        rows.iter().find(|row| row.candidate == name).map(|row| row.operation_ns.clone())
    };
    let (Some(library), Some(libc)) = (times(LIBRARY), times(LIBC)) else { return };
    let Some(row) = rows.iter_mut().find(|row| row.candidate == TUNED_LIBC) else { return };
    let rounds = row.operation_ns.len().min(library.len());
    row.extra.insert(IN_ITS_PROCESS.to_owned(), stats::median(&row.operation_ns));
    row.operation_ns = tuned.beside_the_library(&library[..rounds]);
    let ratio = PairedRatio::new(&row.operation_ns, &libc, seed);
    row.verdict = Some(ratio.verdict(MARGIN));
    row.ratio = Some(ratio);
}

/// Relates every row to the best peer's and hands it on.
fn finish(
    rows: &mut [Row],
    setting: &mut Setting<'_>,
    judged: &mut Vec<Judged>,
) -> Result<(), LabError> {
    let peers: Vec<(String, Vec<f64>)> = rows
        .iter()
        .filter(|row| row.candidate != LIBRARY && !row.dropped)
        .map(|row| (row.candidate.clone(), row.operation_ns.clone()))
        .collect();
    let Some((best_peer, envelope_ns)) = envelope(&peers) else { return Ok(()) };
    for row in rows.iter_mut() {
        let ratio = PairedRatio::new(&row.operation_ns, &envelope_ns, setting.bench.seed);
        row.extra.insert(OF_ENVELOPE.to_owned(), ratio.median);
        row.extra.insert("of_envelope_low".to_owned(), ratio.low);
        row.extra.insert("of_envelope_high".to_owned(), ratio.high);
        if row.candidate == LIBRARY {
            judged.push(Judged {
                operation: row.cell.operation.clone(),
                cell: match row.cell.axes.get("span") {
                    Some(span) => format!("{}, {}", row.cell.state, short_bytes(*span as usize)),
                    None if row.cell.state == "warm" => short_bytes(row.cell.size as usize),
                    None => format!("{} {}", short_bytes(row.cell.size as usize), row.cell.state),
                },
                of_envelope: ratio.median,
                of_libc: row.ratio.map_or(f64::NAN, |ratio| ratio.median),
                best_peer: best_peer.clone(),
            });
        }
        (setting.rows)(row)?;
    }
    Ok(())
}

/// The best peer, and the time of the best peer by round. Which one is best for the even rounds the odd
/// ones say, and the other way round: the least of several medians is too low by their noise, so who is
/// chosen must not be judged by the samples that chose.
fn envelope(peers: &[(String, Vec<f64>)]) -> Option<(String, Vec<f64>)> {
    let median_of = |times: &[f64], parity: Option<usize>| {
        let counted =
            times.iter().enumerate().filter(|(round, _)| parity.is_none_or(|p| round % 2 == p));
        stats::median(&counted.map(|(_, time)| *time).collect::<Vec<_>>())
    };
    let best = |parity: Option<usize>| {
        peers.iter().min_by(|a, b| median_of(&a.1, parity).total_cmp(&median_of(&b.1, parity)))
    };
    let (over_all, by_even, by_odd) = (best(None)?, best(Some(0))?, best(Some(1))?);
    let rounds = by_even.1.len().min(by_odd.1.len());
    let times =
        (0..rounds).map(|round| if round % 2 == 0 { by_odd.1[round] } else { by_even.1[round] });
    Some((over_all.0.clone(), times.collect()))
}

/// The library in one cell.
#[derive(Clone, Debug)]
struct Judged {
    operation: String,
    cell: String,
    of_envelope: f64,
    of_libc: f64,
    best_peer: String,
}

/// What is asked of the library: nowhere slower than this part of the envelope's speed.
const LEAST: f64 = 0.97;

/// One sentence over all, then one per operation with its worst cell.
fn verdicts(judged: &[Judged]) -> Vec<String> {
    let speed = |ratio: f64| 1.0 / ratio;
    let mean = |ratios: &[f64]| {
        (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
    };
    let below =
        |cells: &[&Judged]| cells.iter().filter(|cell| speed(cell.of_envelope) < LEAST).count();
    let mut operations: Vec<&str> = Vec::new();
    for cell in judged {
        if !operations.contains(&cell.operation.as_str()) {
            operations.push(&cell.operation);
        }
    }
    if judged.is_empty() {
        return Vec::new();
    }
    let all: Vec<&Judged> = judged.iter().collect();
    let mut sentences = vec![format!(
        "The library has at least {LEAST} of the best peer's speed in {} of {} cells.",
        all.len() - below(&all),
        all.len()
    )];
    for operation in operations {
        let cells: Vec<&Judged> =
            judged.iter().filter(|cell| cell.operation == operation).collect();
        let envelope: Vec<f64> = cells.iter().map(|cell| cell.of_envelope).collect();
        let libc: Vec<f64> = cells.iter().map(|cell| cell.of_libc).collect();
        let worst = cells.iter().max_by(|a, b| a.of_envelope.total_cmp(&b.of_envelope));
        let Some(worst) = worst else { continue };
        sentences.push(format!(
            "{operation}: {:.2} of the envelope's speed and {:.2} of libc's in the geometric mean; \
             worst {:.2} of {} at {}; below {LEAST} in {} of {} cells.",
            speed(mean(&envelope)),
            speed(mean(&libc)),
            speed(worst.of_envelope),
            worst.best_peer,
            worst.cell,
            below(&cells),
            cells.len()
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(operation: &str, of_envelope: f64, of_libc: f64) -> Judged {
        Judged {
            operation: operation.into(),
            cell: "4K".into(),
            of_envelope,
            of_libc,
            best_peer: "memx".into(),
        }
    }

    #[test]
    fn who_is_best_is_not_judged_by_the_rounds_that_chose() {
        let steady = ("a".to_owned(), vec![10.0; 8]);
        // The same in the mean, but by chance faster in the even rounds: chosen by them, and judged
        // by the odd ones.
        let lucky: Vec<f64> = (0..8).map(|round| if round % 2 == 0 { 8.0 } else { 12.0 }).collect();
        let (_, times) = envelope(&[steady.clone(), ("b".to_owned(), lucky)]).expect("peers");
        assert_eq!(times, [10.0, 12.0, 10.0, 12.0, 10.0, 12.0, 10.0, 12.0]);
        let faster = ("c".to_owned(), vec![5.0; 8]);
        assert_eq!(envelope(&[steady, faster]), Some(("c".to_owned(), vec![5.0; 8])));
        assert_eq!(envelope(&[]), None);
    }

    #[test]
    fn the_worst_cell_and_the_mean_are_told() {
        let told =
            verdicts(&[cell("copy", 0.5, 0.5), cell("copy", 2.0, 0.5), cell("zero", 1.0, 1.0)]);
        assert_eq!(
            told,
            [
                "The library has at least 0.97 of the best peer's speed in 2 of 3 cells.",
                "copy: 1.00 of the envelope's speed and 2.00 of libc's in the geometric mean; worst \
                 0.50 of memx at 4K; below 0.97 in 1 of 2 cells.",
                "zero: 1.00 of the envelope's speed and 1.00 of libc's in the geometric mean; worst \
                 1.00 of memx at 4K; below 0.97 in 0 of 1 cells.",
            ]
        );
        assert!(verdicts(&[]).is_empty());
    }
}
