//! `CACHEWISE_STATS`: what is counted, where it is printed.

use crate::support::{CALLS, compile, preloaded, run, text, watched};
use std::fs::read_to_string;

/// Rows of the program's own table and of its child's: operation, class, calls, bytes.
const PARENT: [&str; 4] =
    ["copy 64K..128K 7 700000", "move 8..16 7 70", "fill 8..16 1 10", "zero 64K..128K 1 100000"];
const CHILD: [&str; 1] = ["compare 64K..128K 1 100000"];

/// Tables that were printed, in words; the child's comes first.
fn tables(told: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    let parts = told.split("cachewise: calls of process ").skip(1);
    parts.map(|part| part.lines().map(words).collect()).collect()
}

fn has(table: &[String], rows: &[&str]) -> bool {
    rows.iter().all(|row| table.iter().any(|line| line == row))
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn calls_and_bytes_go_where_they_are_wanted() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "counted", CALLS);
    let [missing, other] =
        ["missing/counts", "other"].map(|name| directory.path().join(name).display().to_string());
    // How the program ends, the variable's value, the tables on stderr and in the file.
    for (words, value, shown, kept) in [
        (&["exit", "/"][..], "1", 2, 0),
        // A relative path is the starting directory's, wherever the program goes.
        (&["exit", "/"], "counts", 0, 2),
        (&["_exit"], "1", 2, 0),
        (&["kill"], "1", 1, 0),
        (&["closes"], "1", 2, 0),
        (&["closes", &other], "1", 2, 0),
        (&["exit"], "", 0, 0),
        (&["exit"], &missing, 0, 0),
    ] {
        let case = format!("{words:?} {value}");
        let file = directory.path().join("counts");
        let _ = std::fs::remove_file(&file);
        let output = watched(&program, value).args(words).current_dir(directory.path()).output();
        let told = text(&output.expect("it starts").stderr);
        let (shown_tables, kept_tables) =
            (tables(&told), tables(&read_to_string(&file).unwrap_or_default()));
        assert_eq!((shown_tables.len(), kept_tables.len()), (shown, kept), "{case}: {told}");
        let all = [shown_tables, kept_tables].concat();
        if let Some(child) = all.first() {
            assert!(has(child, &CHILD) && !has(child, &PARENT[..1]), "{case}: {child:?}");
        }
        if let Some(parent) = all.get(1) {
            assert!(has(parent, &PARENT) && !has(parent, &CHILD), "{case}: {parent:?}");
            let blocks = parent.iter().find(|line| line.starts_with("block all "));
            let calls = blocks.and_then(|line| line.split(' ').nth(2)?.parse::<u64>().ok());
            assert!(calls.is_some_and(|calls| calls >= 2), "{case}: {parent:?}");
        }
        // A file that cannot be written is told, in one line.
        let lines = if value == missing { 1 } else { told.lines().count() };
        assert!(told.lines().count() == lines && told.contains(&missing) == (value == missing));
    }
    assert_eq!(read_to_string(other).expect("made by the program"), "");
    let quiet = run(watched(&program, &missing).env("CACHEWISE_QUIET", "1"));
    assert_eq!(text(&quiet.stderr), "");
    // The library that does not count says nothing of it.
    assert_eq!(text(&run(preloaded(&program).env("CACHEWISE_STATS", "1")).stderr), "");
}
