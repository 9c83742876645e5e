//! `vector-state` (002.17, 004.3): what it costs to own the vector registers, and from how many bytes
//! on a vector kernel pays for it.
//!
//! A kernel that wants vector registers has to save whatever they hold and restore it afterwards;
//! integer kernels need not. First the cost of XSAVE, XSAVEC and XSAVEOPT with XRSTOR is measured by
//! component and by what the registers hold: *dirty* (modified since the last restore), *unmodified*
//! (as the last restore left them) and *clean* (in their initial state, after `vzeroupper` and the
//! like). Then copy, zero and compare by each register class, bare and between save and restore, take
//! turns with the integer kernels. What is said here is pure; measuring is in `x86`.
// Elsewhere nothing is measured, and only the tests speak of it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::support::{axis, bytes, figure, groups, percent, versus};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::MARGIN;
use cachewise_measure::{Figure, FigureKind, Row, Verdict, stats};

#[cfg(target_arch = "x86_64")]
mod x86;

/// Axis: components saved, as bits of XCR0.
pub const COMPONENTS: &str = "components";
/// Row figure: nanoseconds of saving and restoring alone, less what dirtying the registers took.
pub const NET_NS: &str = "net_ns";
/// Row figure: components that the last save found in another than their initial state (XSTATE_BV).
pub const HELD: &str = "held";

pub(super) fn figures() -> Vec<Figure> {
    vec![
        figure(
            "Saving and restoring registers, by component",
            FigureKind::Bars,
            "candidate",
            NET_NS,
            &[COMPONENTS, "state"],
            "registers",
        ),
        figure(
            "Time over the faster integer kernel's, save and restore included",
            FigureKind::Curve,
            "size",
            "ratio",
            &[],
            "break-even",
        ),
    ]
}

#[cfg(target_arch = "x86_64")]
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    x86::run(experiment, setting)
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(experiment: &Experiment, _: &mut Setting<'_>) -> Result<Finish, LabError> {
    Err(LabError::Nothing {
        why: format!(
            "{}: not here; XSAVE exists on x86-64 only, and docs/power-and-arm.md says what a \
             kernel has to measure instead",
            experiment.name
        ),
    })
}

/// From where on a kernel pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BreakEven {
    /// At every size measured, the least of which is given.
    Always(usize),
    /// From about that many bytes on, up to the largest size measured.
    From(usize),
    /// At no end of the sizes measured; the largest is given.
    Never(usize),
}

/// The point from which on the verdict is faster at every larger size. `points` are size, median time
/// ratio and verdict, by size. Between the last size that is not faster and the first that is, the
/// ratio is taken as straight over the logarithm of the size. Pure.
pub(super) fn break_even(points: &[(usize, f64, Verdict)]) -> Option<BreakEven> {
    let largest = points.last()?.0;
    let losing = points.iter().rposition(|(_, _, verdict)| *verdict != Verdict::Faster);
    let Some(losing) = losing else { return Some(BreakEven::Always(points[0].0)) };
    let Some(&(above, wins, _)) = points.get(losing + 1) else {
        return Some(BreakEven::Never(largest));
    };
    let (below, loses, _) = points[losing];
    // A size that could not be told may have a ratio below 1 already.
    let share = if loses > 1.0 { (loses - 1.0) / (loses - wins) } else { 0.0 };
    let size = (below as f64).ln() + share * (above as f64 / below as f64).ln();
    Some(BreakEven::From(size.exp().round() as usize))
}

impl std::fmt::Display for BreakEven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BreakEven::Always(least) => write!(f, "from {} on or earlier", bytes(*least)),
            BreakEven::From(size) => write!(f, "from about {size} B on"),
            BreakEven::Never(most) => write!(f, "not up to {}", bytes(*most)),
        }
    }
}

/// The sentences that rows amount to. Pure.
pub(super) fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut headline = Vec::new();
    let mut details = Vec::new();
    let break_even_rows =
        rows.iter().filter(|row| row.cell.state == "break-even" && row.candidate != row.reference);
    for (operation, of_it) in groups(break_even_rows, |row: &Row| row.cell.operation.clone()) {
        let mut best: Option<(usize, String)> = None;
        for (candidate, curve) in groups(of_it.iter().copied(), |row: &Row| row.candidate.clone()) {
            if !candidate.contains(", ") && !candidate.contains("bare") {
                continue;
            }
            let mut points: Vec<_> = curve
                .iter()
                .filter_map(|row| {
                    row.ratio
                        .map(|ratio| (row.cell.size as usize, ratio.median, ratio.verdict(MARGIN)))
                })
                .collect();
            points.sort_by_key(|point| point.0);
            let Some(found) = break_even(&points) else { continue };
            details.push(format!("{operation}: {candidate} pays {found}"));
            if candidate.ends_with("dirty") {
                let at = match found {
                    BreakEven::Always(size) | BreakEven::From(size) => size,
                    BreakEven::Never(_) => usize::MAX,
                };
                if best.as_ref().is_none_or(|known| at < known.0) {
                    let who = if at == usize::MAX { "any of them" } else { &candidate };
                    best = Some((at, format!("{operation} {found} ({who})")));
                }
            }
        }
        headline.extend(best.map(|(_, text)| text));
    }
    let mut sentences = vec![if headline.is_empty() {
        "From how many bytes on a vector kernel pays for saving registers: cannot tell, no such kernel was measured".to_owned()
    } else {
        format!(
            "A vector kernel that has to save dirty registers and restore them pays: {}",
            headline.join("; ")
        )
    }];
    sentences.extend(costs(rows));
    sentences.extend(details);
    sentences
}

/// What saving and restoring costs, for the largest set of components, and whether a clean state is
/// cheaper.
fn costs(rows: &[Row]) -> Vec<String> {
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.operation == "save-restore").collect();
    let largest = saving.iter().map(|row| axis(row, COMPONENTS)).fold(0.0, f64::max);
    let mut sentences = Vec::new();
    for (candidate, of_one) in groups(
        saving.iter().copied().filter(|row| axis(row, COMPONENTS) == largest),
        |row: &Row| row.candidate.clone(),
    ) {
        let parts: Vec<String> = of_one
            .iter()
            .filter_map(|row| {
                let net = row.extra.get(NET_NS)?;
                Some(format!("{} {net:.1} ns", row.cell.state.trim_start_matches("registers ")))
            })
            .collect();
        if parts.is_empty() {
            continue;
        }
        let of = |state: &str| of_one.iter().find(|row| row.cell.state.ends_with(state));
        let clean = of("clean").zip(of("unmodified")).map_or(String::new(), |(clean, kept)| {
            let ratio = versus(clean, kept);
            match ratio.verdict(MARGIN) {
                Verdict::Faster => {
                    format!("; clean is {} cheaper than unmodified", percent(ratio.median))
                }
                Verdict::Slower => {
                    format!("; clean is {} dearer than unmodified", percent(ratio.median))
                }
                Verdict::CannotTell => "; clean and unmodified cannot be told apart".to_owned(),
            }
        });
        sentences.push(format!("{candidate} of all components: {}{clean}", parts.join(", ")));
    }
    sentences
}

/// Median of the differences of two rows' rounds, never below 0.
fn net(ours: &[f64], theirs: &[f64]) -> f64 {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    stats::median(&differences).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::support::{key, made_up};
    use super::*;
    use Verdict::{CannotTell, Faster, Slower};

    #[test]
    fn break_even_is_where_all_larger_sizes_win() {
        assert_eq!(break_even(&[]), None);
        assert_eq!(
            break_even(&[(16, 0.5, Faster), (64, 0.4, Faster)]),
            Some(BreakEven::Always(16))
        );
        assert_eq!(break_even(&[(16, 2.0, Slower), (64, 1.2, Slower)]), Some(BreakEven::Never(64)));
        // Halfway in ratio is halfway in octaves.
        assert_eq!(
            break_even(&[(256, 1.5, Slower), (1024, 0.5, Faster)]),
            Some(BreakEven::From(512))
        );
        // A win below a loss does not count.
        assert_eq!(
            break_even(&[(16, 0.5, Faster), (64, 1.5, Slower), (256, 0.5, Faster)]),
            Some(BreakEven::From(128))
        );
        assert_eq!(
            break_even(&[(16, 0.99, CannotTell), (64, 0.5, Faster)]),
            Some(BreakEven::From(16))
        );
        assert_eq!(
            break_even(&[(16, 0.5, Faster), (64, 1.0, CannotTell)]),
            Some(BreakEven::Never(64))
        );
    }

    fn at(size: usize, candidate: &str, ns: f64) -> Row {
        let cell = key("copy", size, (None, None), "break-even", &[]);
        let integer = made_up::row(cell.clone(), "copy.gpr64", "copy.gpr64", 100.0);
        let mut row = made_up::row(cell, candidate, "copy.gpr64", ns);
        row.ratio = Some(versus(&row, &integer));
        row
    }

    #[test]
    fn the_headline_names_the_earliest_that_pays() {
        let said = verdicts(&[
            at(256, "copy.avx, dirty", 150.0),
            at(1024, "copy.avx, dirty", 50.0),
            at(256, "copy.sse2, dirty", 150.0),
            at(1024, "copy.sse2, dirty", 120.0),
            at(256, "copy.avx, clean", 80.0),
            at(1024, "copy.avx, clean", 50.0),
        ]);
        assert!(said[0].contains("copy from about 512 B on (copy.avx, dirty)"), "{said:?}");
        assert!(
            said.contains(&"copy: copy.sse2, dirty pays not up to 1 KiB".to_owned()),
            "{said:?}"
        );
        assert!(
            said.contains(&"copy: copy.avx, clean pays from 256 B on or earlier".to_owned()),
            "{said:?}"
        );
        assert!(verdicts(&[])[0].contains("cannot tell"));
        let never =
            verdicts(&[at(256, "copy.avx, dirty", 150.0), at(256, "copy.sse2, dirty", 170.0)]);
        assert!(never[0].ends_with("copy not up to 256 B (any of them)"), "{never:?}");
    }

    #[test]
    fn costs_are_told_by_state() {
        let of = |state: &str, ns: f64| {
            let cell = key(
                "save-restore",
                832,
                (None, None),
                &format!("registers {state}"),
                &[(COMPONENTS, 7.0)],
            );
            let mut row = made_up::row(cell, "xsavec", "xsave", ns);
            row.extra.insert(NET_NS.into(), ns);
            row
        };
        let said = costs(&[of("dirty", 90.0), of("unmodified", 80.0), of("clean", 40.0)]);
        assert_eq!(
            said,
            [
                "xsavec of all components: dirty 90.0 ns, unmodified 80.0 ns, clean 40.0 ns; clean is 50 % cheaper than unmodified"
            ]
        );
    }

    #[test]
    fn net_is_paired_and_not_negative() {
        assert_eq!(net(&[5.0, 9.0, 7.0], &[1.0, 5.0, 4.0]), 4.0);
        assert_eq!(net(&[1.0], &[2.0]), 0.0);
    }
}
