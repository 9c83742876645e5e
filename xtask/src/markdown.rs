//! Where a chore's table and record go: files that are complete or not there.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes text to a file, where one is named.
pub fn write(file: Option<&Path>, text: &str) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = tempfile::NamedTempFile::new_in(beside.unwrap_or(Path::new(".")))
        .with_context(|| file.display().to_string())?;
    fs::write(place.path(), text).with_context(|| file.display().to_string())?;
    place.persist(file).with_context(|| file.display().to_string())?;
    // A temporary file is its owner's alone; this one is a result.
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o644))?)
}

/// The same for JSON.
pub fn write_json(file: Option<&Path>, value: &Value) -> Result<()> {
    write(file, &(serde_json::to_string_pretty(value)? + "\n"))
}
