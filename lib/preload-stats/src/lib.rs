//! `libcachewise_preload_stats.so`: the preload library for whoever wants to know what a program
//! copies. It does what `libcachewise_preload.so` does, and counts.
//!
//! ```text
//! LD_PRELOAD=/usr/lib/libcachewise_preload_stats.so CACHEWISE_STATS=counts program
//! ```
//!
//! - [`entries`] has the exported functions: each counts its call, then does it.
//! - [`blocks`] counts calls of the allocator, and hands them on; [`ends`] has `_exit`, which runs no destructor.
//! - [`statistics`] has the counters, and prints at exit; [`gathered`] adds up what several processes counted;
//!   [`text`] is what both write into, [`os`] what they ask of Linux, [`next`] the function that was replaced.
//!
//! A library of its own, so that a program which nobody watches executes nothing for the
//! possibility, and no code is changed at run time, which SELinux's `execmod` forbids.
#![no_std]
#![warn(missing_docs)]
// Nobody calls this crate: its pages are for those who change it.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(panic = "unwind")]
extern crate std;

mod blocks;
mod ends;
mod entries;
mod gathered;
mod next;
mod os;
mod statistics;
mod text;

cachewise::panic_handler_without_std!(os::abort);

/// Reads the profile and begins to count, before `main`.
extern "C" fn constructor() {
    cachewise::init();
    // It is 0 where `main` begins, and some programs rely on that.
    os::preserving_errno(|| {
        ends::start();
        statistics::start();
    });
}

/// Prints the statistics, where there are any.
extern "C" fn destructor() {
    statistics::finish(statistics::End::Exit);
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
