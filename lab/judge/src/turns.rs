//! Order and number of runs of whole programs that take turns.
//!
//! A plan of samples has rounds of milliseconds and shuffles each. Whole programs have some
//! ten, where a shuffle alone would let one candidate go first most of the time; so places are
//! balanced as well. How many rounds there will be is settled before the first one counts: whoever
//! stops when the figures please him has no 95 % interval.

/// The order of each of so many rounds, drawn from `seed`: within each run of as many rounds as
/// there are candidates, each candidate is at each place once.
///
/// A cyclic Latin square with its names, and the order of its rows, shuffled anew for each such run:
/// any single round is equally likely to have any order.
pub fn orders(candidates: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut shuffled = || {
        let mut numbers: Vec<usize> = (0..candidates).collect();
        random.shuffle(&mut numbers);
        numbers
    };
    let mut orders = Vec::new();
    while orders.len() < rounds && candidates > 0 {
        let (names, rows) = (shuffled(), shuffled());
        let square = rows.iter().map(|row| {
            (0..candidates).map(|place| names[(place + row) % candidates]).collect::<Vec<_>>()
        });
        orders.extend(square);
    }
    orders.truncate(rounds);
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_is_at_each_place_equally_often() {
        for candidates in 1..=6 {
            let orders = orders(candidates, 4 * candidates, 7);
            for run in orders.chunks(candidates) {
                for place in 0..candidates {
                    let there: BTreeSet<_> = run.iter().map(|order| order[place]).collect();
                    assert_eq!(there, (0..candidates).collect());
                }
            }
        }
    }

    #[test]
    fn any_order_may_come_and_a_seed_fixes_them() {
        let seen: BTreeSet<_> = (0..200).flat_map(|seed| orders(3, 1, seed)).collect();
        assert_eq!(seen.len(), 6);
        assert_eq!(orders(5, 12, 3), orders(5, 12, 3));
        assert_ne!(orders(5, 12, 3), orders(5, 12, 4));
        assert_eq!(orders(3, 7, 1).len(), 7);
        assert!(orders(0, 7, 1).is_empty());
    }
}
