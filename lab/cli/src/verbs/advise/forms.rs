//! `--write`: the setting in the form that the file's name asks for.

use crate::output;
use anyhow::Context as _;
use cachewise_advise::settings::Candidate;
use cachewise_advise::written::{self, ACCEPTED, Form};
use cachewise_experiments::LabError;
use std::fs;
use std::path::Path;

/// Every file has these words in its first line; others' files are not replaced.
const BY: &str = "by cachewise advise";

/// The form of a file that may be written.
pub fn of(file: &Path) -> Result<Form, LabError> {
    let usage = |found: String| LabError::Usage(format!("--write {}: {found}", file.display()));
    let Some(form) = Form::of(file) else {
        return Err(usage(format!("expected {ACCEPTED}, found a name that tells no form")));
    };
    let is_others = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() > 0)
        && !fs::read_to_string(file)
            .unwrap_or_default()
            .lines()
            .take(2)
            .any(|line| line.contains(BY));
    if is_others {
        return Err(usage(
            "expected a new file, found a file that this command did not write".to_owned(),
        ));
    }
    Ok(form)
}

/// Writes a setting; `about` says in a line what it is.
pub fn write(
    file: &Path,
    candidate: &Candidate,
    words: &[String],
    about: &str,
) -> anyhow::Result<()> {
    let text = written::text(of(file)?, candidate, words, &format!("{about}, {BY}"));
    let text =
        text.map_err(anyhow::Error::msg).with_context(|| format!("--write {}", file.display()))?;
    output::write(file, text.as_bytes())
}

/// Returns whether a file can be tried here: a shell reads it.
pub fn is_tried(file: &Path) -> bool {
    !output::is_stdout(file) && matches!(Form::of(file), Some(Form::Shell | Form::Environment))
}
