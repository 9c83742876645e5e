//! Calls of malloc and its relatives, drawn from bytes, held against what C and POSIX promise: blocks
//! apart, aligned, as long as they say, zero where they must be, contents kept, and nothing lost by a
//! call that fails. The fuzz target and `cargo test` both run this.

use std::ffi::c_int;
use std::ptr::null_mut;

/// The functions under test.
pub struct Functions {
    pub malloc: unsafe extern "C" fn(usize) -> *mut u8,
    pub calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    pub realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    pub reallocarray: unsafe extern "C" fn(*mut u8, usize, usize) -> *mut u8,
    pub aligned_alloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    pub memalign: unsafe extern "C" fn(usize, usize) -> *mut u8,
    pub posix_memalign: unsafe extern "C" fn(*mut *mut u8, usize, usize) -> c_int,
    pub valloc: unsafe extern "C" fn(usize) -> *mut u8,
    pub pvalloc: unsafe extern "C" fn(usize) -> *mut u8,
    pub malloc_usable_size: unsafe extern "C" fn(*mut u8) -> usize,
    pub free: unsafe extern "C" fn(*mut u8),
}

/// Every call is four bytes.
const CALL: usize = 4;
const CALLS: usize = 200;
/// What blocks in hand take together at most. Few of the pages of large ones are touched.
const MOST: usize = 1 << 30;

/// A block in hand: how long it was asked to be, and what was written to it.
struct Held {
    start: *mut u8,
    size: usize,
    usable: usize,
    mark: u8,
}

impl Held {
    /// Its bytes up to `end`: all of a small one, else those near both ends and a thousand
    /// or more between.
    fn looked_at(end: usize) -> impl Iterator<Item = usize> {
        let ends = end.min(64);
        let step = if end <= 8192 { 1 } else { 1021.max(end / 1024) };
        let middle = (ends..end.saturating_sub(64)).step_by(step);
        (0..ends).chain(middle).chain(end.saturating_sub(64).max(ends)..end)
    }

    fn byte(&self, place: usize) -> u8 {
        self.mark ^ (place as u8) ^ ((place >> 10) as u8)
    }

    /// Writes to all that may be written to, which is more than was asked for.
    fn write(&self) {
        for place in Held::looked_at(self.usable).chain(Held::looked_at(self.size)) {
            let place_of = self.start.wrapping_add(place);
            // SAFETY: inside the block in hand.
            unsafe { place_of.write(self.byte(place)) };
        }
    }

    /// Whether the first bytes, which may have been copied to `start`, are as they were written.
    fn check(&self, start: *const u8, end: usize) {
        for place in Held::looked_at(self.size).filter(|place| *place < end) {
            let place_of = start.wrapping_add(place);
            // SAFETY: inside the block in hand.
            let found = unsafe { place_of.read() };
            let size = self.size;
            assert_eq!(
                found,
                self.byte(place),
                "byte {place} of {size}: somebody else wrote to it"
            );
        }
    }
}

/// A size: small, at the edges of what a pool serves, any that it serves, too large for it, and
/// larger than anything can be.
fn size(class: u8, how: usize) -> usize {
    match class % 8 {
        0 => how % 300,
        1 => how,
        2 => (128 << 10) - 16 + how % 32,
        3..=5 => (128 << 10) + how * 19,
        6 => (256 << 20) - 16 + how % 32,
        _ => [usize::MAX, isize::MAX as usize + 1, usize::MAX / 2 + 4096][how % 3] - how / 3 % 64,
    }
}

fn errno() -> &'static mut c_int {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own, used by one statement at a time.
    unsafe { &mut *place }
}

struct World<'a> {
    functions: &'a Functions,
    held: Vec<Held>,
    mark: u8,
}

impl World<'_> {
    /// Takes a block in hand, after what holds for every one.
    fn got(&mut self, start: *mut u8, size: usize, align: usize, zeroed: bool) {
        if start.is_null() {
            assert_eq!(*errno(), libc::ENOMEM, "no block of {size}");
            return;
        }
        assert!(size <= isize::MAX as usize, "{size} bytes cannot be");
        assert!(start.addr().is_multiple_of(align), "{start:p} for {align}");
        // SAFETY: a block in hand.
        let usable = unsafe { (self.functions.malloc_usable_size)(start) };
        assert!(usable >= size, "{usable} usable of {size}");
        for other in &self.held {
            let (first, theirs) = (start.addr(), other.start.addr());
            let apart = first + usable.max(1) <= theirs || theirs + other.usable.max(1) <= first;
            assert!(apart, "{start:p} of {usable} and {:p} of {}", other.start, other.usable);
        }
        if zeroed {
            let looked_at = size.min(4 << 20);
            // SAFETY: that long, and in hand.
            let bytes = unsafe { std::slice::from_raw_parts(start, looked_at) };
            assert!(bytes.iter().all(|byte| *byte == 0), "calloc of {size} is not zero");
        }
        self.mark = self.mark.wrapping_mul(5).wrapping_add(3);
        let held = Held { start, size, usable, mark: self.mark };
        held.write();
        self.held.push(held);
    }

    fn give_back(&mut self, at: usize) {
        let held = self.held.swap_remove(at);
        held.check(held.start, held.size);
        *errno() = 77;
        // SAFETY: in hand, and not used again.
        unsafe { (self.functions.free)(held.start) };
        assert_eq!(*errno(), 77, "free changed errno");
    }

    /// `realloc`, or `reallocarray` where there is a count.
    fn resize(&mut self, at: usize, count: Option<usize>, size: usize) {
        let held = self.held.swap_remove(at);
        let total = count.map_or(Some(size), |count| count.checked_mul(size));
        *errno() = 0;
        let new = match count {
            // SAFETY: in hand, and not used again unless the call failed.
            Some(count) => unsafe { (self.functions.reallocarray)(held.start, count, size) },
            // SAFETY: as above.
            None => unsafe { (self.functions.realloc)(held.start, size) },
        };
        if total == Some(0) {
            assert!(new.is_null(), "freed, as glibc has it");
        } else if new.is_null() {
            assert_eq!(*errno(), libc::ENOMEM);
            held.check(held.start, held.size);
            self.held.push(held);
        } else {
            let total = total.expect("no block is as long as that product");
            held.check(new, total);
            self.got(new, total, 16, false);
        }
    }

    fn aligned(&mut self, what: u8, align: usize, size: usize) {
        let functions = self.functions;
        *errno() = 0;
        if what != 0 {
            let call = if what == 1 { functions.aligned_alloc } else { functions.memalign };
            // SAFETY: always callable.
            let start = unsafe { call(align, size) };
            return self.got(start, size, align, false);
        }
        let mut start = null_mut();
        // SAFETY: a place to write to.
        let status = unsafe { (functions.posix_memalign)(&raw mut start, align, size) };
        if align < size_of::<*mut u8>() {
            assert_eq!((status, start), (libc::EINVAL, null_mut()), "alignment {align}");
        } else if status != 0 {
            assert_eq!((status, start), (libc::ENOMEM, null_mut()));
        } else {
            assert!(!start.is_null());
            self.got(start, size, align, false);
        }
    }

    fn call(&mut self, call: [u8; CALL]) {
        let functions = self.functions;
        let how = usize::from(u16::from_le_bytes([call[2], call[3]]));
        let wanted = size(call[1], how);
        let in_hand: usize = self.held.iter().map(|held| held.usable).sum();
        // What is larger than anything fails, and takes nothing.
        let room = wanted > isize::MAX as usize || in_hand + wanted <= MOST;
        let any = (!self.held.is_empty()).then(|| how % self.held.len().max(1));
        *errno() = 0;
        match (call[0] % 16, any) {
            (0..=2, Some(at)) => self.give_back(at),
            (3, Some(at)) => {
                let held = &self.held[at];
                held.check(held.start, held.size);
                // SAFETY: in hand.
                let usable = unsafe { (functions.malloc_usable_size)(held.start) };
                assert_eq!(usable, held.usable);
            }
            (4..=6, Some(at)) if room => self.resize(at, None, wanted),
            (7, Some(at)) if room => {
                let count = usize::from(call[0] >> 4);
                self.resize(at, Some(count), wanted / count.max(1));
            }
            // SAFETY: always callable, as all that follow.
            (8, _) => unsafe { (functions.free)(null_mut()) },
            (9 | 10, _) if room => {
                let count = usize::from(call[0] >> 4);
                let each = wanted / count.max(1);
                // SAFETY: as above.
                let start = unsafe { (functions.calloc)(count, each) };
                self.got(start, count * each, 16, true);
            }
            (11 | 12, _) if room => {
                let align = 1 << (how % 22);
                self.aligned(call[0] >> 4 & 3, align, wanted);
            }
            (13, _) if room => {
                let call = if call[0] >= 128 { functions.pvalloc } else { functions.valloc };
                // SAFETY: as above.
                let start = unsafe { call(wanted) };
                self.got(start, wanted, 4096, false);
            }
            (14, _) if call[0] >= 128 => {
                let count = usize::MAX / 3 + how;
                // SAFETY: as above.
                let start = unsafe { (functions.calloc)(count, 4) };
                assert!(start.is_null() && *errno() == libc::ENOMEM, "a product that overflows");
            }
            _ if room => {
                // SAFETY: as above.
                let start = unsafe { (functions.malloc)(wanted) };
                self.got(start, wanted, 16, false);
            }
            _ => {}
        }
    }
}

/// Does the calls that the bytes stand for; returns how many blocks are from a pool, whose blocks begin
/// at a page and are whole pages.
pub fn replay(functions: &Functions, bytes: &[u8]) -> usize {
    let mut world = World { functions, held: Vec::new(), mark: 1 };
    let mut pooled = 0;
    for call in bytes.as_chunks::<CALL>().0.iter().take(CALLS) {
        world.call(*call);
        let last = world.held.last();
        pooled += usize::from(last.is_some_and(|last| {
            last.start.addr().is_multiple_of(4096) && last.usable.is_multiple_of(4096)
        }));
    }
    while !world.held.is_empty() {
        world.give_back(0);
    }
    pooled
}
