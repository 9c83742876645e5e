//! Stacks as a flame graph: each function as wide as the part of all that its stacks count.

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Palette};
use inferno::flamegraph::{self, Direction, Options};

/// Pixels across; narrower screens scroll.
const WIDTH: usize = 1160;
/// A function narrower than this part in per cent is left out: what it is called for is in the folded stacks.
const LEAST_PER_CENT: f64 = 0.5;

/// The element of a picture of folded stacks: lines of functions between semicolons, a space, a count.
pub fn svg(title: &str, unit: &str, folded: &str) -> String {
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    unit.clone_into(&mut options.count_name);
    options.colors = Palette::Basic(BasicPalette::Orange);
    options.bgcolors = Some(BackgroundColor::Blue);
    options.deterministic = true;
    options.image_width = Some(WIDTH);
    options.min_width = LEAST_PER_CENT;
    // From the top down: a page shows its beginning, and few stacks are deep.
    options.direction = Direction::Inverted;
    // The page allows no scripts; what a mouse rests on has a title.
    options.no_javascript = true;
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    let mut picture = Vec::new();
    match flamegraph::from_lines(&mut options, lines, &mut picture) {
        Ok(()) => inside(&String::from_utf8_lossy(&picture)),
        // Without any stack there is no picture.
        Err(_) => String::new(),
    }
}

/// The element alone, without its style, which would be the whole page's, and without the words that scripts make buttons of.
fn inside(document: &str) -> String {
    let from = document.find("<svg").unwrap_or(0);
    let mut element = document[from..].to_owned();
    for (begin, end) in [
        ("<style", "</style>"),
        ("<script", "</script>"),
        ("<text id=\"unzoom\"", "</text>"),
        ("<text id=\"search\"", "</text>"),
    ] {
        while let Some(at) = element.find(begin)
            && let Some(length) = element[at..].find(end)
        {
            element.replace_range(at..at + length + end.len(), "");
        }
    }
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_names_functions_and_has_neither_script_nor_style() {
        let picture = svg("Page faults", "page faults", "p;main;<f> 30\np;main;g 10\n");
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
        for part in ["&lt;f&gt; (30 page faults, 75.00%)", "main (40 page faults, 100.00%)"] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        for part in ["<script", "<style", "Reset Zoom", "Search"] {
            assert!(!picture.contains(part), "{part}: {picture}");
        }
        assert_eq!(svg("x", "y", ""), "");
    }
}
