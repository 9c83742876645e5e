//! Grids of colour, one per candidate, with the line where the ratio passes one.

use super::elements::*;
use crate::plot::{Axis, Series, range};
use crate::units::significant;

const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 8.0;
const ROW: f64 = 22.0;

/// Classes from far below one to far above it (`h0` to `h8`, `h4` is about one), or from the least
/// to the most (`q0` to `q8`).
fn shade(value: f64, ratio: bool, (least, most): (f64, f64)) -> String {
    if ratio {
        const EDGES: [f64; 8] = [0.5, 0.7, 0.85, 0.97, 1.03, 1.18, 1.43, 2.0];
        return format!("h{}", EDGES.iter().filter(|edge| value >= **edge).count());
    }
    let share = if most > least { (value - least) / (most - least) } else { 0.5 };
    format!("q{}", (share * 8.0).round().clamp(0.0, 8.0))
}

/// The picture's height and elements: the candidates under each other.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let Some(y_axis) = &panel.y else { return (0.0, Vec::new()) };
    let mids = panel.series.iter().flat_map(|s| &s.points).map(|point| point.value.mid);
    let grid = Grid { plot, panel, y_axis, range: range(mids) };
    let high = 56.0 + ROW * y_axis.places.len() as f64;
    let drawn = plot.grids(panel).enumerate().map(|(index, of)| grid.draw(of, high * index as f64));
    let drawn: Vec<String> = drawn.collect();
    (high * drawn.len() as f64, drawn)
}

struct Grid<'p> {
    plot: &'p Plot,
    panel: &'p Panel,
    y_axis: &'p Axis,
    /// Range of all candidates' values.
    range: (f64, f64),
}

impl Grid<'_> {
    fn width(&self) -> f64 {
        (RIGHT - LEFT) / self.panel.x.places.len().max(1) as f64
    }

    fn left(&self, column: usize) -> f64 {
        LEFT + self.width() * column as f64
    }

    fn draw(&self, series: &Series, top: f64) -> String {
        let Grid { plot, panel, y_axis, .. } = self;
        let (x, y) = (&panel.x.places, &y_axis.places);
        let top = top + 20.0;
        let bottom = top + ROW * y.len() as f64;
        // The greatest value of the vertical axis is on top.
        let above = |row: usize| bottom - ROW * (row + 1) as f64;
        let key = &plot.keys[series.key];
        let mut inside = vec![label(8.0, top - 7.0, "name strong", &key.name)];
        inside.extend((0..y.len()).map(|row| self.row(series, y[row], above(row))));
        let mut axis = Vec::new();
        for row in (0..y.len()).step_by(y.len().div_ceil(12).max(1)) {
            let at = above(row) + ROW / 2.0 + 3.5;
            axis.push(label(LEFT - 4.0, at, "tick right", &y_axis.write(y[row])));
        }
        let places = x
            .iter()
            .enumerate()
            .map(|(column, at)| (self.left(column) + self.width() / 2.0, panel.x.write(*at)));
        axis.extend(texts(&places.collect::<Vec<_>>(), bottom + 12.0, (LEFT, WIDTH)));
        axis.push(label((LEFT + RIGHT) / 2.0, bottom + 26.0, "title", &panel.x.title()));
        let upwards = format!("upwards: {}", y_axis.title());
        axis.push(label(RIGHT, top - 7.0, "tick right", &upwards));
        inside.push(unheard("axis", &axis));
        if plot.value.is_ratio() {
            let edges = self.break_even(series, above);
            inside.extend((!edges.is_empty()).then(|| stroke("break-even", &edges)));
        } else {
            inside.push(line("grid", (LEFT, bottom), (RIGHT, bottom)));
        }
        nested("g", &[("class", &format!("series s{}", series.key))], &inside)
    }

    /// One place of the vertical axis.
    fn row(&self, series: &Series, place: f64, top: f64) -> String {
        let Grid { plot, panel, y_axis, .. } = self;
        let up = format!("{} {}", y_axis.title(), y_axis.write(place));
        let width = self.width();
        let (mut cells, mut said) = (Vec::new(), Vec::new());
        for (column, at) in panel.x.places.iter().enumerate() {
            let corner = (self.left(column), top);
            let Some(value) = series.at(*at, place).map(|point| point.value) else {
                cells.push(rectangle("cell none", corner, (width, ROW), ""));
                continue;
            };
            let at = panel.x.write(*at);
            let mid = plot.value.write(value.mid);
            let text = format!("{up}, {} {at}: {}", panel.x.title(), value.write(&plot.value));
            let shade = shade(value.mid, plot.value.is_ratio(), self.range);
            cells.push(rectangle(&format!("cell {shade}"), corner, (width, ROW), &text));
            if width >= 26.0 {
                let (x, y) = (corner.0 + width / 2.0, top + ROW / 2.0 + 3.5);
                cells.push(label(x, y, &format!("value on-{shade}"), &significant(value.mid)));
            }
            said.push(format!("{mid} at {at}"));
        }
        heard("cells", &format!("{up}: {}", said.join(", ")), &cells)
    }

    /// The edges between cells on different sides of one, as a path.
    fn break_even(&self, series: &Series, above: impl Fn(usize) -> f64) -> String {
        let (x, y) = (&self.panel.x.places, &self.y_axis.places);
        let is_below = |row: usize, column: usize| {
            Some(series.at(*x.get(column)?, *y.get(row)?)?.value.mid < 1.0)
        };
        let mut edges = String::new();
        for (row, column) in (0..y.len()).flat_map(|row| (0..x.len()).map(move |at| (row, at))) {
            let Some(here) = is_below(row, column) else { continue };
            let (left, right, top) = (self.left(column), self.left(column + 1), above(row));
            if is_below(row, column + 1).is_some_and(|other| other != here) {
                edges += &path([(right, top), (right, top + ROW)]);
            }
            if is_below(row + 1, column).is_some_and(|other| other != here) {
                edges += &path([(left, top), (right, top)]);
            }
        }
        edges
    }
}
