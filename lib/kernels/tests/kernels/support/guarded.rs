//! Memory between two inaccessible stretches, so that a kernel that reads or writes one byte
//! outside its buffer stops at once.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ops::Range;
use std::ptr::{null_mut, slice_from_raw_parts_mut};

/// Readable and writable bytes with a `PROT_NONE` page right before and right after them.
pub struct Guarded {
    mapping: *mut u8,
    page: usize,
    room: usize,
}

impl Guarded {
    /// At least `room` bytes, rounded up to whole pages of the system.
    pub fn new(room: usize) -> Guarded {
        // SAFETY: sysconf takes any name. (rustix's page_size would read /proc, which a test run
        // as the first process of an emulated machine lacks.)
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).expect("the system knows its page size");
        let room = room.next_multiple_of(page);
        let (protection, flags) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other object.
        let mapping = unsafe { mmap_anonymous(null_mut(), room + 2 * page, protection, flags) }
            .expect("address space for a guarded buffer");
        let mapping = mapping.cast::<u8>();
        let inner = mapping.wrapping_add(page);
        // SAFETY: these pages lie within the mapping just made, which nobody else knows of.
        unsafe { mprotect(inner.cast(), room, MprotectFlags::READ | MprotectFlags::WRITE) }
            .expect("access to a guarded buffer");
        Guarded { mapping, page, room }
    }

    /// Accessible bytes: a whole number of pages.
    pub fn len(&self) -> usize {
        self.room
    }

    /// The first accessible byte; it is aligned to the page.
    pub fn start(&self) -> *mut u8 {
        self.mapping.wrapping_add(self.page)
    }

    /// The addresses of the accessible bytes.
    pub fn addresses(&self) -> Range<usize> {
        self.start().addr()..self.start().addr() + self.room
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the room bytes from start are mapped, initialised by the system and borrowed
        // from self for as long as the slice lives.
        unsafe { &*slice_from_raw_parts_mut(self.start(), self.room) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { &mut *slice_from_raw_parts_mut(self.start(), self.room) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own and no borrow of it outlives the object.
        unsafe { munmap(self.mapping.cast(), self.room + 2 * self.page) }
            .expect("a mapping made here can be unmapped");
    }
}
