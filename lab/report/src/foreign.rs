//! Strings that others chose (names of files, programs and kernels, what a program printed), one function for each medium.
//! HTML's is the template's own.

use std::borrow::Cow;

/// Returns whether a terminal may do something else with it than show it: control characters of both sets, and marks that
/// turn the direction of text.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A string for one line of a terminal.
pub fn line(text: &str) -> Cow<'_, str> {
    match text.contains(is_control) {
        true => text.replace(is_control, "?").into(),
        false => text.into(),
    }
}

/// A string for a cell of a Markdown table.
pub fn markdown(text: &str) -> String {
    let mut cell = String::new();
    let mut all = text.chars().peekable();
    while let Some(character) = all.next() {
        let begins_tag =
            |next: &char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
        match character {
            '|' => cell += "\\|",
            '<' if all.peek().is_some_and(begins_tag) => cell += "\\<",
            control if is_control(control) => cell.push('?'),
            other => cell.push(other),
        }
    }
    cell
}

/// A string for a cell of a table that a spreadsheet may open: one that would be a formula there is a text. Numbers stay.
pub fn csv(cell: &str) -> Cow<'_, str> {
    let is_figure = || {
        let figure = cell.trim_end_matches('%').trim_end();
        cell == "-" || figure.parse::<f64>().is_ok()
    };
    match cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_figure() {
        true => format!("'{}", line(cell)).into(),
        false => line(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_chose_does_nothing_in_any_medium() {
        let cases = [
            ("plain gr\u{f6}\u{df}e", "plain gr\u{f6}\u{df}e", "plain gr\u{f6}\u{df}e", None),
            ("n\new\x1b[31mred", "n?ew?[31mred", "n?ew?[31mred", None),
            ("a\u{202e}b\u{9b}c\x7f", "a?b?c?", "a?b?c?", None),
            ("w <img src=x> | 1 < 2", "w <img src=x> | 1 < 2", "w \\<img src=x> \\| 1 < 2", None),
            ("=cmd|calc", "=cmd|calc", "=cmd\\|calc", Some("'=cmd|calc")),
            ("@x", "@x", "@x", Some("'@x")),
            ("+5 %", "+5 %", "+5 %", None),
            ("-1.5", "-1.5", "-1.5", None),
            ("-1+cmd", "-1+cmd", "-1+cmd", Some("'-1+cmd")),
            ("-", "-", "-", None),
        ];
        for (text, terminal, page, sheet) in cases {
            assert_eq!((&*line(text), &*markdown(text)), (terminal, page), "{text:?}");
            assert_eq!(csv(text), sheet.unwrap_or(terminal), "{text:?}");
        }
    }
}
