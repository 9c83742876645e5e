//! SVG by hand, written the same way every time, so that pictures can be compared as text. Numbers
//! have one decimal, text is escaped, colours are names of the page's style sheet (`style.css`),
//! which knows light and dark.

mod bars;
mod curve;
mod heat;
mod histogram;
pub(crate) mod palette;
#[cfg(test)]
mod tests;

use crate::plot::{Panel, Plot, Scale};
use cachewise_measure::FigureKind;

/// Colours before they repeat with another dash.
const COLOURS: usize = 7;
/// Rules for a picture's classes, in terms of the [`palette`]'s properties.
pub const STYLE: &str = include_str!("style.css");
/// Units across a panel: about what a phone has in pixels.
const WIDTH: f64 = 360.0;
/// Pixels of a picture's unit, where nothing else says how large it is shown: two beside each other on a page.
const SCALE: f64 = 1.5;

/// An element with what is in it, which is markup.
fn element(name: &str, attributes: &[(&str, &str)], inside: &str) -> String {
    let attributes =
        attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape(value)));
    let open: String = attributes.collect();
    match inside {
        "" => format!("<{name}{open}/>"),
        inside => format!("<{name}{open}>{inside}</{name}>"),
    }
}

/// Text that may stand in markup, in an attribute too. Characters that XML has no place for become
/// the replacement character.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: one decimal, none where it is zero, and never anything that is not a number.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e7, 1e7) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `M x y L x y ...` through the points.
fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points = points.into_iter().map(|(x, y)| format!("{} {}", number(x), number(y)));
    let points: Vec<String> = points.collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join("L")) }
}

/// A path of that shape.
fn stroke(class: &str, d: &str) -> String {
    element("path", &[("class", class), ("d", d)], "")
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    stroke(class, &path([from, to]))
}

/// A rectangle with what is said of it.
fn rectangle(class: &str, corner: (f64, f64), sides: (f64, f64), said: &str) -> String {
    let [x, y, width, height] =
        [corner.0, corner.1, sides.0.max(0.0), sides.1.max(0.0)].map(number);
    let place = [("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)];
    element("rect", &place, &title(said))
}

fn label(x: f64, y: f64, class: &str, text: &str) -> String {
    let place = [("class", class), ("x", &number(x)), ("y", &number(y))];
    element("text", &place, &escape(text))
}

/// What a mouse that rests on an element is told; nothing for an empty text.
fn title(text: &str) -> String {
    if text.is_empty() { String::new() } else { element("title", &[], &escape(text)) }
}

/// An element that holds elements, each on a line.
fn nested(name: &str, attributes: &[(&str, &str)], inside: &[String]) -> String {
    let inside: String = inside.iter().map(|element| format!("\n{element}")).collect();
    element(name, attributes, &inside)
}

/// A group that the keyboard reaches and a screen reader says.
fn heard(class: &str, said: &str, inside: &[String]) -> String {
    let heard = [("class", class), ("tabindex", "0"), ("role", "img"), ("aria-label", said)];
    nested("g", &heard, inside)
}

/// What the eye alone needs: ticks, grid, rules.
fn unheard(class: &str, inside: &[String]) -> String {
    nested("g", &[("class", class), ("aria-hidden", "true")], inside)
}

/// The grid and ticks of an upright scale.
fn levels(y: &Scale, ticks: usize, ends: (f64, f64), write: impl Fn(f64) -> String) -> Vec<String> {
    let tick = |value: f64| {
        let at = y.at(value);
        let grid = line("grid", (ends.0, at), (ends.1, at));
        [grid, label(ends.0 - 4.0, at + 3.5, "tick right", &write(value))]
    };
    y.ticks(ticks).into_iter().flat_map(tick).collect()
}

/// The class list of a legend entry's marks.
fn classes(plot: &Plot, key: usize, kind: &str) -> String {
    match plot.keys[key].colour {
        _ if plot.keys[key].reference => format!("{kind} s{key} ref"),
        colour => format!("{kind} s{key} c{} d{}", colour % COLOURS, colour / COLOURS % 3),
    }
}

/// The colour classes alone, for the legend.
pub fn key_classes(plot: &Plot, key: usize) -> String {
    classes(plot, key, "swatch")
}

/// A panel's height and elements.
fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    match plot.kind {
        FigureKind::Curve => curve::draw(plot, panel),
        FigureKind::Bars => bars::draw(plot, panel),
        FigureKind::HeatMap => heat::draw(plot, panel),
        FigureKind::Histogram => histogram::draw(plot, panel),
    }
}

/// A panel of the plot, with its own `viewBox` and an accessible name.
pub fn panel(plot: &Plot, panel: &Panel) -> String {
    let (height, content) = draw(plot, panel);
    picture(plot, panel, height, false, &content)
}

fn picture(plot: &Plot, panel: &Panel, height: f64, is_file: bool, content: &[String]) -> String {
    let view = format!("0 0 {WIDTH} {}", number(height));
    let name = format!("{}: {}", plot.title, panel.title);
    let [width, height] = [WIDTH, height].map(|side| number(SCALE * side));
    let of_file =
        [("xmlns", "http://www.w3.org/2000/svg"), ("width", &*width), ("height", &*height)];
    let (before, behind) = of_file.split_at(1);
    let all = [("class", "chart"), ("viewBox", &view), ("role", "group"), ("aria-label", &name)];
    match is_file {
        true => nested("svg", &[before, &all, behind].concat(), content),
        false => nested("svg", &all, content),
    }
}

/// A panel as a file of its own, light and dark inside.
pub fn document(plot: &Plot, only: &Panel) -> String {
    let (mut height, drawn) = draw(plot, only);
    let keys = || plot.keys.iter().enumerate();
    let hidden = keys().filter(|(_, key)| !key.shown);
    let hidden: String = hidden.map(|(key, _)| format!(".s{key}{{display:none}}\n")).collect();
    // The style sheet is ours: it holds nothing that markup could mistake.
    let style = format!(
        "<style>\n:root {{ {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n\
         {STYLE}{hidden}</style>",
        palette::LIGHT,
        palette::DARK
    );
    let mut content = vec![style, title(&format!("{}: {}", plot.title, only.title))];
    content.extend(drawn);
    // A legend of its own: in the page it is made of check boxes.
    if plot.kind == FigureKind::Curve {
        let is_drawn = |key: usize| only.series.iter().any(|series| series.key == key);
        let entries: Vec<_> = keys().filter(|(key, of)| of.shown && is_drawn(*key)).collect();
        for (place, (index, key)) in entries.iter().enumerate() {
            let x = 48.0 + (place % 2) as f64 * 156.0;
            let y = height + 12.0 + (place / 2) as f64 * 16.0;
            let mark = line("line", (x - 20.0, y - 4.0), (x - 4.0, y - 4.0));
            let class = classes(plot, *index, "series");
            let entry = [mark, label(x, y, "tick left", &key.name)];
            content.push(nested("g", &[("class", &class)], &entry));
        }
        height += 10.0 + entries.len().div_ceil(2) as f64 * 16.0;
    }
    picture(plot, only, height, true, &content) + "\n"
}
