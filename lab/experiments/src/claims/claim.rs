//! One claim: a quotation, the rows that answer it, and the bound that its document implies.

use super::rule::{Expect, LEAST, Over, Ratios, SAME};
use crate::compare_latency;
use crate::names::{CHUNK, DELAY_BYTES};
use cachewise_judge::family::p_around;
use cachewise_measure::record::by_cell;
use cachewise_measure::units::{bytes, significant};
use cachewise_measure::{CellKey, ProofVerdict, Row, stats};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// One claim, and what answers it: an object of `claims.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The item of the checklist, `000.6`; `own` where no document asks.
    pub item: String,
    /// Quotation from the document. A row without one is about the row above's.
    #[serde(default)]
    pub quote: String,
    /// The sense of its words where they are a question, a condition or a slip.
    #[serde(default)]
    pub means: String,
    /// The sentence that is tested: what it names first is the candidate. Without `says` it has "this" for the figure.
    /// `{size}` stands for the sizes that were measured, the name of another coordinate in bytes for its values.
    pub asks: String,
    /// The document's statement; none where it only asks.
    says: Option<Says>,
    /// Stand-in or limit that was measured instead of the document's subject. Such a row has no answer.
    #[serde(default)]
    pub instead: String,
    /// The document's own figure where `says` has none.
    #[serde(default)]
    pub theirs: String,
    /// The share of its cells, and of the CPUs, that it speaks of.
    #[serde(default)]
    pub over: Over,
    /// The experiment whose records answer; with `-classic` those by the document's parameters.
    pub record: String,
    pub cells: Cells,
    /// The reference's cells where they differ from `cells`; the most similar one is taken.
    pub base: Option<Cells>,
    /// Candidates and references. A name with `|` is the first of them that was measured, one that
    /// begins with `fastest of` the fastest; a `*` at its end stands for anything.
    pub pairs: Vec<(String, String)>,
    /// The part of a row that counts.
    #[serde(default)]
    pub reads: Reads,
    /// The question that it answers in the short answer; empty where it is not part of it.
    #[serde(default)]
    pub short: String,
    /// True of the rows that the document's page has.
    #[serde(default)]
    pub page: bool,
    /// Two more rows of the cell: the time of the first less that of the second is added to candidate and reference.
    plus: Option<(String, String)>,
}

/// A document's statement about a ratio of times, and so which ratios confirm it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// A range: its end next to 1 is the bound; around 1 both ends, and [`LEAST`] beyond them.
    Range(f64, f64),
    /// One figure: half of that effect, which is its square root.
    Figure(f64),
    /// A number of things: one more or less is as many.
    Count(f64),
    Less,
    More,
    NotLess,
    NotMore,
    Same,
    Almost,
    Hardly,
    HardlyAny,
    Much,
    Half,
    Largest,
    Best,
    Far,
    Slow,
}

/// Phrases of the documents and the bound of each: the same in all rows. Figures have theirs from [`Says::expect`].
pub const PHRASES: [(Says, &str, Expect); 14] = [
    (Says::Less, "faster, a gain", Expect::AtMost(1.0 - LEAST)),
    (Says::More, "slower, a loss", Expect::AtLeast(1.0 + LEAST)),
    (Says::NotLess, "no faster, no gain", Expect::AtLeast(1.0 - LEAST)),
    (Says::NotMore, "no cost, no downside, hardly noticeable", Expect::AtMost(1.0 + SAME)),
    (Says::Same, "as fast, the same, very close, equivalent, any form", Expect::Within(0.9, 1.1)),
    (Says::Almost, "almost, nearly, keeps up, to within about 10 %", Expect::AtMost(1.1)),
    (Says::Hardly, "minimal, minor, limited to", Expect::AtLeast(0.9)),
    (Says::HardlyAny, "minimal impact: of a cost what is left", Expect::AtMost(0.1)),
    (Says::Much, "significantly, easily", Expect::AtMost(0.9)),
    (Says::Half, "more than doubles, dominated by the other", Expect::AtMost(0.5)),
    (Says::Largest, "the most expensive part: what is left without it", Expect::AtMost(2.0 / 3.0)),
    (Says::Best, "nothing beats it", Expect::AtMost(1.0 + LEAST)),
    (Says::Far, "not anywhere near", Expect::AtLeast(1.1)),
    (Says::Slow, "slow, destroys performance", Expect::AtLeast(1.25)),
];

impl Says {
    pub fn expect(self) -> Expect {
        match self {
            Says::Range(low, high) if low > 1.0 => Expect::AtLeast(low.min(high)),
            Says::Range(low, high) if high < 1.0 => Expect::AtMost(low.max(high)),
            Says::Range(low, high) => Expect::Within(low - LEAST, high + LEAST),
            Says::Figure(figure) if figure < 1.0 => Expect::AtMost(figure.sqrt()),
            Says::Figure(figure) => Expect::AtLeast(figure.sqrt()),
            Says::Count(count) => Expect::Within(count - 1.0, count + 1.0),
            word => {
                let mut phrases = PHRASES.iter();
                phrases.find(|(known, ..)| *known == word).expect("every phrase has a bound").2
            }
        }
    }

    /// The document's figure; none where it has a phrase.
    fn theirs(self) -> Option<String> {
        match self {
            Says::Range(low, high) => Some(format!("{low:.2}-{high:.2}")),
            Says::Figure(figure) | Says::Count(figure) => Some(figure.to_string()),
            _ => None,
        }
    }
}

/// A bound as it is printed: the ratios that confirm.
pub fn bound(expect: Expect) -> String {
    match expect {
        Expect::AtMost(bound) => format!("≤{bound:.2}"),
        Expect::AtLeast(bound) => format!("≥{bound:.2}"),
        Expect::Within(low, high) => format!("{low:.2}..{high:.2}"),
    }
}

impl Claim {
    /// The bound; none where the document only asks, and where something else was measured.
    pub fn expect(&self) -> Option<Expect> {
        self.says.filter(|_| self.instead.is_empty()).map(Says::expect)
    }

    /// The number that a count has to be, one more or less; none where no count is claimed. A count has no noise.
    pub fn count(&self) -> Option<f64> {
        match self.says? {
            Says::Count(count) => Some(count),
            _ => None,
        }
    }

    /// The document's figure; none where the sentence says it, or nothing is claimed.
    pub fn theirs(&self) -> Option<String> {
        let own = Some(self.theirs.clone()).filter(|theirs| !theirs.is_empty());
        own.or_else(|| self.says.and_then(Says::theirs))
    }

    /// The document's figure, the bound and what was measured instead, as they end a sentence.
    pub fn ending(&self) -> String {
        let mut text = String::new();
        text.extend(self.theirs().map(|theirs| format!("; theirs {theirs}")));
        text.extend(self.expect().map(|expect| format!("; yes {}", bound(expect))));
        if !self.instead.is_empty() {
            text.push_str(&format!("; no answer: {}", self.instead));
        }
        text
    }

    /// Its words, their sense, and the sentence that is tested, as they are printed of what was measured.
    pub fn words(&self, measured: &Measured) -> String {
        match (&*self.quote, &*self.means, measured.named_in(&self.asks)) {
            ("", "", asks) => asks,
            (quote, "", asks) => format!("\"{quote}\": {asks}"),
            (quote, means, asks) => format!("\"{quote}\" ({means}): {asks}"),
        }
    }
}

/// The coordinates that a claim's sentence names: the values that were measured, by name.
#[derive(Clone, Debug, Default)]
pub struct Measured(BTreeMap<&'static str, BTreeSet<u64>>);

impl Measured {
    /// The names that sentences have in braces.
    const NAMES: [&'static str; 2] = ["size", DELAY_BYTES];

    fn add(&mut self, cell: &CellKey) {
        for name in Measured::NAMES {
            let value = cell.axis(name).map(|value| value as u64);
            let value = if name == "size" { Some(cell.size) } else { value };
            self.0.entry(name).or_default().extend(value);
        }
    }

    /// Adds another record's values.
    pub(super) fn join(&mut self, other: &Measured) {
        for (name, values) in &other.0 {
            self.0.entry(name).or_default().extend(values);
        }
    }

    pub(super) fn largest(&self) -> Option<u64> {
        self.0.get("size")?.last().copied()
    }

    /// A sentence with the values for their names.
    pub(super) fn named_in(&self, sentence: &str) -> String {
        let mut text = sentence.to_owned();
        for (name, values) in &self.0 {
            text = text.replace(&format!("{{{name}}}"), &range(values));
        }
        text
    }
}

/// One value, two, or the first and the last of more; the unit once where it is the same.
fn range(values: &BTreeSet<u64>) -> String {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return String::new() };
    let (least, most) = (bytes(*first), bytes(*last));
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let least = match least.split_once(' ') {
        Some((number, _)) if unit(&least) == unit(&most) => number.to_owned(),
        _ => least,
    };
    match values.len() {
        1 => most,
        2 => format!("{least} and {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// The cells that are meant: all fields fit them; one that is absent fits any.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cells {
    operation: Option<String>,
    /// After `!` any other state, before `*` any that begins so.
    state: Option<String>,
    /// The least and the greatest.
    size: Option<(u64, Option<u64>)>,
    /// The destination's levels, with spaces between them.
    at: Option<String>,
    /// No axis but the levels, which are the same for both operands.
    #[serde(default)]
    plain: bool,
    /// An extent in one call.
    #[serde(default)]
    whole: bool,
    reader: Option<f64>,
    /// Values by coordinate, of which a cell has one.
    #[serde(default)]
    axes: BTreeMap<String, Vec<f64>>,
    /// The least and the greatest value by coordinate.
    #[serde(default)]
    between: BTreeMap<String, (f64, f64)>,
}

impl Cells {
    fn has(&self, cell: &CellKey) -> bool {
        let state = |wanted: &String| match (wanted.strip_prefix('!'), wanted.strip_suffix('*')) {
            (Some(other), _) => cell.state != *other,
            (None, Some(start)) => cell.state.starts_with(start),
            (None, None) => cell.state == **wanted,
        };
        let size = |(least, most): &(u64, Option<u64>)| {
            (*least..=most.unwrap_or(u64::MAX)).contains(&cell.size)
        };
        let axis = |(name, values): (&String, &Vec<f64>)| {
            cell.axis(name).is_some_and(|value| values.contains(&value))
        };
        let between = |(name, (least, most)): (&String, &(f64, f64))| {
            cell.axis(name).is_some_and(|value| (*least..=*most).contains(&value))
        };
        self.operation.as_ref().is_none_or(|operation| cell.operation == *operation)
            && self.state.as_ref().is_none_or(state)
            && self.size.as_ref().is_none_or(size)
            && self.at.as_ref().is_none_or(|at| at.split(' ').any(|level| is_at(cell, level)))
            && self.reader.is_none_or(|reader| cell.reader == Some(reader))
            && self.axes.iter().all(axis)
            && self.between.iter().all(between)
            && (!self.plain || is_plain(cell))
            && (!self.whole || is_whole(cell))
    }
}

/// Rounds or launches that a cell needs: sizes that follow from what a launch measured are not in all.
const FEWEST: usize = 5;

/// Prefix of a list of names of which the fastest is meant.
const FASTEST: &str = "fastest of ";

/// The part of a row that counts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    #[default]
    Operation,
    Reader,
    /// Reader and bystander: the costs of others.
    After,
    Whole,
    /// A figure of the candidate, which has no interval and so no answer.
    Figure(String),
    /// A figure of the candidate over the reference's.
    FigureOver(String),
    /// Such a ratio, of cells that are launches.
    FigureAcross(String),
    /// 1 for a launch whose histogram stands out near 600 ns.
    Spike,
    /// The size from which on the candidate is faster, over all cells.
    BreakEven,
}

impl Reads {
    /// Tells whether it reads times and nothing else.
    pub fn is_of_times(&self) -> bool {
        self.has_ratios() && !matches!(self, Reads::FigureAcross(_))
    }

    /// Tells whether it reads ratios by launch.
    pub(super) fn has_ratios(&self) -> bool {
        !matches!(self, Reads::Figure(_) | Reads::FigureOver(_) | Reads::Spike | Reads::BreakEven)
    }

    pub(super) fn shown(&self, value: f64, measured: &Measured) -> String {
        match self {
            Reads::BreakEven if value.is_finite() => bytes(value as u64),
            Reads::BreakEven => match measured.largest() {
                Some(largest) => format!("none to {}", bytes(largest)),
                None => "none".to_owned(),
            },
            Reads::Figure(name) if name.contains("share") || name.starts_with("within_") => {
                format!("{:.0} %", value * 100.0)
            }
            // Small values have two digits, too.
            _ if value > 0.0 && value < 0.1 => format!("{value:.3}"),
            _ => significant(value),
        }
    }
}

/// The ratios of one cell and pair.
#[derive(Clone, Debug)]
pub struct Found {
    pub cell: String,
    pub ratios: Ratios,
}

/// A cell and a pair as a list of cells has them.
fn named(cell: &CellKey, candidate: &str, reference: &str) -> String {
    let mut parts = vec![format!("{} of {}", cell.operation, bytes(cell.size)), cell.state.clone()];
    parts.extend(cell.levels());
    parts.extend(cell.reader.map(|share| format!("reader {}", significant(share))));
    parts.extend(cell.axes.iter().map(|(name, value)| format!("{name} {}", significant(*value))));
    parts.retain(|part| !part.is_empty());
    let shorter = |name: &str| match name.split_once('|') {
        Some((first, rest)) => format!("{first} and {} more", rest.split('|').count()),
        None => name.to_owned(),
    };
    format!("{}; {} over {}", parts.join(", "), shorter(candidate), shorter(reference))
}

impl Claim {
    /// The ratios that the rows of one record have for it, cell by cell, and what was measured. Cells whose operands
    /// were not where they are said to be are left out.
    pub fn measured(&self, rows: &[Row]) -> (Vec<Found>, Measured) {
        let of = |wanted: &Cells| {
            let cells = by_cell(rows.iter().filter(|row| wanted.has(&row.cell)));
            cells.into_iter().filter(|(_, rows)| !rows.iter().any(|row| is_misplaced(row)))
        };
        let base: Option<Vec<_>> = self.base.as_ref().map(|base| of(base).collect());
        let (mut found, mut sizes) = (Vec::new(), Vec::new());
        let mut measured = Measured::default();
        for (cell, own) in of(&self.cells) {
            let theirs = match &base {
                None => Some(&own),
                Some(base) => {
                    base.iter().max_by_key(|(other, _)| likeness(cell, other)).map(|(_, rows)| rows)
                }
            };
            for (candidate, reference) in &self.pairs {
                let theirs = theirs.map_or(&[][..], Vec::as_slice);
                let Some(ratios) = self.one(&own, candidate, theirs, reference) else { continue };
                sizes.push(cell.size);
                measured.add(cell);
                found.push(Found { cell: named(cell, candidate, reference), ratios });
            }
        }
        let merged =
            |ratios: Vec<f64>| vec![Found { cell: "all".to_owned(), ratios: Ratios(ratios) }];
        let found = match self.reads {
            _ if found.is_empty() => found,
            Reads::BreakEven => {
                let ratios = found.iter().map(|found| &found.ratios);
                merged(vec![break_even(&mut sizes.into_iter().zip(ratios).collect::<Vec<_>>())])
            }
            Reads::FigureAcross(_) | Reads::Spike => {
                merged(found.into_iter().flat_map(|found| found.ratios.0).collect())
            }
            _ => found,
        };
        (found, measured)
    }

    /// The ratios of one pair.
    fn one(
        &self,
        own: &[&Row],
        candidate: &str,
        theirs: &[&Row],
        reference: &str,
    ) -> Option<Ratios> {
        let over = |part: fn(&Row) -> Vec<f64>| {
            let (ours, theirs) = (times(own, candidate, part)?, times(theirs, reference, part)?);
            let both = match &self.plus {
                None => vec![0.0; ours.len()],
                Some((more, less)) => {
                    let (more, less) = (times(own, more, part)?, times(own, less, part)?);
                    more.iter().zip(less).map(|(more, less)| more - less).collect()
                }
            };
            let ratios = ours.iter().zip(theirs).zip(both);
            let ratios = ratios.map(|((ours, theirs), both)| (ours + both) / (theirs + both));
            Some(ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect::<Vec<f64>>())
        };
        let figure = |rows: &[&Row], meant: &str, name: &str| {
            matching(rows, meant).first().and_then(|row| row.figure(name))
        };
        let ratios = match &self.reads {
            Reads::Figure(name) => return Some(Ratios(vec![figure(own, candidate, name)?])),
            Reads::Spike => {
                let row = matching(own, candidate).into_iter().next()?;
                let found = compare_latency::spike(row.histogram.as_ref()?).is_some();
                return Some(Ratios(vec![f64::from(u8::from(found))]));
            }
            Reads::FigureOver(name) | Reads::FigureAcross(name) => {
                let ratio = figure(own, candidate, name)? / figure(theirs, reference, name)?;
                return Some(Ratios(vec![ratio]));
            }
            Reads::Operation | Reads::BreakEven => over(|row| row.operation_ns.clone())?,
            Reads::Reader => over(|row| row.reader_ns.clone())?,
            Reads::After => over(|row| {
                let parts = row.reader_ns.iter().zip(&row.bystander_ns);
                parts.map(|(reader, bystander)| reader + bystander).collect()
            })?,
            Reads::Whole => {
                over(|row| if row.is_measurable() { row.total_ns() } else { Vec::new() })?
            }
        };
        (ratios.len() >= FEWEST).then_some(Ratios(ratios))
    }
}

/// The size from which on a candidate is faster, interpolated between two sizes (linear over the logarithm of the size);
/// infinite where it is not faster at the largest.
fn break_even(points: &mut [(u64, &Ratios)]) -> f64 {
    points.sort_unstable_by_key(|(size, _)| *size);
    let is = |ratios: &Ratios, wanted: fn(f64) -> bool| {
        wanted(ratios.median()) && p_around(&ratios.0, 1.0) < 0.05
    };
    let faster = |ratios: &Ratios| is(ratios, |median| median < 1.0 - LEAST);
    let slower = |ratios: &Ratios| is(ratios, |median| median > 1.0 + LEAST);
    if !points.last().is_some_and(|(_, ratios)| faster(ratios)) {
        return f64::INFINITY;
    }
    let begin = points.iter().rposition(|(_, ratios)| slower(ratios)).map_or(0, |at| at + 1);
    let Some(first) = points[begin..].iter().position(|(_, ratios)| faster(ratios)) else {
        return f64::INFINITY;
    };
    let (size, wins) = points[begin + first];
    match (begin + first).checked_sub(1).map(|below| points[below]) {
        Some((below, loses)) if loses.median() > 1.0 => {
            let share = (loses.median() - 1.0) / (loses.median() - wins.median());
            below as f64 * (size as f64 / below as f64).powf(share)
        }
        Some((below, _)) => below as f64,
        None => size as f64,
    }
}

/// The times of the row that a claim means. The fastest of several is chosen in every second launch and timed in the
/// others, and the reverse: a row is not fast because it was chosen for it.
fn times(rows: &[&Row], meant: &str, part: fn(&Row) -> Vec<f64>) -> Option<Vec<f64>> {
    let all: Vec<Vec<f64>> = matching(rows, meant).into_iter().map(part).collect();
    if !meant.starts_with(FASTEST) {
        return all.into_iter().next();
    }
    let half = |times: &[f64], which: usize| {
        let of_half: Vec<f64> = times.iter().copied().skip(which).step_by(2).collect();
        stats::median(&of_half)
    };
    let chosen =
        [0, 1].map(|which| all.iter().min_by(|a, b| half(a, which).total_cmp(&half(b, which))));
    let launches = all.iter().map(Vec::len).max()?;
    (0..launches).map(|at| chosen[1 - at % 2]?.get(at).copied()).collect()
}

/// Tells whether its operands were not where they are said to be.
pub(super) fn is_misplaced(row: &Row) -> bool {
    row.proofs.iter().any(|proof| proof.verdict == ProofVerdict::Failed)
}

/// The number of coordinates that two cells have in common.
fn likeness(one: &CellKey, other: &CellKey) -> usize {
    let axes = one.axes.iter().filter(|(name, value)| other.axes.get(*name) == Some(value)).count();
    let same = [
        one.operation == other.operation,
        one.size == other.size,
        one.source == other.source,
        one.destination == other.destination,
        one.reader == other.reader,
        one.state == other.state,
    ];
    axes + same.into_iter().filter(|is| *is).count()
}

/// The rows of a cell that a claim means, in the order of their names in it.
fn matching<'r>(rows: &[&'r Row], meant: &str) -> Vec<&'r Row> {
    let names = meant.strip_prefix(FASTEST).unwrap_or(meant);
    let is = |row: &&&Row, name: &str| match name.strip_suffix('*') {
        Some(start) => row.candidate.starts_with(start),
        None => row.candidate == name,
    };
    let measured = || rows.iter().filter(|row| !row.operation_ns.is_empty());
    let of = |name: &str| measured().filter(|row| is(row, name)).copied().collect::<Vec<&Row>>();
    names.split('|').flat_map(of).collect()
}

/// Tells whether an extent is done in one call.
fn is_whole(cell: &CellKey) -> bool {
    cell.axis(CHUNK) == Some(cell.size as f64)
}

/// Tells whether a cell's destination is at a level.
fn is_at(cell: &CellKey, level: &str) -> bool {
    cell.destination.is_some_and(|residency| residency.name() == level)
}

/// Tells whether a cell has no axis but its levels.
fn is_plain(cell: &CellKey) -> bool {
    cell.axes.is_empty() && (cell.source.is_none() || cell.source == cell.destination)
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;
    use cachewise_measure::units::parse_bytes;

    /// A size that a run may choose stands in braces, so that the sentence names what was measured.
    #[test]
    fn sentences_name_only_sizes_that_their_cells_fix() {
        for claim in all() {
            let cells = || [Some(&claim.cells), claim.base.as_ref()].into_iter().flatten();
            let fixes = |size: u64| {
                let is_one = |cells: &Cells| {
                    cells.size == Some((size, Some(size)))
                        || cells.axes.values().flatten().any(|value| *value == size as f64)
                };
                let short = bytes(size).replace(" KiB", "k").to_lowercase();
                let names = |name: &String| name.to_lowercase().contains(&short);
                cells().any(is_one) || claim.pairs.iter().any(|(one, two)| names(one) || names(two))
            };
            for text in [&claim.asks, &claim.short] {
                let words = text.split(' ').map(|word| word.trim_end_matches([',', ':', ';', '.']));
                let words: Vec<&str> = words.collect();
                for three in words.windows(3) {
                    let size = parse_bytes(&format!("{}{}", three[1], three[2])).ok();
                    let size = size.filter(|_| ["B", "KiB", "MiB"].contains(&three[2]));
                    let size = size.filter(|_| three[0] != "modulo");
                    assert!(size.is_none_or(|size| fixes(size as u64)), "{size:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn sizes_are_named_as_a_reader_says_them() {
        for (values, text) in [
            (&[4096][..], "4 KiB"),
            (&[4096, 65536], "4 and 64 KiB"),
            (&[4096, 1 << 20], "4 KiB and 1 MiB"),
            (&[128, 512, 1024], "128 B to 1 KiB"),
            (&[8192, 16384, 32768], "8 to 32 KiB"),
        ] {
            assert_eq!(range(&values.iter().copied().collect()), text);
        }
    }
}
