//! CPU features: those that a kernel needs, and those that this CPU has.
//!
//! On x86-64 detection asks the CPU itself (CPUID and XCR0) and needs no operating system, so that a
//! kernel or hypervisor can call it at boot. On Arm and POWER programs may not ask the CPU; Linux
//! tells them in the auxiliary vector, which `getauxval` reads: no file, no allocation, no lock, so
//! that it is fit for the first `memcpy` of a process. Who has the two words from elsewhere passes
//! them to [`Features::from_hwcaps`]. It is a few dozen instructions and keeps no state.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv, CpuidResult};
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
    /// The `clzero` instruction: zero one cache line, past the caches.
    CLZERO = 11, "clzero";
    /// VMX (AltiVec) of POWER, enabled by the operating system.
    VMX = 12, "vmx";
    /// VSX of POWER, enabled by the operating system.
    VSX = 13, "vsx";
    /// Power ISA 2.07: POWER8 and later.
    POWER8 = 14, "power8";
    /// NEON (Advanced SIMD) of Arm.
    NEON = 15, "neon";
    /// DC ZVA of Arm, not prohibited.
    ZVA = 16, "zva";
    /// The second set of bit manipulations (`bzhi`).
    BMI2 = 17, "bmi2";
}

impl Features {
    /// No feature at all: runs on every CPU of the architecture.
    pub const NONE: Features = Features(0);

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Returns whether every feature of `other` is in this set.
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

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Detects the features that this CPU offers and its operating system saves across context switches.
    ///
    /// Never cached here; costs some hundred nanoseconds, and microseconds under a hypervisor
    /// that traps CPUID.
    #[must_use]
    pub fn detect() -> Features {
        detect()
    }

    /// Decodes the features in Linux's auxiliary vector, entries AT_HWCAP and AT_HWCAP2 (`uapi/asm/hwcap.h` of arm64,
    /// `uapi/asm/cputable.h` of powerpc). Nothing on x86-64, whose words mean something else, and
    /// no [`ZVA`](Features::ZVA), which is not in them.
    #[must_use]
    pub const fn from_hwcaps(hwcap: u64, hwcap2: u64) -> Features {
        if cfg!(target_arch = "aarch64") {
            Features::from_arm_hwcap(hwcap)
        } else if cfg!(target_arch = "powerpc64") {
            Features::from_power_hwcaps(hwcap, hwcap2)
        } else {
            Features::NONE
        }
    }

    const fn from_arm_hwcap(hwcap: u64) -> Features {
        if hwcap >> 1 & 1 == 1 { Features::NEON } else { Features::NONE }
    }

    const fn from_power_hwcaps(hwcap: u64, hwcap2: u64) -> Features {
        let vmx = if hwcap & 0x1000_0000 != 0 { Features::VMX } else { Features::NONE };
        let vsx = if hwcap & 0x0000_0080 != 0 { Features::VSX } else { Features::NONE };
        let isa207 = if hwcap2 & 0x8000_0000 != 0 { Features::POWER8 } else { Features::NONE };
        vmx.and(vsx).and(isa207)
    }

    #[cfg(target_arch = "x86_64")]
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

/// CPUID leaves that features and signatures are read from. Where a hypervisor traps
/// the instruction each of these takes microseconds, and a process that needs both asks once.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Leaves {
    /// Leaf 0: the highest basic leaf, and the vendor's name.
    pub basic: CpuidResult,
    /// Leaf 1: family, model and stepping; features.
    pub leaf1: CpuidResult,
    /// Leaf 7, subleaf 0: features; zeros where there is no such leaf.
    pub leaf7: CpuidResult,
    /// Leaf 8000_0001: features; zeros where there is no such leaf, and where nothing that is asked for
    /// is in it, on every CPU but AMD's and Hygon's.
    pub extended1: CpuidResult,
    /// Leaf 8000_0008: features; zeros as above.
    pub extended8: CpuidResult,
    /// Leaf 8000_001A: how wide the vector units are; zeros as above, and without AVX2.
    pub extended1a: CpuidResult,
}

#[cfg(target_arch = "x86_64")]
impl Leaves {
    /// Asks the CPU.
    #[must_use]
    pub fn read() -> Leaves {
        Leaves::read_but(|_| None)
    }

    /// Asks the CPU for what is not `known` already: subleaf 0 of leaves 1, 7, 8000_0001 and
    /// 8000_0008, each of them known only where there is such a leaf.
    #[must_use]
    pub fn read_but(known: impl Fn(u32) -> Option<CpuidResult>) -> Leaves {
        const NONE: CpuidResult = CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
        let ask = |leaf| known(leaf).unwrap_or_else(|| __cpuid_count(leaf, 0));
        let basic = __cpuid(0);
        let amd = Leaves::is_amd(&basic);
        let extended = |leaf| match known(leaf) {
            _ if !amd => NONE,
            Some(known) => known,
            None if __cpuid(0x8000_0000).eax >= leaf => __cpuid(leaf),
            None => NONE,
        };
        let leaf7 = if basic.eax >= 7 { ask(7) } else { NONE };
        let avx2 = leaf7.ebx >> 5 & 1 == 1;
        Leaves {
            basic,
            leaf1: ask(1),
            leaf7,
            extended1: extended(0x8000_0001),
            extended8: extended(0x8000_0008),
            // Every CPU of these vendors with AVX2 has it.
            extended1a: if amd && avx2 { __cpuid(0x8000_001A) } else { NONE },
        }
    }

    /// Returns whether vectors of 64 bytes go through units of 32, as on Zen 4: AMD APM volume 3, CPUID
    /// 8000_001A EAX bit 2 (FP256), without bit 3 (FP512).
    #[must_use]
    pub fn halves_64_byte_vectors(&self) -> bool {
        self.extended1a.eax & 0b1100 == 0b0100
    }

    /// Returns whether vectors of 32 bytes go through units of 16, as on Zen 1: bit 0 of the same (FP128) without bits 2
    /// and 3.
    #[must_use]
    pub fn halves_32_byte_vectors(&self) -> bool {
        self.extended1a.eax & 0b1101 == 0b0001
    }

    /// Returns whether there is a leaf 8000_001D, which lists the caches (AMD APM volume 3, CPUID
    /// 8000_0001 ECX bit 22).
    #[must_use]
    pub fn has_topology_extensions(&self) -> bool {
        self.extended1.ecx >> 22 & 1 == 1
    }

    /// Returns whether leaf 0 says `AuthenticAMD` or `HygonGenuine`.
    fn is_amd(basic: &CpuidResult) -> bool {
        let starts = |name: &[u8; 4]| basic.ebx == u32::from_le_bytes(*name);
        starts(b"Auth") || starts(b"Hygo")
    }

    /// The features that these say, and XCR0 of the operating system: Intel SDM volume 1 §13-15
    /// (XCR0 test before AVX and AVX-512), volume 2A CPUID; AMD APM volume 3 appendix E for CLZERO
    /// (8000_0008 EBX bit 0).
    #[must_use]
    pub fn features(&self) -> Features {
        let Leaves { leaf1, leaf7, extended8, .. } = self;
        let bit = |register: u32, bit: u32| register >> bit & 1 == 1;
        let os_saves_state = bit(leaf1.ecx, 27);
        let xcr0 = if os_saves_state {
            // SAFETY: OSXSAVE is set, so XGETBV exists and is enabled.
            unsafe { xgetbv() }
        } else {
            0
        };
        let ymm_saved = xcr0 & 0b110 == 0b110;
        let zmm_saved = ymm_saved && xcr0 & 0b1110_0000 == 0b1110_0000;
        Features::X87
            .raw(bit(leaf1.edx, 0))
            .and(Features::MMX.raw(bit(leaf1.edx, 23)))
            .and(Features::SSE.raw(bit(leaf1.edx, 25)))
            .and(Features::SSE2.raw(bit(leaf1.edx, 26)))
            .and(Features::AVX.raw(ymm_saved && bit(leaf1.ecx, 28)))
            .and(Features::AVX2.raw(ymm_saved && bit(leaf7.ebx, 5)))
            .and(Features::AVX512F.raw(zmm_saved && bit(leaf7.ebx, 16)))
            .and(Features::AVX512BW.raw(zmm_saved && bit(leaf7.ebx, 30)))
            .and(Features::AVX512VL.raw(zmm_saved && bit(leaf7.ebx, 31)))
            .and(Features::BMI2.raw(bit(leaf7.ebx, 8)))
            .and(Features::ERMS.raw(bit(leaf7.ebx, 9)))
            .and(Features::FSRM.raw(bit(leaf7.edx, 4)))
            .and(Features::CLZERO.raw(bit(extended8.ebx, 0)))
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Features {
    Leaves::read().features()
}

/// XCR0: the state components the operating system has enabled.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
fn xgetbv() -> u64 {
    // SAFETY: register 0 always exists where XGETBV does, which the caller's OSXSAVE test proved.
    unsafe { _xgetbv(0) }
}

#[cfg(all(target_os = "linux", not(target_arch = "x86_64")))]
fn detect() -> Features {
    // The C library that every Linux program has; no crate is needed for one function.
    unsafe extern "C" {
        safe fn getauxval(kind: core::ffi::c_ulong) -> core::ffi::c_ulong;
    }
    const AT_HWCAP: core::ffi::c_ulong = 16;
    const AT_HWCAP2: core::ffi::c_ulong = 26;
    let told = Features::from_hwcaps(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
    told.and(block_zero())
}

/// Without an operating system to say what it saves, no vector register may be used.
#[cfg(all(not(target_os = "linux"), not(target_arch = "x86_64")))]
fn detect() -> Features {
    block_zero()
}

#[cfg(target_arch = "aarch64")]
fn block_zero() -> Features {
    if zva_block().is_some() { Features::ZVA } else { Features::NONE }
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
fn block_zero() -> Features {
    Features::NONE
}

/// Bytes of a DC ZVA block; `None` where it is prohibited (Arm ARM, DCZID_EL0: DZP is bit 4, BS the
/// power of two in words below it).
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn zva_block() -> Option<usize> {
    let dczid: u64;
    // SAFETY: the register may be read at every level, and reading it changes nothing.
    unsafe {
        core::arch::asm!(
            "mrs {}, dczid_el0",
            out(reg) dczid,
            options(nostack, nomem, preserves_flags),
        );
    }
    zva_block_of(dczid)
}

#[cfg(any(test, target_arch = "aarch64"))]
#[inline(always)]
const fn zva_block_of(dczid: u64) -> Option<usize> {
    // At most 2 KiB; more is reserved.
    if dczid & 0x10 != 0 || dczid & 0xF > 9 { None } else { Some(4 << (dczid & 0xF)) }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Features;
    use std::string::ToString;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn extended_leaves_are_asked_for_where_they_matter() {
        let leaf = |name: &[u8; 4]| super::CpuidResult {
            eax: 0x10,
            ebx: u32::from_le_bytes(*name),
            ecx: 0,
            edx: 0,
        };
        let amd =
            [b"Auth", b"Hygo", b"Genu", b"Cent"].map(|name| super::Leaves::is_amd(&leaf(name)));
        assert_eq!(amd, [true, true, false, false]);
    }

    #[test]
    fn sets_combine_and_print() {
        let wide = Features::AVX.and(Features::ERMS);
        assert_eq!(wide.to_string(), "avx erms");
        assert_eq!(wide.missing_from(Features::ERMS).to_string(), "avx");
        assert_eq!(Features::NONE.to_string(), "none");
        assert!(wide.contains(Features::AVX) && !Features::AVX.contains(wide));
    }

    /// Words that real machines have shown.
    #[test]
    fn hwcap_words_are_read() {
        let power8 = Features::from_power_hwcaps(0xDC00_65C2, 0x8000_0000);
        assert_eq!(power8.to_string(), "vmx vsx power8");
        let power7 = Features::from_power_hwcaps(0xDC00_6582, 0);
        assert_eq!(power7.to_string(), "vmx vsx");
        let g5_without_os_support = Features::from_power_hwcaps(0xC800_0000, 0);
        assert!(g5_without_os_support.is_empty());
        // Cortex-A72; Neoverse V1.
        assert_eq!(Features::from_arm_hwcap(0x8FF).to_string(), "neon");
        assert_eq!(Features::from_arm_hwcap(0xEFFF_FFFF).to_string(), "neon");
        assert!(Features::from_arm_hwcap(0).is_empty());
    }

    #[test]
    fn a_prohibited_block_zero_is_refused() {
        assert_eq!(super::zva_block_of(4), Some(64));
        assert_eq!(super::zva_block_of(7), Some(512));
        assert_eq!(super::zva_block_of(9), Some(2048));
        assert_eq!(super::zva_block_of(0x14), None, "prohibited");
        assert_eq!(super::zva_block_of(10), None, "reserved");
    }

    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    #[test]
    fn detection_agrees_with_the_standard_library() {
        let found = Features::detect();
        assert_eq!(found.contains(Features::NEON), std::arch::is_aarch64_feature_detected!("neon"));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn detection_agrees_with_the_standard_library() {
        let found = Features::detect();
        for (feature, expected) in [
            (Features::SSE2, std::is_x86_feature_detected!("sse2")),
            (Features::AVX, std::is_x86_feature_detected!("avx")),
            (Features::AVX2, std::is_x86_feature_detected!("avx2")),
            (Features::BMI2, std::is_x86_feature_detected!("bmi2")),
            (Features::AVX512F, std::is_x86_feature_detected!("avx512f")),
            (Features::AVX512BW, std::is_x86_feature_detected!("avx512bw")),
            (Features::AVX512VL, std::is_x86_feature_detected!("avx512vl")),
        ] {
            assert_eq!(found.contains(feature), expected, "{feature}");
        }
    }
}
