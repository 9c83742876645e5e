//! State of each thread in a pool: the locks that it holds, and its caches.
//!
//! An allocator calls this. So finding it must need no lock of the loader's and no memory: it is
//! initial-exec thread-local storage, which is there from the thread's first instruction on, and
//! nothing has a destructor (registering one on first use takes the loader's lock). All of it is
//! zero in a new thread. On targets without an access written down here it is the standard
//! library's storage of constants, which has no destructor either.
//!
//! All fields are written by their own thread alone; they are atomics because a signal handler of
//! that thread may look in between.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Pools whose caches a thread finds at once; a pool's place is its number modulo this.
pub(crate) const ENTRIES: usize = 16;
/// Locks of pools that one thread holds at a time, its signal handlers' included.
const HELD: usize = 4;

/// One pool's cache of this thread.
#[repr(C)]
pub(crate) struct Entry {
    /// The pool's number; 0 where there is none. Numbers are not used twice.
    pub(crate) pool: AtomicU64,
    /// Its cache (`magazine.rs`).
    pub(crate) magazine: AtomicPtr<()>,
}

/// The data of a thread.
#[repr(C, align(64))]
pub(crate) struct Thread {
    pub(crate) entries: [Entry; ENTRIES],
    held: [AtomicU64; HELD],
    depth: AtomicU32,
    /// Forks under way: between the handlers before and after them.
    pub(crate) forking: AtomicU32,
    /// Calls under way that have blocks in flight while no lock is held.
    pub(crate) working: AtomicU32,
    /// Its caches went back: it is ending, and gets no others.
    pub(crate) ended: AtomicU32,
    /// Not 0 if its end will be reported (`cache.rs`).
    pub(crate) known: AtomicU32,
    /// It is getting a cache.
    pub(crate) entering: AtomicU32,
    /// Its mark in locks; 0 before the first.
    mark: AtomicU32,
    /// The schedule that it runs in, if any, and which of its threads it is.
    #[cfg(all(feature = "testing", debug_assertions))]
    pub(crate) schedule: AtomicPtr<()>,
    #[cfg(feature = "testing")]
    pub(crate) number: AtomicU32,
}

const BYTES: usize = 384;
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
    /// The same in a forked child.
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

    /// Says that this thread is about to take a pool's lock. False if it has it already, or is
    /// about to: the caller is a signal handler that interrupted the pool in this thread.
    pub(crate) fn begin(&self, pool: u64) -> bool {
        let depth = self.depth.load(Ordering::Relaxed) as usize;
        if depth >= HELD || self.holds(pool) {
            return false;
        }
        self.held[depth].store(pool, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.depth.store(depth as u32 + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// Says that the lock taken last was let go.
    pub(crate) fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        let depth = self.depth.load(Ordering::Relaxed);
        self.depth.store(depth.saturating_sub(1), Ordering::Relaxed);
    }

    /// Checks whether this thread has a pool's lock, or is about to take it.
    pub(crate) fn holds(&self, pool: u64) -> bool {
        let depth = self.depth.load(Ordering::Relaxed) as usize;
        self.held.iter().take(depth).any(|held| held.load(Ordering::Relaxed) == pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_and_it_is_zero_at_first() {
        let working = || current().working.load(Ordering::Relaxed);
        current().working.store(7, Ordering::Relaxed);
        let mine = std::ptr::from_ref(current()).addr();
        let other = std::thread::spawn(move || (std::ptr::from_ref(current()).addr(), working()));
        let (theirs, value) = other.join().expect("no panic");
        assert_ne!(theirs, mine);
        assert_eq!((value, working()), (0, 7));
        current().working.store(0, Ordering::Relaxed);
        assert_eq!(std::ptr::from_ref(current()).addr(), mine);
    }

    /// Some programs lay their threads' stacks by themselves.
    #[test]
    #[cfg(not(miri))]
    fn threads_whose_storage_lies_far_apart_are_two() {
        let apart = 1usize << 37;
        let page = crate::os::page_size();
        let space = crate::os::Mapping::reserved(apart + page, page).expect("address space");
        let [one, other] = [0, apart].map(|offset| {
            let place = space.start().wrapping_add(offset);
            // SAFETY: a page of the mapping.
            unsafe { crate::os::open(place, page) }.expect("a page");
            // SAFETY: a page, zero, which is a valid value of each field.
            unsafe { &*place.cast::<Thread>() }
        });
        assert_ne!(one.mark(), other.mark());
        assert_eq!(one.mark(), one.mark());
    }

    #[test]
    fn a_lock_is_begun_once_and_four_at_most() {
        let thread = current();
        assert!(thread.begin(11) && !thread.begin(11) && thread.begin(12));
        assert!(
            thread.begin(13) && thread.begin(14) && !thread.begin(15),
            "as many as there are places"
        );
        assert!(thread.holds(11) && thread.holds(14) && !thread.holds(15));
        (0..4).for_each(|_| thread.end());
        assert!(!thread.holds(11) && thread.begin(11));
        thread.end();
    }
}
