//! CPU time of children and of orphans.

use crate::CHILDREN;
use cachewise_measure::children::{adopt_orphans, cpu_seconds, reap_orphans};
use std::process::Command;
use std::time::Duration;

const BUSY: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

fn sh(script: &str) {
    assert!(Command::new("sh").args(["-c", script]).status().expect("a shell").success());
}

#[test]
fn children_orphans_and_theirs_are_counted() {
    let _alone = CHILDREN.lock();
    adopt_orphans();
    let mut before = cpu_seconds();
    // By a shell, by its child, and by one whose parent is gone at once.
    for script in [BUSY.to_owned(), format!("sh -c '{BUSY}'"), format!("( {BUSY} ) & exit 0")] {
        sh(&script);
        assert!(reap_orphans(Duration::from_secs(600)), "{script}");
        let after = cpu_seconds();
        assert!(after > before + 0.002, "{script}: {before} to {after}");
        before = after;
    }
    assert!(reap_orphans(Duration::ZERO), "nobody is left");
    let sleeps = Command::new("sh").args(["-c", "sleep 900 >/dev/null 2>&1 & echo $!"]).output();
    let number = String::from_utf8(sleeps.expect("a shell").stdout).expect("a number");
    assert!(!reap_orphans(Duration::ZERO), "one sleeps");
    sh(&format!("kill {number}"));
    assert!(reap_orphans(Duration::from_secs(600)));
}
