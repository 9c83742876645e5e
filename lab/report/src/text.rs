//! A dot plot for a terminal: candidates under each other on one axis, each a dot with its interval. Whoever prints
//! it leaves out what would move the cursor.

use crate::plot::{Panel, Plot, Scale, range};
use crate::table::wrap;
use cachewise_measure::FigureKind;

/// Narrower terminals wrap; beyond the widest, dots are far apart for nothing.
const WIDTHS: (usize, usize) = (32, 110);
const MOST: usize = 16;
const VALUE: usize = 10;

/// The panels of a dot plot in so many columns; nothing of another kind of figure.
pub fn plot(plot: &Plot, width: u16) -> String {
    let width = usize::from(width).clamp(WIDTHS.0, WIDTHS.1);
    let panels = plot.panels.iter().filter(|_| plot.kind == FigureKind::Dots);
    let lines = panels.flat_map(|panel| {
        let titles = [&plot.title, &panel.title].map(|title| wrap(title, width, 0));
        titles.concat().into_iter().chain(dots(plot, panel, width))
    });
    lines.map(|line| format!("{}\n", cut(&line, width).trim_end())).collect()
}

/// At most `width` characters, the last of them telling of a cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).collect()
}

/// A line for each candidate, `|` at the references.
fn dots(plot: &Plot, panel: &Panel, width: usize) -> Vec<String> {
    let (dots, beyond) = plot.bars(panel, MOST);
    let longest = dots.iter().map(|dot| dot.name.chars().count()).max().unwrap_or(0);
    let names = longest.min(width * 2 / 5);
    let room = width.saturating_sub(names + VALUE + 2).max(4);
    let values = dots.iter().flat_map(|dot| [dot.point.value.low, dot.point.value.high]);
    let ends = range(values.chain(panel.rules.iter().map(|(at, _)| *at)));
    let scale = Scale::new(ends, false, (0.0, room as f64 - 1.0));
    let column = |value: f64| (scale.at(value).round().max(0.0) as usize).min(room - 1);
    let mut lines = Vec::new();
    for dot in &dots {
        let value = dot.point.value;
        let mut drawn = vec![' '; room];
        panel.rules.iter().for_each(|(at, _)| drawn[column(*at)] = '|');
        drawn[column(value.low)..=column(value.high)].fill('-');
        drawn[column(value.mid)] = 'o';
        let (name, drawn) = (cut(&dot.name, names), drawn.into_iter().collect::<String>());
        let value = plot.value.write(value.mid);
        lines.push(format!("{name:<names$} {value:>VALUE$} {drawn}"));
    }
    let rules: Vec<&str> = panel.rules.iter().map(|(_, name)| *name).collect();
    let legend = format!("| from the left: {}; less is better", rules.join(", "));
    lines.extend((!rules.is_empty()).then(|| wrap(&legend, width, 0)).into_iter().flatten());
    lines.extend((beyond > 0).then(|| format!("{beyond} more in the report")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{everything, figure, row};

    #[test]
    fn a_dot_plot_keeps_to_its_width_and_other_figures_are_not_drawn() {
        let mut record = everything();
        record.rows.push(row("copy", 4096, "warm", &"x".repeat(90)));
        record.header.figures.push(figure(FigureKind::Dots, "candidate", "ratio").of("warm"));
        let plots = crate::plot::plots(&record);
        for width in [32, 40, 72, 300] {
            let texts: Vec<String> = plots.iter().map(|built| plot(built, width)).collect();
            let (dots, others) = texts.split_last().expect("figures");
            assert!(others.iter().all(String::is_empty));
            let widest = dots.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(width)), "{dots}");
            assert!(dots.contains('o') && dots.contains('|'), "{dots}");
        }
    }
}
