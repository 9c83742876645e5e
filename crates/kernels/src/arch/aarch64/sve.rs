//! SVE: vectors of a length that only the CPU knows, 16 to 256 bytes, under predicates that cut the
//! last one to size. So these kernels have no edges at all: one byte is a vector with one lane on.
//!
//! The loops take four whole vectors a round and then predicated single ones. Loads under a
//! predicate touch no byte of an inactive lane (Arm ARM, A2.1 of the SVE supplement).

use crate::PAGE_SIZE;
use crate::arch::units::{difference, row};
use crate::isa::Features;
use crate::table::{Function, Kernel, RegisterClass, StoreKind};
use core::arch::asm;

/// The loops of one store instruction: ascending copy, descending copy, fill.
macro_rules! stores {
    ($($id:ident $store:literal $suffix:literal $row:expr, $about:literal;)*) => {$(
        mod $id {
            use super::*;

            /// # Safety
            /// As `CopyFn`, or overlapping with the destination below the source; SVE.
            #[target_feature(enable = "sve")]
            unsafe fn up(dst: *mut u8, src: *const u8, n: usize) {
                // SAFETY: x3 is where the next vector begins; a whole round runs while four vectors
                // are left (x6), and predicates end the rest at x2. A round's loads come before its
                // stores, and rounds ascend.
                unsafe {
                    asm!(
                        "mov x3, #0",
                        "rdvl x4, #4",
                        "subs x6, x2, x4",
                        "b.lo 3f",
                        "ptrue p0.b",
                        "2:",
                        "add x7, x1, x3",
                        "add x8, x0, x3",
                        "ld1b {{z0.b}}, p0/z, [x7]",
                        "ld1b {{z1.b}}, p0/z, [x7, #1, mul vl]",
                        "ld1b {{z2.b}}, p0/z, [x7, #2, mul vl]",
                        "ld1b {{z3.b}}, p0/z, [x7, #3, mul vl]",
                        concat!($store, " {{z0.b}}, p0, [x8]"),
                        concat!($store, " {{z1.b}}, p0, [x8, #1, mul vl]"),
                        concat!($store, " {{z2.b}}, p0, [x8, #2, mul vl]"),
                        concat!($store, " {{z3.b}}, p0, [x8, #3, mul vl]"),
                        "add x3, x3, x4",
                        "cmp x3, x6",
                        "b.ls 2b",
                        "3:",
                        "whilelo p0.b, x3, x2",
                        "b.none 5f",
                        "4:",
                        "ld1b {{z0.b}}, p0/z, [x1, x3]",
                        concat!($store, " {{z0.b}}, p0, [x0, x3]"),
                        "incb x3",
                        "whilelo p0.b, x3, x2",
                        "b.any 4b",
                        "5:",
                        in("x0") dst,
                        in("x1") src,
                        in("x2") n,
                        out("x3") _, out("x4") _, out("x6") _, out("x7") _, out("x8") _,
                        out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                        out("p0") _,
                        options(nostack),
                    );
                }
            }

            /// # Safety
            /// As `MoveFn` with the destination above the source; SVE.
            #[target_feature(enable = "sve")]
            unsafe fn down(dst: *mut u8, src: *const u8, n: usize) {
                // SAFETY: x2 bytes are left in front; a whole vector moves while one is left (x4),
                // and a predicate cuts the first. Each is loaded before it is stored.
                unsafe {
                    asm!(
                        "rdvl x4, #1",
                        "ptrue p0.b",
                        "2:",
                        "cmp x2, x4",
                        "b.lo 3f",
                        "sub x2, x2, x4",
                        "ld1b {{z0.b}}, p0/z, [x1, x2]",
                        concat!($store, " {{z0.b}}, p0, [x0, x2]"),
                        "b 2b",
                        "3:",
                        "whilelo p0.b, xzr, x2",
                        "ld1b {{z0.b}}, p0/z, [x1]",
                        concat!($store, " {{z0.b}}, p0, [x0]"),
                        in("x0") dst,
                        in("x1") src,
                        inout("x2") n => _,
                        out("x4") _,
                        out("v0") _,
                        out("p0") _,
                        options(nostack),
                    );
                }
            }

            /// # Safety
            /// As `FillFn`; SVE.
            #[target_feature(enable = "sve")]
            unsafe fn store(dst: *mut u8, byte: i32, n: usize) {
                // SAFETY: as `up`, without a source.
                unsafe {
                    asm!(
                        "mov z0.b, w1",
                        "mov x3, #0",
                        "rdvl x4, #4",
                        "subs x6, x2, x4",
                        "b.lo 3f",
                        "ptrue p0.b",
                        "2:",
                        "add x8, x0, x3",
                        concat!($store, " {{z0.b}}, p0, [x8]"),
                        concat!($store, " {{z0.b}}, p0, [x8, #1, mul vl]"),
                        concat!($store, " {{z0.b}}, p0, [x8, #2, mul vl]"),
                        concat!($store, " {{z0.b}}, p0, [x8, #3, mul vl]"),
                        "add x3, x3, x4",
                        "cmp x3, x6",
                        "b.ls 2b",
                        "3:",
                        "whilelo p0.b, x3, x2",
                        "b.none 5f",
                        "4:",
                        concat!($store, " {{z0.b}}, p0, [x0, x3]"),
                        "incb x3",
                        "whilelo p0.b, x3, x2",
                        "b.any 4b",
                        "5:",
                        in("x0") dst,
                        in("w1") byte,
                        in("x2") n,
                        out("x3") _, out("x4") _, out("x6") _, out("x8") _,
                        out("v0") _,
                        out("p0") _,
                        options(nostack),
                    );
                }
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`CopyFn`).
                unsafe { up(dst, src, n) };
                dst
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                if dst.addr().wrapping_sub(src.addr()) >= n {
                    // SAFETY: the destination does not start inside the source.
                    unsafe { up(dst, src, n) };
                } else {
                    // SAFETY: the destination starts inside the source.
                    unsafe { down(dst, src, n) };
                }
                dst
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`FillFn`); MOV takes the low byte of w1.
                unsafe { store(dst, byte, n) };
                dst
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`ZeroFn`).
                unsafe { store(dst, 0, n) };
                dst
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn copy_pages(dst: *mut u8, src: *const u8, order: u32) {
                // SAFETY: the caller's promise (`CopyPagesFn`).
                unsafe { up(dst, src, PAGE_SIZE << order) };
            }

            #[target_feature(enable = "sve")]
            unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
                // SAFETY: the caller's promise (`ZeroPagesFn`).
                unsafe { store(dst, 0, PAGE_SIZE << order) };
            }

            macro_rules! row {
                ($operation:literal, $grouping:literal, $function:expr) => {
                    Kernel {
                        name: concat!($operation, ".", $suffix),
                        about: $about,
                        grouping: $grouping,
                        function: $function,
                        ..$row
                    }
                };
            }
            pub(super) const ROWS: [Kernel; 6] = [
                row!("copy", 4, Function::Copy(copy)),
                row!("move", 4, Function::Move(r#move)),
                row!("fill", 0, Function::Fill(fill)),
                row!("zero", 0, Function::Zero(zero)),
                row!("copy-pages", 4, Function::CopyPages(copy_pages)),
                row!("zero-pages", 0, Function::ZeroPages(zero_pages)),
            ];
        }
    )*};
}

const ROW: Kernel = row(RegisterClass::Z, Features::SVE, 0);

stores! {
    plain "st1b" "sve" ROW, "SVE vectors of whatever length the CPU has, four a round, predicated ends";
    hinted "stnt1b" "sve.nt" Kernel { store: StoreKind::NonTemporal, ..ROW },
        "as sve with STNT1B: a hint that lines will not be needed, which a CPU may ignore";
}

/// How many bytes in front are equal; at least `n` minus a vector where none differs.
///
/// # Safety
/// As `CompareFn`; SVE.
#[target_feature(enable = "sve")]
unsafe fn equal_bytes(a: *const u8, b: *const u8, n: usize) -> usize {
    let at: usize;
    // SAFETY: predicates end the loop at n.
    unsafe {
        asm!(
            "mov x3, #0",
            "whilelo p0.b, x3, x2",
            "b.none 4f",
            "2:",
            "ld1b {{z0.b}}, p0/z, [x0, x3]",
            "ld1b {{z1.b}}, p0/z, [x1, x3]",
            "cmpne p1.b, p0/z, z0.b, z1.b",
            "b.any 3f",
            "incb x3",
            "whilelo p0.b, x3, x2",
            "b.any 2b",
            "mov x3, x2",
            "b 4f",
            "3:", // lanes before the first that differs
            "brkb p1.b, p0/z, p1.b",
            "incp x3, p1.b",
            "4:",
            in("x0") a,
            in("x1") b,
            in("x2") n,
            out("x3") at,
            out("v0") _, out("v1") _,
            out("p0") _, out("p1") _,
            options(nostack, readonly),
        );
    }
    at
}

#[target_feature(enable = "sve")]
unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    let at = unsafe { equal_bytes(a, b, n) };
    let left = if at < n { 1 } else { 0 };
    // SAFETY: the byte at `at` is inside where one is looked at.
    unsafe { difference(a.wrapping_add(at), b.wrapping_add(at), left) }
}

#[target_feature(enable = "sve")]
unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    i32::from(unsafe { equal_bytes(a, b, n) } == n)
}

const COMPARE: Kernel = Kernel {
    name: "compare.sve",
    store: StoreKind::None,
    about: "one SVE vector of either operand a round, BRKB and INCP to the byte that differs",
    function: Function::Compare(compare),
    ..ROW
};

pub(crate) const ROWS: &[Kernel] = crate::arch::units::rows![
    plain::ROWS,
    hinted::ROWS,
    [COMPARE, Kernel { name: "equal.sve", function: Function::Equal(equal), ..COMPARE }],
];
