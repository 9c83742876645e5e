//! A page of one comparison in pairs: the sentence, each pair's ratio as a dot, the table.

use crate::Table;
use crate::html::page_style;
use crate::svg::escape;
use cachewise_judge::Ratio;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
/// Room for the percentages at the left.
const LEFT: f64 = 64.0;

/// Draws the page. `ratios` are those of the pairs in the order of their runs, `over_all` is the estimate with its
/// interval; differences within `margin` are of no interest.
#[must_use]
pub fn page(
    sentence: &str,
    ratios: &[f64],
    over_all: Option<&Ratio>,
    margin: f64,
    tables: &[Table],
) -> String {
    let tables: String = tables.iter().map(table).collect();
    let picture = picture(ratios, over_all, margin).unwrap_or_default();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{picture}{tables}</main>\n</body>\n</html>\n",
        title = escape(sentence),
        style = page_style(),
    )
}

fn table(table: &Table) -> String {
    let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", escape(text));
    let row = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        format!("<tr>{}</tr>\n", cells.map(|text| cell(tag, text)).collect::<String>())
    };
    let heads = table.heads();
    let head = row("th", &mut heads.iter().map(|(name, _)| name.as_str()));
    let rows: String =
        table.rows.iter().map(|cells| row("td", &mut cells.iter().map(String::as_str))).collect();
    format!(
        "<table>\n<caption>{}</caption>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n",
        escape(&table.caption)
    )
}

/// The dots over the number of the pair; the margin and the interval as bands. None for fewer than two pairs.
fn picture(ratios: &[f64], over_all: Option<&Ratio>, margin: f64) -> Option<String> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let most = logs.iter().fold(margin.ln_1p(), |most, log| most.max(log.abs())) * 1.1;
    let y = |log: f64| HEIGHT / 2.0 - log / most * (HEIGHT / 2.0 - 12.0);
    let x = |at: usize| LEFT + 12.0 + at as f64 / (logs.len() - 1) as f64 * (WIDTH - LEFT - 24.0);
    let band = |low: f64, high: f64, opacity: f64| {
        format!(
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"currentColor\" opacity=\"{opacity}\"/>\n",
            y(high),
            WIDTH - LEFT,
            (y(low) - y(high)).max(0.5),
        )
    };
    let mut drawn = band(-margin.ln_1p(), margin.ln_1p(), 0.08);
    if let Some(ratio) = over_all.filter(|ratio| ratio.is_sound()) {
        drawn.push_str(&band(ratio.low.ln(), ratio.high.ln(), 0.25));
    }
    for log in [-most / 1.1, 0.0, most / 1.1] {
        drawn.push_str(&format!(
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"currentColor\" opacity=\"0.4\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"12\" fill=\"currentColor\">{:+.1} %</text>\n",
            LEFT - 6.0,
            y(log) + 4.0,
            100.0 * (log.exp() - 1.0),
            at = y(log),
        ));
    }
    for (at, log) in logs.iter().enumerate() {
        drawn.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"currentColor\"/>\n",
            x(at),
            y(*log)
        ));
    }
    Some(format!(
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"the new program over the old one, a dot \
         for each pair of runs\">\n{drawn}</svg>\n<figcaption>New over old, a dot for each pair of runs in their order; above 0 \
         the new one is worse. Light: differences of no interest. Dark: where the true one lies (95 %).</figcaption>\n\
         </figure>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_dot_for_each_pair_and_foreign_names_are_text() {
        let mut rows = Table::new("<b>", &["name", "ratio"]);
        rows.push(vec!["<script>".to_owned(), "1".to_owned()]);
        let ratio = Ratio { median: 1.03, low: 1.01, high: 1.05, rounds: 3 };
        let drawn = page("slower & so on", &[1.02, 1.03, 1.04], Some(&ratio), 0.02, &[rows]);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(
            !drawn.contains("<script>")
                && drawn.contains("&lt;script&gt;")
                && drawn.contains("slower &amp; so on")
        );
        assert!(!page("none", &[1.0], None, 0.02, &[]).contains("<svg"));
    }
}
