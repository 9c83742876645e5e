//! Saving and restoring vector registers with XSAVE, XSAVEC, XSAVEOPT and XRSTOR, as an owner of the
//! registers other than the compiler would: a kernel.
//!
//! References: Intel SDM volume 1, chapter 13 ("Managing state using the XSAVE feature set"); AMD APM
//! volume 2, section 11.5. Component bits are those of XCR0.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _xgetbv};

/// x87 registers (and MMX, their other name).
pub const X87: u64 = 1;
pub const SSE: u64 = 1 << 1;
/// The upper halves of ymm registers.
pub const AVX: u64 = 1 << 2;
/// Mask registers, upper halves of zmm0-15, and zmm16-31.
pub const AVX512: u64 = 0b111 << 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// Every component asked for, each at its fixed place.
    Xsave,
    /// XSAVE less what is in its initial state or unmodified since the last XRSTOR from the same
    /// area (the modified optimisation).
    Xsaveopt,
    /// Compacted, less what is in its initial state.
    Xsavec,
}

impl Save {
    /// All of them, oldest first.
    pub const ALL: [Save; 3] = [Save::Xsave, Save::Xsaveopt, Save::Xsavec];

    pub const fn name(self) -> &'static str {
        ["xsave", "xsaveopt", "xsavec"][self as usize]
    }
}

/// The instructions that this CPU and operating system offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// Components enabled in XCR0, of those this module knows.
    pub components: u64,
    /// Instructions beside XSAVE that exist: CPUID leaf 0xD, sub-leaf 1, EAX.
    instructions: u32,
}

impl Support {
    /// Asks CPUID and XCR0; `None` where XSAVE is absent or the operating system has not enabled it.
    pub fn detect() -> Option<Support> {
        const OSXSAVE: u32 = 1 << 27;
        if __cpuid_count(0, 0).eax < 0xD || __cpuid_count(1, 0).ecx & OSXSAVE == 0 {
            return None;
        }
        // SAFETY: OSXSAVE lets every privilege level read XCR0.
        let enabled = unsafe { _xgetbv(0) };
        let components = enabled & (X87 | SSE | AVX | AVX512);
        Some(Support { components, instructions: __cpuid_count(0xD, 1).eax })
    }

    /// Tells whether an instruction exists here.
    pub const fn has(&self, save: Save) -> bool {
        match save {
            Save::Xsave => true,
            Save::Xsaveopt => self.instructions & 1 != 0,
            Save::Xsavec => self.instructions & 2 != 0,
        }
    }

    /// The instruction that does not rely on registers being unmodified since the last restore: a caller's
    /// registers are, but those of a benchmark that only saves and restores are not.
    pub const fn honest(&self) -> Save {
        if self.has(Save::Xsavec) { Save::Xsavec } else { Save::Xsave }
    }

    /// Bytes that saving `components` writes at most, header and legacy region included: the sum of
    /// their sizes, CPUID leaf 0xD.
    pub fn bytes(&self, components: u64) -> usize {
        let extended: usize = (2..63)
            .filter(|bit| components >> bit & 1 == 1)
            .map(|bit| __cpuid_count(0xD, bit).eax as usize)
            .sum();
        576 + extended
    }
}

/// A save area: 64-byte aligned, zeroed, large enough for any format of all components.
pub struct Area {
    memory: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "reached by address alone")] [u8; 64]);

/// Offset of the header's XSTATE_BV: which components the area holds.
const XSTATE_BV: usize = 512;

/// Bytes of an area in standard format for everything XCR0 enables.
fn standard_area() -> usize {
    __cpuid_count(0xD, 0).ebx as usize
}

impl Area {
    /// An area for everything this machine enables.
    pub fn new(support: &Support) -> Area {
        // The compacted format aligns components to 64 bytes at most, one line each.
        let bytes = standard_area().max(support.bytes(support.components)) + 8 * 64;
        Area { memory: vec![Line([0; 64]); bytes.div_ceil(64)] }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    /// Components that the last save found in another than their initial state.
    pub fn held(&mut self) -> u64 {
        let word = self.pointer().wrapping_add(XSTATE_BV).cast::<u64>();
        // SAFETY: within the area's header, aligned.
        unsafe { word.read() }
    }

    /// Saves `components`.
    ///
    /// # Safety
    /// The instruction exists here ([`Support::has`]) and the components are enabled.
    #[inline(always)]
    pub unsafe fn save(&mut self, save: Save, components: u64) {
        let (area, low, high) = (self.pointer(), components as u32, (components >> 32) as u32);
        macro_rules! save {
            ($instruction:literal) => {
                // SAFETY: the caller's promise; the area is large enough, aligned to 64 bytes.
                unsafe {
                    asm!($instruction, area = in(reg) area, in("eax") low, in("edx") high, options(nostack));
                }
            };
        }
        match save {
            Save::Xsave => save!("xsave64 [{area}]"),
            Save::Xsaveopt => save!("xsaveopt64 [{area}]"),
            Save::Xsavec => save!("xsavec64 [{area}]"),
        }
    }

    /// Restores `components` as the last save left them.
    ///
    /// # Safety
    /// Conditions of [`save`](Area::save); the area was saved to before, so that its MXCSR is valid.
    #[inline(always)]
    pub unsafe fn restore(&mut self, components: u64) {
        let (area, low, high) = (self.pointer(), components as u32, (components >> 32) as u32);
        // SAFETY: the caller's promise. Every vector register is declared lost, although it holds
        // what it held at the save.
        unsafe {
            asm!("xrstor64 [{}]", in(reg) area, inlateout("eax") low => _, inlateout("edx") high => _, clobber_abi("sysv64"), options(nostack));
        }
    }

    /// Puts `components` into their initial state, MXCSR excepted, as one who has finished with them
    /// would (XRSTOR of an area that holds nothing).
    ///
    /// # Safety
    /// The components are enabled, and nobody relies on what they hold.
    pub unsafe fn initialise(&mut self, components: u64) {
        // A valid MXCSR first: XRSTOR in standard format loads it whatever the header says.
        // SAFETY: the caller's promise; XSAVE is there wherever an area was made.
        unsafe { self.save(Save::Xsave, components | SSE) };
        // SAFETY: the 64 bytes of the header, inside the area.
        unsafe { self.pointer().wrapping_add(XSTATE_BV).write_bytes(0, 64) };
        // SAFETY: the caller's promise; a header of zeros is standard format and valid.
        unsafe { self.restore(components) };
    }
}

/// Writes every register of `components`, so that none is in its initial state.
///
/// # Safety
/// The components are enabled.
#[inline(always)]
pub unsafe fn modify(components: u64) {
    macro_rules! write_all {
        ($($line:literal),+) => {
            // SAFETY: what it writes is enabled and declared lost; the x87 stack is empty before and after.
            unsafe { asm!($($line),+, clobber_abi("sysv64"), options(nostack)) }
        };
    }
    if components & X87 != 0 {
        write_all!("fld1", "fstp st(0)");
    }
    if components & AVX512 != 0 {
        write_all!(
            ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "vpternlogd zmm\\r, zmm\\r, zmm\\r, 255",
            ".endr",
            ".irp r, 0,1,2,3,4,5,6,7",
            "kxnorw k\\r, k\\r, k\\r",
            ".endr"
        );
    } else if components & AVX != 0 {
        write_all!(
            ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vcmptrueps ymm\\r, ymm\\r, ymm\\r",
            ".endr"
        );
    } else if components & SSE != 0 {
        write_all!(
            ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "pcmpeqd xmm\\r, xmm\\r",
            ".endr"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what this CPU has, if it has what a test needs.
    fn here(is_fit: fn(&Support) -> bool) -> Option<Support> {
        let support = Support::detect().filter(is_fit);
        if support.is_none() {
            eprintln!("vector state: skipped, this CPU cannot save it so");
        }
        support
    }

    #[test]
    fn registers_survive_every_instruction_there_is() {
        let Some(support) = here(|_| true) else { return };
        assert_eq!(support.components & SSE, SSE, "{support:?}");
        for save in Save::ALL.into_iter().filter(|save| support.has(*save)) {
            let [mut held, mut initial, mut found] = [(); 3].map(|()| Area::new(&support));
            // SAFETY: SSE is enabled.
            unsafe { modify(SSE) };
            // SAFETY: the instruction exists, and SSE is enabled.
            unsafe { held.save(save, SSE) };
            // SAFETY: SSE is enabled; nothing here keeps values in vector registers.
            unsafe { initial.initialise(SSE) };
            // SAFETY: SSE is enabled, and was saved.
            unsafe { held.restore(SSE) };
            // SAFETY: XSAVE exists, and SSE is enabled.
            unsafe { found.save(Save::Xsave, SSE) };
            // SDM volume 1, table 13-1: where the legacy region has the sixteen registers.
            let bytes: Vec<u8> = found.memory.iter().flat_map(|line| line.0).collect();
            assert_eq!(bytes[160..416], [0xFF; 256], "{}", save.name());
        }
    }

    #[test]
    fn the_header_tells_dirty_from_clean() {
        let is_fit = |of: &Support| of.components & AVX != 0 && of.has(Save::Xsavec);
        let Some(support) = here(is_fit) else { return };
        let mut area = Area::new(&support);
        // SAFETY: AVX is enabled.
        unsafe { modify(AVX | SSE) };
        // SAFETY: XSAVEC exists, the components are enabled.
        unsafe { area.save(Save::Xsavec, AVX | SSE) };
        assert_eq!(area.held() & AVX, AVX);
        // SAFETY: as above; nothing here keeps values in vector registers.
        unsafe { area.initialise(AVX | SSE) };
        // SAFETY: as above.
        unsafe { area.save(Save::Xsavec, AVX | SSE) };
        assert_eq!(area.held() & AVX, 0);
    }
}
