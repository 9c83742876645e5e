//! What `cachewise run` shows and writes at its end, of one launch or of several.

use crate::args::Run;
use crate::output;
use crate::verbs::redraw::{self, Loaded};
use cachewise::profile::Profile;
use cachewise_measure::{Record, Warning};
use cachewise_report::closing::{self, Closing, Trust};
use std::path::Path;

/// Writes and prints what was asked for; what cannot be written costs nothing of the rest.
pub fn show(
    args: &Run,
    experiment: &str,
    record: Record,
    interrupted: bool,
    warnings: &[Warning],
) -> anyhow::Result<()> {
    let rows = &record.rows;
    let notes: Vec<String> = record.notes.iter().map(|note| note.text.clone()).collect();
    let mut written = Ok(());
    let tables = cachewise_report::experiment_tables(experiment, rows);
    if let Some(path) = &args.csv {
        let csv = cachewise_report::matrix::flat(rows).csv();
        written = written.and(output::write(path, csv.as_bytes()));
    }
    if let Some(path) = &args.markdown {
        let text: Vec<String> = tables.iter().map(cachewise_report::Table::markdown).collect();
        written = written.and(output::write(path, text.join("\n").as_bytes()));
    }
    let (answer, because) = closing::gain_of(rows);
    let closing = Closing {
        answer,
        because,
        trust: Trust::of(rows, warnings, interrupted),
        next: next(experiment, interrupted),
    };
    for warning in warnings {
        output::tell(&format!("warning: {warning}"));
    }
    if interrupted {
        output::tell(&format!("cachewise: interrupted; {} finished rows kept", rows.len()));
    }
    let stdout = Some(Path::new("-"));
    if args.json.as_deref() != stdout && args.html.as_deref() != stdout {
        let mut text = redraw::summary(&record, &tables);
        if args.plot {
            text.push_str(&redraw::plots(&record));
        }
        written = written.and(output::print(&format!("{text}\n{closing}")));
    }
    if let Some(path) = &args.html {
        let name = format!("{experiment}.jsonl");
        let page = redraw::page(&[Loaded { name, record }]);
        written = written.and(page.and_then(|page| output::write(path, page.as_bytes())));
    }
    for note in notes {
        output::tell(&format!("note: {note}"));
    }
    written
}

/// What to do after a run.
fn next(experiment: &str, interrupted: bool) -> String {
    let has_profile = super::profile_in_force().is_some_and(|path| Profile::read(path).is_ok());
    match experiment {
        _ if interrupted => "the same command again, to its end".to_owned(),
        "peers" | "hints" if !has_profile => {
            "`cachewise tune --quick`, then this again: the library had no profile to follow"
                .to_owned()
        }
        "peers" | "hints" => {
            "`cachewise exec -- PROGRAM` runs a program on the library; `cachewise doctor` says \
             whether that pays here"
                .to_owned()
        }
        "page-fault" => {
            "`cachewise exec --pool 1G -- PROGRAM`, where programs take and give back large blocks"
                .to_owned()
        }
        _ => format!(
            "`cachewise tune` measures what to use and writes it down; `run {experiment} --json FILE` \
             keeps these figures"
        ),
    }
}
