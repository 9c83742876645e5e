//! `cachewise forget`: as if nothing had been learned.

use super::learned;
use crate::{output, status};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;

/// Deletes one program's section, or all.
pub fn run(program: Option<String>) -> anyhow::Result<u8> {
    let names = program.map_or_else(|| learned::names(None), |name| Ok(vec![name]))?;
    for name in &names {
        let (name, place) = learned::existing(name, None)?;
        let path = CString::new(place.as_os_str().as_bytes())?;
        // Under its lock: a program that saves at this moment does so before or after.
        cachewise::programs::forget(&path)
            .map_err(|why| anyhow::anyhow!("{}: {why}", place.display()))?;
        output::print(&format!("forgotten: {name}\n"))?;
    }
    if names.is_empty() {
        output::print("nothing was learned, nothing to forget\n")?;
    }
    Ok(status::OK)
}
