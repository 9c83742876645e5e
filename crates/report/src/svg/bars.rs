//! Lying bars with the interval's whisker; stacked where the value is a sum of three parts.

use super::{Element, WIDTH, classes, heard, label, line, rectangle, title, unheard};
use crate::plot::scale::Scale;
use crate::plot::{Panel, Plot, Point, Quantity};
use crate::units::time;

/// More bars than these are left to the table.
const MOST: usize = 32;
const ROW: f64 = 27.0;
const TOP: f64 = 6.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;

/// One bar: whose, its text, its value.
struct Bar<'p> {
    key: usize,
    name: String,
    point: &'p Point,
}

/// The bars of a panel, the best first where the axis is the candidate, the reference always among
/// them; and how many are left out.
fn bars<'p>(plot: &Plot, panel: &'p Panel) -> (Vec<Bar<'p>>, usize) {
    let (mut found, by_candidate) = panel.points(&plot.value);
    if !by_candidate {
        found.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    }
    let all = found.len();
    let mut rank = 0;
    found.retain(|(key, _)| {
        rank += 1;
        rank <= MOST || (by_candidate && plot.keys[*key].reference)
    });
    let left_out = all - found.len();
    let bar = |(key, point): (usize, &'p Point)| {
        let (who, place) = (plot.keys[key].name.clone(), panel.x.write(point.x));
        let name = if by_candidate { who } else { format!("{place}: {who}") };
        Bar { key, name, point }
    };
    (found.into_iter().map(bar).collect(), left_out)
}

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<Element>) {
    let (bars, left_out) = bars(plot, panel);
    let stacked = plot.value == Quantity::Cost;
    let ends = |bar: &Bar<'_>| match bar.point.parts {
        Some(parts) => (0.0, parts.iter().sum()),
        None => (bar.point.value.mid.min(0.0), bar.point.value.mid.max(0.0)),
    };
    let least = bars.iter().map(|bar| ends(bar).0).fold(0.0, f64::min);
    let most = bars.iter().map(|bar| ends(bar).1).fold(0.0, f64::max);
    let scale = Scale::new((least, most * 1.02), false, (LEFT, RIGHT));
    let bottom = TOP + ROW * bars.len() as f64;
    let mut out = Vec::new();
    let mut axis = unheard("axis");
    for tick in scale.ticks(4) {
        let at = scale.at(tick);
        axis.push(line("grid", (at, TOP), (at, bottom)));
        let anchor = if at > RIGHT - 20.0 {
            "tick right"
        } else if at < LEFT + 8.0 {
            "tick left"
        } else {
            "tick"
        };
        axis.push(label(at, bottom + 12.0, anchor, plot.value.tick(tick)));
    }
    axis.push(label((LEFT + RIGHT) / 2.0, bottom + 26.0, "title", plot.value.title()));
    out.push(axis);
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let value = bar.point.value;
        let mut said = format!("{}: {}", bar.name, plot.value.write(value.mid));
        said += &match bar.point.parts.map(|parts| parts.map(time)) {
            Some([operation, reader, bystander]) => {
                format!(" = operation {operation} + reader {reader} + bystander {bystander}")
            }
            None => {
                let [low, high] = [value.low, value.high].map(|end| plot.value.write(end));
                format!(" (95 %: {low} .. {high})")
            }
        };
        let class =
            if stacked { format!("series s{}", bar.key) } else { classes(plot, bar.key, "series") };
        let mut group = heard(class, said.clone()).with(title(said));
        let class = if plot.keys[bar.key].reference { "name strong" } else { "name" };
        group.push(label(LEFT, y + 12.0, class, bar.name.clone()));
        group.push(label(RIGHT, y + 12.0, "name right", plot.value.write(value.mid)));
        let zero = scale.at(0.0);
        match bar.point.parts {
            Some(parts) => {
                let mut from = 0.0;
                for (part, name) in parts.iter().zip(["operation", "reader", "bystander"]) {
                    let (a, b) = (scale.at(from), scale.at(from + part));
                    from += part;
                    let class = format!("part {name}");
                    group.push(rectangle(&class, (a, y + 15.0), ((b - a).abs(), 7.0)));
                }
            }
            None => {
                let end = scale.at(value.mid);
                group.push(rectangle("bar", (zero.min(end), y + 15.0), ((end - zero).abs(), 7.0)));
                let (low, high) = (scale.at(value.low), scale.at(value.high));
                group.push(line("whisker", (low, y + 18.5), (high, y + 18.5)));
            }
        }
        out.push(group);
    }
    let mut height = bottom + 32.0;
    if left_out > 0 {
        height += 14.0;
        let more = format!("{left_out} more are in the table below");
        out.push(label(LEFT, height - 6.0, "tick left", more));
    }
    (height, out)
}
