//! `docs/environment.md` names every variable that the sources name, and no other.

use crate::support::{root, text};
use regex_lite::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The variables of ours in a text, without those names that are guards of C headers.
fn names(text: &str) -> BTreeSet<String> {
    let name = Regex::new("CACHEWISE_[A-Z_]*[A-Z]").expect("an expression");
    let found = name.find_iter(text).map(|found| found.as_str().to_owned());
    found.filter(|name| !name.ends_with("_H")).collect()
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let is =
            |kinds: &[&str]| path.extension().is_some_and(|k| kinds.iter().any(|kind| k == *kind));
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if is(&["rs", "c", "h", "sh", "py"]) && !path.ends_with("cli/environment.rs") {
            into.push(path);
        }
    }
}

#[test]
fn the_page_and_the_sources_name_the_same_variables() {
    let whole = "CACHEWISE_A=1 \"CACHEWISE_B_C\" CACHEWISE_* CACHEWISE_POOL_H CACHEWISE_D_";
    let found: Vec<_> = names(whole).into_iter().collect();
    assert_eq!(found, ["CACHEWISE_A", "CACHEWISE_B_C", "CACHEWISE_D"]);
    let mut files = Vec::new();
    for folder in ["lib", "memory", "lab", "xtask", "packaging", "python"] {
        sources(&root().join(folder), &mut files);
    }
    let content = files.iter().map(|file| text(&fs::read(file).expect("readable")));
    let used: BTreeSet<String> = content.flat_map(|content| names(&content)).collect();
    let told = names(&fs::read_to_string(root().join("docs/environment.md")).expect("the page"));
    assert!(used.len() >= 8, "{used:?}");
    let missing: Vec<_> = used.difference(&told).collect();
    let gone: Vec<_> = told.difference(&used).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not on the page: {missing:?}; nowhere else: {gone:?}"
    );
}
