//! State of each thread: its mark in locks, and its caches of pools.
//!
//! A signal handler may be the first of its thread to call. So finding this needs no lock of the loader's and no memory:
//! it is initial-exec thread-local storage, which is there from the thread's first instruction on, and
//! nothing has a destructor. All of it is zero in a new thread. On targets without an access written down here it is
//! the standard library's storage of constants, which has no destructor either.
//!
//! All fields are written by their own thread alone; they are atomics because a signal handler of
//! that thread may look in between.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Pools whose caches a thread finds at once; a pool's place is its number modulo this.
const ENTRIES: usize = 8;

/// One pool's cache of this thread.
#[repr(C)]
pub(crate) struct Entry {
    /// The pool's number; 0 where there is none. Numbers are not used twice.
    pub(crate) pool: AtomicU64,
    /// Its cache (`magazine.rs`).
    pub(crate) magazine: AtomicPtr<()>,
    /// A weak reference to the pool, or null; kept until another pool takes the place.
    pub(crate) weak: AtomicPtr<()>,
}

/// The data of a thread.
#[repr(C, align(64))]
pub(crate) struct Thread {
    pub(crate) entries: [Entry; ENTRIES],
    /// Its caches went back: it is ending, and gets no others.
    pub(crate) ended: AtomicU32,
    /// Not 0 if its end will be reported (`cache.rs`).
    pub(crate) known: AtomicU32,
    /// Not 0 while it is getting a cache.
    pub(crate) entering: AtomicU32,
    /// Its mark in locks; 0 before the first.
    mark: AtomicU32,
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
        // SAFETY: reads the thread pointer and adds the variable's offset, which the loader wrote;
        // System V ABI, "ELF Handling For Thread-Local Storage", 4.4.6.
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
    std::thread_local! {
        // SAFETY: zero is a valid value of each field.
        static THREAD: super::Thread = const { unsafe { std::mem::zeroed() } };
    }

    pub(super) fn address() -> *const super::Thread {
        THREAD.with(std::ptr::from_ref)
    }
}

/// The calling thread's. Not to be kept for another thread: the reference is good as long as the
/// thread lives.
#[inline(always)]
pub(crate) fn current<'t>() -> &'t Thread {
    // SAFETY: the thread's own storage, zero at first, which is a valid value of each field.
    unsafe { &*place::address() }
}

impl Thread {
    /// The mark in a lock that this thread has: even, not 0, and another for each of two thousand million threads.
    pub(crate) fn mark(&self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(2);
        let known = self.mark.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let new = NEXT.fetch_add(2, Ordering::Relaxed).max(2);
        // A signal handler may have been faster.
        match self.mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => new,
            Err(other) => other,
        }
    }

    #[inline(always)]
    pub(crate) fn entry(&self, pool: u64) -> &Entry {
        &self.entries[pool as usize % ENTRIES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_which_is_zero_at_first() {
        let ended = || current().ended.load(Ordering::Relaxed);
        current().ended.store(7, Ordering::Relaxed);
        let mine = (std::ptr::from_ref(current()).addr(), current().mark());
        let theirs = std::thread::spawn(move || {
            ((std::ptr::from_ref(current()).addr(), current().mark()), ended())
        });
        let (theirs, value) = theirs.join().expect("no panic");
        assert!(theirs.0 != mine.0 && theirs.1 != mine.1);
        assert_eq!((value, ended()), (0, 7));
        current().ended.store(0, Ordering::Relaxed);
        assert_eq!((std::ptr::from_ref(current()).addr(), current().mark()), mine);
    }
}
