//! `cachewise libc-loop`: the process whose libc `run peers` calls under other tunables.

use crate::args::LibcLoop;
use crate::status;

/// Serves requests until standard input ends.
pub fn run(args: &LibcLoop) -> anyhow::Result<u8> {
    cachewise_lab::elsewhere::serve(args.op, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(status::OK)
}
