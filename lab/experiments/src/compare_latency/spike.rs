//! The spike of 004.9.

use cachewise_measure::{Histogram, stats::median};

/// The place of a histogram's spike between 500 and 700 ns: a bin with three times the median bin of both
/// neighbourhoods (200 ns on either side of that range), and with 1 in 1000 of all calls at least.
pub(crate) fn spike(histogram: &Histogram) -> Option<f64> {
    let total = histogram.counts.iter().sum::<u64>() + histogram.above;
    let within = |from: f64, to: f64| {
        let bins = histogram.edges_ns.iter().zip(&histogram.counts);
        let bins = bins.map(|(edge, count)| (*edge, *count as f64));
        bins.filter(move |(edge, _)| (from..to).contains(edge))
    };
    let usual = |from, to| median(&within(from, to).map(|(_, count)| count).collect::<Vec<_>>());
    let (before, after) = (usual(300.0, 500.0), usual(700.0, 900.0));
    let (edge, count) = within(500.0, 700.0).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let stands_out = count > 3.0 * before.max(after).max(1.0) && count >= total as f64 / 1000.0;
    stands_out.then_some(edge)
}

#[cfg(test)]
mod tests {
    use super::spike;
    use cachewise_measure::CallTimes;

    #[test]
    fn a_spike_is_seen_and_a_smooth_tail_is_not() {
        let mut smooth = CallTimes::default();
        for step in 0..1000_u32 {
            smooth.record(f64::from(step));
        }
        assert_eq!(spike(&smooth.histogram(1000.0, 1)), None);
        let mut spiky = smooth.clone();
        (0..200).for_each(|_| spiky.record(603.0));
        assert_eq!(spike(&spiky.histogram(1000.0, 1)), Some(600.0));
    }
}
