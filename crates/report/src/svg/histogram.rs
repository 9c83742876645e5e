//! Distributions of single calls: counts on a logarithmic axis, and the running tally over them.

use super::{Element, WIDTH, classes, heard, label, line, path, rectangle, stroke, title, unheard};
use crate::plot::scale::Scale;
use crate::plot::{Panel, Plot, Unit};
use crate::units::time;
use cachewise_measure::Histogram;

const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 36.0;
const HIGH: f64 = 110.0;

/// The picture's height and elements: the candidates under each other on the same axis.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<Element>) {
    let mut out = Vec::new();
    let mut top = 0.0;
    let all = || panel.series.iter().filter_map(|series| series.histogram.as_ref());
    let first = all().filter_map(|h| h.edges_ns.first()).copied().fold(f64::INFINITY, f64::min);
    let last = all().filter_map(|h| h.edges_ns.last()).copied().fold(0.0, f64::max);
    let x = Scale::new((first, last), false, (LEFT, RIGHT));
    let most = all().flat_map(|h| &h.counts).copied().max().unwrap_or(1).max(1) as f64;
    for series in &panel.series {
        let Some(histogram) = &series.histogram else { continue };
        let name = &plot.keys[series.key].name;
        let total = histogram.counts.iter().sum::<u64>() + histogram.above;
        let class = classes(plot, series.key, "series");
        let mut group = heard(class, summary(name, histogram));
        group.push(label(8.0, top + 13.0, "name strong", name.clone()));
        let edge = histogram.edges_ns.last().copied().unwrap_or(0.0);
        let above = match histogram.above {
            0 => String::new(),
            above => format!(", {above} above {}", time(edge)),
        };
        group.push(label(RIGHT, top + 13.0, "name right", format!("{total} calls{above}")));
        let (ceiling, floor) = (top + 20.0, top + 20.0 + HIGH);
        // Half a call is the floor, so that a single call shows.
        let y = Scale::new((0.5, most * 1.2), true, (floor, ceiling));
        let mut axis = unheard("axis");
        for tick in y.ticks(4) {
            axis.push(line("grid", (LEFT, y.at(tick)), (RIGHT, y.at(tick))));
            axis.push(label(LEFT - 4.0, y.at(tick) + 3.5, "tick right", short(tick)));
        }
        for (share, text) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
            let at = floor - share * HIGH;
            axis.push(label(RIGHT + 4.0, at + 3.5, "tick left", text));
        }
        for tick in x.ticks(5) {
            axis.push(label(x.at(tick), floor + 12.0, "tick", Unit::Time.write(tick)));
        }
        let text = "time of one call; the line is the running tally";
        axis.push(label((LEFT + RIGHT) / 2.0, floor + 26.0, "title", text));
        group.push(axis);
        let mut tally = 0;
        let share = |tally: u64| floor - HIGH * tally as f64 / total.max(1) as f64;
        let mut steps = vec![(LEFT, floor)];
        for (edges, count) in histogram.edges_ns.windows(2).zip(&histogram.counts) {
            let (left, right) = (x.at(edges[0]), x.at(edges[1]));
            tally += count;
            if *count > 0 {
                let at = y.at(*count as f64);
                let text = format!(
                    "{} .. {}: {count} calls, {:.1} % so far",
                    time(edges[0]),
                    time(edges[1]),
                    tally as f64 / total.max(1) as f64 * 100.0
                );
                let sides = ((right - left).max(0.8), floor - at);
                group.push(rectangle("bin", (left, at), sides).with(title(text)));
            }
            steps.push((right, share(tally)));
        }
        group.push(stroke("tally", path(steps)));
        out.push(group);
        top = floor + 38.0;
    }
    (top, out)
}

fn short(count: f64) -> String {
    match count {
        c if c >= 1e6 => format!("{}M", c / 1e6),
        c if c >= 1e3 => format!("{}k", c / 1e3),
        c => format!("{c}"),
    }
}

/// The bins that hold the middle, for those who hear it.
fn summary(name: &str, histogram: &Histogram) -> String {
    let total = histogram.counts.iter().sum::<u64>() + histogram.above;
    let at = |share: f64| {
        let mut tally = 0;
        for (edges, count) in histogram.edges_ns.windows(2).zip(&histogram.counts) {
            tally += count;
            if tally as f64 >= share * total as f64 && total > 0 {
                return time(edges[1]);
            }
        }
        "beyond the last bin".to_owned()
    };
    format!("{name}: {total} calls, half of them within {}, 99 % within {}", at(0.5), at(0.99))
}
