//! `libcachewise_preload.so`: the C library's copying, filling and comparing functions, done as
//! this machine's profile says, in programs that nobody recompiles.
//!
//! ```text
//! LD_PRELOAD=/usr/lib/libcachewise_preload.so program
//! ```
//!
//! - [`entries`] has the exported functions, each the operation itself.
//! - [`observed`] has what they become where `CACHEWISE_STATS` asks for statistics, and the one
//!   function that every large call then goes through.
//! - [`learn`] finds out, or follows what was found out before, which way the large calls of each
//!   call site go.
//! - [`statistics`] counts, and prints at exit; [`switch`] changes the one set for the other;
//!   [`os`] is what all that asks of Linux.
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
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod learn;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod observed;
mod os;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod statistics;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod switch;

cachewise::panic_handler_without_std!(os::abort);

/// Reads the profile before `main`, so that no call of the program has to.
///
/// Nothing depends on it: a constructor of another library may run before this one, and its first
/// large call then does the same.
extern "C" fn constructor() {
    cachewise::init();
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // It is 0 where `main` begins, and some programs rely on that.
    os::preserving_errno(|| {
        statistics::start();
        learn::start();
    });
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    os::refuse_statistics();
}

/// Saves what was learned and prints the statistics, where there are any.
extern "C" fn destructor() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        learn::finish();
        statistics::finish();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
