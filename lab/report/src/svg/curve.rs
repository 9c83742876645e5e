//! Lines with their interval bands.

use super::elements::*;
use crate::plot::{Point, Series};

const HEIGHT: f64 = 240.0;
/// Left of the axis stand its title, turned, and the ticks' texts.
const LEAST_LEFT: f64 = 44.0;
const TITLE: f64 = 18.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 200.0;

/// The scale of the values.
fn vertical(plot: &Plot, panel: &Panel) -> Scale {
    let points = panel.series.iter().flat_map(|series| {
        series.points.iter().map(|Point { value, .. }| (value, plot.keys[series.key].shown))
    });
    // Bands that reach far out would flatten everybody's line: medians rule, bands get cut.
    let values = points.flat_map(|(value, is_shown)| match is_shown {
        true => [value.mid, value.low.max(value.mid / 1.5), value.high.min(value.mid * 1.5)],
        false => [value.mid; 3],
    });
    Scale::of_values(&plot.value, values, 0.05, (BOTTOM, TOP))
}

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let y = vertical(plot, panel);
    let widest = y.ticks(6).into_iter().map(|tick| width_of(&plot.value.tick(tick)));
    let left = (TITLE + widest.fold(0.0, f64::max)).max(LEAST_LEFT);
    let x = panel.x.scale((left + 4.0, RIGHT - 6.0));
    let mut values = levels(&y, 6, (left, RIGHT), |value| plot.value.tick(value));
    let turned = format!("translate(9 {}) rotate(-90)", number((TOP + BOTTOM) / 2.0));
    let title = plot.value.title() + if y.is_log() { ", log" } else { "" };
    values.push(element("text", &[("class", "title"), ("transform", &turned)], &escape(&title)));
    let mut out = vec![unheard("axis", &values), unheard("axis", &places(panel, &x, left))];
    if !panel.rules.is_empty() {
        out.push(unheard("rules", &rules(panel, &x, left)));
    }
    if plot.value.is_ratio() {
        out.push(line("even", (left, y.at(1.0)), (RIGHT, y.at(1.0))));
    }
    out.extend(panel.series.iter().rev().map(|of| series(plot, panel, of, (&x, &y))));
    (HEIGHT, out)
}

fn places(panel: &Panel, x: &Scale, left: f64) -> Vec<String> {
    let places = x.ticks_of(&panel.x, 6);
    let places: Vec<_> = places.iter().map(|at| (x.at(*at), panel.x.write(*at))).collect();
    let grid = |(at, _): &(f64, String)| line("grid", (*at, BOTTOM), (*at, BOTTOM + 4.0));
    let mut ticks: Vec<String> = places.iter().map(grid).collect();
    ticks.extend(texts(&places, BOTTOM + 16.0, (left - 16.0, WIDTH - 4.0)));
    ticks.push(label((left + RIGHT) / 2.0, HEIGHT - 6.0, "title", &panel.x.title()));
    ticks
}

fn rules(panel: &Panel, x: &Scale, left: f64) -> Vec<String> {
    let mut rules = Vec::new();
    // Two lines of names, and from where on each is free.
    let mut free = [f64::NEG_INFINITY; 2];
    for (place, name) in &panel.rules {
        let at = x.at(*place);
        rules.push(line("rule", (at, TOP - 2.0), (at, BOTTOM)));
        let width = name.len() as f64 * 5.6;
        let start = (at - width / 2.0).clamp(left, RIGHT - width);
        // Names that would stand in each other go a line up.
        let row = usize::from(start < free[0]);
        free[row] = start + width + 4.0;
        rules.push(label(start, TOP - 6.0 - 10.0 * row as f64, "tick left", name));
    }
    rules
}

/// A candidate's band, line and points. Who hears it is told its ends.
fn series(plot: &Plot, panel: &Panel, series: &Series, (x, y): (&Scale, &Scale)) -> String {
    let name = &plot.keys[series.key].name;
    let say = |point: &Point| {
        format!("{} at {}", plot.value.write(point.value.mid), panel.x.write(point.x))
    };
    let upper = series.points.iter().map(|point| (x.at(point.x), y.at(point.value.high)));
    let lower = series.points.iter().rev().map(|point| (x.at(point.x), y.at(point.value.low)));
    let middle = series.points.iter().map(|point| (x.at(point.x), y.at(point.value.mid)));
    let band = path(upper.chain(lower)) + "Z";
    let mut inside = vec![stroke("band", &band), stroke("line", &path(middle.clone()))];
    inside.extend(series.points.iter().zip(middle).map(|(point, (cx, cy))| {
        let [cx, cy] = [cx, cy].map(number);
        let dot = [("class", "dot"), ("cx", &cx), ("cy", &cy), ("r", "2.4")];
        element("circle", &dot, &title(&format!("{name}: {}", say(point))))
    }));
    let said = match &series.points[..] {
        [] => name.clone(),
        [only] => format!("{name}: {}", say(only)),
        [first, .., last] => {
            format!("{name}: {} to {}, {} points", say(first), say(last), series.points.len())
        }
    };
    heard(&classes(plot, series.key, "series"), &said, &inside)
}
