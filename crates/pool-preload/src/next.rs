//! The allocator that the program would have had: the next in the order of loading, which is glibc's
//! or another that is preloaded or linked.
//!
//! Finding it may allocate (`dlsym` does on some of its paths): such requests are served from a small
//! static area, and what is from there is never given back.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

macro_rules! functions {
    ($($name:ident: fn($($argument:ident: $kind:ty),*) -> $result:ty = $symbol:literal, $failed:expr;)*) => {
        $(
            /// The next definition of that function.
            ///
            /// # Safety
            /// That function's contract.
            #[inline]
            pub(crate) unsafe fn $name($($argument: $kind),*) -> $result {
                static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
                let mut found = FOUND.load(Ordering::Acquire);
                if found.is_null() {
                    found = find($symbol);
                    FOUND.store(found, Ordering::Release);
                }
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
        None => ptr::null_mut(),
    };
    realloc: fn(block: *mut u8, size: usize) -> *mut u8 = c"realloc", {
        let new = early(size, 16);
        if !block.is_null() && !new.is_null() {
            // What was there is shorter than the area, and its length is not known.
            let length = size.min(AREA - offset(block).unwrap_or(AREA));
            // SAFETY: both are inside the area.
            unsafe { ptr::copy(block, new, length) };
        }
        new
    };
    free: fn(block: *mut u8) -> () = c"free", { let _ = block; };
    aligned_alloc: fn(align: usize, size: usize) -> *mut u8 = c"aligned_alloc", early(size, align);
    memalign: fn(align: usize, size: usize) -> *mut u8 = c"memalign", early(size, align);
    posix_memalign: fn(out: *mut *mut u8, align: usize, size: usize) -> c_int = c"posix_memalign", {
        let _ = (out, align, size);
        libc::ENOMEM
    };
    malloc_usable_size: fn(block: *mut u8) -> usize = c"malloc_usable_size", { let _ = block; 0 };
}

const IDLE: u8 = 0;
const SEARCHING: u8 = 1;
static SEARCH: AtomicU8 = AtomicU8::new(IDLE);

/// Null while a search is under way that this one may be part of.
#[cold]
fn find(symbol: &CStr) -> *mut c_void {
    let begun = SEARCH.compare_exchange(IDLE, SEARCHING, Ordering::AcqRel, Ordering::Relaxed);
    if begun.is_err() {
        return ptr::null_mut();
    }
    // SAFETY: the name ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    SEARCH.store(IDLE, Ordering::Release);
    found
}

const AREA: usize = 64 << 10;

#[repr(C, align(4096))]
struct Area(core::cell::UnsafeCell<[u8; AREA]>);

// SAFETY: each part is handed out once.
unsafe impl Sync for Area {}

static PLACE: Area = Area(core::cell::UnsafeCell::new([0; AREA]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory for good, while there is nobody else to ask.
fn early(size: usize, align: usize) -> *mut u8 {
    let align = align.max(16);
    let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        let start = used.checked_next_multiple_of(align)?;
        start.checked_add(size).filter(|end| *end <= AREA)
    });
    match taken {
        Ok(used) => PLACE.0.get().cast::<u8>().wrapping_add(used.next_multiple_of(align)),
        Err(_) => ptr::null_mut(),
    }
}

fn offset(block: *const u8) -> Option<usize> {
    let offset = (block as usize).wrapping_sub(PLACE.0.get() as usize);
    (offset < AREA).then_some(offset)
}

/// Whether a block was handed out before there was an allocator; and how long it may be.
#[inline]
pub(crate) fn is_early(block: *const u8) -> Option<usize> {
    offset(block).map(|offset| AREA - offset)
}
