//! `libcachewise_preload.so`: the C library's copying, filling and comparing functions, done as
//! this machine's profile says, in programs that nobody recompiles.
//!
//! ```text
//! LD_PRELOAD=/usr/lib/libcachewise_preload.so program
//! ```
//!
//! [`entries`] has the exported functions, each the operation itself. The library that counts as
//! well is another one (`lib/preload-stats`).
//!
//! Built by itself in a profile that aborts on panic (`cargo build --release -p
//! cachewise-preload`), it links neither the standard library nor anything else but libc. Built
//! with the whole workspace, or in a profile that unwinds, it works alike and is larger.
#![no_std]
#![warn(missing_docs)]
// Nobody calls this crate: its pages are for those who change it.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(panic = "unwind")]
extern crate std;

mod entries;

cachewise::panic_handler_without_std!();

/// Reads the profile before `main`, so that no call of the program has to.
///
/// Nothing depends on it: a constructor of another library may run before this one, and its first
/// large call then does the same.
extern "C" fn constructor() {
    cachewise::init();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
