//! The figures in text: curves in braille with a letter at each point, bars in blocks. Nothing is
//! told by colour alone, and no line is wider than it may be.

mod canvas;

use crate::plot::scale::Scale;
use crate::plot::{Panel, Plot, Point, Quantity};
use crate::units::{significant, time};
use cachewise_measure::FigureKind;
use canvas::Canvas;

/// The narrowest that is drawn for; narrower terminals wrap.
const NARROWEST: usize = 32;
/// The widest: beyond it curves are stretched for nothing.
const WIDEST: usize = 110;
/// Rows of a curve.
const HIGH: usize = 12;
/// Candidates in one picture, the reference among them.
const MOST: usize = 6;
/// Bars in one picture.
const MOST_BARS: usize = 16;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to fill.
    pub width: u16,
    /// Whether escape codes for colour may be used.
    pub colour: bool,
}

/// The whole figure, panel after panel.
pub fn plot(plot: &Plot, style: Style) -> String {
    let width = usize::from(style.width).clamp(NARROWEST, WIDEST);
    let mut text = fold(&plot.title, width);
    for panel in &plot.panels {
        text.push('\n');
        text.push_str(&fold(&panel.title, width));
        text.push_str(&match plot.kind {
            FigureKind::Curve => curve(plot, panel, width, style.colour),
            FigureKind::Bars => bars(plot, panel, width),
            FigureKind::HeatMap => heat(plot, panel, width),
            FigureKind::Histogram => histogram(plot, panel, width),
        });
    }
    text
}

/// Words in lines of at most `width` columns.
fn fold(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let long = word.chars().count();
        if used > 0 && used + 1 + long > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        let word = cut(word, width);
        used += word.chars().count();
        out.push_str(&word);
    }
    out.push('\n');
    out
}

/// At most `width` characters, the last of them telling of a cut; control characters have no place
/// on a terminal.
fn cut(text: &str, width: usize) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    if text.chars().count() <= width {
        return text.chars().map(clean).collect();
    }
    text.chars().take(width.saturating_sub(1)).map(clean).chain(['~']).collect()
}

fn pad(text: &str, width: usize) -> String {
    format!("{:<width$}", cut(text, width))
}

fn pad_left(text: &str, width: usize) -> String {
    format!("{:>width$}", cut(text, width))
}

/// Letters of the candidates, the reference's first.
const LETTERS: [char; MOST] = ['o', 'a', 'b', 'c', 'd', 'e'];

/// Which series are drawn: the reference and the first that stand in the picture anyway.
fn chosen(plot: &Plot, panel: &Panel) -> Vec<(char, usize)> {
    let is_reference = |index: &usize| plot.keys[panel.series[*index].key].reference;
    let all: Vec<usize> =
        (0..panel.series.len()).filter(|index| plot.keys[panel.series[*index].key].shown).collect();
    let references: Vec<usize> = all.iter().copied().filter(is_reference).take(1).collect();
    let others = all.iter().copied().filter(|index| !is_reference(index)).take(MOST - 1);
    let first = usize::from(references.is_empty());
    references
        .into_iter()
        .chain(others)
        .enumerate()
        .map(|(rank, index)| (LETTERS[(rank + first).min(MOST - 1)], index))
        .collect()
}

fn curve(plot: &Plot, panel: &Panel, width: usize, colour: bool) -> String {
    let chosen = chosen(plot, panel);
    let points = || chosen.iter().flat_map(|(_, index)| &panel.series[*index].points);
    let mut low = points().map(|point| point.value.mid).fold(f64::INFINITY, f64::min);
    let mut high = points().map(|point| point.value.mid).fold(f64::NEG_INFINITY, f64::max);
    if !(low.is_finite() && high.is_finite()) {
        return "  nothing to draw\n".to_owned();
    }
    if plot.value.is_ratio() {
        (low, high) = (low.min(1.0), high.max(1.0));
    }
    let log = low > 0.0 && (plot.value.is_ratio() || high / low > 12.0);
    if !log {
        low = low.min(0.0);
    }
    const LABEL: usize = 8;
    let columns = width - LABEL - 1;
    let x = crate::svg::axis_scale(&panel.x, (0.0, columns as f64 - 1.0));
    let y = Scale::new((low, high), log, (HIGH as f64 - 1.0, 0.0));
    let mut canvas = Canvas::new(columns, HIGH);
    for rule in &panel.rules {
        canvas.rule(x.at(rule.at));
    }
    if plot.value.is_ratio() {
        canvas.level(y.at(1.0));
    }
    for (rank, (letter, index)) in chosen.iter().enumerate().rev() {
        let places: Vec<(f64, f64)> = panel.series[*index]
            .points
            .iter()
            .map(|point| (x.at(point.x), y.at(point.value.mid)))
            .collect();
        canvas.curve(&places, rank);
        places.iter().for_each(|(x, y)| canvas.mark(*x, *y, *letter, rank));
    }
    let mut text = String::new();
    if !panel.rules.is_empty() {
        let mut names = vec![' '; columns];
        let mut free = 0;
        for rule in &panel.rules {
            let start = (x.at(rule.at).round() as usize)
                .min(columns.saturating_sub(rule.name.chars().count()));
            if start < free {
                continue;
            }
            for (offset, letter) in rule.name.chars().enumerate() {
                names[start + offset] = letter;
            }
            free = start + rule.name.chars().count() + 1;
        }
        let names: String = names.into_iter().collect();
        text.push_str(format!("{:LABEL$} {names}", "").trim_end());
        text.push('\n');
    }
    let ticks: Vec<(usize, String)> = y
        .ticks(4)
        .into_iter()
        .map(|tick| (y.at(tick).round() as usize, plot.value.tick(tick)))
        .collect();
    for row in 0..HIGH {
        let label = ticks.iter().find(|(at, _)| *at == row).map_or("", |(_, label)| label);
        let line = format!("{} {}", pad_left(label, LABEL), canvas.row(row, colour));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let first = panel.x.places.first().map_or(String::new(), |place| panel.x.write(*place));
    let last = panel.x.places.last().map_or(String::new(), |place| panel.x.write(*place));
    let room = columns.saturating_sub(first.chars().count() + last.chars().count());
    let title = if room > panel.x.title.chars().count() + 2 { panel.x.title.as_str() } else { "" };
    text.push_str(&format!("{:LABEL$} {first}{title:^room$}{last}\n", ""));
    let log = if log { ", log" } else { "" };
    let mut legend: Vec<String> = chosen
        .iter()
        .map(|(letter, index)| format!("{letter} {}", plot.keys[panel.series[*index].key].name))
        .collect();
    let more = panel.series.len() - chosen.len();
    if more > 0 {
        legend.push(format!("({more} more in the report)"));
    }
    text.push_str(&fold(&format!("{}{log}:", plot.value.title()), width));
    text.push_str(&columns_of(&legend, width));
    text
}

/// Entries in as many columns as fit.
fn columns_of(entries: &[String], width: usize) -> String {
    let widest = entries.iter().map(|entry| entry.chars().count()).max().unwrap_or(0) + 2;
    let across = ((width.saturating_sub(2)) / widest.max(1)).max(1);
    let mut text = String::new();
    for line in entries.chunks(across) {
        let line: String = line
            .iter()
            .map(|entry| if across == 1 { cut(entry, width - 2) } else { pad(entry, widest) })
            .collect();
        text.push_str(&format!("  {}\n", line.trim_end()));
    }
    text
}

fn bars<'p>(plot: &Plot, panel: &'p Panel, width: usize) -> String {
    let (mut found, by_name) = panel.points(&plot.value);
    let all = found.len();
    let mut rank = 0;
    found.retain(|(key, _)| {
        rank += 1;
        rank <= MOST_BARS || plot.keys[*key].reference
    });
    let named = |(key, point): (usize, &'p Point)| {
        let (who, place) = (plot.keys[key].name.clone(), panel.x.write(point.x));
        (if by_name { who } else { format!("{place} {who}") }, point)
    };
    let found: Vec<(String, &Point)> = found.into_iter().map(named).collect();
    let most = found.iter().map(|(.., point)| point.value.mid).fold(0.0, f64::max);
    let longest = found.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let name_width = longest.min(width * 2 / 5);
    const VALUE: usize = 10;
    let room = width.saturating_sub(name_width + VALUE + 2).max(4);
    let cells = |value: f64| {
        if most > 0.0 { (value.max(0.0) / most * room as f64 * 8.0).round() as usize } else { 0 }
    };
    let mut text = String::new();
    for (name, point) in &found {
        let drawn = match point.parts {
            Some(parts) => {
                let mut bar = String::new();
                let mut sum = 0.0;
                for (part, block) in parts.iter().zip(["█", "▒", "░"]) {
                    let before = cells(sum) / 8;
                    sum += part.max(0.0);
                    bar.push_str(&block.repeat((cells(sum) / 8).saturating_sub(before)));
                }
                bar.chars().take(room).collect()
            }
            None => block_bar(cells(point.value.mid)),
        };
        let value = pad_left(&plot.value.write(point.value.mid), VALUE);
        text.push_str(format!("{} {value} {drawn}", pad(name, name_width)).trim_end());
        text.push('\n');
    }
    if plot.value == Quantity::Cost {
        text.push_str("█ operation ▒ reader ░ bystander\n");
    }
    if all > found.len() {
        text.push_str(&format!("{} more in the report\n", all - found.len()));
    }
    text
}

/// A bar of that many eighths of a column.
fn block_bar(eighths: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

fn heat(plot: &Plot, panel: &Panel, width: usize) -> String {
    let Some(y_axis) = &panel.y else { return String::new() };
    let ratio = plot.value.is_ratio();
    const LABEL: usize = 9;
    let columns = panel.x.places.len().max(1);
    let wide = (width - LABEL) / columns;
    // A number needs five columns and a mark.
    let with_numbers = wide >= 6;
    let cell = if with_numbers { wide.min(9) } else { wide.clamp(1, 2) };
    let mut text = String::new();
    for series in &panel.series {
        let key = &plot.keys[series.key];
        if ratio && key.reference && panel.series.len() > 1 {
            continue;
        }
        text.push_str(&format!("{}\n", cut(&key.name, width)));
        for &row in y_axis.places.iter().rev() {
            let mut line = pad_left(&y_axis.write(row), LABEL - 1);
            line.push(' ');
            for &column in panel.x.places.iter().take((width - LABEL) / cell.max(1)) {
                let point = series.points.iter().find(|point| point.x == column && point.y == row);
                let shown = match point.map(|point| point.value.mid) {
                    None => String::new(),
                    Some(value) if with_numbers => {
                        format!("{}{}", significant(value), if ratio { mark(value) } else { "" })
                    }
                    Some(value) if ratio => mark(value).to_owned(),
                    Some(value) => significant(value),
                };
                line.push_str(&pad_left(&shown, cell));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let places = &panel.x.places;
        if with_numbers {
            let labels: String = places
                .iter()
                .map(|place| pad_left(&panel.x.write(*place), cell - 1) + " ")
                .collect();
            text.push_str(format!("{:LABEL$}{}", "", cut(&labels, width - LABEL)).trim_end());
        } else if let (Some(first), Some(last)) = (places.first(), places.last()) {
            let range = format!("{} .. {}", panel.x.write(*first), panel.x.write(*last));
            text.push_str(&format!("{:LABEL$}{}", "", cut(&range, width - LABEL)));
        }
        text.push('\n');
    }
    text.push_str(&fold(&format!("across: {}; up: {}", panel.x.title, y_axis.title), width));
    if ratio {
        text.push_str(&fold("< faster than the reference, = within 3 %, > slower", width));
    }
    text
}

fn mark(ratio: f64) -> &'static str {
    match ratio {
        _ if ratio < 0.97 => "<",
        _ if ratio > 1.03 => ">",
        _ => "=",
    }
}

fn histogram(plot: &Plot, panel: &Panel, width: usize) -> String {
    const LINES: usize = 20;
    let mut text = String::new();
    for series in &panel.series {
        let Some(histogram) = &series.histogram else { continue };
        let total = histogram.counts.iter().sum::<u64>() + histogram.above;
        let name = &plot.keys[series.key].name;
        text.push_str(&fold(&format!("{name}: {total} calls"), width));
        // Neighbouring bins together, so that the picture stays short.
        let every = histogram.counts.len().div_ceil(LINES).max(1);
        let lines: Vec<(f64, u64)> = histogram
            .counts
            .chunks(every)
            .enumerate()
            .map(|(index, counts)| {
                let edge = ((index + 1) * every).min(histogram.counts.len());
                (histogram.edges_ns[edge], counts.iter().sum())
            })
            .collect();
        let most = lines.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
        let room = width.saturating_sub(28).max(4);
        let mut tally = 0;
        for (edge, count) in lines {
            tally += count;
            let share = tally as f64 / total.max(1) as f64 * 100.0;
            // A logarithm, so that the rare calls show.
            let length = (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
            let bar = block_bar((length * room as f64 * 8.0).round() as usize);
            let line = format!(
                "<{} {} {share:>5.1} % {bar}",
                pad_left(&time(edge), 8),
                pad_left(&count.to_string(), 8)
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if histogram.above > 0 {
            text.push_str(&format!(" {:>8} {:>8} 100.0 %\n", "above", histogram.above));
        }
    }
    text.push_str(&fold("calls on a logarithmic bar; per cent: running tally", width));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{everything, record, row};
    use crate::plot::plots;
    use cachewise_measure::Record;

    fn drawn(record: &Record, width: u16, colour: bool) -> Vec<String> {
        plots(record).iter().map(|built| plot(built, Style { width, colour })).collect()
    }

    #[test]
    fn every_kind_is_drawn() {
        let all = drawn(&everything(), 72, false);
        assert_eq!(all.len(), 4);
        insta::assert_snapshot!("curve", all[0]);
        insta::assert_snapshot!("bars", all[1].lines().take(8).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!("heat-map", all[2]);
        insta::assert_snapshot!("histogram", all[3]);
    }

    #[test]
    fn forty_columns_are_kept() {
        for width in [32, 40, 72, 300] {
            for text in drawn(&everything(), width, false) {
                for line in text.lines() {
                    assert!(line.chars().count() <= usize::from(width), "{width}: {line:?}");
                }
            }
        }
        let long = row("copy", 4096, "warm", &"x".repeat(90));
        for text in drawn(&record(vec![long]), 40, false) {
            assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        }
    }

    #[test]
    fn colour_adds_codes_and_nothing_else() {
        for (plain, coloured) in
            drawn(&everything(), 60, false).iter().zip(drawn(&everything(), 60, true))
        {
            assert!(!plain.contains('\u{1b}'));
            let mut bare = String::new();
            let mut rest = coloured.as_str();
            while let Some(at) = rest.find('\u{1b}') {
                bare.push_str(&rest[..at]);
                rest = &rest[at + rest[at..].find('m').expect("a code's end") + 1..];
            }
            bare.push_str(rest);
            let trimmed: String =
                bare.lines().map(|line| format!("{}\n", line.trim_end())).collect();
            assert_eq!(*plain, trimmed);
        }
        assert!(drawn(&everything(), 60, true)[0].contains('\u{1b}'));
    }

    #[test]
    fn no_control_characters_reach_the_terminal() {
        let text = &drawn(&record(vec![row("copy", 4096, "\u{1b}[2J", "a\u{7}b")]), 60, false)[0];
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    }
}
