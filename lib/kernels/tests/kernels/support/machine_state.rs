//! The part of the calling convention that no byte of memory shows: after a kernel the x87 stack
//! is empty (MMX kernels have run `emms`), its control word and MXCSR's are the default, and the
//! direction flag is clear.

/// Returns the state that the last call must not leave, if it did; repairs it, so that the next check is fair.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn disturbed() -> Option<&'static str> {
    use std::arch::asm;

    /// The protected-mode image that FNSTENV stores (Intel SDM volume 1, figure 8-9).
    #[repr(C)]
    struct Environment {
        control: u32,
        status: u32,
        tags: u32,
        rest: [u32; 4],
    }
    const DIRECTION: u64 = 1 << 10;
    /// MXCSR's six sticky exception flags, which any arithmetic of the test itself may set.
    const STICKY: u32 = 0x3f;

    let mut environment = Environment { control: 0, status: 0, tags: 0, rest: [0; 4] };
    let mut mxcsr = 0u32;
    let flags: u64;
    // SAFETY: the two addresses are of locals of the sizes that the instructions store; FNSTENV's
    // side effect, masking the x87 exceptions, is the state they are always in; the pushed flags
    // are popped again; the direction flag is left clear as the convention wants.
    unsafe {
        asm!(
            "pushfq",
            "pop {flags}",
            "cld",
            "fnstenv [{environment}]",
            "stmxcsr [{mxcsr}]",
            flags = out(reg) flags,
            environment = in(reg) &raw mut environment,
            mxcsr = in(reg) &raw mut mxcsr,
        );
    }
    let complaint = if flags & DIRECTION != 0 {
        "it left the direction flag set"
    } else if environment.tags & 0xffff != 0xffff {
        "it left x87 or MMX registers in use (no emms?)"
    } else if environment.control & 0xffff != 0x037f {
        "it left another x87 control word"
    } else if mxcsr & !STICKY != 0x1f80 {
        "it left another MXCSR"
    } else {
        return None;
    };
    reset();
    Some(complaint)
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn reset() {
    let default = 0x1f80u32;
    // SAFETY: sets the x87 unit and MXCSR to the state a program starts with; `default` is the
    // four bytes that LDMXCSR loads.
    unsafe { std::arch::asm!("fninit", "ldmxcsr [{}]", in(reg) &raw const default) };
}

/// Nothing is checked on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn disturbed() -> Option<&'static str> {
    None
}
