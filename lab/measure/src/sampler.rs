//! Candidates take turns.
//!
//! A *round* is one sample of every candidate, in an order shuffled anew from the recorded seed,
//! all on the same buffers. A *sample* is a number of calls, the same for all, chosen so that the
//! fastest candidate's operation takes at least a thousand times what one reading of the clock
//! costs. Before each sample the operands are put back in their state, so
//! that each candidate meets the same one whatever the one before it left. Operands that are
//! [reused](crate::Slots::reused) are restored as they [say](crate::Destination); there each short sample
//! begins with untimed calls of the candidate itself: one, or where the operands are larger than the
//! L2 keeps, as many as process the size of the last level (64 MiB at most): a shared last level takes
//! dozens of calls of one candidate until it holds what that candidate leaves there.
//!
//! Without reader and bystander the calls of a sample run back to back in one interval. With
//! either, each call is followed by its reader and its bystander, and each part is an interval of
//! its own with the clock's cost subtracted.
//!
//! Pages or code that are touched for the first time are billed to nobody: arenas are written when
//! they are made, every candidate makes exactly two untimed calls before anything is timed, and
//! then the same number of trial samples, which size the rest and are not kept.

use crate::record::total_ns;
use crate::stats::DriftVerdict;
use crate::{Bystander, Operand, Proof};
use cachewise_kernels::Function;

mod rounds;
mod setup;

pub use rounds::run;

/// Something that can be timed on operands.
pub trait Candidate {
    fn name(&self) -> &str;

    /// One call on the operands given.
    fn call(&mut self, place: &Place);

    /// One call per place, back to back. The default is compiled for each candidate, so that
    /// [`call`](Candidate::call) is inlined and only what it calls is timed; leave it alone.
    fn call_all(&mut self, places: &[Place]) {
        for place in places {
            self.call(place);
        }
    }

    /// Puts in place what this candidate needs beyond the operands' state: called untimed before
    /// each of its samples, after the operands were prepared, with the places of the calls to come.
    fn set_up(&mut self, _places: &[Place]) {}

    /// The kernel behind it. Where given, its bytes are checked on the buffers it is timed on,
    /// before it is timed; a candidate that is no such function has to be checked by its owner.
    fn function(&self) -> Option<Function> {
        None
    }

    /// A second kernel it calls, checked as the first is.
    fn companion(&self) -> Option<Function> {
        None
    }

    /// Told that `calls` calls on these places come next, one after the other and then from the
    /// start again. Nothing here is timed, and the bystander is warmed and placed operands are put
    /// in their state afterwards, so that it disturbs neither. A workload whose input somebody else
    /// produces has it produced here.
    fn before(&mut self, _places: &[Place], _calls: usize) {}

    /// Makes `calls` calls on these places, over and over, where this process cannot, and says how
    /// many nanoseconds they took by the clock there, so that the way there is not billed. The
    /// default has them made and timed here. Not asked where a reader or bystander follows.
    fn timed_elsewhere(&mut self, _places: &[Place], _calls: usize) -> Option<f64> {
        None
    }

    /// Uses the destination in a way of its own, where the cell has a reader; `false` leaves it to
    /// that reader.
    fn read(&mut self, _place: &Place) -> bool {
        false
    }

    /// Returns whether it stays to the end however slow it is: the reference does.
    fn stays(&self) -> bool {
        false
    }

    /// Only candidates of one group drop each other in screening.
    fn group(&self) -> u8 {
        0
    }

    /// Returns whether it looks at its own outcome, by [`check`](Candidate::check).
    fn is_checked(&self) -> bool {
        false
    }

    /// Says what is wrong with the outcome of one untimed call on a destination that held other bytes.
    ///
    /// # Errors
    /// A sentence that says what was found and what was expected.
    fn check(&self, _place: &Place) -> Result<(), String> {
        Ok(())
    }
}

/// The operands of one call. An operation of one operand ignores `src`; a comparison's are `dst`
/// and `src`.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Valid for writes of `n` bytes.
    pub dst: *mut u8,
    /// Valid for reads of `n` bytes, disjoint from `dst`; `dst` itself where there is no source.
    pub src: *const u8,
    pub n: usize,
}

/// Contents of the destination when the operation starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Other non-zero bytes each time, written before each sample: for operations that write it.
    #[default]
    Overwritten,
    /// The source's bytes: for comparisons that must look to the end.
    Equal,
    /// The source's bytes but for one at this offset: for comparisons that may stop there.
    DiffersAt(usize),
    /// Whatever is there; it is only read.
    Kept,
}

/// Work between the operation and its reader.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Delay {
    #[default]
    None,
    /// That many bytes of other data are read.
    Bytes(usize),
    /// That many nanoseconds pass in a spin loop.
    Nanoseconds(f64),
}

/// The code that uses the destination afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReaderSpec {
    /// Fraction of the destination's lines it reads, above 0 and at most 1.
    pub touched_fraction: f64,
    /// Work between the operation and the reader.
    pub delay: Delay,
}

/// One experiment's point: sizes, places, and who comes afterwards.
#[derive(Debug)]
pub struct SampledCell<'a> {
    /// Bytes per call; at most the operands' slots.
    pub size: usize,
    /// The destination, or the first buffer of a comparison.
    pub destination: Operand,
    /// The source, where there is one.
    pub source: Option<Operand>,
    pub contents: Contents,
    /// Reader of the destination afterwards.
    pub reader: Option<ReaderSpec>,
    /// Bystander, whose working set is walked before and after.
    pub bystander: Option<&'a mut Bystander>,
}

/// Plan of a cell's samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Rounds in all, [`MIN_ROUNDS`] at least.
    pub rounds: usize,
    /// After this many rounds slow candidates are dropped; 0 drops none.
    pub screening_rounds: usize,
    /// A candidate whose whole cost is more than this many times the best one's of its
    /// [group](Candidate::group) is dropped.
    pub drop_ratio: f64,
    /// Decides the order of every round.
    pub seed: u64,
    /// Longest sample in nanoseconds; it goes before the least length of a thousand clock readings, and
    /// one call is always made.
    pub max_sample_ns: f64,
    /// Calls per sample instead of as many as the lengths above ask for: the loops of a source
    /// document.
    pub calls: Option<usize>,
}

/// Fewest rounds a plan may have.
pub const MIN_ROUNDS: usize = 15;

impl Default for Plan {
    /// 15 rounds, three of them screening at ratio 4; samples under half a second.
    fn default() -> Plan {
        Plan {
            rounds: MIN_ROUNDS,
            screening_rounds: 3,
            drop_ratio: 4.0,
            seed: 0,
            max_sample_ns: 5e8,
            calls: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CellResult {
    /// In the order the candidates were given.
    pub candidates: Vec<Samples>,
    /// Calls per sample, the same for all.
    pub calls_per_sample: u32,
    /// Times that a sample meets the same slot: above 1, later calls meet what earlier ones of the
    /// same candidate left behind.
    pub visits_per_slot: f64,
    /// Result of the test for drift over the rounds.
    pub drift: DriftVerdict,
    /// Proofs for source and destination: the worst of a proof before the first round and one
    /// after each candidate's sample in it. A probe that fails is repeated, the operand prepared
    /// anew, up to twice: what an interrupt did passes, what a candidate did stays. `None` for a
    /// missing and for a reused operand.
    pub proofs: (Option<Proof>, Option<Proof>),
    /// Rounds finished; every candidate not dropped has one sample for each.
    pub rounds: usize,
}

/// One candidate's samples, nanoseconds per call, by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    pub name: String,
    pub operation_ns: Vec<f64>,
    /// The reader afterwards; empty without one.
    pub reader_ns: Vec<f64>,
    /// The bystander's walk beyond its warm walk of that round, possibly slightly negative; empty
    /// without one.
    pub bystander_ns: Vec<f64>,
    /// After how many rounds it was dropped for its slowness.
    pub dropped_after: Option<usize>,
}

impl Samples {
    /// Operation, reader and bystander together, by round.
    pub fn total_ns(&self) -> Vec<f64> {
        total_ns(&self.operation_ns, &self.reader_ns, &self.bystander_ns)
    }
}
