//! What the source documents claim, as data: a quotation, the rows that answer it, and the bound that
//! tells yes from no. From here come the table of `docs/findings.md` and the list of
//! `docs/checklist.md`; nobody types a figure or a word of them.
//!
//! A [`Claim`] names its record by experiment; the newest of each CPU that has the rows is used. Its
//! figures are times of a candidate over times of a reference in the same cell and the same rounds. A
//! *word* needs at least half of the cells on one side of the bound and none on the other, at 5 % after
//! Benjamini and Hochberg's correction for all comparisons of that CPU. Where a record has launches a round is a launch; where it is of one process,
//! the word stands in brackets, because launches differ by more than rounds do.
//!
//! The quotations are in [`items`], the claims in `claims.json`, whose fields are [`Claim`]'s.

mod answers;
mod claim;
pub mod items;
pub mod period;

pub use answers::{Answers, CPUS, all};
pub use claim::{Claim, Expect, Measured, Reads, Word};

#[cfg(test)]
mod tests;
