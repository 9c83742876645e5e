//! A dot with its interval for each candidate on one axis; lines at the reference and at the bound.

use super::elements::*;
use crate::plot::range;

const ROW: f64 = 26.0;
/// The names' column, and a line of one.
const NAMES: f64 = 158.0;
const LINE: f64 = 11.0;
/// The column of the figures at the right.
const FIGURES: f64 = 34.0;

/// A name in two lines at most, broken at a space; what has no room ends in an ellipsis.
fn lines(name: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split_whitespace() {
        let is_full = lines.len() == 2;
        let last = lines.last_mut().expect("a line");
        let longer = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if last.is_empty() || width_of(&longer) <= NAMES {
            *last = longer;
        } else if is_full {
            last.push('…');
            break;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The picture's height and elements.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let (dots, beyond) = plot.bars(panel, MOST);
    let values = dots.iter().flat_map(|dot| [dot.point.value.low, dot.point.value.high]);
    let (least, most) = range(values.chain(panel.rules.iter().map(|(at, _)| *at)));
    let scale = Scale::new((least, most), false, (LEFT + NAMES + 8.0, RIGHT - FIGURES));
    let bottom = TOP + ROW * dots.len() as f64;
    let mut out = vec![horizontal(plot, &scale, bottom, &panel.rules, &plot.value.title())];
    for (index, dot) in dots.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let value = dot.point.value;
        let mid = plot.value.write(value.mid);
        let class = if plot.keys[dot.key].reference { "name strong" } else { "name" };
        let said = format!("{}: {}", dot.name, value.write(&plot.value));
        let [from, at, to] = [value.low, value.mid, value.high].map(|value| scale.at(value));
        let names = lines(&dot.name);
        let first = y + 3.5 - LINE / 2.0 * (names.len() - 1) as f64;
        let mut inside = vec![title(&said)];
        let named = names.iter().enumerate();
        inside.extend(named.map(|(nth, text)| label(LEFT, first + LINE * nth as f64, class, text)));
        inside.push(line("whisker", (from, y), (to, y)));
        let centre = [("class", "dot"), ("cx", &*number(at)), ("cy", &*number(y)), ("r", "3")];
        inside.push(element("circle", &centre, ""));
        inside.push(label(RIGHT, y + 3.5, "name right", &mid));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_two_lines_at_most() {
        assert_eq!(lines("plain"), ["plain"]);
        let long = "keep freed memory, grow by 64 MiB at a time";
        assert_eq!(lines(long).len(), 2);
        assert!(lines(long).iter().all(|line| width_of(line) <= NAMES), "{:?}", lines(long));
        let longest = lines(&format!("{long} and {long}"));
        assert!(longest.len() == 2 && longest[1].ends_with('…'), "{longest:?}");
    }
}
