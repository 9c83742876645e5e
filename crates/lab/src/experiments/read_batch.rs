//! `read-batch` (002.4, .7, .8, .10): how many bytes to read before writing.
//!
//! Dillon's argument: a memory bus turns from reading to writing and back at a cost, so read as much
//! as registers hold before the first store. Evans': the cache is a larger register file, so touch a
//! block first and then write it. Kernels that differ in nothing but that number are lines of one
//! family, `copy.avx.g*` for registers (grouping) and `copy.avx.nt.block*` for block prefetch; the
//! number is the axis `read_bytes`. The hardware's prefetcher stays on.

use super::support::{
    at_least_one, axis, bytes, field, figure, gbps, groups, percent, place, versus, widest,
};
use super::{Experiment, Finish, Setting, placed, short_bytes};
use crate::LabError;
use crate::bench::{MARGIN, Question};
use cachewise_kernels::{Kernel, Operation, Prefetch, RegisterClass, find};
use cachewise_measure::{Figure, FigureKind, Level, MeasureError, PairedRatio, Row, Verdict};

/// Axis: bytes read before the first of them is written.
pub const READ_BYTES: &str = "read_bytes";

/// A line per family.
pub(super) fn figures() -> Vec<Figure> {
    vec![figure(
        "Speed by the bytes read before writing",
        FigureKind::Curve,
        READ_BYTES,
        "gbps",
        &["source", "destination", "size"],
        "",
    )]
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

pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let (quick, classic) = (setting.options.quick, setting.options.classic);
    let vector = widest(setting.bench.features);
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
    let mut routines = field(setting, Operation::Copy, wanted)?;
    let mut foreign = Vec::new();
    routines.retain(|routine| {
        let keep = find(&routine.name).is_none_or(|kernel| member(kernel).is_some());
        if !keep {
            foreign.push(routine.name.clone());
        }
        keep
    });
    for name in foreign {
        (setting.notes)(format!("skipped {name}: it has no number of bytes read before writing"))?;
    }
    at_least_one(&[&routines])?;
    let mut cells = setting.cells();
    if classic && setting.options.placements.is_empty() {
        // Fully L1-cached, fully L2-cached, uncached (002.2).
        cells.retain(|(source, _, _)| *source != Level::Llc);
    }
    let work = |size: usize| (size as f64).max(4e5);
    setting.observer.begin(experiment.name, cells.iter().map(|cell| work(cell.2)).sum());
    let mut rows: Vec<Row> = Vec::new();
    let mut finish = Finish::Complete;
    for (source, destination, size) in cells {
        // A block that is larger than the operation is read whole, which is another question.
        let fits = |name: &str| find(name).and_then(member).is_none_or(|(_, bytes)| bytes <= size);
        let of_size: Vec<_> =
            routines.iter().filter(|routine| fits(&routine.name)).cloned().collect();
        let question = Question {
            experiment: experiment.name,
            operation: Operation::Copy,
            size,
            state: placed(source, destination),
            routines: &of_size,
            plan: setting.plan(false),
            verify: true,
        };
        let answer = match setting.bench.ask(&question, setting.observer) {
            Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                (setting.notes)(format!("skipped {source} to {destination}: {error}"))?;
                continue;
            }
            other => other?,
        };
        if answer.interrupted {
            finish = Finish::Interrupted;
            break;
        }
        for mut row in answer.rows {
            if let Some((family, bytes)) = find(&row.candidate).and_then(member) {
                row.candidate = family;
                row.cell.axes.insert(READ_BYTES.to_owned(), bytes as f64);
            }
            (setting.rows)(&row)?;
            rows.push(row);
        }
        setting
            .observer
            .advance(&format!("{} {source}:{destination}", short_bytes(size)), work(size));
    }
    verdicts(&rows).into_iter().for_each(&mut *setting.verdicts);
    Ok(finish)
}

/// What a family's members say in one cell.
enum Answer {
    /// One number is best, and some other is told to be slower by that ratio.
    Matters { best: usize, worst: usize, cost: PairedRatio },
    /// No two members can be told apart.
    NoDifference,
}

fn answer(members: &[&Row]) -> Option<Answer> {
    let best = members.iter().max_by(|a, b| gbps(a).total_cmp(&gbps(b)))?;
    let slower = members
        .iter()
        .map(|row| (row, versus(row, best)))
        .filter(|(_, ratio)| ratio.verdict(MARGIN) == Verdict::Slower)
        .max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let read = |row: &Row| axis(row, READ_BYTES) as usize;
    Some(match slower {
        Some((worst, cost)) => Answer::Matters { best: read(best), worst: read(worst), cost },
        None => Answer::NoDifference,
    })
}

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let with_axis = rows.iter().filter(|row| row.cell.axes.contains_key(READ_BYTES));
    let mut headline = Vec::new();
    let mut details = Vec::new();
    let key = |row: &Row| (place(row), row.cell.size);
    for ((where_, size), of_cell) in groups(with_axis, key) {
        let what = format!("{where_}, {}", bytes(size as usize));
        let families = groups(of_cell.iter().copied(), |row: &Row| row.candidate.clone());
        let fastest = of_cell.iter().max_by(|a, b| gbps(a).total_cmp(&gbps(b)));
        for (family, members) in &families {
            if members.len() < 2 {
                continue;
            }
            let leads = fastest.is_some_and(|row| row.candidate == *family);
            let sentence = match answer(members) {
                Some(Answer::Matters { best, worst, cost }) => format!(
                    "{what}: {family} is fastest reading {} before writing; reading {} instead takes {} longer ({} .. {})",
                    bytes(best),
                    bytes(worst),
                    percent(cost.median),
                    percent(cost.low),
                    percent(cost.high),
                ),
                Some(Answer::NoDifference) => format!(
                    "{what}: {family}: how many bytes are read before writing makes no difference that can be told"
                ),
                None => continue,
            };
            if leads {
                headline.push(match answer(members) {
                    Some(Answer::Matters { best, cost, .. }) => {
                        format!(
                            "{what}: read {} ({family}, up to {} at stake)",
                            bytes(best),
                            percent(cost.median)
                        )
                    }
                    _ => format!("{what}: no difference ({family})"),
                });
            }
            details.push(sentence);
        }
        details.extend(movdqa(&what, &of_cell));
    }
    if details.is_empty() {
        return vec!["How much to read before writing: cannot tell; no family has two members among the kernels measured".to_owned()];
    }
    let summary = if headline.is_empty() {
        "the fastest kernels here have no number to vary; see below".to_owned()
    } else {
        headline.join("; ")
    };
    let mut sentences = vec![format!("How many bytes to read before writing: {summary}")];
    sentences.extend(details);
    sentences
}

/// Seed 002.4: eight movdqa loads before eight stores helped in L2 (4.37 to 4.77 GB/s) and hurt in
/// L1 (13.7 to 9.2).
fn movdqa(what: &str, of_cell: &[&Row]) -> Option<String> {
    let form = |bytes: f64| {
        of_cell
            .iter()
            .find(|row| row.candidate == "copy.sse2.movdqa.g*" && axis(row, READ_BYTES) == bytes)
    };
    let ratio = versus(form(128.0)?, form(16.0)?);
    let now = match ratio.verdict(MARGIN) {
        Verdict::Faster => format!("takes {} less than", percent(ratio.median)),
        Verdict::Slower => format!("takes {} longer than", percent(ratio.median)),
        Verdict::CannotTell => "cannot be told from".to_owned(),
    };
    let claimed = match what {
        place if place.starts_with("L1 to L1") => Some((Verdict::Slower, "slower")),
        place if place.starts_with("L2 to L2") => Some((Verdict::Faster, "faster")),
        _ => None,
    };
    let judgement = claimed.map_or(String::new(), |(verdict, word)| {
        let holds = ratio.verdict(MARGIN) == verdict;
        format!(
            "; seed 002.4 found it {word}: {}",
            if holds { "still true" } else { "no longer true here" }
        )
    });
    Some(format!("{what}: movdqa 8+8 {now} 1+1{judgement}"))
}

#[cfg(test)]
mod tests {
    use super::super::support::{key, made_up};
    use super::*;
    use cachewise_kernels::TABLE;

    fn row(level: Level, family: &str, bytes: f64, ns: f64) -> Row {
        let levels = (Some(level), Some(level));
        made_up::row(
            key("copy", 4096, levels, "placed", &[(READ_BYTES, bytes)]),
            family,
            "libc",
            ns,
        )
    }

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

    #[test]
    fn a_difference_is_told_and_its_absence_too() {
        let rows = [
            row(Level::L1, "copy.avx.g*", 32.0, 100.0),
            row(Level::L1, "copy.avx.g*", 128.0, 100.05),
            row(Level::Dram, "copy.avx.g*", 32.0, 130.0),
            row(Level::Dram, "copy.avx.g*", 128.0, 100.0),
        ];
        let said = verdicts(&rows);
        assert!(said[0].contains("L1 to L1, 4 KiB: no difference"), "{said:?}");
        assert!(said[0].contains("DRAM to DRAM, 4 KiB: read 128 B"), "{said:?}");
        assert!(said[2].contains("reading 32 B instead takes 30 % longer"), "{said:?}");
    }

    #[test]
    fn movdqa_is_judged_against_the_seed() {
        let of = |level, eight| {
            let rows = [
                row(level, "copy.sse2.movdqa.g*", 16.0, 100.0),
                row(level, "copy.sse2.movdqa.g*", 128.0, eight),
            ];
            verdicts(&rows).pop().expect("a sentence")
        };
        assert!(
            of(Level::L1, 150.0).contains("longer than 1+1; seed 002.4 found it slower: still")
        );
        assert!(of(Level::L1, 100.1).contains("no longer true here"));
        assert!(of(Level::L2, 80.0).contains("less than 1+1; seed 002.4 found it faster: still"));
        assert!(!of(Level::Dram, 80.0).contains("seed"));
    }

    #[test]
    fn single_members_cannot_tell() {
        let said = verdicts(&[row(Level::L1, "copy.sse2.dillon", 128.0, 1.0)]);
        assert!(said[0].contains("cannot tell"), "{said:?}");
    }
}
