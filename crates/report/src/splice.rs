//! Parts of Markdown that come from records, between markers, so that they can be made again and
//! checked. The grammar is described in `docs/reports.md`.
//!
//! ```text
//! <!-- cachewise RECORD WHAT -->
//! whatever was made from the record
//! <!-- /cachewise -->
//! ```

use crate::plot::{self, Plot};
use crate::{Table, crossover, html, svg, text};
use cachewise_measure::Record;

const OPEN: &str = "<!-- cachewise ";
const OPEN_END: &str = "-->";
const CLOSE: &str = "<!-- /cachewise -->";

/// What a marker asks for.
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
    /// Who is fastest by size.
    Crossovers,
    /// The table whose caption starts so, or the one of that number, from 1.
    Table(String),
    /// A figure in text.
    Plot(usize, String),
    /// A figure's numbers.
    Numbers(usize, String),
    /// A panel of a figure as an SVG file beside the Markdown.
    Figure(usize, String, String),
}

/// An opening marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its line, from 1.
    pub line: usize,
    /// The record's file name as it stands there.
    pub record: String,
    /// What is wanted of it.
    pub what: What,
}

/// What a marker's contents become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The Markdown.
    pub markdown: String,
    /// A file that the Markdown names, and its contents.
    pub file: Option<(String, String)>,
}

/// What is wrong with a Markdown file's markers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct SpliceError {
    /// The line, from 1.
    pub line: usize,
    /// What was found and what is accepted.
    pub what: String,
}

const ACCEPTED: &str = "verdict, verdicts, machine, command, decisions, crossovers, \
     table CAPTION, plot N [PANEL], numbers N [PANEL], figure N FILE.svg [PANEL]";

/// The marker in an opening line's inside.
fn marker(line: usize, inside: &str) -> Result<Marker, SpliceError> {
    let error = |what: String| SpliceError { line, what };
    let (record, rest) = inside.trim().split_once(char::is_whitespace).ok_or_else(|| {
        error(format!("found \"{}\", accepted RECORD and one of {ACCEPTED}", inside.trim()))
    })?;
    let rest = rest.trim();
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let numbered = || -> Result<(usize, String), SpliceError> {
        let (number, panel) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        match number.parse() {
            Ok(number @ 1..) => Ok((number, panel.trim().to_owned())),
            _ => {
                Err(error(format!("{word}: found \"{number}\", accepted a figure's number from 1")))
            }
        }
    };
    let plain = |what: What| {
        if argument.is_empty() {
            Ok(what)
        } else {
            Err(error(format!("{word}: found \"{argument}\", accepted nothing after it")))
        }
    };
    let what = match word {
        "verdict" => plain(What::Verdict)?,
        "verdicts" => plain(What::Verdicts)?,
        "machine" => plain(What::Machine)?,
        "command" => plain(What::Command)?,
        "decisions" => plain(What::Decisions)?,
        "crossovers" => plain(What::Crossovers)?,
        "table" if !argument.is_empty() => What::Table(argument.to_owned()),
        "table" => {
            return Err(error("table: found nothing, accepted a caption or a number".into()));
        }
        "plot" => numbered().map(|(number, panel)| What::Plot(number, panel))?,
        "numbers" => numbered().map(|(number, panel)| What::Numbers(number, panel))?,
        "figure" => {
            let (number, rest) = numbered()?;
            let (file, panel) = rest.split_once(char::is_whitespace).unwrap_or((&rest, ""));
            if !file.ends_with(".svg") || file.starts_with('/') || file.contains("..") {
                return Err(error(format!(
                    "figure: found \"{file}\", accepted the name of an .svg file beside or below this one"
                )));
            }
            What::Figure(number, file.to_owned(), panel.trim().to_owned())
        }
        other => return Err(error(format!("found \"{other}\", accepted {ACCEPTED}"))),
    };
    Ok(Marker { line, record: record.to_owned(), what })
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
        let wrong = |what: String| Err(SpliceError { line: number, what });
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
            let Some(marker) = open.take() else {
                return wrong(format!("found {CLOSE}, accepted after an opening marker"));
            };
            let made = make(&marker).map_err(|what| SpliceError { line: marker.line, what })?;
            out.push_str(made.trim_end());
            out.push('\n');
        } else if let Some(inside) = trimmed.strip_prefix(OPEN) {
            if let Some(Marker { line, .. }) = open {
                let what = format!("found another marker, accepted {CLOSE} for line {line} first");
                return wrong(what);
            }
            let Some(inside) = inside.strip_suffix(OPEN_END) else {
                let what = format!("found a marker that goes on, accepted {OPEN_END} in its line");
                return wrong(what);
            };
            open = Some(marker(number, inside)?);
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

/// Makes what a marker wants from its record. `decisions` are a tuning's; `verdicts` stand in where
/// the record has none.
///
/// # Errors
/// A sentence that says what the record lacks and what it has.
pub fn make(
    what: &What,
    record: &Record,
    verdicts: &[String],
    decisions: Option<&Table>,
) -> Result<Made, String> {
    let plain = |markdown: String| Ok(Made { markdown, file: None });
    let own = crate::verdicts(record);
    let verdicts: &[String] = if own.is_empty() { verdicts } else { &own };
    match what {
        What::Verdict => plain(inline(verdicts.first().ok_or("the record has no verdict")?)),
        What::Verdicts if verdicts.is_empty() => Err("the record has no verdict".to_owned()),
        What::Verdicts => {
            plain(verdicts.iter().map(|verdict| format!("- {}\n", inline(verdict))).collect())
        }
        What::Machine => plain(inline(&record.header.machine.summary_line())),
        What::Command => {
            let command = html::shell_words(&record.header.command);
            let fence = fence_for(&command);
            plain(format!("{fence}sh\n{command}\n{fence}"))
        }
        What::Decisions => {
            plain(decisions.ok_or("the record holds no decisions: it is no tuning")?.markdown())
        }
        What::Crossovers => plain(
            crossover::table(record).ok_or("no state was measured at three sizes")?.markdown(),
        ),
        What::Table(wanted) => plain(table(record, wanted)?.markdown()),
        What::Plot(number, panel) => {
            let plot = only(figure(record, *number)?, panel)?;
            let drawn = text::plot(&plot, text::Style { width: 78, colour: false });
            let fence = fence_for(&drawn);
            plain(format!("{fence}text\n{drawn}{fence}"))
        }
        What::Numbers(number, panel) => {
            let plot = only(figure(record, *number)?, panel)?;
            let tables: Vec<String> =
                plot.panels.iter().map(|panel| html::numbers(&plot, panel).markdown()).collect();
            plain(tables.join("\n"))
        }
        What::Figure(number, file, panel) => {
            let plot = only(figure(record, *number)?, panel)?;
            let first = plot.panels.first().ok_or("the figure has no panel")?;
            let alt = format!("{}: {}", plot.title, first.title);
            let alt = inline(&alt).replace('[', "(").replace(']', ")");
            Ok(Made {
                markdown: format!("![{alt}]({file})"),
                file: Some((file.clone(), svg::document(&plot, first))),
            })
        }
    }
}

/// Text of a record as one line of Markdown: no markup of its own, and no marker's end.
fn inline(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('<', "&lt;").replace("-->", "--&gt;")
}

/// A fence longer than any in the text.
fn fence_for(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest + 1)
}

fn figure(record: &Record, number: usize) -> Result<Plot, String> {
    let drawn = plot::plots(record);
    let count = drawn.len();
    let found = drawn.into_iter().nth(number - 1);
    found.ok_or_else(|| format!("found figure {number}, accepted 1 to {count}"))
}

/// The figure with the panels whose title starts so.
fn only(mut plot: Plot, wanted: &str) -> Result<Plot, String> {
    let titles: Vec<String> = plot.panels.iter().map(|panel| panel.title.clone()).collect();
    plot.panels.retain(|panel| panel.title.starts_with(wanted));
    if plot.panels.is_empty() {
        return Err(format!("found panel \"{wanted}\", accepted one of: {}", titles.join("; ")));
    }
    Ok(plot)
}

fn table(record: &Record, wanted: &str) -> Result<Table, String> {
    let tables = crate::experiment_tables(crate::experiment_of(record), &record.rows);
    let captions: Vec<String> = tables.iter().map(|table| table.caption.clone()).collect();
    let found = match wanted.parse::<usize>() {
        Ok(number) => number.checked_sub(1).and_then(|index| tables.into_iter().nth(index)),
        Err(_) => tables.into_iter().find(|table| table.caption.starts_with(wanted)),
    };
    found.ok_or_else(|| {
        let some: Vec<&str> = captions.iter().take(6).map(String::as_str).collect();
        format!(
            "found table \"{wanted}\", accepted 1 to {} or the start of a caption: {}",
            captions.len(),
            some.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::everything;

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
        let refused = |text: &str| spliced(text).expect_err("refused");
        assert!(refused("\n<!-- cachewise r verdict -->\n").starts_with("2: found no end"));
        assert!(refused("<!-- /cachewise -->").starts_with("1: found <!-- /cachewise"));
        assert!(refused("<!-- cachewise r verdict\n").contains("goes on"));
        assert!(refused("<!-- cachewise r -->\n").contains("accepted RECORD and one of"));
        assert!(refused("<!-- cachewise r picture -->\n").contains("found \"picture\""));
        assert!(refused("<!-- cachewise r plot 0 -->\n").contains("from 1"));
        assert!(refused("<!-- cachewise r verdict 3 -->\n").contains("nothing after it"));
        assert!(refused("<!-- cachewise r figure 1 ../../x.svg -->\n").contains("beside or below"));
        assert!(refused("<!-- cachewise r table -->\n").contains("a caption or a number"));
        let two = "<!-- cachewise r verdict -->\n<!-- cachewise r verdict -->\n";
        assert!(refused(two).starts_with("2: found another marker"));
    }

    #[test]
    fn everything_can_be_made() {
        let record = everything();
        let made = |what: What| make(&what, &record, &[], None);
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
