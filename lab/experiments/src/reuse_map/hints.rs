//! `hints`: whether the library's reuse hints keep their promise: `Soon` leaves the destination
//! cached, so that its reader is fast; `Never` leaves the bystander cached, so that it loses little.
//!
//! The candidates are the library's own functions under each hint, decisions included, beside libc.
//! Where two hints lead to the same kernel there is nothing to tell apart; which they lead to stands in
//! the record.

use crate::experiment::{Experiment, Flag, PLAIN, Serves};
use crate::prelude::*;
use crate::words::{bytes, *};
use cachewise::profile::MAX_SIZE;
use cachewise::raw;
use cachewise_measure::Decision;

/// Operations with a hint of which the destination is all that counts.
pub(super) const OPERATIONS: &[Operation] = &[Operation::Copy, Operation::Zero];

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

        const HINTS: [Reuse; 3] = [$(Reuse::$reuse),*];

        fn candidates(operation: Operation) -> Vec<Routine> {
            let mut routines = vec![libc_reference(operation)];
            $(routines.push(Routine {
                name: format!("cachewise {}", Reuse::$reuse.name()),
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

pub(super) const PART: Experiment = Experiment {
    name: "hints",
    about: "does the hint `soon` make the reader faster, and does `never` spare the bystander?",
    seeds: &["000.14", "001.6"],
    operations: OPERATIONS,
    takes: &[Flag::Op],
    refuses: &[
        (Flag::Kernels, "it compares whole libraries"),
        (Flag::Residency, "its buffers are warm"),
    ],
    say: Some(verdicts),
    figures,
    serves: Serves::Library,
    run,
    ..PLAIN
};

fn figures() -> Vec<Figure> {
    let hinted = HINTS.map(|reuse| format!("cachewise {}", reuse.name()));
    let curve = |title| {
        Figure::curve(title, "size", "total_ratio").among(hinted.iter().map(String::as_str))
    };
    vec![
        curve("Operation and the reader after it, over libc's").of("read"),
        curve("Operation and what the bystander lost, over libc's").of("beside"),
    ]
}

fn run(setting: &mut Setting) -> Result {
    let caches = &setting.bench.machine.caches;
    let (l1, l2, llc) = (caches.l1d.bytes / 2, caches.l2.bytes / 2, caches.llc.bytes / 8);
    let sizes = setting.sizes_or(if setting.options.quick { vec![l2] } else { vec![l1, l2, llc] });
    let operations = setting.operations_of(OPERATIONS);
    let cells = operations.iter().flat_map(|one| sizes.iter().map(move |size| (*one, *size)));
    setting.through(cells.collect(), alike, |setting, (operation, size)| {
        for reuse in HINTS {
            let found = cachewise::decision(operation, reuse, size as u64);
            // Once for all sizes that it holds for.
            if sizes.iter().any(|&other| other < size && found.from <= other as u64) {
                continue;
            }
            setting.out.decision(Decision {
                operation: operation.name().to_owned(),
                reuse: reuse.name().to_owned(),
                from: found.from,
                to: (found.to != MAX_SIZE).then_some(found.to),
                kernel: found.name().to_owned(),
                ratio: None,
                why: None,
            })?;
        }
        for cell in [Cell::read(), Cell::beside(setting.bench.bystander_bytes(size))] {
            setting.record(&setting.task(operation, size, cell), &candidates(operation), &[])?;
        }
        Ok(format!("{operation} {}", bytes(size as u64)))
    })
}

/// Whether one sample is less than the other of the same round: two standard deviations of a coin's tosses,
/// the sign test. What a bystander loses may be next to nothing, and below, so that a ratio would mean
/// little. Rounds in which the two are equal say nothing.
fn promise(less: &[f64], more: &[f64]) -> Verdict {
    let below = less.iter().zip(more).filter(|(less, more)| less < more).count() as f64;
    let above = less.iter().zip(more).filter(|(less, more)| less > more).count() as f64;
    let (half, spread) = ((below + above) / 2.0, (below + above).sqrt());
    if below - half > spread {
        Verdict::Faster
    } else if half - below > spread {
        Verdict::Slower
    } else {
        Verdict::Unknown
    }
}

/// One sentence per operation and size.
fn verdicts(rows: &[Row], decisions: &[Decision]) -> Vec<String> {
    let cells = groups(rows, |row: &Row| (row.cell.operation.clone(), row.cell.size));
    let sentence = |((operation, size), of_it): &((String, u64), Vec<&Row>)| {
        let kernel = |reuse: &str| {
            let of_it = decisions.iter().find(|decision| {
                decision.operation == *operation
                    && decision.reuse == reuse
                    && decision.from <= *size
                    && decision.to.is_none_or(|to| *size <= to)
            });
            of_it.map_or("", |decision| decision.kernel.as_str())
        };
        let what = format!("{operation} of {}", bytes(*size));
        verdict(&what, of_it, kernel("soon"), kernel("never"))
    };
    cells.iter().filter_map(sentence).collect()
}

/// None where a state was not measured.
fn verdict(what: &str, rows: &[&Row], soon_kernel: &str, never_kernel: &str) -> Option<String> {
    let row = |state: &str, hint: &str| {
        let wanted = format!("cachewise {hint}");
        rows.iter().find(|row| row.cell.state == state && row.candidate == wanted)
    };
    let (read_soon, read_never) = (row("read", "soon")?, row("read", "never")?);
    let (lost_soon, lost_never) = (row("beside", "soon")?, row("beside", "never")?);
    if soon_kernel == never_kernel && !soon_kernel.is_empty() {
        return Some(format!(
            "{what}: soon and never are the same kernel here ({soon_kernel}): there is nothing to compare."
        ));
    }
    // What a bystander loses is a difference, and where noise is larger it comes out below nothing.
    let told = |samples: &[f64]| match stats::median(samples) {
        time if time.is_nan() => "a time that was not measured".to_owned(),
        time if time <= 0.0 => "nothing that can be measured".to_owned(),
        time => cachewise_measure::units::time(time),
    };
    let leaves = |found, hint: &str, what: &str| match found {
        Verdict::Faster => format!("{hint} leaves the {what} cached"),
        Verdict::Slower => format!("{hint} does NOT leave the {what} cached"),
        Verdict::Same | Verdict::Unknown => {
            format!("cannot tell whether {hint} leaves the {what} cached")
        }
    };
    let found = promise(&read_soon.reader_ns, &read_never.reader_ns);
    let reader = leaves(found, "soon", "destination");
    let found = promise(&lost_never.bystander_ns, &lost_soon.bystander_ns);
    let bystander = leaves(found, "never", "bystander");
    let by = |kernel: &str| if kernel.is_empty() { String::new() } else { format!(" ({kernel})") };
    let [soon, never] = [read_soon, read_never].map(|row| told(&row.reader_ns));
    let [by_soon, by_never] = [soon_kernel, never_kernel].map(by);
    let [lost_soon, lost_never] = [lost_soon, lost_never].map(|row| told(&row.bystander_ns));
    Some(format!(
        "{what}: {reader}: its reader takes {soon} after soon{by_soon} and {never} after \
         never{by_never}; {bystander}: the bystander loses {lost_never} after never and {lost_soon} \
         after soon."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{cell, row};

    #[test]
    fn rounds_that_disagree_tell_nothing_and_neither_does_one_hint() {
        let mixed: Vec<f64> = (0..16).map(|round| f64::from(round % 2) * 2.0).collect();
        assert_eq!(promise(&[1.0; 16], &mixed), Verdict::Unknown);
        let alone = row(&cell("copy", 1 << 20, "read"), "cachewise soon", 1.0);
        assert!(verdicts(&[alone], &[]).is_empty());
    }
}
