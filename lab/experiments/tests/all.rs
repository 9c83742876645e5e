//! The experiments run for real, and what they make of records: those that are kept, and damaged ones.

mod adversarial;
mod agreement;
mod experiments;
mod old_records;
mod stored;
