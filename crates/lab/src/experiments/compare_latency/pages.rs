//! The KSM-like workload: pages of files on this machine, and the comparisons that looking for equal
//! ones in a tree ordered by content makes.
//!
//! ksmd keeps pages in trees ordered by `memcmp` and descends them with each candidate (Linux,
//! `mm/ksm.c`, `memcmp_pages`), so most comparisons are of different pages, and where those first
//! differ is a property of the pages. Two idle guests of one distribution are imitated: both have
//! mapped the same files, so that a third of all pages exists twice.

use crate::LabError;
use cachewise_kernels::PAGE_SIZE;
use cachewise_measure::{Arena, PagePolicy};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where files are looked for: what a guest has mapped while it does nothing.
pub const ROOTS: [&str; 4] = ["/usr/lib", "/usr/bin", "/lib", "/usr/share"];

/// Most pages that one file gives, so that no library is the whole set.
const MOST_PER_FILE: usize = 256;
/// Most files looked at.
const MOST_FILES: usize = 20_000;
/// Fewer pages say nothing.
const LEAST: usize = 64;

/// Pages side by side, in 4 KiB pages of memory.
pub struct PageSet {
    arena: Arena,
    /// Pages in it.
    pub pages: usize,
    /// Of how many files.
    pub files: usize,
}

/// One comparison: two pages, and the sign it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The candidate.
    pub candidate: u32,
    /// The page in the tree.
    pub node: u32,
    /// What `memcmp` says of them.
    pub sign: i8,
}

/// Where mismatches first differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Differences {
    /// Comparisons of different pages.
    pub different: usize,
    /// Comparisons of equal pages.
    pub equal: usize,
    /// Part of the different ones that differ within the first 16, 32, 64 bytes.
    pub within: [f64; 3],
}

impl PageSet {
    /// Up to `wanted` pages from files under `roots`, chosen by the seed; a third of them copies of
    /// others.
    ///
    /// # Errors
    /// When there are too few files to read, or memory is refused.
    pub fn gather(roots: &[&Path], wanted: usize, seed: u64) -> Result<PageSet, LabError> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut paths = files(roots);
        random.shuffle(&mut paths);
        let arena = Arena::new(wanted * PAGE_SIZE, PagePolicy::Small, seed)?;
        let originals = wanted - wanted / 3;
        let (mut pages, mut read) = (0, 0);
        let mut buffer = Vec::new();
        for path in &paths {
            if pages == originals {
                break;
            }
            let most = MOST_PER_FILE.min(originals - pages);
            buffer.clear();
            // What cannot be read is left out: another file stands for it.
            let Ok(file) = std::fs::File::open(path) else { continue };
            if file.take((most * PAGE_SIZE) as u64).read_to_end(&mut buffer).is_err() {
                continue;
            }
            // The page cache fills a file's last page with zeros.
            buffer.resize(buffer.len().next_multiple_of(PAGE_SIZE), 0);
            for page in buffer.chunks(PAGE_SIZE).take(most) {
                write(&arena, pages, page);
                pages += 1;
            }
            read += 1;
        }
        if pages < LEAST {
            let roots: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
            return Err(LabError::Nothing(format!(
                "found {pages} pages of readable files under {}, accepted {LEAST} or more",
                roots.join(", ")
            )));
        }
        let set = PageSet { arena, pages, files: read };
        for copy in pages..(pages + pages / 2).min(wanted) {
            let of = set.bytes(random.usize(..pages)).to_vec();
            write(&set.arena, copy, &of);
        }
        Ok(PageSet { pages: (pages + pages / 2).min(wanted), ..set })
    }

    /// The address of a page.
    pub fn page(&self, index: u32) -> *const u8 {
        self.arena.as_mut_ptr().wrapping_add(index as usize * PAGE_SIZE)
    }

    /// A page's bytes.
    pub fn bytes(&self, index: usize) -> &[u8] {
        assert!(index < self.arena.len() / PAGE_SIZE, "page {index} is not in the set");
        // SAFETY: inside the arena, initialised; written only while the set is made.
        unsafe { std::slice::from_raw_parts(self.page(index as u32), PAGE_SIZE) }
    }

    /// The last `most` comparisons of putting every page into a tree in random order, when the tree
    /// is nearly full.
    pub fn descend(&self, most: usize, seed: u64) -> Vec<Comparison> {
        const NONE: u32 = u32::MAX;
        let mut order: Vec<u32> = (0..self.pages as u32).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let mut children = vec![[NONE; 2]; self.pages];
        let mut made = Vec::new();
        let Some((&root, rest)) = order.split_first() else { return made };
        for &candidate in rest {
            let mut node = root;
            loop {
                let outcome = self.bytes(candidate as usize).cmp(self.bytes(node as usize));
                made.push(Comparison { candidate, node, sign: outcome as i8 });
                let side = match outcome {
                    // Merged with the node: nothing is put into the tree.
                    std::cmp::Ordering::Equal => break,
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Greater => 1,
                };
                let next = children[node as usize][side];
                if next == NONE {
                    children[node as usize][side] = candidate;
                    break;
                }
                node = next;
            }
        }
        made.split_off(made.len().saturating_sub(most))
    }

    /// Where the pages of those comparisons first differ.
    pub fn differences(&self, comparisons: &[Comparison]) -> Differences {
        let mut found = Differences::default();
        let mut within = [0_usize; 3];
        for comparison in comparisons {
            let (a, b) =
                (self.bytes(comparison.candidate as usize), self.bytes(comparison.node as usize));
            match a.iter().zip(b).position(|(a, b)| a != b) {
                None => found.equal += 1,
                Some(at) => {
                    found.different += 1;
                    for (count, limit) in within.iter_mut().zip([16, 32, 64]) {
                        *count += usize::from(at < limit);
                    }
                }
            }
        }
        found.within = within.map(|count| count as f64 / found.different.max(1) as f64);
        found
    }
}

fn write(arena: &Arena, page: usize, bytes: &[u8]) {
    assert!((page + 1) * PAGE_SIZE <= arena.len() && bytes.len() == PAGE_SIZE);
    let to = arena.as_mut_ptr().wrapping_add(page * PAGE_SIZE);
    // SAFETY: as asserted, and nobody else has the arena while the set is made.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, PAGE_SIZE) };
}

/// Regular files of a page or more, in an order that depends on names alone. Links are not followed.
fn files(roots: &[&Path]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting: Vec<PathBuf> = roots.iter().rev().map(|root| root.to_path_buf()).collect();
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file()
                && entry.metadata().is_ok_and(|data| data.len() >= PAGE_SIZE as u64)
            {
                found.push(entry.path());
            }
        }
        if found.len() >= MOST_FILES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_of_pages(count: usize) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for file in 0..count / 8 {
            let bytes: Vec<u8> = (0..8 * PAGE_SIZE - 100)
                .map(|at| {
                    if at % PAGE_SIZE < 40 {
                        7
                    } else {
                        (at / PAGE_SIZE * 31 + file * 17 + at % 251) as u8
                    }
                })
                .collect();
            std::fs::write(directory.path().join(format!("f{file}")), bytes).expect("a file");
        }
        directory
    }

    #[test]
    fn a_third_of_the_pages_exists_twice_and_equal_ones_are_found() {
        let directory = directory_of_pages(256);
        let set = PageSet::gather(&[directory.path()], 300, 5).expect("pages");
        assert_eq!((set.pages, set.files), (300, 25));
        let trace = set.descend(usize::MAX, 5);
        for comparison in &trace {
            let (a, b) =
                (set.bytes(comparison.candidate as usize), set.bytes(comparison.node as usize));
            assert_eq!(a.cmp(b) as i8, comparison.sign);
            assert_ne!(comparison.candidate, comparison.node);
        }
        let found = set.differences(&trace);
        assert!(found.equal >= 90, "{found:?}");
        assert_eq!(found.equal + found.different, trace.len());
        // Pages of these files agree in their first 40 bytes.
        assert_eq!(found.within[..2], [0.0, 0.0]);
        assert!(found.within[2] > 0.5, "{found:?}");
        assert_eq!(set.descend(10, 5), trace[trace.len() - 10..]);
    }

    #[test]
    fn too_few_files_are_refused_with_what_was_found() {
        let directory = directory_of_pages(16);
        let error =
            PageSet::gather(&[directory.path()], 300, 5).err().expect("a refusal").to_string();
        assert!(error.contains("found 16 pages") && error.contains("accepted 64"), "{error}");
        assert!(PageSet::gather(&[Path::new("/nonexistent")], 300, 5).is_err());
    }
}
