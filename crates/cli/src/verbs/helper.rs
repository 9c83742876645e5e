//! `cachewise helper`: a process of its own for what an experiment cannot do in its own
//! (`cachewise_lab::helper`).

use crate::status;

/// Serves requests until standard input ends.
pub fn run() -> anyhow::Result<u8> {
    cachewise_lab::helper::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(status::OK)
}
