//! No circle of files among the verbs: who reads one reads what it uses, and is done.

use crate::support::{names, root};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The files of `verbs/` that each of them names.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let folder = root().join("crates/cli/src/verbs");
    let files = names(&folder);
    let files = files.iter().filter_map(|file| file.strip_suffix(".rs")).filter(|f| *f != "mod");
    let named = Regex::new(r"\b(?:super|verbs)::(?:\{[^}]*\}|\w+)").expect("an expression");
    let word = Regex::new(r"\W+").expect("an expression");
    let uses_of = |file: &str| {
        let text = fs::read_to_string(folder.join(file).with_extension("rs")).expect("text");
        let words: BTreeSet<&str> =
            named.find_iter(&text).flat_map(|found| word.split(found.as_str())).collect();
        let others = files.clone().filter(|other| *other != file && words.contains(other));
        others.map(str::to_owned).collect()
    };
    files.clone().map(|file| (file.to_owned(), uses_of(file))).collect()
}

#[test]
fn the_verbs_use_each_other_in_no_circle() {
    let mut left = uses();
    assert!(left["learn"].contains("exec") && left["run"].contains("redraw"), "{left:?}");
    // Whoever uses nobody who is left can be read first.
    while !left.is_empty() {
        let free = left.iter().find(|(_, used)| used.iter().all(|one| !left.contains_key(one)));
        let free = free.map(|(name, _)| name.clone());
        assert!(free.is_some(), "a circle among {left:?}");
        free.and_then(|name| left.remove(&name));
    }
}
