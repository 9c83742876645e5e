//! The answer of `compare`: one word over two programs, and every figure with its interval.

use crate::figures::{Kind, Own};
use crate::program::{Figure, Sample};
use crate::rows::{Figures, RowFound, RowsFound};
use cachewise_judge::fastest::{FASTEST, Shown};
use cachewise_judge::interval::Pooled;
use cachewise_judge::order::quantile;
use cachewise_judge::race::{Fate, Outcome, Runs};
use cachewise_judge::ratio::of_rounds;
use cachewise_judge::{Ratio, Verdict};
use cachewise_measure::units::{bytes, time};
use serde::Serialize;

/// Seconds beyond which no larger budget is named: a quieter machine helps more.
const LONGEST: f64 = 12.0 * 3600.0;

/// A figure, or a benchmark that the programs print.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The name.
    pub name: String,
    /// Median of the old program: seconds, bytes or a number; of a rate the rate.
    pub old: f64,
    /// Median of the new program.
    pub new: f64,
    /// The cost of the new over that of the old; above 1 is worse.
    pub ratio: Ratio,
    /// Lower is `faster`, more `slower`; `cannot-tell` also where it was not judged and nothing is shown.
    pub verdict: Verdict,
    /// True if the answer rests on it.
    pub judged: bool,
    #[serde(skip)]
    kind: Kind,
}

impl Line {
    /// A value as people write it.
    #[must_use]
    pub fn written(&self, value: f64) -> String {
        match self.kind {
            _ if !value.is_finite() => "-".to_owned(),
            Kind::Seconds => time(1e9 * value),
            Kind::Bytes => bytes(value.round() as u64),
            Kind::Rate => format!("{value:.4} /s"),
            Kind::Count | Kind::Ratio => format!("{}", (value * 1e4).round() / 1e4),
        }
    }
}

/// The comparison of two programs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// The answer: `faster`, `slower`, `same` or `cannot-tell`.
    pub answer: Verdict,
    /// The answer in a sentence.
    pub sentence: String,
    /// Every figure.
    pub lines: Vec<Line>,
    /// Benchmarks that the old program alone prints.
    pub only_old: Vec<String>,
    /// Benchmarks that the new program alone prints.
    pub only_new: Vec<String>,
    /// Pairs of runs.
    pub pairs: usize,
    /// Differences up to this part are of no interest.
    pub margin: f64,
    /// Runs of both, with those before the pairs.
    pub runs: usize,
    /// Seconds that all of it took.
    pub seconds: f64,
    /// Seconds that would probably be enough; none where it is told, or no number of pairs would be.
    pub needs_seconds: Option<f64>,
    /// The judged figure of each pair, the new over the old, in the order of the runs; empty for rows.
    pub ratios: Vec<f64>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

/// A change of a cost in percent: `+3.8 %`.
fn change(ratio: f64) -> String {
    format!("{:+.1}", 100.0 * (ratio - 1.0)).replace("-0.0", "+0.0")
}

fn interval(ratio: &Ratio) -> String {
    match ratio.low.is_finite() && ratio.high.is_finite() {
        true => format!(
            "{} % ({} .. {} %)",
            change(ratio.median),
            change(ratio.low),
            change(ratio.high)
        ),
        false if ratio.median.is_finite() => {
            format!("{} %, of {} pairs", change(ratio.median), ratio.rounds)
        }
        false => "no pair".to_owned(),
    }
}

/// A difference that was shown, in words: more and less of a figure, slower and faster of the time.
fn shown(figure: &str, ratio: &Ratio) -> String {
    let worse = ratio.median > 1.0;
    let percent = |part: f64| format!("{:.1}", 100.0 * part.abs());
    let ends = [ratio.low - 1.0, ratio.high - 1.0];
    let [near, far] = if worse { ends } else { [ends[1], ends[0]] };
    let size = format!("{} %", percent(ratio.median - 1.0));
    let range = format!("({} .. {} %)", percent(near), percent(far));
    match (figure, worse) {
        ("time", true) => format!("new is {size} slower {range}"),
        (_, true) => format!("new takes {size} more {figure} {range}"),
        (_, false) => format!("new takes {size} less {figure} {range}"),
    }
}

/// Seconds that pairs of this length would need before the word is settled.
fn needed(ratio: &Ratio, margin: f64, seconds: f64) -> Option<f64> {
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let [estimate, margin] = [ratio.median.ln().abs(), margin.ln_1p()];
    let distance = if estimate > margin { estimate } else { margin - estimate };
    let needed = seconds * (1.1 * half / distance.max(1e-6)).powi(2);
    (needed.is_finite() && needed < LONGEST).then(|| needed.max(1.5 * seconds))
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{:.0} more seconds", seconds.ceil()),
        ..5400.0 => format!("{:.0} more minutes", (seconds / 60.0).ceil()),
        _ => format!("{:.1} more hours", seconds / 3600.0),
    }
}

fn would(needs: Option<f64>, seconds: f64) -> String {
    match needs {
        Some(needs) => format!("about {} would tell", duration(needs - seconds)),
        None => "a quieter machine or a longer run would tell".to_owned(),
    }
}

impl Comparison {
    /// The answer of a race of two programs: number 1 is the new one.
    #[must_use]
    pub fn of_race(
        outcome: &Outcome<Sample>,
        judged: &Figure,
        margin: f64,
        seconds: f64,
    ) -> Comparison {
        let sides = [&outcome.runs[0], &outcome.runs[1]];
        let lines = lines(sides, judged, margin);
        let [old, new] = sides.map(|runs| runs.of(|sample| judged.of(sample)));
        let ratios = of_rounds(&new, &old);
        let (pairs, name) = (ratios.len(), judged.name());
        let mut found =
            Comparison { lines, pairs, margin, seconds, ratios, ..Comparison::default() };
        if let Some(Fate::Disqualified(why)) = outcome.fates.first() {
            let sentence = format!("cannot tell: new does something else: {why}");
            return Comparison { sentence, ..found };
        }
        let pairs_show = by_pairs([&old, &new], judged);
        let (answer, ratio) = pairs_show.word(margin);
        let Shown { all, fastest } = pairs_show;
        let needs = [Some(all), fastest].into_iter().flatten();
        let needs_seconds = needs
            .filter_map(|ratio| needed(&ratio, margin, seconds))
            .min_by(f64::total_cmp)
            .filter(|_| answer == Verdict::Unknown);
        let mut by = "";
        if answer != Verdict::Unknown && ratio != all {
            by = ", by the fastest fifth of the runs";
            found.notes.push(format!(
                "all runs: {}; what else runs here makes runs longer, so the fastest scatter least",
                interval(&all)
            ));
        }
        let sentence = match answer {
            Verdict::Faster | Verdict::Slower => format!("{}{by}", shown(name, &ratio)),
            Verdict::Same => {
                let margin = 100.0 * margin;
                format!("no difference beyond {margin} %: {name} {}{by}", interval(&ratio))
            }
            Verdict::Unknown => {
                let more = would(needs_seconds, seconds);
                format!("cannot tell: {name} {}; {more}", interval(&ratio))
            }
        };
        Comparison { answer, sentence, needs_seconds, ..found }
    }

    /// The answer over rows: benchmarks that both programs print, or several figures.
    #[must_use]
    pub fn of_rows(rows: &RowsFound, pairs: usize, margin: f64, seconds: f64) -> Comparison {
        let answer = rows.verdict();
        let line = |row: &RowFound| {
            let RowFound { name, kind, medians, ratio, verdict } = row.clone();
            let [old, new] = medians.map(|cost| Own { cost, kind }.value());
            Line { name, old, new, ratio, verdict, judged: true, kind }
        };
        let of = |word: Verdict| rows.with(word);
        let number = |count: usize| format!("{count} of {}", rows.rows.len());
        let first = |word: Verdict| {
            let row = of(word)[0];
            let most = if of(word).len() > 1 { "most of all " } else { "" };
            format!("{most}{}: {}", row.name, interval(&row.ratio))
        };
        let open = of(Verdict::Unknown);
        let needs = open
            .iter()
            .map(|row| needed(&row.ratio, margin, seconds))
            .try_fold(0.0, |most: f64, needs| Some(most.max(needs?)));
        let sentence = match answer {
            Verdict::Slower => {
                format!("new is worse in {}, {}", number(of(answer).len()), first(answer))
            }
            Verdict::Faster => format!(
                "new is better in {} and worse in none, {}",
                number(of(answer).len()),
                first(answer)
            ),
            Verdict::Same => {
                format!("no difference beyond {} % in {} rows", 100.0 * margin, rows.rows.len())
            }
            Verdict::Unknown if rows.rows.is_empty() => {
                "cannot tell: the two print no row in common".to_owned()
            }
            Verdict::Unknown => {
                format!(
                    "cannot tell: no difference is shown, {} rows are open; {}",
                    number(open.len()),
                    would(needs, seconds)
                )
            }
        };
        let mut lines: Vec<Line> = Vec::new();
        for word in [Verdict::Slower, Verdict::Faster, Verdict::Unknown, Verdict::Same] {
            lines.extend(of(word).into_iter().map(line));
        }
        Comparison {
            answer,
            sentence,
            lines,
            only_old: rows.only_old.clone(),
            only_new: rows.only_new.clone(),
            pairs,
            margin,
            seconds,
            needs_seconds: needs.filter(|_| answer == Verdict::Unknown && !rows.rows.is_empty()),
            ..Comparison::default()
        }
    }
}

/// What the pairs show of a figure, old and new; other work on a machine only makes times longer.
#[must_use]
pub fn by_pairs([old, new]: [&[f64]; 2], figure: &Figure) -> Shown {
    Shown::of(new, old, figure.kind(None) == Kind::Seconds)
}

/// All figures of the pairs, the judged one first.
fn lines(sides: [&Runs<Sample>; 2], judged: &Figure, margin: f64) -> Vec<Line> {
    let others = [Figure::Wall, Figure::Cpu, Figure::Peak, Figure::Level, Figure::Faults];
    let figures =
        std::iter::once(judged.clone()).chain(others.into_iter().filter(|other| other != judged));
    let known = |values: &[f64]| -> Vec<f64> {
        values.iter().copied().filter(|value| value.is_finite()).collect()
    };
    let of_figure = |figure: Figure| {
        let [old, new] = sides.map(|runs| runs.of(|sample| figure.of(sample)));
        let judged = figure == *judged;
        let line = |name: String, ratio: Ratio, part: f64| Line {
            name,
            old: quantile(&known(&old), part),
            new: quantile(&known(&new), part),
            ratio,
            verdict: Verdict::at_any_look(&ratio, margin),
            judged,
            kind: figure.kind(None),
        };
        let name = figure.name();
        if !judged {
            // Five figures are printed: their intervals hold together.
            let ratios = of_rounds(&new, &old);
            return vec![line(name.to_owned(), Pooled::of(&[&ratios]).ratio(&ratios, 5), 0.5)];
        }
        let Shown { all, fastest } = by_pairs([&old, &new], &figure);
        let of_all = line(name.to_owned(), all, 0.5);
        let of_fastest = |ratio| line(format!("{name}, fastest fifth"), ratio, FASTEST / 2.0);
        std::iter::once(of_all).chain(fastest.map(of_fastest)).collect()
    };
    figures
        .flat_map(of_figure)
        .filter(|line| line.old.is_finite() && line.new.is_finite())
        .collect()
}

/// Several figures of a run as rows, by their names.
#[must_use]
pub fn as_rows(sample: &Sample, figures: &[Figure]) -> Figures {
    let row = |figure: &Figure| {
        (figure.name().to_owned(), Own { cost: figure.of(sample), kind: figure.kind(Some(sample)) })
    };
    figures.iter().map(row).collect()
}

/// The pairs as a strip: how many fall where between the two farthest, and where no change is.
#[must_use]
pub fn strip(ratios: &[f64], width: usize) -> Option<String> {
    let logs: Vec<f64> =
        ratios.iter().map(|ratio| ratio.ln()).filter(|log| log.is_finite()).collect();
    if logs.len() < 2 || width < 20 {
        return None;
    }
    let (low, high) =
        logs.iter().fold((0.0_f64, 0.0_f64), |(low, high), log| (low.min(*log), high.max(*log)));
    let span = (high - low).max(1e-3);
    let column = |log: f64| (((log - low) / span) * (width as f64 - 1.0)).round() as usize;
    let mut counts = vec![0_usize; width];
    logs.iter().for_each(|log| counts[column(*log).min(width - 1)] += 1);
    let bars: String = counts
        .iter()
        .map(|count| [' ', '.', ':', '|'].get(*count).copied().unwrap_or('#'))
        .collect();
    let mut rule: Vec<char> = vec!['-'; width];
    rule[column(0.0).min(width - 1)] = '0';
    let ends = format!("{} %", change(low.exp()));
    let last = format!("{} %", change(high.exp()));
    let gap = width.saturating_sub(ends.len() + last.len());
    Some(format!(
        "{}\n{}\n{ends}{}{last}\n",
        bars.trim_end(),
        rule.iter().collect::<String>(),
        " ".repeat(gap)
    ))
}
