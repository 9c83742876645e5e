//! Parts of documents that are made from records, between two markers that GitHub does not show:
//!
//! ```text
//! <!-- cachewise RECORD WHAT -->
//! whatever stands here is made again
//! <!-- /cachewise -->
//! ```
//!
//! RECORD is a path relative to the document: a record, `FILE#EXPERIMENT` of a file of several, or a folder. WHAT is
//! one of
//! - `machine`: the machine in a line;
//! - `figure N FILE.svg [PANEL]`: the first panel of figure N whose title starts so, as a picture beside the document;
//! - `programs`: of a file of `advise` records, a row each;
//! - `claims short`, `claims counts`, `claims phrases`, `claims DOCUMENT`: a folder's answers about the source documents.

use crate::command::root;
use anyhow::{Context as _, Result, bail, ensure};
use cachewise_experiments::claims::Answers;

use cachewise_measure::record::names::{
    ADVISED_CPU, ADVISED_FRESH, ADVISED_RACE, LOSS_RATIO, PEAK_RATIO, PLAIN, RECOMMENDED,
};
use cachewise_measure::record::{self, Record};
use cachewise_report::{plot, svg};
use fs_err as fs;
use std::path::{Path, PathBuf};

/// Documents with parts that are made from records.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "docs/advise.md",
    "docs/findings.md",
    "docs/findings/000.md",
    "docs/findings/001.md",
    "docs/findings/002.md",
    "docs/findings/003.md",
    "docs/findings/004.md",
];

/// All answers, a row each, of the records in `record/`.
const ROWS: &str = "docs/findings/rows.csv";

const OPEN: &str = "<!-- cachewise ";
const CLOSE: &str = "<!-- /cachewise -->";

/// Makes the parts of all documents again; with `check` nothing is written, and a part that is out of date is an error.
pub fn run(check: bool) -> Result<()> {
    let rows = Answers::of(&root().join("record")).map_err(anyhow::Error::msg)?.table().csv();
    let mut made = vec![(root().join(ROWS), rows)];
    for name in DOCUMENTS {
        let path = root().join(name);
        made.extend(document(&path).with_context(|| name.to_owned())?);
    }
    let is_stale =
        |(path, text): &(PathBuf, String)| fs::read_to_string(path).ok().as_ref() != Some(text);
    let stale: Vec<_> = made.into_iter().filter(is_stale).collect();
    for (path, text) in &stale {
        println!("{}", path.display());
        if !check {
            fs::write(path, text)?;
        }
    }
    ensure!(
        !check || stale.is_empty(),
        "out of date; `cargo run -p xtask -- splice` makes them again"
    );
    Ok(())
}

/// A document with its parts made again, and the pictures that it names.
fn document(path: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let text = spliced(&fs::read_to_string(path)?, |record, what| {
        let made = make(&path.with_file_name(record), what)?;
        let (markdown, picture) = made;
        files.extend(picture.map(|(name, text)| (path.with_file_name(name), text)));
        Ok(markdown)
    })?;
    files.insert(0, (path.to_owned(), text));
    Ok(files)
}

/// The text with everything between markers made again.
fn spliced(source: &str, mut make: impl FnMut(&str, &str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = source.split_inclusive('\n').enumerate();
    while let Some((at, line)) = lines.next() {
        out.push_str(line);
        let Some(inside) = line.trim().strip_prefix(OPEN) else { continue };
        let place = || format!("line {}", at + 1);
        let wanted = inside.strip_suffix("-->").and_then(|inside| inside.trim().split_once(' '));
        let (record, what) = wanted.with_context(|| place() + ": expected RECORD WHAT -->")?;
        out.push_str(make(record, what.trim()).with_context(place)?.trim_end());
        out.push('\n');
        let end = lines.find(|(_, line)| line.trim() == CLOSE || line.trim().starts_with(OPEN));
        match end {
            Some((_, line)) if line.trim() == CLOSE => out.push_str(line),
            _ => bail!("{}: found no {CLOSE}", place()),
        }
    }
    Ok(out)
}

/// A part, and the picture that it names.
type Made = (String, Option<(String, String)>);

fn make(source: &Path, what: &str) -> Result<Made> {
    let words: Vec<&str> = what.splitn(4, ' ').collect();
    let answers = || Answers::of(source).map_err(anyhow::Error::msg);
    Ok(match words[..] {
        ["machine"] => (record::read(source)?.header.machine.summary_line(), None),
        ["figure", number, file] => figure(&record::read(source)?, number, file, "")?,
        ["figure", number, file, panel] => figure(&record::read(source)?, number, file, panel)?,
        ["programs"] => (programs(&record::read_all(source)?), None),
        ["claims", "short"] => (answers()?.short(), None),
        ["claims", "counts"] => (answers()?.counts(), None),
        ["claims", "phrases"] => (answers()?.phrases(), None),
        ["claims", document] => (answers()?.page(document), None),
        _ => bail!(
            "expected machine, figure N FILE.svg [PANEL], programs, or claims DOCUMENT, \
             found \"{what}\""
        ),
    })
}

/// A panel of a record's figure as a file of its own.
fn figure(record: &Record, number: &str, file: &str, wanted: &str) -> Result<Made> {
    let plots = plot::plots(record);
    let found = number.parse().ok().and_then(|number: usize| plots.get(number.checked_sub(1)?));
    let plot = found.with_context(|| format!("expected a figure 1 to {}", plots.len()))?;
    let panel = plot.panels.iter().find(|panel| panel.title.starts_with(wanted));
    let panel = panel.with_context(|| {
        let titles: Vec<&str> = plot.panels.iter().map(|panel| panel.title.as_str()).collect();
        format!("expected a panel among {}, found \"{wanted}\"", titles.join("; "))
    })?;
    let alt = format!("{}: {}", plot.title, panel.title).replace('[', "(").replace(']', ")");
    Ok((format!("![{alt}]({file})"), Some((file.to_owned(), svg::document(plot, panel)))))
}

/// A row for each program: what can be gained at most, what was answered, and what that costs.
fn programs(records: &[Record]) -> String {
    let mut lines = "|program|at most|answer|CPU|memory|\n|---|---:|---|---:|---:|\n".to_owned();
    for record in records {
        let settings = &record.header.settings;
        let is_set = settings.contains_key(RECOMMENDED);
        let of = |state: &str| {
            let mut rows = record.rows.iter().filter(move |row| row.cell.state == state);
            let is_best = |row: &&record::Row| row.candidate != PLAIN && !row.dropped;
            rows.clone().find(is_best).or_else(|| rows.find(|row| row.candidate != PLAIN))
        };
        // Records of earlier releases have fresh runs, and CPU time in rows of its own.
        let best = of(ADVISED_FRESH).or_else(|| of(ADVISED_RACE)).filter(|_| is_set);
        let cpu = best.and_then(|best| {
            let mut rows = record.rows.iter().filter(|row| row.cell.state == ADVISED_CPU);
            let row = rows.find(|row| row.candidate == best.candidate);
            let ratio = row.and_then(|row| row.ratio).map(|ratio| ratio.median);
            ratio.or_else(|| best.figure(LOSS_RATIO))
        });
        let part = |figure: Option<f64>| figure.map_or("-".to_owned(), |part| format!("{part:.2}"));
        let bound = settings.get("bound").and_then(serde_json::Value::as_f64);
        let answer = record.end.as_ref().and_then(|end| end.verdicts.first());
        lines.push_str(&format!(
            "|{}|{}|{}|{}|{}|\n",
            record.name().unwrap_or_default(),
            bound.map_or("-".to_owned(), |part| match 100.0 * part {
                percent if percent < 0.095 => "less than 0.1 %".to_owned(),
                percent if percent < 9.95 => format!("{percent:.1} %"),
                percent => format!("{percent:.0} %"),
            }),
            answer.map_or("-", String::as_str),
            part(cpu),
            part(best.and_then(|row| row.figure(PEAK_RATIO))),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_markers_changes_and_what_is_wrong_has_a_line() {
        let shout = |record: &str, what: &str| Ok(format!("{record}: {what}\n\n"));
        let text = "# T\n<!-- cachewise a.jsonl machine -->\nold\nmore\n<!-- /cachewise -->\nend";
        let once = spliced(text, shout).expect("spliced");
        assert_eq!(
            once,
            "# T\n<!-- cachewise a.jsonl machine -->\na.jsonl: machine\n<!-- /cachewise -->\nend"
        );
        assert_eq!(spliced(&once, shout).ok(), Some(once), "twice is once");
        for (text, place) in [
            ("\n<!-- cachewise r machine -->\n", "line 2"),
            ("<!-- cachewise r machine -->\n<!-- cachewise r machine -->\n", "line 1"),
            ("<!-- cachewise r -->\n", "line 1"),
        ] {
            let error = spliced(text, shout).expect_err("refused");
            assert!(format!("{error:#}").contains(place), "{error:#}");
        }
        let made = make(&root().join("record"), "claims 000");
        assert!(made.is_ok_and(|(text, _)| text.contains("|**")));
        assert!(make(&root().join("record"), "verdict").is_err());
    }
}
