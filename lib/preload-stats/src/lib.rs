//! `libcachewise_preload_stats.so`: the preload library for whoever wants to know what a program
//! copies. It does what `libcachewise_preload.so` does, and counts.
//!
//! ```text
//! LD_PRELOAD=/usr/lib/libcachewise_preload_stats.so CACHEWISE_STATS=counts program
//! ```
//!
//! - [`entries`] has the exported functions: each counts its call, then does it.
//! - [`handed_on`] has those that another library does: calls of the allocator, which are counted, and `_exit`, which
//!   runs no destructor.
//! - [`statistics`] has the counters; [`shared`] those that all processes of a program have together; [`table`] prints.
//!
//! A library of its own, so that a program which nobody watches executes nothing for the
//! possibility, and no code is changed at run time, which SELinux's `execmod` forbids.
#![no_std]
#![warn(missing_docs)]
// Nobody calls this crate: its pages are for those who change it.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(panic = "unwind")]
extern crate std;

mod entries;
mod handed_on;
mod shared;
mod statistics;
mod table;

use cachewise::os;

cachewise::panic_handler_without_std!();

/// Reads the profile and begins to count, before `main`.
extern "C" fn constructor() {
    cachewise::init();
    // It is 0 where `main` begins, and some programs rely on that.
    os::preserving_errno(|| {
        handed_on::start();
        statistics::start();
    });
}

/// Prints the statistics, where there are any.
extern "C" fn destructor() {
    statistics::finish();
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
