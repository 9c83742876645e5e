use super::*;
use crate::seam::Sample;

#[test]
fn powers_of_two_and_all_are_tried() {
    assert_eq!([2, 3, 4, 6].map(counts), [vec![2], vec![2, 3], vec![2, 4], vec![2, 4, 6]]);
    assert!(cells(1, 1 << 30).is_empty());
    let sizes: Vec<usize> = cells(2, 4 << 20).iter().map(|cell| cell.size).collect();
    let each = [256 << 10, 1 << 20, 4 << 20];
    assert_eq!(sizes, each.repeat(PARALLEL.len() * Supply::ALL.len()));
}

/// One round is worth nothing; what threads gain holds for all larger sizes, or it does not count.
#[test]
fn threads_pay_from_where_they_gain_and_lose_nowhere_above() {
    // By size: of two threads over one, and of four over two.
    let paying = |sizes: &[(usize, f64, f64)], rounds: usize| {
        let mut evidence = Evidence::default();
        for (size, two, four) in sizes {
            let threads = Threads { count: 1, supply: Supply::ALL[0] };
            let cell = TuningCell::new(PARALLEL[0], *size, Destination::Cached);
            let cell = TuningCell { threads, ..cell };
            let sample = |operation| Sample { operation, reader: 0.0, bystander: 0.0 };
            for _ in 0..rounds {
                let others = [("2", 100.0 * two), ("4", 100.0 * two * four)];
                let others = others.map(|(name, time)| (name, sample(time)));
                evidence.push(Purpose::Threads, cell, sample(100.0), others);
            }
        }
        let found = super::paying(&evidence);
        assert!(
            found.iter().all(|line| line.operation == PARALLEL[0] && line.supply == Supply::ALL[0])
        );
        found.iter().map(|line| (line.threads, line.from)).collect::<Vec<_>>()
    };
    let (one, four, sixteen) = (1 << 20, 4 << 20, 16 << 20);
    let sizes = [(one, 1.5, 1.5), (four, 0.6, 1.01), (sixteen, 0.5, 0.6)];
    assert_eq!(paying(&sizes, 4), [(2, Some(four as u64)), (4, Some(sixteen as u64))]);
    assert_eq!(paying(&sizes, 3), [(2, None), (4, None)]);
    let sizes = [(one, 0.5, 0.97), (four, 0.97, 0.99), (sixteen, 0.99, 1.03)];
    assert_eq!(paying(&sizes, 9), [(2, Some(one as u64)), (4, None)]);
    assert_eq!(paying(&[], 9), []);
}
