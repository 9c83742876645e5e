//! Limits that control groups of either version set.

use crate::tree::Tree;
use std::path::Path;

/// The control groups of this process: the unified one, and those of version 1 by controller.
pub(super) struct Groups {
    unified: Option<String>,
    cpu: Option<String>,
    memory: Option<String>,
}

impl Groups {
    pub(super) fn read(tree: &Tree) -> Groups {
        let text = tree.text("proc/self/cgroup").unwrap_or_default();
        let path_of = |wanted: &str| {
            text.lines().find_map(|line| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                let is_it = names.split(',').any(|name| name == wanted);
                is_it.then(|| path.trim_matches('/').to_owned())
            })
        };
        Groups { unified: path_of(""), cpu: path_of("cpu"), memory: path_of("memory") }
    }

    /// The file in the group's directory and in every one above it: each limits.
    fn texts(tree: &Tree, base: &str, path: Option<&String>, file: &str) -> Vec<String> {
        let above = path.into_iter().flat_map(|path| Path::new(path).ancestors());
        above.filter_map(|at| tree.text(Path::new(base).join(at).join(file))).collect()
    }

    /// The same of version 2, which systemd mounts in a folder of its own beside version 1.
    fn unified(&self, tree: &Tree, file: &str) -> Vec<String> {
        let bases = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
        bases.map(|base| Groups::texts(tree, base, self.unified.as_ref(), file)).concat()
    }

    pub(super) fn cpu_quota(&self, tree: &Tree) -> Option<f64> {
        let two = self.unified(tree, "cpu.max");
        let quota = two.iter().filter_map(|text| {
            let (quota, period) = text.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
        });
        let in_group = |file| Groups::texts(tree, "sys/fs/cgroup/cpu", self.cpu.as_ref(), file);
        let (quotas, periods) = (in_group("cpu.cfs_quota_us"), in_group("cpu.cfs_period_us"));
        let one = quotas.iter().zip(&periods).filter_map(|(quota, period)| {
            let quota = quota.parse::<f64>().ok().filter(|quota| *quota > 0.0)?;
            Some(quota / period.parse::<f64>().ok()?)
        });
        quota.chain(one).filter(|cpus| cpus.is_finite()).min_by(f64::total_cmp)
    }

    pub(super) fn throttled(&self, tree: &Tree) -> u64 {
        let two = self.unified(tree, "cpu.stat");
        let one = Groups::texts(tree, "sys/fs/cgroup/cpu", self.cpu.as_ref(), "cpu.stat");
        let count = |text: &String| {
            text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok())
        };
        two.iter().chain(&one).filter_map(count).max().unwrap_or(0)
    }

    pub(super) fn memory_limit(&self, tree: &Tree) -> Option<u64> {
        let two = self.unified(tree, "memory.max");
        let base = "sys/fs/cgroup/memory";
        let one = Groups::texts(tree, base, self.memory.as_ref(), "memory.limit_in_bytes");
        two.iter().chain(&one).filter_map(|text| text.parse().ok()).min()
    }
}
