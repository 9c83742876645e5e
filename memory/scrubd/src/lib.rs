//! `cachewise scrubd`: a server that keeps memory resident and zero, and leases it to other processes.
//!
//! - [`serve`]: the server, until it is told to stop. [`Settings`] has what the command line says.
//! - [`status`]: its figures, as text and as JSON.
//! - [`store`]: the files of memory and their holders, without system calls.
//! - [`memory`]: files with huge pages, and the question whether anybody else has one open or mapped.
//! - [`zeroer`]: the thread that makes files resident.
//!
//! A lease is a new file, whose pages the kernel zeroed and nobody had before. So nobody who kept a mapping, a
//! descriptor or a page of an earlier lease can see a byte of a later one.
//!
//! Clients are in `cachewise_pages::lease`, which has the protocol.
#![warn(missing_docs)]
#![cfg(target_os = "linux")]

pub mod memory;
mod server;
pub mod status;
pub mod store;
pub mod zeroer;

pub use server::{ServeError, Settings, passed, serve};
