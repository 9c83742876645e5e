//! Macros that the entries are written in: vectors of four kinds, groups of them, and the jump into the
//! table.
//!
//! | kind | registers | bytes | leaves |
//! |---|---|---|---|
//! | `sse` | xmm0-15 | 16 | nothing |
//! | `avx` | ymm0-15 | 32 | upper halves, which `done` clears |
//! | `evex32` `evex64` | ymm, zmm 20-29 | 32, 64 | nothing that slows SSE down |
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
    // Of a fill's entry by that name, too.
    (done avx2) => {
        "vzeroupper\n"
    };
    (done avx) => {
        "vzeroupper\n"
    };
    (done $other:ident) => {
        ""
    };
    ($what:ident sse $r:literal $at:expr) => {
        $crate::entry_vector!($what "movups ", "movaps ", "xmm" $r $at)
    };
    ($what:ident avx $r:literal $at:expr) => {
        $crate::entry_vector!($what "vmovdqu ", "vmovdqa ", "ymm" $r $at)
    };
    ($what:ident evex32 $r:literal $at:expr) => {
        $crate::entry_vector!($what "vmovdqu64 ", "vmovdqa64 ", "ymm2" $r $at)
    };
    ($what:ident evex64 $r:literal $at:expr) => {
        $crate::entry_vector!($what "vmovdqu64 ", "vmovdqa64 ", "zmm2" $r $at)
    };
    (load $any:literal, $aligned:literal, $v:literal $r:literal $at:expr) => {
        concat!($any, $v, $r, ", ", $at, "\n")
    };
    (store $any:literal, $aligned:literal, $v:literal $r:literal $at:expr) => {
        concat!($any, $at, ", ", $v, $r, "\n")
    };
    (put $any:literal, $aligned:literal, $v:literal $r:literal $at:expr) => {
        concat!($aligned, $at, ", ", $v, $r, "\n")
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

/// To what fills the table, where nobody has yet: a program that makes only calls that an entry does by itself
/// follows its profile as well. For `sse2` alone, which comes before it.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_decided {
    () => {
        ".hidden {rows}\n.hidden {boot}\n\
         cmp byte ptr [rip + {rows} + {row} * {row_bytes} + 8], 0\n\
         je {boot}\n"
    };
}

/// The next two ranges of the row: a jump to the function of each. `$n` is the register of the size, `$row` the
/// operand with the row's number, `$arguments` what makes the routine's arguments of the operation's.
///
/// By the table it would be a look-up more: 6 to 9 % of a call of 2 KiB.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_next {
    ($n:literal, $row:literal, $arguments:literal) => {
        concat!(
            ".hidden {next}\n",
            concat!("cmp ", $n, ", [rip + {next} + {", $row, "} * {next_bytes}]\n"),
            "ja 42f\n",
            $arguments,
            concat!("jmp [rip + {next} + {", $row, "} * {next_bytes} + 8]\n"),
            "42:\n",
            concat!("cmp ", $n, ", [rip + {next} + {", $row, "} * {next_bytes} + 16]\n"),
            "ja 45f\n",
            $arguments,
            concat!("jmp [rip + {next} + {", $row, "} * {next_bytes} + 24]\n"),
            "45:\n",
        )
    };
}

/// From a size to its kernel, as `class::class` and `dispatch::function` have it, and a jump
/// there. `$n` is the register of the size.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_through_the_table {
    ($n:literal) => {
        concat!(
            // Nobody outside the library or program that this is linked into has them, so that
            // their distance from here is known, in a shared library too.
            ".hidden {rows}\n.hidden {functions}\n",
            concat!("cmp ", $n, ", 4096\n"),
            "jae 3f\n",
            concat!("mov rcx, ", $n, "\n"),
            "shr rcx, 5\n",
            "2:\n",
            "lea r8, [rip + {rows} + {row} * {row_bytes}]\n",
            "movzx ecx, byte ptr [r8 + rcx]\n",
            // The function that fills the table is jumped to by its distance: where a resolver of another
            // library calls before this one is relocated, there are no addresses in any table yet.
            ".hidden {boot}\n",
            "test ecx, ecx\n",
            "jz {boot}\n",
            "lea r8, [rip + {functions}]\n",
            "jmp qword ptr [r8 + rcx * 8]\n",
            // An eighth of an octave: class = 128 + 8 * (octave - 12) + (n >> (octave - 3)) - 8.
            "3:\n",
            concat!("bsr r9, ", $n, "\n"),
            "lea ecx, [r9 - 3]\n",
            concat!("mov r8, ", $n, "\n"),
            "shr r8, cl\n",
            "lea rcx, [r8 + r9 * 8 + 24]\n",
            "jmp 2b\n",
        )
    };
}

/// The way of an exported function to the entry that was chosen; `avx2` follows. Fills and comparisons go to `avx512vl`
/// `first`, since its small sizes are others, and to `sse2` behind them; copies to both there.
///
/// A number is compared rather than a pointer followed: it needs no relocation, so that a call may come before
/// the library is relocated. No branch on the size waits for it (`docs/decisions/entry-stubs.md`).
///
/// The target is hidden: in a shared library that has this in it the jump would else be to a procedure
/// linkage table, whose first use calls the dynamic linker, and the flags are lost.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_choice {
    (chosen first) => {
        $crate::entry_choice!(ja "{avx512vl}")
    };
    (chosen then) => {
        $crate::entry_choice!(jne "{sse2}")
    };
    (chosen copy) => {
        $crate::entry_choice!(jne "{others}")
    };
    // Behind the instruction that says what is returned, of three bytes.
    (behind copy) => {
        ".hidden {sse2}\n{{disp32}} jb {sse2} + 3\n"
    };
    (whole $place:ident) => {
        ""
    };
    ($jump:ident $entry:literal) => {
        concat!(
            concat!(".hidden {chosen}\n.hidden ", $entry, "\n"),
            "cmp byte ptr [rip + {chosen} + {operation}], {avx2}\n",
            concat!("{{disp32}} ", stringify!($jump), " ", $entry, "\n"),
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
            ".hidden {direct}",
            $($text,)+
            // Not every text refers to all of them.
            "/* {direct} {next} {next_bytes} {chosen} {operation} {avx2} */",
            "/* {rows} {row} {row_bytes} {functions} {boot} */",
            direct = sym $crate::entry::DIRECT,
            next = sym $crate::entry::NEXT,
            next_bytes = const $crate::entry::NEXT_BYTES,
            chosen = sym $crate::entry::CHOSEN,
            operation = const $crate::entry::place($operation),
            avx2 = const $crate::entry::AVX2,
            rows = sym $crate::entry::ROWS,
            row = const $crate::entry::$row,
            row_bytes = const $crate::entry::ROW_BYTES,
            functions = sym $crate::entry::$functions,
            boot = sym $crate::entry::boots::$functions
            $($operand)*
        )
    };
}
