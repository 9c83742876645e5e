//! The modules that call sites lie in: which file, identified by what is in it, so that a site is
//! known again wherever the next process loads it.
//!
//! Which module an address lies in is asked of `_dl_find_object` (glibc 2.35), which takes no lock
//! and may be called anywhere; where a C library has none, sites are learned but not kept.

use crate::os;
use cachewise_learn::section::{self, fnv1a64};
use cachewise_learn::sites::Place;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Modules that have a number; sites of further ones are not kept.
const MODULES: usize = 256;
const ID_BYTES: usize = 64;
const PATH_BYTES: usize = 512;

/// glibc's `struct dl_find_object` on x86-64.
#[repr(C)]
struct FoundObject {
    flags: u64,
    start: *const u8,
    end: *const u8,
    link_map: *const LinkMap,
    eh_frame: *const c_void,
    reserved: [u64; 7],
}

/// The public beginning of `struct link_map`.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut FoundObject) -> c_int;

/// A module.
pub(super) struct Module {
    ready: AtomicBool,
    start: AtomicUsize,
    address: AtomicUsize,
    text: UnsafeCell<Text>,
}

struct Text {
    id: [u8; ID_BYTES],
    id_length: usize,
    path: [u8; PATH_BYTES],
    path_length: usize,
}

// SAFETY: the text is written by the thread that took the number, before `ready`, and read behind
// `ready` only.
unsafe impl Sync for Module {}

/// All modules that a site was met in.
pub(super) struct Modules {
    find: Option<FindObject>,
    /// The program's own path: it has none in the dynamic linker's list, and in its middle the
    /// system is not to be asked.
    program: &'static [u8],
    own: (usize, usize),
    list: &'static [Module; MODULES],
    taken: AtomicUsize,
}

impl Modules {
    pub(super) fn new() -> Option<Modules> {
        // SAFETY: the name ends in NUL; RTLD_DEFAULT searches what is loaded.
        let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: the function of that name has this type wherever there is one.
        let find = (!find.is_null())
            .then(|| unsafe { core::mem::transmute::<*mut c_void, FindObject>(find) });
        let list = os::pages(size_of::<[Module; MODULES]>())?.cast::<[Module; MODULES]>();
        // SAFETY: fresh pages of that size, all zero, which are modules that are not ready.
        let list = unsafe { &*list };
        let program = os::program(os::buffer(PATH_BYTES)?);
        let mut modules = Modules { find, program, own: (0, 0), list, taken: AtomicUsize::new(0) };
        if let Some(own) = modules.find(Modules::new as *const () as usize) {
            modules.own = (own.start.addr(), own.end.addr());
        }
        Some(modules)
    }

    /// Whether an address lies in this library.
    pub(super) fn is_own(&self, address: usize) -> bool {
        (self.own.0..self.own.1).contains(&address)
    }

    fn find(&self, address: usize) -> Option<FoundObject> {
        let mut found = core::mem::MaybeUninit::<FoundObject>::zeroed();
        // SAFETY: any address may be asked about; `found` is writable for what glibc writes.
        if unsafe { self.find?(address as *const c_void, found.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: all zero is a FoundObject, and the call succeeded.
        Some(unsafe { found.assume_init() })
    }

    /// Where an address lies; a module met for the first time gets a number.
    pub(super) fn place(&self, address: usize) -> Option<Place> {
        let found = self.find(address)?;
        // SAFETY: null, or the dynamic linker's for a module that is loaded: it is being executed.
        let map = unsafe { found.link_map.as_ref() }?;
        let mut id = [0; ID_BYTES];
        let length = identify(&found, &mut id)?;
        let id = id.get(..length)?;
        let start = found.start.addr();
        // One that was unloaded may have left its place to another: what is in it decides.
        let known = self.list.iter().position(|module| {
            module.ready.load(Ordering::Acquire)
                && module.start.load(Ordering::Relaxed) == start
                && module.address.load(Ordering::Relaxed) == map.address
                // SAFETY: written before `ready`, and never again.
                && unsafe { &*module.text.get() }.id() == id
        });
        let number = match known {
            Some(number) => number,
            None => self.meet(id, start, map)?,
        };
        let offset = (address as u64).wrapping_sub(map.address as u64);
        Some(Place { module: number as u32, offset })
    }

    /// Two threads may both give a module a number; it is saved once, by its id.
    fn meet(&self, id: &[u8], start: usize, map: &LinkMap) -> Option<usize> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let module = self.list.get(number).or_else(|| {
            self.taken.store(MODULES, Ordering::Relaxed);
            None
        })?;
        // SAFETY: this thread took the number, and nobody reads before `ready`.
        let text = unsafe { &mut *module.text.get() };
        for (place, byte) in text.id.iter_mut().zip(id) {
            *place = *byte;
            text.id_length += 1;
        }
        // SAFETY: the dynamic linker's promise: a string that ends in NUL.
        let name = unsafe { CStr::from_ptr(map.name) }.to_bytes();
        let name = if name.is_empty() { self.program } else { name };
        for byte in name.iter().take(PATH_BYTES) {
            let shown = if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'?' };
            if let Some(place) = text.path.get_mut(text.path_length) {
                *place = shown;
                text.path_length += 1;
            }
        }
        module.start.store(start, Ordering::Relaxed);
        module.address.store(map.address, Ordering::Relaxed);
        module.ready.store(true, Ordering::Release);
        Some(number)
    }

    fn text(&self, number: u32) -> Option<&Text> {
        let module = self.list.get(number as usize)?;
        if !module.ready.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: written before `ready`, and never again.
        Some(unsafe { &*module.text.get() })
    }
}

impl Text {
    fn id(&self) -> &[u8] {
        self.id.get(..self.id_length).unwrap_or(&[])
    }
}

impl cachewise::programs::Modules for Modules {
    fn count(&self) -> u32 {
        self.taken.load(Ordering::Relaxed).min(MODULES) as u32
    }

    fn id(&self, number: u32) -> Option<&str> {
        let id = self.text(number)?.id();
        // Another module has its place now, and what was called last from there: of which of the
        // two that is known, nobody can say.
        let start = self.list.get(number as usize)?.start.load(Ordering::Relaxed);
        if let Some(found) = self.find(start) {
            let mut there = [0; ID_BYTES];
            let length = identify(&found, &mut there).unwrap_or(0);
            if there.get(..length) != Some(id) {
                return None;
            }
        }
        core::str::from_utf8(id).ok()
    }

    fn is(&self, number: u32, module: &section::Module<'_>) -> bool {
        self.text(number).is_some_and(|text| text.id() == module.id.as_bytes())
    }

    fn path(&self, number: u32) -> &str {
        let path = self.text(number).and_then(|text| text.path.get(..text.path_length));
        core::str::from_utf8(path.unwrap_or(b"")).unwrap_or("")
    }
}

/// The build id in hexadecimal (`NT_GNU_BUILD_ID`, 3, of the owner "GNU"), or `x` and a checksum of
/// the module's headers, where its linker was not asked for one.
fn identify(found: &FoundObject, into: &mut [u8; ID_BYTES]) -> Option<usize> {
    const NOTES: u32 = 4;
    const LOAD: u32 = 1;
    let image = Image { start: found.start, length: found.end.addr() - found.start.addr() };
    if image.bytes(0, 4)? != b"\x7FELF" {
        return None;
    }
    let (table, size, count) = (image.word(32)? as usize, image.half(54)?, image.half(56)?);
    let header = |entry: usize| table + entry * size;
    // Addresses in the file count from the first loaded page's.
    let base = (0..count)
        .map(header)
        .filter(|at| image.int(*at) == Some(LOAD))
        .filter_map(|at| image.word(at + 16))
        .min()?
        & !0xFFF;
    for at in (0..count).map(header).filter(|at| image.int(*at) == Some(NOTES)) {
        let mut note = image.word(at + 16)?.checked_sub(base)? as usize;
        let end = note + image.word(at + 32)? as usize;
        while note + 12 <= end {
            let (name, data) = (image.int(note)? as usize, image.int(note + 4)? as usize);
            let kind = image.int(note + 8)?;
            let content = note + 12 + name.next_multiple_of(4);
            if kind == 3 && image.bytes(note + 12, 4) == Some(b"GNU\0") {
                return Some(digits(image.bytes(content, data.min(ID_BYTES / 2))?, into));
            }
            note = content + data.next_multiple_of(4);
        }
    }
    let headers = image.bytes(0, header(count))?;
    let (x, rest) = into.split_first_mut()?;
    *x = b'x';
    Some(1 + digits(&fnv1a64(headers).to_be_bytes(), rest))
}

/// Hexadecimal digits of bytes, as many as fit; how many. By hand: what formats numbers takes more
/// of a stack than a signal handler may have.
fn digits(bytes: &[u8], into: &mut [u8]) -> usize {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    into.iter_mut().zip(halves).map(|(place, half)| *place = digit(half)).count()
}

/// A module as it lies in memory.
struct Image {
    start: *const u8,
    length: usize,
}

impl Image {
    fn bytes(&self, at: usize, length: usize) -> Option<&[u8]> {
        if at.checked_add(length)? > self.length {
            return None;
        }
        // SAFETY: inside the module, which is loaded: headers and notes lie in its first segment.
        Some(unsafe { core::slice::from_raw_parts(self.start.wrapping_add(at), length) })
    }

    fn half(&self, at: usize) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(self.bytes(at, 2)?.try_into().ok()?)))
    }

    fn int(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(at, 4)?.try_into().ok()?))
    }

    fn word(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(at, 8)?.try_into().ok()?))
    }
}
