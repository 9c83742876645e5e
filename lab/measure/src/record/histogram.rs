//! Distributions too large to list.

use serde::{Deserialize, Serialize};

/// Histogram of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Edges of the bins in nanoseconds, one more than there are bins.
    #[serde(with = "crate::rounded")]
    pub edges_ns: Vec<f64>,
    pub counts: Vec<u64>,
    /// Calls above the last edge.
    pub above: u64,
}
