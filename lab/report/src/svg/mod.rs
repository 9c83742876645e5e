//! SVG by hand, written the same way every time, so that pictures can be compared as text. Numbers
//! have one decimal, text is escaped, colours are names of the page's style sheet (`style.css`),
//! which knows light and dark.

mod bars;
mod curve;
mod elements;
mod heat;
pub(crate) mod palette;
#[cfg(test)]
mod tests;

use cachewise_measure::FigureKind;
use elements::*;
pub(crate) use elements::{classes, escape};

/// Rules for a picture's classes, in terms of the `palette`'s properties.
pub const STYLE: &str = include_str!("style.css");
/// Pixels of a picture's unit, where nothing else says how large it is shown: two beside each other on a page.
const SCALE: f64 = 1.5;

/// A panel's height and elements.
fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    match plot.kind {
        FigureKind::Curve => curve::draw(plot, panel),
        FigureKind::HeatMap => heat::draw(plot, panel),
        _ => bars::draw(plot, panel),
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

/// The style sheet with the light colour before each that is a property of the palette: a renderer that knows no such
/// properties leaves the second declaration out, and the picture is not black.
fn with_fallbacks(style: &str) -> String {
    let light = |name: &str| {
        let rest = palette::LIGHT.split_once(&format!("--{name}: "))?.1;
        rest.split(';').next()
    };
    let declared = |part: &str| -> Option<String> {
        let (property, value) = part.strip_suffix(';')?.split_once(": ")?;
        let name = value.strip_prefix("var(--")?.strip_suffix(')')?;
        // A series' own colour is that of its group.
        let value = if name == "c" { "currentColor" } else { light(name)? };
        let property = if property.trim() == "--c" { " color" } else { property };
        Some(format!("{property}: {value};"))
    };
    let parts = style.split_inclusive([';', '{', '}']);
    parts.map(|part| declared(part).unwrap_or_default() + part).collect()
}

/// A panel as a file of its own, light and dark inside.
pub fn document(plot: &Plot, only: &Panel) -> String {
    let (mut height, drawn) = draw(plot, only);
    let keys = || plot.keys.iter().enumerate();
    let hidden = keys().filter(|(_, key)| !key.shown);
    let hidden: String = hidden.map(|(key, _)| format!(".s{key}{{display:none}}\n")).collect();
    let sheet = with_fallbacks(STYLE);
    // The style sheet is ours: it holds nothing that markup could mistake.
    let style = format!(
        "<style>\n:root {{ {} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n\
         {sheet}{hidden}</style>",
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
