//! Names that rows of several crates have in common. Those of the experiments are the experiments' own.

pub const LIBC: &str = "libc";
/// The library itself, decision included.
pub const LIBRARY: &str = "cachewise";
/// The library, shared, as far from the caller as libc.
pub const SHARED: &str = "cachewise.shared";
/// The C library under tunables, in a process of its own.
pub const TUNED_LIBC: &str = "libc+tunables";

/// Reference of every way to get a page.
pub const KERNEL_FAULT: &str = "kernel 4k";
/// A program as it is, which `advise` compares settings with.
pub const PLAIN: &str = "plain";
/// States: all settings beside the plain program, their CPU time, and fresh runs of the best.
pub const ADVISED_RACE: &str = "race";
/// See [`ADVISED_RACE`].
pub const ADVISED_CPU: &str = "CPU time";
/// See [`ADVISED_RACE`].
pub const ADVISED_FRESH: &str = "fresh runs";
/// Figure: bytes of memory that the largest process held at most.
pub const PEAK: &str = "peak_bytes";
/// Figure: those bytes over the plain program's.
pub const PEAK_RATIO: &str = "peak_ratio";
/// Setting of a record of `advise`: the variables that it recommends.
pub const RECOMMENDED: &str = "recommended";
/// State: memory over time, a row for each setting and moment.
pub const ADVISED_MEMORY: &str = "memory over time";
/// Figure of a record of `advise`: the median of the figure that was judged.
pub const JUDGED: &str = "judged";
/// Figure: of the other side, CPU time or what may be lost, over the plain program's, and its interval.
pub const LOSS_RATIO: &str = "beside_ratio";
/// See [`LOSS_RATIO`].
pub const LOSS_LOW: &str = "beside_ratio_low";
/// See [`LOSS_RATIO`].
pub const LOSS_HIGH: &str = "beside_ratio_high";
/// Figure: bytes that all processes hold, of the goal that was asked for.
pub const HELD_BYTES: &str = "memory_bytes";
/// Axis: seconds since a program's start.
pub const SECONDS: &str = "seconds";
/// Figure: mebibytes that all processes hold.
pub const HELD_MIB: &str = "held_mib";
/// Figure: page faults of a run.
pub const PAGE_FAULTS: &str = "page_faults";
/// Figure: no setting's time is less than this part of the plain program's, by what was counted.
pub const LEAST_RATIO: &str = "least_ratio";
