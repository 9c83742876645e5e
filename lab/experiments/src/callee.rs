//! Calls as programs make them: from places in the code that always call the same function.
//!
//! A CPU predicts where an indirect call goes, and best where it always goes to one function, as calls of
//! the C library do. A loop that all candidates share is no such place: there an empty function takes as
//! long as a short `memset`, and the function that was called first takes least. So each function has loops
//! of its own (`SITES`), of eight calls each, so that no single place's luck decides. Between one call and the
//! next lie instructions that do nothing, as a program's lie there that do something: calls side by side in
//! the same 64 bytes of code get in each other's way.

use crate::routines::{FILL_BYTE, libc_equal, libc_zero, memcmp, memset};
use cachewise_kernels::kernel::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Function, PAGE_SIZE};
use cachewise_measure::Place;
use std::hint::black_box;
use std::ptr::fn_addr_eq;
use std::sync::{Mutex, PoisonError};

/// Loops of each kind. Of more functions than these, two share one.
const SITES: usize = 64;

/// A function, and the loops that call nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    function: Function,
    site: usize,
}

impl Callee {
    /// For zeroing libc's `memset` itself is called, for equality its `memcmp`, without the function of ours that
    /// stands for them elsewhere.
    pub fn new(function: Function) -> Callee {
        static SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        let function = match function {
            Function::Equal(f) if fn_addr_eq(f, libc_equal as CompareFn) => {
                Function::Compare(memcmp)
            }
            other => other,
        };
        let address = function.address().addr();
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let place = seen.iter().position(|one| *one == address).unwrap_or_else(|| {
            seen.push(address);
            seen.len() - 1
        });
        Callee { function, site: place % SITES }
    }

    /// One call for each place, back to back.
    pub fn run(self, places: &[Place]) {
        match self.function {
            Function::Copy(f) | Function::Move(f) => COPIES[self.site](f, places),
            Function::Fill(f) => FILLS[self.site](f, places),
            Function::Zero(f) if fn_addr_eq(f, libc_zero as ZeroFn) => {
                MEMSETS[self.site](memset, places);
            }
            Function::Zero(f) => ZEROS[self.site](f, places),
            Function::Compare(f) | Function::Equal(f) => COMPARISONS[self.site](f, places),
            pages => places.iter().for_each(|place| once(pages, place)),
        }
    }
}

/// One call, for whoever has no list of places. Which kind of function it is has to be looked up, always with the
/// same outcome, which a CPU predicts.
#[inline(always)]
pub fn once(function: Function, place: &Place) {
    let Place { dst, src, n } = *place;
    let order = || (n / PAGE_SIZE).max(1).ilog2();
    macro_rules! call {
        ($f:ident($($argument:expr),*)) => {{
            // SAFETY: the place is valid for n bytes, source and destination apart unless it is a move, and
            // whoever chose the function saw to it that this CPU runs it.
            black_box(unsafe { $f($($argument),*) });
        }};
    }
    match function {
        Function::Copy(f) | Function::Move(f) => call!(f(dst, src, n)),
        Function::Fill(f) => call!(f(dst, i32::from(FILL_BYTE), n)),
        Function::Zero(f) => call!(f(dst, n)),
        Function::Compare(f) | Function::Equal(f) => call!(f(dst, src, n)),
        Function::CopyPages(f) => call!(f(dst, src, order())),
        Function::ZeroPages(f) => call!(f(dst, order())),
    }
}

/// So many bytes of no operation.
macro_rules! apart {
    ($bytes:literal) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it does nothing.
        unsafe {
            std::arch::asm!(concat!(".nops ", $bytes), options(nomem, nostack, preserves_flags));
        }
    };
}

macro_rules! loops {
    ($table:ident, $name:ident: $type:ty, $f:ident, $p:ident => $call:expr) => {
        #[inline(never)]
        fn $name<const SITE: usize>($f: $type, places: &[Place]) {
            // Else a compiler makes one function of all that have the same instructions.
            black_box(SITE);
            let (eights, rest) = places.as_chunks::<8>();
            for [a, b, c, d, e, f, g, h] in eights {
                loops!(@each $p $call; a 9 b 41 c 22 d 54 e 17 f 35 g 48 h 28);
            }
            for place in rest {
                loops!(@each $p $call; place 9);
            }
        }

        static $table: [fn($type, &[Place]); SITES] = loops!(@table $name:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63);
    };
    (@each $p:ident $call:expr; $($place:ident $apart:literal)*) => {$(
        apart!($apart);
        let $p = $place;
        // SAFETY: places are valid for n bytes, source and destination apart unless it is a move, and whoever
        // chose the function saw to it that this CPU runs it.
        black_box(unsafe { $call });
    )*};
    (@table $name:ident: $($site:literal)*) => { [$($name::<$site>),*] };
}

loops!(COPIES, copies: CopyFn, f, p => f(p.dst, p.src, p.n));
loops!(FILLS, fills: FillFn, f, p => f(p.dst, i32::from(FILL_BYTE), p.n));
loops!(MEMSETS, memsets: FillFn, f, p => f(p.dst, 0, p.n));
loops!(ZEROS, zeros: ZeroFn, f, p => f(p.dst, p.n));
loops!(COMPARISONS, comparisons: CompareFn, f, p => f(p.dst, p.src, p.n));
