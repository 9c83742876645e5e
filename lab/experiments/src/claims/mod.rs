//! The source documents' claims as data: a quotation, the rows that answer it, and the bound that
//! tells yes from no. From here come the tables of `docs/findings.md` and of the documents' pages, all rows as CSV and
//! as a page with filters (`cachewise report FOLDER`); nobody types a figure or a word of them.
//!
//! A [`Claim`] names its record by experiment; the newest of each CPU that has the rows is used. Its
//! figures are times of a candidate over times of a reference in the same cell and the same launch (of one
//! process: the same round). How they become a word is in [`rule`]. `run` and `report` print the same rows of the
//! record at hand ([`of_record`]): an experiment has no sentence of its own about a document.
//!
//! The quotations are in `items.tsv`, the claims in `claims.json`, whose fields are [`Claim`]'s.

mod answers;
mod claim;
#[cfg(test)]
mod items;
mod pages;
pub mod rule;

pub use answers::{Answer, Answered, Answers, CPUS, OWN, Verdict, all, of_record, of_rows};
pub use claim::{Claim, Measured, PHRASES, Reads, Says, bound};
pub use rule::{Expect, Over, Word};

#[cfg(test)]
mod tests;
