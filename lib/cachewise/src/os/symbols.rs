//! Names looked up in the objects of this process without allocating, under a lock of the dynamic
//! linker's that is not held while constructors run.
//!
//! ELF gABI, "Dynamic Section" and "Symbol Table"; the hash table is GNU's (binutils,
//! `--hash-style= gnu`), the only one that distributions still write everywhere. An object without
//! it is passed over.

use core::ffi::{CStr, c_int, c_ulong, c_void};
use core::ptr::null_mut;
#[cfg(target_pointer_width = "32")]
use libc::{Elf32_Phdr as Header, Elf32_Sym as Symbol};
#[cfg(target_pointer_width = "64")]
use libc::{Elf64_Phdr as Header, Elf64_Sym as Symbol};

/// The addresses of these functions' next definitions behind the object that `own` lies in; from
/// the first object on where there is none behind. All or nothing.
#[must_use]
pub fn next_definitions<const N: usize>(names: [&CStr; N], own: usize) -> Option<[*mut (); N]> {
    let mut search =
        Search { names, own, passed: false, before: [null_mut(); N], after: [null_mut(); N] };
    // SAFETY: `visit` is called with the same pointer while this call lasts, and nobody else has it.
    unsafe { libc::dl_iterate_phdr(Some(visit::<N>), (&raw mut search).cast()) };
    let mut found = search.after;
    for (found, before) in found.iter_mut().zip(search.before) {
        if found.is_null() {
            *found = before;
        }
    }
    (search.passed && found.iter().all(|address| !address.is_null())).then_some(found)
}

/// Object and symbol that an address lies in.
#[derive(Debug)]
pub struct Place {
    /// The module's file, as long as it is loaded; none is the program's own.
    pub module: Option<&'static CStr>,
    /// The address as the file counts, which is what `addr2line` takes.
    pub offset: usize,
    /// The function, as long as its module is loaded, and how far behind its start the address is.
    pub symbol: Option<(&'static CStr, usize)>,
}

/// The module and the function that an address lies in, as `dladdr1` has them, which glibc moved from one library to
/// another.
#[must_use]
pub fn place(address: usize) -> Option<Place> {
    let mut search = (address, None);
    // SAFETY: `visit_place` is called with the same pointer while this call lasts, and nobody else has it.
    unsafe { libc::dl_iterate_phdr(Some(visit_place), (&raw mut search).cast()) };
    search.1
}

unsafe extern "C" fn visit_place(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: `place` passed its own, and waits.
    let (address, found) = unsafe { &mut *search.cast::<(usize, Option<Place>)>() };
    // SAFETY: the dynamic linker's promise for the duration of this call.
    let info = unsafe { &*info };
    let object = Object::new(info);
    if !object.holds(*address, 1) {
        return 0;
    }
    let module = (!info.dlpi_name.is_null()).then(|| {
        // SAFETY: the dynamic linker's: ends in NUL, and lives as long as the module.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    });
    *found = Some(Place {
        module: module.filter(|name| !name.is_empty()),
        offset: address.wrapping_sub(object.base),
        symbol: object.symbols().and_then(|symbols| symbols.around(*address)),
    });
    1
}

struct Search<'n, const N: usize> {
    names: [&'n CStr; N],
    own: usize,
    /// True if the object of `own` has been seen.
    passed: bool,
    /// The first definitions before that object, and behind it.
    before: [*mut (); N],
    after: [*mut (); N],
}

unsafe extern "C" fn visit<const N: usize>(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: `next_definitions` passed its own, and waits.
    let search = unsafe { &mut *search.cast::<Search<'_, N>>() };
    // SAFETY: the dynamic linker's promise for the duration of this call.
    let info = unsafe { &*info };
    let object = Object::new(info);
    if object.holds(search.own, 1) {
        search.passed = true;
        return 0;
    }
    let Some(symbols) = object.symbols() else { return 0 };
    let found = if search.passed { &mut search.after } else { &mut search.before };
    for (found, name) in found.iter_mut().zip(search.names) {
        if found.is_null() {
            *found = symbols.find(name).unwrap_or(null_mut());
        }
    }
    0
}

/// Facts from the dynamic linker about an object.
struct Object<'i> {
    base: usize,
    headers: &'i [Header],
}

impl<'i> Object<'i> {
    fn new(info: &'i libc::dl_phdr_info) -> Object<'i> {
        let headers: &[Header] = if info.dlpi_phdr.is_null() {
            &[]
        } else {
            // SAFETY: that many program headers, for as long as the object is loaded.
            unsafe {
                core::slice::from_raw_parts(info.dlpi_phdr.cast(), usize::from(info.dlpi_phnum))
            }
        };
        Object { base: info.dlpi_addr as usize, headers }
    }

    fn start(&self, header: &Header) -> usize {
        self.base.wrapping_add(header.p_vaddr as usize)
    }

    /// Returns whether so many bytes from an address on are loaded with this object.
    fn holds(&self, address: usize, bytes: usize) -> bool {
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
            let offset = address.wrapping_sub(self.start(header));
            offset.checked_add(bytes).is_some_and(|end| end <= header.p_memsz as usize)
        })
    }

    fn symbols(&self) -> Option<Symbols<'_>> {
        /// Tags of the dynamic section.
        const STRTAB: usize = 5;
        const SYMTAB: usize = 6;
        const GNU_HASH: usize = 0x6fff_fef5;
        const VERSYM: usize = 0x6fff_fff0;
        let dynamic = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let (mut strings, mut table, mut hash, mut versions) = (0, 0, 0, 0);
        for at in 0..dynamic.p_memsz as usize / size_of::<[usize; 2]>() {
            let [tag, value] =
                self.read::<[usize; 2]>(self.start(dynamic) + at * size_of::<[usize; 2]>())?;
            // glibc adds the base when it loads an object, musl and the vDSO do not.
            let value = if value < self.base { value + self.base } else { value };
            match tag {
                0 => break,
                STRTAB => strings = value,
                SYMTAB => table = value,
                GNU_HASH => hash = value,
                VERSYM => versions = value,
                _ => {}
            }
        }
        (strings != 0 && table != 0 && hash != 0).then_some(Symbols {
            object: self,
            strings,
            table,
            hash,
            versions,
        })
    }

    /// Reads what is loaded with this object, and nothing else.
    fn read<T: Copy>(&self, address: usize) -> Option<T> {
        if !self.holds(address, size_of::<T>()) {
            return None;
        }
        // SAFETY: inside a loaded segment; `T` is integers, for which any bytes will do.
        Some(unsafe { (address as *const T).read_unaligned() })
    }
}

/// An object's dynamic symbols.
struct Symbols<'o> {
    object: &'o Object<'o>,
    strings: usize,
    table: usize,
    hash: usize,
    /// 0 where its symbols have no versions.
    versions: usize,
}

impl Symbols<'_> {
    /// The function of that name, of the version that a program gets that is linked today.
    fn find(&self, name: &CStr) -> Option<*mut ()> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        let [buckets, first, bloom_words, _] = self.object.read::<[u32; 4]>(self.hash)?;
        let bloom = self.hash + size_of::<[u32; 4]>();
        let bucket = bloom + bloom_words as usize * size_of::<usize>();
        let chain = bucket + buckets as usize * size_of::<u32>();
        let word =
            |start: usize, at: u32| self.object.read::<u32>(start + at as usize * size_of::<u32>());
        let mut symbol = word(bucket, hash.checked_rem(buckets)?)?;
        loop {
            let found = word(chain, symbol.checked_sub(first)?)?;
            if found | 1 == hash | 1
                && let Some(address) = self.function(symbol, name)
            {
                return Some(address);
            }
            if found & 1 == 1 {
                return None;
            }
            symbol += 1;
        }
    }

    /// The defined symbol that holds an address, and how far behind its start that is.
    fn around(&self, address: usize) -> Option<(&'static CStr, usize)> {
        let [buckets, first, bloom_words, _] = self.object.read::<[u32; 4]>(self.hash)?;
        let bucket = self.hash + size_of::<[u32; 4]>() + bloom_words as usize * size_of::<usize>();
        let chain = bucket + buckets as usize * size_of::<u32>();
        let word =
            |start: usize, at: u32| self.object.read::<u32>(start + at as usize * size_of::<u32>());
        // Symbols are in the order of their buckets, and the last chain ends with the table.
        let starts = (0..buckets).filter_map(|at| word(bucket, at));
        let mut end = starts.max().filter(|last| *last >= first)?;
        while word(chain, end - first)? & 1 == 0 {
            end += 1;
        }
        let symbols = (first..=end).filter_map(|at| {
            let symbol =
                self.object.read::<Symbol>(self.table + at as usize * size_of::<Symbol>())?;
            let start = self.object.base.wrapping_add(symbol.st_value as usize);
            let behind = address.checked_sub(start)?;
            let is_inside = behind < symbol.st_size as usize;
            (symbol.st_shndx != 0 && is_inside).then_some((behind, symbol.st_name))
        });
        let (behind, name) = symbols.min_by_key(|(behind, _)| *behind)?;
        let name = self.strings + name as usize;
        self.object.read::<u8>(name)?;
        // SAFETY: in the module's string table, which ends in NUL and lives as long as the module.
        Some((unsafe { CStr::from_ptr(name as *const _) }, behind))
    }

    fn function(&self, at: u32, name: &CStr) -> Option<*mut ()> {
        const FUNCTION: u8 = 2;
        const INDIRECT_FUNCTION: u8 = 10;
        const GLOBAL: u8 = 1;
        const WEAK: u8 = 2;
        let place = self.table + at as usize * size_of::<Symbol>();
        let Symbol { st_name, st_info: info, st_shndx: section, st_value: value, .. } =
            self.object.read::<Symbol>(place)?;
        if section == 0 || !matches!(info >> 4, GLOBAL | WEAK) || !self.is_named(st_name, name) {
            return None;
        }
        // Bit 15: a version for programs that were linked long ago (symbol versioning, LSB 11.7.2).
        let version = match self.versions {
            0 => 1,
            versions => self.object.read::<u16>(versions + at as usize * size_of::<u16>())?,
        };
        if version & 0x8000 != 0 || version == 0 {
            return None;
        }
        let address = self.object.base.wrapping_add(value as usize);
        if !self.object.holds(address, 1) {
            return None;
        }
        match info & 0xf {
            FUNCTION => Some(address as *mut ()),
            // SAFETY: a resolver of an object that is loaded and, `found` having seen to it that the
            // C library is initialised, relocated.
            INDIRECT_FUNCTION => Some(unsafe { resolve(address) }),
            _ => None,
        }
    }

    fn is_named(&self, offset: u32, name: &CStr) -> bool {
        let start = self.strings + offset as usize;
        let bytes = name.to_bytes_with_nul();
        bytes.iter().enumerate().all(|(at, byte)| self.object.read::<u8>(start + at) == Some(*byte))
    }
}

/// Asks an IFUNC resolver which function it is.
///
/// # Safety
/// `resolver` is the address of one, in an object that has been relocated.
unsafe fn resolve(resolver: usize) -> *mut () {
    // Arguments that glibc passes: none on x86, the hardware capabilities elsewhere, with a marked argument
    // block on Arm (sysdeps/*/dl-irel.h).
    type Resolver = unsafe extern "C" fn(c_ulong, *const [c_ulong; 3]) -> *mut ();
    const MARK: c_ulong = 1 << (c_ulong::BITS - 2);
    // SAFETY: always callable; reads the auxiliary vector.
    let first = unsafe { libc::getauxval(libc::AT_HWCAP) };
    // SAFETY: as above.
    let second = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    let marked = if cfg!(target_arch = "aarch64") { first | MARK } else { first };
    let arguments = [size_of::<[c_ulong; 3]>() as c_ulong, first, second];
    // SAFETY: the caller's promise; a function ignores arguments that it does not have.
    let resolver = unsafe { core::mem::transmute::<usize, Resolver>(resolver) };
    // SAFETY: as above.
    unsafe { resolver(marked, &raw const arguments) }
}
