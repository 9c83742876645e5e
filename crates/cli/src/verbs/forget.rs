//! `cachewise forget`: as if nothing had been learned.

use super::learned;
use crate::args::Forget;
use crate::{output, status};
use anyhow::Context as _;
use std::fs;

/// Deletes one program's section, or all.
pub fn run(args: &Forget) -> anyhow::Result<u8> {
    let names = match &args.program {
        Some(name) => vec![name.clone()],
        None => learned::names(None)?,
    };
    for name in &names {
        let place = learned::existing(name, None)?;
        fs::remove_file(&place).with_context(|| place.display().to_string())?;
        // Its lock may be there or not, and what a saver left that was killed.
        for suffix in [".lock", ".new"] {
            let mut beside = place.clone().into_os_string();
            beside.push(suffix);
            let _ = fs::remove_file(beside);
        }
        output::print(&format!("forgotten: {name}\n"))?;
    }
    if names.is_empty() {
        output::print("nothing was learned, nothing to forget\n")?;
    }
    Ok(status::OK)
}
