//! Distributions of single calls: counts on a logarithmic axis, and the running tally over them.

use super::elements::*;
use crate::plot::{Unit, bins, range};
use crate::units::time;

const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 36.0;
const HIGH: f64 = 110.0;

/// The picture's height and elements: the candidates under each other on the same axis.
pub(super) fn draw(plot: &Plot, panel: &Panel) -> (f64, Vec<String>) {
    let all =
        || panel.series.iter().filter_map(|series| Some((series, series.histogram.as_ref()?)));
    let x = range(all().flat_map(|(_, histogram)| histogram.edges_ns.iter().copied()));
    let x = Scale::new(x, false, (LEFT, RIGHT));
    let most = all().flat_map(|(_, histogram)| &histogram.counts).copied().max();
    let most = most.unwrap_or(1).max(1) as f64;
    let mut out = Vec::new();
    let mut top = 0.0;
    for (series, histogram) in all() {
        let (bins, total) = bins(histogram);
        let (ceiling, floor) = (top + 20.0, top + 20.0 + HIGH);
        // Half a call is the floor, so that a single call shows.
        let y = Scale::new((0.5, most * 1.2), true, (floor, ceiling));
        let mut axis = levels(&y, 4, (LEFT, RIGHT), short);
        for (share, text) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
            axis.push(label(RIGHT + 4.0, floor - share * HIGH + 3.5, "tick left", text));
        }
        let ticks = x.ticks(5);
        let ticks: Vec<_> = ticks.iter().map(|at| (x.at(*at), Unit::Time.write(*at))).collect();
        axis.extend(texts(&ticks, floor + 12.0, (0.0, WIDTH)));
        let text = "time of one call; the line is the running tally";
        axis.push(label((LEFT + RIGHT) / 2.0, floor + 26.0, "title", text));
        let name = &plot.keys[series.key].name;
        let edge = time(histogram.edges_ns.last().copied().unwrap_or(0.0));
        let calls = match histogram.above {
            0 => format!("{total} calls"),
            above => format!("{total} calls, {above} above {edge}"),
        };
        let mut inside = vec![
            label(8.0, top + 13.0, "name strong", name),
            label(RIGHT, top + 13.0, "name right", &calls),
            unheard("axis", &axis),
        ];
        for bin in bins.iter().filter(|bin| bin.calls > 0) {
            let (from, to) = (time(bin.from), time(bin.to));
            let share = bin.so_far * 100.0;
            let text = format!("{from} .. {to}: {} calls, {share:.1} % so far", bin.calls);
            let (left, right) = (x.at(bin.from), x.at(bin.to));
            let at = y.at(bin.calls as f64);
            let sides = ((right - left).max(0.8), floor - at);
            inside.push(rectangle("bin", (left, at), sides, &text));
        }
        let steps = bins.iter().map(|bin| (x.at(bin.to), floor - HIGH * bin.so_far));
        inside.push(stroke("tally", &path([(LEFT, floor)].into_iter().chain(steps))));
        // The bins that hold the middle, for those who hear it.
        let [half, most] = [0.5, 0.99].map(|share| {
            let bin = bins.iter().find(|bin| bin.so_far >= share);
            bin.map_or("beyond the last bin".to_owned(), |bin| time(bin.to))
        });
        let said = format!("{name}: {total} calls, half of them within {half}, 99 % within {most}");
        out.push(heard(&classes(plot, series.key, "series"), &said, &inside));
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
