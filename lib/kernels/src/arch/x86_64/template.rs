//! The text of the hand-written copy loops: load and store instructions, grouping and prefetch
//! go in, one `asm!` template comes out. `gpr`, `mmx`, `sse` and `sse2_period` instantiate it.
//!
//! Register convention of every template: `rdi` destination, `rsi` source, `rcx` how many units
//! to copy (at least one). Scratch: `rax`, `rdx`, `r8`, `r9`, `r10`, flags, and the data registers
//! that the group names. Labels are local numbers from 2 on (0 and 1 read as binary literals).

/// The instructions of one unit: group by group, first the group's loads, then its stores.
macro_rules! groups {
    ($load:literal, $store:literal, $([$($register:literal $offset:literal),+])+) => {
        concat!($(
            $($load, " ", $register, ", [rsi + ", $offset, "]\n",)+
            $($store, " [rdi + ", $offset, "], ", $register, "\n",)+
        )+)
    };
}

/// Units one after another.
macro_rules! loop_plain {
    ($group:expr, $bytes:literal) => {
        concat!(
            ".p2align 4\n2:\n",
            $group,
            concat!("add rsi, ", $bytes, "\nadd rdi, ", $bytes, "\ndec rcx\njnz 2b\n"),
        )
    };
}

/// Each unit of 64 bytes asks for the line that lies 320 bytes ahead, to the end and past it.
#[cfg(feature = "lab")]
macro_rules! loop_pf320 {
    ($group:expr) => {
        loop_plain!(concat!("prefetchnta [rsi + 320]\n", $group), 64)
    };
}

/// Seed 000's form: the first 320 bytes are asked for at once, then each unit of 64 bytes asks for
/// the line 320 bytes ahead, and the last 320 bytes are copied without prefetch.
#[cfg(feature = "lab")]
macro_rules! loop_vlasenko {
    ($group:expr) => {
        concat!(
            "cmp rcx, 5\njbe 3f\n",
            "prefetchnta [rsi]\nprefetchnta [rsi + 64]\nprefetchnta [rsi + 128]\n",
            "prefetchnta [rsi + 192]\nprefetchnta [rsi + 256]\n",
            "sub rcx, 5\n",
            loop_pf320!($group),
            "mov ecx, 5\n",
            ".p2align 4\n3:\n",
            $group,
            "add rsi, 64\nadd rdi, 64\ndec rcx\njnz 3b\n",
        )
    };
}

/// Block prefetch: a real load from each line of a block of `$lines` lines, in ascending or
/// descending order of address, then the block is copied in ascending order; the last block is as
/// short as what is left.
#[cfg(feature = "lab")]
macro_rules! loop_block {
    (ascending, $lines:literal, $group:expr) => {
        loop_block!(
            @ $lines,
            "mov r9, rsi\nmov r10, r8\n4:\nmov eax, [r9]\nadd r9, 64\ndec r10\njnz 4b\n",
            $group
        )
    };
    (descending, $lines:literal, $group:expr) => {
        loop_block!(
            @ $lines,
            "mov r10, r8\nshl r10, 6\n4:\nmov eax, [rsi + r10 - 64]\nsub r10, 64\njnz 4b\n",
            $group
        )
    };
    (@ $lines:literal, $touch:literal, $group:expr) => {
        concat!(
            concat!("3:\nmov r8d, ", $lines, "\n"),
            "cmp rcx, r8\ncmovb r8, rcx\nsub rcx, r8\n",
            $touch,
            ".p2align 4\n2:\n",
            $group,
            "add rsi, 64\nadd rdi, 64\ndec r8\njnz 2b\n",
            "test rcx, rcx\njnz 3b\n",
        )
    };
}

/// Runs a copy template under the convention above, clobbering also the registers listed, or all of a class that
/// templates name.
macro_rules! copy_units {
    ($dst:expr, $src:expr, $units:expr, $template:expr; xmm) => {
        copy_units!($dst, $src, $units, $template,
            "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7")
    };
    ($dst:expr, $src:expr, $units:expr, $template:expr; x87 $(, $clobber:tt)*) => {
        copy_units!($dst, $src, $units, $template,
            "st(0)", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" $(, $clobber)*)
    };
    ($dst:expr, $src:expr, $units:expr, $template:expr $(, $clobber:tt)*) => {
        // SAFETY: `around` passes one or more whole units that lie inside both buffers, and
        // the caller of the kernel vouches for the instructions; the template touches nothing but
        // those units (it may prefetch beyond, which cannot fault) and the registers named here.
        unsafe {
            core::arch::asm!(
                $template,
                inout("rdi") $dst => _,
                inout("rsi") $src => _,
                inout("rcx") $units => _,
                out("rax") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
                $(out($clobber) _,)*
                options(nostack),
            )
        }
    };
}

/// Copies by SSE registers, each of that name: integer edges around a loop over units of `$unit` bytes, in one version
/// for an aligned source and one for any, closed by `$last`.
#[cfg(all(feature = "lab", target_feature = "sse2"))]
macro_rules! sse_copies {
    ($($name:ident, $unit:literal: $aligned:expr, $unaligned:expr, $last:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let body = |dst: *mut u8, src: *const u8, units: usize| {
                if src.addr().is_multiple_of(16) {
                    copy_units!(dst, src, units, concat!($aligned, $last); xmm);
                } else {
                    copy_units!(dst, src, units, concat!($unaligned, $last); xmm);
                }
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { around::<16, $unit>(dst, src, n, body) }
        }
    )+};
}
