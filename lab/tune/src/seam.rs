//! The seam between the tuner and hardware: everything the tuner may ask of a machine.
//!
//! The tuner is pure. It sees a [`Machine`]: what it is, who may compete there, what one
//! [`Visit`] cost, how late it is. Behind the trait stands the bench, or a simulated machine in
//! tests. Read this when you connect either; how samples become decisions is `tune`'s business.
//!
//! # What a machine owes
//! 1. **The state is restored before every sample**, inside [`Machine::visit`] and outside what is
//!    timed. Nothing that ran before, neither another arm nor the same one, may be visible in a
//!    sample, but where that is the state: [`Destination::Repeated`]. Its operands are brought into the
//!    caches once, before the visit's first call, which is not timed.
//! 2. **What runs is what is timed**: a kernel is called through the library's own entry, with a
//!    table that names this kernel alone; so is libc where it is what is decided for
//!    ([`Arm::HandedOver`]). Directly called it is the reference alone.
//! 3. **Paired draws**: everything that is random about a visit (placement, first difference, sizes of
//!    a script) is a function of [`Ask::draw`] and the cell, never of the arm, so that two arms that
//!    are visited with one draw met the same circumstances. No arm plays a script of one draw twice:
//!    a branch predictor would remember it.
//! 4. **Disturbed samples are left out**, and counted: those during which the thread did not run for
//!    more than 5 % of the sample (wall time against thread time), as far as the clocks can tell.
//! 5. **Time is what the user waits**: [`Machine::now`] counts restoring, settling and faulting in too.
//! 6. **Bytes are checked** at the first visit of an arm to a cell; wrong ones end the tuning.

use cachewise::profile::{Decision, OPERATIONS};
use cachewise_kernels::{Kernel, Operation};
pub use cachewise_measure::Destination;
use cachewise_measure::LabError;

/// Interface to a machine, real or simulated.
pub trait Machine {
    /// Facts about the machine; constant during a tuning.
    fn facts(&self) -> Facts;

    /// Candidates for an operation: libc first ([`Arm::LIBC`]), then the deployable kernels that
    /// this CPU can run, in order of preference among equals. The position is the arm's number.
    fn arms(&self, operation: Operation) -> Vec<Competitor>;

    /// Seconds since the tuning began, calibration included.
    fn now(&self) -> f64;

    /// Times `ask.samples` calls (for short calls: groups of calls) of one arm in one cell.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] when the user wants to stop; wrong bytes; refused memory.
    fn visit(&mut self, ask: &Ask) -> Result<Visit, LabError>;

    /// From here on [`Arm::Library`] follows these decisions, of which the kernel may be `libc`.
    ///
    /// # Errors
    /// Decisions that the library refuses.
    fn follow(&mut self, decisions: &[Decision]) -> Result<(), LabError>;

    /// Told what is being done, and the seconds that the tuning is expected to take from now on; for a
    /// line of progress.
    fn progress(&mut self, stage: Stage, left: f64);
}

/// Stages of a tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Every kernel against libc, in epochs.
    Race,
    /// The library with these decisions against libc.
    Referee,
}

impl Stage {
    /// The words for a line of progress.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Race => "kernels against libc",
            Stage::Referee => "checking the decisions",
        }
    }
}

/// Facts about a machine, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Bytes of L1d.
    pub l1: usize,
    /// Bytes of L2.
    pub l2: usize,
    /// Bytes of the LLC that one core complex shares, as the CPU says.
    pub llc: usize,
    /// Bytes of it that answered faster than memory: the knee of the latency and bandwidth curves.
    pub llc_usable: usize,
    /// Latency of a line well inside the LLC, in ns.
    pub near_ns: f64,
    /// Latency of a line in memory, in ns.
    pub dram_ns: f64,
    /// The largest operation that the memory budget allows, in bytes.
    pub largest: usize,
    /// By operation, the kernel that the library calls below [`libc_from`](cachewise::profile::libc_from)
    /// where its decision is `libc`; `None` where that is libc itself.
    pub below_libc: [Option<&'static str>; OPERATIONS.len()],
    /// By operation, the non-temporal kernel that the library calls under `never` where no profile decides, and its first
    /// size; `None` where that is none, or unknown.
    pub never: [Option<(&'static str, usize)>; OPERATIONS.len()],
    /// Machines of its kind whose figures these are, a round for each; 1 where it tunes itself.
    pub hosts: usize,
}

impl Facts {
    /// Returns whether the LLC answers faster than memory; if not, others use it.
    #[must_use]
    pub fn llc_is_ours(&self) -> bool {
        self.near_ns <= 0.6 * self.dram_ns
    }

    /// Bytes of cache that a working set of this process can count on.
    #[must_use]
    pub fn cache(&self) -> usize {
        if self.llc_is_ours() { self.llc_usable.max(self.l2) } else { self.l2 }
    }
}

/// A candidate routine: libc's or a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Competitor {
    /// `libc`, or a kernel's canonical name.
    pub name: String,
    /// Class of its stores.
    pub class: Class,
}

impl Competitor {
    /// The process's own libc.
    #[must_use]
    pub fn libc() -> Competitor {
        Competitor { name: cachewise::profile::LIBC.to_owned(), class: Class::Libc }
    }

    /// A kernel of the table.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Competitor {
        let class = if kernel.is_non_temporal() {
            Class::NonTemporal
        } else if kernel.technique().starts_with("rep") {
            Class::Rep
        } else {
            Class::Temporal
        };
        Competitor { name: kernel.name.to_owned(), class }
    }
}

/// Class of an arm's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The process's own libc.
    Libc,
    /// Temporal: ordinary loads and stores.
    Temporal,
    /// By string instructions, which may leave the destination where it is.
    Rep,
    /// Non-temporal stores.
    NonTemporal,
}

/// The routine under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arm {
    /// A position in [`Machine::arms`], called as the only kernel of a table; libc is called directly.
    Kernel(usize),
    /// libc as the library calls it where the decision is `libc`: its way there costs something.
    HandedOver,
    /// The library with the decisions of [`Machine::follow`].
    Library,
}

impl Arm {
    /// The incumbent.
    pub const LIBC: Arm = Arm::Kernel(0);
}

/// Request for a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The circumstances.
    pub cell: TuningCell,
    /// The routine.
    pub arm: Arm,
    /// Number of samples, 1 or more.
    pub samples: usize,
    /// Seed of all random choices of this visit.
    pub draw: u64,
}

/// The circumstances of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TuningCell {
    /// Operation.
    pub operation: Operation,
    /// Bytes per call; of a [script](TuningCell::script), the bytes its calls are spread over.
    pub size: usize,
    /// State of the destination (`compare` and `equal`: of both operands).
    pub destination: Destination,
    /// Places of the operands in relation to each other, to lines and pages.
    pub layout: Layout,
    /// Work timed behind the call, in the same sample.
    pub after: After,
    /// Contents that `compare` and `equal` find.
    pub contents: Contents,
    /// Calls as programs make them, instead of one size.
    pub script: Option<Script>,
}

impl TuningCell {
    /// Operands aligned and apart, nothing behind, operands equal.
    #[must_use]
    pub const fn new(operation: Operation, size: usize, destination: Destination) -> TuningCell {
        TuningCell {
            operation,
            size,
            destination,
            layout: Layout::Aligned,
            after: After::Nothing,
            contents: Contents::Equal,
            script: None,
        }
    }
}

/// Layout of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Both on a line's start, apart in their low twelve bits.
    Aligned,
    /// Source and destination at odd offsets, different ones, drawn; apart in their low twelve bits.
    Misaligned,
    /// The destination a few bytes behind the source in the low twelve bits (4 KiB aliasing).
    Aliased,
    /// The destination above the source within the same buffer, nearer than the size: only `move`.
    OverlapUp,
    /// The destination below the source: only `move`.
    OverlapDown,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 5] = [
        Layout::Aligned,
        Layout::Misaligned,
        Layout::Aliased,
        Layout::OverlapUp,
        Layout::OverlapDown,
    ];

    /// The word in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Aligned => "aligned",
            Layout::Misaligned => "misaligned",
            Layout::Aliased => "4K-aliased",
            Layout::OverlapUp => "overlap-up",
            Layout::OverlapDown => "overlap-down",
        }
    }
}

/// Work timed behind the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum After {
    /// Nothing.
    Nothing,
    /// Every line of the destination is read.
    Reader,
    /// A working set of so many bytes, in use before the call, is walked again; its time less that of
    /// a walk without the call in between is the bystander's. Source and destination are in memory then, as the promise
    /// of `never` says.
    Bystander(usize),
}

/// Contents that `compare` and `equal` find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Contents {
    /// Operands are equal. Other operations have no other contents.
    Equal,
    /// Operands differ, for each sample at another place: its logarithm is uniform between the first
    /// byte and the last, so that half of the differences lie in the first square root of the size.
    Unequal,
}

/// Calls as programs make them: sizes, overlaps and alignments are drawn from what `distributions` has
/// for the operation's libc function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Script {
    /// True if everything the calls touch fits L1 ([`TuningCell::size`] says how much that is).
    pub hot: bool,
}

impl Script {
    /// Both.
    pub const ALL: [Script; 2] = [Script { hot: true }, Script { hot: false }];

    /// The word in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        if self.hot { "script-hot" } else { "script-cold" }
    }
}

/// Result of a visit. Times are ns per call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visit {
    /// The undisturbed samples, in the order they were taken.
    pub samples: Vec<Sample>,
    /// Samples that were left out as disturbed.
    pub disturbed: usize,
}

/// One sample, per call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The operation.
    pub operation: f64,
    /// The reader behind it; 0 without one.
    pub reader: f64,
    /// Loss of the bystander: may be below 0, as a difference of two walks; 0 without one.
    pub bystander: f64,
}

impl Sample {
    /// Operation, reader and bystander.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.operation + self.reader + self.bystander
    }
}
