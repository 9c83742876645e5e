//! Rows of figures that two programs print in pairs of launches, judged as one family.
//!
//! Of two hundred benchmarks ten differ by luck where each is judged alone. A row is called faster or slower only where it
//! stands after the correction for the number of rows and of looks.

use crate::figures::{Kind, Own};
use cachewise_judge::{Ratio, Verdict, family, interval};
use std::collections::{BTreeMap, BTreeSet};

/// A launch's figures by name.
pub type Figures = BTreeMap<String, Own>;

/// Pairs after which rows are looked at first; then each time twice as many.
pub const FIRST_LOOK: usize = 6;
/// Looks that are corrected for: up to 192 pairs.
const LOOKS: f64 = 6.0;

/// The p of no difference: the smaller of the rank test, which sees small differences, and the sign test, which disturbed
/// rounds do not move; corrected for two tests.
fn p_of(ratios: &[f64]) -> f64 {
    let differing = ratios.iter().filter(|ratio| **ratio != 1.0).count();
    let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    let mut probability = 0.5_f64.powi(differing as i32);
    let mut tail = 0.0;
    for successes in 0..=above.min(differing - above) {
        tail += probability;
        probability *= (differing - successes) as f64 / (successes + 1) as f64;
    }
    (2.0 * family::p_around(ratios, 1.0).min(2.0 * tail)).min(1.0)
}

/// Returns whether rows are looked at after so many pairs.
#[must_use]
pub const fn is_looked_at(pairs: usize) -> bool {
    pairs.is_multiple_of(FIRST_LOOK) && (pairs / FIRST_LOOK).is_power_of_two()
}

/// One row of both programs.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFound {
    /// The benchmark's name.
    pub name: String,
    /// The kind of figure.
    pub kind: Kind,
    /// Medians of the old and the new program, as costs.
    pub medians: [f64; 2],
    /// New over old, with the interval of this row alone; above 1 is slower.
    pub ratio: Ratio,
    /// The word, corrected for the number of rows and looks.
    pub verdict: Verdict,
}

/// All rows of both programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowsFound {
    /// The rows that both have, by name.
    pub rows: Vec<RowFound>,
    /// Names that the old program alone prints.
    pub only_old: Vec<String>,
    /// Names that the new program alone prints.
    pub only_new: Vec<String>,
}

impl RowsFound {
    /// Judges the pairs; `old[n]` and `new[n]` were launched in turns.
    #[must_use]
    pub fn of(old: &[Figures], new: &[Figures], margin: f64) -> RowsFound {
        let names = |side: &[Figures]| -> BTreeSet<String> {
            side.iter().flat_map(|figures| figures.keys().cloned()).collect()
        };
        let [olds, news] = [names(old), names(new)];
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect()
        };
        let (only_old, only_new) = (only(&olds, &news), only(&news, &olds));
        let both: Vec<&String> = olds.intersection(&news).collect();
        let costs = |side: &[Figures], name: &String| -> Vec<f64> {
            side.iter().map(|figures| figures.get(name).map_or(f64::NAN, |own| own.cost)).collect()
        };
        let ratios: Vec<Vec<f64>> = both
            .iter()
            .map(|name| cachewise_judge::ratio::of_rounds(&costs(new, name), &costs(old, name)))
            .collect();
        let p: Vec<f64> = ratios.iter().map(|ratios| (LOOKS * p_of(ratios)).min(1.0)).collect();
        let stand = family::discoveries(&p);
        let rows = both.iter().zip(&ratios).zip(stand).map(|((name, ratios), stands)| {
            let ratio = interval::paired(ratios);
            let middle = |side| {
                let known: Vec<f64> =
                    costs(side, name).into_iter().filter(|cost| cost.is_finite()).collect();
                cachewise_judge::order::median(&known)
            };
            let kind = old
                .iter()
                .find_map(|figures| figures.get(*name))
                .map_or(Kind::Count, |own| own.kind);
            let verdict = match ratio.verdict(margin) {
                Verdict::Faster | Verdict::Slower if !stands => Verdict::Unknown,
                word => word,
            };
            RowFound {
                name: (*name).clone(),
                kind,
                medians: [middle(old), middle(new)],
                ratio,
                verdict,
            }
        });
        RowsFound { rows: rows.collect(), only_old, only_new }
    }

    /// Returns whether no further pair can change a word.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.rows.iter().all(|row| row.verdict != Verdict::Unknown)
    }

    /// Rows with a word, those that changed most first.
    #[must_use]
    pub fn with(&self, word: Verdict) -> Vec<&RowFound> {
        let mut rows: Vec<&RowFound> = self.rows.iter().filter(|row| row.verdict == word).collect();
        rows.sort_by(|a, b| b.ratio.median.ln().abs().total_cmp(&a.ratio.median.ln().abs()));
        rows
    }

    /// The word over all: slower if any row is, then faster, then the same if all are.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let any = |word: Verdict| self.rows.iter().any(|row| row.verdict == word);
        match () {
            () if any(Verdict::Slower) => Verdict::Slower,
            () if any(Verdict::Faster) => Verdict::Faster,
            () if any(Verdict::Unknown) || self.rows.is_empty() => Verdict::Unknown,
            () => Verdict::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches of benchmarks of which `slow` takes `factor` of the old program's time.
    fn launches(
        random: &mut fastrand::Rng,
        pairs: usize,
        benchmarks: usize,
        factor: f64,
    ) -> [Vec<Figures>; 2] {
        let mut side = |factor: f64| {
            let mut launch = || {
                let one = |at: usize| {
                    let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                    let late = if random.u32(..20) == 0 { 1.3 } else { 1.0 };
                    let slower = if at == 7 { factor } else { 1.0 };
                    (
                        format!("b{at:03}"),
                        Own { cost: late * slower * (0.01 * normal).exp(), kind: Kind::Seconds },
                    )
                };
                (0..benchmarks).map(one).collect::<Figures>()
            };
            (0..pairs).map(|_| launch()).collect::<Vec<Figures>>()
        };
        [side(1.0), side(factor)]
    }

    #[test]
    fn no_row_is_slower_by_luck_and_the_slow_one_is_named() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut wrong, mut found, mut others) = (0, 0, 0);
        for _ in 0..100 {
            let [old, new] = launches(&mut random, 48, 40, 1.0);
            wrong += RowsFound::of(&old, &new, 0.01).with(Verdict::Slower).len();
            let [old, new] = launches(&mut random, 48, 40, 1.05);
            let slower = RowsFound::of(&old, &new, 0.01);
            let slower: Vec<&str> =
                slower.with(Verdict::Slower).iter().map(|row| row.name.as_str()).collect();
            found += usize::from(slower.contains(&"b007"));
            others += usize::from(slower.iter().any(|name| *name != "b007"));
        }
        // 4000 rows and more without a difference.
        assert!(
            wrong <= 2 && others <= 2 && found >= 98,
            "{wrong} wrong, {others} others, {found} found"
        );
    }

    #[test]
    fn a_row_of_one_side_is_named() {
        let own =
            |name: &str| Figures::from([(name.to_owned(), Own { cost: 1.0, kind: Kind::Seconds })]);
        let found = RowsFound::of(&[own("a")], &[own("b")], 0.02);
        assert_eq!((found.only_old, found.only_new), (vec!["a".to_owned()], vec!["b".to_owned()]));
        assert!(found.rows.is_empty());
    }
}
