//! Tables in the form of the source documents, one file per experiment or pair of experiments.

pub mod cached_target;
pub mod page_fault;
pub mod page_loops;
pub mod parallel;
pub mod receive;
pub mod reuse_map;

pub mod aliasing;
pub mod compare_latency;
pub mod extent;
#[cfg(test)]
mod made_up;
mod pivot;
pub mod read_batch;
pub mod sticky;
pub mod twins;
pub mod values;
pub mod vector_state;
