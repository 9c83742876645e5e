//! The elements that pictures are made of.

pub(super) use crate::plot::{Panel, Plot, Scale};

/// Colours before they repeat with another dash.
pub(super) const COLOURS: usize = 7;
/// Units across a panel: about what a phone has in pixels.
pub(super) const WIDTH: f64 = 360.0;

/// More bars or dots than these are left to the table.
pub(super) const MOST: usize = 32;
/// Offset of the area of bars and dots.
pub(super) const TOP: f64 = 6.0;
pub(super) const LEFT: f64 = 8.0;
pub(super) const RIGHT: f64 = WIDTH - 8.0;

/// An element with what is in it, which is markup.
pub(super) fn element(name: &str, attributes: &[(&str, &str)], inside: &str) -> String {
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
pub(crate) fn escape(text: &str) -> String {
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
pub(super) fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e7, 1e7) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `M x y L x y ...` through the points.
pub(super) fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points = points.into_iter().map(|(x, y)| format!("{} {}", number(x), number(y)));
    let points: Vec<String> = points.collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join("L")) }
}

/// A path of that shape.
pub(super) fn stroke(class: &str, d: &str) -> String {
    element("path", &[("class", class), ("d", d)], "")
}

pub(super) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    stroke(class, &path([from, to]))
}

/// A rectangle with what is said of it.
pub(super) fn rectangle(class: &str, corner: (f64, f64), sides: (f64, f64), said: &str) -> String {
    let [x, y, width, height] =
        [corner.0, corner.1, sides.0.max(0.0), sides.1.max(0.0)].map(number);
    let place = [("class", class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)];
    element("rect", &place, &title(said))
}

pub(super) fn label(x: f64, y: f64, class: &str, text: &str) -> String {
    let place = [("class", class), ("x", &number(x)), ("y", &number(y))];
    element("text", &place, &escape(text))
}

/// Text shown when the mouse rests on an element; nothing for an empty text.
pub(super) fn title(text: &str) -> String {
    if text.is_empty() { String::new() } else { element("title", &[], &escape(text)) }
}

/// An element that holds elements, each on a line.
pub(super) fn nested(name: &str, attributes: &[(&str, &str)], inside: &[String]) -> String {
    let inside: String = inside.iter().map(|element| format!("\n{element}")).collect();
    element(name, attributes, &inside)
}

/// A group that the keyboard reaches and a screen reader says.
pub(super) fn heard(class: &str, said: &str, inside: &[String]) -> String {
    let heard = [("class", class), ("tabindex", "0"), ("role", "img"), ("aria-label", said)];
    nested("g", &heard, inside)
}

/// Elements hidden from screen readers: ticks, grid, rules.
pub(super) fn unheard(class: &str, inside: &[String]) -> String {
    nested("g", &[("class", class), ("aria-hidden", "true")], inside)
}

/// About what a letter of a tick takes.
const LETTER: f64 = 5.8;
/// The least between two ticks' texts.
const APART: f64 = 6.0;

/// About what a tick's text takes.
pub(super) fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// The texts of a horizontal axis at that height, none in another and none beyond the ends: of those that would
/// collide the earlier one stays, and the last one always.
pub(super) fn texts(places: &[(f64, String)], y: f64, (left, right): (f64, f64)) -> Vec<String> {
    let mut kept: Vec<(f64, f64, &str)> = Vec::new();
    for (index, (at, text)) in places.iter().enumerate() {
        let half = width_of(text) / 2.0;
        let at = at.min(right - half).max(left + half);
        let collides = |kept: &[(f64, f64, &str)]| {
            kept.last().is_some_and(|(before, width, _)| before + width + APART > at - half)
        };
        let is_last = index + 1 == places.len();
        while is_last && kept.len() > 1 && collides(&kept) {
            kept.pop();
        }
        if !collides(&kept) {
            kept.push((at, half, text));
        }
    }
    kept.into_iter().map(|(at, _, text)| label(at, y, "tick", text)).collect()
}

/// The grid, ticks and title of a horizontal axis below the picture's end; further lines at `rules`.
pub(super) fn horizontal(
    plot: &Plot,
    scale: &Scale,
    bottom: f64,
    rules: &[(f64, &str)],
    title: &str,
) -> String {
    let vertical = |class, at| line(class, (at, TOP), (at, bottom));
    let ticks: Vec<_> =
        scale.ticks(4).iter().map(|tick| (scale.at(*tick), plot.value.tick(*tick))).collect();
    let mut axis: Vec<String> = ticks.iter().map(|(at, _)| vertical("grid", *at)).collect();
    axis.extend(texts(&ticks, bottom + 12.0, (LEFT, RIGHT)));
    axis.extend(rules.iter().map(|(at, _)| vertical("rule", scale.at(*at))));
    axis.push(label((LEFT + RIGHT) / 2.0, bottom + 26.0, "title", title));
    unheard("axis", &axis)
}

/// The grid and ticks of a vertical axis.
pub(super) fn levels(
    y: &Scale,
    ticks: usize,
    ends: (f64, f64),
    write: impl Fn(f64) -> String,
) -> Vec<String> {
    let tick = |value: f64| {
        let at = y.at(value);
        let grid = line("grid", (ends.0, at), (ends.1, at));
        [grid, label(ends.0 - 4.0, at + 3.5, "tick right", &write(value))]
    };
    y.ticks(ticks).into_iter().flat_map(tick).collect()
}

/// The class list of a legend entry's marks.
pub(crate) fn classes(plot: &Plot, key: usize, kind: &str) -> String {
    match plot.keys[key].colour {
        _ if plot.keys[key].reference => format!("{kind} s{key} ref"),
        colour => format!("{kind} s{key} c{} d{}", colour % COLOURS, colour / COLOURS % 3),
    }
}
