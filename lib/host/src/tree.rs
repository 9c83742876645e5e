//! Reading `/proc` and `/sys` below a root, so that tests can feed a made-up machine.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// A directory that stands for `/`.
#[derive(Clone, Debug)]
pub struct Tree(PathBuf);

impl Default for Tree {
    /// The system itself.
    fn default() -> Tree {
        Tree("/".into())
    }
}

impl Tree {
    /// The directory `root`.
    pub fn at(root: &Path) -> Tree {
        Tree(root.to_path_buf())
    }

    /// The trimmed text of a file; `None` when absent, unreadable or empty.
    pub fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.0.join(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The first word of a file as a number.
    pub fn number(&self, name: impl AsRef<Path>) -> Option<u64> {
        self.text(name)?.split_whitespace().next()?.parse().ok()
    }

    /// The word between brackets, as in `always [madvise] never`.
    pub fn chosen(&self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Some(word.map_or(&*text, |(word, _)| word).to_owned())
    }

    /// True if a file or folder is there.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.0.join(name).exists()
    }

    /// The number of a `name 123` or `Name:   123` line.
    pub fn line(&self, file: impl AsRef<Path>, name: &str) -> Option<u64> {
        value(&self.text(file)?, name)
    }

    /// Bytes of a `Name:   123 kB` line.
    pub fn kib_line(&self, file: impl AsRef<Path>, name: &str) -> Option<u64> {
        self.line(file, name)?.checked_mul(1024)
    }
}

/// The number of a `name 123` or `Name:   123` line of a text.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    let of_name = |line: &&str| line.split([':', ' ', '\t']).next() == Some(name);
    let line = text.lines().find(of_name)?;
    line[name.len()..].trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

/// The CPUs that a list like `0-3,8,10-11` names, as ranges; `None` where it is no such list.
pub fn cpus(list: &str) -> Option<Vec<RangeInclusive<usize>>> {
    let parts = list.trim().split(',').filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    parts.map(range).collect()
}

/// The number of CPUs that a list names; `None` for none.
pub fn cpus_in_list(list: &str) -> Option<usize> {
    let count = |all: usize, range: RangeInclusive<usize>| {
        all.checked_add((range.end() - range.start()).checked_add(1)?)
    };
    cpus(list)?.into_iter().try_fold(0, count).filter(|count| *count > 0)
}

/// Writes the files of a made-up machine below a root, for tests.
///
/// # Panics
/// If a file cannot be written.
#[doc(hidden)]
pub fn plant(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }
}
