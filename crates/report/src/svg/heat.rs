//! Grids of colour, one per candidate, with the line where the ratio passes one.

use super::{Element, WIDTH, heard, label, line, path, rectangle, stroke, title, unheard};
use crate::plot::{Axis, Panel, Plot, Series};
use crate::units::significant;

const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 8.0;
const ROW: f64 = 22.0;

/// Classes from far below one to far above it (`h0` to `h8`, `h4` is about one), or from the least
/// to the most.
fn shade(value: f64, ratio: bool, (least, most): (f64, f64)) -> usize {
    if ratio {
        const EDGES: [f64; 8] = [0.5, 0.7, 0.85, 0.97, 1.03, 1.18, 1.43, 2.0];
        return EDGES.iter().filter(|edge| value >= **edge).count();
    }
    let share = if most > least { (value - least) / (most - least) } else { 0.5 };
    (share * 8.0).round().clamp(0.0, 8.0) as usize
}

/// The picture's height and elements: the candidates under each other.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<Element>) {
    let mut out = Vec::new();
    let mut top = 0.0;
    let Some(y_axis) = &panel.y else { return (top, out) };
    let mids = || panel.series.iter().flat_map(|s| &s.points).map(|point| point.value.mid);
    let range = (mids().fold(f64::INFINITY, f64::min), mids().fold(f64::NEG_INFINITY, f64::max));
    for series in &panel.series {
        // The reference against itself is one everywhere.
        if plot.value.is_ratio() && plot.keys[series.key].reference && panel.series.len() > 1 {
            continue;
        }
        let mut group = Element::new("g").set("class", format!("series s{}", series.key));
        group.push(label(8.0, top + 13.0, "name strong", plot.keys[series.key].name.clone()));
        let bottom = grid(plot, panel, y_axis, series, range, top + 20.0, &mut group);
        out.push(group);
        top = bottom + 36.0;
    }
    (top, out)
}

fn grid(
    plot: &Plot,
    panel: &Panel,
    y_axis: &Axis,
    series: &Series,
    range: (f64, f64),
    top: f64,
    group: &mut Element,
) -> f64 {
    let (columns, rows) = (panel.x.places.len(), y_axis.places.len());
    let width = (RIGHT - LEFT) / columns.max(1) as f64;
    let bottom = top + ROW * rows as f64;
    let ratio = plot.value.is_ratio();
    let left = |column: usize| LEFT + width * column as f64;
    // The greatest value of the vertical axis is on top.
    let above = |row: usize| bottom - ROW * (row + 1) as f64;
    let mut values = vec![vec![None; columns]; rows];
    for point in &series.points {
        let column = panel.x.places.iter().position(|place| *place == point.x);
        let row = y_axis.places.iter().position(|place| *place == point.y);
        if let (Some(column), Some(row)) = (column, row) {
            values[row][column] = Some(point.value);
        }
    }
    for (row, of_row) in values.iter().enumerate() {
        let place = y_axis.write(y_axis.places[row]);
        let cells = of_row.iter().zip(&panel.x.places).filter_map(|(value, at)| {
            let value = plot.value.write(value.as_ref()?.mid);
            Some(format!("{value} at {}", panel.x.write(*at)))
        });
        let said: Vec<String> = cells.collect();
        let said = format!("{} {place}: {}", y_axis.title, said.join(", "));
        let mut line_of = heard("cells", said);
        for (column, value) in of_row.iter().enumerate() {
            let corner = (left(column), above(row));
            let Some(value) = value else {
                line_of.push(rectangle("cell none", corner, (width, ROW)));
                continue;
            };
            let class =
                format!("cell {}{}", if ratio { "h" } else { "q" }, shade(value.mid, ratio, range));
            let (x, y) = (&panel.x.title, &y_axis.title);
            let at = panel.x.write(panel.x.places[column]);
            let [mid, low, high] =
                [value.mid, value.low, value.high].map(|value| plot.value.write(value));
            let text = format!("{y} {place}, {x} {at}: {mid} (95 %: {low} .. {high})");
            line_of.push(rectangle(&class, corner, (width, ROW)).with(title(text)));
            if width >= 26.0 {
                let middle = (left(column) + width / 2.0, above(row) + ROW / 2.0 + 3.5);
                let class = format!("value {}", class.replace("cell ", "on-"));
                line_of.push(label(middle.0, middle.1, &class, significant(value.mid)));
            }
        }
        group.push(line_of);
    }
    let mut axis = unheard("axis");
    let every = (rows as f64 / 12.0).ceil().max(1.0) as usize;
    for row in (0..rows).step_by(every) {
        let at = above(row) + ROW / 2.0 + 3.5;
        axis.push(label(LEFT - 4.0, at, "tick right", y_axis.write(y_axis.places[row])));
    }
    let every = (48.0 / width).ceil().max(1.0) as usize;
    for column in (0..columns).step_by(every) {
        let at = (left(column) + width / 2.0).clamp(LEFT, RIGHT - 14.0);
        axis.push(label(at, bottom + 12.0, "tick", panel.x.write(panel.x.places[column])));
    }
    axis.push(label((LEFT + RIGHT) / 2.0, bottom + 26.0, "title", panel.x.title.clone()));
    axis.push(label(RIGHT, top - 7.0, "tick right", format!("upwards: {}", y_axis.title)));
    group.push(axis);
    if ratio {
        let edges = break_even(&values, left, above);
        if !edges.is_empty() {
            let edges = edges.into_iter().map(|(from, to)| path([from, to]));
            group.push(stroke("break-even", edges.collect()));
        }
    } else {
        group.push(line("grid", (LEFT, bottom), (RIGHT, bottom)));
    }
    bottom
}

type Edge = ((f64, f64), (f64, f64));

/// The edges between cells on different sides of one.
fn break_even(
    values: &[Vec<Option<crate::plot::Spread>>],
    left: impl Fn(usize) -> f64,
    above: impl Fn(usize) -> f64,
) -> Vec<Edge> {
    let side =
        |row: usize, column: usize| values.get(row)?.get(column)?.map(|value| value.mid < 1.0);
    let mut edges = Vec::new();
    for (row, of_row) in values.iter().enumerate() {
        for column in 0..of_row.len() {
            let Some(here) = side(row, column) else { continue };
            let (x, y) = (left(column), above(row));
            if side(row, column + 1).is_some_and(|other| other != here) {
                let x = left(column + 1);
                edges.push(((x, y), (x, y + ROW)));
            }
            if side(row + 1, column).is_some_and(|other| other != here) {
                edges.push(((x, y), (left(column + 1), y)));
            }
        }
    }
    edges
}
