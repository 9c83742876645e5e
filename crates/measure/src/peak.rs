//! The most memory this process ever had resident.

use crate::tree::Tree;
use std::path::Path;

/// Peak resident set size in bytes (`VmHWM` of `/proc/self/status`), or `None` where the kernel
/// does not say. Pages of file mappings count, pages given back do not leave the peak.
pub fn resident_bytes() -> Option<u64> {
    resident_bytes_at(Path::new("/"))
}

fn resident_bytes_at(root: &Path) -> Option<u64> {
    Tree::at(root).kib_line("proc/self/status", "VmHWM")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::planted;

    #[test]
    fn the_high_water_mark_is_read() {
        let root =
            planted(&[("proc/self/status", "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n")]);
        assert_eq!(resident_bytes_at(root.path()), Some(2 << 20));
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
