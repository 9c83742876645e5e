//! Copy, zero and compare memory the way this machine's measured profile says.
//!
//! Whether temporal or non-temporal stores are faster depends on the CPU, on the size and
//! on what happens to the data next. This library uses all three: a *profile* of the CPU that
//! `cachewise tune` measured on this machine, the size, and the caller's [`Reuse`] hint.
//!
//! ```
//! use cachewise::Reuse;
//!
//! let source = vec![1u8; 1 << 20];
//! let mut destination = vec![0u8; 1 << 20];
//! cachewise::copy(&mut destination, &source);
//! cachewise::copy_with(Reuse::Never, &mut destination, &source);
//! assert!(cachewise::equal(&destination, &source));
//! ```
//!
//! - [`copy`], [`copy_within`], [`fill`], [`zero`], [`compare`], [`equal`] take slices, [`raw`]
//!   takes pointers.
//! - Without a profile, decisions are computed from the CPU's features and its caches. A profile
//!   is looked for in this order: the file that `CACHEWISE_PROFILE` names; the user's
//!   ([`profile::user_path`]); the machine's (`/etc/cachewise/`); one shipped for this CPU model. A
//!   missing, unreadable, damaged or foreign one is skipped with one line on stderr, which
//!   `CACHEWISE_QUIET=1` silences; that line is all that this library ever prints. Set-user-id programs ignore the environment and the user's
//!   files.
//! - [`decision`] says which kernel a call would use and why; [`install`] follows a profile that
//!   is part of the program.
//! - Nothing allocates or locks; the first call may come from any thread, from a signal handler,
//!   before `main` or in a forked child.
//! - Without the `std` feature the crate links no standard library.
//!
//! # Under a preload library
//!
//! A preload library's `memcpy` consists of this crate, so the crate must not call `memcpy` while
//! it copies (DTO PR 35). All loops are in the kernels, whose crate is `no_builtins`; the code
//! before them has no loops left after unrolling, and a test searches the machine code for calls.
//! This crate is not `no_builtins`, because such a crate takes no part in link-time optimisation
//! and then cannot link against a standard library that does. Code that runs once, to fill the
//! table, may call `memcpy`: a baseline kernel serves these calls.
#![no_std]
#![warn(missing_docs)]
// A profile's error keeps its words inside: it is made before `malloc` works.
#![allow(clippy::result_large_err)]

#[cfg(feature = "std")]
extern crate std;

#[macro_use]
mod freestanding;

// Order of the modules, from below: what is decided (`rows`, `class`, `slots`), the bytes and numbers that every
// call reads (`table`, `choice`), who decides (`defaults`, `profile`,
// `shipped`) and writes it down (`follow`, `ranges`, `source`), what slots stand for and what fills the table on the
// first call (`dispatch`), the entries (`entry`), and what programs call (`raw`, `ops`).
// Nobody names who is above: a test of the command line's crate (`structure.rs`) looks.

pub mod cpu;
pub mod profile;
pub mod raw;

mod choice;
mod class;
mod cursor;
mod defaults;
mod dispatch;
mod early;
pub mod entry;
mod follow;
mod names;
mod only;
mod operands;
mod ops;
#[cfg(all(feature = "os", target_os = "linux"))]
#[doc(hidden)]
pub mod os;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod ranges;
mod reuse;
mod rows;
mod shipped;
mod slots;
mod source;
mod system;
mod table;

pub use class::size_class;
#[doc(hidden)]
pub use cursor::Cursor;
#[doc(hidden)]
pub use only::{below_libc, never_by_default, use_libc, use_only};
#[doc(hidden)]
pub use operands::may_look_at_operands;
pub use ops::{
    compare, copy, copy_with, copy_within, copy_within_with, equal, fill, fill_with, zero,
    zero_with,
};
#[cfg(all(feature = "os", target_os = "linux"))]
#[doc(hidden)]
pub use os::{overflow, uncancelled};
pub use reuse::Reuse;
pub use shipped::{ShippedProfile, Unfit, shipped_profile};
#[cfg(feature = "std")]
pub use source::load;
pub use source::{
    Decided, InstallError, ProfilePath, Source, decision, init, install, profile_source,
};
