//! A number in a program's output that is measured in place of the time, with its unit.

use crate::figures::{Kind, Own, unit};
use regex_lite::Regex;

/// Pattern of a figure, and the direction in which it is better.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The first group is the number, or all of it.
    pub pattern: Regex,
    /// Less of it is better.
    pub less: bool,
}

impl Pattern {
    /// The geometric mean of all its numbers, as a cost, and their unit. Times and sizes are converted to seconds and bytes,
    /// because a program may choose another prefix in each run.
    ///
    /// # Errors
    /// No number above 0, a part of a number, or numbers of unlike units: what was found.
    pub fn read(&self, output: &[u8]) -> Result<(Own, String), String> {
        let text = String::from_utf8_lossy(output);
        let pattern = self.pattern.as_str();
        let mut logs = Vec::new();
        let mut unit: Option<String> = None;
        for found in self.pattern.captures_iter(&text) {
            let Some(word) = found.get(1).or_else(|| found.get(0)) else { continue };
            let (before, behind) = (&text[..word.start()], &text[word.end()..]);
            is_whole(before, word.as_str(), behind)?;
            let Some(value) = number(word.as_str(), has_decimal_comma())? else { continue };
            let (name, factor) = unit_behind(behind);
            if let Some(first) = unit.as_ref().filter(|first| **first != name) {
                return Err(format!(
                    "--figure: found numbers in \"{first}\" and in \"{name}\", expected one unit"
                ));
            }
            unit = Some(name);
            logs.extend((value > 0.0).then(|| (value * factor).ln()));
        }
        if logs.is_empty() {
            return Err(format!(
                "--figure: found no number above 0 by \"{pattern}\" in the output"
            ));
        }
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let cost = if self.less { mean } else { 1.0 / mean };
        let unit = unit.unwrap_or_default();
        let kind = match (self.less, unit.as_str()) {
            (false, _) => Kind::Rate,
            (true, "s") => Kind::Seconds,
            (true, "B") => Kind::Bytes,
            (true, _) => Kind::Count,
        };
        Ok((Own { cost, kind }, unit))
    }
}

/// The unit behind a number: `s` or `B` with its factor where it is a time or a size; other words as they are.
fn unit_behind(text: &str) -> (String, f64) {
    let text = text.trim_start_matches([' ', '\t']);
    let is_part = |c: char| c.is_alphabetic() || "µμ/%".contains(c);
    let word: String = text.chars().take_while(|c| is_part(*c)).collect();
    match unit(&word) {
        _ if word.is_empty() => (String::new(), 1.0),
        Some((Kind::Seconds, factor)) => ("s".to_owned(), factor),
        Some((Kind::Bytes, factor)) => ("B".to_owned(), factor),
        // `MB/s` and `kB/s` are one unit with two prefixes.
        Some((Kind::Rate, factor)) if factor != 1.0 => {
            let what = word.trim_start_matches(['k', 'K', 'M', 'G', 'T', 'i']).to_owned();
            (what, factor)
        }
        _ => (word, 1.0),
    }
}

/// Refuses a pattern that takes a part of a number.
fn is_whole(before: &str, word: &str, behind: &str) -> Result<(), String> {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut next = behind.chars();
    let continues = match next.next() {
        Some(',' | '.') => digit(next.next()) && digit(word.chars().next_back()),
        first => digit(first) && digit(word.chars().next_back()),
    };
    let mut last = before.chars().rev();
    let begins = match last.next() {
        Some(',' | '.') => digit(last.next()) && digit(word.chars().next()),
        first => digit(first) && digit(word.chars().next()),
    };
    match continues || begins {
        true => Err(format!(
            "--figure: found \"{word}\", which is a part of a number, expected all of it"
        )),
        false => Ok(()),
    }
}

/// Returns whether the locale may write numbers with a decimal comma: any but C's and those of English.
fn has_decimal_comma() -> bool {
    let set =
        ["LC_ALL", "LC_NUMERIC", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    !["", "C", "C.UTF-8", "C.utf8", "POSIX"].contains(&locale.as_str())
        && !locale.starts_with("en_")
}

/// The number that a word is: `8.25`, `8,25`, `1,234,567.8`, `1.234,5`. `None` for other words. A single comma or
/// dot before three digits is a thousand's or a decimal one: a comma that may be either is refused.
fn number(word: &str, may_be_decimal: bool) -> Result<Option<f64>, String> {
    let parse = |text: String| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let commas = word.matches(',').count();
    let dots = word.matches('.').count();
    // The digits behind the last comma, up to an exponent.
    let behind = word.rsplit(',').next().unwrap_or_default();
    let digits = behind.chars().take_while(char::is_ascii_digit).count();
    let last_is_comma = word.rfind(',') > word.rfind('.');
    Ok(match (commas, dots) {
        (0, 0 | 1) => parse(word.to_owned()),
        // `1.234.567`
        (0, _) => parse(word.replace('.', "")),
        // `1.234,5`: the last of the two separates the decimals.
        (1, 1..) if last_is_comma => parse(word.replace('.', "").replace(',', ".")),
        (_, 1) if !last_is_comma => parse(word.replace(',', "")),
        (2.., 0) => parse(word.replace(',', "")),
        (1, 0) if digits != 3 => parse(word.replace(',', ".")),
        (1, 0) if may_be_decimal => {
            return Err(format!(
                "--figure: \"{word}\" may be {} or {}: set LC_ALL=C before the command, or use a pattern that takes digits alone",
                word.replace(',', ""),
                word.replace(',', ".")
            ));
        }
        (1, 0) => parse(word.replace(',', "")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_is_read_right_or_refused() {
        for (word, expected) in [
            ("12", 12.0),
            ("8.25", 8.25),
            ("8,25", 8.25),
            ("1,5e3", 1500.0),
            ("1,234,567", 1_234_567.0),
            ("1,234.5", 1234.5),
            ("1.234,5", 1234.5),
            ("1.234.567,25", 1_234_567.25),
            ("12,34,567.5", 1_234_567.5),
        ] {
            for may_be_decimal in [false, true] {
                assert_eq!(number(word, may_be_decimal), Ok(Some(expected)), "{word}");
            }
        }
        assert_eq!(number("12,500", false), Ok(Some(12_500.0)));
        assert!(number("12,500", true).is_err());
        assert_eq!(number("x", true), Ok(None));
    }

    #[test]
    fn a_figure_has_one_unit_whatever_its_prefix() {
        let read = |pattern: &str, less, text: &str| {
            let pattern = Pattern { pattern: Regex::new(pattern).expect("one"), less };
            pattern.read(text.as_bytes()).map(|(own, unit)| (own.cost, unit))
        };
        let near = |found: Result<(f64, String), String>, cost: f64, unit: &str| {
            let (found, of) = found.expect(unit);
            assert!((found / cost - 1.0).abs() < 1e-9 && of == unit, "{found} {of}");
        };
        near(
            read("rate ([0-9.,]+)", false, "rate 8,25\nrate 12,5\n"),
            1.0 / (8.25_f64 * 12.5).sqrt(),
            "",
        );
        near(read("took ([0-9.]+)", true, "took 950 us"), 950e-6, "s");
        near(read("took ([0-9.]+)", true, "took 1.2ms"), 1.2e-3, "s");
        near(read("at ([0-9.]+)", false, "at 900 kB/s"), 1.0 / 9e5, "B/s");
        near(read("at ([0-9.]+)", false, "at 1.1 MB/s"), 1.0 / 1.1e6, "B/s");
        near(read("at ([0-9]+)", false, "at 7 points"), 1.0 / 7.0, "points");
        for (pattern, text) in [
            ("[0-9.]+", "1,000,000"),
            ("rate ([0-9])", "rate 12"),
            ("took ([0-9.]+)", "took 5 ms, took 3 points"),
            ("rate ([0-9]+)", "none"),
        ] {
            assert!(read(pattern, true, text).is_err(), "{text}");
        }
    }
}
