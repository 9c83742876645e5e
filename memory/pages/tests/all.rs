//! The pool as a program uses it.

mod common;
mod corpus;
mod pool;
mod scrubber;
