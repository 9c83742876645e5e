//! Tables in an experiment's own form, the source document's where it has one. Pure: rows in, tables
//! out. An experiment without a form here gets the matrix.

pub mod aliasing;
pub mod compare_latency;
pub mod extent;
mod pivot;
pub mod read_batch;
pub mod values;
pub mod vector_state;
