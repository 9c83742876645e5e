//! Made-up machines, row by row.

use super::units::{bytes, counted, exact_bytes, gain, gigabytes_per_second, parse_bytes, time};
use super::*;

fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let root = tempfile::tempdir().expect("a folder");
    plant(root.path(), files);
    let tree = Tree::at(root.path());
    (root, tree)
}

#[test]
fn groups_of_both_versions_limit() {
    const MIB: u64 = 1 << 20;
    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n");
    const NESTED: (&str, &str) = ("proc/self/cgroup", "0::/a/b\n");
    const OLD: (&str, &str) =
        ("proc/self/cgroup", "9:cpu,cpuacct:/c\n4:hugetlb,memory:/m/n\nx\n0::/j\n");
    // Files, and: limit, whole, available, killed, throttled, quota in percent.
    type Answers = (Option<u64>, u64, u64, u64, u64, Option<u64>);
    let cases: &[(&[(&str, &str)], Answers)] = &[
        (&[], (None, u64::MAX, u64::MAX, 0, 0, None)),
        (&[MEMINFO], (None, 4 * MIB, 2 * MIB, 0, 0, None)),
        (
            &[MEMINFO, NESTED, ("sys/fs/cgroup/a/b/memory.max", "max\n")],
            (None, 4 * MIB, 2 * MIB, 0, 0, None),
        ),
        // The lowest of all groups around counts, and files that are cached are had.
        (
            &[
                MEMINFO,
                NESTED,
                ("sys/fs/cgroup/a/memory.max", "3145728\n"),
                ("sys/fs/cgroup/a/memory.current", "2097152\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1024\nactive_file 2048\n"),
                ("sys/fs/cgroup/a/b/memory.events", "max 4\noom 1\noom_kill 7\n"),
                ("sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 3\n"),
                ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ],
            (Some(3 * MIB), 3 * MIB, MIB + 3072, 7, 3, Some(50)),
        ),
        // Being slowed is a limit for what is left, not for what is allowed.
        (
            &[
                MEMINFO,
                NESTED,
                ("sys/fs/cgroup/a/b/memory.high", "1048576\n"),
                ("sys/fs/cgroup/a/b/memory.current", "2097152\n"),
            ],
            (None, MIB, 0, 0, 0, None),
        ),
        (
            &[
                MEMINFO,
                OLD,
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1048576\n"),
                ("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1048000\n"),
                ("sys/fs/cgroup/memory/m/memory.stat", "active_file 1\ntotal_active_file 9\n"),
                ("sys/fs/cgroup/memory/m/memory.oom_control", "under_oom 0\noom_kill 2\n"),
                ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "150000\n"),
                ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
            (Some(MIB), MIB, 585, 2, 0, Some(150)),
        ),
        (
            &[MEMINFO, OLD, ("sys/fs/cgroup/unified/j/memory.max", "8192\n")],
            (Some(8192), 4 * MIB, 2 * MIB, 0, 0, None),
        ),
    ];
    for (files, expected) in cases {
        let (_root, tree) = machine(files);
        let groups = Groups::of(&tree, "self");
        let room = Room::of(&tree, &groups);
        let quota = groups.cpu_quota().map(|cpus| (cpus * 100.0) as u64);
        let (limit, killed) = (groups.memory_limit(), groups.oom_kills());
        let found = (limit, room.whole, room.available, killed, groups.throttled(), quota);
        assert_eq!(found, *expected, "{files:?}");
    }
}

#[test]
fn files_are_read_below_the_root() {
    let files = [("a/mode", "always [madvise] never\n"), ("m", "X:  12 kB\nz 3\n"), ("e", "\n\0")];
    let (_root, tree) = machine(&files);
    assert_eq!(tree.chosen("a/mode").as_deref(), Some("madvise"));
    assert_eq!(tree.kib_line("m", "X"), Some(12 << 10));
    assert_eq!([tree.line("m", "z"), tree.line("m", "Y")], [Some(3), None]);
    assert_eq!([tree.text("absent"), tree.text("e")], [None, None]);
    let counts = ["0-1", "0-3,8,10-11\n", "", "3-1", "x"].map(cpus_in_list);
    assert_eq!(counts, [Some(2), Some(7), None, None, None]);
}

#[test]
fn this_machine_has_memory() {
    let room = Room::of_process();
    assert!(room.available > 0 && room.whole >= room.available, "{room:?}");
    assert!(Meminfo::read(&Tree::default()).bytes("MemAvailable").is_some());
}

#[test]
fn sizes_read_back() {
    for n in [0, 1, 255, 4096, 1 << 20, 3 << 19, 1 << 40] {
        assert_eq!(parse_bytes(&bytes(n)), Ok(n as usize), "{}", bytes(n));
    }
    for (text, n) in [("32M", 32 << 20), ("1.5k", 1536), ("1024G", 1 << 40), ("4 KiB", 4096)] {
        assert_eq!(parse_bytes(text), Ok(n));
    }
    for (n, text) in [(2111, "2111 B"), (2112, "2112 B"), (4095, "4095 B"), (4096, "4 KiB")] {
        assert_eq!(exact_bytes(n), text);
    }
    for text in ["", "12q", "-4", "+5", "1.0001", "M", "1e9", "999999999T", "0x10", "nan"] {
        let error = parse_bytes(text).expect_err(text);
        assert!(error.contains(&format!("\"{text}\"")), "{error}");
    }
}

#[test]
fn figures_keep_three_digits() {
    let times = [17.0, 1_300.0, 24_000_000.0].map(time);
    assert_eq!(times, ["17.0 ns", "1.30 us", "24.0 ms"]);
    assert_eq!([32.0, 0.0].map(|ns| gigabytes_per_second(4096, ns)), ["128", "-"]);
    assert_eq!([0.5, 1.25, 1.0004].map(gain), ["+100 %", "-20 %", "+0 %"]);
    let counts = [(1, "process"), (2, "process"), (2, "launch"), (0, "thread")];
    let words = counts.map(|(number, what)| counted(number, what));
    assert_eq!(words, ["1 process", "2 processes", "2 launches", "0 threads"]);
}
