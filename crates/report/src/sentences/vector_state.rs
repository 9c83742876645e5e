//! What the rows of `vector-state` amount to. Pure.

use super::support::*;

/// Where a kernel pays, over the largest sizes among which it never loses: from which size on (0: the least
/// measured, the greatest number: nowhere), and that in words. `points` are size, median time ratio and
/// verdict, by size. Between a size that is not faster and the next that is, the ratio is taken as
/// straight over the logarithm of the size.
pub(super) fn break_even(points: &[(usize, f64, Verdict)]) -> Option<(usize, String)> {
    let largest = points.last()?.0;
    let is = |wanted: Verdict| move |point: &(usize, f64, Verdict)| point.2 == wanted;
    let Some(last) = points.iter().rposition(is(Verdict::Faster)) else {
        return Some((usize::MAX, format!("at no size up to {}", bytes(largest as u64))));
    };
    let most = bytes(points[last].0 as u64);
    let until = match points.get(last + 1) {
        None => String::new(),
        Some(_) if points[last..].iter().any(is(Verdict::Slower)) => {
            format!(" up to {most}, above that it loses")
        }
        Some(_) => format!(" up to {most}, above that there is no difference"),
    };
    let after = points[..last].iter().rposition(is(Verdict::Slower));
    let begin = after.map_or(0, |losing| losing + 1);
    let first = points[begin..].iter().position(is(Verdict::Faster))? + begin;
    if first == 0 {
        return Some((0, format!("from the smallest size on{until}")));
    }
    let ((below, loses, _), (above, wins, _)) = (points[first - 1], points[first]);
    // A size that could not be told may have a ratio below 1 already.
    let share = if loses > 1.0 { (loses - 1.0) / (loses - wins) } else { 0.0 };
    let size = (below as f64).ln() + share * (above as f64 / below as f64).ln();
    let size = size.exp().round() as usize;
    Some((size, format!("from about {size} B on{until}")))
}

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let (mut headline, mut details) = (Vec::new(), Vec::new());
    let break_even_rows =
        rows.iter().filter(|row| row.cell.state == "break-even" && row.candidate != row.reference);
    for (operation, of_it) in groups(break_even_rows, |row: &Row| row.cell.operation.clone()) {
        let mut dirty: Vec<(usize, String)> = Vec::new();
        for (candidate, curve) in by_candidate(&of_it) {
            if !candidate.contains(", ") && !candidate.contains("bare") {
                continue;
            }
            let point =
                |row: &&Row| Some((row.cell.size as usize, row.ratio?.median, says(row.ratio?)));
            let mut points: Vec<_> = curve.iter().filter_map(point).collect();
            points.sort_by_key(|point| point.0);
            let Some((at, found)) = break_even(&points) else { continue };
            details.push(format!("{operation}: {candidate} pays {found}"));
            if candidate.ends_with("dirty") {
                let who = if at == usize::MAX { "any of them" } else { candidate.as_str() };
                dirty.push((at, format!("{operation} {found} ({who})")));
            }
        }
        headline.extend(dirty.into_iter().min_by_key(|(at, _)| *at).map(|(_, text)| text));
    }
    let headline = if headline.is_empty() {
        "From how many bytes on a vector kernel pays for saving registers: cannot tell, no such kernel was measured".to_owned()
    } else {
        format!(
            "A vector kernel that has to save dirty registers and restore them pays: {}",
            headline.join("; ")
        )
    };
    std::iter::once(headline).chain(after(rows)).chain(costs(rows)).chain(details).collect()
}

/// A ratio below is no lower clock: those are lowered by 100 MHz at least.
const CLOCK: f64 = 1.01;

/// Whether what runs after a kernel is slower than after integers.
fn after(rows: &[Row]) -> Vec<String> {
    let of = |row: &&Row| row.cell.state == "what runs after" && row.candidate != row.reference;
    let sentence = |row: &Row| {
        let ratio = row.ratio?;
        let reference = &row.reference;
        let says = if ratio.low > CLOCK {
            let longer = percent(ratio.median);
            format!(
                "takes {longer} longer than after {reference}, which no time of the kernel itself shows"
            )
        } else if ratio.high > CLOCK {
            format!("cannot be told from that after {reference}")
        } else {
            format!("is no slower than after {reference}")
        };
        let (low, high) = (ratio.low, ratio.high);
        Some(format!("Integer work after {} {says} ({low:.3} .. {high:.3})", row.candidate))
    };
    rows.iter().filter(of).filter_map(sentence).collect()
}

/// What saving and restoring costs, for the largest set of components, and whether a clean state is
/// cheaper.
fn costs(rows: &[Row]) -> Vec<String> {
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.operation == "save-restore").collect();
    let largest = saving.iter().map(|row| axis(row, COMPONENTS)).fold(0.0, f64::max);
    let all = saving.into_iter().filter(|row| axis(row, COMPONENTS) == largest);
    let sentence = |(candidate, of_one): (&String, Vec<&Row>)| {
        let part = |row: &&Row| {
            let state = row.cell.state.trim_start_matches("registers ");
            Some(format!("{state} {:.1} ns", row.figure(NET_NS)?))
        };
        let parts: Vec<String> = of_one.iter().filter_map(part).collect();
        let of = |state: &str| of_one.iter().find(|row| row.cell.state.ends_with(state));
        let clean = of("clean").zip(of("unmodified")).map_or(String::new(), |(clean, kept)| {
            let more = "; clean is {} more expensive than unmodified";
            let none = "; no measurable difference between clean and unmodified";
            told(versus(clean, kept), ["; clean is {} cheaper than unmodified", more, none])
        });
        (!parts.is_empty())
            .then(|| format!("{candidate} of all components: {}{clean}", parts.join(", ")))
    };
    groups(all, |row| &row.candidate).into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{CannotTell, Faster, Slower};

    #[test]
    fn break_even_is_where_it_stops_losing() {
        assert_eq!(break_even(&[]), None);
        let lost_between = [(16, 0.5, Faster), (64, 1.5, Slower), (256, 0.5, Faster)];
        let level = [(16, 0.5, Faster), (32 << 10, 0.9, Faster), (64 << 10, 1.0, CannotTell)];
        for (points, at, said) in [
            (&[(16, 0.5, Faster), (64, 0.4, Faster)][..], 0, "from the smallest size on"),
            (&[(16, 2.0, Slower), (64, 1.2, Slower)], usize::MAX, "at no size up to 64 B"),
            // Halfway in ratio is halfway in octaves.
            (&[(256, 1.5, Slower), (1024, 0.5, Faster)], 512, "from about 512 B on"),
            // A win below a loss does not count, unless there is no other.
            (&lost_between, 128, "from about 128 B on"),
            (&lost_between[..2], 0, "from the smallest size on up to 16 B, above that it loses"),
            (&[(16, 0.99, CannotTell), (64, 0.5, Faster)], 16, "from about 16 B on"),
            // Faster up to 32 KiB and level from 64 KiB on is not "not up to 64 KiB".
            (
                &level,
                0,
                "from the smallest size on up to 32 KiB, above that there is no difference",
            ),
        ] {
            assert_eq!(break_even(points), Some((at, said.to_owned())));
        }
    }
}
