//! Control groups, limits and stalls, from the texts that the system has for them.

use super::{groups_of, limit_of, limits, stalled};
use std::format;
use std::vec::Vec;

#[test]
fn what_the_system_says_of_memory_is_read() {
    let text =
        "some avg10=1.53 avg60=0.20 avg300=0.05 total=8110\nfull avg10=0.00 avg60=0 total=1\n";
    assert!((stalled(text) - 1.53).abs() < 1e-9);
    assert_eq!((stalled(""), stalled("some avg10=x total=1")), (0.0, 0.0));
    assert_eq!(limits("low 9\nhigh 3\nmax 40\noom 1\noom_kill 7\n"), 44);
    assert_eq!((limits(""), limits("high\nmax x\n"), limits("17\n")), (0, 0, 17));
}

#[test]
fn the_lowest_limit_of_all_groups_around_counts() {
    let root = std::env::temp_dir().join(format!("cachewise-groups-{}", std::process::id()));
    let groups = ["", "a", "a/b", "a/c"].map(|path| root.join(path));
    groups.iter().for_each(|group| std::fs::create_dir_all(group).expect("a folder"));
    let say = |group: usize, file, text| {
        std::fs::write(groups[group].join(file), text).expect("a file");
    };
    assert_eq!(limit_of(&groups), None);
    say(2, "memory.max", "max\n");
    assert_eq!(limit_of(&groups), None);
    say(1, "memory.max", "134217728\n");
    say(3, "memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(limit_of(&groups), Some(128 << 20));
    say(3, "memory.limit_in_bytes", "4096\n");
    assert_eq!(limit_of(&groups), Some(4096));
    std::fs::remove_dir_all(&root).expect("ours");
}

#[test]
fn groups_of_both_versions_are_found_with_those_around_them() {
    let found_if = |text, unified| {
        let groups = groups_of(text, unified);
        groups.iter().map(|group| group.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let found = |text| found_if(text, false);
    let root = "/sys/fs/cgroup";
    assert_eq!(found("0::/a/b\n"), ["/a/b", "/a", ""].map(|path| format!("{root}{path}")));
    let first = "9:cpu,cpuacct:/x\n4:memory:/job\n0::/\n";
    let all = ["/memory/job", "/memory", "/"].map(|path| format!("{root}{path}"));
    assert_eq!(found(first), all);
    assert_eq!(found("8:hugetlb,memory:/\nx\n"), [format!("{root}/memory/")]);
    let beside = ["/memory/job", "/memory", "/unified/"].map(|path| format!("{root}{path}"));
    assert_eq!(found_if(first, true), beside);
}
