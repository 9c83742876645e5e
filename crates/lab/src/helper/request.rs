//! What is asked of a helper, in the words of the protocol.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// What is asked of a helper, and what it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Forks so often, the child using a buffer of so many bytes each time: page faults of the children
    /// (`i64`).
    Fork {
        /// Bytes of the buffer.
        buffer: usize,
        /// How often.
        loops: u64,
    },
    /// Times calls: nanoseconds that those of the C library took together, and those of the library
    /// (`(f64, f64)`).
    Libc(Calls),
    /// Times single comparisons of pages (`Outcome` of `compare-latency`'s launches).
    Calls(Order),
    /// Times the C library alone on warm buffers: nanoseconds per call, by size (`Vec<f64>`).
    Sizes {
        /// What is done, by name.
        operation: String,
        /// Bytes per call.
        sizes: Vec<usize>,
    },
}

/// Where the calls of a sample go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// What is done, by name.
    pub operation: String,
    /// Bytes.
    pub size: usize,
    /// The destination's place in a page.
    pub dst: usize,
    /// The source's place in a page.
    pub src: usize,
    /// How many calls are timed.
    pub calls: usize,
    /// How many are made before those, one at least.
    pub untimed: usize,
}

/// Which single calls to time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Pages of the set.
    pub pages: usize,
    /// Comparisons per pass.
    pub comparisons: usize,
    /// Passes per kernel.
    pub passes: usize,
    /// Kernel names, and libc's.
    pub kernels: Vec<String>,
    /// Seed of pages, tree and turns.
    pub seed: u64,
}

/// In one write: a line in two pieces could wake the other end twice.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    to.write_all(&text)
}
