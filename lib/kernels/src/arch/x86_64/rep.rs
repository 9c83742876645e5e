//! The string instructions, which choose width, order and cache policy for themselves.
//!
//! They run everywhere; ERMS and FSRM say only that `rep movsb` and `rep stosb` are fast, which is
//! the profile's concern. The direction flag is clear by the ABI, and stays so: `std; rep movs` is
//! microcode's slow path, so the moves descend by vectors instead, or by integer registers on a
//! target that keeps off the vectors.

use super::edge::{copy as copy_edge, to_alignment};
#[cfg(feature = "lab")]
use super::edge::{fill as fill_edge, pattern};
#[cfg(target_feature = "sse2")]
use super::family::{self, Shape, Shaped};
#[cfg(not(target_feature = "sse2"))]
use super::gpr::copy_descending as descend;
#[cfg(target_feature = "sse2")]
use super::vector::Xmm;
use crate::PAGE_SIZE;
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;

/// A function of that name around one repeated `movs` of `count` units.
macro_rules! movs {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// `src` is readable and `dst` writable for `count` units of the instruction; if they
        /// overlap, the destination starts below the source.
        #[inline(always)]
        unsafe fn $name(dst: *mut u8, src: *const u8, count: usize) {
            // SAFETY: the caller's promise, with the direction flag clear.
            unsafe {
                asm!(
                    $instruction,
                    inout("rdi") dst => _,
                    inout("rsi") src => _,
                    inout("rcx") count => _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}
movs!(movsb, "rep movsb");
#[cfg(feature = "lab")]
movs!(movsd, "rep movsd");
#[cfg(feature = "lab")]
movs!(movsq, "rep movsq");

/// A function of that name around one repeated `stos` of `count` units.
macro_rules! stos {
    ($name:ident, $instruction:literal) => {
        /// # Safety
        /// `dst` is writable for `count` units of the instruction.
        #[inline(always)]
        unsafe fn $name(dst: *mut u8, pattern: u64, count: usize) {
            // SAFETY: the caller's promise, with the direction flag clear.
            unsafe {
                asm!(
                    $instruction,
                    inout("rdi") dst => _,
                    inout("rcx") count => _,
                    in("rax") pattern,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}
stos!(stosb, "rep stosb");
#[cfg(feature = "lab")]
stos!(stosd, "rep stosd");
#[cfg(feature = "lab")]
stos!(stosq, "rep stosq");

unsafe extern "C" fn copy_movsb(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { movsb(dst, src, n) };
    dst
}

/// Overlap with the destination below the source is right here too.
unsafe extern "C" fn copy_movsb_aligned(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let head = to_alignment(dst, 64);
    if n <= head {
        // SAFETY: the caller's promise; ascending.
        unsafe { copy_edge(dst, src, n) };
        return dst;
    }
    // SAFETY: head < n.
    unsafe { copy_edge(dst, src, head) };
    // SAFETY: n - head bytes are left; ascending.
    unsafe { movsb(dst.wrapping_add(head), src.wrapping_add(head), n - head) };
    dst
}

/// Copies from the top down.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes.
#[cfg(target_feature = "sse2")]
unsafe fn descend(dst: *mut u8, src: *const u8, n: usize) {
    struct Plain;
    impl Shaped for Plain {
        const SHAPE: Shape = Shape::PLAIN;
    }
    // SAFETY: the caller's promise; a move of that shape finds the direction itself.
    unsafe { family::r#move::<Xmm, Plain>(dst, src, n) };
}

/// A move of that name: the copy where ascending is right, else [`descend`].
macro_rules! move_by {
    ($name:ident, $ascending:ident) => {
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            if dst.addr().wrapping_sub(src.addr()) < n {
                // SAFETY: the destination starts inside the source, so descending is right.
                unsafe { descend(dst, src, n) };
                return dst;
            }
            // SAFETY: the destination does not start inside the source, so ascending is right.
            unsafe { $ascending(dst, src, n) }
        }
    };
}
move_by!(move_movsb, copy_movsb);
move_by!(move_movsb_aligned, copy_movsb_aligned);

unsafe extern "C" fn fill_stosb(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stosb(dst, u64::from(byte as u8), n) };
    dst
}

unsafe extern "C" fn zero_stosb(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stosb(dst, 0, n) };
    dst
}

unsafe extern "C" fn copy_pages_movsb(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller vouches for that many bytes.
    unsafe { movsb(dst, src, PAGE_SIZE << order) };
}

unsafe extern "C" fn zero_pages_stosb(dst: *mut u8, order: u32) {
    // SAFETY: the caller vouches for that many bytes.
    unsafe { stosb(dst, 0, PAGE_SIZE << order) };
}

/// A copy, a fill and a zero of those names by units of `$unit` bytes, the remainder by an edge.
#[cfg(feature = "lab")]
macro_rules! by_units {
    ($copy:ident, $movs:ident, $fill:ident, $zero:ident, $stos:ident, $unit:literal) => {
        unsafe extern "C" fn $copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let rest = n % $unit;
            // SAFETY: the units are the first n - rest bytes.
            unsafe { $movs(dst, src, n / $unit) };
            // SAFETY: the rest follows them.
            unsafe { copy_edge(dst.wrapping_add(n - rest), src.wrapping_add(n - rest), rest) };
            dst
        }

        unsafe extern "C" fn $fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
            let (rest, pattern) = (n % $unit, pattern(byte));
            // SAFETY: the units are the first n - rest bytes.
            unsafe { $stos(dst, pattern, n / $unit) };
            // SAFETY: the rest follows them.
            unsafe { fill_edge(dst.wrapping_add(n - rest), pattern, rest) };
            dst
        }

        unsafe extern "C" fn $zero(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $fill(dst, 0, n) }
        }
    };
}
#[cfg(feature = "lab")]
by_units!(copy_movsl, movsd, fill_stosl, zero_stosl, stosd, 4);
#[cfg(feature = "lab")]
by_units!(copy_movsq, movsq, fill_stosq, zero_stosq, stosq, 8);

#[cfg(feature = "lab")]
unsafe extern "C" fn copy_pages_movsq(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller vouches for that many bytes, a multiple of eight.
    unsafe { movsq(dst, src, (PAGE_SIZE << order) / 8) };
}

#[cfg(feature = "lab")]
unsafe extern "C" fn zero_pages_stosq(dst: *mut u8, order: u32) {
    // SAFETY: the caller vouches for that many bytes, a multiple of eight.
    unsafe { stosq(dst, 0, (PAGE_SIZE << order) / 8) };
}

#[cfg(feature = "lab")]
unsafe extern "C" fn compare_cmpsb(a: *const u8, b: *const u8, n: usize) -> i32 {
    let order;
    // SAFETY: `cmpsb` reads up to n bytes at both, which the caller vouches for. `xor` sets the
    // flags to "equal" for n = 0, where `repe cmpsb` leaves them alone.
    unsafe {
        asm!(
            "xor eax, eax",
            "repe cmpsb",
            "seta al",
            "sbb eax, 0",
            inout("rsi") a => _,
            inout("rdi") b => _,
            inout("rcx") n => _,
            out("eax") order,
            options(nostack, readonly),
        );
    }
    order
}

#[cfg(feature = "lab")]
unsafe extern "C" fn equal_cmpsb(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    i32::from(unsafe { compare_cmpsb(a, b, n) } == 0)
}

const ROW: Kernel =
    Kernel { store: StoreKind::String, ..row(RegisterClass::Gpr, Features::NONE, 0) };
#[cfg(target_feature = "sse2")]
const MOVE: Kernel = Kernel {
    requires: Features::SSE2,
    registers: RegisterClass::Xmm,
    about: "rep movsb upwards, SSE2 registers downwards",
    ..ROW
};
#[cfg(not(target_feature = "sse2"))]
const MOVE: Kernel =
    Kernel { about: "rep movsb upwards, 64-bit integer registers downwards", ..ROW };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.rep.movsb" like ROW, Copy(copy_movsb),
        "rep movsb, whatever its microcode makes of it (seed 000.15)";
    "move.rep.movsb" like MOVE, Move(move_movsb), MOVE.about;
    "copy.rep.movsb.aligned" like ROW, Copy(copy_movsb_aligned),
        "integer stores up to a 64-byte boundary of the destination, then rep movsb";
    "move.rep.movsb.aligned" like MOVE, Move(move_movsb_aligned),
        "copy.rep.movsb.aligned upwards, as move.rep.movsb downwards";
    "fill.rep.stosb" like ROW, Fill(fill_stosb), "rep stosb";
    "zero.rep.stosb" like ROW, Zero(zero_stosb), "rep stosb of zero (seed 000.15)";
    "copy-pages.rep.movsb" like ROW, CopyPages(copy_pages_movsb), "rep movsb";
    "zero-pages.rep.stosb" like ROW, ZeroPages(zero_pages_stosb), "rep stosb of zero";
};

#[cfg(feature = "lab")]
const LAB: Kernel = Kernel { deploy: false, ..ROW };
#[cfg(feature = "lab")]
const COMPARE: Kernel = Kernel { store: StoreKind::None, ..LAB };

#[cfg(feature = "lab")]
pub(crate) const LAB_ROWS: &[Kernel] = kernels! {
    "copy.rep.movsl" like LAB, Copy(copy_movsl) { aliases: &["slow"] },
        "seed 000 slow: rep movsd (AT&T's movsl), the last bytes by integer registers";
    "copy.rep.movsq" like LAB, Copy(copy_movsq) { aliases: &["copy0"] },
        "seed 002 copy0: rep movsq, the last bytes by integer registers";
    "fill.rep.stosl" like LAB, Fill(fill_stosl),
        "rep stosd (AT&T's stosl), the last bytes by integer registers";
    "fill.rep.stosq" like LAB, Fill(fill_stosq), "rep stosq, the last bytes by integer registers";
    "zero.rep.stosl" like LAB, Zero(zero_stosl) { aliases: &["slow"] },
        "seed 000 slow: rep stosd (AT&T's stosl), the last bytes by integer registers";
    "zero.rep.stosq" like LAB, Zero(zero_stosq), "rep stosq of zero, the last bytes by integer registers";
    "compare.rep.cmpsb" like COMPARE, Compare(compare_cmpsb), "repe cmpsb, a byte at a time in microcode";
    "equal.rep.cmpsb" like COMPARE, Equal(equal_cmpsb), "repe cmpsb, a byte at a time in microcode";
    "copy-pages.rep.movsq" like LAB, CopyPages(copy_pages_movsq), "rep movsq";
    "zero-pages.rep.stosq" like LAB, ZeroPages(zero_pages_stosq), "rep stosq of zero";
};
