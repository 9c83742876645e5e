//! Lines with their interval bands.

use super::*;
use crate::plot::scale::Scale;
use crate::plot::{Axis, Panel, Plot, Point, Unit};

const HEIGHT: f64 = 240.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 200.0;

/// Places on an axis that get a tick.
pub(super) fn axis_ticks(axis: &Axis, scale: &Scale, most: usize) -> Vec<f64> {
    if !axis.names.is_empty() || axis.places.len() <= most {
        return axis.places.clone();
    }
    if axis.log && axis.unit == Unit::Bytes {
        return scale.binary_ticks(most);
    }
    scale.ticks(most)
}

/// The scale of the values: a logarithm where they span more than one decade or are ratios, from
/// zero otherwise.
pub(super) fn vertical(plot: &Plot, panel: &Panel, ends: (f64, f64)) -> Scale {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let shown = |key: usize| plot.keys.get(key).is_some_and(|key| key.shown);
    // Bands that reach far out would flatten everybody's line: medians rule, bands get cut.
    let mids = points().map(|point| point.value.mid);
    let shown = panel.series.iter().filter(|series| shown(series.key));
    let bands = shown.flat_map(|series| &series.points).flat_map(|Point { value, .. }| {
        [value.low.max(value.mid / 1.5), value.high.min(value.mid * 1.5)]
    });
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in mids.chain(bands).filter(|value| value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if plot.value.is_ratio() {
        (low, high) = (low.min(1.0), high.max(1.0));
        let positive = low > 0.0;
        let range = if positive { (low / 1.05, high * 1.05) } else { (low, high) };
        return Scale::new(range, positive, ends);
    }
    if low > 0.0 && high / low > 12.0 {
        Scale::new((low / 1.1, high * 1.1), true, ends)
    } else {
        Scale::new((low.min(0.0), high * 1.05), false, ends)
    }
}

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<Element>) {
    let x = axis_scale(&panel.x, (LEFT + 4.0, RIGHT - 6.0));
    let y = vertical(plot, panel, (BOTTOM, TOP));
    let mut out = vec![frame(plot, &y)];
    let mut ticks = unheard("axis");
    let places = axis_ticks(&panel.x, &x, 6);
    for (index, place) in places.iter().enumerate() {
        let at = x.at(*place);
        let anchor =
            if index + 1 == places.len() && at > RIGHT - 24.0 { "tick right" } else { "tick" };
        let at_text = if anchor == "tick right" { RIGHT + 4.0 } else { at };
        ticks.push(line("grid", (at, BOTTOM), (at, BOTTOM + 4.0)));
        ticks.push(label(at_text, BOTTOM + 16.0, anchor, panel.x.write(*place)));
    }
    ticks.push(label((LEFT + RIGHT) / 2.0, HEIGHT - 6.0, "title", panel.x.title.clone()));
    out.push(ticks);
    let mut rules = unheard("rules");
    // Two lines of names, and from where on each is free.
    let mut free = [f64::NEG_INFINITY; 2];
    for rule in &panel.rules {
        let at = x.at(rule.at);
        rules.push(line("rule", (at, TOP - 2.0), (at, BOTTOM)));
        let width = rule.name.chars().count() as f64 * 5.6;
        let start = (at - width / 2.0).clamp(LEFT, RIGHT - width);
        // Names that would stand in each other go a line up.
        let row = usize::from(start < free[0]);
        free[row] = start + width + 4.0;
        rules.push(label(start, TOP - 6.0 - 10.0 * row as f64, "tick left", rule.name.clone()));
    }
    if !panel.rules.is_empty() {
        out.push(rules);
    }
    if plot.value.is_ratio() {
        out.push(line("even", (LEFT, y.at(1.0)), (RIGHT, y.at(1.0))));
    }
    for series in panel.series.iter().rev() {
        let key = &plot.keys[series.key];
        let at = |value: f64| y.at(value);
        let class = classes(plot, series.key, "series");
        let mut group = heard(class, summary(plot, panel, series));
        let upper = series.points.iter().map(|point| (x.at(point.x), at(point.value.high)));
        let lower = series.points.iter().rev().map(|point| (x.at(point.x), at(point.value.low)));
        group.push(stroke("band", path(upper.chain(lower)) + "Z"));
        let middle = series.points.iter().map(|point| (x.at(point.x), at(point.value.mid)));
        group.push(stroke("line", path(middle)));
        for point in &series.points {
            let text = format!("{}: {}", key.name, say(plot, panel, point));
            let (cx, cy) = (x.at(point.x), at(point.value.mid));
            let dot = Element::new("circle").set("class", "dot").at("cx", cx).at("cy", cy);
            group.push(dot.set("r", "2.4").with(title(text)));
        }
        out.push(group);
    }
    (HEIGHT, out)
}

/// The value axis with its grid.
fn frame(plot: &Plot, y: &Scale) -> Element {
    let mut group = unheard("axis");
    for tick in y.ticks(6) {
        let at = y.at(tick);
        group.push(line("grid", (LEFT, at), (RIGHT, at)));
        group.push(label(LEFT - 4.0, at + 3.5, "tick right", plot.value.tick(tick)));
    }
    let log = if y.is_log() { ", log" } else { "" };
    group.push(
        Element::new("text")
            .set("class", "title")
            .set("transform", format!("translate(9 {}) rotate(-90)", number((TOP + BOTTOM) / 2.0)))
            .text(format!("{}{log}", plot.value.title())),
    );
    group
}

fn say(plot: &Plot, panel: &Panel, point: &Point) -> String {
    format!("{} at {}", plot.value.write(point.value.mid), panel.x.write(point.x))
}

/// A series for those who hear it: its ends and its best.
fn summary(plot: &Plot, panel: &Panel, series: &crate::plot::Series) -> String {
    let name = &plot.keys[series.key].name;
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
        return name.clone();
    };
    let say = |point| say(plot, panel, point);
    if series.points.len() == 1 {
        return format!("{name}: {}", say(first));
    }
    format!("{name}: {} to {}, {} points", say(first), say(last), series.points.len())
}
