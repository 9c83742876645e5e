//! `cachewise scrubd`: a server that keeps memory resident and zero, and leases it to other processes.
//!
//! - [`serve`]: the server, until it is told to stop. [`Settings`] has what the command line says.
//! - [`status`]: its figures, in three forms.
//! - [`store`]: which memory there is and who gets which, without system calls.
//! - [`memory`]: files with huge pages, and whether anybody else has one open or mapped.
//! - [`zeroer`]: who zeroes, and when.
//! - [`systemd`]: sockets that are passed on, files that are kept while it restarts.
//!
//! What a lease is made of: a file of its own, whose pages nobody had before. So nobody who kept a mapping, a
//! descriptor or a page of an earlier lease can see a byte of a later one. With an engine that zeroes in place
//! ([`zeroer::Method`]) pages stay, and then only with the same user.
//!
//! Clients are in `cachewise_pages::lease`, which has the protocol.
#![warn(missing_docs)]
#![cfg(target_os = "linux")]

pub mod memory;
mod namespace;
mod server;
pub mod status;
pub mod store;
pub mod systemd;
pub mod zeroer;

pub use server::{ServeError, Settings, serve};
