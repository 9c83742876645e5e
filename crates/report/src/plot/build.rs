//! From rows and a [`Figure`] to a [`Plot`].

use super::value::{Coordinate, Quantity, Spread, Unit, axis_title, coordinate};
use super::{Axis, Key, Panel, Plot, Point, Rule, Series};
use crate::cost::median;
use crate::units::bytes;
use cachewise_measure::record::{distinct, groups};
use cachewise_measure::{CellKey, Figure, FigureKind, Machine, Record, Row};
use std::collections::{BTreeMap, BTreeSet};

/// So many candidates are drawn before anybody asks, the reference among them.
const SHOWN: usize = 7;

/// The figures of a record: those it names, or for records from before they named any, speed
/// against size (or bars, where there is one size) and whole cost where there are parts.
pub fn figures(record: &Record) -> Vec<Figure> {
    if !record.header.figures.is_empty() {
        return record.header.figures.clone();
    }
    let mut found = Vec::new();
    for state in distinct(record.rows.iter().map(|row| row.cell.state.as_str())) {
        let of_state: Vec<&Row> =
            record.rows.iter().filter(|row| row.cell.state == state).collect();
        let sizes: BTreeSet<u64> = of_state.iter().map(|row| row.cell.size).collect();
        let parts = of_state.iter().any(|row| has_parts(row));
        let (kind, x) = match sizes.len() {
            0..=2 => (FigureKind::Bars, "candidate"),
            _ => (FigureKind::Curve, "size"),
        };
        let (title, value) = match (parts, kind) {
            (true, FigureKind::Curve) => ("Whole cost over the reference's by size", "total_ratio"),
            (true, _) => ("Whole cost", "cost"),
            (false, FigureKind::Curve) => ("Speed by size", "gbps"),
            (false, _) => ("Speed", "gbps"),
        };
        found.push(Figure::new(&format!("{title}: {state}"), kind, x, value).of(state));
    }
    found
}

/// Those of a record's figures that it has rows for.
pub fn plots(record: &Record) -> Vec<Plot> {
    figures(record).iter().filter_map(|figure| plot(record, figure)).collect()
}

fn has_parts(row: &Row) -> bool {
    !row.reader_ns.is_empty() || !row.bystander_ns.is_empty()
}

/// The rows a figure is about: of the first experiment in the record that has all the candidates
/// it names (the one in the settings first), in the states it names.
fn rows_of<'r>(record: &'r Record, figure: &Figure) -> Vec<&'r Row> {
    let rows = record.rows.iter().map(|row| row.experiment.as_str());
    let experiments = distinct(record.experiment().into_iter().chain(rows));
    let fits = |row: &&Row| {
        row.cell.state.starts_with(&figure.states)
            && (figure.candidates.is_empty() || figure.candidates.contains(&row.candidate))
            && (figure.kind != FigureKind::Histogram || row.histogram.is_some())
    };
    for experiment in experiments {
        let rows: Vec<&Row> =
            record.rows.iter().filter(|row| row.experiment == experiment).filter(fits).collect();
        let has = |name: &String| rows.iter().any(|row| row.candidate == *name);
        if !rows.is_empty() && figure.candidates.iter().all(has) {
            return rows;
        }
    }
    record.rows.iter().filter(fits).collect()
}

/// Coordinates that set panels apart where the figure's own leave several cells at one place.
const FURTHER: [&str; 6] = ["state", "source", "destination", "size", "reader", "bystander"];

/// The figure's panels, and what else is needed so that no two cells share a place.
fn panels_of(rows: &[&Row], figure: &Figure) -> Vec<String> {
    let mut panels: Vec<String> =
        figure.panels.iter().filter(|name| *name != "operation").cloned().collect();
    let conflict = |panels: &[String]| -> Option<String> {
        // Rows of one candidate stand near each other; a record's cells are few thousand.
        let mut seen: BTreeMap<String, &Row> = BTreeMap::new();
        for row in rows {
            let mut place = format!("{} {}", row.candidate, row.cell.operation);
            for name in panels.iter().chain([&figure.x]).chain(&figure.y) {
                place.push_str(&format!(" {:?}", coordinate(row, name)));
            }
            let Some(other) = seen.insert(place, row) else { continue };
            if other.cell == row.cell {
                continue;
            }
            let axes = row.cell.axes.keys().chain(other.cell.axes.keys()).map(String::as_str);
            return FURTHER
                .into_iter()
                .chain(axes)
                .find(|name| coordinate(row, name) != coordinate(other, name))
                .map(str::to_owned);
        }
        None
    };
    while let Some(name) = conflict(&panels) {
        panels.push(name);
    }
    panels
}

/// The panel's name: operation, then what the panel coordinates are.
fn panel_title(row: &Row, panels: &[String]) -> String {
    let mut parts = vec![row.cell.operation.clone()];
    let wants = |name: &str| panels.iter().any(|panel| panel == name);
    let mut skip_destination = false;
    for name in panels {
        let text = match (name.as_str(), coordinate(row, name)) {
            ("source", Some(Coordinate::Label(source))) if wants("destination") => {
                skip_destination = true;
                match &row.cell.destination {
                    Some(destination) => format!("{source} to {destination}"),
                    None => source,
                }
            }
            ("destination", _) if skip_destination => continue,
            ("size", Some(Coordinate::Number(_))) => bytes(row.cell.size),
            ("reader", Some(Coordinate::Number(share))) => {
                format!("{:.0} % of it read", share * 100.0)
            }
            ("bystander", Some(Coordinate::Number(size))) => {
                format!("beside {}", bytes(size as u64))
            }
            (_, Some(Coordinate::Number(value))) => {
                format!("{} {}", axis_title(name), Unit::of_axis(name).write(value))
            }
            (_, Some(Coordinate::Label(text))) => text,
            (_, None) => continue,
        };
        if !text.is_empty() {
            parts.push(text);
        }
    }
    parts.join(", ")
}

/// An axis over the rows.
fn axis(rows: &[&Row], name: &str) -> Axis {
    let found: Vec<Coordinate> = rows.iter().filter_map(|row| coordinate(row, name)).collect();
    let mut names: Vec<String> = Vec::new();
    let mut places: Vec<f64> = Vec::new();
    for place in &found {
        match place {
            Coordinate::Number(value) => places.push(*value),
            Coordinate::Label(text) if !names.contains(text) => names.push(text.clone()),
            Coordinate::Label(_) => {}
        }
    }
    if !names.is_empty() {
        places = (0..names.len()).map(|index| index as f64).collect();
    }
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let [least, most] = [places.first(), places.last()].map(|end| end.copied().unwrap_or(0.0));
    let unit = Unit::of_axis(name);
    let wide = least > 0.0 && most / least >= 16.0;
    let log = names.is_empty() && least > 0.0 && (wide || unit == Unit::Bytes);
    Axis { title: axis_title(name), unit, names, log, places }
}

fn place(row: &Row, name: &str, axis: &Axis) -> Option<f64> {
    match coordinate(row, name)? {
        Coordinate::Number(value) => Some(value),
        Coordinate::Label(text) => {
            axis.names.iter().position(|known| *known == text).map(|index| index as f64)
        }
    }
}

/// Where the operands stop fitting the caches.
fn rules(figure: &Figure, x: &Axis, machine: &Machine) -> Vec<Rule> {
    let (Some(first), Some(last)) = (x.places.first(), x.places.last()) else { return Vec::new() };
    if figure.x != "size" {
        return Vec::new();
    }
    let caches = &machine.caches;
    let mut levels = vec![("L1", caches.l1d.bytes), ("L2", caches.l2.bytes)];
    if let Some(usable) = caches.llc_usable {
        levels.push(("LLC, usable", usable));
    }
    if caches.llc.bytes != caches.l2.bytes {
        levels.push(("LLC", caches.llc.bytes));
    }
    levels
        .into_iter()
        .map(|(name, size)| Rule { at: size as f64, name: name.to_owned() })
        .filter(|rule| *first <= rule.at && rule.at <= *last)
        .collect()
}

/// A candidate's name in the legend: without its operation where panels say which.
fn key_name(row: &Row, several_operations: bool) -> String {
    let prefix = format!("{}.", row.cell.operation);
    match row.candidate.strip_prefix(&prefix) {
        Some(technique) if several_operations => technique.to_owned(),
        _ => row.candidate.clone(),
    }
}

/// Draws nothing yet: collects the figure's rows into panels and series. `None` where the record
/// has no row for it.
pub fn plot(record: &Record, figure: &Figure) -> Option<Plot> {
    let value = Quantity::named(&figure.value);
    let rows = rows_of(record, figure);
    let has_place = |row: &&Row| {
        let mut axes = figure.y.iter().chain([&figure.x]);
        value.of(row).is_some() && axes.all(|name| coordinate(row, name).is_some())
    };
    let is_drawn = |row: &&Row| figure.kind == FigureKind::Histogram || has_place(row);
    let rows: Vec<&Row> = rows.into_iter().filter(is_drawn).collect();
    let operations: BTreeSet<&str> = rows.iter().map(|row| row.cell.operation.as_str()).collect();
    let short = operations.len() > 1;
    // One that no other is compared with is not the reference, unless it is drawn alone.
    let alone = rows.iter().all(|row| row.candidate == rows[0].candidate);
    let serves =
        |name: &str| alone || rows.iter().any(|row| row.reference == name && row.candidate != name);
    let mut keys: Vec<Key> = Vec::new();
    for row in &rows {
        let name = key_name(row, short);
        if !keys.iter().any(|key| key.name == name) {
            let reference = row.candidate == row.reference && serves(&row.candidate);
            keys.push(Key { name, reference, shown: true, colour: 0 });
        }
    }
    if !figure.candidates.is_empty() {
        let order = |key: &Key| {
            figure.candidates.iter().position(|name| {
                *name == key.name || name.split_once('.').is_some_and(|(_, rest)| rest == key.name)
            })
        };
        keys.sort_by_key(|key| order(key).unwrap_or(usize::MAX));
    }
    let panel_names = panels_of(&rows, figure);
    let mut panels: Vec<Panel> = Vec::new();
    for (title, members) in groups(rows.iter().copied(), |row| panel_title(row, &panel_names)) {
        let x = axis(&members, &figure.x);
        let y = figure.y.as_deref().map(|name| axis(&members, name));
        let mut series: Vec<Series> = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let mine: Vec<&Row> =
                members.iter().copied().filter(|row| key_name(row, short) == key.name).collect();
            if mine.is_empty() {
                continue;
            }
            let points = points(&mine, figure, &value, &x, y.as_ref());
            let histogram = (figure.kind == FigureKind::Histogram).then(|| merged(&mine)).flatten();
            series.push(Series { key: index, points, histogram });
        }
        let rules = rules(figure, &x, &record.header.machine);
        panels.push(Panel { title, x, y, series, rules });
    }
    panels
        .retain(|panel| panel.series.iter().any(|s| !s.points.is_empty() || s.histogram.is_some()));
    if panels.is_empty() {
        return None;
    }
    let mut plot = Plot { title: figure.title.clone(), kind: figure.kind, value, keys, panels };
    if figure.kind == FigureKind::Curve && figure.candidates.is_empty() {
        choose_shown(&mut plot);
    }
    super::agree_on_colours(std::slice::from_mut(&mut plot));
    Some(plot)
}

fn points(
    rows: &[&Row],
    figure: &Figure,
    value: &Quantity,
    x: &Axis,
    y: Option<&Axis>,
) -> Vec<Point> {
    let mut found: Vec<(f64, f64, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some(at_x) = place(row, &figure.x, x) else { continue };
        let at_y = match (&figure.y, y) {
            (Some(name), Some(axis)) => match place(row, name, axis) {
                Some(at) => at,
                None => continue,
            },
            _ => 0.0,
        };
        match found.iter_mut().find(|(a, b, _)| *a == at_x && *b == at_y) {
            Some((_, _, members)) => members.push(row),
            None => found.push((at_x, at_y, vec![row])),
        }
    }
    found.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal));
    found
        .into_iter()
        .filter_map(|(x, y, members)| {
            let spreads: Vec<Spread> = members.iter().filter_map(|row| value.of(row)).collect();
            let parts = (*value == Quantity::Cost).then(|| {
                let part = |of: fn(&Row) -> &Vec<f64>| {
                    let medians = members.iter().map(|row| median(of(row)));
                    let finite: Vec<f64> = medians.filter(|m| m.is_finite()).collect();
                    // Below 0 by noise alone, or the sum would have no value.
                    median(&finite).max(0.0)
                };
                let all: [fn(&Row) -> &Vec<f64>; 3] =
                    [|row| &row.operation_ns, |row| &row.reader_ns, |row| &row.bystander_ns];
                all.map(part)
            });
            Some(Point { x, y, value: Spread::pooled(&spreads)?, parts })
        })
        .collect()
}

/// Histograms with the same edges added up; of others the first.
fn merged(rows: &[&Row]) -> Option<cachewise_measure::Histogram> {
    let mut all = rows.iter().filter_map(|row| row.histogram.as_ref()).filter(|histogram| {
        histogram.edges_ns.len() == histogram.counts.len() + 1
            && histogram.edges_ns.iter().all(|edge| edge.is_finite())
            && histogram.edges_ns.windows(2).all(|pair| pair[0] < pair[1])
    });
    let mut sum = all.next()?.clone();
    for other in all.filter(|other| other.edges_ns == sum.edges_ns) {
        sum.counts.iter_mut().zip(&other.counts).for_each(|(total, n)| *total += n);
        sum.above += other.above;
    }
    Some(sum)
}

/// Leaves on: the reference, and those that are best at the most places, then the nearest to it.
fn choose_shown(plot: &mut Plot) {
    if plot.keys.len() <= SHOWN {
        return;
    }
    let better = plot.value.more_is_better().unwrap_or(true);
    // Per key: places at which it is best, sum of log distances to the best, places.
    let mut scores = vec![(0_usize, 0.0_f64, 0_usize); plot.keys.len()];
    for panel in &plot.panels {
        for &place in &panel.x.places {
            let mut here: Vec<(usize, f64)> = panel
                .series
                .iter()
                .filter_map(|series| {
                    let point = series.points.iter().find(|point| point.x == place)?;
                    (point.value.mid > 0.0).then_some((series.key, point.value.mid))
                })
                .collect();
            here.sort_by(|a, b| if better { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
            let Some(&(best, top)) = here.first() else { continue };
            scores[best].0 += 1;
            for (key, value) in here {
                scores[key].1 += (value / top).ln().abs();
                scores[key].2 += 1;
            }
        }
    }
    let mut order: Vec<usize> = (0..plot.keys.len()).collect();
    order.sort_by(|&a, &b| {
        let mean = |key: usize| scores[key].1 / scores[key].2.max(1) as f64;
        (plot.keys[b].reference, scores[b].0)
            .cmp(&(plot.keys[a].reference, scores[a].0))
            .then(mean(a).total_cmp(&mean(b)))
    });
    for (rank, key) in order.iter().enumerate() {
        plot.keys[*key].shown = rank < SHOWN;
    }
    // The legend goes by position, so those that are seen come first.
    let position = |old: usize| order.iter().position(|key| *key == old).unwrap_or(old);
    for panel in &mut plot.panels {
        for series in &mut panel.series {
            series.key = position(series.key);
        }
        panel.series.sort_by_key(|series| series.key);
    }
    plot.keys = order.iter().map(|key| plot.keys[*key].clone()).collect();
}

/// A cell's coordinates for people, axes included.
pub fn cell_caption(cell: &CellKey) -> String {
    let mut text = crate::matrix::caption(cell);
    let placed = cell.source.is_some() || cell.destination.is_some();
    if placed && !matches!(cell.state.as_str(), "" | "placed" | "at") {
        text.push_str(&format!(", {}", cell.state));
    }
    for (name, value) in &cell.axes {
        text.push_str(&format!(", {} {}", axis_title(name), Unit::of_axis(name).write(*value)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{figure, record, row};
    use super::*;

    fn curve(rows: Vec<Row>) -> Plot {
        plot(&record(rows), &figure(FigureKind::Curve, "size", "gbps")).expect("a plot")
    }

    #[test]
    fn every_coordinate_that_differs_sets_panels_apart() {
        let mut rows = vec![row("copy", 4096, "warm", "libc"), row("copy", 8192, "warm", "libc")];
        rows.push(row("copy", 4096, "cold", "libc"));
        let drawn = curve(rows.clone());
        let titles: Vec<_> = drawn.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["copy, warm", "copy, cold"]);
        // What follows from another coordinate sets nothing apart.
        rows.truncate(2);
        rows[0].cell.bystander = Some(1);
        rows[1].cell.bystander = Some(2);
        let drawn = curve(rows);
        assert_eq!(drawn.panels.len(), 1);
        assert_eq!(drawn.panels[0].series[0].points.len(), 2);
    }

    #[test]
    fn launches_of_one_cell_are_pooled() {
        let mut second = row("copy", 4096, "warm", "libc");
        second.operation_ns.iter_mut().for_each(|time| *time *= 2.0);
        let drawn = curve(vec![row("copy", 4096, "warm", "libc"), second]);
        let point = &drawn.panels[0].series[0].points;
        assert_eq!(point.len(), 1);
        let Spread { mid, low, high } = point[0].value;
        assert!(low < mid && mid < high);
    }

    #[test]
    fn many_candidates_are_drawn_when_asked() {
        let mut rows = Vec::new();
        for index in 0..12 {
            for size in [1024, 4096] {
                let mut row = row("copy", size, "warm", &format!("copy.k{index}"));
                row.operation_ns.iter_mut().for_each(|time| *time *= 1.0 + f64::from(index));
                rows.push(row);
            }
        }
        rows.push(row("copy", 1024, "warm", "libc"));
        let drawn = curve(rows);
        assert_eq!(drawn.keys.iter().filter(|key| key.shown).count(), SHOWN);
        assert!(drawn.keys[0].reference && drawn.keys[0].name == "libc");
        assert_eq!(drawn.keys[1].name, "copy.k0");
        for series in &drawn.panels[0].series {
            let time = 1024.0 / series.points[0].value.mid;
            let name = &drawn.keys[series.key].name;
            let index: f64 = name.strip_prefix("copy.k").map_or(1.0, |n| n.parse().expect("n"));
            assert!((time / (1.0 + index) - time_of_row()).abs() < 1.0, "{name} {time}");
        }
    }

    /// Of a kernel with the factor one; libc's is twice that.
    fn time_of_row() -> f64 {
        median(&row("copy", 1024, "warm", "copy.k0").operation_ns)
    }

    #[test]
    fn none_is_the_reference_where_each_is_compared_with_itself() {
        let of = |name: &str| {
            let mut row = row("copy", 1024, "warm", name);
            row.reference.clone_from(&row.candidate);
            row
        };
        let other = |name: &str| Row { reference: "before".to_owned(), ..of(name) };
        let drawn = curve(vec![of("libc"), other("libc"), of("rep.movsb")]);
        assert!(drawn.keys.iter().all(|key| !key.reference), "{:?}", drawn.keys);
        assert_ne!(drawn.keys[0].colour, drawn.keys[1].colour);
        assert!(curve(vec![of("libc")]).keys[0].reference);
    }

    #[test]
    fn records_from_before_figures_get_some() {
        let rows = [256, 512, 1024].map(|size| row("copy", size, "warm", "libc"));
        let found = figures(&record(rows.to_vec()));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind, found[0].value.as_str()), (FigureKind::Curve, "gbps"));
        let found = figures(&record(vec![row("copy", 256, "warm", "libc")]));
        assert_eq!(found[0].kind, FigureKind::Bars);
    }

    #[test]
    fn a_figure_without_rows_is_none() {
        let one = record(vec![row("copy", 4096, "warm", "libc")]);
        assert_eq!(plot(&one, &figure(FigureKind::Curve, "delay_ns", "ns")), None);
        assert_eq!(plot(&one, &figure(FigureKind::Curve, "size", "nothing")), None);
        assert_eq!(plot(&one, &figure(FigureKind::Histogram, "size", "ns")), None);
        assert_eq!(plot(&record(vec![]), &figure(FigureKind::Bars, "candidate", "ns")), None);
    }
}
