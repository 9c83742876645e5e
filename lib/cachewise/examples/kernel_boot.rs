//! Copying in a kernel or hypervisor: kernels chosen once at boot, vector registers saved around
//! them, integers below the size from which that pays.
//!
//! Such code may use vector registers only while it holds them: what they contain is some
//! program's. So a vector copy costs a save and a restore on top, and a short one is done with
//! integers. How short is measured here, at boot, on the machine that matters.
//!
//! ```text
//! boot:   CPUID -> features -> a compiled-in profile that fits, or computed decisions
//!         time XSAVE + XRSTOR, integer and vector copies -> break-even size
//! copy:   size < break-even -> integer kernel
//!         else              -> save the components the kernel uses, copy, restore
//! ```
//!
//! [`boot`] needs `core` alone and compiles for `x86_64-unknown-none`; only `main` prints. In user
//! space, where XSAVE and XRSTOR are allowed, it runs as it stands:
//!
//! ```text
//! cargo run --release -p cachewise --example kernel_boot
//! ```
//!
//! A kernel also disables preemption while it holds the registers and does not take them in an
//! interrupt that came while they were held. How to build for one: `docs/no-std.md`.

#![cfg_attr(target_os = "none", no_std)]

#[cfg(target_arch = "x86_64")]
pub mod boot {
    //! The part that a kernel would take from here.

    use cachewise::Reuse;
    use cachewise_kernels::kernel::CopyFn;
    use cachewise_kernels::{Features, Function, Kernel, Operation, RegisterClass, find};
    use core::arch::asm;
    use core::arch::x86_64::{__cpuid, __cpuid_count, _rdtsc};

    /// xmm registers and MXCSR: bit 1 of XCR0 (Intel SDM volume 1, 13.1).
    pub const SSE: u64 = 1 << 1;
    /// The upper halves of the ymm registers.
    pub const AVX: u64 = 1 << 2;
    /// Mask registers, upper halves of zmm0-15, and zmm16-31.
    pub const AVX512: u64 = 0b111 << 5;

    /// Profiles that are compiled in; the first that is for this CPU is followed. `cachewise tune`
    /// writes such files.
    pub const PROFILES: &[&[u8]] = &[include_bytes!("kernel_boot.profile")];

    /// Room for everything that is saved: the largest area of a CPU with AVX-512 and all before it
    /// has 2696 bytes. A kernel has one per CPU and level of nesting.
    #[repr(C, align(64))]
    pub struct Area([u8; Area::BYTES]);

    impl Area {
        const BYTES: usize = 4096;

        /// An empty one.
        #[must_use]
        pub const fn new() -> Area {
            Area([0; Area::BYTES])
        }
    }

    impl Default for Area {
        fn default() -> Area {
            Area::new()
        }
    }

    /// Runs `body`, which may change the vector registers of `components`, and puts them back.
    ///
    /// `None`, and `body` not run, where the CPU does not save those components or the area is too
    /// small for them: then they are not to be touched.
    pub fn with_vector_state<T>(
        area: &mut Area,
        components: u64,
        body: impl FnOnce() -> T,
    ) -> Option<T> {
        if !can_save(components) {
            return None;
        }
        let (low, high) = (components as u32, (components >> 32) as u32);
        let area = area.0.as_mut_ptr();
        // SAFETY: XSAVE is there and the components are enabled (`can_save`); the area is aligned to
        // 64 bytes and long enough. The header's reserved words are zero: the area was zeroed, and
        // XSAVE writes none of them.
        unsafe {
            asm!("xsave64 [{}]", in(reg) area, in("eax") low, in("edx") high, options(nostack));
        }
        let result = body();
        // SAFETY: as above, and the area was just saved to. All vector registers are declared lost,
        // so that the compiler keeps nothing of `body`'s in them.
        unsafe {
            asm!(
                "xrstor64 [{}]",
                in(reg) area,
                inlateout("eax") low => _,
                inlateout("edx") high => _,
                clobber_abi("sysv64"),
                options(nostack),
            );
        }
        Some(result)
    }

    /// Returns whether XSAVE is enabled for these components, and an [`Area`] holds all that is enabled.
    fn can_save(components: u64) -> bool {
        const OSXSAVE: u32 = 1 << 27;
        if __cpuid(0).eax < 0xD || __cpuid(1).ecx & OSXSAVE == 0 {
            return false;
        }
        let (low, high): (u32, u32);
        // SAFETY: OSXSAVE is set, so XCR0 may be read.
        unsafe {
            asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack));
        }
        let enabled = u64::from(high) << 32 | u64::from(low);
        enabled & components == components && __cpuid_count(0xD, 0).ebx as usize <= Area::BYTES
    }

    /// Choices made at boot.
    #[derive(Clone, Copy)]
    pub struct Boot {
        /// True if a compiled-in profile is followed.
        pub profiled: bool,
        /// For short copies, and for moments when the vector registers cannot be had.
        pub integer: &'static Kernel,
        /// For the others.
        pub vector: &'static Kernel,
        /// State components that `vector` uses.
        pub components: u64,
        /// From so many bytes on, `vector` with its save and restore is the faster.
        pub break_even: usize,
        copy_integer: CopyFn,
        copy_vector: CopyFn,
    }

    /// Sizes that are tried for the break-even, smallest first.
    const TRIED: [usize; 9] = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
    /// The largest of them.
    pub const LARGEST_TRIED: usize = TRIED[TRIED.len() - 1];

    impl Boot {
        /// Chooses. `scratch` is two buffers to time with, of [`LARGEST_TRIED`] bytes.
        #[must_use]
        pub fn choose(area: &mut Area, scratch: (&mut [u8], &[u8])) -> Boot {
            let available = Features::detect();
            let profiled = PROFILES.iter().any(|profile| cachewise::install(profile).is_ok());
            // The profile's or the default's decision for a large copy that is read soon.
            let decided = cachewise::decision(Operation::Copy, Reuse::Soon, 1 << 16).kernel;
            let integer_name =
                if available.contains(Features::ERMS) { "copy.rep.movsb" } else { "copy.gpr64" };
            let integer = find(integer_name).unwrap_or(&cachewise_kernels::TABLE[0]);
            let (copy_integer, vector) = (function(integer), decided.unwrap_or(integer));
            let mut boot = Boot {
                profiled,
                integer,
                vector,
                components: components(vector.registers),
                break_even: usize::MAX,
                copy_integer,
                copy_vector: function(vector),
            };
            let (dst, src) = scratch;
            if boot.components != 0 && can_save(boot.components) {
                let pays = |size: &usize| boot.pays(area, dst, src, *size);
                boot.break_even = TRIED.into_iter().find(pays).unwrap_or(usize::MAX);
            }
            boot
        }

        /// Returns whether the vector kernel, saved and restored, beats the integer one at a size.
        fn pays(&self, area: &mut Area, dst: &mut [u8], src: &[u8], size: usize) -> bool {
            let size = size.min(dst.len()).min(src.len());
            let (to, from) = (dst.as_mut_ptr(), src.as_ptr());
            let with_integers = fewest_cycles(|| {
                // SAFETY: both buffers have `size` bytes and do not overlap; `integer` runs anywhere
                // its features were found.
                unsafe { (self.copy_integer)(to, from, size) };
            });
            let with_vectors = fewest_cycles(|| {
                with_vector_state(area, self.components, || {
                    // SAFETY: as above; a decision is for this CPU.
                    unsafe { (self.copy_vector)(to, from, size) };
                });
            });
            with_vectors < with_integers
        }

        /// Copies; the buffers have equal lengths.
        ///
        /// # Panics
        /// If the lengths differ.
        pub fn copy(&self, area: &mut Area, dst: &mut [u8], src: &[u8]) {
            assert_eq!(dst.len(), src.len());
            let (to, from, n) = (dst.as_mut_ptr(), src.as_ptr(), src.len());
            if n >= self.break_even {
                let copied = with_vector_state(area, self.components, || {
                    // SAFETY: both have n bytes and do not overlap; a decision is for this CPU.
                    unsafe { (self.copy_vector)(to, from, n) };
                });
                if copied.is_some() {
                    return;
                }
            }
            // SAFETY: as above.
            unsafe { (self.copy_integer)(to, from, n) };
        }
    }

    /// The registers a kernel uses, as components of the saved state.
    #[must_use]
    pub const fn components(registers: RegisterClass) -> u64 {
        match registers {
            RegisterClass::Xmm => SSE,
            RegisterClass::Ymm => SSE | AVX,
            RegisterClass::Zmm => SSE | AVX | AVX512,
            _ => 0,
        }
    }

    fn function(kernel: &Kernel) -> CopyFn {
        match kernel.function {
            Function::Copy(copy) => copy,
            _ => unreachable!("{} is no copy", kernel.name),
        }
    }

    /// The shortest of some runs, in ticks of the time-stamp counter.
    fn fewest_cycles(mut run: impl FnMut()) -> u64 {
        let mut fewest = u64::MAX;
        for _ in 0..64 {
            // SAFETY: every x86-64 CPU has it; a kernel's own code may always read it.
            let before = unsafe { _rdtsc() };
            run();
            // SAFETY: as above.
            let after = unsafe { _rdtsc() };
            fewest = fewest.min(after.wrapping_sub(before));
        }
        fewest
    }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "none")))]
#[allow(dead_code, reason = "the test includes this file for what is above")]
fn main() {
    use boot::{Area, Boot, LARGEST_TRIED};
    let mut area = Area::new();
    let source = vec![7; LARGEST_TRIED];
    let mut destination = vec![1; LARGEST_TRIED];
    let boot = Boot::choose(&mut area, (&mut destination, &source));
    println!(
        "decided by {}",
        if boot.profiled { "a compiled-in profile" } else { "the CPU's features and caches" }
    );
    println!("integers: {}", boot.integer.name);
    println!("vectors:  {}, saving components {:#x}", boot.vector.name, boot.components);
    match boot.break_even {
        usize::MAX => println!("vectors never pay, up to {LARGEST_TRIED} bytes"),
        size => println!("vectors pay from {size} bytes on"),
    }
    for size in [64, 1024, LARGEST_TRIED] {
        destination.fill(1);
        boot.copy(&mut area, &mut destination[..size], &source[..size]);
        assert!(destination[..size] == source[..size], "wrong bytes");
    }
    println!("copied");
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("XSAVE is x86-64's");
}
