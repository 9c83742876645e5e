//! What was learned about one program's call sites: a table, and a page of its own.

use crate::html::{page_style, render};
use crate::table::{Column, Table};
use crate::units::{bytes, significant, time};
use cachewise_learn::Way;
use cachewise_learn::evidence::Moments;
use cachewise_learn::section::Site;
use cachewise_learn::trial::{Outcome, Why};
use minijinja::context;
use serde::Serialize;

/// One call site, with names for people.
#[derive(Clone, Debug)]
pub struct SiteLine {
    /// The module's file name.
    pub module: String,
    /// The function and the distance into it, or the offset in the module.
    pub function: String,
    /// The module's file; empty where the program named the site itself.
    pub path: String,
    /// What is known.
    pub site: Site,
}

/// One program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// When its section was written.
    pub written: String,
    /// Its call sites.
    pub sites: Vec<SiteLine>,
    /// What else is to be said, such as the proof of the whole program.
    pub remarks: Vec<String>,
}

/// Half the width of a 95 % interval in standard errors, for so many values: Student's t, by the
/// expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5), exact to a percent from 5 on.
fn half_width(count: u32) -> f64 {
    let (z, n) = (1.96_f64, f64::from(count.max(2)) - 1.0);
    z + (z.powi(3) + z) / (4.0 * n)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
}

fn with_interval(of: &Moments) -> String {
    match of.count {
        0 => "-".to_owned(),
        1..6 => time(of.mean()),
        count => format!("{} +-{}", time(of.mean()), time(half_width(count) * of.error())),
    }
}

impl SiteLine {
    /// The time from call to call by what the profile does, over that by the better way, less one,
    /// with its 95 % interval: what the decision gains. `None` where nothing was decided.
    pub fn gain(&self) -> Option<[f64; 3]> {
        let Outcome::Decided(way) = self.site.left.outcome else { return None };
        if way == self.site.usual {
            return Some([0.0; 3]);
        }
        let evidence = &self.site.left.evidence;
        let cost = evidence.costs[way as usize].mean();
        let sign = if way == Way::NonTemporal { 1.0 } else { -1.0 };
        let (mean, error) = (sign * evidence.difference.mean(), evidence.difference.error());
        let half = half_width(evidence.difference.count) * error;
        (cost > 0.0).then(|| [mean, mean - half, mean + half].map(|gained| gained / cost))
    }

    /// What is done, in words.
    pub fn decision(&self) -> String {
        let Site { usual, left, .. } = &self.site;
        let pairs = left.evidence.pairs();
        match left.outcome {
            Outcome::Decided(way) if way == *usual => format!("{}, as the profile", way.name()),
            Outcome::Decided(way) => format!("{}, not {}", way.name(), usual.name()),
            // Nobody has tried and found nothing: it was not called often enough to be tried.
            Outcome::CannotTell(Why::TooFew) if pairs == 0 => "too few calls".to_owned(),
            Outcome::CannotTell(Why::TooFew) => {
                format!("cannot tell yet: {pairs} pairs of blocks are too few")
            }
            Outcome::CannotTell(Why::NoDifference) => "cannot tell: no difference".to_owned(),
            Outcome::CannotTell(Why::Unconfirmed) => "cannot tell: long blocks disagree".to_owned(),
            Outcome::CannotTell(Why::Reopened) => "cannot tell: reopened, it changed".to_owned(),
        }
    }
}

fn percent(ratio: f64) -> String {
    format!("{}{}", if ratio >= 0.0 { "+" } else { "" }, significant(100.0 * ratio))
}

/// What is said of each site.
const COLUMNS: [Column<SiteLine>; 11] = [
    ("module", |line| line.module.clone()),
    ("function", |line| line.function.clone()),
    ("operation", |line| line.site.operation.name().to_owned()),
    (">size", |line| format!("{}..{}", bytes(1 << line.site.octave), bytes(2 << line.site.octave))),
    (">calls", |line| line.site.left.calls.to_string()),
    (">bytes", |line| bytes(line.site.bytes)),
    (">tried", |line| line.site.left.explored.to_string()),
    (">from call to call, temporal", |line| with_interval(&line.site.left.evidence.costs[0])),
    (">non-temporal", |line| with_interval(&line.site.left.evidence.costs[1])),
    ("decision", SiteLine::decision),
    (">gain %", |line| match line.gain() {
        None => "-".to_owned(),
        Some([0.0, 0.0, 0.0]) => "0".to_owned(),
        Some([mid, low, high]) => {
            format!("{} ({} .. {})", percent(mid), percent(low), percent(high))
        }
    }),
];

/// The sites, those that moved the most bytes first.
pub fn sites(program: &Program) -> Table {
    let mut lines: Vec<_> = program.sites.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.site.bytes));
    let caption = format!("{}: call sites of large copies and fills", program.name);
    let mut table = Table::listing(caption, &COLUMNS, lines);
    if program.sites.is_empty() {
        table.remark("no large call was seen: nothing to learn");
    } else {
        table.remark(
            "from call to call: the time to the same site's next call on its thread, with a 95 % \
             interval; copy, reader and bystander are in it",
        );
        table.remark(
            "tried: calls done otherwise than they would have been; gain: of that time, against \
             the profile without this section",
        );
        // The call is before the address it returns to.
        let found = program.sites.iter().filter(|line| !line.path.is_empty());
        if let Some(SiteLine { path, site, .. }) = found.max_by_key(|line| line.site.bytes) {
            table.remark(format!(
                "source line of the site with the most bytes: addr2line -e {path} {:#x}",
                site.offset.saturating_sub(1)
            ));
        }
    }
    table.remarks.extend(program.remarks.iter().cloned());
    table
}

/// A figure of the page: a lying bar for each site, those with the most first.
#[derive(Serialize)]
struct Bars {
    title: &'static str,
    /// What is said where there is no bar.
    none: &'static str,
    bars: Vec<Bar>,
    left_out: usize,
}

#[derive(Serialize)]
struct Bar {
    width: String,
    label: String,
}

fn bars(
    program: &Program,
    title: &'static str,
    none: &'static str,
    value: impl Fn(&SiteLine) -> Option<(f64, String)>,
) -> Bars {
    const MOST: usize = 24;
    let with_value = |line| value(line).map(|(size, text)| (line, size, text));
    let mut found: Vec<_> = program.sites.iter().filter_map(with_value).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let left_out = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    let most = found.iter().map(|(_, size, _)| size.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(line, size, text): (&SiteLine, f64, String)| {
        let SiteLine { module, function, site, .. } = line;
        let (operation, octave) = (site.operation.name(), bytes(1 << site.octave));
        Bar {
            width: format!("{:.1}", (size.max(0.0) / most * 620.0).max(1.0)),
            label: format!("{module} {function} {operation} {octave}: {text}"),
        }
    };
    Bars { title, none, bars: found.into_iter().map(bar).collect(), left_out }
}

/// One self-contained page: bytes by site, gain by site, the table. No script, nothing from
/// elsewhere.
///
/// # Errors
/// When the template and this function disagree, which tests would have shown.
pub fn page(program: &Program) -> Result<String, minijinja::Error> {
    let table = sites(program);
    let decided = |line: &&SiteLine| matches!(line.site.left.outcome, Outcome::Decided(_));
    let panels = [
        bars(program, "Bytes by site", "No site.", |line| {
            Some((line.site.bytes as f64, bytes(line.site.bytes)))
        }),
        bars(
            program,
            "Time gained by site, over all its calls",
            "Nothing was decided otherwise than the profile has it.",
            |line| {
                let ([gain, ..], Outcome::Decided(way)) = (line.gain()?, line.site.left.outcome)
                else {
                    return None;
                };
                let cost = line.site.left.evidence.costs[way as usize].mean();
                let gained = gain * cost * line.site.left.calls as f64;
                (way != line.site.usual)
                    .then(|| (gained, format!("{} ({} %)", time(gained), percent(gain))))
            },
        ),
    ];
    let values = context! {
        style => page_style(),
        program => context! {
            name => program.name,
            written => program.written,
            decided => program.sites.iter().filter(decided).count(),
            all => program.sites.len(),
        },
        panels,
        columns => table.heads(),
        rows => table.rows,
        remarks => table.remarks,
    };
    render("programs.html", include_str!("programs.html"), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_learn::evidence::{Evidence, Pair};
    use cachewise_learn::sites::Operation;
    use cachewise_learn::trial::Left;

    fn line(outcome: Outcome, function: &str, moved: u64) -> SiteLine {
        let mut evidence = Evidence::NONE;
        let pairs = if outcome == Outcome::CannotTell(Why::TooFew) { 0 } else { 20 };
        for pair in 0..pairs {
            let jitter = f64::from(pair * 7 % 5) * 1000.0;
            evidence.add(&Pair {
                temporal: 1_000_000.0 + jitter,
                non_temporal: 800_000.0 - jitter,
                other_work: 0.0,
                bytes: 2e6,
                length: 0,
            });
        }
        let (screening, confirming) = (Evidence::NONE, Evidence::NONE);
        let left = Left {
            outcome,
            calls: 1000,
            explored: 90,
            reopened: 0,
            evidence,
            screening,
            confirming,
        };
        let site = Site {
            module: 0,
            offset: 0x10,
            operation: Operation::Copy,
            octave: 21,
            bytes: moved,
            usual: Way::Temporal,
            left,
        };
        let [module, function, path] = ["libx.so", function, "/lib/libx.so"].map(str::to_owned);
        SiteLine { module, function, path, site }
    }

    fn program() -> Program {
        Program {
            name: "p<1>".into(),
            written: "2026-11-21".into(),
            sites: vec![
                line(Outcome::CannotTell(Why::TooFew), "seldom+0x3", 5 << 20),
                line(Outcome::Decided(Way::NonTemporal), "pipe<T>+0x1f", 7 << 30),
                line(Outcome::Decided(Way::Temporal), "0x4711", 1 << 30),
            ],
            remarks: Vec::new(),
        }
    }

    #[test]
    fn the_table_says_costs_decision_and_gain() {
        insta::assert_snapshot!(sites(&program()).terminal(None));
    }

    #[test]
    fn a_program_without_sites_is_told_so() {
        let none = Program { sites: Vec::new(), ..program() };
        assert!(sites(&none).terminal(None).contains("nothing to learn"));
        assert!(page(&none).expect("a page").contains("No site."));
    }

    #[test]
    fn the_page_is_whole_and_holds_no_markup_of_others() {
        let page = page(&program()).expect("a page");
        for absent in ["pipe<T>", "p<1>", "http://", "https://", "<script"] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert!(page.contains("pipe&lt;T&gt;") && page.contains("2 of 3 call sites decided"));
        assert!(page.contains("Bytes by site") && page.contains("Time gained by site"));
        assert_eq!(page.matches("<tr>").count(), 4);
    }

    #[test]
    fn the_intervals_half_width_is_students() {
        // R: qt(0.975, c(9, 19, 29)).
        for (count, wanted) in [(10, 2.2622), (20, 2.0930), (30, 2.0452)] {
            assert!((half_width(count) - wanted).abs() < 0.01, "{count}: {}", half_width(count));
        }
    }
}
