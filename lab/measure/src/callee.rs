//! Calls as programs make them: from places in the code that always call the same function.
//!
//! A CPU predicts where an indirect call goes, and best where it always goes to one function, as calls of
//! the C library do. A loop that all candidates share is no such place: there an empty function takes as
//! long as a short `memset`, and the function that was called first takes least. So each function has loops
//! of its own (`SITES`), of eight calls each, so that no single place's luck decides. Between one call and the
//! next lie instructions that do nothing, as a program's lie there that do something: calls side by side in
//! the same 64 bytes of code get in each other's way.

use crate::Place;
use crate::routines::{FILL_BYTE, libc_equal, libc_zero, memcmp, memset};
#[cfg(test)]
use cachewise_kernels::Features;
use cachewise_kernels::kernel::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Function, PAGE_SIZE};
use fastrand::Rng;
use std::hint::black_box;
use std::iter::zip;
use std::ptr::fn_addr_eq;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Loops of each kind. Of more functions than these, two share one.
const SITES: usize = 64;

/// The loops of the first function of this launch.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// Lets a launch of several begin with other loops than the one before it: where a loop lies is the linker's choice, as
/// where a routine lies is, and decides as much. 27 and the number of loops have no common divisor.
pub fn begin_launch(launch: u32) {
    FIRST.store((launch as usize).wrapping_mul(27) % SITES, Ordering::Relaxed);
}

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
        Callee { function, site: (FIRST.load(Ordering::Relaxed) + place) % SITES }
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

/// Neighbours of a call as programs have them: what stored its source shortly before, and what loads a part of its result at
/// once. No call begins before the one before it has been loaded from. Programs branch on a comparison: a CPU predicts
/// that, and goes on before the result is there.
#[derive(Clone, Copy, Debug)]
struct AtOnce {
    /// Bytes of each store that writes the source just before the call, one of [`WIDTHS_STORED`]; none is a source that was
    /// written long ago.
    stored: Option<usize>,
    /// Bytes of the load, one of [`WIDTHS_LOADED`]; comparisons have a branch instead.
    loaded: usize,
}

/// Widths of stores before a call: bytes, words, and the vectors of x86-64.
pub const WIDTHS_STORED: &[usize] =
    if cfg!(target_arch = "x86_64") { &[1, 8, 16, 32] } else { &[1, 8] };

/// Widths of loads behind a call.
pub const WIDTHS_LOADED: [usize; 4] = [1, 2, 4, 8];

/// The byte that stores write, everywhere: compared operands stay equal.
pub const STORED: u8 = 0x5B;

impl AtOnce {
    /// Writes the source by stores of that width, the last of which ends where it ends.
    #[inline(always)]
    fn before(self, place: &Place) {
        let Some(width) = self.stored else { return };
        let mut at = 0;
        while at < place.n {
            let to = place.src.cast_mut().wrapping_add(at.min(place.n - width));
            // SAFETY: a store inside the source, which is the arena's, writable, and not shorter than the width.
            unsafe { store(to, width) };
            at += width;
        }
    }

    /// Loads; 0 whatever is there, but not before it is.
    #[inline(always)]
    fn after(self, from: *const u8) -> usize {
        let value = match self.loaded {
            // SAFETY: so many bytes of the destination or, where it has fewer, of a static.
            1 => u64::from(unsafe { from.read_volatile() }),
            // SAFETY: as above.
            2 => u64::from(unsafe { from.cast::<u16>().read_unaligned() }),
            // SAFETY: as above.
            4 => u64::from(unsafe { from.cast::<u32>().read_unaligned() }),
            // SAFETY: as above.
            _ => unsafe { from.cast::<u64>().read_unaligned() },
        };
        nothing(value)
    }
}

/// A branch to the next instruction if the result is not 0.
#[inline(always)]
fn branch_on(result: i32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it goes on behind itself either way.
    unsafe {
        std::arch::asm!("test {0:e}, {0:e}", "jnz 2f", "2:", in(reg) result, options(nomem, nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    if black_box(result) != 0 {
        black_box(result);
    }
}

/// 0, when the value is known.
#[inline(always)]
fn nothing(value: u64) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let mut value = value;
        // SAFETY: it makes 0 of a register, and tells no compiler.
        unsafe { std::arch::asm!("and {0}, 0", inout(reg) value, options(nomem, nostack)) };
        value as usize
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        (black_box(value) & black_box(0)) as usize
    }
}

/// One store of [`STORED`].
///
/// # Safety
/// The place is valid for writes of `width` bytes, and stores of 32 come only where the CPU has AVX.
#[inline(always)]
unsafe fn store(to: *mut u8, width: usize) {
    const WORD: u64 = u64::from_ne_bytes([STORED; 8]);
    match width {
        // SAFETY: the caller's promise.
        1 => unsafe { to.write_volatile(STORED) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        16 => unsafe {
            std::arch::asm!(
                "movq {v}, {word}", "punpcklqdq {v}, {v}", "movups [{to}], {v}",
                v = out(xmm_reg) _, word = in(reg) WORD, to = in(reg) to, options(nostack, preserves_flags)
            );
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; the upper half is cleared.
        32 => unsafe {
            std::arch::asm!(
                "vmovq xmm0, {word}", "vpunpcklqdq xmm0, xmm0, xmm0", "vinsertf128 ymm0, ymm0, xmm0, 1",
                "vmovups [{to}], ymm0", "vzeroupper",
                word = in(reg) WORD, to = in(reg) to, out("xmm0") _, options(nostack, preserves_flags)
            );
        },
        // SAFETY: as above.
        _ => unsafe { to.cast::<u64>().write_unaligned(WORD) },
    }
}

/// Calls in a row whose results are loaded from by loads of one width.
const ALIKE: usize = 64;

/// Addresses that calls are loaded from: at a drawn offset of what was written, which the width of the load divides, as a
/// member's offset is divided by its size. 64 calls in a row for each of [`WIDTHS_LOADED`] in turn; where
/// fewer bytes are written, elsewhere.
pub fn loads(places: &[Place], random: &mut Rng) -> Vec<*const u8> {
    static ELSEWHERE: [u64; 1] = [0];
    let mut all = Vec::with_capacity(places.len());
    for (part, width) in by_width(places) {
        all.extend(part.iter().map(|place| match place.n.checked_sub(width) {
            Some(room) => {
                let offset = random.usize(0..=room) / width * width;
                place.dst.cast_const().wrapping_add(offset)
            }
            None => ELSEWHERE.as_ptr().cast(),
        }));
    }
    all
}

/// Parts of a list that are loaded from by one width each: the same for the beginning of a list as for all of it.
fn by_width<T>(all: &[T]) -> impl Iterator<Item = (&[T], usize)> {
    zip(all.chunks(ALIKE), WIDTHS_LOADED.into_iter().cycle())
}

impl Callee {
    /// One call for each place. Its source has been written by stores of `stored` bytes just before, and its result is loaded
    /// from one of the [`loads`] at once, before the next begins.
    pub fn run_at_once(self, places: &[Place], loads: &[*const u8], stored: Option<usize>) {
        for ((places, loaded), loads) in zip(by_width(places), loads.chunks(ALIKE)) {
            self.chain(places, loads, AtOnce { stored, loaded });
        }
    }

    fn chain(self, places: &[Place], loads: &[*const u8], around: AtOnce) {
        match self.function {
            Function::Copy(f) | Function::Move(f) => {
                COPY_CHAINS[self.site](f, places, loads, around);
            }
            Function::Fill(f) => FILL_CHAINS[self.site](f, places, loads, around),
            Function::Zero(f) if fn_addr_eq(f, libc_zero as ZeroFn) => {
                MEMSET_CHAINS[self.site](memset, places, loads, around);
            }
            Function::Zero(f) => ZERO_CHAINS[self.site](f, places, loads, around),
            Function::Compare(f) | Function::Equal(f) => {
                COMPARISON_CHAINS[self.site](f, places, loads, around);
            }
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

/// Bytes of no operation.
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

macro_rules! chains {
    ($table:ident, $name:ident: $type:ty, $f:ident, $p:ident, $from:ident, $around:ident => $call:expr) => {
        #[inline(never)]
        fn $name<const SITE: usize>(
            $f: $type,
            places: &[Place],
            loads: &[*const u8],
            $around: AtOnce,
        ) {
            black_box(SITE);
            let mut known = 0;
            for (place, $from) in zip(places, loads) {
                let $p = &Place {
                    dst: place.dst.wrapping_add(known),
                    src: place.src.wrapping_add(known),
                    n: place.n,
                };
                $around.before($p);
                // SAFETY: as in `loops`; `known` is 0.
                known = unsafe { $call };
            }
            black_box(known);
        }

        static $table: [fn($type, &[Place], &[*const u8], AtOnce); SITES] = loops!(@table $name:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63);
    };
}

chains!(COPY_CHAINS, copy_chain: CopyFn, f, p, from, around => {
    f(p.dst, p.src, p.n);
    around.after(*from)
});
chains!(FILL_CHAINS, fill_chain: FillFn, f, p, from, around => {
    f(p.dst, i32::from(FILL_BYTE), p.n);
    around.after(*from)
});
chains!(MEMSET_CHAINS, memset_chain: FillFn, f, p, from, around => {
    f(p.dst, 0, p.n);
    around.after(*from)
});
chains!(ZERO_CHAINS, zero_chain: ZeroFn, f, p, from, around => {
    f(p.dst, p.n);
    around.after(*from)
});
chains!(COMPARISON_CHAINS, comparison_chain: CompareFn, f, p, _from, _around => {
    branch_on(f(p.dst, p.src, p.n));
    0
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_inside_what_was_written() {
        let mut bytes = [0u8; 64];
        let dst = bytes.as_mut_ptr();
        let place = |n: usize| Place { dst, src: dst, n };
        let places: Vec<Place> = (0..400).map(|at| place(at % 20)).collect();
        let loads = loads(&places, &mut Rng::with_seed(3));
        assert_eq!(loads.len(), places.len());
        for (at, (load, place)) in zip(&loads, &places).enumerate() {
            let width = WIDTHS_LOADED[at / ALIKE % 4];
            let offset = load.addr().wrapping_sub(dst.addr());
            if place.n >= width {
                assert!(offset + width <= place.n && offset.is_multiple_of(width), "{at}");
            } else {
                assert!(offset >= bytes.len(), "{at}: not written");
            }
        }
    }

    #[test]
    fn a_source_is_stored_to_its_end_and_no_further() {
        for width in WIDTHS_STORED
            .iter()
            .copied()
            .filter(|width| *width < 32 || Features::detect().contains(Features::AVX))
        {
            for n in width..70 {
                let mut bytes = [0u8; 72];
                let src = bytes.as_mut_ptr();
                AtOnce { stored: Some(width), loaded: 1 }.before(&Place { dst: src, src, n });
                assert!(bytes[..n].iter().all(|byte| *byte == STORED), "{width} {n}");
                assert!(bytes[n..].iter().all(|byte| *byte == 0), "{width} {n}");
            }
        }
    }

    #[test]
    fn each_launch_calls_from_other_loops() {
        let copy = Function::Copy(cachewise::raw::copy_nonoverlapping);
        let mut sites: Vec<usize> = (0..SITES as u32)
            .map(|launch| {
                begin_launch(launch);
                Callee::new(copy).site
            })
            .collect();
        begin_launch(0);
        sites.sort_unstable();
        assert!(sites.iter().copied().eq(0..SITES), "{sites:?}");
    }

    #[test]
    fn every_call_of_a_chain_is_made() {
        let (mut to, mut from) = ([0u8; 256], [0u8; 256]);
        let places: Vec<Place> = (0..16)
            .map(|at| Place {
                dst: to.as_mut_ptr().wrapping_add(16 * at),
                src: from.as_mut_ptr().wrapping_add(16 * at),
                n: 16,
            })
            .collect();
        let loads = loads(&places, &mut Rng::with_seed(3));
        let copy = Function::Copy(cachewise::raw::copy_nonoverlapping);
        Callee::new(copy).run_at_once(&places, &loads, Some(8));
        assert_eq!(to, [STORED; 256]);
        Callee::new(Function::Zero(cachewise::raw::zero)).run_at_once(&places, &loads, None);
        assert_eq!(to, [0; 256]);
    }
}
