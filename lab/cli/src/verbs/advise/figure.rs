//! A number in a program's output that is measured in place of the time.

use anyhow::bail;
use regex_lite::Regex;

/// A number in the output that is measured in place of the time.
pub struct Figure {
    pub pattern: Regex,
    /// Less of it is better.
    pub less: bool,
}

impl Figure {
    /// The geometric mean of all its numbers, as a cost: what is better is smaller.
    pub fn cost(&self, output: &[u8]) -> anyhow::Result<f64> {
        let text = String::from_utf8_lossy(output);
        let mut logs = Vec::new();
        for found in self.pattern.captures_iter(&text) {
            let Some(word) = found.get(1).or_else(|| found.get(0)) else { continue };
            if let Some(number) = number(word.as_str(), has_decimal_comma())? {
                logs.extend((number > 0.0).then(|| number.ln()));
            }
        }
        if logs.is_empty() {
            bail!(
                "--figure: found no number above 0 by \"{}\" in the output",
                self.pattern.as_str()
            );
        }
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        Ok(if self.less { mean } else { 1.0 / mean })
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

/// The number that a word is: `8.25`, `8,25`, `1,234,567.8`, `1.234,5`. `None` for a word that is none. A single comma or
/// dot before three digits is a thousand's or a decimal one: a comma that may be either is refused.
fn number(word: &str, may_be_decimal: bool) -> anyhow::Result<Option<f64>> {
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
        (1, 0) if may_be_decimal => bail!(
            "--figure: found \"{word}\", which may be {} or {}; accepted: LC_ALL=C before the command, or a pattern that \
             takes digits alone",
            word.replace(',', ""),
            word.replace(',', ".")
        ),
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
            ("12,5", 12.5),
            ("1,5e3", 1500.0),
            ("1,234,567", 1_234_567.0),
            ("1,234.5", 1234.5),
            ("1.234,5", 1234.5),
            ("1.234.567,25", 1_234_567.25),
            ("12,34,567.5", 1_234_567.5),
        ] {
            for may_be_decimal in [false, true] {
                let found = number(word, may_be_decimal).expect(word);
                assert_eq!(found, Some(expected), "{word}");
            }
        }
        assert_eq!(number("12,500", false).expect("English"), Some(12_500.0));
        let refused = number("12,500", true).expect_err("either").to_string();
        assert!(refused.contains("12500 or 12.500"), "{refused}");
        assert_eq!(number("x", true).expect("no number"), None);
    }

    #[test]
    fn the_cost_of_a_figure_is_small_where_it_is_good() {
        let figure = |less| Figure { pattern: Regex::new(r"rate ([0-9.,]+)").expect("one"), less };
        let cost = figure(false).cost(b"rate 8,25\nrate 12,5\n").expect("numbers");
        assert!((1.0 / cost - (8.25_f64 * 12.5).sqrt()).abs() < 1e-9, "{cost}");
        assert!((figure(true).cost(b"rate 2.0").expect("a number") - 2.0).abs() < 1e-12);
        assert!(figure(true).cost(b"rate none").is_err());
    }
}
