//! Large copies and zeroing by several threads, where the caller has them and the size pays.
//!
//! The operation is cut into chunks of whole pages, which the threads take one after the other from
//! a counter. So a thread that starts late takes less, one that never starts takes none, and the
//! caller, who works too, always finishes. What is done to a chunk is decided by the size of the
//! whole operation, since that is what passes through the cache.
//!
//! From what size on how many threads pay is in the profile, apart for threads that are made for
//! the call ([`Threads`]) and those that wait for it in a pool ([`Workers`]); a call uses no more
//! than pay. Without a profile the figures are computed and cautious ([`least()`]).

use crate::dispatch;
use crate::least::{LEAST, NEVER, log_of, row};
use crate::profile::{PARALLEL, Supply};
use crate::raw;
use crate::reuse::Reuse;
use crate::small;
use crate::source;
use cachewise_kernels::{Operation, PAGE_SIZE};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A thread pool that the caller provides.
///
/// ```
/// use cachewise::parallel::{Workers, zero_parallel};
///
/// /// Another library's pool.
/// struct Pool(rayon::ThreadPool);
///
/// impl Workers for Pool {
///     fn threads(&self) -> usize {
///         self.0.current_num_threads() + 1
///     }
///
///     fn run(&self, threads: usize, job: &(dyn Fn() + Sync)) {
///         self.0.in_place_scope(|scope| {
///             for _ in 1..threads {
///                 scope.spawn(|_| job());
///             }
///             job();
///         });
///     }
/// }
///
/// let pool = Pool(rayon::ThreadPoolBuilder::new().num_threads(1).build()?);
/// let mut table = vec![1u8; 4 << 20];
/// zero_parallel(&pool, &mut table);
/// assert!(table.iter().all(|byte| *byte == 0));
/// # Ok::<(), rayon::ThreadPoolBuildError>(())
/// ```
pub trait Workers {
    /// The number of threads for a call, including the calling one.
    fn threads(&self) -> usize;

    /// Lets up to `threads` threads, including the calling one, call `job` once each, and returns
    /// when all calls have returned. Fewer threads are allowed: the work is still complete.
    fn run(&self, threads: usize, job: &(dyn Fn() + Sync));

    /// Returns whether they exist before the call. It chooses among the profile's figures.
    fn supply(&self) -> Supply {
        Supply::Pooled
    }
}

/// Copies `src` to `dst` by several threads, if their size makes that pay.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// # #[cfg(feature = "os")] {
/// use cachewise::parallel::{Threads, copy_parallel};
///
/// let source = vec![7u8; 32 << 20];
/// let mut destination = vec![0u8; 32 << 20];
/// copy_parallel(&Threads::new(4), &mut destination, &source);
/// assert!(destination == source);
/// # }
/// ```
#[track_caller]
pub fn copy_parallel(workers: &(impl Workers + ?Sized), dst: &mut [u8], src: &[u8]) {
    copy_parallel_with(Reuse::Unknown, workers, dst, src);
}

/// [`copy_parallel`] with a hint about what happens to `dst` next.
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn copy_parallel_with(
    reuse: Reuse,
    workers: &(impl Workers + ?Sized),
    dst: &mut [u8],
    src: &[u8],
) {
    assert!(dst.len() == src.len(), "{} bytes are not {} bytes", src.len(), dst.len());
    // SAFETY: both slices have that many bytes, and a mutable one overlaps no other.
    unsafe { raw_copy_parallel(reuse, workers, dst.as_mut_ptr(), src.as_ptr(), src.len()) };
}

/// Zeroes `dst` by several threads, if its size makes that pay.
///
/// ```
/// # #[cfg(feature = "os")] {
/// use cachewise::parallel::{Threads, zero_parallel};
///
/// let mut table = vec![7u8; 32 << 20];
/// zero_parallel(&Threads::all(), &mut table);
/// assert!(table.iter().all(|byte| *byte == 0));
/// # }
/// ```
pub fn zero_parallel(workers: &(impl Workers + ?Sized), dst: &mut [u8]) {
    zero_parallel_with(Reuse::Unknown, workers, dst);
}

/// [`zero_parallel`] with a hint.
pub fn zero_parallel_with(reuse: Reuse, workers: &(impl Workers + ?Sized), dst: &mut [u8]) {
    // SAFETY: the slice has that many bytes, exclusively.
    unsafe { raw_zero_parallel(reuse, workers, dst.as_mut_ptr(), dst.len()) };
}

/// [`copy_parallel_with`] on pointers.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes, by every thread, and they do not overlap.
pub unsafe fn raw_copy_parallel(
    reuse: Reuse,
    workers: &(impl Workers + ?Sized),
    dst: *mut u8,
    src: *const u8,
    n: usize,
) {
    if ptr::eq(dst, src) {
        return;
    }
    let threads = paying(Operation::Copy, workers, n);
    // SAFETY: the caller's promise.
    unsafe { copy_by(threads, reuse, workers, dst, src, n) };
}

/// [`raw_copy_parallel`] by that many threads, whether they pay or not: for those who measure it.
///
/// # Safety
/// As [`raw_copy_parallel`].
#[doc(hidden)]
pub unsafe fn copy_by(
    threads: usize,
    reuse: Reuse,
    workers: &(impl Workers + ?Sized),
    dst: *mut u8,
    src: *const u8,
    n: usize,
) {
    if threads < 2 || n < small::LIMIT {
        // SAFETY: the caller's promise.
        unsafe { raw::copy_nonoverlapping_with(reuse, dst, src, n) };
        return;
    }
    let kernel = dispatch::copy(reuse, n);
    let (dst, src) = (Shared(dst), Shared(src.cast_mut()));
    in_chunks(workers, threads, dst.0.addr(), n, &|at, length| {
        // SAFETY: the chunk begins inside the n bytes.
        let to = unsafe { dst.at(at) };
        // SAFETY: as above.
        let from = unsafe { src.at(at) };
        // SAFETY: the chunk is inside the n bytes; nobody else has it.
        unsafe { kernel(to, from, length) };
    });
}

/// [`zero_parallel_with`] on a pointer.
///
/// # Safety
/// `dst` is writable for `n` bytes, by every thread.
pub unsafe fn raw_zero_parallel(
    reuse: Reuse,
    workers: &(impl Workers + ?Sized),
    dst: *mut u8,
    n: usize,
) {
    let threads = paying(Operation::Zero, workers, n);
    // SAFETY: the caller's promise.
    unsafe { zero_by(threads, reuse, workers, dst, n) };
}

/// [`raw_zero_parallel`] by that many threads, whether they pay or not: for those who measure it.
///
/// # Safety
/// As [`raw_zero_parallel`].
#[doc(hidden)]
pub unsafe fn zero_by(
    threads: usize,
    reuse: Reuse,
    workers: &(impl Workers + ?Sized),
    dst: *mut u8,
    n: usize,
) {
    if threads < 2 || n < small::LIMIT {
        // SAFETY: the caller's promise.
        unsafe { raw::zero_with(reuse, dst, n) };
        return;
    }
    let kernel = dispatch::zero(reuse, n);
    let dst = Shared(dst);
    in_chunks(workers, threads, dst.0.addr(), n, &|at, length| {
        // SAFETY: the chunk begins inside the n bytes.
        let to = unsafe { dst.at(at) };
        // SAFETY: the chunk is inside the n bytes; nobody else has it.
        unsafe { kernel(to, length) };
    });
}

/// A buffer's start that threads share; each uses chunks that it alone has claimed.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

impl Shared {
    /// # Safety
    /// `offset` is inside the buffer.
    unsafe fn at(self, offset: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(offset) }
    }
}

// SAFETY: it is only an address; who dereferences it answers for it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Chunks per thread: enough that one who starts late leaves work to others.
const CHUNKS: usize = 8;
/// The smallest chunk, below which taking it costs more than it evens out.
const LEAST_CHUNK: usize = 64 << 10;
/// The largest: beyond, nothing is gained, and the last one to finish is waited for longer.
const MOST_CHUNK: usize = 4 << 20;

/// Has `piece(offset, length)` called for all of `n` bytes, every byte once, by up to `threads`
/// threads. Borders between chunks are page borders of the buffer at `base`.
fn in_chunks(
    workers: &(impl Workers + ?Sized),
    threads: usize,
    base: usize,
    n: usize,
    piece: &(dyn Fn(usize, usize) + Sync),
) {
    let chunk = (n / (threads * CHUNKS)).clamp(LEAST_CHUNK, MOST_CHUNK) & !(PAGE_SIZE - 1);
    // The first chunk is longer by what brings the others to page borders.
    let lead = base.wrapping_neg() % PAGE_SIZE;
    let taken = AtomicUsize::new(0);
    let job = || {
        loop {
            // A chunk is nobody else's once the counter has passed it. Nothing is published by it:
            // whoever waits for the threads waits by means that order their stores.
            let index = taken.fetch_add(1, Ordering::Relaxed);
            let start = if index == 0 { 0 } else { lead + index * chunk };
            if start >= n {
                return;
            }
            let end = (lead + (index + 1) * chunk).min(n);
            piece(start, end - start);
        }
    };
    // The others are waited for, whoever wants this thread to end: they use what is on its stack.
    #[cfg(all(feature = "os", target_os = "linux"))]
    crate::os::uncancelled(|| workers.run(threads, &job));
    #[cfg(not(all(feature = "os", target_os = "linux")))]
    workers.run(threads, &job);
    // Work that no thread took.
    job();
}

/// The number of the workers' threads that pays for `n` bytes.
fn paying(operation: Operation, workers: &(impl Workers + ?Sized), n: usize) -> usize {
    let offered = workers.threads();
    if offered < 2 {
        return 1;
    }
    source::init();
    let Some(row) = LEAST.get(row(operation, workers.supply())) else { return 1 };
    let mut paying = 1;
    for (log, least) in row.iter().enumerate().skip(1) {
        // Half as many are not all that are offered, and these pay.
        let reaches = offered > 1 << (log - 1);
        if reaches && n as u64 >= least.load(Ordering::Relaxed) {
            paying = offered.min(1 << log);
        }
    }
    paying
}

/// The smallest size for which `threads` threads pay, as this process decides; `None` for none.
///
/// ```
/// use cachewise::parallel::least;
/// use cachewise::profile::Supply;
/// use cachewise_kernels::Operation;
///
/// match least(Operation::Copy, Supply::Pooled, 2) {
///     Some(bytes) => println!("two threads pay from {bytes} bytes on"),
///     None => println!("two threads pay at no size"),
/// }
/// assert_eq!(least(Operation::Copy, Supply::Pooled, 1), None);
/// assert_eq!(least(Operation::Compare, Supply::Pooled, 2), None);
/// ```
#[must_use]
pub fn least(operation: Operation, supply: Supply, threads: usize) -> Option<u64> {
    if !PARALLEL.contains(&operation) || threads < 2 {
        return None;
    }
    source::init();
    let least = LEAST.get(row(operation, supply))?.get(log_of(threads))?.load(Ordering::Relaxed);
    (least != NEVER).then_some(least)
}

#[cfg(all(feature = "os", unix))]
pub use threads::Threads;

/// Threads made for one call.
#[cfg(all(feature = "os", unix))]
mod threads {
    use super::{Supply, Workers};
    use core::ffi::c_void;
    use core::mem::MaybeUninit;
    use core::ptr;

    /// New threads for each call, which end with it. They take no signals.
    ///
    /// A thread that the system refuses is done without.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Threads(usize);

    /// No call makes more.
    const MOST: usize = 1024;
    /// Bytes of a thread's stack: kernels use next to none, the C library's own start some.
    const STACK: usize = 128 << 10;

    impl Threads {
        /// That many, the calling one among them; 0 counts as 1.
        #[must_use]
        pub fn new(threads: usize) -> Threads {
            Threads(threads.clamp(1, MOST))
        }

        /// As many as there are CPUs that this process may run on.
        #[must_use]
        pub fn all() -> Threads {
            Threads::new(cpus())
        }
    }

    #[cfg(target_os = "linux")]
    fn cpus() -> usize {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the size is the set's, which may be written.
        let told =
            unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
        if told != 0 {
            // More CPUs than a set holds.
            return online();
        }
        // SAFETY: zeroes are a set, and the call has filled it.
        let set = unsafe { set.assume_init() };
        // SAFETY: reads the set.
        usize::try_from(unsafe { libc::CPU_COUNT(&set) }).unwrap_or(1)
    }

    #[cfg(not(target_os = "linux"))]
    fn cpus() -> usize {
        online()
    }

    fn online() -> usize {
        // SAFETY: always callable.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
    }

    type Job<'j> = &'j (dyn Fn() + Sync);

    extern "C" fn start(job: *mut c_void) -> *mut c_void {
        // SAFETY: `run` passes a pointer to a job that outlives the thread.
        let job = unsafe { &*job.cast::<Job<'_>>() };
        job();
        ptr::null_mut()
    }

    /// The attributes of the threads, or none where the system refuses them.
    struct Attributes(Option<libc::pthread_attr_t>);

    impl Attributes {
        fn new() -> Attributes {
            let mut attributes = MaybeUninit::uninit();
            // SAFETY: a place for attributes.
            if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
                return Attributes(None);
            }
            // SAFETY: initialised by the call above.
            let mut attributes = unsafe { attributes.assume_init() };
            // A refused size leaves the system's own, which is only larger.
            // SAFETY: initialised attributes.
            unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, STACK) };
            Attributes(Some(attributes))
        }

        fn as_ptr(&self) -> *const libc::pthread_attr_t {
            self.0.as_ref().map_or(ptr::null(), ptr::from_ref)
        }
    }

    impl Drop for Attributes {
        fn drop(&mut self) {
            if let Some(attributes) = &mut self.0 {
                // SAFETY: initialised, and used by nobody after this.
                unsafe { libc::pthread_attr_destroy(attributes) };
            }
        }
    }

    /// Keeps signals from the threads made while it lives: they are the program's, not ours.
    struct Blocked(Option<libc::sigset_t>);

    impl Blocked {
        fn new() -> Blocked {
            let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: a place for a set.
            unsafe { libc::sigfillset(all.as_mut_ptr()) };
            // SAFETY: `all` is filled, `before` a place for a set.
            let told = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr())
            };
            // SAFETY: filled by a call that succeeded.
            Blocked((told == 0).then(|| unsafe { before.assume_init() }))
        }
    }

    impl Drop for Blocked {
        fn drop(&mut self) {
            if let Some(before) = &self.0 {
                // SAFETY: the set that was in force before.
                unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
            }
        }
    }

    impl Workers for Threads {
        fn threads(&self) -> usize {
            self.0
        }

        fn run(&self, threads: usize, job: Job<'_>) {
            let mut handles = [const { MaybeUninit::<libc::pthread_t>::uninit() }; MOST];
            let mut made = 0;
            {
                let attributes = Attributes::new();
                let _blocked = Blocked::new();
                for handle in handles.iter_mut().take(threads.saturating_sub(1)) {
                    let argument = (&raw const job).cast_mut().cast::<c_void>();
                    // SAFETY: a place for the handle, valid attributes or none, and an argument that
                    // outlives the thread, which is joined below.
                    let told = unsafe {
                        libc::pthread_create(
                            handle.as_mut_ptr(),
                            attributes.as_ptr(),
                            start,
                            argument,
                        )
                    };
                    if told != 0 {
                        break;
                    }
                    made += 1;
                }
            }
            // Jobs are this module's own and do not panic, so nothing is left unjoined.
            job();
            for handle in handles.iter().take(made) {
                // SAFETY: the first `made` handles are of threads that nobody else joins.
                let handle = unsafe { handle.assume_init() };
                // SAFETY: as above.
                unsafe { libc::pthread_join(handle, ptr::null_mut()) };
            }
        }

        fn supply(&self) -> Supply {
            Supply::Spawned
        }
    }
}
