//! The loops of `twins`, for x86-64, and their measuring.

use crate::prelude::*;
use cachewise_kernels::CACHE_LINE;
use std::arch::asm;
use std::sync::atomic::AtomicU64;

/// Copies whole lines between operands that are 16-aligned and apart.
type CopyLines = unsafe fn(dst: *mut u8, src: *const u8, lines: usize);

/// The target of the stray stores: sixty-four lines of their own.
#[repr(align(64))]
struct Elsewhere([AtomicU64; 512]);

static ELSEWHERE: Elsewhere = Elsewhere([const { AtomicU64::new(0) }; 512]);

/// One loop: registers with their offsets, what loads and what stores; where its first instruction lies
/// in a line; what it does besides in every round; what ends it.
macro_rules! copy_lines {
    ($($name:ident: $load:literal $store:literal [$($register:literal $at:literal)+],
        head $head:literal, ahead $ahead:literal, besides $besides:literal, end $end:literal;)+) => {$(
        unsafe fn $name(dst: *mut u8, src: *const u8, lines: usize) {
            let elsewhere = ELSEWHERE.0.as_ptr();
            // SAFETY: the caller's promise: that many whole lines of both, at least one, 16-aligned. The
            // stray stores stay within the 4096 bytes of ELSEWHERE, of which nobody has a reference to
            // more than an atomic. Prefetches never fault.
            unsafe {
                asm!(
                    "jmp 2f",
                    ".p2align 6",
                    concat!(".skip ", $head, ", 0x90"),
                    "2:",
                    $ahead,
                    $(
                        concat!($load, " ", $register, ", [rsi + ", $at, "]"),
                        concat!($store, " [rdi + ", $at, "], ", $register),
                    )+
                    $besides,
                    "add rsi, 64",
                    "add rdi, 64",
                    "dec rcx",
                    "jnz 2b",
                    $end,
                    inout("rsi") src => _,
                    inout("rdi") dst => _,
                    inout("rcx") lines => _,
                    in("rax") elsewhere,
                    inout("rdx") 0_u64 => _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
        }
    )+};
}

/// A loop and its four twins, in the order of [`TWINS`].
macro_rules! family {
    ($module:ident: $load:literal $store:literal $registers:tt end $end:literal) => {
        mod $module {
            use super::*;
            copy_lines! {
                plain: $load $store $registers, head 0, ahead "", besides "", end $end;
                misaligned: $load $store $registers, head 61, ahead "", besides "", end $end;
                prefetched: $load $store $registers, head 0, ahead "prefetchnta [rsi + 320]",
                    besides "", end $end;
                word: $load $store $registers, head 0, ahead "", besides "mov [rax], rcx", end $end;
                lines: $load $store $registers, head 0, ahead "",
                    besides "mov [rax + rdx], rcx\nadd rdx, 64\nand edx, 4032", end $end;
            }
            pub(super) const ALL: [CopyLines; 5] = [plain, misaligned, prefetched, word, lines];
        }
    };
}

family!(movq: "movq" "movq" ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56]
    end "emms");
family!(movntq: "movq" "movntq" ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56]
    end "sfence\nemms");
family!(movdqa: "movdqa" "movdqa" ["xmm0" 0 "xmm1" 16 "xmm2" 32 "xmm3" 48] end "");
family!(movntdq: "movdqa" "movntdq" ["xmm0" 0 "xmm1" 16 "xmm2" 32 "xmm3" 48] end "sfence");

const FAMILIES: [(&str, [CopyLines; 5]); 4] = [
    ("movq", movq::ALL),
    ("movntq", movntq::ALL),
    ("movdqa", movdqa::ALL),
    ("movntdq", movntdq::ALL),
];

pub(super) fn run(setting: &mut Setting) -> Result {
    setting.whole("lines", CACHE_LINE)?;
    let mut cells = setting.cells();
    if setting.options.sizes.is_empty() {
        // One size a level: the changes are in the loop.
        cells.dedup_by_key(|(source, destination, _)| (*source, *destination));
    }
    if setting.options.quick && setting.options.placements.is_empty() {
        cells.retain(|(source, _, _)| *source != Level::Llc);
    }
    setting.through(cells, alike, |setting, (source, destination, size)| {
        let firsts = FAMILIES.iter().zip((0..).step_by(TWINS.len()));
        let calls = firsts.flat_map(|((name, loops), plain)| {
            twins(name, loops).into_iter().map(move |call| call.beside(plain))
        });
        let task = setting.task(Operation::Copy, size, Cell::placed(source, destination));
        setting.calls(&task, calls.collect())?;
        Ok(format!("{} {source}:{destination}", bytes(size)))
    })
}

/// A family's loops as candidates, the plain one first.
fn twins<'c>(name: &str, loops: &'c [CopyLines; 5]) -> Vec<Call<'c>> {
    let call = |(change, copy): (&&str, &'c CopyLines)| {
        let calls = move |places: &[Place]| {
            for place in places {
                // SAFETY: operands are apart, start at multiples of 512 and are whole lines long; SSE2
                // is in every x86-64 CPU.
                unsafe { copy(place.dst, place.src, place.n / CACHE_LINE) };
            }
        };
        Call::new(format!("{name}{change}"), calls).checked(is_copied)
    };
    TWINS.iter().zip(loops).map(call).collect()
}
