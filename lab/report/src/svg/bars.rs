//! Horizontal bars with the interval's whisker; stacked where the value is a sum of three parts.

use super::elements::*;
use crate::plot::{Bar, Quantity, longest_bar, range};
use crate::units::time;

const ROW: f64 = 27.0;

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let (bars, beyond) = plot.bars(panel, MOST);
    let (least, _) = range(bars.iter().map(|bar| bar.point.value.mid).chain([0.0]));
    let (most, cut) = longest_bar(&bars);
    let scale = Scale::new((least, most * 1.02), false, (LEFT, RIGHT));
    let bottom = TOP + ROW * bars.len() as f64;
    let cut = match cut {
        0 => String::new(),
        1 => ", a bar is cut".to_owned(),
        several => format!(", {several} bars are cut"),
    };
    let mut out = vec![horizontal(plot, &scale, bottom, &[], &(plot.value.title() + &cut))];
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
    let mid = plot.value.write(value.mid);
    let class = if plot.keys[bar.key].reference { "name strong" } else { "name" };
    let mut inside =
        vec![label(LEFT, y + 12.0, class, &bar.name), label(RIGHT, y + 12.0, "name right", &mid)];
    let mut block = |class: &str, from: f64, to: f64| {
        let (from, to) = (scale.at(from), scale.at(to));
        let sides = ((to - from).abs(), 7.0);
        inside.push(rectangle(class, (from.min(to), y + 15.0), sides, ""));
    };
    let mut said = format!("{}: {mid}", bar.name);
    match bar.point.parts.zip(bar.point.divided()) {
        Some((parts, divided)) => {
            let [operation, reader, bystander] = parts.map(time);
            said +=
                &format!(": medians operation {operation}, reader {reader}, bystander {bystander}");
            let mut from = 0.0;
            for (part, name) in divided.iter().zip(["operation", "reader", "bystander"]) {
                block(&format!("part {name}"), from, from + part);
                from += part;
            }
        }
        None => {
            said = format!("{}: {}", bar.name, value.write(&plot.value));
            block("bar", 0.0, value.mid);
            let [low, high] = [value.low, value.high].map(|end| (scale.at(end), y + 18.5));
            inside.push(line("whisker", low, high));
        }
    }
    if value.mid > scale.most() {
        inside.push(rectangle("gap", (RIGHT - 14.0, y + 14.0), (4.0, 9.0), ""));
    }
    inside.insert(0, title(&said));
    let class = match plot.value {
        Quantity::Cost => format!("series s{}", bar.key),
        _ => classes(plot, bar.key, "series"),
    };
    heard(&class, &said, &inside)
}
