//! Control groups of version 1 and 2 (cgroup-v1/memory.rst, cgroup-v2.rst in the kernel's documentation).

use crate::Tree;
use crate::tree::value;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The control groups of a process that may limit it, innermost first, with those around them.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    tree: Tree,
    memory: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
}

/// The memory of one control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes that its processes may have.
    pub bytes: u64,
    /// Bytes that they have, with the files that are cached for them.
    pub used: u64,
    /// Bytes of cached files, which are given up before memory is refused.
    pub cached: u64,
}

impl Groups {
    /// Groups of this process.
    pub fn of_process() -> Groups {
        Groups::of(&Tree::default(), "self")
    }

    /// Groups of the process with that name in `proc`: `self`, or a number.
    pub fn of(tree: &Tree, process: impl Display) -> Groups {
        let text = tree.text(format!("proc/{process}/cgroup")).unwrap_or_default();
        let root = Path::new("sys/fs/cgroup");
        // Beside version 1, systemd mounts version 2 in a folder of its own.
        let beside = root.join("unified");
        let unified = if tree.has(&beside) { &*beside } else { root };
        let folders = |controller: &str| {
            let mut found = Vec::new();
            for line in text.lines() {
                let mut fields = line.splitn(3, ':').skip(1);
                let (Some(names), Some(path)) = (fields.next(), fields.next()) else { continue };
                let base = match names {
                    "" => unified.to_owned(),
                    _ if names.split(',').any(|name| name == controller) => root.join(controller),
                    _ => continue,
                };
                let own = base.join(path.trim_matches('/'));
                let around = own.ancestors().take_while(|folder| folder.starts_with(&base));
                found.extend(around.map(Path::to_owned));
            }
            found
        };
        let [memory, cpu] = ["memory", "cpu"].map(folders);
        Groups { tree: tree.clone(), memory, cpu }
    }

    /// The least number of bytes above which a process of these groups is refused memory or killed.
    pub fn memory_limit(&self) -> Option<u64> {
        let files = ["memory.max", "memory.limit_in_bytes"];
        self.memory.iter().filter_map(|group| self.least(group, &files)).min()
    }

    /// Memory of each group that has a limit, where the level from which version 2 slows its processes is one too.
    pub fn limits(&self) -> impl Iterator<Item = Limit> {
        let files = ["memory.max", "memory.high", "memory.limit_in_bytes"];
        self.memory.iter().filter_map(move |group| {
            let bytes = self.least(group, &files)?;
            let used = ["memory.current", "memory.usage_in_bytes"];
            let used = used.iter().find_map(|file| self.tree.number(group.join(file)))?;
            let stat = self.tree.text(group.join("memory.stat")).unwrap_or_default();
            let of = |name| {
                let below = value(&stat, &format!("total_{name}"));
                below.or_else(|| value(&stat, name)).unwrap_or(0)
            };
            Some(Limit { bytes, used, cached: of("inactive_file") + of("active_file") })
        })
    }

    fn least(&self, group: &Path, files: &[&str]) -> Option<u64> {
        let numbers = files.iter().filter_map(|file| self.tree.number(group.join(file)));
        // Version 1 writes the largest number of pages where there is no limit.
        numbers.filter(|bytes| *bytes < 1 << 62).min()
    }

    /// The number of processes of the innermost group that were killed for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"];
        let mut counts = self.memory.iter().flat_map(|group| files.map(|file| group.join(file)));
        counts.find_map(|file| self.tree.line(file, "oom_kill")).unwrap_or(0)
    }

    /// CPUs' worth of time that a process of these groups may use.
    pub fn cpu_quota(&self) -> Option<f64> {
        let quotas = self.cpu.iter().filter_map(|group| {
            let number = |file: &str| self.tree.number(group.join(file));
            let one = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
            let (quota, period) = one.or_else(|| {
                let text = self.tree.text(group.join("cpu.max"))?;
                let (quota, period) = text.split_once(' ')?;
                Some((quota.parse().ok()?, period.trim().parse().ok()?))
            })?;
            (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
        });
        quotas.min_by(f64::total_cmp)
    }

    /// Folders of the groups that may limit memory, below the tree's root, the innermost first.
    pub fn memory_folders(&self) -> &[PathBuf] {
        &self.memory
    }

    /// The number of times that a quota stopped processes of these groups.
    pub fn throttled(&self) -> u64 {
        let count = |group: &PathBuf| self.tree.line(group.join("cpu.stat"), "nr_throttled");
        self.cpu.iter().filter_map(count).max().unwrap_or(0)
    }
}
