//! From operation, hint and size to a kernel: the hot path of the decision table (`table.rs`), and the
//! functions that its slots stand for.
//!
//! A call of more than 128 bytes is compared with one number: up to it the table's answer is known,
//! the plain AVX loop, and is jumped to directly. Above it a call finds its kernel with two
//! dependent loads and an indirect jump. There is no lock. Slot 0 stands for the function that initialises. A call tests
//! for it, since it may come before `COPY` has its addresses:
//!
//! ```text
//! size -> class -> ROWS[operation and hint][class] -> COPY[slot] -> jump
//!                  one byte, 0 at first               a function, COPY[0] initialises
//! ```
//!
//! The function at slot 0 fills the table and then does the call's work, so the first call of a
//! process may come from any thread, from a signal handler, from a constructor before `main` or in
//! a forked child. It is here, above all that fills the table: nothing that runs meanwhile calls by the
//! table's functions.

use crate::early;
use crate::operands;
use crate::reuse::Reuse;
use crate::rows::row;
use crate::slots::{self, count};
use crate::source;
use crate::table::{self, ROWS};
use cachewise_kernels::kernel::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Function, Operation, TABLE};

/// The functions of each operation by slot.
macro_rules! functions {
    ($($name:ident: $type:ty, $operation:ident, $boot:ident, $libc:path, $by_operands:expr;)*) => {$(
        /// The operation's kernels by slot; the first fills the table, behind them is the C library's routine, and what
        /// decides between both.
        pub static $name: [$type; count(Operation::$operation) + 2 + $by_operands.len()] = {
            let by_operands: &[$type] = &$by_operands;
            let mut functions = [$boot as $type; count(Operation::$operation) + 2 + $by_operands.len()];
            let mut further = 0;
            while further < by_operands.len() {
                functions[count(Operation::$operation) + 2 + further] = by_operands[further];
                further += 1;
            }
            functions[count(Operation::$operation) + 1] = $libc;
            let (mut at, mut slot) = (0, 1);
            while at < TABLE.len() {
                if let Function::$operation(function) = TABLE[at].function
                    && TABLE[at].deploy
                {
                    functions[slot] = function;
                    slot += 1;
                }
                at += 1;
            }
            functions
        };
    )*};
}

/// Nothing else decides by the operands: fills have one, and comparisons have no such states.
const NONE: [FillFn; 0] = [];
const NO_ZEROS: [ZeroFn; 0] = [];
const NO_COMPARISONS: [CompareFn; 0] = [];

functions! {
    COPY: CopyFn, Copy, boot_copy, libc::copy, operands::COPIES;
    MOVE: CopyFn, Move, boot_move, libc::r#move, operands::MOVES;
    FILL: FillFn, Fill, boot_fill, libc::fill, NONE;
    ZERO: ZeroFn, Zero, boot_zero, libc::zero, NO_ZEROS;
    COMPARE: CompareFn, Compare, boot_compare, libc::compare, NO_COMPARISONS;
    EQUAL: CompareFn, Equal, boot_equal, libc::equal, NO_COMPARISONS;
}

/// The C library's routines, which the slot behind the kernels holds.
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::system as libc;
/// No row ever has that slot.
#[cfg(not(all(feature = "os", target_os = "linux")))]
mod libc {
    pub(super) use super::{
        boot_compare as compare, boot_copy as copy, boot_equal as equal, boot_fill as fill,
        boot_move as r#move, boot_zero as zero,
    };
}

/// The function for a size, by a row's number and the functions of its operation; `None` where nothing is decided yet.
#[inline(always)]
fn function<F: Copy>(functions: &[F], row: usize, n: usize) -> Option<F> {
    // SAFETY: every caller passes a row that `rows::row` made, which is below ROW_COUNT.
    let slot = unsafe { table::rows().get_unchecked(row) }.slot(n);
    if slot == 0 {
        return None;
    }
    // SAFETY: a row holds 0, what `slots::slot_of` or `operands::slot_of` made for a kernel of its operation, or what
    // `libc_slot` is for it: each is one of these functions.
    Some(unsafe { *functions.get_unchecked(slot) })
}

/// Slot of the kernel that every CPU of this build can run: for calls that come while the table is
/// being filled, by another thread or below this very call.
const fn fallback(operation: Operation) -> usize {
    let x86 = cfg!(all(target_arch = "x86_64", target_feature = "sse2"));
    // Without a row of that name, the reference's.
    let slots = [
        slots::named(operation, if x86 { b"sse2" } else { b"gpr64" }),
        slots::named(operation, b"bytes"),
    ];
    assert!(slots[1].0 != 0, "every operation has its reference kernel");
    if slots[0].0 != 0 { slots[0].0 as usize } else { slots[1].0 as usize }
}

/// Fills the table, if nobody is doing so, and gives what the call is to be done with. The hint of
/// the first call is not known here; it is a hint.
fn boot<F: Copy>(functions: &[F], operation: Operation, n: usize, fallback: usize) -> F {
    source::init();
    let slot = ROWS.get(row(operation, Reuse::Unknown)).map_or(0, |row| row.slot(n));
    let slot = if slot == 0 { fallback } else { slot };
    // SAFETY: not 0, and so either `slot_of`'s or `fallback`'s, both of this operation.
    unsafe { *functions.get_unchecked(slot) }
}

/// Returns whether addresses in memory are right yet (`early.rs`): whether the table's first is what is there.
fn is_relocated() -> bool {
    let (there, found): (usize, usize);
    // A compiler takes both addresses from memory, which is not relocated either.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an address, and the first word of a table, both by their distance from here.
    unsafe {
        core::arch::asm!(
            ".hidden {boot}",
            ".hidden {table}",
            "lea {there}, [rip + {boot}]",
            "mov {found}, qword ptr [rip + {table}]",
            boot = sym boot_copy,
            table = sym COPY,
            there = out(reg) there,
            found = out(reg) found,
            options(readonly, nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        there = boot_copy as CopyFn as usize;
        // SAFETY: the table's first word. Volatile: what it holds is known only once it is relocated.
        found = unsafe { (&raw const COPY).cast::<usize>().read_volatile() };
    }
    found == there
}

/// Functions that fill the table, by name.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod boots {
    pub use super::{
        boot_compare as COMPARE, boot_copy as COPY, boot_equal as EQUAL, boot_fill as FILL,
        boot_move as MOVE, boot_zero as ZERO,
    };
}

/// By operation the function that fills the table and then does the call's work, and the call of what the table says; `$n`
/// is the size among the arguments, and `$early` does the work where addresses are not right yet.
macro_rules! operations {
    ($($boot:ident $call:ident: $functions:ident, $operation:ident, ($($argument:ident: $type:ty),*) -> $result:ty, $n:ident,
        $early:ident($($passed:expr),*);)*) => {$(
        /// # Safety
        /// As the operation's kernels.
        #[cold]
        pub unsafe extern "C" fn $boot($($argument: $type),*) -> $result {
            if !is_relocated() {
                // SAFETY: the caller's promise.
                return unsafe { early::$early($($passed),*) };
            }
            const FALLBACK: usize = fallback(Operation::$operation);
            let kernel = boot(&$functions, Operation::$operation, $n, FALLBACK);
            // SAFETY: the caller's promise; the table holds kernels that this CPU can run.
            unsafe { kernel($($argument),*) }
        }

        /// # Safety
        /// As the operation's kernels.
        #[cfg_attr(
            all(target_arch = "x86_64", target_feature = "sse2"),
            allow(dead_code, reason = "comparisons have no hint, and so only their entries")
        )]
        #[inline(always)]
        pub(crate) unsafe fn $call(reuse: Reuse, $($argument: $type),*) -> $result {
            match function(&$functions, row(Operation::$operation, reuse), $n) {
                // SAFETY: the caller's promise; the table holds kernels that this CPU can run.
                Some(kernel) => unsafe { kernel($($argument),*) },
                // A call by name, whose distance from here is known before anything is relocated.
                // SAFETY: the caller's promise.
                None => unsafe { $boot($($argument),*) },
            }
        }
    )*};
}

operations! {
    boot_copy copy: COPY, Copy, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8, n, r#move(dst, src, n);
    boot_move r#move: MOVE, Move, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8, n, r#move(dst, src, n);
    boot_fill fill: FILL, Fill, (dst: *mut u8, byte: i32, n: usize) -> *mut u8, n, fill(dst, byte, n);
    boot_zero zero: ZERO, Zero, (dst: *mut u8, n: usize) -> *mut u8, n, fill(dst, 0, n);
    boot_compare compare: COMPARE, Compare, (a: *const u8, b: *const u8, n: usize) -> i32, n, compare(a, b, n);
    boot_equal equal: EQUAL, Equal, (a: *const u8, b: *const u8, n: usize) -> i32, n, equal(a, b, n);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::rows::OPERATIONS;

    #[test]
    fn every_operation_has_a_slot_for_each_of_its_kernels_and_a_fallback() {
        for operation in OPERATIONS {
            let kernels = || slots::kernels(operation);
            let numbers = kernels().map(|(slot, kernel)| {
                assert!(kernel.deploy && kernel.operation() == operation);
                assert_eq!(slots::slot_of(kernel), Some(slot));
                slot.0
            });
            assert!(numbers.eq(1..=count(operation) as u8));
            let (_, kernel) = kernels().nth(fallback(operation) - 1).expect("a kernel");
            assert!(kernel.runs_on(cachewise_kernels::Features::detect()), "{}", kernel.name);
        }
    }

    /// The number of the C library's slot does not follow from a count of functions.
    #[test]
    fn the_slot_behind_the_kernels_is_that_of_the_c_library() {
        let lengths = [COPY.len(), MOVE.len(), FILL.len(), ZERO.len(), COMPARE.len(), EQUAL.len()];
        for (operation, length) in OPERATIONS.into_iter().zip(lengths) {
            let by_operands = match operation {
                Operation::Copy | Operation::Move => operands::COPIES.len(),
                _ => 0,
            };
            let libc = usize::from(slots::libc_slot(operation).0);
            assert_eq!(libc + 1 + by_operands, length, "{operation}");
        }
    }

    #[test]
    fn a_program_that_runs_is_relocated() {
        assert!(is_relocated());
    }
}
