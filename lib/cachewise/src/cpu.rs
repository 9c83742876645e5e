//! The CPU's identity, and the size of the caches that *one core complex* can use.
//!
//! Read this to know what a profile is matched against and where the computed defaults get their
//! sizes. Nothing here allocates or needs an operating system on x86-64: CPUID answers. On other
//! architectures sysfs is asked where there is one (`std` on Linux), and sizes are assumed where
//! there is none.
//!
//! Hypervisors invent cache sizes: 0 B, the socket's whole 384 MiB, 1 TiB (glibc BZ 32470,
//! propolis#1152). A size outside what was ever built is replaced, and [`Caches::clamped`] says so.

use cachewise_kernels::Features;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

/// A short text kept inline, so that identities need no allocation; longer text is cut at a
/// character boundary, and control characters become spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: u8,
}

impl<const N: usize> Text<N> {
    /// The text, cut to `N` bytes.
    #[must_use]
    pub fn new(text: &str) -> Text<N> {
        const { assert!(N <= u8::MAX as usize) };
        let mut made = Text { bytes: [0; N], length: 0 };
        for character in text.chars() {
            let character = if character.is_control() { ' ' } else { character };
            let end = made.length as usize + character.len_utf8();
            let Some(place) = made.bytes.get_mut(made.length as usize..end) else { break };
            character.encode_utf8(place);
            made.length = end as u8;
        }
        made
    }

    /// The text of bytes that may not be UTF-8: what is not, and what does not print, becomes `?`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Text<N> {
        let printable = |text: &str| !text.chars().any(char::is_control);
        if let Some(text) = core::str::from_utf8(bytes).ok().filter(|text| printable(text)) {
            return Text::new(text);
        }
        let mut made = Text { bytes: [b'?'; N], length: bytes.len().min(N) as u8 };
        for (place, byte) in made.bytes.iter_mut().zip(bytes) {
            if (b' '..=b'~').contains(byte) {
                *place = *byte;
            }
        }
        for unused in made.bytes.iter_mut().skip(bytes.len()) {
            *unused = 0;
        }
        made
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let used = self.bytes.get(..self.length as usize).unwrap_or(&[]);
        core::str::from_utf8(used).unwrap_or("")
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Vendor, family, model, stepping: what CPUID calls the signature. Profiles are for one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// CPUID's twelve characters without blanks (`AuthenticAMD`), `arm.` with the implementer's
    /// code, `IBM`, or the architecture's name where nothing says more.
    pub vendor: Text<12>,
    /// Display family: base plus extended. Arm: architecture. POWER: version (77 is POWER8).
    pub family: u32,
    /// Display model: extended and base together. Arm: part. POWER: kind of module.
    pub model: u32,
    /// Stepping. Arm: variant and revision. POWER: revision.
    pub stepping: u32,
}

impl Signature {
    /// A signature; blanks and other characters that a file name or a profile's field cannot
    /// carry become `_`.
    #[must_use]
    pub fn new(vendor: &str, family: u32, model: u32, stepping: u32) -> Signature {
        let mut bytes = [0; 12];
        let mut length = 0;
        for (place, byte) in bytes.iter_mut().zip(vendor.trim_matches(['\0', ' ']).bytes()) {
            let plain = byte.is_ascii_alphanumeric() || byte == b'.';
            *place = if plain { byte } else { b'_' };
            length += 1;
        }
        if length == 0 {
            (bytes[0], length) = (b'_', 1);
        }
        Signature { vendor: Text { bytes, length }, family, model, stepping }
    }

    /// This CPU's signature.
    #[must_use]
    pub fn detect() -> Signature {
        Identity::get().signature
    }

    /// Returns whether a profile tuned on `other` is meant for this CPU: all but the stepping agree.
    #[must_use]
    pub fn same_model(&self, other: &Signature) -> bool {
        self.vendor == other.vendor && self.family == other.family && self.model == other.model
    }
}

/// `AuthenticAMD 25 1 1`, as in a profile.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.vendor, self.family, self.model, self.stepping)
    }
}

/// A CPU's signature and the name its maker gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// Signature that profiles are matched by.
    pub signature: Signature,
    /// The brand string, at most 48 bytes; empty where there is none.
    pub name: Text<48>,
}

impl Cpu {
    /// This CPU.
    #[must_use]
    pub fn detect() -> Cpu {
        Cpu { signature: Signature::detect(), name: arch::name() }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.signature)?;
        if self.name.as_str().is_empty() { Ok(()) } else { write!(f, " {}", self.name) }
    }
}

/// Facts about this CPU that starting up needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) signature: Signature,
    pub(crate) features: Features,
    #[cfg(target_arch = "x86_64")]
    pub(crate) leaves: cachewise_kernels::Leaves,
}

/// The identity, once somebody has asked for it.
struct Known {
    /// [`UNKNOWN`](Known::UNKNOWN), then being written by one thread, then [`KNOWN`](Known::KNOWN).
    state: AtomicU8,
    identity: UnsafeCell<MaybeUninit<Identity>>,
}

// SAFETY: written by the one thread that took the state from UNKNOWN, and read once it is KNOWN.
unsafe impl Sync for Known {}

impl Known {
    const UNKNOWN: u8 = 0;
    const TAKEN: u8 = 1;
    const KNOWN: u8 = 2;
}

impl Identity {
    /// This CPU. The first call asks it, and the others remember: an instruction that tells costs
    /// microseconds under a hypervisor, and elsewhere a file has to be read; the first large copy
    /// of a process waits for that. A call that comes while the first one asks, as from a signal
    /// handler, asks for itself.
    pub(crate) fn get() -> Identity {
        static KNOWN: Known = Known {
            state: AtomicU8::new(Known::UNKNOWN),
            identity: UnsafeCell::new(MaybeUninit::uninit()),
        };
        if KNOWN.state.load(Ordering::Acquire) == Known::KNOWN {
            // SAFETY: nobody writes once the state says so.
            let identity = unsafe { &*KNOWN.identity.get() };
            // SAFETY: written before the state said so.
            return unsafe { identity.assume_init() };
        }
        let identity = arch::identity();
        let (from, to) = (Known::UNKNOWN, Known::TAKEN);
        if KNOWN.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // SAFETY: nobody else writes, nor reads before the state says so.
            unsafe { &mut *KNOWN.identity.get() }.write(identity);
            KNOWN.state.store(Known::KNOWN, Ordering::Release);
        }
        identity
    }
}

/// Data cache sizes in bytes, as one core sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caches {
    /// First level, data.
    pub l1d: u64,
    /// Second level.
    pub l2: u64,
    /// Last level, as much as one core complex shares: not the socket's sum.
    pub llc: u64,
    /// True if any of the three was implausible, or unknown, and is an assumption.
    pub clamped: bool,
}

impl Caches {
    /// This CPU's caches, with what cannot be true replaced by an assumption.
    #[must_use]
    pub fn detect() -> Caches {
        Caches::of(&Identity::get())
    }

    /// This CPU's caches, for those who know who it is.
    pub(crate) fn of(identity: &Identity) -> Caches {
        arch::raw_caches(identity).clamp()
    }
}

/// Answers of CPUID about L1 data, L2 and L3, not checked: bytes, and how many processors share it by its count of
/// identifiers; `None` where it names no such cache. For those who weigh it against what the system says.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[must_use]
pub fn reported_caches() -> [Option<(u64, usize)>; 3] {
    arch::reported_caches(&Identity::get(), false)
}

/// Cache sizes as the machine gives them, not yet checked. 0: not given.
#[derive(Clone, Copy, Debug, Default)]
struct RawCaches {
    l1d: u64,
    l2: u64,
    llc: u64,
    /// The largest LLC of one complex that this vendor builds; 0 where no rule is known.
    largest_llc: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl RawCaches {
    /// Plausible: L1d 8 KiB to 256 KiB, L2 64 KiB to 64 MiB, LLC 256 KiB to 1 GiB (Intel's largest
    /// mesh has 504 MiB), larger than the L2, and no larger than one complex of that vendor has.
    /// Assumed instead: 32 KiB, 512 KiB, 8 MiB, the sizes that most server cores since 2017 have
    /// at least; where only the sum over a socket was told, one complex of Zen 3 to Zen 5, 32 MiB.
    fn clamp(self) -> Caches {
        let within = |size: u64, low: u64, high: u64| (low..=high).contains(&size);
        let l1d = if within(self.l1d, 8 * KIB, 256 * KIB) { self.l1d } else { 32 * KIB };
        let l2 = if within(self.l2, 64 * KIB, 64 * MIB) { self.l2 } else { 512 * KIB };
        let llc = if !within(self.llc, 256 * KIB, 1024 * MIB) || self.llc <= l2 {
            (8 * MIB).max(2 * l2)
        } else if self.largest_llc != 0 && self.llc > self.largest_llc {
            32 * MIB
        } else {
            self.llc
        };
        let clamped = (l1d, l2, llc) != (self.l1d, self.l2, self.llc);
        Caches { l1d, l2, llc, clamped }
    }
}

/// MIDR_EL1: implementer, architecture, part, variant and revision.
#[cfg(any(test, target_arch = "aarch64"))]
#[allow(dead_code, reason = "without an operating system nobody may read the register")]
fn arm_signature(midr: u64) -> Signature {
    let implementer = (midr >> 24 & 0xFF) as u8;
    let mut vendor = *b"arm.00";
    for (place, nibble) in vendor.iter_mut().skip(4).zip([implementer >> 4, implementer]) {
        *place = *b"0123456789abcdef".get((nibble & 0xF) as usize).unwrap_or(&b'0');
    }
    let vendor = core::str::from_utf8(&vendor).unwrap_or("arm");
    let (variant, revision) = (midr >> 20 & 0xF, midr & 0xF);
    Signature::new(
        vendor,
        (midr >> 16 & 0xF) as u32,
        (midr >> 4 & 0xFFF) as u32,
        (variant << 4 | revision) as u32,
    )
}

/// The processor version register: the upper half is the version (0x4D is POWER8), of the lower
/// the first digit tells modules of one version apart, and the rest is the revision.
#[cfg(any(test, all(target_os = "linux", target_arch = "powerpc64")))]
fn power_signature(pvr: u64) -> Signature {
    let (version, module, revision) = (pvr >> 16 & 0xFFFF, pvr >> 12 & 0xF, pvr & 0xFFF);
    Signature::new("IBM", version as u32, module as u32, revision as u32)
}

/// Linux's name of that version (`arch/powerpc/kernel/cpu_specs_book3s_64.h`).
#[cfg(any(test, all(target_os = "linux", target_arch = "powerpc64")))]
fn power_name(pvr: u64) -> &'static str {
    match pvr >> 16 & 0xFFFF {
        0x4B => "POWER8E",
        0x4C => "POWER8NVL",
        0x4D => "POWER8",
        0x4E => "POWER9",
        0x80 => "POWER10",
        0x82 => "POWER11",
        _ => "",
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    //! Intel SDM volume 2A, CPUID leaves 0, 1, 4, 8000_0002h; AMD APM volume 3 appendix E,
    //! Fn8000_001D.

    use super::{Identity, MIB, RawCaches, Signature, Text};
    use cachewise_kernels::Leaves;
    use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

    fn vendor_bytes(leaf: CpuidResult) -> [u8; 12] {
        let mut vendor = [0; 12];
        let registers = [leaf.ebx, leaf.edx, leaf.ecx];
        for (place, byte) in vendor.iter_mut().zip(registers.iter().flat_map(|r| r.to_le_bytes())) {
            *place = byte;
        }
        vendor
    }

    /// CPUID leaves that the C library read when the process started: glibc from 2.33 on offers it to
    /// programs (`sys/platform/x86.h`). 4 us less for each leaf under a hypervisor.
    #[cfg(all(feature = "os", target_os = "linux", target_env = "gnu"))]
    pub(super) fn known(leaf: u32) -> Option<CpuidResult> {
        /// `struct cpuid_feature`: eax, ebx, ecx, edx as the CPU told them; as may be used.
        type Feature = [[u32; 4]; 2];
        // `CPUID_INDEX_1`, `_7`, `_80000001` and `_80000008`.
        let index = match leaf {
            1 => 0,
            7 => 1,
            0x8000_0001 => 2,
            0x8000_0008 => 5,
            _ => return None,
        };
        let function: *const ();
        // SAFETY: reads a slot of the global offset table: the function's address, or null where
        // there is none or the dynamic linker has not come to it yet.
        unsafe {
            core::arch::asm!(
                ".weak __x86_get_cpuid_feature_leaf",
                "mov {}, qword ptr [rip + __x86_get_cpuid_feature_leaf@GOTPCREL]",
                out(reg) function,
                options(nostack, readonly, preserves_flags),
            );
        }
        if function.is_null() {
            return None;
        }
        // SAFETY: not null, and of that C type.
        let function = unsafe {
            core::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> *const Feature>(function)
        };
        // SAFETY: callable from the start of the process: the dynamic linker's own, which fills what
        // it shows before it loads anything.
        let feature = unsafe { function(index) };
        // SAFETY: null, or in memory of the dynamic linker's that is not written again.
        let [[eax, ebx, ecx, edx], _] = *unsafe { feature.as_ref() }?;
        // Nothing at all is told by a C library that has not asked, as in a static program's start.
        (eax | ebx | ecx | edx != 0).then_some(CpuidResult { eax, ebx, ecx, edx })
    }

    #[cfg(not(all(feature = "os", target_os = "linux", target_env = "gnu")))]
    fn known(_: u32) -> Option<CpuidResult> {
        None
    }

    pub(super) fn identity() -> Identity {
        let leaves = Leaves::read_but(known);
        Identity { signature: signature(&leaves), features: leaves.features(), leaves }
    }

    fn signature(leaves: &Leaves) -> Signature {
        let vendor = vendor_bytes(leaves.basic);
        let eax = leaves.leaf1.eax;
        let base_family = eax >> 8 & 0xF;
        let base_model = eax >> 4 & 0xF;
        let family = if base_family == 0xF { 0xF + (eax >> 20 & 0xFF) } else { base_family };
        let extended = matches!(base_family, 6 | 0xF);
        let model = if extended { (eax >> 16 & 0xF) << 4 | base_model } else { base_model };
        Signature::new(core::str::from_utf8(&vendor).unwrap_or(""), family, model, eax & 0xF)
    }

    pub(super) fn name() -> Text<48> {
        if __cpuid(0x8000_0000).eax < 0x8000_0004 {
            return Text::new("");
        }
        let mut brand = [0; 48];
        let leaves = [__cpuid(0x8000_0002), __cpuid(0x8000_0003), __cpuid(0x8000_0004)];
        let registers = leaves.iter().flat_map(|l| [l.eax, l.ebx, l.ecx, l.edx]);
        for (place, byte) in brand.iter_mut().zip(registers.flat_map(u32::to_le_bytes)) {
            *place = byte;
        }
        let end = brand.iter().position(|byte| *byte == 0).unwrap_or(brand.len());
        Text::from_bytes(brand.get(..end).unwrap_or(&[]).trim_ascii())
    }

    pub(super) fn raw_caches(identity: &Identity) -> RawCaches {
        let [l1d, l2, llc] =
            reported_caches(identity, true).map(|cache| cache.map_or(0, |(bytes, _)| bytes));
        // One complex of an EPYC has at most 96 MiB (with stacked cache); more is a socket's sum.
        let largest_llc = if is_amd(identity) { 128 * MIB } else { 0 };
        RawCaches { l1d, l2, llc, largest_llc }
    }

    fn is_amd(identity: &Identity) -> bool {
        matches!(identity.signature.vendor.as_str(), "AuthenticAMD" | "HygonGenuine")
    }

    /// Sizes and sharers of the three levels; `quick` stops as soon as each is known.
    pub(super) fn reported_caches(identity: &Identity, quick: bool) -> [Option<(u64, usize)>; 3] {
        let mut found = [None; 3];
        let leaves = &identity.leaves;
        // Without topology extensions AMD's leaf is reserved and all zero: no caches told.
        let leaf = if is_amd(identity) && leaves.has_topology_extensions() {
            0x8000_001D
        } else if leaves.basic.eax >= 4 {
            4
        } else {
            return found;
        };
        // The list ends at type 0; eight is more than any has. The second is of instructions on every
        // CPU so far: it is asked for only where the others do not tell all.
        let mut end = 8;
        for index in [0, 2, 3, 1, 4, 5, 6, 7] {
            if index >= end {
                continue;
            }
            let cache = __cpuid_count(leaf, index);
            let (kind, level) = (cache.eax & 0x1F, cache.eax >> 5 & 0x7);
            if kind == 0 {
                end = index;
                continue;
            }
            let field = |shift: u32, mask: u32| u64::from(cache.ebx >> shift & mask) + 1;
            // ways x partitions x line x sets; four 32-bit factors at most 2^10 x 2^10 x 2^12 x
            // 2^32, which saturates rather than wraps.
            let size = (field(22, 0x3FF) * field(12, 0x3FF) * field(0, 0xFFF))
                .saturating_mul(u64::from(cache.ecx) + 1);
            if matches!(kind, 1 | 3)
                && let Some(place) = found.get_mut((level.clamp(1, 3) - 1) as usize)
            {
                *place = Some((size, (cache.eax >> 14 & 0xFFF) as usize + 1));
            }
            if quick && found.iter().all(Option::is_some) {
                break;
            }
        }
        found
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    //! Arm's MIDR_EL1 (Arm ARM, D19.2) by sysfs or the register itself, POWER's PVR by the
    //! register, and sysfs for the caches. Not `/proc/cpuinfo`: under a user-mode emulator it is
    //! the host's.

    use super::{Identity, RawCaches, Signature, Text};
    use cachewise_kernels::Features;

    pub(super) fn identity() -> Identity {
        Identity { signature: signature(), features: Features::detect() }
    }

    #[cfg(not(all(target_os = "linux", target_arch = "powerpc64")))]
    const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
        "aarch64"
    } else if cfg!(target_arch = "powerpc64") {
        "powerpc64"
    } else {
        "unknown"
    };

    #[cfg(all(feature = "os", target_os = "linux"))]
    fn sysfs(path: &core::ffi::CStr) -> Option<([u8; 64], usize)> {
        let mut text = [0; 64];
        let length = crate::os::File::open(path).ok()?.read(&mut text).ok()?;
        Some((text, length))
    }

    fn signature() -> Signature {
        #[cfg(all(feature = "os", target_os = "linux", target_arch = "aarch64"))]
        if let Some(midr) = midr() {
            return super::arm_signature(midr);
        }
        #[cfg(all(target_os = "linux", target_arch = "powerpc64"))]
        return super::power_signature(pvr());
        #[cfg(not(all(target_os = "linux", target_arch = "powerpc64")))]
        Signature::new(ARCHITECTURE, 0, 0, 0)
    }

    /// The first CPU's, so that a machine with two kinds of cores has one signature; where sysfs
    /// does not show it (old kernels, emulators), this CPU's, if Linux lets programs read it.
    #[cfg(all(feature = "os", target_os = "linux", target_arch = "aarch64"))]
    fn midr() -> Option<u64> {
        /// Linux emulates reading the identification registers (`uapi/asm/hwcap.h` of arm64).
        const HWCAP_CPUID: u64 = 1 << 11;
        let shown = || {
            let path = c"/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
            let (text, length) = sysfs(path)?;
            let text = core::str::from_utf8(text.get(..length)?).ok()?.trim();
            u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        shown().or_else(|| {
            // SAFETY: always callable; reads the auxiliary vector.
            if unsafe { libc::getauxval(libc::AT_HWCAP) } & HWCAP_CPUID == 0 {
                return None;
            }
            let midr: u64;
            // SAFETY: the bit says that the register can be read; reading it changes nothing.
            unsafe {
                core::arch::asm!(
                    "mrs {}, midr_el1",
                    out(reg) midr,
                    options(nostack, nomem, preserves_flags),
                );
            }
            Some(midr)
        })
    }

    /// The processor version register, which Linux lets every program read (it emulates the
    /// instruction: `arch/powerpc/kernel/traps.c`, `emulate_instruction`).
    #[cfg(all(target_os = "linux", target_arch = "powerpc64"))]
    fn pvr() -> u64 {
        let pvr: u64;
        // SAFETY: reading the register is emulated by Linux and changes nothing.
        unsafe {
            core::arch::asm!(
                "mfspr {}, 287",
                out(reg) pvr,
                options(nostack, nomem, preserves_flags),
            );
        }
        pvr
    }

    pub(super) fn name() -> Text<48> {
        #[cfg(all(target_os = "linux", target_arch = "powerpc64"))]
        return Text::new(super::power_name(pvr()));
        #[cfg(not(all(target_os = "linux", target_arch = "powerpc64")))]
        Text::new("")
    }

    #[cfg(all(feature = "os", target_os = "linux"))]
    pub(super) fn raw_caches(_: &Identity) -> RawCaches {
        macro_rules! files {
            ($($index:literal)+) => { [$(files!($index: "type" "level" "size")),+] };
            ($index:literal: $($file:literal)+) => {
                [$(concat!("/sys/devices/system/cpu/cpu0/cache/index", $index, "/", $file, "\0")),+]
            };
        }
        let sysfs = |file: &str| sysfs(core::ffi::CStr::from_bytes_with_nul(file.as_bytes()).ok()?);
        let mut found = RawCaches::default();
        for [kind, level, size] in files!(0 1 2 3) {
            if sysfs(kind).is_none_or(|(text, _)| text.starts_with(b"Instruction")) {
                continue;
            }
            let (Some((level, _)), Some((size, length))) = (sysfs(level), sysfs(size)) else {
                continue;
            };
            let text = core::str::from_utf8(size.get(..length).unwrap_or(&[])).unwrap_or("");
            let digits = text.trim().trim_end_matches('K');
            let bytes = digits.parse::<u64>().unwrap_or(0).saturating_mul(1024);
            match level[0] {
                b'1' => found.l1d = bytes,
                b'2' => found.l2 = bytes,
                _ => found.llc = found.llc.max(bytes),
            }
        }
        found
    }

    #[cfg(not(all(feature = "os", target_os = "linux")))]
    pub(super) fn raw_caches(_: &Identity) -> RawCaches {
        RawCaches::default()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn clamp(l1d: u64, l2: u64, llc: u64, largest_llc: u64) -> (u64, u64, u64, bool) {
        let found = RawCaches { l1d, l2, llc, largest_llc }.clamp();
        (found.l1d, found.l2, found.llc, found.clamped)
    }

    #[test]
    fn what_hypervisors_invent_is_replaced() {
        let (l1, l2, complex) = (32 * KIB, 512 * KIB, 32 * MIB);
        assert_eq!(clamp(l1, l2, complex, 128 * MIB), (l1, l2, complex, false));
        assert_eq!(clamp(0, 0, 0, 0), (l1, l2, 8 * MIB, true), "0 B");
        assert_eq!(clamp(l1, l2, 384 * MIB, 128 * MIB), (l1, l2, complex, true), "a socket's sum");
        assert_eq!(clamp(l1, l2, 1 << 40, 128 * MIB), (l1, l2, 8 * MIB, true), "1 TiB");
        assert_eq!(clamp(l1, l2, l2, 0), (l1, l2, 8 * MIB, true), "no larger than the L2");
        assert_eq!(clamp(48 * KIB, 2 * MIB, 504 * MIB, 0), (48 * KIB, 2 * MIB, 504 * MIB, false));
        let (_, l2, llc, _) = clamp(l1, 64 * MIB, 0, 0);
        assert!(llc > l2);
    }

    #[test]
    fn registers_of_other_architectures_become_signatures() {
        // Neoverse N1 r3p1, POWER9 DD2.2 (scale-out), POWER8 DD2.0.
        assert_eq!(arm_signature(0x413F_D0C1).to_string(), "arm.41 15 3340 49");
        assert_eq!(power_signature(0x004E_1202).to_string(), "IBM 78 1 514");
        assert_eq!(power_name(0x004E_1202), "POWER9");
        assert_eq!(power_signature(0x004D_0200).to_string(), "IBM 77 0 512");
        assert!(!power_signature(0x004D_0200).same_model(&power_signature(0x004E_1202)));
        assert_eq!(power_name(0x1234_0000), "");
    }

    #[test]
    fn this_machine_has_an_identity_and_plausible_caches() {
        let cpu = Cpu::detect();
        assert!(!cpu.signature.vendor.as_str().is_empty());
        assert!(cpu.signature.same_model(&Signature::detect()));
        let caches = Caches::detect();
        assert!(caches.l1d < caches.l2 && caches.l2 < caches.llc, "{caches:?}");
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", feature = "os", target_os = "linux", target_env = "gnu"))]
    fn what_the_c_library_knows_is_what_the_cpu_says() {
        use core::arch::x86_64::__cpuid_count;
        // SAFETY: always callable.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: a string that is never freed.
        let version = unsafe { core::ffi::CStr::from_ptr(version) }.to_string_lossy();
        let (major, minor) = version.split_once('.').expect("two numbers");
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let offers = (number(major), number(minor)) >= (2, 33);
        for leaf in [1, 7, 0x8000_0001, 0x8000_0008] {
            let says = __cpuid_count(leaf, 0);
            let Some(known) = arch::known(leaf) else {
                assert!(!offers || leaf != 1, "glibc {version}");
                continue;
            };
            assert_eq!(
                (known.eax, known.ecx, known.edx),
                (says.eax, says.ecx, says.edx),
                "{leaf:x}"
            );
            // Leaf 1 contains the number of the CPU that was asked.
            assert!(leaf == 1 || known.ebx == says.ebx, "{leaf:x}");
        }
        assert!(arch::known(4).is_none(), "it is read differently");
    }

    #[test]
    fn identities_fit_a_file_name_and_a_line() {
        assert_eq!(Signature::new("Geode by NSC", 5, 4, 2).to_string(), "Geode_by_NSC 5 4 2");
        assert_eq!(Signature::new(" KVMKVMKVM\0\0", 6, 1, 0).to_string(), "KVMKVMKVM 6 1 0");
        assert_eq!(Signature::new("", 0, 0, 0).to_string(), "_ 0 0 0");
        assert_eq!(Text::<5>::new("abcdéf").as_str(), "abcd", "no character is cut in half");
        assert_eq!(Text::<8>::from_bytes(b"a\xFF\nb").as_str(), "a??b");
        assert_eq!(Text::<3>::from_bytes(b"a\xFF\nb").as_str(), "a??");
    }
}
