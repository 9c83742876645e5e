//! `page-copy` with the kernel's own fork beside it, and the hidden verb that forks.

use crate::support::{has, ok, piped, program, stderr, stdout};
use cachewise_measure::record;
use std::io::Write;
use std::process::Output;

fn told(arguments: &[&str], input: &str) -> Output {
    let mut command = program();
    command.args(arguments);
    let mut child = piped(command);
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn the_kernels_fork_copies_the_buffers_pages() {
    let fork = |loops: usize| format!("{{\"fork\":{{\"buffer\":65536,\"loops\":{loops}}}}}\n");
    let output = told(&["helper"], &(fork(1) + &fork(10)));
    assert!(output.status.success(), "{}", stderr(&output));
    let number = |line: &str| -> u64 {
        let faults = line.trim_start_matches("{\"Ok\":").trim_end_matches('}');
        faults.parse().unwrap_or_else(|_| panic!("{line}"))
    };
    let faults: Vec<u64> = stdout(&output).lines().map(number).collect();
    assert_eq!(faults.len(), 2);
    assert!(faults[1] >= 160, "16 pages in each of 10 children: {faults:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn page_copy_stands_beside_a_real_fork() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("copy.jsonl");
    let text = ok(&format!(
        "run page-copy --quick --size 32K --kernels mmx_AP. --json {}",
        path.to_str().expect("a name")
    ));
    // The second is the seed's counters.
    has(&text, &["32 KiB copying, 5x20000 loops", "300000/1600000", "the kernel's own fork"]);
    let written = record::read(&path).expect("a whole record");
    let fork = written.rows.iter().find(|row| row.candidate == "fork").expect("its row");
    assert!(fork.extra["faults_per_loop"] >= 8.0, "{:?}", fork.extra);
    assert_eq!(written.header.figures.len(), 3);
    let verdicts = written.end.expect("an end").verdicts;
    assert!(verdicts.iter().any(|verdict| verdict.contains("kernel's own fork")), "{verdicts:?}");
}
