//! Processes with their mapped files, and stacks as addresses in them.

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64, UnwinderX86_64 as Unwinder};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64, UnwinderAarch64 as Unwinder};

/// Frames of a stack that are kept, from the innermost on.
const MOST_FRAMES: usize = 256;
/// Larger files are not unwound through.
const MOST_BYTES: u64 = 1 << 30;

/// Sections of a file that unwinding takes.
struct Sections {
    /// File offsets, sizes and addresses of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    text: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Arc<[u8]>)>,
    eh_frame_hdr: Option<(Range<u64>, Arc<[u8]>)>,
    debug_frame: Option<Arc<[u8]>>,
}

impl Sections {
    fn read(file: &Path) -> Option<Sections> {
        if fs::metadata(file).ok()?.len() > MOST_BYTES {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let elf = object::File::parse(&*bytes).ok()?;
        let range = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let data = |name: &str| {
            Some(Arc::from(elf.section_by_name(name)?.uncompressed_data().ok()?.as_ref()))
        };
        let both = |name: &str| Some((range(name)?, data(name)?));
        let segments = elf.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Sections {
            segments: segments.collect(),
            text: range(".text"),
            eh_frame: both(".eh_frame"),
            eh_frame_hdr: both(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
        })
    }

    /// The address in the file of a byte at this offset.
    fn address(&self, offset: u64) -> Option<u64> {
        let within = |&&(from, size, _): &&(u64, u64, u64)| {
            // Mappings begin at pages, segments need not.
            offset >= from & !0xfff && offset < from + size
        };
        let (from, _, address) = self.segments.iter().find(within)?;
        Some((address + offset).wrapping_sub(*from))
    }

    fn module(&self, name: &str, range: Range<u64>, bias: u64) -> Module<Arc<[u8]>> {
        let (eh_frame_svma, eh_frame) = self.eh_frame.clone().unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = self.eh_frame_hdr.clone().unzip();
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: self.text.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: self.debug_frame.clone(),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(name.to_owned(), range, bias, info)
    }
}

/// A frame: an address in a file, or in memory that no file is mapped to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Frame {
    /// A file and an address in it.
    File(Arc<Path>, u64),
    /// A process and an address in it.
    Memory(i32, u64),
}

/// A mapped file.
#[derive(Clone)]
struct Mapping {
    file: Arc<Path>,
    /// Difference of addresses in the process and in the file.
    bias: u64,
    end: u64,
}

/// One process.
#[derive(Clone)]
struct Process {
    parent: i32,
    name: String,
    /// By their begin.
    mappings: BTreeMap<u64, Mapping>,
    unwinder: Unwinder<Arc<[u8]>>,
}

impl Process {
    fn new(parent: i32) -> Process {
        Process {
            parent,
            name: String::new(),
            mappings: BTreeMap::new(),
            unwinder: Unwinder::new(),
        }
    }

    fn find(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }
}

/// A stack's registers and bytes, as they were sampled.
pub(crate) struct Sampled<'s> {
    /// Frame pointer, stack pointer, instruction; on aarch64 frame pointer, link register, stack pointer, instruction.
    pub(crate) registers: &'s [u64],
    /// Bytes from the stack pointer on.
    pub(crate) stack: &'s [u8],
}

/// All processes, and the files that they map.
#[derive(Default)]
pub(crate) struct Processes {
    all: HashMap<i32, Process>,
    files: HashMap<PathBuf, Option<Arc<Sections>>>,
    cache: Cache,
}

impl Processes {
    /// A process that is a copy of another one.
    pub(crate) fn forked(&mut self, process: i32, parent: i32) {
        let copy = self.all.get(&parent).cloned().unwrap_or_else(|| Process::new(parent));
        self.all.insert(process, Process { parent, ..copy });
    }

    /// A process that has a new name; by `exec` it also has nothing mapped any more.
    pub(crate) fn named(&mut self, process: i32, name: String, by_exec: bool) {
        let own = self.all.entry(process).or_insert_with(|| Process::new(0));
        if by_exec {
            *own = Process::new(own.parent);
        }
        own.name = name;
    }

    /// A mapping of code.
    pub(crate) fn mapped(&mut self, process: i32, range: Range<u64>, offset: u64, file: &Path) {
        let own = self.all.entry(process).or_insert_with(|| Process::new(0));
        let above: Vec<u64> = own.mappings.range(range.clone()).map(|(begin, _)| *begin).collect();
        for begin in above {
            own.mappings.remove(&begin);
            own.unwinder.remove_module(begin);
        }
        if !file.is_absolute() || file.starts_with("//anon") {
            if own.name.contains("python") && cfg!(target_arch = "x86_64") {
                own.unwinder.remove_module(range.start);
                own.unwinder.add_module(trampolines(range));
            }
            return;
        }
        let sections = self
            .files
            .entry(file.to_owned())
            .or_insert_with(|| Sections::read(file).map(Arc::new))
            .clone();
        let Some(sections) = sections else { return };
        let Some(address) = sections.address(offset) else { return };
        let bias = range.start.wrapping_sub(address);
        let module = sections.module(&file.to_string_lossy(), range.clone(), bias);
        own.unwinder.add_module(module);
        own.mappings.insert(range.start, Mapping { file: Arc::from(file), bias, end: range.end });
    }

    /// The numbers of all processes.
    pub(crate) fn all(&self) -> impl Iterator<Item = i32> {
        self.all.keys().copied()
    }

    /// The name of a process.
    pub(crate) fn name(&self, process: i32) -> &str {
        self.all.get(&process).map_or("", |process| &process.name)
    }

    /// Returns true for `root` and the processes that descend from it.
    pub(crate) fn descends(&self, process: i32, root: i32) -> bool {
        let mut left = process;
        for _ in 0..64 {
            if left == root {
                return true;
            }
            match self.all.get(&left) {
                Some(own) => left = own.parent,
                None => return false,
            }
        }
        false
    }

    /// The frames of a stack, the innermost first, and whether it ended before its first function.
    pub(crate) fn unwind(&mut self, process: i32, sampled: &Sampled<'_>) -> (Vec<Frame>, bool) {
        let Some(own) = self.all.get(&process) else { return (Vec::new(), true) };
        let Some((instruction, pointer, registers)) = begin(sampled.registers) else {
            return (Vec::new(), true);
        };
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(pointer).ok_or(())?).map_err(|_| ())?;
            let bytes = sampled.stack.get(at..at + 8).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut addresses = Vec::new();
        let mut frames =
            own.unwinder.iter_frames(instruction, registers, &mut self.cache, &mut read);
        let ended_early = loop {
            match frames.next() {
                Ok(Some(frame)) if addresses.len() < MOST_FRAMES => {
                    addresses.push(frame.address_for_lookup());
                }
                Ok(None) => break false,
                Ok(Some(_)) | Err(_) => break true,
            }
        };
        let frame = |address: u64| match own.find(address) {
            Some(mapping) => Frame::File(mapping.file.clone(), address.wrapping_sub(mapping.bias)),
            None => Frame::Memory(process, address),
        };
        (addresses.into_iter().map(frame).collect(), ended_early)
    }
}

/// The instruction, the stack pointer, and what unwinding begins with.
#[cfg(target_arch = "x86_64")]
fn begin(registers: &[u64]) -> Option<(u64, u64, UnwindRegsX86_64)> {
    let [frame, stack, instruction] = *registers else { return None };
    Some((instruction, stack, UnwindRegsX86_64::new(instruction, stack, frame)))
}

/// The instruction, the stack pointer, and what unwinding begins with.
#[cfg(target_arch = "aarch64")]
fn begin(registers: &[u64]) -> Option<(u64, u64, UnwindRegsAarch64)> {
    let [frame, link, stack, instruction] = *registers else { return None };
    Some((instruction, stack, UnwindRegsAarch64::new(link, stack, frame)))
}

/// Python's trampolines (from 3.12 on, `PYTHONPERFSUPPORT`), one for each function: they push one word and call
/// (Python/asm_trampoline.S). DWARF of our own says so, since their memory has none: the caller's frame is 16 bytes
/// above the stack pointer, its return address below.
fn trampolines(range: Range<u64>) -> Module<Arc<[u8]>> {
    let mut frame = Vec::new();
    // Version 1, no augmentation, factors 1 and -8, the return address in column 16.
    let common: [u8; 20] = [0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 16, 0x90, 1, 0, 0, 0, 0, 0, 0];
    frame.extend(20_u32.to_ne_bytes());
    frame.extend(common);
    frame.extend(20_u32.to_ne_bytes());
    // How far back the common part begins.
    frame.extend(28_u32.to_ne_bytes());
    frame.extend(range.start.to_ne_bytes());
    frame.extend((range.end - range.start).to_ne_bytes());
    frame.extend(0_u32.to_ne_bytes());
    let length = frame.len() as u64;
    let info = ExplicitModuleSectionInfo {
        base_svma: range.start,
        text_svma: Some(range.clone()),
        eh_frame_svma: Some(range.start..range.start + length),
        eh_frame: Some(Arc::from(frame)),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new("trampolines".to_owned(), range.clone(), range.start, info)
}
