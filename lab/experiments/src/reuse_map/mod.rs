//! `reuse-map`: is there any workload that is faster by temporal stores than by non-temporal ones?
//! (000.14)
//!
//! The whole map: how much of the destination is read afterwards, after how much other traffic or
//! time, at which size, for copy and for zero. The reference is the kernel with temporal stores, so
//! that a ratio of 1 is the break-even line; libc stands beside both.

mod hints;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "reuse-map",
    formerly: &["hints"],
    about: "non-temporal against temporal stores, by size and by how much is read how late; what hints do",
    seeds: &["000.14", "001.6"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred",
    tables,
    figures: || [figures(), hints::figures()].concat(),
    run: Some(|setting| {
        run(setting)?;
        let options = setting.options;
        // Whole libraries, whose buffers are warm.
        let is_map = options.classic || options.kernels.is_some() || !options.placements.is_empty();
        if is_map { Ok(()) } else { hints::run(setting) }
    }),
    ..PLAIN
};

const BY_TRAFFIC: &str = "read after traffic";
const BY_TIME: &str = "read after time";

fn figures() -> Vec<Figure> {
    let map = |title: &str, x, states| Figure {
        y: Some("reader".to_owned()),
        ..Figure::new(title, FigureKind::HeatMap, x, "total_ratio")
            .by(&["size", "destination"])
            .of(states)
            .among(TABLE.iter().filter(|kernel| is_candidate(kernel)).map(|kernel| kernel.name))
    };
    let title = "Non-temporal over temporal stores: operation and reader, after";
    vec![
        map(&format!("{title} other traffic"), DELAY_BYTES, BY_TRAFFIC),
        map(&format!("{title} a time"), DELAY_NS, BY_TIME),
    ]
}

fn is_candidate(kernel: &Kernel) -> bool {
    kernel.is_non_temporal() && matches!(kernel.operation(), Operation::Copy | Operation::Zero)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    size: usize,
    source: Level,
    destination: Level,
    touched: f64,
    delay: Delay,
}

fn run(setting: &mut Setting) -> Result {
    let sides = sides(setting)?;
    let points = points(setting);
    // A sample is as long as the operation demands, and longer by its delay.
    let weight = |(point, _): &(Point, &Vec<Routine>)| match point.delay {
        Delay::Bytes(bytes) => 1e6 + (bytes + point.size) as f64,
        _ => 1e6 + point.size as f64,
    };
    let cells = points.iter().flat_map(|point| sides.iter().map(move |side| (*point, side)));
    setting.through(cells.collect(), weight, |setting, (point, side)| {
        let (label, axis, value) = match point.delay {
            Delay::None => (BY_TRAFFIC, DELAY_BYTES, 0.0),
            Delay::Bytes(bytes) => (BY_TRAFFIC, DELAY_BYTES, bytes as f64),
            Delay::Nanoseconds(time) => (BY_TIME, DELAY_NS, time),
        };
        let placed = Cell::placed(point.source, point.destination);
        let cell = Cell { label: label.into(), ..placed }.read_after(point.delay, point.touched);
        let operation = side[0].function.operation();
        let mut task = setting.task(operation, point.size, cell);
        // The delay is no part of the figure: a few calls of a long one will do.
        task.plan.max_sample_ns = if setting.options.quick { 1e7 } else { 5e7 };
        setting.record(&task, side, &[(axis, value)])?;
        Ok(format!("{operation} {}, {:.0} % read", bytes(point.size), point.touched * 100.0))
    })
}

/// Each operation's two sides: the reference with temporal stores, libc, and everybody with
/// non-temporal ones. The widest kernels here, the period's with `--classic`, or those asked for.
fn sides(setting: &mut Setting) -> Result<Vec<Vec<Routine>>> {
    let operations = [Operation::Copy, Operation::Zero];
    let features = setting.bench.features;
    let classic = setting.options.classic;
    let own = || match classic {
        true => {
            ["copy.mmx.pf320.vlasenko", "copy.mmx.nt.pf320.vlasenko", "zero.mmx", "zero.mmx.nt"]
                .into_iter()
                .filter_map(find)
                .collect()
        }
        false => operations
            .iter()
            .filter_map(|&operation| widest(operation, features))
            .flat_map(|(temporal, non_temporal)| [temporal, non_temporal])
            .collect(),
    };
    let here = asked_or(setting, &operations, own)?;
    let mut sides = Vec::new();
    for operation in operations {
        let of_it = || here.iter().copied().filter(|kernel| kernel.operation() == operation);
        let non_temporal: Vec<_> = of_it().filter(|kernel| kernel.is_non_temporal()).collect();
        let Some(first) = non_temporal.first() else { continue };
        let temporal = of_it()
            .find(|kernel| !kernel.is_non_temporal())
            .or_else(|| temporal_twin(first))
            .or_else(|| widest(operation, features).map(|(temporal, _)| temporal));
        let Some(temporal) = temporal else { continue };
        let mut routines = vec![Routine::from(temporal), libc_reference(operation)];
        routines.extend(non_temporal.into_iter().map(Routine::from));
        sides.push(routines);
    }
    if sides.is_empty() {
        return nothing(
            "the map compares non-temporal stores with temporal ones, and none of the kernels \
             chosen copies or zeroes by them",
        );
    }
    Ok(sides)
}

fn points(setting: &Setting) -> Vec<Point> {
    let options = setting.options;
    let caches = &setting.bench.machine.caches;
    let (sizes, fractions, delays, times) = spans(options.quick, options.classic, caches);
    let sizes = setting.sizes_or(sizes);
    let own: &[Level] = if options.classic { &[Level::Dram] } else { &[Level::Dram, Level::L2] };
    let places = setting.placements_or(own.iter().copied());
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
type Spans = (Vec<usize>, Vec<f64>, Vec<usize>, Vec<f64>);

fn spans(quick: bool, classic: bool, caches: &Caches) -> Spans {
    let line = LINE as f64 / PAGE_SIZE as f64;
    let (l1, l2, llc) = (caches.l1d.bytes, caches.l2.bytes, caches.llc.bytes);
    if classic {
        // The seed's author in 2005: 100 copied pages read at once, or deferred.
        return (vec![PAGE_SIZE, 100 * PAGE_SIZE], vec![line, 1.0], vec![0, 2 * llc], Vec::new());
    }
    if quick {
        let fractions = vec![line, 0.25, 1.0];
        return (vec![PAGE_SIZE, 1 << 20], fractions, vec![0, l2, 2 * llc], vec![20_000.0]);
    }
    (
        vec![PAGE_SIZE, 64 << 10, 1 << 20, 16 << 20],
        vec![line, 0.0625, 0.25, 0.5, 1.0],
        vec![0, l1, l2, llc / 4, llc, 2 * llc],
        vec![1_000.0, 100_000.0],
    )
}

/// One table per candidate other than the reference, operation, size and place; then the hints as a matrix.
fn tables(rows: &[Row]) -> Vec<Table> {
    let is_hint = |row: &Row| ["read", "beside"].iter().any(|state| row.cell.state == *state);
    let (hints, rows): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(is_hint);
    let hints = cachewise_report::matrix::tables(&hints);
    let compared = rows.iter().filter(|row| row.candidate != row.reference);
    groups(compared, |row| (title(&row.cell), row.candidate.as_str()))
        .into_iter()
        .map(|((title, candidate), of_map)| {
            let mut table = table(&title, candidate, &of_map);
            let title = |row: &&Row| self::title(&row.cell) == title;
            table.remarks.extend(residency(rows.iter().filter(title)));
            table
        })
        .chain(hints)
        .collect()
}

fn title(key: &CellKey) -> String {
    let place = key.levels().map_or(String::new(), |levels| format!(", {levels}"));
    format!("{} of {}{place}", key.operation, bytes(key.size))
}

/// A column, traffic first, then times; and its head.
fn delay(row: &Row) -> Option<((bool, f64), String)> {
    Some(match (row.axis(DELAY_NS), row.axis(DELAY_BYTES).unwrap_or(0.0)) {
        (Some(ns), _) => ((true, ns), format!("after {}", time(ns))),
        (None, 0.0) => ((false, 0.0), "at once".to_owned()),
        (None, traffic) => ((false, traffic), format!("after {}", size_text(traffic))),
    })
}

fn table(title: &str, candidate: &str, rows: &[&Row]) -> Table {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.cell.reader.partial_cmp(&b.cell.reader).unwrap_or(Ordering::Equal));
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    let share = |row: &Row| format!("{:.1} %", row.cell.reader.unwrap_or(0.0) * 100.0);
    let cell = |row: &Row| {
        cost::ratio(row).map_or(String::new(), |ratio| {
            let mark = match ratio.verdict(cost::MARGIN) {
                Verdict::Faster => "<",
                Verdict::Slower => ">",
                Verdict::Same | Verdict::Unknown => "~",
            };
            format!("{:.2} {mark}", ratio.median)
        })
    };
    let caption = format!("{candidate} over {reference}, {title}");
    let mut table = grid(caption, ">read", &rows, share, delay, cell);
    let by_verdict = |wanted| rows.iter().filter(|row| cost::verdict(row) == Some(wanted)).count();
    let (wins, losses) = (by_verdict(Verdict::Faster), by_verdict(Verdict::Slower));
    table.remark(format!(
        "operation and reader over {reference}'s in the same rounds: < faster ({wins}), > slower \
         ({losses}), ~ cannot tell ({})",
        rows.len() - wins - losses
    ));
    table
}
