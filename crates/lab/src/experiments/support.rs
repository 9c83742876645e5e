//! What several experiments share: cells' keys, choosing kernels, figures, wording.

use super::Setting;
use crate::LabError;
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Features, Kernel, Operation, RegisterClass, TABLE};
use cachewise_measure::{CellKey, Figure, FigureKind, Level, PairedRatio, Row, stats};

/// The key of a cell with axes.
pub(super) fn key(
    operation: &str,
    size: usize,
    levels: (Option<Level>, Option<Level>),
    state: &str,
    axes: &[(&str, f64)],
) -> CellKey {
    CellKey {
        operation: operation.to_owned(),
        size: size as u64,
        source: levels.0.map(|level| level.to_string()),
        destination: levels.1.map(|level| level.to_string()),
        state: state.into(),
        reader: None,
        bystander: None,
        axes: axes.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// A figure without restrictions.
pub(super) fn figure(
    title: &str,
    kind: FigureKind,
    x: &str,
    value: &str,
    panels: &[&str],
    states: &str,
) -> Figure {
    Figure {
        title: title.to_owned(),
        kind,
        x: x.to_owned(),
        y: None,
        value: value.to_owned(),
        panels: panels.iter().map(|name| (*name).to_owned()).collect(),
        candidates: Vec::new(),
        states: states.to_owned(),
    }
}

/// libc, then the kernels the user names (what this CPU lacks is noted), or else those of the
/// experiment's own choice that this CPU runs.
pub(super) fn field(
    setting: &mut Setting<'_>,
    operation: Operation,
    own_choice: impl Fn(&Kernel) -> bool,
) -> Result<Vec<Routine>, LabError> {
    let mut routines = vec![libc_reference(operation)];
    let chosen = match setting.options.kernels.as_deref() {
        None => TABLE
            .iter()
            .filter(|kernel| kernel.operation() == operation && own_choice(kernel))
            .filter(|kernel| kernel.runs_on(setting.bench.features))
            .collect(),
        Some(pattern) => {
            // Of several operations a pattern may name kernels of one.
            let named = match select::kernels(&[operation], Some(pattern)) {
                Err(LabError::UnknownKernel { .. }) => Vec::new(),
                other => other?,
            };
            let (here, absent) = select::runnable(named, setting.bench.features);
            for (kernel, reason) in absent {
                (setting.notes)(format!("skipped {}: {reason}", kernel.name))?;
            }
            here
        }
    };
    routines.extend(chosen.into_iter().map(Routine::from));
    Ok(routines)
}

/// Refuses when nothing but libc is left to measure.
pub(super) fn at_least_one(fields: &[&[Routine]]) -> Result<(), LabError> {
    if fields.iter().any(|field| field.iter().any(|routine| routine.name != LIBC)) {
        return Ok(());
    }
    Err(LabError::Nothing {
        why: "this CPU runs none of the kernels chosen, or this experiment has no use for them"
            .to_owned(),
    })
}

/// The widest registers that this CPU has a copy kernel for.
pub(super) fn widest(available: Features) -> RegisterClass {
    TABLE
        .iter()
        .filter(|kernel| kernel.operation() == Operation::Copy && kernel.runs_on(available))
        .map(|kernel| kernel.registers)
        .fold(
            RegisterClass::Gpr,
            |widest, class| {
                if class.bytes() > widest.bytes() { class } else { widest }
            },
        )
}

/// Whether a kernel is the plain member of its vector family or an integer routine: `avx`,
/// `avx.nt`, `gpr64`, without a parameter under study.
pub(super) fn is_plain(kernel: &Kernel) -> bool {
    let technique = kernel.technique();
    let stem = technique.strip_suffix(".nt").unwrap_or(technique);
    !stem.contains('.')
        && !matches!(stem, "bytes" | "mmx" | "x87" | "sse")
        && kernel.prefetch == cachewise_kernels::Prefetch::None
}

/// GB/s of a row's operation.
pub(super) fn gbps(row: &Row) -> f64 {
    row.cell.size as f64 / stats::median(&row.operation_ns)
}

/// One row's time over another's of the same rounds.
pub(super) fn versus(ours: &Row, theirs: &Row) -> PairedRatio {
    PairedRatio::new(&ours.operation_ns, &theirs.operation_ns, 0)
}

/// `12.3 %` of a time ratio above or below 1.
pub(super) fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0).abs() * 100.0;
    if change >= 10.0 { format!("{change:.0} %") } else { format!("{change:.1} %") }
}

/// Bytes in a sentence: `4 KiB`, `1500 B`.
pub(super) fn bytes(n: usize) -> String {
    let text = super::short_bytes(n);
    match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => format!("{number} {}iB", &text[number.len()..]),
        None => format!("{text} B"),
    }
}

/// An axis of a row, NaN where it has none.
pub(super) fn axis(row: &Row, name: &str) -> f64 {
    row.cell.axes.get(name).copied().unwrap_or(f64::NAN)
}

/// `DRAM to DRAM`, `L1`, or the state.
pub(super) fn place(row: &Row) -> String {
    match (&row.cell.source, &row.cell.destination) {
        (Some(source), Some(destination)) => format!("{source} to {destination}"),
        (None, Some(destination)) => destination.clone(),
        _ => row.cell.state.to_string(),
    }
}

/// Consecutive items that agree in a key, in order of appearance; others of the same key join.
pub(super) fn groups<'r, T, K: PartialEq>(
    items: impl IntoIterator<Item = &'r T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<&'r T>)> {
    let mut found: Vec<(K, Vec<&'r T>)> = Vec::new();
    for item in items {
        let of = key(item);
        match found.iter_mut().find(|(known, _)| *known == of) {
            Some((_, members)) => members.push(item),
            None => found.push((of, vec![item])),
        }
    }
    found
}

/// Made-up rows for tests of verdicts.
#[cfg(test)]
pub(super) mod made_up {
    use super::*;

    /// A row whose rounds all take about `ns`, jittering by 0.1 %.
    pub(crate) fn row(cell: CellKey, candidate: &str, reference: &str, ns: f64) -> Row {
        jittery(cell, candidate, reference, ns, 0.001)
    }

    /// A row whose rounds jitter by a fraction.
    pub(crate) fn jittery(
        cell: CellKey,
        candidate: &str,
        reference: &str,
        ns: f64,
        jitter: f64,
    ) -> Row {
        let mut random = fastrand::Rng::with_seed(ns.to_bits());
        let operation_ns =
            (0..15).map(|_| ns * (1.0 + jitter * (random.f64() * 2.0 - 1.0))).collect();
        Row {
            experiment: "made-up".to_owned(),
            cell,
            candidate: candidate.to_owned(),
            reference: reference.to_owned(),
            calls: 1,
            operation_ns,
            reader_ns: Vec::new(),
            bystander_ns: Vec::new(),
            ratio: None,
            verdict: None,
            total_ratio: None,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: std::collections::BTreeMap::new(),
            histogram: None,
        }
    }
}
