//! The file in memory in which a program's processes count, under the library that counts. They inherit it, so that it has
//! no name that other users could open, and processes of other users have it all the same.

use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::FdFlags;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// Descriptors below are left to the program, some of which count on the next one that is free.
const FIRST_DESCRIPTOR: i32 = 100;
/// Bytes of the library's counters (`preload-stats`, `shared.rs`).
const BYTES: usize = 64 << 10;
/// Operations in the library's order, of which each has a count for size 0 and one for each octave, in each of its sets.
const OPERATIONS: [&str; 5] = ["copy", "move", "fill", "zero", "compare"];
const CLASSES: usize = 49;
const SETS: usize = 16;

/// Calls of a program's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls and bytes by operation and first size of the class: 0, and one for each octave.
    pub calls: BTreeMap<(String, u64), (u64, u64)>,
    /// Calls of the allocator, where they were counted.
    pub blocks: Option<u64>,
    /// Bytes that they asked for.
    pub block_bytes: u64,
}

/// The file; processes that are started while it exists inherit it.
#[derive(Debug)]
pub struct Gathered(fs::File);

impl Gathered {
    /// Makes it.
    ///
    /// # Errors
    /// Returns the system's refusal, and `EFBIG` where files may not be so large.
    pub fn new() -> io::Result<Gathered> {
        // A file that grows beyond the limit would end this process.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| limit < BYTES as u64) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let make = |flags| rustix::fs::memfd_create("cachewise-statistics", flags);
        // Linux 6.3 and later may refuse files that could be executed; earlier ones do not know the flag.
        let file = make(flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| make(flags))?;
        let file = rustix::io::fcntl_dupfd_cloexec(&file, FIRST_DESCRIPTOR).unwrap_or(file);
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK)?;
        rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Gathered(file.into()))
    }

    /// The value of `CACHEWISE_STATS`, by which processes prove that a descriptor is this file. The one with this process's
    /// number prints for all: what this process becomes, if it becomes a program.
    #[must_use]
    pub fn variable(&self) -> String {
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |of| of.ino());
        let (device, inode) = self.0.metadata().map_or((0, 0), |of| (of.dev(), of.ino()));
        let (descriptor, process) = (self.0.as_raw_fd(), std::process::id());
        format!("fd:{descriptor}:{device}:{inode}:{process}:{namespace}")
    }

    /// Counts of all processes; `None` where none of them counted.
    ///
    /// # Errors
    /// Returns the error of reading.
    pub fn counts(&self) -> io::Result<Option<Counts>> {
        let mut bytes = vec![0; BYTES];
        self.0.read_exact_at(&mut bytes, 0)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        let words: Vec<u64> = words.collect();
        let of_a_set = OPERATIONS.len() * CLASSES;
        let (sets, rest) = words.split_at(2 * SETS * of_a_set);
        let sum = |words: &[u64], place: usize, stride: usize| -> (u64, u64) {
            let pairs = (0..SETS).map(|set| 2 * (set * stride + place));
            pairs.fold((0, 0), |sum, at| (sum.0 + words[at], sum.1 + words[at + 1]))
        };
        let mut counts = Counts::default();
        for (place, operation) in OPERATIONS.iter().enumerate() {
            for class in 0..CLASSES {
                let found = sum(sets, place * CLASSES + class, of_a_set);
                if found.0 != 0 {
                    let first = if class == 0 { 0 } else { 1 << (class - 1) };
                    counts.calls.insert(((*operation).to_owned(), first), found);
                }
            }
        }
        let (blocks, block_bytes) = sum(rest, 0, 1);
        (counts.blocks, counts.block_bytes) = (Some(blocks), block_bytes);
        Ok(Some(counts).filter(|counts| blocks != 0 || !counts.calls.is_empty()))
    }

    /// Leaves it to the program that this process becomes.
    pub fn leave(self) {
        std::mem::forget(OwnedFd::from(self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_of_other_users_count_too() {
        use std::os::unix::process::CommandExt as _;
        let gathered = Gathered::new().expect("a file");
        assert_eq!(gathered.counts().expect("readable"), None);
        let variable = gathered.variable();
        let descriptor = variable.split(':').nth(1).expect("a descriptor");
        // Two moves of 12 bytes and of 3 in all in the second set, and a block of 9 bytes.
        let at = |word: usize, value: u8| (8 * word, value);
        let places = [(0, 1), (1, 12), (245, 1), (246, 3)];
        let class = |first: usize, (place, value)| match place {
            245.. => at(2 * (5 * 49 + 49 + first) + place - 245, value),
            _ => at(2 * (49 + first) + place, value),
        };
        let blocks = 2 * SETS * 5 * CLASSES;
        let all = places.map(|place| class(4, place)).into_iter();
        let all = all.chain([at(blocks, 1), at(blocks + 1, 9)]);
        let script: String = all
            .map(|(at, value)| {
                format!("printf '\\{value:03o}' | dd of=/proc/self/fd/{descriptor} bs=1 seek={at} conv=notrunc 2>&1;")
            })
            .collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]);
        if rustix::process::geteuid().is_root() {
            shell.uid(65534).gid(65534);
        }
        assert!(shell.output().expect("a shell").status.success());
        let counts = gathered.counts().expect("readable").expect("some");
        assert_eq!(counts.calls, [(("move".to_owned(), 8), (2, 15))].into());
        assert_eq!((counts.blocks, counts.block_bytes), (Some(1), 9));
    }
}
