//! One claim: its words, the rows that answer it, the bound, and what they say cell by cell.

use cachewise_measure::record::by_cell;
use cachewise_measure::{CellKey, ProofVerdict, Row, stats};
use serde::Deserialize;
use std::collections::BTreeMap;

/// One claim, and what answers it: an object of `claims.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The item of the checklist, `000.6`.
    pub item: String,
    /// Its words, or some of them, as they stand in the document.
    #[serde(default)]
    pub quote: String,
    /// What is compared, where the words do not say it.
    #[serde(default)]
    pub asks: String,
    /// The document's own figure, as a ratio of times where it has one.
    #[serde(default = "asked")]
    pub theirs: String,
    /// The experiment whose records answer.
    pub record: String,
    /// The candidate's cells.
    pub cells: Cells,
    /// The reference's cells, where they are others: of those the likest is taken.
    pub base: Option<Cells>,
    /// Candidates and references. A name with `|` is the first of them that was measured, one that
    /// begins with `FASTEST` the fastest; a `*` at its end stands for anything.
    pub pairs: Vec<(String, String)>,
    /// What of a row counts.
    #[serde(default)]
    pub reads: Reads,
    /// What the document expects; none where it asks or gives no figure.
    pub expect: Option<Expect>,
    /// The question that it answers in the short answer; empty where it is not part of it.
    #[serde(default)]
    pub short: String,
}

fn asked() -> String {
    "asked".to_owned()
}

/// Which cells are meant: those that all fields fit; one that is absent fits any.
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
        self.operation.as_ref().is_none_or(|operation| cell.operation == *operation)
            && self.state.as_ref().is_none_or(state)
            && self.size.as_ref().is_none_or(size)
            && self.at.as_ref().is_none_or(|at| at.split(' ').any(|level| is_at(cell, level)))
            && self.reader.is_none_or(|reader| cell.reader == Some(reader))
            && self.axes.iter().all(axis)
            && (!self.plain || is_plain(cell))
            && (!self.whole || is_whole(cell))
    }
}

/// Rounds or launches that a cell needs: sizes that follow from what a launch measured are not in all.
const FEWEST: usize = 5;

/// How a name begins that stands for whichever was fastest.
const FASTEST: &str = "fastest of ";

/// What of a row counts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// The operation alone.
    #[default]
    Operation,
    /// Operation, reader and bystander.
    Whole,
    /// A figure of the candidate, which has no interval and so no word.
    Figure(String),
    /// The same over the reference's.
    FigureOver(String),
}

/// Which ratios confirm a claim.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// At most so much. Above it, but still on that side of 1, the effect is weaker than claimed.
    AtMost(f64),
    /// At least so much, likewise.
    AtLeast(f64),
    /// Between the two: a tie, or a bounded effect.
    Within(f64, f64),
    /// At least so much in one cell: an existential claim.
    SomeAtLeast(f64),
}

/// What one cell, one CPU or all of them say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// As claimed.
    Confirmed,
    /// In that direction, by less.
    Weaker,
    /// The other side, or no effect.
    Refuted,
    /// Cells or CPUs differ.
    Depends,
    /// No interval excludes the other side.
    CannotTell,
}

impl Word {
    /// In a table.
    pub const fn mark(self) -> &'static str {
        match self {
            Word::Confirmed => "yes",
            Word::Weaker => "less",
            Word::Refuted => "no",
            Word::Depends => "mixed",
            Word::CannotTell => "?",
        }
    }

    /// In the last column and in the counts.
    pub const fn name(self) -> &'static str {
        match self {
            Word::Confirmed => "confirmed",
            Word::Weaker => "weaker",
            Word::Refuted => "refuted",
            Word::Depends => "depends",
            Word::CannotTell => "cannot tell",
        }
    }
}

/// A cell's ratio by round or launch; one value where it is a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The ratios, or the figure.
    pub ratios: Vec<f64>,
}

impl Measured {
    /// The middle one.
    pub fn median(&self) -> f64 {
        stats::median(&self.ratios)
    }

    /// Which side of the bound it is on, and the p of the other.
    pub(super) fn side(&self, expect: Expect) -> (Word, f64) {
        let middle = self.median();
        let p = |bound| cachewise_judge::family::p_around(&self.ratios, bound);
        let one_sided = |bound: f64, below: bool| match below {
            _ if (middle < bound) == below => (Word::Confirmed, p(bound)),
            true if bound < 1.0 && middle < 1.0 => (Word::Weaker, p(bound).max(p(1.0))),
            false if bound > 1.0 && middle > 1.0 => (Word::Weaker, p(bound).max(p(1.0))),
            _ => (Word::Refuted, p(bound)),
        };
        match expect {
            Expect::AtMost(bound) => one_sided(bound, true),
            Expect::AtLeast(bound) | Expect::SomeAtLeast(bound) => one_sided(bound, false),
            Expect::Within(low, _) if middle < low => (Word::Refuted, p(low)),
            Expect::Within(_, high) if middle > high => (Word::Refuted, p(high)),
            Expect::Within(low, high) => (Word::Confirmed, p(low).max(p(high))),
        }
    }
}

impl Claim {
    /// What the rows of one record say, cell by cell; nothing where they have none of it. Cells whose
    /// operands were not where they are said to be are left out.
    pub fn measured(&self, rows: &[Row]) -> Vec<Measured> {
        let of = |wanted: &Cells| {
            let cells = by_cell(rows.iter().filter(|row| wanted.has(&row.cell)));
            cells.into_iter().filter(|(_, rows)| !rows.iter().any(|row| is_misplaced(row)))
        };
        let base: Option<Vec<_>> = self.base.as_ref().map(|base| of(base).collect());
        let mut found = Vec::new();
        for (cell, own) in of(&self.cells) {
            let theirs = match &base {
                None => Some(&own),
                Some(base) => {
                    base.iter().max_by_key(|(other, _)| likeness(cell, other)).map(|(_, rows)| rows)
                }
            };
            for (candidate, reference) in &self.pairs {
                let candidate = find(&own, candidate);
                let reference = theirs.and_then(|rows| find(rows, reference));
                found.extend(self.one(candidate, reference));
            }
        }
        found
    }

    fn one(&self, candidate: Option<&Row>, reference: Option<&Row>) -> Option<Measured> {
        let candidate = candidate?;
        let over = |ours: &[f64], theirs: &[f64]| {
            let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
            ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect::<Vec<f64>>()
        };
        let ratios = match &self.reads {
            Reads::Figure(name) => vec![candidate.figure(name)?],
            Reads::FigureOver(name) => vec![candidate.figure(name)? / reference?.figure(name)?],
            Reads::Operation => over(&candidate.operation_ns, &reference?.operation_ns),
            Reads::Whole if !candidate.is_measurable() || !reference?.is_measurable() => {
                return None;
            }
            Reads::Whole => over(&candidate.total_ns(), &reference?.total_ns()),
        };
        let is_figure = matches!(self.reads, Reads::Figure(_) | Reads::FigureOver(_));
        (is_figure || ratios.len() >= FEWEST).then_some(Measured { ratios })
    }
}

/// Whether its operands were not where they are said to be.
pub(super) fn is_misplaced(row: &Row) -> bool {
    row.proofs.iter().any(|proof| proof.verdict == ProofVerdict::Failed)
}

/// How many coordinates two cells have in common.
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

/// The row of a cell that a claim means.
fn find<'r>(rows: &[&'r Row], meant: &str) -> Option<&'r Row> {
    let (names, fastest) = match meant.strip_prefix(FASTEST) {
        Some(names) => (names, true),
        None => (meant, false),
    };
    let is = |row: &&&Row, name: &str| match name.strip_suffix('*') {
        Some(start) => row.candidate.starts_with(start),
        None => row.candidate == name,
    };
    let measured = || rows.iter().filter(|row| !row.operation_ns.is_empty());
    let of = |name: &str| measured().filter(|row| is(row, name)).copied().collect::<Vec<&Row>>();
    let all: Vec<&Row> = names.split('|').flat_map(of).collect();
    if fastest {
        all.into_iter().min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()))
    } else {
        all.first().copied()
    }
}

/// Whether a cell is of copies or whatever between two levels.
pub(super) fn between(cell: &CellKey, operation: &str, level: &str) -> bool {
    cell.operation == operation && is_at(cell, level) && is_plain(cell)
}

/// Whether an extent is done in one call. Old records have its length rounded.
fn is_whole(cell: &CellKey) -> bool {
    let chunk = cell.axis(cachewise_measure::record::names::CHUNK);
    chunk.is_some_and(|chunk| (chunk / cell.size as f64 - 1.0).abs() < 1e-3)
}

/// Whether a cell's destination is at a level.
fn is_at(cell: &CellKey, level: &str) -> bool {
    cell.destination.is_some_and(|residency| residency.name() == level)
}

/// Whether a cell has no axis but its levels.
fn is_plain(cell: &CellKey) -> bool {
    cell.axes.is_empty() && (cell.source.is_none() || cell.source == cell.destination)
}
