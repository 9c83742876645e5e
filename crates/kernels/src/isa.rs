//! What a kernel needs from the CPU, and what this CPU has.
//!
//! Detection asks the CPU itself (CPUID and XCR0 on x86-64) and needs no operating system, so that
//! a kernel or hypervisor can call it at boot. It is a few dozen instructions and keeps no state.

use core::fmt;

/// A set of instruction-set features, as a kernel's requirement or as what a CPU offers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(u64);

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $print:literal;)*) => {
        impl Features {
            $($(#[$doc])* pub const $name: Features = Features(1 << $bit);)*
            const NAMES: &'static [(Features, &'static str)] = &[$((Features::$name, $print)),*];
        }
    };
}

features! {
    /// x87 floating point unit.
    X87 = 0, "x87";
    /// MMX registers.
    MMX = 1, "mmx";
    /// SSE and the MMX extensions that came with it (`movntq`, `prefetchnta`, `sfence`).
    SSE = 2, "sse";
    /// SSE2, part of every x86-64 CPU.
    SSE2 = 3, "sse2";
    /// AVX, with the operating system saving the ymm state.
    AVX = 4, "avx";
    /// AVX2.
    AVX2 = 5, "avx2";
    /// AVX-512 foundation, with the operating system saving the zmm and mask state.
    AVX512F = 6, "avx512f";
    /// AVX-512 byte and word operations.
    AVX512BW = 7, "avx512bw";
    /// AVX-512 operations on shorter vectors.
    AVX512VL = 8, "avx512vl";
    /// Enhanced `rep movsb` and `rep stosb`.
    ERMS = 9, "erms";
    /// Fast short `rep movsb`.
    FSRM = 10, "fsrm";
    /// The `clzero` instruction: zero one cache line around the cache.
    CLZERO = 11, "clzero";
}

impl Features {
    /// No feature at all: runs on every CPU of the architecture.
    pub const NONE: Features = Features(0);

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Whether every feature of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// The part of this requirement that `available` lacks.
    #[must_use]
    pub const fn missing_from(self, available: Features) -> Features {
        Features(self.0 & !available.0)
    }

    /// This set without the features of `other`.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What this CPU offers and its operating system saves across context switches.
    ///
    /// Never cached here; costs some hundred nanoseconds, and microseconds under a hypervisor
    /// that traps CPUID.
    #[must_use]
    pub fn detect() -> Features {
        detect()
    }

    fn raw(self, condition: bool) -> Features {
        if condition { self } else { Features::NONE }
    }
}

/// Lower-case names with spaces between them; `none` for the empty set.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (feature, name) in Features::NAMES {
            if self.contains(*feature) {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Features({self})")
    }
}

/// Intel SDM volume 1 §13-15 (XCR0 test before AVX and AVX-512), volume 2A CPUID; AMD APM volume 3
/// appendix E for CLZERO (8000_0008 EBX bit 0).
#[cfg(target_arch = "x86_64")]
fn detect() -> Features {
    use core::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max};
    let bit = |register: u32, bit: u32| register >> bit & 1 == 1;

    let max_leaf = __get_cpuid_max(0).0;
    let max_extended = __get_cpuid_max(0x8000_0000).0;
    let leaf1 = __cpuid(1);
    let leaf7 = if max_leaf >= 7 { Some(__cpuid_count(7, 0)) } else { None };
    let extended8 = if max_extended >= 0x8000_0008 { Some(__cpuid(0x8000_0008)) } else { None };

    let os_saves_state = bit(leaf1.ecx, 27);
    let xcr0 = if os_saves_state {
        // SAFETY: OSXSAVE is set, so XGETBV exists and is enabled.
        unsafe { xgetbv() }
    } else {
        0
    };
    let ymm_saved = xcr0 & 0b110 == 0b110;
    let zmm_saved = ymm_saved && xcr0 & 0b1110_0000 == 0b1110_0000;

    let mut found = Features::X87
        .raw(bit(leaf1.edx, 0))
        .and(Features::MMX.raw(bit(leaf1.edx, 23)))
        .and(Features::SSE.raw(bit(leaf1.edx, 25)))
        .and(Features::SSE2.raw(bit(leaf1.edx, 26)))
        .and(Features::AVX.raw(ymm_saved && bit(leaf1.ecx, 28)));
    if let Some(leaf7) = leaf7 {
        found = found
            .and(Features::AVX2.raw(ymm_saved && bit(leaf7.ebx, 5)))
            .and(Features::AVX512F.raw(zmm_saved && bit(leaf7.ebx, 16)))
            .and(Features::AVX512BW.raw(zmm_saved && bit(leaf7.ebx, 30)))
            .and(Features::AVX512VL.raw(zmm_saved && bit(leaf7.ebx, 31)))
            .and(Features::ERMS.raw(bit(leaf7.ebx, 9)))
            .and(Features::FSRM.raw(bit(leaf7.edx, 4)));
    }
    if let Some(extended8) = extended8 {
        found = found.and(Features::CLZERO.raw(bit(extended8.ebx, 0)));
    }
    found
}

/// XCR0: the state components the operating system has enabled.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
fn xgetbv() -> u64 {
    // SAFETY: register 0 always exists where XGETBV does, which the caller's OSXSAVE test proved.
    unsafe { core::arch::x86_64::_xgetbv(0) }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Features {
    Features::NONE
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Features;
    use std::string::ToString;

    #[test]
    fn sets_combine_and_print() {
        let wide = Features::AVX.and(Features::ERMS);
        assert_eq!(wide.to_string(), "avx erms");
        assert_eq!(wide.missing_from(Features::ERMS).to_string(), "avx");
        assert_eq!(Features::NONE.to_string(), "none");
        assert!(wide.contains(Features::AVX) && !Features::AVX.contains(wide));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn detection_agrees_with_the_standard_library() {
        let found = Features::detect();
        for (feature, expected) in [
            (Features::SSE2, std::is_x86_feature_detected!("sse2")),
            (Features::AVX, std::is_x86_feature_detected!("avx")),
            (Features::AVX2, std::is_x86_feature_detected!("avx2")),
            (Features::AVX512F, std::is_x86_feature_detected!("avx512f")),
            (Features::AVX512BW, std::is_x86_feature_detected!("avx512bw")),
            (Features::AVX512VL, std::is_x86_feature_detected!("avx512vl")),
        ] {
            assert_eq!(found.contains(feature), expected, "{feature}");
        }
    }
}
