//! `cachewise scrubd`: a server that keeps memory resident and zero, and leases it to other processes.
//!
//! - [`serve`]: the server, until it is told to stop. [`Settings`] has what the command line says.
//! - [`status`]: its figures, in three forms.
//! - [`store`]: the memory there is and its holders, without system calls.
//! - [`memory`]: files with huge pages, and the question whether anybody else has one open or mapped.
//! - [`pins`]: the proof that a lease's memory came back.
//! - [`zeroer`]: the thread that zeroes.
//! - [`pressure`]: the memory that others need.
//! - [`systemd`]: sockets that are passed on, files that are kept while it restarts.
//!
//! A lease is made of a file of its own, whose pages nobody had before. So nobody who kept a mapping, a
//! descriptor or a page of an earlier lease can see a byte of a later one. With an engine that zeroes in place
//! ([`zeroer::Method`]) pages stay, and then only with the same user.
//!
//! Clients are in `cachewise_pages::lease`, which has the protocol.
#![warn(missing_docs)]
#![cfg(target_os = "linux")]

pub mod memory;
mod namespace;
pub mod pins;
pub mod pressure;
mod server;
pub mod status;
pub mod store;
pub mod systemd;
pub mod zeroer;

pub use server::{ServeError, Settings, serve};
