//! Parts that several experiments share: choosing kernels, and rows of variants of one kernel.

use super::setting::*;
use crate::error::LabError;
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select;
use cachewise_kernels::find;
use cachewise_kernels::{Features, Kernel, Operation, RegisterClass, TABLE};
use cachewise_measure::{Caches, Level};

/// libc, then the kernels the user names (what this CPU lacks is noted), or else those of the
/// experiment's own choice that this CPU runs.
pub(super) fn field(
    setting: &mut Setting,
    operation: Operation,
    own_choice: impl Fn(&Kernel) -> bool,
) -> Result<Vec<Routine>> {
    let mut routines = vec![libc_reference(operation)];
    let chosen = match setting.options.kernels.as_deref() {
        None => TABLE
            .iter()
            .filter(|kernel| kernel.operation() == operation && own_choice(kernel))
            .filter(|kernel| kernel.runs_on(setting.bench.features))
            .collect(),
        Some(pattern) => {
            // A pattern may name kernels of only one of several operations.
            let named = match select::kernels(&[operation], Some(pattern)) {
                Err(LabError::UnknownKernel { .. }) => Vec::new(),
                other => other?,
            };
            runnable(setting, named)?
        }
    };
    routines.extend(chosen.into_iter().map(Routine::from));
    Ok(routines)
}

/// Kernels that this CPU runs; a note for each other.
fn runnable(setting: &mut Setting, kernels: Vec<&'static Kernel>) -> Result<Vec<&'static Kernel>> {
    let (here, absent) = select::runnable(kernels, setting.bench.features);
    for reason in absent {
        setting.out.note(format!("skipped {reason}"))?;
    }
    Ok(here)
}

/// The kernels that the user names, or else the experiment's own, that this CPU runs; none at
/// all is an error.
pub(super) fn asked_or(
    setting: &mut Setting,
    operations: &[Operation],
    own: impl FnOnce() -> Vec<&'static Kernel>,
) -> Result<Vec<&'static Kernel>> {
    let chosen = match setting.options.kernels.as_deref() {
        Some(pattern) => select::kernels(operations, Some(pattern))?,
        None => own(),
    };
    let here = runnable(setting, chosen)?;
    if here.is_empty() {
        return nothing("this CPU can run none of the kernels chosen");
    }
    Ok(here)
}

/// The [`field`] of each of these operations, of those alone that a pattern names kernels of.
pub(super) fn fields(
    setting: &mut Setting,
    operations: impl IntoIterator<Item = Operation>,
    own_choice: impl Fn(&Kernel) -> bool,
) -> Result<Vec<Vec<Routine>>> {
    let fields = operations.into_iter().map(|operation| field(setting, operation, &own_choice));
    let mut fields = fields.collect::<Result<Vec<_>>>()?;
    fields.retain(|routines| routines.len() > 1 || setting.options.kernels.is_none());
    at_least_one(&fields)?;
    Ok(fields)
}

/// Refuses when nothing but libc is left to measure.
pub(super) fn at_least_one<'r>(fields: impl IntoIterator<Item = &'r Vec<Routine>>) -> Result {
    if fields.into_iter().flatten().any(|routine| routine.name != LIBC) {
        return Ok(());
    }
    nothing("this CPU runs none of the kernels chosen, or this experiment has no use for them")
}

/// The kernels of these names; where this architecture has none of them, the deployable ones of
/// the operation.
pub(super) fn listed<'n>(
    names: impl Iterator<Item = &'n str>,
    operation: Operation,
) -> Vec<&'static Kernel> {
    let listed: Vec<_> = names.filter_map(find).collect();
    if !listed.is_empty() {
        return listed;
    }
    let deployable = |kernel: &&Kernel| {
        kernel.operation() == operation && kernel.deploy && kernel.technique() != "bytes"
    };
    TABLE.iter().filter(deployable).collect()
}

/// The widest registers that this CPU has a copy kernel for.
pub(super) fn widest_class(available: Features) -> RegisterClass {
    TABLE
        .iter()
        .filter(|kernel| kernel.operation() == Operation::Copy && kernel.runs_on(available))
        .map(|kernel| kernel.registers)
        .max_by_key(|class| class.bytes())
        .unwrap_or(RegisterClass::Gpr)
}

/// The widest straight kernels here: temporal stores, then non-temporal ones.
pub(super) fn widest(
    operation: Operation,
    features: Features,
) -> Option<(&'static Kernel, &'static Kernel)> {
    ["avx512", "avx", "sse2", "neon"].into_iter().find_map(|technique| {
        let kernel = |suffix: &str| {
            find(&format!("{operation}.{technique}{suffix}"))
                .filter(|kernel| kernel.runs_on(features))
        };
        Some((kernel("")?, kernel(".nt")?))
    })
}

/// The cache that so many bytes fit.
pub(super) fn relation(size: usize, caches: &Caches) -> String {
    let fits = |level: &Level| size <= caches.bytes(*level);
    match [Level::L1, Level::L2, Level::Llc].iter().find(|level| fits(level)) {
        Some(level) => format!("fits {level}"),
        None => "fits no cache".to_owned(),
    }
}

/// Nothing to measure, and why.
pub(super) fn nothing<T>(why: impl Into<String>) -> Result<T> {
    Err(LabError::Nothing(why.into()))
}

/// Tells whether a kernel is the plain member of its vector family or an integer routine: `avx`,
/// `avx.nt`, `gpr64`, without a parameter under study.
pub(super) fn is_plain(kernel: &Kernel) -> bool {
    let technique = kernel.technique();
    let stem = technique.strip_suffix(".nt").unwrap_or(technique);
    !stem.contains('.')
        && !matches!(stem, "bytes" | "mmx" | "x87" | "sse")
        && kernel.prefetch == cachewise_kernels::Prefetch::None
}

/// The kernel of that name with temporal stores, for a non-temporal one: `copy.avx` for
/// `copy.avx.nt`.
pub(super) fn temporal_twin(kernel: &Kernel) -> Option<&'static Kernel> {
    match kernel.name {
        // movntps and movnti have no copy in their own technique that is not prefetched.
        "copy.sse.nt" => find("copy.sse2.movdqa"),
        name => find(&name.replacen(".nt", "", 1)).filter(|twin| !twin.is_non_temporal()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_differ_in_their_stores_alone() {
        let twin = |name: &str| find(name).and_then(temporal_twin).map(|kernel| kernel.name);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(twin("copy.avx.nt"), Some("copy.avx"));
            assert_eq!(twin("copy.mmx.nt.pf320.vlasenko"), Some("copy.mmx.pf320.vlasenko"));
            assert_eq!(twin("zero.mmx.nt"), Some("zero.mmx"));
            assert_eq!(twin("copy.sse.nt"), Some("copy.sse2.movdqa"));
            assert_eq!(twin("copy.avx.nt.pages4"), None);
        }
    }
}
