//! The pool as a program uses it.

mod corpus;
mod eager;
mod pool;
#[path = "support/rerun.rs"]
mod rerun;
mod resize;
mod scrubber;
mod shards;

use rerun::rerun;
