//! What the entries are written in: vectors of five kinds, groups of them, and the jump into the
//! table.
//!
//! | kind | registers | bytes | leaves |
//! |---|---|---|---|
//! | `sse` | xmm0-15 | 16 | nothing |
//! | `avx` | ymm0-15 | 32 | upper halves, which `done` clears |
//! | `evex16` `evex32` `evex64` | xmm, ymm, zmm 20-29 | 16, 32, 64 | nothing that slows SSE down |
//!
//! A register is named by its number in the description, 0 to 9 (`avx`: to 15); with EVEX these are
//! the registers 20 to 29, which no SSE instruction can name. So there is nothing to clear, and the
//! code may run inside a transaction, which `vzeroupper` may abort (Intel SDM volume 1, 16.3.8.1).

/// Bytes of a vector, as text.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_width {
    (sse) => {
        "16"
    };
    (avx) => {
        "32"
    };
    (evex16) => {
        "16"
    };
    (evex32) => {
        "32"
    };
    (evex64) => {
        "64"
    };
}

/// One vector: `load`, `store`, or `put` to an aligned place; or `done`, before a return.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_vector {
    (load sse $r:literal $at:expr) => {
        concat!("movups xmm", $r, ", ", $at, "\n")
    };
    (store sse $r:literal $at:expr) => {
        concat!("movups ", $at, ", xmm", $r, "\n")
    };
    (load avx $r:literal $at:expr) => {
        concat!("vmovdqu ymm", $r, ", ", $at, "\n")
    };
    (store avx $r:literal $at:expr) => {
        concat!("vmovdqu ", $at, ", ymm", $r, "\n")
    };
    (put avx $r:literal $at:expr) => {
        concat!("vmovdqa ", $at, ", ymm", $r, "\n")
    };
    (load evex16 $r:literal $at:expr) => {
        concat!("vmovdqu64 xmm2", $r, ", ", $at, "\n")
    };
    (store evex16 $r:literal $at:expr) => {
        concat!("vmovdqu64 ", $at, ", xmm2", $r, "\n")
    };
    (load evex32 $r:literal $at:expr) => {
        concat!("vmovdqu64 ymm2", $r, ", ", $at, "\n")
    };
    (store evex32 $r:literal $at:expr) => {
        concat!("vmovdqu64 ", $at, ", ymm2", $r, "\n")
    };
    (load evex64 $r:literal $at:expr) => {
        concat!("vmovdqu64 zmm2", $r, ", ", $at, "\n")
    };
    (store evex64 $r:literal $at:expr) => {
        concat!("vmovdqu64 ", $at, ", zmm2", $r, "\n")
    };
    (put evex64 $r:literal $at:expr) => {
        concat!("vmovdqa64 ", $at, ", zmm2", $r, "\n")
    };
    (done avx) => {
        "vzeroupper\n"
    };
    (done $other:ident) => {
        ""
    };
}

/// Vectors at places from a base on, in vectors: `load avx "rsi": 0 "+ 0", 1 "+ rdx - 1"` loads the
/// first and the last 32 of rdx bytes. A place ends with a number.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_group {
    ($what:ident $kind:ident $base:literal: $($r:literal $at:expr),+) => {
        concat!($(
            $crate::entry_vector!($what $kind $r
                concat!("[", $base, " ", $at, " * ", $crate::entry_width!($kind), "]"))
        ),+)
    };
}

/// What stores up to two vectors of `$width` bytes without a branch on the size: k1 has the
/// mask of the first vector of them, and `$half` becomes the place of the last vector, or 0 where there
/// are no more bytes than one holds. Both blocks then go under the one mask: up to a vector they are the
/// same block, beyond it the mask is full. So no block reaches further than `$width` bytes, which one
/// mask of twice as many would, into lines that may not be in cache and pages that may not be there. No
/// bytes at all, whose pointers are often to nothing, return at label 25.
///
/// `unless_at_the_end` of a page asks first, of these addresses, and goes to the classes at label 21.
/// What is masked off faults nowhere, but where its page is absent the CPU takes a fifth of a
/// microsecond and more to find that out: each time before memory that was never written, or at the end
/// of a mapping that is read.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_mask {
    (in_page $at:literal) => {
        concat!("mov r9d, ", $at, "\n", "and r9d, 4095\n")
    };
    (unless_at_the_end $width:literal) => {
        concat!("cmp r9d, 4096 - ", $width, "\nja 21f\n")
    };
    (ones) => {
        "mov ecx, -1\n"
    };
    ($width:literal $half:literal) => {
        concat!(
            "xor r8d, r8d\n",
            "bzhi ecx, ecx, ",
            $half,
            "\n",
            "jz 25f\n",
            "sub ",
            $half,
            ", ",
            $width,
            "\n",
            "kmovd k1, ecx\n",
            "cmovb ",
            $half,
            ", r8d\n",
        )
    };
}

/// The sizes that are the C library's: a jump to its routine, `$routine`. `$n` is the register of the
/// size, `$row` the operand with the row's number, `$arguments` what makes the routine's arguments of the
/// operation's.
///
/// Handing over by the table costs a look-up and a jump more: 6 to 9 % of a call of 2 KiB.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_libc {
    ($n:literal, $row:literal, $arguments:literal, $routine:expr) => {
        concat!(
            ".hidden {libc}\n",
            "mov rcx, ",
            $n,
            "\n",
            "sub rcx, [rip + {libc} + {",
            $row,
            "} * {libc_bytes}]\n",
            "cmp rcx, [rip + {libc} + {",
            $row,
            "} * {libc_bytes} + 8]\n",
            "jae 42f\n",
            $arguments,
            "jmp ",
            $routine,
            "\n",
            "42:\n",
        )
    };
}

/// The place of the routine of that number in [`ROUTINES`](crate::entry::ROUTINES).
#[doc(hidden)]
#[macro_export]
macro_rules! entry_routine {
    ($number:literal) => {
        concat!("qword ptr [rip + {routines} + ", $number, " * 8]")
    };
}

/// From a size to its kernel, as `dispatch::class` and `dispatch::function` have it, and a jump
/// there. `$n` is the register of the size.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_through_the_table {
    ($n:literal) => {
        concat!(
            // Nobody outside the library or program that this is linked into has them, so that
            // their distance from here is known, in a shared library too.
            ".hidden {rows}\n.hidden {functions}\n",
            "cmp ",
            $n,
            ", 4096\n",
            "jae 3f\n",
            "mov rcx, ",
            $n,
            "\n",
            "shr rcx, 5\n",
            "2:\n",
            "lea r8, [rip + {rows} + {row} * {row_bytes}]\n",
            "movzx ecx, byte ptr [r8 + rcx]\n",
            // What fills the table is jumped to by its distance: where a resolver of another
            // library calls before this one is relocated, there are no addresses in any table yet.
            ".hidden {boot}\n",
            "test ecx, ecx\n",
            "jz {boot}\n",
            "lea r8, [rip + {functions}]\n",
            "jmp qword ptr [r8 + rcx * 8]\n",
            // An eighth of an octave: class = 128 + 8 * (octave - 12) + (n >> (octave - 3)) - 8.
            "3:\n",
            "bsr r9, ",
            $n,
            "\n",
            "lea ecx, [r9 - 3]\n",
            "mov r8, ",
            $n,
            "\n",
            "shr r8, cl\n",
            "lea rcx, [r8 + r9 * 8 + 24]\n",
            "jmp 2b\n",
        )
    };
}

/// The first instructions of a function that is one operation: to the entry that was chosen, unless
/// that is `avx512vl.masked`, which follows. `avx2` is reached by one jump in both of its parts. `$n` is the lower half of the register of
/// the size: a size that seems small by that is looked at again in the first part.
///
/// One byte is asked rather than a pointer followed: it needs no relocation, so that a call may
/// come before the library is relocated, and costs less than the pointer did
/// (`docs/decisions/entry-stubs.md`).
#[doc(hidden)]
#[macro_export]
macro_rules! entry_choice {
    ($n:literal) => {
        concat!(
            ".hidden {chosen}\n",
            "cmp ",
            $n,
            ", [rip + {chosen} + {operation} * 4]\n",
            "ja {larger}\n",
            "cmp byte ptr [rip + {chosen} + {ways} + {operation}], {follows}\n",
            "ja {avx2}\n",
            "jb {other}\n",
        )
    };
}

/// One entry: its text, and all that the texts refer to. `$functions` names the operation's table and
/// what fills it, `$row` its row without a hint.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_text {
    ($functions:ident, $row:ident, $operation:expr, ($($text:expr),+ $(,)?) $($operand:tt)*) => {
        core::arch::naked_asm!(
            ".hidden {direct}\n.hidden {routines}\n.hidden {larger}",
            $($text,)+
            // Not every text refers to all of them.
            "/* {direct} {libc} {libc_bytes} {routines} {chosen} {ways} {larger} {operation} {follows} */",
            "/* {rows} {row} {row_bytes} {functions} {boot} */",
            direct = sym $crate::entry::DIRECT,
            libc = sym $crate::entry::LIBC,
            libc_bytes = const $crate::entry::LIBC_BYTES,
            routines = sym $crate::entry::ROUTINES,
            chosen = sym $crate::entry::CHOSEN,
            ways = const $crate::entry::WAYS,
            operation = const $crate::entry::place($operation),
            follows = const $crate::entry::MASKED,
            rows = sym $crate::entry::ROWS,
            row = const $crate::entry::$row,
            row_bytes = const $crate::entry::ROW_BYTES,
            functions = sym $crate::entry::$functions,
            boot = sym $crate::entry::boots::$functions
            $($operand)*
        )
    };
}
