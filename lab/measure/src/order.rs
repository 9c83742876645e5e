//! A visiting order that needs no table: a seeded permutation computed number by number.
//!
//! A table of two million entries would itself pass through the cache being measured.

/// A permutation of `0..count`, fixed by its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    count: u64,
    mask: u64,
    shift: u32,
    first_factor: u64,
    second_factor: u64,
    addend: u64,
}

impl Order {
    pub(crate) fn new(count: usize, seed: u64) -> Order {
        let count = count.max(1) as u64;
        let mask = count.next_power_of_two() - 1;
        let mut random = fastrand::Rng::with_seed(seed);
        Order {
            count,
            mask,
            shift: (mask.count_ones() / 2).max(1),
            first_factor: random.u64(..) | 1,
            second_factor: random.u64(..) | 1,
            addend: random.u64(..),
        }
    }

    /// The number at `position` (taken modulo the count).
    ///
    /// Each step is a bijection of the next power of two: an odd multiplication, an addition, an
    /// exclusive or with own higher bits. Walking on until the result is below the count restricts
    /// it to a permutation of the count ("cycle walking", Black and Rogaway 2002, section 3),
    /// fewer than two rounds on average.
    #[inline]
    pub(crate) fn at(&self, position: u64) -> usize {
        let mut x = position % self.count;
        loop {
            x = x.wrapping_mul(self.first_factor).wrapping_add(self.addend) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(self.second_factor) & self.mask;
            x ^= x >> self.shift;
            if x < self.count {
                return x as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_per_cycle() {
        for count in [1, 2, 3, 5, 64, 100, 1000, 4097] {
            let order = Order::new(count, count as u64);
            let mut seen = vec![false; count];
            for position in 0..count as u64 {
                assert!(!std::mem::replace(&mut seen[order.at(position)], true));
            }
            assert_eq!(order.at(0), order.at(count as u64), "the cycle repeats");
        }
    }

    #[test]
    fn seeds_differ_and_steps_are_not_constant() {
        let (a, b) = (Order::new(1 << 16, 1), Order::new(1 << 16, 2));
        assert!((0..100).any(|position| a.at(position) != b.at(position)));
        let steps: std::collections::BTreeSet<i64> =
            (0..1000).map(|position| a.at(position + 1) as i64 - a.at(position) as i64).collect();
        assert!(steps.len() > 500, "{} distinct steps", steps.len());
    }
}
