//! Tables in the form of the source documents, one file per experiment or pair of experiments.

pub mod advise;
pub mod cached_target;
pub mod compare_latency;
pub mod grids;
pub mod page_fault;
pub mod page_loops;
pub mod receive;
pub mod reuse_map;
mod support;
pub mod twins;
pub mod vector_state;
