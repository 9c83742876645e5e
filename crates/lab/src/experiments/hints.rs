//! `hints`: whether the library's reuse hints keep their promise: `Soon` leaves the destination
//! cached, so that its reader is fast; `Never` leaves the bystander cached, so that it loses little.
//!
//! The candidates are the library's own functions under each hint, decisions included, beside libc.
//! Where two hints lead to the same kernel there is nothing to keep, and the sentence says so.

use super::{Experiment, Finish, Setting, short_bytes};
use crate::LabError;
use crate::bench::{Question, State};
use crate::routines::{Routine, libc_reference};
use cachewise::{Reuse, raw};
use cachewise_kernels::{Function, Operation};
use cachewise_measure::{Figure, FigureKind, MeasureError, Row, stats};

/// Operations with a hint of which the destination is all that counts.
pub(super) const OPERATIONS: &[Operation] = &[Operation::Copy, Operation::Zero];

/// The name of a candidate.
fn name(reuse: Reuse) -> String {
    format!("cachewise {}", reuse.name())
}

macro_rules! hinted {
    ($($copy:ident, $zero:ident: $reuse:ident;)*) => {
        $(unsafe extern "C" fn $copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise (`CopyFn`).
            unsafe { raw::copy_nonoverlapping_with(Reuse::$reuse, dst, src, n) }
        }

        unsafe extern "C" fn $zero(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise (`ZeroFn`).
            unsafe { raw::zero_with(Reuse::$reuse, dst, n) }
        })*

        fn candidates(operation: Operation) -> Vec<Routine> {
            let mut routines = vec![libc_reference(operation)];
            $(routines.push(Routine {
                name: name(Reuse::$reuse),
                function: match operation {
                    Operation::Zero => Function::Zero($zero),
                    _ => Function::Copy($copy),
                },
            });)*
            routines
        }
    };
}

hinted! {
    copy_soon, zero_soon: Soon;
    copy_unknown, zero_unknown: Unknown;
    copy_never, zero_never: Never;
}

/// What the reader takes and what the bystander loses.
pub(super) fn figures() -> Vec<Figure> {
    let curve = |title: &str, states: &str| Figure {
        title: title.to_owned(),
        kind: FigureKind::Curve,
        x: "size".to_owned(),
        y: None,
        value: "total_ratio".to_owned(),
        panels: Vec::new(),
        candidates: Vec::new(),
        states: states.to_owned(),
    };
    vec![
        curve("Operation and the reader after it, over libc's", "read"),
        curve("Operation and what the bystander lost, over libc's", "beside"),
    ]
}

pub(super) fn run(_: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let caches = &setting.bench.machine.caches;
    let sizes = match &setting.options.sizes {
        chosen if !chosen.is_empty() => chosen.clone(),
        _ if setting.options.quick => vec![caches.l2.bytes / 2],
        _ => vec![caches.l1d.bytes / 2, caches.l2.bytes / 2, caches.llc.bytes / 8],
    };
    let chosen = &setting.options.operations;
    let operations =
        OPERATIONS.iter().copied().filter(|one| chosen.is_empty() || chosen.contains(one));
    let operations: Vec<Operation> = operations.collect();
    if operations.is_empty() {
        return Err(LabError::Nothing { why: "hints are measured of copy and zero".to_owned() });
    }
    setting.observer.begin("hints", (2 * sizes.len() * operations.len()) as f64);
    for operation in operations {
        let routines = candidates(operation);
        for &size in &sizes {
            let beside = State::Beside { bystander: setting.bench.bystander_bytes(size) };
            let mut both = Vec::new();
            for state in [State::Read, beside] {
                let question = Question {
                    experiment: "hints",
                    operation,
                    size,
                    state,
                    routines: &routines,
                    plan: setting.plan(false),
                    verify: state == State::Read,
                };
                let answer = match setting.bench.ask(&question, setting.observer) {
                    Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                        (setting.notes)(format!("skipped {operation}: {error}"))?;
                        continue;
                    }
                    other => other?,
                };
                if answer.interrupted {
                    return Ok(Finish::Interrupted);
                }
                answer.rows.iter().try_for_each(|row| (setting.rows)(row))?;
                both.extend(answer.rows);
                setting
                    .observer
                    .advance(&format!("{operation} {} {}", short_bytes(size), state.label()), 1.0);
            }
            let kernel =
                |reuse| cachewise::decision(operation, reuse, size as u64).name().to_owned();
            let kernels = (kernel(Reuse::Soon), kernel(Reuse::Never));
            if let Some(sentence) = verdict(&both, &kernels) {
                (setting.verdicts)(sentence);
            }
        }
    }
    Ok(Finish::Complete)
}

/// What was found of a promise that one sample is less than the other of the same round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Kept,
    Broken,
    CannotTell,
}

/// Two standard deviations of a coin's tosses, the sign test: what a bystander loses may be next to
/// nothing, and below, so that a ratio would mean little.
fn promise(less: &[f64], more: &[f64]) -> Promise {
    let rounds = less.len().min(more.len());
    let below = less.iter().zip(more).filter(|(less, more)| less < more).count() as f64;
    let (half, spread) = (rounds as f64 / 2.0, (rounds as f64).sqrt());
    if below - half > spread {
        Promise::Kept
    } else if half - below > spread {
        Promise::Broken
    } else {
        Promise::CannotTell
    }
}

/// One sentence for an operation and size; none where a state was not measured.
fn verdict(rows: &[Row], (soon_kernel, never_kernel): &(String, String)) -> Option<String> {
    let row = |state: &str, reuse| {
        let wanted = name(reuse);
        rows.iter().find(|row| row.cell.state == state && row.candidate == wanted)
    };
    let (read_soon, read_never) = (row("read", Reuse::Soon)?, row("read", Reuse::Never)?);
    let (lost_soon, lost_never) = (row("beside", Reuse::Soon)?, row("beside", Reuse::Never)?);
    let what =
        format!("{} of {}", read_soon.cell.operation, short_bytes(read_soon.cell.size as usize));
    if soon_kernel == never_kernel {
        return Some(format!(
            "{what}: soon and never are both done by {soon_kernel}; there is nothing to choose."
        ));
    }
    let micros = |samples: &[f64]| format!("{:.1} us", stats::median(samples) / 1000.0);
    let reader = match promise(&read_soon.reader_ns, &read_never.reader_ns) {
        Promise::Kept => "soon leaves the destination cached",
        Promise::Broken => "soon does NOT leave the destination cached",
        Promise::CannotTell => "whether soon leaves the destination cached cannot be told",
    };
    let bystander = match promise(&lost_never.bystander_ns, &lost_soon.bystander_ns) {
        Promise::Kept => "never leaves the bystander cached",
        Promise::Broken => "never does NOT leave the bystander cached",
        Promise::CannotTell => "whether never leaves the bystander cached cannot be told",
    };
    Some(format!(
        "{what}: {reader} (its reader takes {} after soon, {soon_kernel}, and {} after never, \
         {never_kernel}); {bystander} (it loses {} beside never and {} beside soon).",
        micros(&read_soon.reader_ns),
        micros(&read_never.reader_ns),
        micros(&lost_never.bystander_ns),
        micros(&lost_soon.bystander_ns),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::CellKey;
    use std::collections::BTreeMap;

    fn row(state: &str, reuse: Reuse, reader: f64, bystander: f64) -> Row {
        Row {
            experiment: "hints".into(),
            cell: CellKey {
                operation: "copy".into(),
                size: 1 << 20,
                source: None,
                destination: None,
                state: state.into(),
                reader: None,
                bystander: None,
                axes: BTreeMap::new(),
            },
            candidate: name(reuse),
            reference: "libc".into(),
            calls: 1,
            operation_ns: vec![1.0; 16],
            reader_ns: vec![reader; 16],
            bystander_ns: vec![bystander; 16],
            ratio: None,
            verdict: None,
            total_ratio: None,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: BTreeMap::new(),
            histogram: None,
        }
    }

    fn rows(reader: (f64, f64), bystander: (f64, f64)) -> Vec<Row> {
        vec![
            row("read", Reuse::Soon, reader.0, 0.0),
            row("read", Reuse::Never, reader.1, 0.0),
            row("beside", Reuse::Soon, 0.0, bystander.0),
            row("beside", Reuse::Never, 0.0, bystander.1),
        ]
    }

    #[test]
    fn a_promise_is_kept_broken_or_cannot_be_told() {
        let two = ("copy.avx".to_owned(), "copy.avx.nt".to_owned());
        assert_eq!(
            verdict(&rows((1000.0, 9000.0), (8000.0, -100.0)), &two).as_deref(),
            Some(
                "copy of 1M: soon leaves the destination cached (its reader takes 1.0 us after \
                 soon, copy.avx, and 9.0 us after never, copy.avx.nt); never leaves the bystander \
                 cached (it loses -0.1 us beside never and 8.0 us beside soon)."
            )
        );
        let told = verdict(&rows((9.0, 1.0), (1.0, 9.0)), &two).expect("a sentence");
        assert!(told.contains("soon does NOT") && told.contains("never does NOT"), "{told}");
        let mixed: Vec<f64> = (0..16).map(|round| f64::from(round % 2) * 2.0).collect();
        assert_eq!(promise(&[1.0; 16], &mixed), Promise::CannotTell);
        let same = ("copy.avx".to_owned(), "copy.avx".to_owned());
        let told = verdict(&rows((1.0, 1.0), (1.0, 1.0)), &same).expect("a sentence");
        assert!(told.ends_with("both done by copy.avx; there is nothing to choose."), "{told}");
        assert_eq!(verdict(&rows((1.0, 1.0), (1.0, 1.0))[..3], &same), None);
    }

    #[test]
    fn every_hint_is_a_candidate_with_right_bytes() {
        for operation in OPERATIONS {
            let routines = candidates(*operation);
            assert_eq!(routines.len(), 4);
            for routine in &routines {
                let (source, mut bytes) = (vec![7_u8; 100_000], vec![1_u8; 100_000]);
                match routine.function {
                    // SAFETY: both have 100000 bytes and are apart.
                    Function::Copy(f) => unsafe {
                        f(bytes.as_mut_ptr(), source.as_ptr(), 100_000);
                    },
                    // SAFETY: as above.
                    Function::Zero(f) => unsafe {
                        f(bytes.as_mut_ptr(), 100_000);
                    },
                    other => panic!("{other:?}"),
                }
                let wanted = if *operation == Operation::Zero { 0 } else { 7 };
                assert!(bytes.iter().all(|byte| *byte == wanted), "{}", routine.name);
            }
        }
    }
}
