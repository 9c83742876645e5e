//! The figures in text: curves of dots with a letter at each point, bars in blocks. No line is wider than it may
//! be. Whoever prints them leaves out what would move the cursor.

use crate::plot::{Bar, Panel, Plot, Quantity, Scale, Series, bins, longest_bar, range};
use crate::table::wrap;
use crate::units::{counted, significant, time};
use cachewise_judge::margin::HEADLINE;
use cachewise_measure::FigureKind;

/// The narrowest that is drawn for; narrower terminals wrap.
const NARROWEST: usize = 32;
/// The widest: beyond it curves are stretched for nothing.
const WIDEST: usize = 110;
/// Rows of a curve.
const HIGH: usize = 12;
/// Letters of the candidates in one picture, the reference's first.
const LETTERS: [char; 6] = ['o', 'a', 'b', 'c', 'd', 'e'];
/// Bars in one picture.
const MOST_BARS: usize = 16;

/// The whole figure, panel after panel, in so many columns.
pub fn plot(plot: &Plot, width: u16) -> String {
    let width = usize::from(width).clamp(NARROWEST, WIDEST);
    let mut lines = fold(&plot.title, width);
    for panel in &plot.panels {
        lines.push(String::new());
        lines.extend(fold(&panel.title, width));
        lines.extend(match plot.kind {
            FigureKind::Curve => curve(plot, panel, width),
            FigureKind::Bars | FigureKind::Dots => bars(plot, panel, width),
            FigureKind::HeatMap => heat(plot, panel, width),
            FigureKind::Histogram => histogram(plot, panel, width),
        });
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Words in lines of at most `width` columns.
fn fold(text: &str, width: usize) -> Vec<String> {
    wrap(text, width, 0).iter().map(|line| cut(line, width)).collect()
}

/// At most `width` characters, the last of them telling of a cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).collect()
}

fn pad(text: &str, width: usize) -> String {
    format!("{:<width$}", cut(text, width))
}

fn pad_left(text: &str, width: usize) -> String {
    format!("{:>width$}", cut(text, width))
}

/// The series that are drawn: the reference and the first that stand in the picture anyway.
fn chosen<'p>(plot: &Plot, panel: &'p Panel) -> Vec<(char, &'p Series)> {
    let shown = panel.series.iter().filter(|series| plot.keys[series.key].shown);
    let (references, others): (Vec<_>, Vec<_>) =
        shown.partition(|series| plot.keys[series.key].reference);
    let letters = LETTERS.into_iter().skip(usize::from(references.is_empty()));
    letters.zip(references.into_iter().take(1).chain(others)).collect()
}

fn curve(plot: &Plot, panel: &Panel, width: usize) -> Vec<String> {
    const LABEL: usize = 8;
    let chosen = chosen(plot, panel);
    let values = chosen.iter().flat_map(|(_, series)| &series.points).map(|point| point.value.mid);
    if values.clone().next().is_none() {
        return vec!["  nothing to draw".to_owned()];
    }
    let columns = width - LABEL - 1;
    let x = panel.x.scale((0.0, columns as f64 - 1.0));
    let y = Scale::of_values(&plot.value, values, 0.0, (HIGH as f64 - 1.0, 0.0));
    let mut grid = vec![vec![' '; columns]; HIGH];
    let mut mark = |column: f64, row: f64, sign: char| {
        let [row, column] =
            [row, column].map(|at| if at < -0.5 { usize::MAX } else { at.round() as usize });
        let line = grid.get_mut(row);
        let Some(cell) = line.and_then(|line| line.get_mut(column)) else { return };
        let is_another = cell.is_ascii() && !matches!(*cell, ' ') && *cell != sign;
        *cell = if is_another { '*' } else { sign };
    };
    let mut names = String::new();
    for (place, name) in &panel.rules {
        (0..HIGH).for_each(|row| mark(x.at(*place), row as f64, '┊'));
        let start = (x.at(*place).round() as usize).min(columns.saturating_sub(name.len()));
        if names.is_empty() || start > names.len() {
            names = format!("{names:start$}{name}");
        }
    }
    if plot.value.is_ratio() {
        (0..columns).for_each(|column| mark(column as f64, y.at(1.0), '┄'));
    }
    let places = chosen.iter().map(|(letter, series)| {
        let places = series.points.iter().map(|point| (x.at(point.x), y.at(point.value.mid)));
        (*letter, places.collect::<Vec<_>>())
    });
    let places: Vec<_> = places.collect();
    for pair in places.iter().flat_map(|(_, places)| places.windows(2)) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let steps = (x1 - x0).abs().max((y1 - y0).abs()).ceil().max(1.0);
        for share in (0..=steps as usize).map(|step| step as f64 / steps) {
            mark(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, '·');
        }
    }
    for (letter, places) in &places {
        places.iter().for_each(|(column, row)| mark(*column, *row, *letter));
    }
    let mut lines = Vec::new();
    lines.extend((!names.is_empty()).then(|| format!("{:LABEL$} {names}", "")));
    let ticks = y.ticks(4);
    for (row, cells) in grid.iter().enumerate() {
        let tick = ticks.iter().find(|tick| y.at(**tick).round() as usize == row);
        let tick = tick.map_or(String::new(), |tick| plot.value.tick(*tick));
        lines.push(format!("{} {}", pad_left(&tick, LABEL), cells.iter().collect::<String>()));
    }
    let ends = [panel.x.places.first(), panel.x.places.last()];
    let [first, last] = ends.map(|end| end.map_or(String::new(), |place| panel.x.write(*place)));
    let room = columns.saturating_sub(first.chars().count() + last.chars().count());
    let title = Some(panel.x.title()).filter(|title| room > title.chars().count() + 2);
    lines.push(format!("{:LABEL$} {first}{:^room$}{last}", "", title.unwrap_or_default()));
    let log = if y.is_log() { ", log" } else { "" };
    lines.extend(fold(&format!("{}{log}:", plot.value.title()), width));
    let name =
        |(letter, series): &(char, &Series)| format!("{letter} {}", plot.keys[series.key].name);
    let mut legend: Vec<String> = chosen.iter().map(name).collect();
    let more = panel.series.len() - chosen.len();
    legend.extend((more > 0).then(|| format!("{more} more in the report")));
    lines.extend(fold(&legend.join(", "), width));
    lines
}

/// A line for each candidate: its bar, or a dot with its interval on one axis, `|` at the lines.
fn bars(plot: &Plot, panel: &Panel, width: usize) -> Vec<String> {
    const VALUE: usize = 10;
    let (bars, beyond) = plot.bars(panel, MOST_BARS);
    let (most, cut) = longest_bar(&bars);
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let name_width = longest.min(width * 2 / 5);
    let room = width.saturating_sub(name_width + VALUE + 2).max(4);
    let eighths = |value: f64| {
        let share = if most > 0.0 { value.clamp(0.0, most) / most } else { 0.0 };
        (share * room as f64 * 8.0).round() as usize
    };
    let values = bars.iter().flat_map(|bar| [bar.point.value.low, bar.point.value.high]);
    let ends = range(values.chain(panel.rules.iter().map(|(at, _)| *at)));
    let scale = Scale::new(ends, false, (0.0, room as f64 - 1.0));
    let column = |value: f64| (scale.at(value).round().max(0.0) as usize).min(room - 1);
    let draw = |Bar { point, .. }: &Bar<'_>| match point.divided() {
        _ if plot.kind == FigureKind::Dots => {
            let mut drawn = vec![' '; room];
            panel.rules.iter().for_each(|(at, _)| drawn[column(*at)] = '|');
            drawn[column(point.value.low)..=column(point.value.high)].fill('-');
            drawn[column(point.value.mid)] = 'o';
            drawn.into_iter().collect()
        }
        Some(parts) => {
            let (mut drawn, mut sum) = (String::new(), 0.0);
            for (part, block) in parts.iter().zip(["█", "▒", "░"]) {
                let before = eighths(sum) / 8;
                sum += part.max(0.0);
                drawn += &block.repeat((eighths(sum) / 8).saturating_sub(before));
            }
            drawn.chars().take(room).collect()
        }
        None => block_bar(eighths(point.value.mid)),
    };
    let line = |bar: &Bar<'_>| {
        let value = pad_left(&plot.value.write(bar.point.value.mid), VALUE);
        format!("{} {value} {}", pad(&bar.name, name_width), draw(bar))
    };
    let mut lines: Vec<String> = bars.iter().map(line).collect();
    if plot.kind == FigureKind::Dots {
        let names: Vec<&str> = panel.rules.iter().map(|(_, name)| *name).collect();
        let legend = format!("| from the left: {}; less is better", names.join(", "));
        lines.extend((!names.is_empty()).then(|| fold(&legend, width)).into_iter().flatten());
    } else {
        let parts = "█ operation ▒ reader ░ bystander".to_owned();
        lines.extend((plot.value == Quantity::Cost).then_some(parts));
        lines.extend((cut > 0).then(|| format!("cut: the longest {}", counted(cut, "bar"))));
    }
    lines.extend((beyond > 0).then(|| format!("{beyond} more in the report")));
    lines
}

/// A bar of that many eighths of a column.
fn block_bar(eighths: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

fn heat(plot: &Plot, panel: &Panel, width: usize) -> Vec<String> {
    const LABEL: usize = 9;
    let Some(y_axis) = &panel.y else { return Vec::new() };
    let ratio = plot.value.is_ratio();
    let places = &panel.x.places;
    let room = width - LABEL;
    let wide = room / places.len().max(1);
    // A number needs five columns and a mark.
    let with_numbers = wide >= 6;
    let cell = if with_numbers { wide.min(9) } else { wide.clamp(1, 2) };
    let mut lines = Vec::new();
    for series in plot.grids(panel) {
        lines.push(cut(&plot.keys[series.key].name, width));
        for &row in y_axis.places.iter().rev() {
            let cells = places.iter().take(room / cell).map(|&column| {
                let text = series.at(column, row).map_or(String::new(), |point| {
                    let value = point.value.mid;
                    match ratio {
                        true if with_numbers => significant(value) + mark(value),
                        true => mark(value).to_owned(),
                        false => significant(value),
                    }
                });
                pad_left(&text, cell)
            });
            let label = pad_left(&y_axis.write(row), LABEL - 1);
            lines.push(format!("{label} {}", cells.collect::<String>()));
        }
        let labels = match &places[..] {
            all if with_numbers => {
                all.iter().map(|place| pad_left(&panel.x.write(*place), cell - 1) + " ").collect()
            }
            [first, .., last] => format!("{} .. {}", panel.x.write(*first), panel.x.write(*last)),
            _ => String::new(),
        };
        lines.push(format!("{:LABEL$}{}", "", cut(&labels, room)));
    }
    lines.extend(fold(&format!("across: {}; up: {}", panel.x.title(), y_axis.title()), width));
    if ratio {
        lines.extend(fold("< faster than the reference, = within 3 %, > slower", width));
    }
    lines
}

fn mark(ratio: f64) -> &'static str {
    match ratio {
        _ if ratio < 1.0 - HEADLINE => "<",
        _ if ratio > 1.0 + HEADLINE => ">",
        _ => "=",
    }
}

fn histogram(plot: &Plot, panel: &Panel, width: usize) -> Vec<String> {
    const LINES: usize = 20;
    let mut lines = Vec::new();
    for series in &panel.series {
        let Some(histogram) = &series.histogram else { continue };
        let (bins, total) = bins(histogram);
        lines.extend(fold(&format!("{}: {total} calls", plot.keys[series.key].name), width));
        // Neighbouring bins together, so that the picture stays short.
        let together = bins.chunks(bins.len().div_ceil(LINES).max(1));
        let calls = together.clone().map(|bins| bins.iter().map(|bin| bin.calls).sum::<u64>());
        let most = calls.clone().max().unwrap_or(0).max(1);
        let room = width.saturating_sub(28).max(4);
        for (bins, calls) in together.zip(calls) {
            let Some(last) = bins.last() else { continue };
            // A logarithm, so that the rare calls show.
            let length = (calls as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
            let bar = block_bar((length * room as f64 * 8.0).round() as usize);
            let edge = pad_left(&time(last.to), 8);
            let share = last.so_far * 100.0;
            lines.push(format!("<{edge} {} {share:>5.1} % {bar}", pad_left(&calls.to_string(), 8)));
        }
        if histogram.above > 0 {
            lines.push(format!(" {:>8} {:>8} 100.0 %", "above", histogram.above));
        }
    }
    lines.extend(fold("calls on a logarithmic bar; per cent: running tally", width));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{everything, record, row};
    use crate::plot::plots;
    use cachewise_measure::Record;

    fn drawn(record: &Record, width: u16) -> Vec<String> {
        plots(record).iter().map(|built| plot(built, width)).collect()
    }

    #[test]
    fn every_kind_is_drawn() {
        let all = drawn(&everything(), 72);
        assert_eq!(all.len(), 4);
        insta::assert_snapshot!("curve", all[0]);
        insta::assert_snapshot!("bars", all[1].lines().take(8).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!("heat-map", all[2]);
        insta::assert_snapshot!("histogram", all[3]);
    }

    #[test]
    fn forty_columns_are_kept() {
        let long = record(vec![row("copy", 4096, "warm", &"x".repeat(90))]);
        for width in [32, 40, 72, 300] {
            for record in [&everything(), &long] {
                let text = drawn(record, width).concat();
                let mut lines = text.lines();
                let too_long = lines.find(|line| line.chars().count() > usize::from(width));
                assert_eq!(too_long, None, "{width}");
            }
        }
    }
}
