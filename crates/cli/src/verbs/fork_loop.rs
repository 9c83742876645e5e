//! `cachewise fork-loop`: the process that `run page-copy` has forked, fresh and with one thread.

use crate::args::ForkLoop;
use crate::status;

/// Serves requests until standard input ends.
pub fn run(args: &ForkLoop) -> anyhow::Result<u8> {
    cachewise_lab::forking::serve(args.buffer, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(status::OK)
}
