//! `read-batch` (002.4, .7, .8, .10): how many bytes to read before writing.
//!
//! Dillon's argument: a memory bus turns from reading to writing and back at a cost, so read as much
//! as registers hold before the first store. Evans': the cache is a larger register file, so touch a
//! block first and then write it. Kernels that differ in nothing but that number are lines of one
//! family, `copy.avx.g*` for registers (grouping) and `copy.avx.nt.block*` for block prefetch; the
//! number is the axis `read_bytes`. The hardware's prefetcher stays on.

use super::{STUDY, Step, measured};
use crate::prelude::*;

/// Axis: bytes read before the first of them is written.
const READ_BYTES: &str = "read_bytes";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "read-batch",
    about: "how many bytes to read before writing them: loads before stores, block prefetch",
    seeds: &["002.4", "002.7", "002.8", "002.10"],
    operations: &[Operation::Copy],
    classic: "the kernels of 2007 (movdqa one by one and 8 by 8, Dillon's, movntq and movnti with block prefetch), in L1, in L2 and uncached",
    tables: |rows| READ_BATCHES.tables(rows),
    figures,
    run: Some(run),
    ..STUDY
};

/// Families against the bytes they read before writing, in GB/s.
const READ_BATCHES: Grid = Grid {
    caption: |row| {
        let place = cachewise_report::matrix::caption(&row.cell);
        sized(row, format!("{place}: GB/s by the bytes read before writing"))
    },
    lines: ("family", candidate),
    column: |row| row.axis(READ_BYTES).map(|read| (read, size_text(read))),
    legend: "g*: registers loaded before the first store; block*: bytes touched before they are copied",
    others: true,
    proofs: true,
    ..Grid::PLAIN
};

fn figures() -> Vec<Figure> {
    let title = "Speed by the bytes read before writing";
    let panels = ["source", "destination", "size"];
    vec![Figure::curve(title, READ_BYTES, "gbps").by(&panels)]
}

/// The family of a copy kernel and the bytes it reads before it writes; `None` for kernels that
/// differ from their family in something else.
fn member(kernel: &Kernel) -> Option<(String, usize)> {
    let others = ["pages", "streams", "backward", "vlasenko", "bytes", "x87", "rep"];
    if others.iter().any(|word| kernel.technique().contains(word)) {
        return None;
    }
    match kernel.prefetch {
        Prefetch::Block(bytes) => {
            let (stem, parameter) = kernel.name.split_once(".block")?;
            let tail = parameter.find('.').map_or("", |at| &parameter[at..]);
            Some((format!("{stem}.block*{tail}"), bytes as usize))
        }
        Prefetch::None if kernel.grouping > 0 => {
            let bytes = usize::from(kernel.grouping) * kernel.registers.bytes();
            let stem = match kernel.name.rsplit_once(".g") {
                Some((stem, number)) if number.parse::<u8>().is_ok() => stem,
                _ => kernel.name,
            };
            let star = if stem.ends_with("dillon") { "" } else { ".g*" };
            Some((format!("{stem}{star}"), bytes))
        }
        _ => None,
    }
}

/// The period's kernels (002.1, .4, .7, .8).
fn is_classic(kernel: &Kernel) -> bool {
    let name = kernel.name;
    name.starts_with("copy.sse2.movdqa")
        || name == "copy.sse2.dillon"
        || ["copy.mmx.nt", "copy.gpr64.nt"].iter().any(|stem| name.starts_with(stem))
}

fn run(setting: &mut Setting) -> Result {
    let (quick, classic) = (setting.options.quick, setting.options.classic);
    let vector = widest_class(setting.bench.features);
    let wanted = |kernel: &Kernel| {
        if member(kernel).is_none() {
            return false;
        }
        if classic {
            return is_classic(kernel);
        }
        let historic = matches!(kernel.registers, RegisterClass::Mmx | RegisterClass::Gpr);
        !quick || kernel.registers == vector || (is_classic(kernel) && !historic)
    };
    let (routines, foreign): (Vec<Routine>, Vec<Routine>) =
        field(setting, Operation::Copy, wanted)?
            .into_iter()
            .partition(|routine| find(&routine.name).is_none_or(|kernel| member(kernel).is_some()));
    for routine in foreign {
        let why = "it has no number of bytes read before writing";
        setting.out.note(format!("skipped {}: {why}", routine.name))?;
    }
    at_least_one([&routines])?;
    let mut cells = setting.cells();
    if classic && setting.options.placements.is_empty() {
        // Fully L1-cached, fully L2-cached, uncached (002.2).
        cells.retain(|(source, _, _)| *source != Level::Llc);
    }
    let step = |(source, destination, size): (Level, Level, usize)| {
        // A block that is larger than the operation is read whole, which is another question.
        let call = |call: Call<'static>| match find(&call.name).and_then(member) {
            None => Some(call),
            Some((_, bytes)) if bytes > size => None,
            Some((family, bytes)) => Some(call.told(move |row| {
                at(Row { candidate: family.clone(), ..row }, &[(READ_BYTES, bytes as f64)])
            })),
        };
        let calls = Call::of_all(&routines, true).into_iter().filter_map(call).collect();
        let task = setting.task(Operation::Copy, size, Cell::placed(source, destination));
        Step::new(task, calls)
    };
    let steps = cells.into_iter().map(step).collect();
    measured(setting, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_differ_in_one_number_only() {
        let named = |name: &str| find(name).and_then(member);
        assert_eq!(named("copy.avx"), Some(("copy.avx.g*".into(), 128)));
        assert_eq!(named("copy.avx.g8"), Some(("copy.avx.g*".into(), 256)));
        assert_eq!(named("copy.avx.nt.g1"), Some(("copy.avx.nt.g*".into(), 32)));
        assert_eq!(named("copy.sse2.nt.block16k"), Some(("copy.sse2.nt.block*".into(), 16384)));
        assert_eq!(named("copy.sse2.dillon"), Some(("copy.sse2.dillon".into(), 128)));
        assert_eq!(named("copy.sse2.movdqa"), Some(("copy.sse2.movdqa.g*".into(), 16)));
        assert_eq!(
            named("copy.mmx.nt.block8k.descending"),
            Some(("copy.mmx.nt.block*.descending".into(), 8192))
        );
        for name in ["copy.avx.nt.pf512", "copy.avx.nt.streams4", "copy.rep.movsb", "copy.bytes"] {
            assert_eq!(named(name), None, "{name}");
        }
        let mut seen = std::collections::BTreeSet::new();
        for kernel in TABLE.iter().filter(|kernel| kernel.operation() == Operation::Copy) {
            if let Some(member) = member(kernel) {
                assert!(seen.insert(member.clone()), "{member:?} twice");
            }
        }
    }
}
