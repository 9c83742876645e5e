//! What was learned about one program's call sites: a table, and a page of its own.

use crate::Table;
use crate::html::page_style;
use crate::svg::escape;
use crate::units::{bytes, significant, time};
use cachewise_learn::Way;
use cachewise_learn::evidence::{Evidence, Moments};
use cachewise_learn::section::Site;
use cachewise_learn::trial::{Outcome, Why};
use std::fmt::Write as _;

/// One call site, with names for people.
#[derive(Clone, Debug)]
pub struct SiteLine {
    /// The module's file name.
    pub module: String,
    /// The function and the distance into it, or the offset in the module.
    pub function: String,
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
    fn evidence(&self) -> &Evidence {
        &self.site.left.evidence
    }

    /// The time from call to call by what the profile does, over that by the better way, less one,
    /// with its 95 % interval: what the decision gains. `None` where nothing was decided.
    #[must_use]
    pub fn gain(&self) -> Option<[f64; 3]> {
        let Outcome::Decided(way) = self.site.left.outcome else { return None };
        if way == self.site.usual {
            return Some([0.0; 3]);
        }
        let evidence = self.evidence();
        let cost = evidence.costs[way as usize].mean();
        let sign = if way == Way::NonTemporal { 1.0 } else { -1.0 };
        let (mean, error) = (sign * evidence.difference.mean(), evidence.difference.error());
        let half = half_width(evidence.difference.count) * error;
        (cost > 0.0).then(|| [mean, mean - half, mean + half].map(|gained| gained / cost))
    }

    /// What is done, in words.
    #[must_use]
    pub fn decision(&self) -> String {
        let usual = self.site.usual;
        match self.site.left.outcome {
            Outcome::Decided(way) if way == usual => format!("{}, as the profile", way.name()),
            Outcome::Decided(way) => format!("{}, not {}", way.name(), usual.name()),
            // Nobody has tried and found nothing: it was not called often enough to be tried.
            Outcome::CannotTell(Why::TooFew) if self.evidence().pairs() == 0 => {
                "too few calls".to_owned()
            }
            Outcome::CannotTell(Why::TooFew) => {
                format!("cannot tell yet: {} pairs of blocks are too few", self.evidence().pairs())
            }
            Outcome::CannotTell(why) => format!("cannot tell: {}", reason(why)),
        }
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::TooFew => "too few pairs of blocks",
        Why::NoDifference => "no difference",
        Why::Unconfirmed => "long blocks disagree",
        Why::Reopened => "reopened, it changed",
    }
}

fn percent(ratio: f64) -> String {
    format!("{}{}", if ratio >= 0.0 { "+" } else { "" }, significant(100.0 * ratio))
}

/// The sites, those that moved the most bytes first.
#[must_use]
pub fn sites(program: &Program) -> Table {
    let mut table = Table::new(
        format!("{}: call sites of large copies and fills", program.name),
        &[
            "module",
            "function",
            "operation",
            ">size",
            ">calls",
            ">bytes",
            ">tried",
            ">from call to call, temporal",
            ">non-temporal",
            "decision",
            ">gain %",
        ],
    );
    let mut lines: Vec<_> = program.sites.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.site.bytes));
    for line in lines {
        let Site { operation, octave, bytes: moved, left, .. } = line.site;
        let gain = line.gain().map_or("-".to_owned(), |[mid, low, high]| {
            if (mid, low, high) == (0.0, 0.0, 0.0) {
                return "0".to_owned();
            }
            format!("{} ({} .. {})", percent(mid), percent(low), percent(high))
        });
        table.push(vec![
            line.module.clone(),
            line.function.clone(),
            operation.name().to_owned(),
            format!("{}..{}", bytes(1 << octave), bytes(2 << octave)),
            left.calls.to_string(),
            bytes(moved),
            left.explored.to_string(),
            with_interval(&left.evidence.costs[0]),
            with_interval(&left.evidence.costs[1]),
            line.decision(),
            gain,
        ]);
    }
    if program.sites.is_empty() {
        table.remarks.push("no large call was seen: nothing to learn".to_owned());
    } else {
        table.remarks.push(
            "from call to call: the time to the same site's next call on its thread, with a 95 % \
             interval; copy, reader and bystander are in it"
                .to_owned(),
        );
        table.remarks.push(
            "tried: calls done otherwise than they would have been; gain: of that time, against \
             the profile without this section"
                .to_owned(),
        );
    }
    table.remarks.extend(program.remarks.iter().cloned());
    table
}

/// A lying bar for each site, those with the most first.
fn bars(
    program: &Program,
    title: &str,
    none: &str,
    value: impl Fn(&SiteLine) -> Option<(f64, String)>,
) -> String {
    const MOST: usize = 24;
    const ROW: usize = 26;
    let mut found: Vec<_> = program
        .sites
        .iter()
        .filter_map(|line| value(line).map(|(size, text)| (line, size, text)))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let left_out = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    let most = found.iter().map(|(_, size, _)| size.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let mut drawn = format!("<section class=\"panel\"><h2>{}</h2>\n", escape(title));
    if found.is_empty() {
        let _ = writeln!(drawn, "<p>{none}</p></section>");
        return drawn;
    }
    let height = ROW * found.len() + 4;
    let _ = write!(
        drawn,
        "<svg viewBox=\"0 0 640 {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (row, (line, size, text)) in found.iter().enumerate() {
        let y = row * ROW;
        let width = (size.max(0.0) / most * 620.0).max(1.0);
        let name = format!(
            "{} {} {} {}: {text}",
            line.module,
            line.function,
            line.site.operation.name(),
            bytes(1 << line.site.octave)
        );
        let _ = write!(
            drawn,
            "<rect class=\"bar\" x=\"2\" y=\"{}\" width=\"{width:.1}\" height=\"8\"/>\
             <text class=\"label\" x=\"2\" y=\"{}\">{}</text>",
            y + 16,
            y + 12,
            escape(&name)
        );
    }
    drawn.push_str("</svg>\n");
    if left_out > 0 {
        let _ = writeln!(drawn, "<p class=\"remark\">and {left_out} more, in the table</p>");
    }
    drawn.push_str("</section>\n");
    drawn
}

/// One self-contained page: bytes by site, gain by site, the table. No script, nothing from
/// elsewhere.
#[must_use]
pub fn page(program: &Program) -> String {
    let table = sites(program);
    let mut head = String::new();
    for (name, align) in &table.columns {
        let class = if *align == crate::Align::Right { " class=\"n\"" } else { "" };
        let _ = write!(head, "<th scope=\"col\"{class}>{}</th>", escape(name));
    }
    let mut rows = String::new();
    for row in &table.rows {
        rows.push_str("<tr>");
        for (cell, (name, align)) in row.iter().zip(&table.columns) {
            let class = if *align == crate::Align::Right { " class=\"n\"" } else { "" };
            // On narrow screens each cell stands below the other, behind its column's name.
            // A terminal may lack the sign; a browser does not.
            let cell = escape(cell).replace(" +-", " \u{b1} ");
            let _ = write!(rows, "<td{class} data-of=\"{}\">{cell}</td>", escape(name));
        }
        rows.push_str("</tr>\n");
    }
    let remarks: String = table
        .remarks
        .iter()
        .map(|remark| format!("<p class=\"remark\">{}</p>\n", escape(remark)))
        .collect();
    let decided = program
        .sites
        .iter()
        .filter(|line| matches!(line.site.left.outcome, Outcome::Decided(_)))
        .count();
    let all = program.sites.len();
    let by_bytes = bars(program, "Bytes by site", "No site.", |line| {
        Some((line.site.bytes as f64, bytes(line.site.bytes)))
    });
    let nothing = "Nothing was decided otherwise than the profile has it.";
    let by_gain = bars(program, "Time gained by site, over all its calls", nothing, |line| {
        let [gain, ..] = line.gain()?;
        let Outcome::Decided(way) = line.site.left.outcome else { return None };
        if way == line.site.usual {
            return None;
        }
        let cost = line.evidence().costs[way as usize].mean();
        let gained = gain * cost * line.site.left.calls as f64;
        Some((gained, format!("{} ({} %)", time(gained), percent(gain))))
    });
    let name = escape(&program.name);
    let style = page_style();
    let written = escape(&program.written);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{name}: call sites</title>\n<style>\n{style}\n\
         .bar {{ fill: currentColor; opacity: .45 }} .label {{ fill: currentColor; font-size: 11px }}\n\
         .panel + .panel {{ margin-top: 12px }} .panel svg {{ max-width: 720px }}\n\
         @media (min-width: 761px) {{ th {{ overflow-wrap: normal; word-break: normal }} \
         td.n {{ white-space: nowrap }} td:nth-child(1) {{ min-width: 7em }} \
         td:nth-child(2) {{ min-width: 12em }} td:nth-child(10) {{ min-width: 9em }} }}\n\
         </style>\n</head>\n<body>\n<main>\n<article>\n\
         <h1>{name}: {decided} of {all} call sites decided</h1>\n<p>{written}</p>\n\
         {by_bytes}{by_gain}<div class=\"table\" role=\"region\" aria-label=\"Call sites\">\n<table>\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n{remarks}</div>\n\
         </article>\n</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_learn::evidence::Pair;
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
        let left = Left {
            outcome,
            calls: 1000,
            explored: 90,
            reopened: 0,
            evidence,
            screening: Evidence::NONE,
            confirming: Evidence::NONE,
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
        SiteLine { module: "libx.so".into(), function: function.into(), site }
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
        assert!(page(&none).contains("No site."));
    }

    #[test]
    fn the_page_is_whole_and_holds_no_markup_of_others() {
        let page = page(&program());
        assert!(
            page.contains("pipe&lt;T&gt;") && !page.contains("pipe<T>") && !page.contains("p<1>")
        );
        assert!(
            !page.contains("http://") && !page.contains("https://") && !page.contains("<script")
        );
        assert!(page.contains("2 of 3 call sites decided"));
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
