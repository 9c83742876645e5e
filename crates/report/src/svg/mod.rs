//! SVG by hand: a tree of elements that is written the same way every time, so that pictures can be
//! compared as text. Numbers have one decimal, text is escaped, colours are names of the page's
//! style sheet (`style.css`), which knows light and dark.

mod bars;
mod curve;
mod heat;
mod histogram;
pub mod palette;

use crate::plot::{Key, Panel, Plot};
use cachewise_measure::FigureKind;

/// Colours before they repeat with another dash.
pub const COLOURS: usize = 7;
/// Rules for a picture's classes, in terms of the [`palette`]'s properties.
pub const STYLE: &str = include_str!("style.css");
/// Units across a panel: about what a phone has in pixels.
pub const WIDTH: f64 = 360.0;

/// An element with what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// An element with nothing in it.
    pub fn new(name: &'static str) -> Element {
        Element { name, attributes: Vec::new(), children: Vec::new() }
    }

    /// With an attribute of text.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: impl Into<String>) -> Element {
        self.attributes.push((name, value.into()));
        self
    }

    /// With an attribute of a number.
    #[must_use]
    pub fn at(self, name: &'static str, value: f64) -> Element {
        self.set(name, number(value))
    }

    /// With another element inside, last.
    #[must_use]
    pub fn with(mut self, child: Element) -> Element {
        self.push(child);
        self
    }

    /// With text inside, last.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Element {
        self.children.push(Node::Text(text.into()));
        self
    }

    /// Puts another element inside, last.
    pub fn push(&mut self, child: Element) {
        self.children.push(Node::Element(child));
    }

    /// As text, an element a line where it holds elements.
    pub fn write(&self) -> String {
        let mut out = String::new();
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.name);
        for (name, value) in &self.attributes {
            out.push_str(&format!(" {name}=\"{}\"", escape(value)));
        }
        if self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Text(text) => out.push_str(&escape(text)),
                Node::Element(element) => {
                    if matches!(self.name, "svg" | "g") {
                        out.push('\n');
                    }
                    element.write_to(out);
                }
            }
        }
        out.push_str(&format!("</{}>", self.name));
    }
}

/// Text that may stand in markup, in an attribute too. Characters that XML has no place for become
/// the replacement character.
pub fn escape(text: &str) -> String {
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
pub fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e7, 1e7) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `M x y L x y ...` through the points.
fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in points {
        text.push(if text.is_empty() { 'M' } else { 'L' });
        text.push_str(&format!("{} {}", number(x), number(y)));
    }
    text
}

/// The class list of a legend entry's marks.
fn classes(plot: &Plot, key: usize, kind: &str) -> String {
    let Key { reference, colour, .. } = plot.keys[key];
    let colour = if reference {
        "ref".to_owned()
    } else {
        format!("c{} d{}", colour % COLOURS, colour / COLOURS % 3)
    };
    format!("{kind} s{key} {colour}")
}

/// The colour classes alone, for the legend.
pub fn key_classes(plot: &Plot, key: usize) -> String {
    classes(plot, key, "swatch")
}

/// The horizontal scale of an axis between two lengths.
pub(crate) fn axis_scale(axis: &crate::plot::Axis, ends: (f64, f64)) -> crate::plot::scale::Scale {
    let first = axis.places.first().copied().unwrap_or(0.0);
    let last = axis.places.last().copied().unwrap_or(1.0);
    crate::plot::scale::Scale::new((first, last), axis.log, ends)
}

/// A text element.
fn label(x: f64, y: f64, class: &str, text: impl Into<String>) -> Element {
    Element::new("text").set("class", class).at("x", x).at("y", y).text(text)
}

/// A path of that shape.
fn stroke(class: &str, d: String) -> Element {
    Element::new("path").set("class", class).set("d", d)
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Element {
    stroke(class, path([from, to]))
}

fn rectangle(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Element {
    Element::new("rect")
        .set("class", class)
        .at("x", x)
        .at("y", y)
        .at("width", width.max(0.0))
        .at("height", height.max(0.0))
}

/// A group that the keyboard reaches and a screen reader says.
fn heard(class: impl Into<String>, said: impl Into<String>) -> Element {
    let group = Element::new("g").set("class", class).set("tabindex", "0");
    group.set("role", "img").set("aria-label", said)
}

/// What the eye alone needs: ticks, grid, rules.
fn unheard(class: &str) -> Element {
    Element::new("g").set("class", class).set("aria-hidden", "true")
}

fn title(text: impl Into<String>) -> Element {
    Element::new("title").text(text)
}

/// A panel of the plot, with its own `viewBox` and an accessible name.
pub fn panel(plot: &Plot, panel: &Panel) -> Element {
    let (height, content) = draw(plot, panel);
    picture(plot, panel, height, content)
}

/// A panel's height and elements.
fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<Element>) {
    match plot.kind {
        FigureKind::Curve => curve::draw(plot, panel),
        FigureKind::Bars => bars::draw(plot, panel),
        FigureKind::HeatMap => heat::draw(plot, panel),
        FigureKind::Histogram => histogram::draw(plot, panel),
    }
}

fn picture(plot: &Plot, panel: &Panel, height: f64, content: Vec<Element>) -> Element {
    let mut svg = Element::new("svg")
        .set("class", "chart")
        .set("viewBox", format!("0 0 {} {}", number(WIDTH), number(height)))
        .set("role", "group")
        .set("aria-label", format!("{}: {}", plot.title, panel.title));
    content.into_iter().for_each(|element| svg.push(element));
    svg
}

/// Pixels of a picture's unit, where nothing else says how large it is shown: two beside each other on a page.
const SCALE: f64 = 1.5;

/// A panel as a file of its own, light and dark inside.
pub fn document(plot: &Plot, only: &Panel) -> String {
    let (mut height, mut content) = draw(plot, only);
    let shown: String = (0..plot.keys.len())
        .filter(|key| !plot.keys[*key].shown)
        .map(|key| format!(".s{key}{{display:none}}\n"))
        .collect();
    let style = format!(
        ":root {{ {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n{STYLE}{shown}",
        palette::LIGHT,
        palette::DARK
    );
    // A legend of its own: in the page it is made of check boxes.
    if matches!(plot.kind, FigureKind::Curve) {
        let bottom = height;
        let visible: Vec<usize> = (0..plot.keys.len())
            .filter(|key| plot.keys[*key].shown && only.series.iter().any(|s| s.key == *key))
            .collect();
        for (index, key) in visible.iter().enumerate() {
            let (x, y) =
                (48.0 + (index % 2) as f64 * 156.0, bottom + 12.0 + (index / 2) as f64 * 16.0);
            let group = Element::new("g")
                .set("class", classes(plot, *key, "series"))
                .with(line("line", (x - 20.0, y - 4.0), (x - 4.0, y - 4.0)))
                .with(label(x, y, "tick left", plot.keys[*key].name.clone()));
            content.push(group);
        }
        height = bottom + 10.0 + visible.len().div_ceil(2) as f64 * 16.0;
    }
    content.insert(0, title(format!("{}: {}", plot.title, only.title)));
    let svg = picture(plot, only, height, content);
    let mut svg = svg.at("width", SCALE * WIDTH).at("height", SCALE * height);
    svg.attributes.insert(0, ("xmlns", "http://www.w3.org/2000/svg".to_owned()));
    let mut text = svg.write();
    // The style sheet is ours: it holds nothing that markup could mistake.
    if let Some(end) = text.find('>') {
        text.insert_str(end + 1, &format!("\n<style>\n{style}</style>"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{everything, record, row};
    use crate::plot::plots;
    use cachewise_measure::{PairedRatio, Record};
    use proptest::prelude::*;

    fn drawn(record: &Record) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for plot in plots(record) {
            for only in &plot.panels {
                found.push((only.title.clone(), panel(&plot, only).write()));
                found.push((only.title.clone(), document(&plot, only)));
            }
        }
        found
    }

    /// Every number in an attribute is one, and tags close in order.
    #[track_caller]
    fn well_formed(text: &str) {
        for bad in ["NaN", "inf", "\"null\""] {
            assert!(!text.contains(bad), "{bad} in {text}");
        }
        let body = text.split("</style>").last().expect("text");
        let body = if text.contains("<style>") { body } else { text };
        let mut open = Vec::new();
        for tag in body.split('<').skip(1) {
            let inside = tag.split('>').next().expect("a tag");
            assert!(tag.contains('>'), "an open tag: {tag}");
            if let Some(name) = inside.strip_prefix('/') {
                if open.is_empty() && name == "svg" {
                    continue;
                }
                assert_eq!(open.pop(), Some(name.to_owned()), "{body}");
            } else if !inside.ends_with('/') {
                open.push(inside.split(' ').next().expect("a name").to_owned());
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn every_kind_is_drawn() {
        let all = drawn(&everything());
        let titles: Vec<&String> = all.iter().map(|(title, _)| title).collect();
        assert_eq!(titles.len(), 2 * (1 + 5 + 1 + 1), "{titles:?}");
        all.iter().for_each(|(_, text)| well_formed(text));
        let of = |index: usize| &all[index * 2].1;
        insta::assert_snapshot!("curve", of(0));
        insta::assert_snapshot!("bars", of(1));
        insta::assert_snapshot!("heat-map", of(6));
        insta::assert_snapshot!("histogram", of(7));
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut hostile = row("copy", 4096, "warm", "</text><script>alert('x')</script>\u{0}");
        hostile.cell.operation = "\"><b onload=1>".into();
        let all = drawn(&record(vec![hostile]));
        assert!(!all.is_empty());
        for (_, text) in all {
            assert!(!text.contains("<script") && !text.contains("<b onload"), "{text}");
            assert!(!text.contains('\u{0}'));
            well_formed(&text);
        }
    }

    proptest! {
        #[test]
        fn no_value_breaks_a_picture(
            times in proptest::collection::vec(prop_oneof![
                -1e3_f64..1e3, Just(f64::NAN), Just(f64::INFINITY), Just(0.0), 1e-300_f64..1e300,
            ], 0..6),
            ratio in prop_oneof![Just(f64::NAN), Just(0.0), -1.0_f64..10.0, Just(f64::INFINITY)],
            size in 0_u64..u64::MAX,
        ) {
            let mut record = everything();
            for (index, row) in record.rows.iter_mut().enumerate() {
                row.operation_ns.clone_from(&times);
                if index % 2 == 0 {
                    row.reader_ns.clone_from(&times);
                }
                row.total_ratio =
                    Some(PairedRatio { median: ratio, low: ratio, high: ratio, rounds: 3 });
                if index % 3 == 0 {
                    row.cell.size = size;
                }
                for value in row.cell.axes.values_mut() {
                    *value *= ratio;
                }
            }
            for (_, text) in drawn(&record) {
                well_formed(&text);
            }
        }
    }

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.04), "0");
        assert_eq!(number(12.349), "12.3");
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(f64::INFINITY), "0");
    }
}
