//! `cachewise report`: old records drawn again, and spliced into documents.

use crate::advised;
use crate::args::Report;
use crate::verbs::redraw::{self, Loaded};
use crate::{output, status};
use anyhow::Context;
use cachewise_experiments::claims::{Answers, period};
use cachewise_measure::record::PUBLIC;
use cachewise_measure::{Record, record};
use cachewise_report::splice::{self, Marker, What};
use cachewise_report::{Said, compare, html, matrix};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn run(args: &Report) -> anyhow::Result<u8> {
    if !args.splice.is_empty() {
        return splice_all(&args.splice, args.check);
    }
    output::check_all(&[args.output.as_deref(), args.csv.as_deref()], &args.records)?;
    let mut all = Vec::new();
    for path in &args.records {
        all.extend(Loaded::read_all(path)?);
    }
    warn_of_mixed_machines(&all);
    if let Some(path) = &args.output {
        output::write(path, redraw::page(&all)?.as_bytes())?;
    }
    if let Some(path) = &args.csv {
        let records = all.iter().map(|one| (&one.record.header.machine, &one.record.rows[..]));
        output::write(path, matrix::flat(records).csv().as_bytes())?;
    }
    let files = args.output.is_some() || args.csv.is_some();
    for (index, one) in all.iter().enumerate() {
        let mut text = String::new();
        if !files {
            if index > 0 {
                text.push('\n');
            }
            if all.len() > 1 {
                text.push_str(&format!("{}\n", one.name));
            }
            text.push_str(&summary(one));
        }
        output::print(&text)?;
    }
    Ok(status::OK)
}

/// Text that the experiment printed when it ran.
fn summary(one: &Loaded) -> String {
    let record = &one.record;
    let said = redraw::said(record);
    let mut text = redraw::summary(record, &said);
    if record.rows.is_empty() && said.verdicts.is_empty() {
        text.insert_str(0, &format!("{}\n", html::NOTHING_COMPARED));
    }
    if record.end.as_ref().is_some_and(|end| end.interrupted) {
        text.push_str("\nstopped before its end: these are the rows that were finished\n");
    }
    text
}

fn warn_of_mixed_machines(all: &[Loaded]) {
    let Some(first) = all.first() else { return };
    for other in &all[1..] {
        let [one, two] = [first, other].map(|loaded| &loaded.record.header.machine);
        let differences = compare::machine_differences(one, two);
        if !differences.is_empty() {
            let (other, first, how) = (&other.name, &first.name, differences.join("; "));
            output::tell(&format!(
                "warning: {other} comes from another machine than {first} ({how}); compare ratios, not \
                 seconds"
            ));
        }
    }
}

/// Sources of the parts, read once.
#[derive(Default)]
struct Sources {
    records: BTreeMap<PathBuf, (Record, Said)>,
    folders: BTreeMap<PathBuf, Answers>,
}

/// Makes the parts of documents again. Nothing is written before everything could be made.
fn splice_all(paths: &[PathBuf], check: bool) -> anyhow::Result<u8> {
    let mut sources = Sources::default();
    let mut stale = Vec::new();
    for path in paths {
        let files = spliced(path, &mut sources)?.into_iter();
        stale.extend(files.map(|(file, text)| (path, file, text)));
    }
    stale.retain(|(_, file, text)| std::fs::read_to_string(file).ok().as_ref() != Some(text));
    for (document, path, text) in &stale {
        let file = path.display();
        if check {
            let document = document.display();
            output::tell(&format!(
                "cachewise: {file}: out of date; `cachewise report --splice {document}` makes it again"
            ));
        } else {
            output::write_file(path, text.as_bytes(), PUBLIC)?;
            output::print(&format!("{file}\n"))?;
        }
    }
    Ok(if check && !stale.is_empty() { status::ERROR } else { status::OK })
}

/// Answers of all records of a folder.
fn of_folder(what: &What, folder: &Path, answers: &Answers) -> Result<String, String> {
    match what {
        What::Period => period::table(folder),
        What::Claims(short) if short == "short" => Ok(answers.short()),
        What::Claims(document) => Ok(answers.table(document)),
        What::Items(document) => Ok(answers.items(document)),
        What::Counts => Ok(answers.counts()),
        _ => Err(
            "found a folder, accepted of it: claims [DOCUMENT], items [DOCUMENT], counts, period"
                .to_owned(),
        ),
    }
}

/// A document with its parts made again, and the pictures that it names.
fn spliced(path: &Path, sources: &mut Sources) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let old = record::bytes(path).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| std::io::Error::other("found something else, accepted UTF-8"))
    });
    let old = old.with_context(|| path.display().to_string())?;
    let mut files = Vec::new();
    let new = splice::splice(&old, &mut |marker: &Marker| {
        let record_path = path.with_file_name(&marker.record);
        if record_path.is_dir() {
            if !sources.folders.contains_key(&record_path) {
                sources.folders.insert(record_path.clone(), Answers::of(&record_path)?);
            }
            return of_folder(&marker.what, &record_path, &sources.folders[&record_path]);
        }
        if marker.what == What::Programs {
            let records = record::read_all(&record_path).map_err(|error| error.to_string())?;
            return Ok(advised::programs(&records));
        }
        let records = &mut sources.records;
        if !records.contains_key(&record_path) {
            let loaded = Loaded::read(&record_path).map_err(|error| format!("{error:#}"))?;
            let said = redraw::said(&loaded.record);
            records.insert(record_path.clone(), (loaded.record, said));
        }
        let (record, said) = &records[&record_path];
        let made = splice::make(&marker.what, record, said)?;
        files.extend(made.file.map(|(name, text)| (path.with_file_name(name), text)));
        Ok(made.markdown)
    });
    let new = new.map_err(|error| anyhow::anyhow!("{}:{error}", path.display()))?;
    files.insert(0, (path.to_owned(), new));
    Ok(files)
}
