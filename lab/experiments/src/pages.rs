//! Pages side by side, and comparisons of pairs of them: the KSM-like workload is pages of files on this
//! machine, and the comparisons that looking for equal ones in a tree ordered by content makes.
//!
//! ksmd keeps pages in trees ordered by `memcmp` and descends them with each candidate (Linux,
//! `mm/ksm.c`, `memcmp_pages`), so most comparisons are of different pages, and where those first
//! differ is a property of the pages. Two idle guests of one distribution are imitated: both have
//! mapped the same files, so that a third of all pages exists twice.

use super::prelude::*;
use std::cmp::Ordering;
use std::io::Read;
use std::path::PathBuf;
use walkdir::{DirEntry, WalkDir};

/// Figures: part of the mismatches that differ within so many bytes.
const WITHIN: [&str; 3] = ["within_16", "within_32", "within_64"];

/// Folders to look for files in: what a guest has mapped while it does nothing.
pub const ROOTS: [&str; 4] = ["/usr/lib", "/usr/bin", "/lib", "/usr/share"];

/// Most pages that one file gives, so that no library is the whole set.
const MOST_PER_FILE: usize = 256;
const MOST_FILES: usize = 20_000;
const LEAST: usize = 64;

pub struct PageSet {
    arena: Arena,
    pub pages: usize,
    pub files: usize,
    /// Pages to compare, in order.
    pub pairs: Vec<(u32, u32)>,
}

impl PageSet {
    pub fn new(room: usize, on: PagePolicy, seed: u64) -> Result<PageSet> {
        let arena = Arena::new(room * PAGE_SIZE, on, seed)?;
        Ok(PageSet { arena, pages: 0, files: 0, pairs: Vec::new() })
    }

    /// Up to `wanted` pages from files under `roots`, in 4 KiB pages of memory, chosen by the seed; a
    /// third of them copies of others.
    ///
    /// # Errors
    /// When there are too few files to read, or memory is refused.
    pub fn gather(roots: &[&str], wanted: usize, seed: u64) -> Result<PageSet> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut paths = files(roots);
        random.shuffle(&mut paths);
        let mut set = PageSet::new(wanted, PagePolicy::Small, seed)?;
        let originals = wanted - wanted / 3;
        let mut buffer = Vec::new();
        for path in &paths {
            let most = MOST_PER_FILE.min(originals - set.pages);
            if most == 0 {
                break;
            }
            buffer.clear();
            // A file that cannot be read is left out: another stands for it.
            let Ok(file) = std::fs::File::open(path) else { continue };
            if file.take((most * PAGE_SIZE) as u64).read_to_end(&mut buffer).is_err() {
                continue;
            }
            // The page cache fills a file's last page with zeros.
            buffer.resize(buffer.len().next_multiple_of(PAGE_SIZE), 0);
            buffer.chunks(PAGE_SIZE).for_each(|page| set.push(page));
            set.files += 1;
        }
        let pages = set.pages;
        if pages < LEAST {
            return nothing(format!(
                "expected {LEAST} pages or more of readable files under {}, found {pages}",
                roots.join(", ")
            ));
        }
        for _ in pages..(pages + pages / 2).min(wanted) {
            let copied = set.bytes(random.u32(..pages as u32)).to_vec();
            set.push(&copied);
        }
        Ok(set)
    }

    pub fn push(&mut self, page: &[u8]) {
        assert!((self.pages + 1) * PAGE_SIZE <= self.arena.len() && page.len() == PAGE_SIZE);
        let to = self.arena.as_mut_ptr().wrapping_add(self.pages * PAGE_SIZE);
        // SAFETY: as asserted, and nobody else has the arena while the set is made.
        unsafe { std::ptr::copy_nonoverlapping(page.as_ptr(), to, PAGE_SIZE) };
        self.pages += 1;
    }

    pub fn page(&self, index: u32) -> *const u8 {
        self.arena.as_mut_ptr().wrapping_add(index as usize * PAGE_SIZE)
    }

    pub fn bytes(&self, index: u32) -> &[u8] {
        assert!((index as usize) < self.pages, "page {index} is not in the set");
        // SAFETY: inside the arena, initialised; written only while the set is made.
        unsafe { std::slice::from_raw_parts(self.page(index), PAGE_SIZE) }
    }

    /// Puts every page into a tree in random order, and keeps the last `most` comparisons of it, when the tree is nearly
    /// full, as the pairs.
    pub fn descend(&mut self, most: usize, seed: u64) {
        let mut order: Vec<u32> = (0..self.pages as u32).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let mut children = vec![[None; 2]; self.pages];
        let mut made = Vec::new();
        for &candidate in &order[1..] {
            let mut next = Some(order[0]);
            while let Some(node) = next {
                made.push((candidate, node));
                let which = match self.bytes(candidate).cmp(self.bytes(node)) {
                    Ordering::Less => 0,
                    Ordering::Greater => 1,
                    // Merged with the node: nothing is put into the tree.
                    Ordering::Equal => break,
                };
                let child = &mut children[node as usize][which];
                next = *child;
                child.get_or_insert(candidate);
            }
        }
        self.pairs = made.split_off(made.len().saturating_sub(most));
    }

    fn first_difference(&self, a: u32, b: u32) -> Option<usize> {
        self.bytes(a).iter().zip(self.bytes(b)).position(|(a, b)| a != b)
    }

    /// The first difference of each pair of pages that differ.
    pub fn first_differences(&self) -> Vec<usize> {
        self.pairs.iter().filter_map(|&(a, b)| self.first_difference(a, b)).collect()
    }

    /// Every comparison must have the right sign.
    ///
    /// # Errors
    /// [`LabError::WrongBytes`] with the first that has not.
    pub fn check(&self, routine: &Routine) -> Result {
        let Function::Compare(compare) = routine.function else { return Ok(()) };
        for &(a, b) in &self.pairs {
            let expected = self.bytes(a).cmp(self.bytes(b)) as i32;
            // SAFETY: pages of the set, readable for a page; the CPU runs the kernel.
            let found = unsafe { compare(self.page(a), self.page(b), PAGE_SIZE) };
            if found.signum() != expected {
                let at = self.first_difference(a, b).unwrap_or(PAGE_SIZE);
                return Err(LabError::WrongBytes(format!(
                    "{}: pages {a} and {b}, which differ at byte {at} first, compare as {found}, \
                     expected the sign {expected}",
                    routine.name
                )));
            }
        }
        Ok(())
    }

    /// The operands of each comparison.
    #[inline(always)]
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let place = |&(a, b): &(u32, u32)| Place {
            dst: self.page(a).cast_mut(),
            src: self.page(b),
            n: PAGE_SIZE,
        };
        self.pairs.iter().map(place)
    }

    /// A routine that makes all of the comparisons in every call.
    pub fn call(&self, routine: &Routine) -> Call<'_> {
        Call::on(routine.name.clone(), routine.function, |_| self.places())
    }
}

/// Rows of candidates that make a set's comparisons in every call: the time of one.
pub(super) fn measured(
    setting: &mut Setting,
    state: &str,
    calls: Vec<Call<'_>>,
    set: &PageSet,
) -> Result {
    // The places are not used: the pages are the set's.
    let cell = Cell { contents: Some(Contents::Kept), ..Cell::reused(state) };
    let task = setting.task(Operation::Compare, PAGE_SIZE, cell);
    let (made, firsts) = (set.pairs.len(), set.first_differences());
    let within = [16, 32, 64].map(|limit| {
        firsts.iter().filter(|at| **at < limit).count() as f64 / firsts.len().max(1) as f64
    });
    let equal = (made - firsts.len()) as f64 / made.max(1) as f64;
    let told = |mut row: Row| {
        row.operation_ns.iter_mut().for_each(|ns| *ns /= made as f64);
        row.calls = row.calls.saturating_mul(u32::try_from(made).unwrap_or(u32::MAX));
        row.with(&[0, 1, 2].map(|nth| (WITHIN[nth], within[nth]))).with(&[("equal", equal)])
    };
    setting.calls(&task, calls.into_iter().map(|call| call.told(told)).collect())
}

/// Regular files of a page or more, in an order that depends on names alone. Links are not followed.
fn files(roots: &[&str]) -> Vec<PathBuf> {
    let entries = roots.iter().flat_map(|root| WalkDir::new(root).sort_by_file_name());
    let is_file = |entry: &DirEntry| {
        let has_page = entry.metadata().is_ok_and(|data| data.len() >= PAGE_SIZE as u64);
        entry.file_type().is_file() && has_page
    };
    // Files that cannot be read are left out.
    let found = entries.filter_map(std::result::Result::ok).filter(is_file);
    found.take(MOST_FILES).map(DirEntry::into_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of eight pages, which agree in the first 40 bytes of each.
    fn directory_of_pages(count: usize) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for file in 0..count / 8 {
            let byte = |at: usize| match at % PAGE_SIZE {
                0..40 => 7,
                _ => (at / PAGE_SIZE * 31 + file * 17 + at % 251) as u8,
            };
            let bytes: Vec<u8> = (0..8 * PAGE_SIZE - 100).map(byte).collect();
            std::fs::write(directory.path().join(format!("f{file}")), bytes).expect("a file");
        }
        directory
    }

    fn gather(directory: &tempfile::TempDir) -> Result<PageSet> {
        PageSet::gather(&[directory.path().to_str().expect("UTF-8")], 300, 5)
    }

    #[test]
    fn a_third_of_the_pages_exists_twice_and_equal_ones_are_found() {
        let mut set = gather(&directory_of_pages(256)).expect("pages");
        assert_eq!((set.pages, set.files), (300, 25));
        set.descend(usize::MAX, 5);
        assert!(set.pairs.iter().all(|(a, b)| a != b));
        let (all, firsts) = (set.pairs.clone(), set.first_differences());
        assert!(all.len() - firsts.len() >= 90, "of {} {} differ", all.len(), firsts.len());
        assert!(firsts.iter().all(|at| *at >= 40));
        let early = firsts.iter().filter(|at| **at < 64).count();
        assert!(2 * early > firsts.len(), "{early} of {}", firsts.len());
        set.descend(10, 5);
        assert_eq!(set.pairs, all[all.len() - 10..]);
    }

    #[test]
    fn too_few_files_are_refused_with_what_was_found() {
        let error = gather(&directory_of_pages(16)).err().expect("a refusal").to_string();
        assert!(error.contains("expected 64 pages") && error.contains("found 16"), "{error}");
        assert!(PageSet::gather(&["/nonexistent"], 300, 5).is_err());
    }
}
