//! The allocator that the program would have had: the next in the order of loading, which is
//! glibc's or another that is preloaded or linked.
//!
//! All its functions are found together, at the first call or in the constructor, whichever is
//! first: before the program's `main`, and before anything can be loaded later. From then on a call
//! is one load and one jump. Finding may allocate (`dlsym` does on some of its paths): what the
//! *same* thread asks for meanwhile comes from a small static area. Another thread that is merely
//! concurrent looks for itself, and waits for nobody.
//!
//! The dynamic linker relocates what `LD_PRELOAD` names after every library of the program. The
//! resolver of an indirect function may run before that, and may allocate: it arrives in code whose
//! table of addresses is not filled in, and gets its memory from the static area too. What is done
//! then calls nothing outside this library and does not touch the thread's storage, both of which
//! are found by that table.
//!
//! A block of the static area has its length in front of it, so that `realloc` and
//! `malloc_usable_size` know it for ever; freed, it is left where it is.

use cachewise_pages::thread;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Whether all symbols were looked up.
static FOUND: AtomicBool = AtomicBool::new(false);

macro_rules! functions {
    ($($name:ident: fn($($argument:ident: $kind:ty),*) -> $result:ty = $symbol:literal, $failed:expr;)*) => {
        mod place {
            use super::{AtomicPtr, c_void, ptr};
            $(#[allow(non_upper_case_globals, reason = "named like the function")]
            pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());)*
        }

        fn find_all() {
            $(place::$name.store(find($symbol), Ordering::Relaxed);)*
        }

        $(
            /// The next definition of that function.
            ///
            /// # Safety
            /// That function's contract.
            #[inline]
            pub(crate) unsafe fn $name($($argument: $kind),*) -> $result {
                if !FOUND.load(Ordering::Acquire) {
                    resolve();
                }
                let found = place::$name.load(Ordering::Relaxed);
                if found.is_null() {
                    return $failed;
                }
                type Next = unsafe extern "C" fn($($kind),*) -> $result;
                // SAFETY: the symbol of that name, which has this type.
                let next = unsafe { core::mem::transmute::<*mut c_void, Next>(found) };
                // SAFETY: the caller's promise.
                unsafe { next($($argument),*) }
            }
        )*
    };
}

functions! {
    malloc: fn(size: usize) -> *mut u8 = c"malloc", early(size, 16);
    calloc: fn(count: usize, size: usize) -> *mut u8 = c"calloc", match count.checked_mul(size) {
        Some(bytes) => early(bytes, 16),
        None => out_of_memory(),
    };
    // `entries::realloc` answers for blocks of the static area: any other is of an allocator that
    // was found, and then so was its `realloc`.
    realloc: fn(block: *mut u8, size: usize) -> *mut u8 = c"realloc", {
        let _ = (block, size);
        out_of_memory()
    };
    free: fn(block: *mut u8) -> () = c"free", { let _ = block; };
    libc_free: fn(block: *mut u8) -> () = c"__libc_free", { let _ = block; };
    libc_realloc: fn(block: *mut u8, size: usize) -> *mut u8 = c"__libc_realloc", {
        let _ = (block, size);
        out_of_memory()
    };
    aligned_alloc: fn(align: usize, size: usize) -> *mut u8 = c"aligned_alloc", early(size, align);
    memalign: fn(align: usize, size: usize) -> *mut u8 = c"memalign", early(size, align);
    posix_memalign: fn(out: *mut *mut u8, align: usize, size: usize) -> c_int = c"posix_memalign", {
        if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut u8>()) {
            return libc::EINVAL;
        }
        let block = early(size, align);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the caller's promise.
        unsafe { out.write(block) };
        0
    };
    malloc_usable_size: fn(block: *mut u8) -> usize = c"malloc_usable_size", { let _ = block; 0 };
    register_atfork: fn(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int
        = c"__register_atfork", {
            let _ = (prepare, parent, child, library);
            libc::ENOMEM
        };
}

/// A function to be run around a fork, or none.
pub(crate) type Handler = Option<unsafe extern "C" fn()>;

/// A word that the dynamic linker writes when it relocates this library: its own address.
struct Here(*const Here);

// SAFETY: nobody writes it, and nobody goes where it points.
unsafe impl Sync for Here {}

static HERE: Here = Here(&raw const HERE);

/// Whether addresses in memory are right yet.
#[cold]
pub(crate) fn is_relocated() -> bool {
    // SAFETY: a static. Read as it is, and not as it was compiled.
    let found = unsafe { (&raw const HERE.0).read_volatile() };
    found == &raw const HERE
}

/// Looks all functions up, unless this very thread is doing so already.
#[cold]
pub(crate) fn resolve() {
    if !is_relocated() {
        return;
    }
    let looking = &thread::current().looking;
    if FOUND.load(Ordering::Acquire) || looking.swap(1, Ordering::Relaxed) != 0 {
        return;
    }
    find_all();
    FOUND.store(true, Ordering::Release);
    looking.store(0, Ordering::Relaxed);
}

fn find(symbol: &CStr) -> *mut c_void {
    // SAFETY: the name ends in NUL.
    unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) }
}

/// Whether the next allocator frees blocks of `malloc` past this library's `free`, as jemalloc does: its
/// `operator new` asks whoever has `malloc`, its `operator delete` with a size goes where `sdallocx` goes.
/// Not for the path of a call, since it looks through every library.
pub(crate) fn frees_by_itself() -> bool {
    let found = !find(c"sdallocx").is_null();
    // Where it was not found, a message waits for the program's next `dlerror`.
    // SAFETY: always callable.
    unsafe { libc::dlerror() };
    found
}

const AREA: usize = 64 << 10;
/// Bytes before a block, of which the last eight are its length.
const HEADER: usize = 16;

#[repr(C, align(4096))]
struct Area(core::cell::UnsafeCell<[u8; AREA]>);

// SAFETY: each part is handed out once.
unsafe impl Sync for Area {}

static PLACE: Area = Area(core::cell::UnsafeCell::new([0; AREA]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory for good, while there is nobody else to ask.
fn early(size: usize, align: usize) -> *mut u8 {
    let Some(align) = align.max(HEADER).checked_next_power_of_two() else { return out_of_memory() };
    let start = |used: usize| used.checked_add(HEADER)?.checked_next_multiple_of(align);
    let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        start(used)?.checked_add(size).filter(|end| *end <= AREA)
    });
    let Some(start) = taken.ok().and_then(start) else { return out_of_memory() };
    let block = PLACE.0.get().cast::<u8>().wrapping_add(start);
    let length = block.wrapping_sub(size_of::<usize>()).cast::<usize>();
    // SAFETY: inside the area, aligned to 8, and this caller's since `USED` passed it.
    unsafe { length.write(size) };
    block
}

/// How long a block is that was handed out before there was an allocator; `None` for any other.
#[inline]
pub(crate) fn early_length(block: *const u8) -> Option<usize> {
    let offset = (block as usize).wrapping_sub(PLACE.0.get() as usize);
    if offset >= AREA {
        return None;
    }
    let length = block.wrapping_sub(size_of::<usize>()).cast::<usize>();
    // SAFETY: the program's promise is that a block begins there; its length is before it, written
    // before it was handed out. For any other address inside the area it is some number, cut down
    // below.
    let length = unsafe { length.read_unaligned() };
    Some(length.min(AREA - offset))
}

/// Copies out of a block of the static area, which is no longer than that.
pub(crate) fn copy_early(from: *const u8, to: *mut u8, bytes: usize) {
    for at in 0..bytes {
        // SAFETY: the caller's block is that long. Byte by byte, so that no call is made of it.
        let byte = unsafe { from.wrapping_add(at).read_volatile() };
        // SAFETY: as above.
        unsafe { to.wrapping_add(at).write_volatile(byte) };
    }
}

/// What a function that returns a block does when it has none.
#[cold]
pub(crate) fn out_of_memory() -> *mut u8 {
    if !is_relocated() {
        return ptr::null_mut();
    }
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    unsafe { place.write(libc::ENOMEM) };
    ptr::null_mut()
}
