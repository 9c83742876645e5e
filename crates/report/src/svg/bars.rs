//! Lying bars with the interval's whisker; stacked where the value is a sum of three parts.

use super::elements::*;
use crate::plot::{Bar, Quantity, range};
use crate::units::time;

/// More bars than these are left to the table.
const MOST: usize = 32;
const ROW: f64 = 27.0;
const TOP: f64 = 6.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let (bars, beyond) = plot.bars(panel, MOST);
    let end = |bar: &Bar<'_>| bar.point.parts.map_or(bar.point.value.mid, |all| all.iter().sum());
    let (least, most) = range(bars.iter().map(end).chain([0.0]));
    let scale = Scale::new((least, most * 1.02), false, (LEFT, RIGHT));
    let bottom = TOP + ROW * bars.len() as f64;
    let mut axis = Vec::new();
    for tick in scale.ticks(4) {
        let at = scale.at(tick);
        axis.push(line("grid", (at, TOP), (at, bottom)));
        let class = match at {
            _ if at > RIGHT - 20.0 => "tick right",
            _ if at < LEFT + 8.0 => "tick left",
            _ => "tick",
        };
        axis.push(label(at, bottom + 12.0, class, &plot.value.tick(tick)));
    }
    axis.push(label((LEFT + RIGHT) / 2.0, bottom + 26.0, "title", &plot.value.title()));
    let mut out = vec![unheard("axis", &axis)];
    let top = |index: usize| TOP + ROW * index as f64;
    out.extend(bars.iter().enumerate().map(|(index, bar)| draw_bar(plot, bar, &scale, top(index))));
    let mut height = bottom + 32.0;
    if beyond > 0 {
        height += 14.0;
        let more = format!("{beyond} more are in the table below");
        out.push(label(LEFT, height - 6.0, "tick left", &more));
    }
    (height, out)
}

fn draw_bar(plot: &Plot, bar: &Bar<'_>, scale: &Scale, y: f64) -> String {
    let value = bar.point.value;
    let [mid, low, high] = [value.mid, value.low, value.high].map(|value| plot.value.write(value));
    let class = if plot.keys[bar.key].reference { "name strong" } else { "name" };
    let mut inside =
        vec![label(LEFT, y + 12.0, class, &bar.name), label(RIGHT, y + 12.0, "name right", &mid)];
    let mut block = |class: &str, from: f64, to: f64| {
        let (from, to) = (scale.at(from), scale.at(to));
        let sides = ((to - from).abs(), 7.0);
        inside.push(rectangle(class, (from.min(to), y + 15.0), sides, ""));
    };
    let mut said = format!("{}: {mid}", bar.name);
    match bar.point.parts {
        Some(parts) => {
            let [operation, reader, bystander] = parts.map(time);
            said += &format!(" = operation {operation} + reader {reader} + bystander {bystander}");
            let mut from = 0.0;
            for (part, name) in parts.iter().zip(["operation", "reader", "bystander"]) {
                block(&format!("part {name}"), from, from + part);
                from += part;
            }
        }
        None => {
            said += &format!(" (95 %: {low} .. {high})");
            block("bar", 0.0, value.mid);
            let [low, high] = [value.low, value.high].map(|end| (scale.at(end), y + 18.5));
            inside.push(line("whisker", low, high));
        }
    }
    inside.insert(0, title(&said));
    let class = match plot.value {
        Quantity::Cost => format!("series s{}", bar.key),
        _ => classes(plot, bar.key, "series"),
    };
    heard(&class, &said, &inside)
}
