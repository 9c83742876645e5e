//! What is kept of each thread.
//!
//! An allocator calls this. So finding it must need no lock of the loader's and no memory: it is
//! initial-exec thread-local storage, which is there from the thread's first instruction on, and
//! nothing has a destructor (registering one on first use takes the loader's lock). All of it is zero
//! in a new thread. On targets without an access written down here it is the standard library's
//! storage of constants, which has no destructor either.
//!
//! All fields are written by their own thread alone; they are atomics because a signal handler of that
//! thread may look in between.

use std::sync::atomic::AtomicU32;

/// What is kept of a thread.
#[repr(C, align(64))]
pub struct Thread {
    /// For the library that this one is part of: it is looking for something that may call it back.
    pub looking: AtomicU32,
}

const BYTES: usize = 256;
const _: () = assert!(size_of::<Thread>() <= BYTES, "the place is as long as what is in it");

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod place {
    use super::BYTES;

    macro_rules! symbol {
        () => {
            concat!("cachewise_pages_thread_", env!("CARGO_PKG_VERSION"))
        };
    }

    // The version is in the name, so that two versions of the crate can be in one program.
    std::arch::global_asm!(
        ".pushsection .tbss,\"awT\",@nobits",
        ".p2align 6",
        concat!(".globl \"", symbol!(), "\""),
        concat!(".hidden \"", symbol!(), "\""),
        concat!("\"", symbol!(), "\":"),
        ".zero {bytes}",
        concat!(".size \"", symbol!(), "\", {bytes}"),
        ".popsection",
        bytes = const BYTES,
    );

    #[inline(always)]
    pub(super) fn address() -> *const super::Thread {
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads the thread pointer and adds the variable's offset, which the loader wrote; System V
        // ABI, "ELF Handling For Thread-Local Storage", 4.4.6.
        unsafe {
            std::arch::asm!(
                "mov {address}, qword ptr fs:[0]",
                concat!("add {address}, qword ptr [rip + \"", symbol!(), "\"@GOTTPOFF]"),
                address = out(reg) address,
                options(pure, nomem, nostack),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above; ELF for the Arm 64-bit Architecture, "Initial Exec".
        unsafe {
            std::arch::asm!(
                "mrs {address}, tpidr_el0",
                concat!("adrp {offset}, :gottprel:\"", symbol!(), "\""),
                concat!("ldr {offset}, [{offset}, :gottprel_lo12:\"", symbol!(), "\"]"),
                "add {address}, {address}, {offset}",
                address = out(reg) address,
                offset = out(reg) _,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        std::ptr::with_exposed_provenance(address)
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
mod place {
    use std::sync::atomic::AtomicU32;

    std::thread_local! {
        static THREAD: super::Thread = const {
            super::Thread {
                looking: AtomicU32::new(0),
            }
        };
    }

    pub(super) fn address() -> *const super::Thread {
        THREAD.with(std::ptr::from_ref)
    }
}

/// The calling thread's. Not to be kept for another thread: the reference is good as long as the
/// thread lives.
#[inline(always)]
#[must_use]
pub fn current<'t>() -> &'t Thread {
    // SAFETY: the thread's own storage, zero at first, which is a valid value of each field.
    unsafe { &*place::address() }
}

#[cfg(test)]
mod tests {
    use super::current;
    use std::sync::atomic::Ordering;

    #[test]
    fn every_thread_has_its_own_and_it_is_zero_at_first() {
        current().looking.store(7, Ordering::Relaxed);
        let mine = std::ptr::from_ref(current()).addr();
        let other = std::thread::spawn(|| {
            (std::ptr::from_ref(current()).addr(), current().looking.load(Ordering::Relaxed))
        });
        let (theirs, value) = other.join().expect("no panic");
        assert_ne!(theirs, mine);
        assert_eq!((value, current().looking.load(Ordering::Relaxed)), (0, 7));
        assert_eq!(std::ptr::from_ref(current()).addr(), mine);
    }
}
