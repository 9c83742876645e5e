//! `reuse-map`: is there any workload that is faster by ordinary stores than by stores around the
//! cache? (000.14)
//!
//! The whole map: how much of the destination is read afterwards, after how much other traffic or
//! time, at which size, for copy and for zero. The reference is the kernel with ordinary stores, so
//! that a ratio of 1 is the break-even line; libc stands beside both.

use super::common::{self, Measured, says, times};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::{Question, Scene, State};
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select;
use cachewise_kernels::{Kernel, Operation, find};
use cachewise_measure::{Caches, Delay, Figure, FigureKind, LINE, Level, Row, Verdict};

/// Axis: bytes of other data read between the operation and its reader.
pub const DELAY_BYTES: &str = "delay_bytes";
/// Axis: nanoseconds that pass between the operation and its reader.
pub const DELAY_NS: &str = "delay_ns";

/// Label of cells whose delay is traffic.
const BY_TRAFFIC: &str = "read after traffic";
/// Label of cells whose delay is time.
const BY_TIME: &str = "read after time";

/// Among a hundred cells some interval excludes 1 by chance alone: "yes" needs one that begins
/// above this.
const CERTAIN: f64 = 1.05;

/// Drawn: a heat map per operation, size and place, the break-even line where the ratio is one.
pub(super) fn figures() -> Vec<Figure> {
    let traffic = Figure {
        title: "Around the cache over through it: operation and reader, after other traffic"
            .to_owned(),
        kind: FigureKind::HeatMap,
        x: DELAY_BYTES.to_owned(),
        y: Some("reader".to_owned()),
        value: "total_ratio".to_owned(),
        panels: ["size", "destination"].map(str::to_owned).to_vec(),
        candidates: cachewise_kernels::TABLE
            .iter()
            .filter(|kernel| is_candidate(kernel))
            .map(|kernel| kernel.name.to_owned())
            .collect(),
        states: BY_TRAFFIC.to_owned(),
    };
    let time = Figure {
        title: "Around the cache over through it: operation and reader, after a time".to_owned(),
        x: DELAY_NS.to_owned(),
        states: BY_TIME.to_owned(),
        ..traffic.clone()
    };
    vec![traffic, time]
}

fn is_candidate(kernel: &Kernel) -> bool {
    kernel.is_non_temporal() && matches!(kernel.operation(), Operation::Copy | Operation::Zero)
}

/// One operation's two sides.
struct Sides {
    operation: Operation,
    /// The reference with ordinary stores, libc, and everybody around the cache.
    routines: Vec<Routine>,
}

/// A point of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    size: usize,
    source: Level,
    destination: Level,
    touched: f64,
    delay: Delay,
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let sides = sides(setting)?;
    let points = points(setting);
    // A sample is as long as the operation demands, and longer by its delay.
    let weight = |point: &Point| match point.delay {
        Delay::Bytes(bytes) => 1e6 + (bytes + point.size) as f64,
        _ => 1e6 + point.size as f64,
    };
    let total: f64 = points.iter().map(weight).sum();
    setting.observer.begin(experiment.name, total * sides.len() as f64);
    let mut rows = Vec::new();
    for point in points {
        for side in &sides {
            let measured = one_point(experiment, setting, side, point)?;
            match measured {
                Measured::Interrupted => {
                    say(setting, &rows);
                    return Ok(Finish::Interrupted);
                }
                Measured::Skipped => {}
                Measured::Rows(of_cell) => {
                    for mut row in of_cell {
                        let (axis, value) = match point.delay {
                            Delay::None => (DELAY_BYTES, 0.0),
                            Delay::Bytes(bytes) => (DELAY_BYTES, bytes as f64),
                            Delay::Nanoseconds(time) => (DELAY_NS, time),
                        };
                        row.cell.axes.insert(axis.to_owned(), value);
                        (setting.rows)(&row)?;
                        rows.push(row);
                    }
                }
            }
            let text = format!(
                "{} {}, {:.0} % read",
                side.operation,
                super::short_bytes(point.size),
                point.touched * 100.0
            );
            setting.observer.advance(&text, weight(&point));
        }
    }
    say(setting, &rows);
    Ok(Finish::Complete)
}

fn say(setting: &mut Setting<'_>, rows: &[Row]) {
    for verdict in verdicts(rows) {
        (setting.verdicts)(verdict);
    }
}

fn one_point(
    experiment: &Experiment,
    setting: &mut Setting<'_>,
    side: &Sides,
    point: Point,
) -> Result<Measured, LabError> {
    let mut plan = setting.plan(false);
    // The delay is no part of the figure: a few calls of a long one will do.
    plan.max_sample_ns = if setting.options.quick { 1e7 } else { 5e7 };
    let label = if matches!(point.delay, Delay::Nanoseconds(_)) { BY_TIME } else { BY_TRAFFIC };
    let scene = Scene {
        source: Some(point.source),
        destination: Some(point.destination),
        ..Scene::reused(label)
    };
    let question = Question {
        experiment: experiment.name,
        operation: side.operation,
        size: point.size,
        state: State::Scene(scene.read_after(point.delay, point.touched)),
        routines: &side.routines,
        plan,
        verify: true,
    };
    common::measure_routines(setting, &question)
}

/// Who stands for each side: the widest kernels here, the period's with `--classic`, or those
/// asked for.
fn sides(setting: &mut Setting<'_>) -> Result<Vec<Sides>, LabError> {
    let operations = [Operation::Copy, Operation::Zero];
    let features = setting.bench.features;
    let chosen: Vec<&'static Kernel> = match setting.options.kernels.as_deref() {
        Some(pattern) => select::kernels(&operations, Some(pattern))?,
        None if setting.options.classic => {
            ["copy.mmx.pf320.vlasenko", "copy.mmx.nt.pf320.vlasenko", "zero.mmx", "zero.mmx.nt"]
                .into_iter()
                .filter_map(find)
                .collect()
        }
        None => operations
            .iter()
            .filter_map(|&operation| common::widest(operation, features))
            .flat_map(|(temporal, around)| [temporal, around])
            .collect(),
    };
    let here = common::present(setting, chosen)?;
    let mut sides = Vec::new();
    for operation in operations {
        let of_it = || here.iter().copied().filter(|kernel| kernel.operation() == operation);
        let around: Vec<_> = of_it().filter(|kernel| kernel.is_non_temporal()).collect();
        let Some(first) = around.first() else { continue };
        let through = of_it()
            .find(|kernel| !kernel.is_non_temporal())
            .or_else(|| common::temporal_twin(first))
            .or_else(|| common::widest(operation, features).map(|(temporal, _)| temporal));
        let Some(through) = through else { continue };
        let mut routines = vec![Routine::from(through), libc_reference(operation)];
        routines.extend(around.into_iter().map(Routine::from));
        sides.push(Sides { operation, routines });
    }
    if sides.is_empty() {
        return Err(LabError::Nothing {
            why: "the map compares stores around the cache with ordinary ones, and none of the \
                  kernels chosen copies or zeroes around it"
                .to_owned(),
        });
    }
    Ok(sides)
}

/// The points, by place and size.
fn points(setting: &Setting<'_>) -> Vec<Point> {
    let options = setting.options;
    let caches = &setting.bench.machine.caches;
    let (sizes, fractions, delays, times) = grid(options.quick, options.classic, caches);
    let sizes = if options.sizes.is_empty() { sizes } else { options.sizes.clone() };
    let places = if options.placements.is_empty() {
        let mut places = vec![(Level::Dram, Level::Dram)];
        if !options.classic {
            places.push((Level::L2, Level::L2));
        }
        places
    } else {
        options.placements.clone()
    };
    let mut points = Vec::new();
    for (source, destination) in places {
        for &size in &sizes {
            // Two operands of two slots each have to fit a cache, or there is no map of it.
            let cached = source.min(destination);
            if options.placements.is_empty()
                && cached != Level::Dram
                && size > cached.capacity(caches) / 4
            {
                continue;
            }
            for &touched in &fractions {
                let touched = touched.max(LINE as f64 / size as f64).min(1.0);
                let delays = delays.iter().map(|&bytes| Delay::Bytes(bytes));
                let times = times.iter().map(|&time| Delay::Nanoseconds(time));
                for delay in delays.chain(times) {
                    let point = Point { size, source, destination, touched, delay };
                    if !points.contains(&point) {
                        points.push(point);
                    }
                }
            }
        }
    }
    points
}

/// Sizes, touched fractions, bytes of traffic, nanoseconds of time.
type Grid = (Vec<usize>, Vec<f64>, Vec<usize>, Vec<f64>);

fn grid(quick: bool, classic: bool, caches: &Caches) -> Grid {
    let page = cachewise_kernels::PAGE_SIZE;
    let line = LINE as f64 / page as f64;
    let (l1, l2, llc) = (caches.l1d.bytes, caches.l2.bytes, caches.llc.bytes);
    if classic {
        // The seed's author in 2005: 100 copied pages read at once, or deferred.
        return (vec![page, 100 * page], vec![line, 1.0], vec![0, 2 * llc], Vec::new());
    }
    if quick {
        let fractions = vec![line, 0.25, 1.0];
        return (vec![page, 1 << 20], fractions, vec![0, l2, 2 * llc], vec![20_000.0]);
    }
    (
        vec![page, 64 << 10, 1 << 20, 16 << 20],
        vec![line, 0.0625, 0.25, 0.5, 1.0],
        vec![0, l1, l2, llc / 4, llc, 2 * llc],
        vec![1_000.0, 100_000.0],
    )
}

/// The answer to 000.14, and where the break-even lies. Pure.
#[must_use]
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut texts = Vec::new();
    for operation in ["copy", "zero"] {
        let cells = common::cells(rows);
        let found: Vec<_> = cells
            .iter()
            .filter(|(key, _)| key.operation == operation)
            .flat_map(|(key, of_cell)| {
                let around = of_cell
                    .iter()
                    .filter(|row| row.candidate != row.reference && row.candidate != LIBC);
                around.filter_map(|row| {
                    Some((*key, *row, common::versus(of_cell, &row.candidate, &row.reference)?))
                })
            })
            .collect();
        if found.is_empty() {
            continue;
        }
        let count = |wanted| found.iter().filter(|(_, _, pair)| says(*pair) == wanted).count();
        let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
        let open = found.len() - faster - slower;
        let extreme = |wanted: Verdict, most: bool| {
            let of_it = found.iter().filter(|(_, _, pair)| says(*pair) == wanted);
            let by_median =
                |a: &&(_, _, cachewise_measure::PairedRatio),
                 b: &&(_, _, cachewise_measure::PairedRatio)| {
                    a.2.median.total_cmp(&b.2.median)
                };
            if most { of_it.max_by(by_median) } else { of_it.min_by(by_median) }
        };
        let counts = format!(
            "around the cache wins in {faster} of {} cells, loses in {slower}, cannot tell in {open}",
            found.len()
        );
        let question = if operation == "copy" {
            "Is there ANY workload which will be faster on non-NT copy_page() than on NT one? \
             (000.14)"
        } else {
            "The same question for zeroing"
        };
        texts.push(match extreme(Verdict::Slower, true) {
            Some((key, row, pair)) if pair.low > CERTAIN => format!(
                "{question} Yes: {}, {} takes {} as {}; {counts}",
                place(key),
                row.candidate,
                times(*pair),
                row.reference
            ),
            None if open == 0 => format!("{question} No: {counts}"),
            _ => format!("{question} Cannot tell here: {counts}"),
        });
        if let Some((key, row, pair)) = extreme(Verdict::Faster, false) {
            texts.push(format!(
                "Around the cache gains most in {operation} {}: {} takes {} as {}",
                place(key),
                row.candidate,
                times(*pair),
                row.reference
            ));
        } else {
            texts.push(format!("No benefit: around the cache gains nowhere in {operation}"));
        }
        texts.push(format!("{operation}, read at once against deferred: {}", deferring(&found)));
    }
    texts
}

type Found<'r> = (&'r cachewise_measure::CellKey, &'r Row, cachewise_measure::PairedRatio);

/// The share of won cells among those read at once and those read after most traffic: what the
/// seed's author found in 2005.
fn deferring(found: &[Found<'_>]) -> String {
    let delay = |key: &cachewise_measure::CellKey| key.axes.get(DELAY_BYTES).copied();
    let most = found.iter().filter_map(|(key, _, _)| delay(key)).fold(0.0, f64::max);
    let won = |wanted: f64| {
        let of_it: Vec<_> = found.iter().filter(|(key, _, _)| delay(key) == Some(wanted)).collect();
        let won = of_it.iter().filter(|(_, _, pair)| says(*pair) == Verdict::Faster).count();
        format!("wins {won} of {}", of_it.len())
    };
    if most == 0.0 {
        return format!("{} at once, nothing was deferred", won(0.0));
    }
    format!(
        "{} at once, {} after {} of other traffic",
        won(0.0),
        won(most),
        super::short_bytes(most as usize)
    )
}

/// A cell in words.
fn place(key: &cachewise_measure::CellKey) -> String {
    let read = key.reader.unwrap_or(0.0) * 100.0;
    let when = match (key.axes.get(DELAY_BYTES), key.axes.get(DELAY_NS)) {
        (Some(bytes), _) if *bytes > 0.0 => {
            format!("after {} of other traffic", super::short_bytes(*bytes as usize))
        }
        (_, Some(time)) => format!("after {time:.0} ns"),
        _ => "at once".to_owned(),
    };
    let from = key.destination.as_deref().map_or(String::new(), |level| format!(" in {level}"));
    format!("with {}{from}, {read:.1} % read {when}", super::short_bytes(key.size as usize))
}

#[cfg(test)]
mod tests {
    use super::common::made_up::{cell, noisy, row};
    use super::*;

    fn point(delay: f64, temporal: f64, nt: f64, noise: f64) -> Vec<Row> {
        let mut key = cell("copy", 4096, BY_TRAFFIC);
        key.reader = Some(1.0);
        key.destination = Some("DRAM".to_owned());
        key.axes.insert(DELAY_BYTES.to_owned(), delay);
        let mut rows = vec![
            row(&key, "copy.avx", temporal),
            row(&key, LIBC, temporal),
            noisy(&key, "copy.avx.nt", nt, noise),
        ];
        for row in &mut rows {
            row.reference = "copy.avx".to_owned();
        }
        rows
    }

    #[test]
    fn the_question_is_answered_by_the_rows() {
        let both = [point(0.0, 100.0, 180.0, 0.001), point(65536.0, 100.0, 60.0, 0.001)].concat();
        let texts = verdicts(&both);
        assert!(texts[0].contains("Yes: with 4K in DRAM, 100.0 % read at once"), "{texts:?}");
        assert!(texts[0].contains("copy.avx.nt takes 1.80 ("), "{texts:?}");
        assert!(texts[0].contains("wins in 1 of 2 cells, loses in 1"), "{texts:?}");
        assert!(texts[1].contains("after 64K of other traffic"), "{texts:?}");
        assert!(texts[2].contains("wins 0 of 1 at once, wins 1 of 1 after 64K"), "{texts:?}");

        let never = verdicts(&point(0.0, 100.0, 60.0, 0.001));
        assert!(never[0].contains("No: around the cache wins in 1 of 1"), "{never:?}");
        assert!(never[2].contains("nothing was deferred"), "{never:?}");

        let barely = verdicts(&point(0.0, 100.0, 103.0, 0.001));
        assert!(barely[0].contains("Cannot tell here"), "one of many cells, by 3 %: {barely:?}");

        let unclear = verdicts(&point(0.0, 100.0, 100.0, 0.5));
        assert!(unclear[0].contains("Cannot tell here"), "{unclear:?}");
        assert!(unclear[1].starts_with("No benefit"), "{unclear:?}");
        assert!(verdicts(&[]).is_empty());
    }

    #[test]
    fn grids_grow_with_patience() {
        let caches = cachewise_measure::Machine::describe().caches;
        let cells = |(sizes, fractions, bytes, times): Grid| {
            sizes.len() * fractions.len() * (bytes.len() + times.len())
        };
        let (classic, quick) = (grid(false, true, &caches), grid(true, false, &caches));
        assert_eq!(classic.0, [4096, 100 * 4096], "the seed's 100 pages");
        assert!(cells(classic) < cells(quick.clone()));
        assert!(cells(quick) < cells(grid(false, false, &caches)));
    }
}
