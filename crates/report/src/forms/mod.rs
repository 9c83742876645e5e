//! Tables in the form of the source documents, one file per experiment or pair of experiments.

pub mod cached_target;
mod cells;
pub mod page_loops;
pub mod receive;
pub mod reuse_map;

#[cfg(test)]
mod made_up;
