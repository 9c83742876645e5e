//! Parts of Markdown that come from records, between markers, so that they can be made again and
//! checked. The grammar is described in `docs/reports.md`.
//!
//! ```text
//! <!-- cachewise RECORD WHAT -->
//! whatever was made from the record
//! <!-- /cachewise -->
//! ```

use crate::plot::{self, Plot};
use crate::{Said, Table, crossover, html, svg, text};
use cachewise_measure::Record;

const OPEN: &str = "<!-- cachewise ";
const OPEN_END: &str = "-->";
const CLOSE: &str = "<!-- /cachewise -->";

/// Content that a marker asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The headline.
    Verdict,
    /// All verdicts, as a list.
    Verdicts,
    /// The machine in a line.
    Machine,
    /// The command line.
    Command,
    /// The ranges that were decided, of a tuning.
    Decisions,
    /// Fastest candidates by size.
    Crossovers,
    /// The table whose caption starts so, or the one of that number, from 1.
    Table(String),
    /// A figure in text.
    Plot(usize, String),
    /// A figure's numbers.
    Numbers(usize, String),
    /// A panel of a figure as an SVG file beside the Markdown.
    Figure(usize, String, String),
    /// Answers of a folder of records about the source documents: all claims, those of a document, or
    /// those of the `short` answer.
    Claims(String),
    /// The same documents' items, with what answers them.
    Items(String),
    /// The number of claims for each answer.
    Counts,
    /// Results for each program of a file of several programs' records.
    Programs,
    /// The table of 2007 beside today's.
    Period,
}

/// An opening marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its line, from 1.
    pub line: usize,
    /// The record's file name as it stands there.
    pub record: String,
    /// Content wanted of the record.
    pub what: What,
}

/// New contents of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The Markdown.
    pub markdown: String,
    /// A file that the Markdown names, and its contents.
    pub file: Option<(String, String)>,
}

/// Error in a Markdown file's markers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct SpliceError {
    /// The line, from 1.
    pub line: usize,
    /// The text found, and the forms accepted.
    pub what: String,
}

const ACCEPTED: &str = "verdict, verdicts, machine, command, decisions, crossovers, \
     table CAPTION, plot N [PANEL], numbers N [PANEL], figure N FILE.svg [PANEL]; of a folder of \
     records: claims [DOCUMENT|short], items [DOCUMENT], counts, period; of a file of programs' records: programs";

/// The first word and the rest.
fn parted(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Parses the inside of an opening marker: a record and the content wanted.
fn wanted(inside: &str) -> Result<(String, What), String> {
    let (record, wanted) = parted(inside.trim());
    let (word, argument) = parted(wanted);
    let (number, rest) = parted(argument);
    let number = || match number.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(format!("{word}: found \"{number}\", accepted a figure's number from 1")),
    };
    let what = match (word, argument) {
        ("", _) => Err(format!("found \"{record}\", accepted RECORD and one of {ACCEPTED}")),
        ("verdict", "") => Ok(What::Verdict),
        ("verdicts", "") => Ok(What::Verdicts),
        ("machine", "") => Ok(What::Machine),
        ("command", "") => Ok(What::Command),
        ("decisions", "") => Ok(What::Decisions),
        ("crossovers", "") => Ok(What::Crossovers),
        ("table", "") => Err("table: found nothing, accepted a caption or a number".to_owned()),
        ("table", _) => Ok(What::Table(argument.to_owned())),
        ("plot", _) => Ok(What::Plot(number()?, rest.to_owned())),
        ("numbers", _) => Ok(What::Numbers(number()?, rest.to_owned())),
        ("figure", _) => match (number()?, parted(rest)) {
            (number, (file, panel))
                if file.ends_with(".svg") && !file.starts_with('/') && !file.contains("..") =>
            {
                Ok(What::Figure(number, file.to_owned(), panel.to_owned()))
            }
            (_, (file, _)) => Err(format!(
                "figure: found \"{file}\", accepted the name of an .svg file beside or below this one"
            )),
        },
        ("claims", _) => Ok(What::Claims(argument.to_owned())),
        ("items", _) => Ok(What::Items(argument.to_owned())),
        ("counts", "") => Ok(What::Counts),
        ("period", "") => Ok(What::Period),
        ("programs", "") => Ok(What::Programs),
        (
            "verdict" | "verdicts" | "machine" | "command" | "decisions" | "crossovers" | "counts"
            | "period" | "programs",
            _,
        ) => Err(format!("{word}: found \"{argument}\", accepted nothing after it")),
        _ => Err(format!("found \"{word}\", accepted {ACCEPTED}")),
    };
    Ok((record.to_owned(), what?))
}

/// The text with everything between markers made again by `make`, which says why it cannot. Markers
/// inside fenced code are text.
///
/// # Errors
/// [`SpliceError`] for the first marker that is not understood, not closed, or not made.
pub fn splice(
    source: &str,
    make: &mut dyn FnMut(&Marker) -> Result<String, String>,
) -> Result<String, SpliceError> {
    let mut out = String::with_capacity(source.len());
    let mut open: Option<Marker> = None;
    let mut fence: Option<String> = None;
    for (index, line) in source.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let error = |what: String| SpliceError { line: number, what };
        let trimmed = line.trim();
        if open.is_none() {
            let ticks: String = trimmed.chars().take_while(|c| matches!(c, '`' | '~')).collect();
            match &fence {
                Some(mark)
                    if trimmed.starts_with(mark.as_str()) && ticks.len() == trimmed.len() =>
                {
                    fence = None;
                }
                None if ticks.len() >= 3 => fence = Some(ticks),
                _ => {}
            }
        }
        if fence.is_some() {
            // Text, whatever it looks like.
        } else if trimmed == CLOSE {
            let marker = open
                .take()
                .ok_or_else(|| error(format!("found {CLOSE}, accepted after an opening marker")))?;
            let made = make(&marker).map_err(|what| SpliceError { line: marker.line, what })?;
            out.push_str(made.trim_end());
            out.push('\n');
        } else if let Some(inside) = trimmed.strip_prefix(OPEN) {
            if let Some(Marker { line, .. }) = open {
                let what = format!("found another marker, accepted {CLOSE} for line {line} first");
                return Err(error(what));
            }
            let inside = inside.strip_suffix(OPEN_END).ok_or_else(|| {
                error(format!("found a marker that goes on, accepted {OPEN_END} in its line"))
            })?;
            let (record, what) = wanted(inside).map_err(error)?;
            open = Some(Marker { line: number, record, what });
        } else if open.is_some() {
            continue;
        }
        out.push_str(line);
    }
    match open {
        Some(marker) => Err(SpliceError {
            line: marker.line,
            what: format!("found no end of this marker, accepted {CLOSE}"),
        }),
        None => Ok(out),
    }
}

/// Makes what a marker wants from its record and what that amounts to.
///
/// # Errors
/// A sentence that says what the record lacks and what it has.
pub fn make(what: &What, record: &Record, said: &Said) -> Result<Made, String> {
    let verdicts = &said.verdicts;
    let headline = || verdicts.first().ok_or("the record has no verdict");
    let markdown = match what {
        What::Verdict => inline(headline()?),
        What::Verdicts => {
            headline()?;
            verdicts.iter().map(|verdict| format!("- {}\n", inline(verdict))).collect()
        }
        What::Machine => inline(&record.header.machine.summary_line()),
        What::Command => {
            let command = html::shell_words(&record.header.command);
            let fence = fence_for(&command);
            format!("{fence}sh\n{command}\n{fence}")
        }
        What::Decisions => said
            .decisions
            .as_ref()
            .ok_or("the record holds no decisions: it is no tuning")?
            .markdown(),
        What::Crossovers => {
            crossover::table(record).ok_or("no state was measured at three sizes")?.markdown()
        }
        What::Table(wanted) => table(&said.tables, wanted)?.markdown(),
        What::Plot(number, panel) => {
            let drawn = text::plot(&figure(record, *number, panel)?, 78);
            let fence = fence_for(&drawn);
            format!("{fence}text\n{drawn}{fence}")
        }
        What::Numbers(number, panel) => {
            let plot = figure(record, *number, panel)?;
            let tables = plot.panels.iter().map(|panel| html::numbers(&plot, panel).markdown());
            tables.collect::<Vec<_>>().join("\n")
        }
        What::Figure(number, file, panel) => {
            let plot = figure(record, *number, panel)?;
            let first = plot.panels.first().ok_or("the figure has no panel")?;
            let alt = inline(&format!("{}: {}", plot.title, first.title));
            let markdown = format!("![{}]({file})", alt.replace('[', "(").replace(']', ")"));
            let file = Some((file.clone(), svg::document(&plot, first)));
            return Ok(Made { markdown, file });
        }
        What::Claims(_) | What::Items(_) | What::Counts | What::Period => {
            return Err("found one record, accepted a folder of them".to_owned());
        }
        What::Programs => return Err("found one record, accepted a file of several".to_owned()),
    };
    Ok(Made { markdown, file: None })
}

/// Text of a record as one line of Markdown: no markup of its own, and no marker's end.
fn inline(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('<', "&lt;").replace("-->", "--&gt;")
}

/// A fence longer than any in the text.
fn fence_for(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// The figure of that number with the panels whose title starts so.
fn figure(record: &Record, number: usize, wanted: &str) -> Result<Plot, String> {
    let drawn = plot::plots(record);
    let count = drawn.len();
    let found = drawn.into_iter().nth(number - 1);
    let mut plot = found.ok_or_else(|| format!("found figure {number}, accepted 1 to {count}"))?;
    let titles: Vec<String> = plot.panels.iter().map(|panel| panel.title.clone()).collect();
    plot.panels.retain(|panel| panel.title.starts_with(wanted));
    if plot.panels.is_empty() {
        return Err(format!("found panel \"{wanted}\", accepted one of: {}", titles.join("; ")));
    }
    Ok(plot)
}

fn table(tables: &[Table], wanted: &str) -> Result<Table, String> {
    let found = match wanted.parse::<usize>() {
        Ok(number) => number.checked_sub(1).and_then(|index| tables.get(index)),
        Err(_) => tables.iter().find(|table| table.caption.starts_with(wanted)),
    };
    found.cloned().ok_or_else(|| {
        let some: Vec<&str> = tables.iter().take(6).map(|table| table.caption.as_str()).collect();
        format!(
            "found table \"{wanted}\", accepted 1 to {} or the start of a caption: {}",
            tables.len(),
            some.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{everything, said};

    fn spliced(text: &str) -> Result<String, String> {
        splice(text, &mut |marker| Ok(format!("{}: {:?}\n\n", marker.record, marker.what)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_what_is_between_markers_changes() {
        let text = "# T\n<!-- cachewise a.jsonl verdict -->\nold\nmore\n<!-- /cachewise -->\nend";
        let once = spliced(text).expect("spliced");
        assert_eq!(
            once,
            "# T\n<!-- cachewise a.jsonl verdict -->\na.jsonl: Verdict\n<!-- /cachewise -->\nend"
        );
        assert_eq!(spliced(&once).as_ref(), Ok(&once), "twice is once");
        let fenced = "```text\n<!-- cachewise a.jsonl nonsense -->\n```\n";
        assert_eq!(spliced(fenced).as_deref(), Ok(fenced));
        let crlf = "a\r\n<!-- cachewise r plot 2 copy, warm -->\r\n<!-- /cachewise -->\r\n";
        assert!(spliced(crlf).expect("spliced").contains("Plot(2, \"copy, warm\")"));
    }

    #[test]
    fn what_is_wrong_with_a_marker_is_named() {
        for (text, said) in [
            ("\n<!-- cachewise r verdict -->\n", "2: found no end"),
            ("<!-- /cachewise -->", "1: found <!-- /cachewise"),
            ("<!-- cachewise r verdict\n", "goes on"),
            ("<!-- cachewise r -->\n", "accepted RECORD and one of"),
            ("<!-- cachewise r picture -->\n", "found \"picture\""),
            ("<!-- cachewise r plot 0 -->\n", "from 1"),
            ("<!-- cachewise r verdict 3 -->\n", "nothing after it"),
            ("<!-- cachewise r figure 1 ../../x.svg -->\n", "beside or below"),
            ("<!-- cachewise r table -->\n", "a caption or a number"),
            (
                "<!-- cachewise r verdict -->\n<!-- cachewise r verdict -->\n",
                "2: found another marker",
            ),
        ] {
            let error = spliced(text).expect_err("refused");
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn everything_can_be_made() {
        let record = everything();
        let made = |what: What| make(&what, &record, &said(&record));
        let markdown = |what: What| made(what).expect("made").markdown;
        assert_eq!(markdown(What::Verdict), "It &lt;pays> from 4 KiB on.");
        assert!(markdown(What::Verdicts).lines().count() == 2);
        assert!(markdown(What::Command).contains("'it'\\''s; <b>'"));
        assert!(markdown(What::Crossovers).contains("| fastest |"));
        assert!(markdown(What::Table("1".into())).contains("copy.avx"));
        assert!(markdown(What::Plot(1, String::new())).starts_with("```text\n"));
        assert!(markdown(What::Numbers(3, String::new())).contains("| touched |"));
        let figure = made(What::Figure(1, "a.svg".into(), "copy".into())).expect("made");
        assert_eq!(figure.markdown, "![gbps by size: copy](a.svg)");
        assert!(figure.file.expect("a file").1.starts_with("<svg xmlns="));
        for (what, said) in [
            (What::Decisions, "no tuning"),
            (What::Table("99".into()), "accepted 1 to"),
            (What::Plot(9, String::new()), "accepted 1 to 4"),
            (What::Plot(1, "zero".into()), "accepted one of: copy"),
        ] {
            let error = made(what).expect_err("refused");
            assert!(error.contains(said), "{error}");
        }
    }
}
