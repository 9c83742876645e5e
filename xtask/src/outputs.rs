//! Where a chore's table and record go: files that are complete or not there.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a chore writes, where they are named.
#[derive(Debug, clap::Args)]
pub struct Outputs {
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Outputs {
    /// Whether they can be written: now, and not after all the runs.
    pub fn check(&self) -> Result<()> {
        for file in [&self.markdown, &self.json].into_iter().flatten() {
            beside(file)?;
        }
        Ok(())
    }

    /// Prints the table, and writes what is named.
    pub fn write(&self, text: &str, value: &Value) -> Result<()> {
        let json = serde_json::to_string_pretty(value)? + "\n";
        print!("{text}");
        for (file, text) in [(&self.markdown, text), (&self.json, &json)] {
            if let Some(file) = file {
                write(file, text)?;
            }
        }
        Ok(())
    }
}

/// A file in the same directory.
fn beside(file: &Path) -> Result<tempfile::NamedTempFile> {
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    tempfile::NamedTempFile::new_in(beside.unwrap_or(Path::new(".")))
        .with_context(|| file.display().to_string())
}

fn write(file: &Path, text: &str) -> Result<()> {
    let place = beside(file)?;
    fs::write(place.path(), text).with_context(|| file.display().to_string())?;
    place.persist(file).with_context(|| file.display().to_string())?;
    // A temporary file is its owner's alone; this one is a result.
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o644))?)
}
