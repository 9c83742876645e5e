//! Reading `/proc` and `/sys` below a root, so that tests can feed a made-up machine.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// A directory that stands for `/`.
#[derive(Clone, Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn at(root: &Path) -> Tree {
        Tree(root.to_path_buf())
    }

    /// The trimmed text of a file; `None` when absent, unreadable or empty.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.0.join(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The first word of a file as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.split_whitespace().next()?.parse().ok()
    }

    /// The word between brackets, as in `always [madvise] never`.
    pub(crate) fn chosen(&self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Some(word.map_or(&*text, |(word, _)| word).to_owned())
    }

    /// The number of a `name 123` or `Name:   123` line.
    pub(crate) fn line(&self, file: &str, name: &str) -> Option<u64> {
        let text = self.text(file)?;
        let of_name = |line: &&str| line.split([':', ' ', '\t']).next() == Some(name);
        let line = text.lines().find(of_name)?;
        line[name.len()..].trim_start_matches(':').split_whitespace().next()?.parse().ok()
    }

    /// Value of a `Name:   123 kB` line, in bytes.
    pub(crate) fn kib_line(&self, file: &str, name: &str) -> Option<u64> {
        self.line(file, name)?.checked_mul(1024)
    }
}

/// The CPUs that a list like `0-3,8,10-11` names, as ranges; `None` where it is no such list.
pub(crate) fn cpus(list: &str) -> Option<Vec<RangeInclusive<usize>>> {
    let parts = list.trim().split(',').filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    parts.map(range).collect()
}

/// The number of CPUs that a list names; `None` for none.
pub(crate) fn cpus_in_list(list: &str) -> Option<usize> {
    let count = |all: usize, range: RangeInclusive<usize>| {
        all.checked_add((range.end() - range.start()).checked_add(1)?)
    };
    cpus(list)?.into_iter().try_fold(0, count).filter(|count| *count > 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A temporary tree of the given files.
    pub(crate) fn planted(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        plant(directory.path(), files);
        directory
    }

    /// Writes the given files below a root.
    pub(crate) fn plant(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            std::fs::write(path, text).expect("a file");
        }
    }

    #[test]
    fn lists_are_parsed() {
        let counts = ["0-1", "0-3,8,10-11\n", "", "3-1", "x"].map(cpus_in_list);
        assert_eq!(counts, [Some(2), Some(7), None, None, None]);
    }

    #[test]
    fn files_are_read_below_the_root() {
        let root = planted(&[("a/mode", "always [madvise] never\n"), ("m", "X:  12 kB\nz 3\n")]);
        let tree = Tree::at(root.path());
        assert_eq!(tree.chosen("a/mode").as_deref(), Some("madvise"));
        assert_eq!(tree.kib_line("m", "X"), Some(12 << 10));
        assert_eq!([tree.line("m", "z"), tree.line("m", "Y")], [Some(3), None]);
        assert_eq!(tree.text("absent"), None);
    }
}
