//! The experiments run for real, and what they make of records: those that are kept, damaged ones, a fuzzer's bytes.

mod adversarial;
mod corpus;
mod experiments;
mod launches;
mod old_records;
mod stored;
