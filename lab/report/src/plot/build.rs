//! From rows and a [`Figure`] to a [`Plot`].

use super::data::{Axis, Key, Panel, Plot, Point, Series, agree_on_colours};
use super::value::{Coordinate, Quantity, Spread, Unit, axis_title, coordinate};
use crate::cost::median;
use crate::units::bytes;
use cachewise_measure::record::names::LEAST_RATIO;
use cachewise_measure::record::{distinct, groups};
use cachewise_measure::{CellKey, Figure, FigureKind, Machine, Record, Row};
use std::collections::BTreeMap;

/// Candidates that are drawn at first, the reference among them.
const SHOWN: usize = 7;

/// The figures of a record: those it names, or for records from before they named any, speed
/// against size (or bars, where there is one size) and whole cost where there are parts.
pub fn figures(record: &Record) -> Vec<Figure> {
    if !record.header.figures.is_empty() {
        return record.header.figures.clone();
    }
    let figure = |state: &str| {
        let of_state = || record.rows.iter().filter(|row| row.cell.state == state);
        let is_curve = crate::rows::sorted(of_state().map(|row| row.cell.size)).len() > 2;
        let has_parts = |row: &Row| !row.reader_ns.is_empty() || !row.bystander_ns.is_empty();
        let (title, value) = match (of_state().any(has_parts), is_curve) {
            (true, true) => ("Whole cost over the reference's by size", "total_ratio"),
            (true, false) => ("Whole cost", "cost"),
            (false, true) => ("Speed by size", "gbps"),
            (false, false) => ("Speed", "gbps"),
        };
        let title = format!("{title}: {state}");
        let figure = match is_curve {
            true => Figure::curve(&title, "size", value),
            false => Figure::bars(&title, value),
        };
        figure.of(state)
    };
    let states = record.rows.iter().map(|row| row.cell.state.as_str());
    distinct(states).into_iter().map(figure).collect()
}

/// Plots of a record's figures that have rows. Histograms of older records are tables alone.
pub fn plots(record: &Record) -> Vec<Plot> {
    let figures = figures(record).into_iter();
    figures
        .filter(|figure| figure.kind != FigureKind::Histogram)
        .filter_map(|figure| plot(record, &figure))
        .collect()
}

/// The rows a figure is about: of the first experiment in the record that has all the candidates
/// it names (the one in the settings first), in the states it names.
fn rows_of<'r>(record: &'r Record, figure: &Figure) -> Vec<&'r Row> {
    let fits = |row: &&Row| {
        figure.shows(&row.cell.state)
            && (figure.candidates.is_empty() || figure.candidates.contains(&row.candidate))
    };
    let rows: Vec<&Row> = record.rows.iter().filter(fits).collect();
    let experiments = rows.iter().map(|row| row.experiment.as_str());
    for experiment in distinct(record.experiment().into_iter().chain(experiments)) {
        let rows: Vec<&Row> =
            rows.iter().copied().filter(|row| row.experiment == experiment).collect();
        let has = |name: &String| rows.iter().any(|row| row.candidate == *name);
        if !rows.is_empty() && figure.candidates.iter().all(has) {
            return rows;
        }
    }
    rows
}

/// Coordinates that set panels apart where the figure's own leave several cells at one place.
const FURTHER: [&str; 6] = ["state", "source", "destination", "size", "reader", "bystander"];

/// The coordinates whose values each get a panel: the figure's, and what else is needed so that no two
/// cells share a place.
fn panels_of(rows: &[&Row], figure: &Figure) -> Vec<String> {
    let mut panels = figure.panels.clone();
    panels.retain(|name| name != "operation");
    while let Some(name) = further_panel(rows, figure, &panels) {
        panels.push(name);
    }
    panels
}

/// A coordinate in which two cells at one place differ.
fn further_panel(rows: &[&Row], figure: &Figure, panels: &[String]) -> Option<String> {
    let mut seen: BTreeMap<String, &Row> = BTreeMap::new();
    for row in rows {
        let names = panels.iter().chain([&figure.x]).chain(&figure.y);
        let places: Vec<_> = names.map(|name| coordinate(row, name)).collect();
        let place = format!("{} {} {places:?}", row.candidate, row.cell.operation);
        let Some(other) = seen.insert(place, row).filter(|other| other.cell != row.cell) else {
            continue;
        };
        let axes = row.cell.axes.keys().chain(other.cell.axes.keys()).map(String::as_str);
        let differs = |name: &&str| coordinate(row, name) != coordinate(other, name);
        return FURTHER.into_iter().chain(axes).find(differs).map(str::to_owned);
    }
    None
}

/// The panel's name: operation, then what the panel coordinates are.
fn panel_title(row: &Row, panels: &[String], flags: &[&String]) -> String {
    let wants = |name: &str| panels.iter().any(|panel| panel == name);
    let moves = wants("source") && wants("destination") && row.cell.source.is_some();
    let part = |name: &String| {
        Some(match (name.as_str(), coordinate(row, name)?) {
            ("source", Coordinate::Label(source)) if moves => match row.cell.destination {
                Some(destination) => format!("{source} to {destination}"),
                None => source,
            },
            ("destination", _) if moves => return None,
            ("size", Coordinate::Number(_)) => bytes(row.cell.size),
            ("reader", Coordinate::Number(share)) => format!("{:.0} % of it read", share * 100.0),
            ("bystander", Coordinate::Number(size)) => format!("beside {}", bytes(size as u64)),
            (_, Coordinate::Number(value)) if flags.contains(&name) => {
                format!("{}: {}", axis_title(name), if value == 1.0 { "yes" } else { "no" })
            }
            (_, Coordinate::Number(value)) => {
                format!("{} {}", axis_title(name), Unit::of(name).write(value))
            }
            (_, Coordinate::Label(text)) => text,
        })
    };
    let parts = panels.iter().filter_map(part).filter(|part| !part.is_empty());
    std::iter::once(row.cell.operation.clone()).chain(parts).collect::<Vec<_>>().join(", ")
}

/// Coordinates that are 0 or 1.
fn flags<'n>(rows: &[&Row], names: &'n [String]) -> Vec<&'n String> {
    let values = |name: &str| {
        distinct(rows.iter().filter_map(|row| row.axis(name))).into_iter().collect::<Vec<f64>>()
    };
    let is_flag = |name: &&String| {
        let values = values(name);
        values.len() == 2 && values.iter().all(|value| [0.0, 1.0].contains(value))
    };
    names.iter().filter(is_flag).collect()
}

/// An axis over the rows.
fn axis(rows: &[&Row], name: &str) -> Axis {
    let mut names: Vec<String> = Vec::new();
    let mut places: Vec<f64> = Vec::new();
    for place in rows.iter().filter_map(|row| coordinate(row, name)) {
        match place {
            Coordinate::Number(value) => places.push(value),
            Coordinate::Label(text) if !names.contains(&text) => names.push(text),
            Coordinate::Label(_) => {}
        }
    }
    if !names.is_empty() {
        places = (0..names.len()).map(|index| index as f64).collect();
    }
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let [least, most] = [places.first(), places.last()].map(|end| end.copied().unwrap_or(0.0));
    let wide = most / least >= 16.0 || Unit::of(name) == Unit::Bytes;
    Axis { name: name.to_owned(), log: names.is_empty() && least > 0.0 && wide, names, places }
}

/// Sizes at which the operands stop fitting the caches.
fn rules(x: &Axis, machine: &Machine) -> Vec<(f64, &'static str)> {
    let (Some(first), Some(last)) = (x.places.first(), x.places.last()) else { return Vec::new() };
    let caches = &machine.caches;
    let own_llc = (caches.llc.bytes != caches.l2.bytes).then_some(caches.llc.bytes);
    let levels = [
        (Some(caches.l1d.bytes), "L1"),
        (Some(caches.l2.bytes), "L2"),
        (caches.llc_usable, "LLC, usable"),
        (own_llc, "LLC"),
    ];
    let rule = |(size, name): (Option<usize>, _)| size.map(|size| (size as f64, name));
    let fits = |rule: &(f64, _)| x.name == "size" && (*first..=*last).contains(&rule.0);
    levels.into_iter().filter_map(rule).filter(fits).collect()
}

/// Lines of a dot plot: the reference, and the bound where one is known.
fn lines(rows: &[&Row]) -> Vec<(f64, &'static str)> {
    let bound = rows.iter().find_map(|row| row.figure(LEAST_RATIO));
    let bound = bound.map(|bound| (bound, "the bound"));
    bound.into_iter().chain([(1.0, "the plain program")]).collect()
}

/// A candidate's name in the legend: without its operation where panels say which.
fn key_name(row: &Row, several_operations: bool) -> &str {
    let technique = row.candidate.strip_prefix(&row.cell.operation);
    let technique = technique.and_then(|rest| rest.strip_prefix('.'));
    technique.filter(|_| several_operations).unwrap_or(&row.candidate)
}

/// The rows' candidates, in the figure's order.
fn keys(rows: &[&Row], figure: &Figure, several_operations: bool) -> Vec<Key> {
    // A candidate that no other is compared with is not the reference, unless it is drawn alone.
    let alone = rows.iter().all(|row| row.candidate == rows[0].candidate);
    let serves = |name: &str| rows.iter().any(|row| row.reference == name && row.candidate != name);
    let mut keys: Vec<Key> = Vec::new();
    for row in rows {
        let name = key_name(row, several_operations);
        if !keys.iter().any(|key| key.name == name) {
            let reference = row.candidate == row.reference && (alone || serves(&row.candidate));
            keys.push(Key { name: name.to_owned(), reference, shown: true, colour: 0 });
        }
    }
    let is = |name: &str, key: &Key| {
        name == key.name || name.split_once('.').is_some_and(|(_, rest)| rest == key.name)
    };
    let place = |key: &Key| figure.candidates.iter().position(|name| is(name, key));
    keys.sort_by_key(|key| place(key).unwrap_or(usize::MAX));
    keys
}

/// Draws nothing yet: collects the figure's rows into panels and series. `None` where the record
/// has no row for it.
pub fn plot(record: &Record, figure: &Figure) -> Option<Plot> {
    let value = Quantity::named(&figure.value);
    let mut rows = rows_of(record, figure);
    rows.retain(|row| {
        let mut axes = figure.y.iter().chain([&figure.x]);
        let has_place = axes.all(|name| coordinate(row, name).is_some());
        // Rows that a table leaves out are not ranked.
        let is_told = figure.kind != FigureKind::Bars || row.is_measurable();
        has_place && is_told && value.of(row).is_some()
    });
    let short = rows.iter().any(|row| row.cell.operation != rows[0].cell.operation);
    let keys = keys(&rows, figure, short);
    let panel_names = panels_of(&rows, figure);
    let flags = flags(&rows, &panel_names);
    let mut panels: Vec<Panel> = Vec::new();
    for (title, members) in
        groups(rows.iter().copied(), |row| panel_title(row, &panel_names, &flags))
    {
        let x = axis(&members, &figure.x);
        let y = figure.y.as_deref().map(|name| axis(&members, name));
        let series = |(key, Key { name, .. }): (usize, &Key)| {
            let is_mine = |row: &&Row| key_name(row, short) == name;
            let mine: Vec<&Row> = members.iter().copied().filter(is_mine).collect();
            let points = points(&mine, &value, &x, y.as_ref());
            (!mine.is_empty()).then_some(Series { key, points })
        };
        let series: Vec<Series> = keys.iter().enumerate().filter_map(series).collect();
        if series.iter().any(|s| !s.points.is_empty()) {
            let rules = match figure.kind {
                FigureKind::Dots => lines(&members),
                _ => rules(&x, &record.header.machine),
            };
            panels.push(Panel { title, x, y, series, rules });
        }
    }
    if panels.is_empty() {
        return None;
    }
    let mut plot = Plot { title: figure.title.clone(), kind: figure.kind, value, keys, panels };
    if figure.kind == FigureKind::Curve && figure.candidates.is_empty() {
        let verdicts = record.end.iter().flat_map(|end| &end.verdicts);
        choose_shown(&mut plot, verdicts.take(2).map(String::as_str));
    }
    agree_on_colours(std::slice::from_mut(&mut plot));
    Some(plot)
}

fn points(rows: &[&Row], value: &Quantity, x: &Axis, y: Option<&Axis>) -> Vec<Point> {
    let place = |row: &Row| Some((x.place(row)?, y.map_or(Some(0.0), |y| y.place(row))?));
    let point = |(place, members): (Option<(f64, f64)>, Vec<&Row>)| {
        let (x, y) = place?;
        let spreads: Vec<Spread> = members.iter().filter_map(|row| value.of(row)).collect();
        let part = |of: fn(&Row) -> &Vec<f64>| {
            let medians = members.iter().map(|row| median(of(row)));
            // Below 0 by noise alone, or the sum would have no value.
            median(&medians.filter(|m| m.is_finite()).collect::<Vec<_>>()).max(0.0)
        };
        let all: [fn(&Row) -> &Vec<f64>; 3] =
            [|row| &row.operation_ns, |row| &row.reader_ns, |row| &row.bystander_ns];
        let parts = (*value == Quantity::Cost).then(|| all.map(part));
        Some(Point { x, y, value: Spread::pooled(&spreads)?, parts })
    };
    let places = groups(rows.iter().copied(), place);
    let mut points: Vec<Point> = places.into_iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    points
}

/// Shows the reference, the candidates that the sentences name, those that are best at most places, then those nearest
/// to the best; hides the others.
fn choose_shown<'t>(plot: &mut Plot, sentences: impl Iterator<Item = &'t str>) {
    if plot.keys.len() <= SHOWN {
        return;
    }
    let words = sentences.flat_map(str::split_whitespace);
    let words: Vec<_> =
        words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let is_named = |key: &Key| words.contains(&key.name.as_str());
    let less_is_better = plot.value.more_is_better() == Some(false);
    // Per key: places at which it is best, and its log distances to the best.
    let mut scores = vec![(0_usize, Vec::new()); plot.keys.len()];
    for panel in &plot.panels {
        for &place in &panel.x.places {
            let point = |series: &Series| {
                let mid = series.at(place, 0.0)?.value.mid;
                (mid > 0.0).then(|| (series.key, if less_is_better { -mid.ln() } else { mid.ln() }))
            };
            let here: Vec<(usize, f64)> = panel.series.iter().filter_map(point).collect();
            // The first of equals.
            let best = here.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some(&(best, top)) = best else { continue };
            scores[best].0 += 1;
            here.iter().for_each(|(key, value)| scores[*key].1.push(top - value));
        }
    }
    let mut order: Vec<usize> = (0..plot.keys.len()).collect();
    order.sort_by(|&a, &b| {
        let mean =
            |key: usize| scores[key].1.iter().sum::<f64>() / scores[key].1.len().max(1) as f64;
        let first =
            |key: usize| (plot.keys[key].reference, is_named(&plot.keys[key]), scores[key].0);
        first(b).cmp(&first(a)).then(mean(a).total_cmp(&mean(b)))
    });
    // The legend goes by position, so those that are seen come first.
    plot.keys = order.iter().map(|key| plot.keys[*key].clone()).collect();
    plot.keys[SHOWN..].iter_mut().for_each(|key| key.shown = false);
    for panel in &mut plot.panels {
        for series in &mut panel.series {
            series.key = order.iter().position(|key| *key == series.key).unwrap_or(series.key);
        }
        panel.series.sort_by_key(|series| series.key);
    }
}

/// A cell's coordinates for people, axes included.
pub fn cell_caption(cell: &CellKey) -> String {
    let mut text = crate::matrix::caption(cell);
    let placed = cell.source.is_some() || cell.destination.is_some();
    if placed && !matches!(cell.state.as_str(), "" | "placed" | "at") {
        text.push_str(&format!(", {}", cell.state));
    }
    for (name, value) in &cell.axes {
        text.push_str(&format!(", {} {}", axis_title(name), Unit::of(name).write(*value)));
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
        // A coordinate that follows from another does not distinguish rows.
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
        // Candidates that the headline names are shown, however slow they are.
        let mut told = record(rows.clone());
        told.end.iter_mut().for_each(|end| end.verdicts = vec!["(copy.k11, at best) loses".into()]);
        let figure = figure(FigureKind::Curve, "size", "gbps");
        let named = plot(&told, &figure).expect("a plot").keys;
        assert!(named[1].shown && named[1].name == "copy.k11", "{named:?}");
        let drawn = curve(rows);
        assert_eq!(drawn.keys.iter().filter(|key| key.shown).count(), SHOWN);
        assert!(drawn.keys[0].reference && drawn.keys[0].name == "libc");
        assert_eq!(drawn.keys[1].name, "copy.k0");
        // Each has kept its values.
        let mut series: Vec<&Series> = drawn.panels[0].series[1..].iter().collect();
        series.sort_by(|a, b| b.points[0].value.mid.total_cmp(&a.points[0].value.mid));
        let names = series.iter().map(|series| drawn.keys[series.key].name.clone());
        assert!(names.eq((0..12).map(|index| format!("copy.k{index}"))));
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
        let mut old = one.clone();
        old.header.figures = vec![figure(FigureKind::Histogram, "size", "ns")];
        assert_eq!(plots(&old), []);
        assert_eq!(plot(&record(vec![]), &figure(FigureKind::Bars, "candidate", "ns")), None);
    }
}
