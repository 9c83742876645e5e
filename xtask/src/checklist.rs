//! A check of documents against records: every part that is made from them is made again and
//! compared. The claims of the source documents are among it; `lab/experiments/src/claims` has them.

use crate::command::{cargo, root, run as run_it};
use anyhow::Result;

/// Documents with parts that are made from records.
const DOCUMENTS: &str = "README.md docs/findings.md docs/checklist.md";

/// An error where a part is out of date; `cachewise report --splice` with the same files makes it again.
pub fn run() -> Result<()> {
    let check = format!("run --quiet -p cachewise-cli -- report --check --splice {DOCUMENTS}");
    run_it(cargo(&check).current_dir(root()))
}
