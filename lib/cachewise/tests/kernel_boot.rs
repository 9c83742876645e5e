//! The example of a kernel's author: registers are put back, the break-even is respected, the
//! compiled-in profile is one.

#[path = "../examples/kernel_boot.rs"]
mod example;

use cachewise::profile::ProfileText;
use core::arch::asm;
use example::boot::{AVX, AVX512, Area, Boot, LARGEST_TRIED, PROFILES, SSE, with_vector_state};

/// Loses the low half of xmm0 in `body`; what it holds afterwards. One block on either side of the
/// call would leave the register to the compiler, so the whole is in this order on purpose: the
/// value is loaded, saved, lost, restored and read with nothing but the calls between.
#[inline(never)]
fn through(area: &mut Area, components: u64, lose: bool) -> Option<u64> {
    // MXCSR is no register that the compiler uses, but is part of the component: rounding mode
    // 01 (down), all exceptions masked.
    let (mine, default, mut found) = (0x3F80_u32, 0x1F80_u32, 0_u32);
    // SAFETY: a valid MXCSR; put back below.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &mine, options(nostack, readonly)) };
    let ran = with_vector_state(area, components, || {
        if lose {
            // SAFETY: a valid MXCSR.
            unsafe { asm!("ldmxcsr [{}]", in(reg) &default, options(nostack, readonly)) };
        }
    });
    // SAFETY: stores MXCSR.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut found, options(nostack)) };
    // SAFETY: the default of the ABI.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &default, options(nostack, readonly)) };
    ran.map(|()| u64::from(found))
}

#[test]
fn what_the_body_changes_is_put_back() {
    let mut area = Area::new();
    assert_eq!(through(&mut area, SSE, false), Some(0x3F80));
    assert_eq!(through(&mut area, SSE, true), Some(0x3F80), "lost in the body, and restored");
}

extern "C" fn zero_vectors(context: *mut Area) {
    // SAFETY: the caller's area, which nobody else has.
    let area = unsafe { &mut *context };
    let ran = with_vector_state(area, SSE | AVX, || {
        // SAFETY: AVX is enabled, or the body would not run; the registers are declared lost.
        unsafe { asm!("vzeroall", clobber_abi("sysv64"), options(nostack, nomem)) };
    });
    assert!(ran.is_some());
}

/// All 32 bytes of ymm0 and ymm15 through a call that zeroes them inside, in one block of assembly,
/// so that the compiler has no part in it.
#[test]
fn whole_registers_survive() {
    if !std::is_x86_feature_detected!("avx") {
        eprintln!("AVX registers: skipped, this CPU has none");
        return;
    }
    let mut area = Box::new(Area::new());
    let before: [u8; 64] = std::array::from_fn(|i| i as u8 + 1);
    let mut after = [0_u8; 64];
    // SAFETY: the registers are loaded from and stored to buffers of their size; the call follows
    // the ABI, with the stack aligned by hand since an asm block does not know how it is.
    unsafe {
        asm!(
            "vmovdqu ymm0, [r12]",
            "vmovdqu ymm15, [r12 + 32]",
            "mov r14, rsp",
            "and rsp, -16",
            "call {zero}",
            "mov rsp, r14",
            "vmovdqu [r13], ymm0",
            "vmovdqu [r13 + 32], ymm15",
            "vzeroupper",
            zero = sym zero_vectors,
            inout("rdi") &raw mut *area => _,
            // Registers that the callee preserves: what an asm block chooses might not be.
            in("r12") before.as_ptr(),
            in("r13") after.as_mut_ptr(),
            out("r14") _,
            clobber_abi("sysv64"),
        );
    }
    assert_eq!(after, before);
}

#[test]
fn what_cannot_be_saved_is_not_touched() {
    let mut area = Area::new();
    let mut ran = false;
    // Bit 62 is reserved (Intel SDM volume 1, 13.1): no CPU enables it.
    assert!(with_vector_state(&mut area, 1 << 62, || ran = true).is_none());
    assert!(!ran);
    if !std::is_x86_feature_detected!("avx512f") {
        assert!(with_vector_state(&mut area, SSE | AVX | AVX512, || ran = true).is_none());
        assert!(!ran);
    }
}

#[test]
fn copies_are_right_on_both_sides_of_the_break_even() {
    let mut area = Area::new();
    let source: Vec<u8> = (0..LARGEST_TRIED).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut destination = vec![0; LARGEST_TRIED];
    let chosen = Boot::choose(&mut area, (&mut destination, &source));
    for break_even in [chosen.break_even, 0, 1000, usize::MAX] {
        let mut boot = chosen;
        boot.break_even = break_even;
        for size in [0, 1, 63, 255, 256, 999, 1000, 1001, 4096, 65_535] {
            destination.fill(0xEE);
            boot.copy(&mut area, &mut destination[..size], &source[..size]);
            assert!(destination[..size] == source[..size], "{size} of {break_even}");
            assert!(destination[size..].iter().all(|byte| *byte == 0xEE), "{size}");
        }
    }
}

#[test]
fn compiled_in_profiles_are_well_formed() {
    for profile in PROFILES {
        let profile = ProfileText::parse(profile).expect("a profile");
        assert!(profile.decisions().count() > 0);
    }
}
