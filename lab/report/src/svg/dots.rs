//! A dot with its interval for each candidate on one axis; lines at the reference and at the bound.

use super::elements::*;
use crate::plot::range;

const ROW: f64 = 24.0;

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let (dots, beyond) = plot.bars(panel, MOST);
    let values = dots.iter().flat_map(|dot| [dot.point.value.low, dot.point.value.high]);
    let (least, most) = range(values.chain(panel.rules.iter().map(|(at, _)| *at)));
    let scale = Scale::new((least, most), false, (LEFT, RIGHT));
    let bottom = TOP + ROW * dots.len() as f64;
    let mut out = vec![horizontal(plot, &scale, bottom, &panel.rules, &plot.value.title())];
    for (index, dot) in dots.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let value = dot.point.value;
        let mid = plot.value.write(value.mid);
        let class = if plot.keys[dot.key].reference { "name strong" } else { "name" };
        let said = format!("{}: {}", dot.name, value.write(&plot.value));
        let [from, at, to] = [value.low, value.mid, value.high].map(|value| scale.at(value));
        let inside = [
            title(&said),
            label(LEFT, y + 10.0, class, &dot.name),
            label(RIGHT, y + 10.0, "name right", &mid),
            line("whisker", (from, y + 17.0), (to, y + 17.0)),
            element(
                "circle",
                &[("class", "dot"), ("cx", &number(at)), ("cy", &number(y + 17.0)), ("r", "3")],
                "",
            ),
        ];
        out.push(heard(&classes(plot, dot.key, "series"), &said, &inside));
    }
    let mut height = bottom + 32.0;
    let lines: Vec<&str> = panel.rules.iter().map(|(_, name)| *name).collect();
    let mut remark = |text: &str| {
        height += 14.0;
        out.push(label(LEFT, height - 6.0, "tick left", text));
    };
    if !lines.is_empty() {
        remark(&format!("lines from the left: {}", lines.join(", ")));
    }
    if beyond > 0 {
        remark(&format!("{beyond} more are in the table below"));
    }
    (height, out)
}
